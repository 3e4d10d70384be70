//! Compares an earlier run's figures with these. Ratios are comparable between machines and times
//! of day; times are not.

use super::Results;
use super::figure::Figure;
use super::table::{aligned, number};

/// A figure of both runs, and by how much it changed.
#[derive(Debug, PartialEq)]
struct Change<'a> {
    now: &'a Figure,
    before: &'a Figure,
    /// Change of the ratio if both have one, otherwise of the median.
    factor: f64,
    of_ratios: bool,
}

/// Compares the figures of both runs, and lists those that only one of them has.
pub fn table(file: &str, before: &Results, now: &Results) -> String {
    let rows: Vec<[String; 5]> = changes(before, now).iter().map(row).collect();
    let mut out = format!(
        "==> against {file} of {}, commit {}\n",
        before.machine.date, before.machine.commit
    );
    if before.machine.hardware() != now.machine.hardware() {
        out.push_str("  another machine: only ratios are comparable\n");
    }
    if before.extent != now.extent {
        out.push_str(&format!(
            "  a run of another extent: {} then, {} now\n",
            before.extent, now.extent
        ));
    }
    out.push_str(&aligned(
        &["benchmark", "figure", "then", "now", "now / then"],
        &rows,
    ));
    for (word, some, others) in [("only then", before, now), ("only now", now, before)] {
        // Leaves out benchmarks that only one of the runs executed.
        let in_both = |figure: &&Figure| {
            others
                .figures
                .iter()
                .any(|other| other.bench == figure.bench)
        };
        for figure in some
            .figures
            .iter()
            .filter(in_both)
            .filter(|figure| !others.figures.iter().any(|other| is_same(figure, other)))
        {
            out.push_str(&format!("  {word}: {}, {}\n", figure.bench, figure.name));
        }
    }
    out
}

fn is_same(one: &Figure, other: &Figure) -> bool {
    (&one.bench, &one.name) == (&other.bench, &other.name)
}

fn changes<'a>(before: &'a Results, now: &'a Results) -> Vec<Change<'a>> {
    let before = |now: &Figure| before.figures.iter().find(|before| is_same(before, now));
    now.figures
        .iter()
        .filter_map(|now| before(now).and_then(|before| change(before, now)))
        .collect()
}

/// `None` if units or baselines differ, or if the divisor is 0.
fn change<'a>(before: &'a Figure, now: &'a Figure) -> Option<Change<'a>> {
    let (new, old, of_ratios) = match (now.ratio, before.ratio) {
        (Some(new), Some(old)) if now.beside == before.beside => (new, old, true),
        _ if now.unit == before.unit => (now.median, before.median, false),
        _ => return None,
    };
    (old != 0.0).then_some(Change {
        now,
        before,
        factor: new / old,
        of_ratios,
    })
}

fn row(change: &Change) -> [String; 5] {
    let value = |figure: &Figure| match figure.ratio.filter(|_| change.of_ratios) {
        Some(ratio) => format!(
            "{} x {}",
            number(ratio),
            figure.beside.as_deref().unwrap_or("another")
        ),
        None => format!("{} {}", number(figure.median), figure.unit),
    };
    let kind = if change.of_ratios {
        ""
    } else {
        " (not a ratio)"
    };
    let Change {
        now,
        before,
        factor,
        ..
    } = change;
    [
        now.bench.clone(),
        now.name.clone(),
        value(before),
        value(now),
        format!("{}{kind}", number(*factor)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::figure::tests::figure;
    use super::super::tests::results;
    use super::*;

    #[test]
    fn ratios_are_compared_where_there_are_some() {
        let before = results(vec![
            figure("program", "classify", 8.0, Some(2.0)),
            figure("storm", "gap", 10.0, None),
        ]);
        let now = results(vec![
            figure("program", "classify", 16.0, Some(1.0)),
            figure("storm", "gap", 20.0, None),
        ]);
        let found: Vec<_> = changes(&before, &now)
            .iter()
            .map(|change| (change.factor, change.of_ratios))
            .collect();
        // Twice as slow on a machine that is four times as slow is a gain.
        assert_eq!(found, [(0.5, true), (2.0, false)]);
    }

    #[test]
    fn what_cannot_be_compared_is_left_out_and_named() {
        let other = Figure {
            unit: "us".into(),
            ..figure("storm", "gap", 10.0, None)
        };
        let unrun = figure("program", "classify", 1.0, None);
        let before = results(vec![
            other,
            figure("wire", "old", 1.0, None),
            figure("wire", "none", 0.0, None),
            unrun,
        ]);
        let now = results(vec![
            figure("storm", "gap", 10.0, None),
            figure("wire", "new", 1.0, None),
            figure("wire", "none", 3.0, None),
        ]);
        assert_eq!(changes(&before, &now), []);
        let table = table("old.json", &before, &now);
        assert!(
            table.contains("only then: wire, old\n") && table.contains("only now: wire, new\n"),
            "{table}"
        );
        assert!(!table.contains("classify"), "{table}");
    }
}
