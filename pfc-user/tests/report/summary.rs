//! No verdict is lost on its way to the terminal.

use pfc_ebpf::units::{Dscp, Priority};
use validator::report::{html, text};
use validator_core::evidence::Repetition;
use validator_core::plan::{FlowPlan, PortName, Role};
use validator_core::verdict::{CheckResult, Exit, Verdict};

use super::samples::{ALL, check, every_verdict, evidence, result};

#[test]
fn the_summary_counts_every_verdict_and_gives_the_reason_of_each_that_is_no_pass() {
    let summary = text::summary(&evidence(), &[every_verdict()], Exit::Failed, false);
    assert!(
        summary.starts_with(
            "validator 1.2.3, testbed sim (sim), Linux 6.18.0 on x86_64 with 2 CPUs, 12.5 s\n"
        ),
        "{summary}"
    );
    for verdict in ALL {
        let row = summary
            .lines()
            .find(|line| line.starts_with(&format!("  is-{verdict} ")))
            .unwrap();
        let counts = row.trim_start().split_once(' ').unwrap().1.trim();
        let (reason, found) = (
            format!("reason of is-{verdict} in b"),
            format!("expected none <of them>, found actual of is-{verdict} in b"),
        );
        if verdict == Verdict::Pass {
            assert_eq!(counts, "2 passed");
            assert!(!summary.contains(&reason) && !summary.contains(&found));
        } else {
            let word = match verdict {
                Verdict::Fail => "failed",
                Verdict::Error => "with an error",
                Verdict::NotApplicable => "not applicable",
                other => other.word(),
            };
            let light = matches!(verdict, Verdict::Skipped | Verdict::NotApplicable);
            let expected = if light {
                format!("1 passed, 1 {word}")
            } else {
                format!("1 {word}, 1 passed")
            };
            assert_eq!(counts, expected);
            assert!(
                summary.contains(&reason) && summary.contains(&found),
                "{verdict} in\n{summary}"
            );
        }
    }
    assert!(
        summary.contains("pfc.x  fail\n")
            && summary.ends_with(
                "verdict: fail (cases: 1 failed; exit code 1)\n\
                 failed: is-fail [b]\n\
                 with an error: is-error [b]\n\
                 inconclusive: is-inconclusive [b]\n"
            ),
        "{summary}"
    );
    assert!(
        summary
            .contains("figures of b (the other repetitions: report.json)\n      gap  7 ms in b\n"),
        "{summary}"
    );
    assert!(
        summary.lines().all(|line| line.chars().count() <= 100),
        "{summary}"
    );
}

#[test]
fn the_summary_ends_in_a_table_and_explains_what_did_not_pass_alone() {
    let of = |case: &str, verdict| result(case, "", vec![check("paused", "a", verdict)]);
    let results = [
        of("pfc.x", Verdict::Pass),
        of("mad.long-name", Verdict::Fail),
    ];
    let summary = text::summary(&evidence(), &results, Exit::Failed, false);
    let table = "\
        pfc.x          pass            checks: 1 passed\n\
        mad.long-name  fail            checks: 1 failed\n\
        \n\
        verdict: fail (cases: 1 failed, 1 passed; exit code 1)\n\
        failed: mad.long-name paused [a]\n";
    assert!(summary.ends_with(table), "{summary}");
    assert!(summary.contains("reason of paused in a"), "{summary}");
    assert!(!summary.contains("pfc.x  pass\n"), "{summary}");
    let verbose = text::verbose(&evidence(), &results, Exit::Failed, false);
    assert!(verbose.ends_with(table), "{verbose}");
    assert!(verbose.contains("pfc.x  pass\n"), "{verbose}");

    let mut many: Vec<_> = (0..30)
        .map(|number| of(&format!("pfc.{number}"), Verdict::Pass))
        .collect();
    many.push(of("pfc.bad", Verdict::Fail));
    let summary = text::summary(&evidence(), &many, Exit::Failed, false);
    let end = "pfc.bad  fail            checks: 1 failed\nand 30 more that pass\n\n";
    assert!(summary.contains(end), "{summary}");
}

#[test]
fn what_failed_stands_first_and_its_name_last() {
    let mut checks: Vec<_> = (0..20)
        .map(|index| check("paused", &format!("lossless {index}"), Verdict::Fail))
        .collect();
    for check in &mut checks {
        check.reason.clear();
        check.assertions[0].expected = "0".to_owned();
        check.assertions[0].actual = format!("5 in {}", check.repetition);
    }
    checks.insert(0, check("xon", "lossless 3", Verdict::Inconclusive));
    let results = [
        result("pfc.good", "", vec![check("paused", "a", Verdict::Pass)]),
        result("pfc.x", "", checks),
    ];
    let summary = text::summary(&evidence(), &results, Exit::Failed, false);
    let lines: Vec<_> = summary.lines().collect();
    assert_eq!(
        lines[1..3],
        [
            "",
            "fail  pfc.x paused [lossless 0]: frames: expected 0, found 5 in lossless 0"
        ]
    );
    assert_eq!(lines[14], "and 9 more, below");
    let end = "failed: pfc.x paused [lossless 0], pfc.x paused [lossless 1], pfc.x paused \
               [lossless 2], pfc.x paused [lossless 3] and 16 more inconclusive: pfc.x xon \
               [lossless 3]";
    let words: Vec<_> = summary.split_whitespace().collect();
    assert!(words.join(" ").ends_with(end), "{summary}");
}

