//! Words of the page.

use std::path::PathBuf;
use std::{env, fs};

use validator_core::cases;
use validator_core::report::{html, text};
use validator_core::verdict::{AttemptResult, Verdict};

use super::{assert_sound, judged, named, page, parse, sample, samples, text_of, with_id, words};

/// Where VALIDATOR_PAGES names a folder, the pages are written there: a browser is to look at them.
#[test]
fn every_page_is_one_well_formed_file_that_leads_everywhere() {
    let folder = env::var_os("VALIDATOR_PAGES").map(PathBuf::from);
    for (name, evidence) in samples() {
        let page = page(&evidence);
        assert_sound(&name, &page);
        if let Some(folder) = &folder {
            fs::write(folder.join(format!("{name}.html")), page).unwrap();
        }
    }
}

#[test]
fn a_page_says_what_the_other_reports_say() {
    for (name, evidence) in samples() {
        let (results, exit) = judged(&evidence);
        let verdict = Verdict::of_parts(results.iter().map(|result| result.verdict));
        let expected = name.split_once('-').unwrap().1;
        let expected = match expected {
            "good" => Verdict::Pass,
            "failing" => Verdict::Fail,
            _ => Verdict::Inconclusive,
        };
        assert_eq!(verdict, expected, "{name}");
        let page = html::page(&evidence, &results, exit);
        let document = parse(&page);
        let heading = text_of(named(&document, "h1").next().unwrap());
        assert!(heading.ends_with(verdict.word()), "{name}: {heading}");
        let whole = text_of(named(&document, "body").next().unwrap());
        let summary = text::summary(&evidence, &results, exit, false);
        let mut lines = summary.lines();
        let conclusion = words(lines.find(|line| line.starts_with("verdict: ")).unwrap());
        assert!(whole.contains(&conclusion), "{name}: {conclusion}");
        for fact in [
            &evidence.testbed.name,
            &evidence.version,
            &format!("Linux {}", evidence.host.kernel),
            &format!("{} with {} CPUs", evidence.host.machine, evidence.host.cpus),
        ] {
            assert!(whole.contains(fact), "{name}: {fact}");
        }
        for result in &results {
            let known = cases::all().into_iter().find(|case| case.id == result.case);
            let known = known.unwrap();
            let requirements = [known.title, known.document, known.requirement].into_iter();
            let of_checks = known.checks.iter();
            let of_checks = of_checks.flat_map(|check| [check.passes_when, check.tolerance]);
            for text in requirements.chain(of_checks) {
                assert!(whole.contains(&words(text)), "{name}: {text}");
            }
            let with_steps = known.checks.iter().filter(|check| !check.steps.is_empty());
            for check in with_steps {
                let clause = words(&format!("step {}", check.steps.join(", ")));
                assert!(whole.contains(&clause), "{name}: {clause}");
            }
            let open = result
                .checks
                .iter()
                .filter(|check| check.verdict != Verdict::Pass);
            for check in open {
                assert!(whole.contains(&words(&check.reason)), "{name}: {check:?}");
                let first = check
                    .assertions
                    .iter()
                    .find(|made| made.verdict == check.verdict);
                for text in first
                    .iter()
                    .flat_map(|made| [&made.what, &made.expected, &made.actual])
                {
                    assert!(whole.contains(&words(text)), "{name}: {text}");
                }
            }
            for figure in &result.figures {
                let row = words(&format!("{} {}", figure.name, figure.value));
                assert!(whole.contains(&row), "{name}: {row}");
            }
            for assertion in &result.assertions {
                assert!(whole.contains(&assertion.id), "{name}: {}", assertion.id);
            }
        }
    }
}

