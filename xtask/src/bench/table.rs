//! The table at the end.

use super::Results;
use super::figure::{Figure, Skipped};

/// Renders the machine, all figures, and what was skipped or failed.
pub fn of(results: &Results) -> String {
    let mut out = format!("==> figures\n{}\n", results.machine);
    let rows: Vec<[String; 5]> = results.figures.iter().map(row).collect();
    out.push_str(&aligned(
        &[
            "benchmark",
            "figure",
            "median",
            "least to greatest",
            "ratio",
        ],
        &rows,
    ));
    for skipped in &results.skipped {
        let Skipped {
            name,
            bench,
            skipped,
        } = skipped;
        out += &format!("skipped: {name} of {bench}: {skipped}\n");
    }
    for failed in &results.failed {
        out += &format!("failed: {failed}\n");
    }
    out
}

fn row(figure: &Figure) -> [String; 5] {
    let Figure {
        bench,
        name,
        unit,
        median,
        min,
        max,
        ..
    } = figure;
    [
        bench.clone(),
        name.clone(),
        format!("{} {unit}", number(*median)),
        format!("{} to {}", number(*min), number(*max)),
        ratio(figure),
    ]
}

fn ratio(figure: &Figure) -> String {
    let Some(ratio) = figure.ratio else {
        return String::new();
    };
    let spread = match (figure.ratio_min, figure.ratio_max) {
        (Some(min), Some(max)) => format!(" ({} to {})", number(min), number(max)),
        _ => String::new(),
    };
    let beside = figure
        .beside
        .as_ref()
        .map(|beside| format!(" x {beside}"))
        .unwrap_or_default();
    format!("{}{spread}{beside}", number(ratio))
}

/// Three significant digits, or all digits before the point.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 | 100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.1.. => 3,
        0.01.. => 4,
        _ => 6,
    };
    format!("{value:.decimals$}")
}

/// Pads columns to their widest field, except the last one.
pub fn aligned<const N: usize>(head: &[&str; N], rows: &[[String; N]]) -> String {
    let length = |text: &str| text.chars().count();
    let width = |column: usize| {
        rows.iter()
            .map(|row| length(&row[column]))
            .chain([length(head[column])])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |fields: &[&str]| {
        let padded: Vec<String> = fields
            .iter()
            .zip(&widths)
            .map(|(field, width)| format!("{field:width$}"))
            .collect();
        format!("  {}\n", padded.join("  ").trim_end())
    };
    let rows = rows
        .iter()
        .map(|row| line(&row.each_ref().map(String::as_str)));
    std::iter::once(line(head)).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::super::figure::tests::figure;
    use super::super::tests::results;
    use super::*;

    #[test]
    fn figures_stand_in_columns_with_their_ratios() {
        let with_spread = Figure {
            ratio_min: Some(1.4),
            ratio_max: Some(1.625),
            ..figure("program", "classify", 8.5, Some(1.5))
        };
        let mut results = results(vec![
            with_spread,
            Figure {
                min: 13.0,
                ..figure("storm", "gap", 1400.0, None)
            },
        ]);
        results.failed.push("wire of pfc-user".into());
        let table = of(&results);
        let rows: Vec<&str> = table
            .lines()
            .skip_while(|line| !line.contains("least to greatest"))
            .collect();
        assert_eq!(
            rows,
            [
                "  benchmark  figure    median   least to greatest  ratio",
                "  program    classify  8.50 ns  8.50 to 8.50       1.50 (1.40 to 1.62) x drop",
                "  storm      gap       1400 ns  13.0 to 1400",
                "failed: wire of pfc-user",
            ]
        );
    }

    #[test]
    fn numbers_have_three_digits() {
        let numbers = [0.0, 0.000_12, 0.0123, 0.5, 1.0, 12.34, 123.4, 123_456.0].map(number);
        assert_eq!(
            numbers,
            [
                "0", "0.000120", "0.0123", "0.500", "1.00", "12.3", "123", "123456"
            ]
        );
    }
}