#[test]
fn a_repetition_that_two_cases_have_is_named_with_its_case() {
    let of = |case: &str| {
        let paused = check("paused", "lossless 3", Verdict::Fail);
        result(case, "", vec![paused])
    };
    let both = [of("pfc.x"), of("pfc.y")];
    let summary = text::summary(&evidence(), &both, Exit::Failed, false);
    let first: Vec<_> = summary.lines().skip(2).take(2).collect();
    let line =
        |case: &str| format!("fail  {case} paused [lossless 3]: reason of paused in lossless 3");
    assert_eq!(first, [line("pfc.x"), line("pfc.y")]);
    let last = "\nfailed: pfc.x paused [lossless 3], pfc.y paused [lossless 3]\n";
    assert!(summary.ends_with(last), "{summary}");
    let page = html::page(&evidence(), &both, Exit::Failed);
    for case in ["pfc.x", "pfc.y"] {
        let link = format!("{case} paused [lossless 3]</a>");
        assert!(page.contains(&link), "{link}");
    }
    let summary = text::summary(&evidence(), &both[..1], Exit::Failed, false);
    let last = "\nfailed: paused [lossless 3]\n";
    assert!(summary.ends_with(last), "{summary}");
}

#[test]
fn the_marks_of_tagged_frames_are_shown() {
    let priority = |number| Priority::new(number).unwrap();
    let flow = |id: u16, number: u8, dscp: u8, pcp| FlowPlan {
        from: PortName::TX,
        to: PortName::RX,
        id,
        role: Role::Test,
        priority: priority(number),
        dscp: Dscp::all().nth(dscp.into()).unwrap(),
        pcp: Some(priority(pcp)),
        rate: 1,
        length: 100,
    };
    let shown = |flows: Vec<FlowPlan>| {
        let mut evidence = evidence();
        if let Repetition::Pfc(pfc) = &mut evidence.cases[0].repetitions[1] {
            pfc.plan.flows = flows;
        }
        let summary = text::summary(&evidence, &[], Exit::Undecided, false);
        // A paragraph, up to the empty line.
        let marks = summary.split_once("\ntagged ")?.1.split("\n\n").next()?;
        Some(marks.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(shown(vec![]), None);
    let by_pcp = vec![flow(0, 3, 6, 3), flow(1, 4, 7, 4)];
    let expected = "the DUT is to go by the PCP; the flows have PCP/DSCP 3/6, 4/7";
    assert_eq!(shown(by_pcp).as_deref(), Some(expected));
    let by_dscp = (0..9).map(|id| flow(id, 3, 3, 6)).collect();
    let found = shown(by_dscp).unwrap();
    assert!(
        found.starts_with("the DUT is to go by the DSCP;"),
        "{found}"
    );
    assert!(found.ends_with("6/3, ..."), "{found}");
}

#[test]
fn what_is_the_same_in_several_repetitions_is_said_once() {
    let mut checks: Vec<_> = ["a", "b", "c"]
        .map(|repetition| check("paused", repetition, Verdict::Fail))
        .to_vec();
    checks.extend(["paused", "resume"].map(|name| check(name, "d", Verdict::Inconclusive)));
    checks.push(check("xon", "d", Verdict::Pass));
    for check in &mut checks {
        check.reason = "the same".to_owned();
        check.assertions.clear();
    }
    let summary = text::summary(
        &evidence(),
        &[result("pfc.x", "", checks)],
        Exit::Failed,
        false,
    );
    assert!(
        summary.contains(
            "  fail  paused [a; b; c]:\n      the same\n\
             \x20 inconclusive  paused, resume [d]:\n      the same\n"
        ),
        "{summary}"
    );
}

#[test]
fn a_repetition_that_does_not_apply_takes_one_line() {
    let checks = ["a", "b"].iter().flat_map(|repetition| {
        let verdict = if *repetition == "a" {
            Verdict::Pass
        } else {
            Verdict::NotApplicable
        };
        ["paused", "resume", "xon"].map(|name| CheckResult {
            reason: "no DSCP".to_owned(),
            assertions: vec![],
            ..check(name, repetition, verdict)
        })
    });
    let summary = text::verbose(
        &evidence(),
        &[result("pfc.x", "", checks.collect())],
        Exit::Passed,
        false,
    );
    assert!(
        summary.contains("  not-applicable  all checks [b]:\n      no DSCP\n"),
        "{summary}"
    );
}

#[test]
fn colour_changes_nothing_but_colour() {
    let results = [every_verdict()];
    let plain = text::summary(&evidence(), &results, Exit::Failed, false);
    let coloured = text::summary(&evidence(), &results, Exit::Failed, true);
    assert!(!plain.contains('\x1b') && coloured.contains("\x1b[1;31mfail\x1b[0m"));
    let mut parts = coloured.split('\x1b');
    let first = parts.next().unwrap().to_owned();
    assert_eq!(
        parts.fold(first, |text, part| text + part.split_once('m').unwrap().1),
        plain
    );
}