#[test]
fn what_failed_stands_first_with_a_link_and_what_passed_is_folded() {
    for (name, evidence) in samples() {
        let page = page(&evidence);
        let document = parse(&page);
        let failed = with_id(&document, "failed");
        let (results, _) = judged(&evidence);
        let of = |verdict: Verdict| {
            let checks = results.iter().flat_map(|result| &result.checks);
            checks.filter(move |check| check.verdict == verdict)
        };
        let wrong = of(Verdict::Fail).count() + of(Verdict::Error).count();
        assert_eq!(failed.is_some(), wrong > 0, "{name}");
        if let Some(failed) = failed {
            assert!(failed.range().start < page.find("<nav").unwrap(), "{name}");
            let text = text_of(failed);
            for check in of(Verdict::Fail).take(5) {
                let decisive = check.assertions.iter();
                let decisive = decisive.filter(|made| made.verdict == Verdict::Fail);
                let found = decisive.map(|made| words(&made.actual)).next();
                let found = found.unwrap_or_else(|| words(&check.reason));
                assert!(text.contains(&check.check), "{name}: {}", check.check);
                assert!(text.contains(&found), "{name}: {found} in {text}");
            }
            let links = failed.descendants();
            let links = links.filter(|node| node.has_tag_name("a"));
            for link in links {
                let title = text_of(link);
                let target = link.attribute("href").unwrap().strip_prefix('#').unwrap();
                if target == "matrix" {
                    assert!(title.ends_with("more: the matrix"), "{name}: {title}");
                    continue;
                }
                let card = with_id(&document, target);
                let card = card.unwrap_or_else(|| panic!("{name}: no {target}"));
                assert!(card.has_attribute("open"), "{name}: {title}");
                let summary = text_of(card.first_element_child().unwrap());
                // Where several cases were run the case stands first.
                let mut parts = title.split([',', ' ']);
                let check = parts.nth(usize::from(results.len() > 1)).unwrap();
                let names = summary.split(' ').any(|word| word == check);
                assert!(names, "{name}: {title} leads to {summary}");
            }
        }
        for part in named(&document, "details").filter(|node| node.has_attribute("open")) {
            let summary = text_of(part.first_element_child().unwrap());
            let passed = ["✓ pass", "– not-applicable", "» skipped"];
            assert!(
                !passed.iter().any(|sign| summary.starts_with(sign)),
                "{name}: {summary}"
            );
        }
    }
}

#[test]
fn printed_pages_have_numbers_and_no_card_is_split() {
    let page = page(&sample("pfc-good"));
    let document = parse(&page);
    let style = named(&document, "style").next().unwrap().text().unwrap();
    let (_, of_pages) = style.split_once("@page {").unwrap();
    let (_, foot) = of_pages.split_once("@bottom-center {").unwrap();
    let (foot, _) = foot.split_once('}').unwrap();
    for number in ["counter(page)", "counter(pages)"] {
        assert!(foot.contains(number), "{foot}");
    }
    let (_, print) = style.split_once("@media print {").unwrap();
    let rules = print.split('}').filter_map(|rule| rule.split_once('{'));
    let rules: Vec<_> = rules.collect();
    let with = |declaration: &str| -> Vec<&str> {
        let of = rules
            .iter()
            .filter(|(_, declarations)| declarations.contains(declaration));
        let parts = of.flat_map(|(parts, _)| parts.split(','));
        parts.map(str::trim).collect()
    };
    let unsplit = with("break-inside: avoid");
    for part in [".banner", "details", "figure", "tr", "li"] {
        assert!(unsplit.contains(&part), "{part} in {unsplit:?}");
    }
    // A heading stays with its part.
    let kept = with("break-after: avoid");
    for part in ["h2", "summary"] {
        assert!(kept.contains(&part), "{part} in {kept:?}");
    }
}

