//! Red parts of ladders.

use std::collections::BTreeSet;

use roxmltree::Node;
use validator_core::evidence::mad::{Exchange, Purpose};
use validator_core::evidence::{Evidence, Repetition};
use validator_core::report::html;
use validator_core::verdict::{Subject, Verdict};

use super::{judged, named, of_class, page, parse, sample, samples, text_of};

/// Events that a drawing shows, and those that the table beside it lists.
const SHOWN: usize = 160;
const LATER: usize = 20;
const LISTED: usize = 1000;

/// The words in red on the ladders of that evidence.
fn in_red(evidence: &Evidence) -> Vec<String> {
    let page = page(evidence);
    let document = parse(&page);
    of_class(&document, "g", "wrong").map(text_of).collect()
}

#[test]
fn ladders_show_in_red_what_is_missing_and_nothing_of_a_good_device() {
    let red = |name: &str| in_red(&sample(name));
    for name in ["mad-good", "rc-good"] {
        assert_eq!(red(name), [""; 0], "{name}");
    }
    let missing = red("rc-failing");
    let is_missing = |text: &&String| text.contains("missing: 1 of ");
    assert_eq!(missing.iter().filter(is_missing).count(), 2, "{missing:?}");
    assert!(!red("mad-failing").is_empty());
}

#[test]
fn mad_ladders_show_in_red_an_answer_that_is_wrong_or_late_or_did_not_come() {
    let good = sample("mad-good");
    let changed = |change: fn(&mut Exchange)| {
        let mut evidence = good.clone();
        let cases = evidence.cases.iter_mut();
        let repetitions = cases.flat_map(|case| &mut case.repetitions);
        let exchanges = repetitions.filter_map(|repetition| match repetition {
            Repetition::Mad(e) => Some(&mut e.exchanges),
            _ => None,
        });
        let mut exchanges = exchanges.flatten();
        let with_own_key = exchanges.find(|exchange| exchange.purpose == Purpose::OwnKey);
        change(with_own_key.unwrap());
        in_red(&evidence)
    };
    let wrong = changed(|exchange| {
        // Status code 7, in the lower octet of the status.
        exchange.answer.as_mut().unwrap().octets.0[5] = 7 << 2;
    });
    let late = changed(|exchange| exchange.answer.as_mut().unwrap().at = exchange.deadline + 1);
    let missing = changed(|exchange| exchange.answer = None);
    for (red, words) in [
        (wrong, "(code 7)"),
        (late, ", late"),
        (missing, "no answer within 200 ms"),
    ] {
        let [red] = &red[..] else {
            panic!("{words}: {red:?}");
        };
        assert!(red.contains(words), "{words} in {red}");
    }
}

/// A row of the table beside a ladder.
struct Row {
    label: String,
    is_red: bool,
}

impl Row {
    fn new(row: Node<'_, '_>) -> Self {
        let cell = row.children().filter(Node::is_element).nth(2);
        Self {
            label: text_of(cell.unwrap()),
            is_red: row.attribute("class") == Some("wrong"),
        }
    }

    fn is_stray(&self) -> bool {
        self.label.starts_with("unasked: ")
    }

    /// True if the row says that the check failed there.
    fn names(&self, check: &str) -> bool {
        let failed = self.label.split_once("; fails ");
        failed.is_some_and(|(_, failed)| failed.split(", ").any(|name| name == check))
    }

    /// Exchanges that the row stands for.
    fn number(&self) -> usize {
        let number = self.label.split_once(" times ");
        number.map_or(1, |(number, _)| number.parse().unwrap())
    }
}

/// The rows of each ladder's table, with its caption. The drawing has the same in red.
fn ladders(page: &str) -> Vec<(String, Vec<Row>)> {
    let document = parse(page);
    let figures = named(&document, "figure");
    let ladders = figures.filter_map(|figure| {
        let mut drawings = figure.descendants();
        drawings.find(|node| node.attribute("class") == Some("ladder"))?;
        let within = |name: &'static str| {
            let all = figure.descendants();
            all.filter(move |node| node.has_tag_name(name))
        };
        let body = within("tbody").next().unwrap();
        let rows = body.children().filter(|node| node.has_tag_name("tr"));
        let rows: Vec<Row> = rows.map(Row::new).collect();
        let drawn = within("g").filter(|node| node.attribute("class") == Some("wrong"));
        let red = |rows: &[Row]| rows.iter().filter(|row| row.is_red).count();
        let (first, later) = rows.split_at(rows.len().min(SHOWN));
        let caption = text_of(within("caption").next().unwrap());
        // Of the later ones, each may have the one before it in the drawing.
        let expected = red(first) + red(later).min(LATER / 2);
        let found = drawn.count();
        assert!(
            (expected..=red(&rows)).contains(&found),
            "{caption}: {found}"
        );
        Some((caption, rows))
    });
    ladders.collect()
}

#[test]
fn what_is_wrong_behind_the_first_events_is_drawn() {
    let mut evidence = sample("mad-good");
    let repetitions = evidence
        .cases
        .iter_mut()
        .flat_map(|case| &mut case.repetitions);
    let long = repetitions.filter_map(|repetition| match repetition {
        Repetition::Mad(e) if e.plan.name == "protect-bits-3" => Some(e),
        _ => None,
    });
    let exchanges = long.flat_map(|e| e.exchanges.iter_mut().rev());
    let mut answers = exchanges.map(|exchange| &mut exchange.answer);
    *answers.find(|answer| answer.is_some()).unwrap() = None;
    let page = page(&evidence);
    let later = ladders(&page);
    let later = later.iter().flat_map(|(_, rows)| rows.iter().skip(SHOWN));
    assert_eq!(later.filter(|row| row.is_red).count(), 1);
    assert!(page.contains("later ones that failed a check or stand before one"));
}