#[test]
fn attempts_and_what_a_pass_would_have_found_stand_at_their_check() {
    let evidence = sample("pfc-good");
    let (mut results, exit) = judged(&evidence);
    let result = &mut results[0];
    let repetition = result.checks[0].repetition.clone();
    let mut checks: Vec<_> = result.checks.clone();
    checks.retain(|check| check.repetition == repetition);
    checks[0].verdict = Verdict::Inconclusive;
    checks[0].reason = "the storm had a gap".into();
    let (first, last) = (
        checks[0].check.clone(),
        checks.last().unwrap().check.clone(),
    );
    result.attempts.push(AttemptResult {
        repetition,
        attempt: 1,
        checks,
    });
    let page = html::page(&evidence, &results, exit);
    let document = parse(&page);
    let part = |check: &str| {
        let heading = format!("Attempts at {check}");
        let caption = named(&document, "caption").find(|node| text_of(*node) == heading);
        let table = caption.and_then(|caption| caption.parent()).unwrap();
        text_of(table)
    };
    assert!(part(&first).contains("1 ? inconclusive the storm had a gap"));
    assert!(part(&last).contains("pass"));
    let least: Vec<_> = named(&document, "caption")
        .map(text_of)
        .filter(|caption| caption.starts_with("The least that "))
        .collect();
    assert!(
        least.contains(&"The least that paused would have found".into()),
        "{least:?}"
    );
}

#[test]
fn causes_of_what_is_inconclusive_have_a_remedy() {
    let of = |name: &str| page(&sample(name));
    let good = of("pfc-good");
    assert!(!good.contains("id=\"undecided\""));
    let page = of("pfc-inconclusive");
    let document = parse(&page);
    let text = text_of(with_id(&document, "undecided").unwrap());
    for expected in [
        "the DUT's PFC watchdog is off; declare facts.watchdog = \"off\"",
        "drops on the tester's own side: wire lost +5 Take load off the tester",
        "pfc.pause-single-lossless (1",
        "Make the repetition possible",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    for name in ["mad-inconclusive", "rc-inconclusive"] {
        let page = of(name);
        assert!(page.contains("id=\"undecided\""), "{name}");
        assert!(!page.contains("Mend what is found"), "{name}");
    }
}

#[test]
fn a_cause_found_in_several_attempts_is_one_row_with_its_remedy() {
    let page = page(&sample("pfc-again"));
    let document = parse(&page);
    let rows = with_id(&document, "undecided").unwrap().descendants();
    let rows = rows.filter(|node| node.tag_name().name() == "tr");
    let rows: Vec<String> = rows.map(text_of).collect();
    let of: Vec<_> = rows
        .iter()
        .filter(|row| row.contains("wire lost +5"))
        .collect();
    let [row] = of[..] else { panic!("{rows:?}") };
    let expected = "Take load off the tester, or give its ports longer rings";
    assert!(row.contains(expected), "{row}");
    assert!(!rows.iter().any(|row| row.contains("attempt")), "{rows:?}");
    assert!(!page.contains("Mend what is found"), "{rows:?}");
    // Each attempt has its figures.
    for attempt in [
        "lossless 3, attempt 1]",
        "lossless 3, attempt 2]",
        "lossless 3]",
    ] {
        let caption = format!("Figures of pfc.pause-single-lossless [{attempt}");
        assert!(page.contains(&caption), "{caption}");
    }
    // The ports are there with what to mend.
    assert!(text_of(document.root_element()).contains("tx enp23s0f0np0"));
}

#[test]
fn numbers_of_figures_are_those_that_are_shown() {
    let mut found = 0;
    for (name, evidence) in samples() {
        let (results, _) = judged(&evidence);
        for figure in results.iter().flat_map(|result| &result.figures) {
            let mut words = figure.form.split('#');
            let mut rest = figure.value.strip_prefix(words.next().unwrap()).unwrap();
            for (number, after) in figure.numbers.iter().zip(words) {
                let end = rest.find(|c: char| !c.is_ascii_digit() && !".-".contains(c));
                let (shown, behind) = rest.split_at(end.unwrap_or(rest.len()));
                assert_eq!(shown.parse(), Ok(number.value), "{name}: {figure:?}");
                rest = behind.strip_prefix(after).unwrap();
                found += 1;
            }
            assert_eq!(rest, "", "{name}: {figure:?}");
        }
    }
    assert!(found > 100, "{found}");
}