#[test]
fn each_packet_that_a_check_failed_on_is_red_and_names_it() {
    // Something that did not come is no packet, nor is a state.
    const OF_NO_PACKET: [&str; 5] = [
        "requests",
        "one-completion",
        "flush",
        "path-alive",
        "qp-error",
    ];
    let (mut on_packets, mut good) = (BTreeSet::new(), BTreeSet::new());
    for family in ["mad", "rc"] {
        for (devices, evidence) in samples::recorded(family, |_| true) {
            let device = devices[0].as_str();
            let evidence = samples::run(vec![evidence]);
            let (results, exit) = judged(&evidence);
            let ladders = ladders(&html::page(&evidence, &results, exit));
            let result = &results[0];
            if ["good", "adapter"].contains(&device) {
                let mut rows = ladders.iter().flat_map(|(_, rows)| rows);
                assert!(rows.all(|row| !row.is_red), "{} on {device}", result.case);
                good.insert((result.case.clone(), device.to_owned()));
            }
            let failed = result.checks.iter();
            for check in failed.filter(|check| check.verdict == Verdict::Fail) {
                let of = format!("{} [{}]", result.case, check.repetition);
                let what = format!("{} of {of} on {device}", check.check);
                let caption = format!("Packets of {of} in order");
                let (_, rows) = ladders.iter().find(|(found, _)| *found == caption).unwrap();
                let failed = check.assertions.iter();
                let failed: Vec<_> = failed
                    .filter(|made| made.verdict == Verdict::Fail)
                    .collect();
                assert!(!failed.is_empty(), "{what}");
                for made in &failed {
                    let is_known = family == "rc" && OF_NO_PACKET.contains(&check.check.as_str());
                    assert!(is_known || !made.about.is_empty(), "{what}: {made:?}");
                }
                let subjects = failed.iter().flat_map(|made| &made.about);
                let subjects: BTreeSet<Subject> = subjects.copied().collect();
                if subjects.is_empty() {
                    let is_red = rows.iter().any(|row| row.is_red);
                    assert!(is_red || check.check == "qp-error", "{what}");
                    continue;
                }
                on_packets.insert((family, check.check.clone()));
                let is_exchange = |subject: &&Subject| matches!(subject, Subject::Exchange(_));
                let exchanges = subjects.iter().filter(is_exchange).count();
                let names = |row: &&Row| row.names(&check.check);
                let named: Vec<&Row> = rows.iter().filter(names).collect();
                assert!(named.iter().all(|row| row.is_red), "{what}");
                if family == "rc" {
                    assert!(named.len() >= subjects.len(), "{what}: {subjects:?}");
                    continue;
                }
                let of_exchanges = named.iter().filter(|row| !row.is_stray());
                let number: usize = of_exchanges.map(|row| row.number()).sum();
                assert_eq!(number, exchanges, "{what}");
                // An answer may come in a later repetition.
                let all = ladders.iter().flat_map(|(_, rows)| rows);
                let strays = all.filter(names).filter(|row| row.is_stray()).count();
                let is_cut = rows.len() == LISTED;
                assert!(
                    is_cut && strays > 0 || strays >= subjects.len() - exchanges,
                    "{what}: {strays} of {subjects:?}"
                );
            }
        }
    }
    for (case, device) in [
        ("mad.c14-024-10-01", "good"),
        ("mad.c14-016-get", "good"),
        ("mad.c14-016-get", "adapter"),
        ("mad.c13-013", "good"),
        ("rc.c09-142-01", "good"),
    ] {
        let found = good.contains(&(case.to_owned(), device.to_owned()));
        assert!(found, "{case} on {device}");
    }
    for (family, check) in [
        ("mad", "other-key-value"),
        ("mad", "one-violation"),
        ("mad", "own-key-value"),
        ("mad", "get-data"),
        ("mad", "header"),
        ("mad", "no-answer"),
        ("mad", "single-answer"),
        ("mad", "in-time"),
        ("mad", "restored"),
        ("mad", "nothing-else-changed"),
        ("rc", "requests"),
        ("rc", "single-packet"),
        ("rc", "same-request"),
        ("rc", "interval"),
        ("rc", "retry-count"),
        ("rc", "one-completion"),
        ("rc", "status"),
    ] {
        let found = on_packets.contains(&(family, check.to_owned()));
        assert!(found, "{check} failed on no packet");
    }
}

#[test]
fn rc_ladders_show_in_red_the_packet_that_is_wrong_and_no_other() {
    // Requests of the test with retry count 2.
    for (device, check, expected) in [
        (
            "changes-psn",
            "same-request",
            [false, true, true].as_slice(),
        ),
        ("one-retry-more", "requests", &[false, false, false, true]),
        ("wrong-opcode", "single-packet", &[true, true, true]),
    ] {
        let evidence = samples::run(samples::on("rc", device));
        let ladders = ladders(&page(&evidence));
        let (_, rows) = &ladders[0];
        let begins = |row: &&Row| row.label.starts_with("test: ");
        let test = rows.iter().skip_while(|row| !begins(row)).skip(1);
        let test = test.take_while(|row| !row.label.starts_with("flush: "));
        let packets = test.filter(|row| row.label.contains(" PSN "));
        let found: Vec<bool> = packets.map(|row| row.names(check)).collect();
        assert_eq!(found, expected, "{device}");
    }
}
