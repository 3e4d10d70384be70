//! Exactly these checks fail.

use validator_core::fault::requester::Fault;
use validator_core::plan::rc::RcPlan;
use validator_core::verdict::{Judged, Verdict};

use super::bench::{At, Virtual, case, check, judged, of_document, plan, with};

/// Every fault that is about a check, and the checks that fail for it with the document's own
/// parameters.
const EXPECTED: &[(&str, &[&str])] = &[
    ("one-retry-less", &["requests"]),
    ("one-retry-more", &["requests"]),
    // The request that the positive control would have answered does not come.
    ("no-retry", &["path-alive", "requests"]),
    ("changes-psn", &["same-request"]),
    ("changes-reth", &["single-packet", "same-request"]),
    ("short-timeout", &["interval", "one-completion"]),
    ("long-timeout", &["interval", "one-completion"]),
    ("changes-p-key", &["same-request"]),
    // The tester answers the retry of the positive control where it came from.
    ("changes-source", &["path-alive", "same-request"]),
    ("wrong-version", &["same-request"]),
    ("adaptive", &["interval", "one-completion"]),
    ("sends-twice", &["requests", "interval"]),
    ("bad-icrc", &["same-request"]),
    // A packet that is no READ request cannot be answered.
    ("wrong-opcode", &["path-alive", "single-packet"]),
    ("two-packets", &["single-packet"]),
    ("wrong-r-key", &["single-packet"]),
    ("wrong-length", &["single-packet"]),
    ("keeps-count", &["retry-count"]),
    ("two-completions", &["one-completion"]),
    ("wrong-status", &["status"]),
    ("wrong-status=5", &["status"]),
    ("reports-success", &["status"]),
    ("never-completes", &["one-completion"]),
    ("late-completion", &["one-completion"]),
    ("stays-in-rts", &["qp-error"]),
    ("no-flush", &["flush"]),
    ("ignores-answer", &["path-alive"]),
];

/// Faults after which nothing is to be judged; `surroundings` has them.
const NO_VERDICT: [&str; 3] = ["no-neighbour", "refuses-state", "apm"];

/// Checks that a DUT of that retry count gives no subject.
fn without_subject(retry_count: u8) -> &'static [&'static str] {
    if retry_count == 0 {
        &["interval", "retry-count"]
    } else {
        &[]
    }
}

#[test]
fn a_requester_without_faults_passes_every_check() {
    let mut plans = Vec::new();
    plans.extend((0..=7).map(|retry_count| plan(retry_count, 18, 1024)));
    plans.extend([8, 14, 21].map(|timeout| plan(2, timeout, 1024)));
    plans.extend([256, 512, 2048, 4096].map(|path_mtu| plan(2, 14, path_mtu)));
    plans.extend((0..=7).map(|retry_count| plan(retry_count, 8, 4096)));
    for plan in plans {
        let judged = judged(&Virtual::new(&[]).run(&plan));
        for result in &judged.checks {
            let expected = if without_subject(plan.retry_count).contains(&result.check.as_str()) {
                Verdict::NotApplicable
            } else {
                Verdict::Pass
            };
            assert_eq!(
                result.verdict, expected,
                "{}: {}: {}",
                plan.name, result.check, result.reason
            );
        }
        for step in &judged.steps {
            let expected = match (plan.retry_count, step.step.as_str()) {
                (0, "6.5" | "6.7") => Verdict::NotApplicable,
                _ => Verdict::Pass,
            };
            assert_eq!(step.verdict, expected, "{}: {step:?}", plan.name);
            assert!(!step.found.is_empty(), "{}: {step:?}", plan.name);
        }
    }
}

#[test]
fn each_fault_fails_exactly_its_checks() {
    for (fault, expected) in EXPECTED {
        for plan in [of_document(), plan(3, 14, 256), plan(7, 8, 4096)] {
            let judged = judged(&Virtual::new(&[fault]).run(&plan));
            assert_eq!(
                with(&judged.checks, Verdict::Fail),
                *expected,
                "{fault}, {}: {:#?}",
                plan.name,
                judged.checks
            );
            for result in &judged.checks {
                let on = case()
                    .checks
                    .iter()
                    .find(|check| check.id == result.check)
                    .unwrap()
                    .depends_on;
                let depends = on.iter().any(|on| expected.contains(on));
                match result.verdict {
                    // Checks that depend on a failed check are skipped, and no others.
                    Verdict::Skipped => assert!(depends, "{fault}: {result:?}"),
                    // A check has no subject here where another check says so already.
                    Verdict::NotApplicable => {
                        assert!(result.reason.contains("says so"), "{fault}: {result:?}")
                    }
                    Verdict::Pass => assert!(!depends, "{fault}: {result:?}"),
                    Verdict::Fail => {
                        assert!(result.reason.contains("expected"), "{fault}: {result:?}")
                    }
                    other => panic!("{fault}: {other}: {result:?}"),
                }
            }
        }
    }
}

#[test]
fn a_retry_count_of_one_leaves_no_room_for_a_retry_less() {
    for (fault, retry_count, expected) in [
        ("one-retry-less", 1, &["path-alive", "requests"][..]),
        ("one-retry-more", 0, &["requests"]),
        ("no-retry", 0, &[]),
        ("short-timeout", 0, &["one-completion"]),
        ("late-completion", 0, &["one-completion"]),
        ("bad-icrc", 0, &["same-request"]),
    ] {
        let judged = judged(&Virtual::new(&[fault]).run(&plan(retry_count, 18, 1024)));
        assert_eq!(
            with(&judged.checks, Verdict::Fail),
            expected,
            "{fault}: {:#?}",
            judged.checks
        );
    }
}

#[test]
fn every_fault_of_the_catalogue_is_here() {
    for entry in Fault::CATALOGUE {
        let expected = EXPECTED.iter().find(|(fault, _)| *fault == entry.name);
        match expected {
            Some((_, checks)) => assert!(
                checks.contains(&entry.fails),
                "{} says it fails {}",
                entry.name,
                entry.fails
            ),
            None => assert!(
                NO_VERDICT.contains(&entry.name) && entry.fails.starts_with("none: "),
                "{}",
                entry.name
            ),
        }
    }
}

#[test]
fn the_fault_that_the_table_names_fails_that_check() {
    for check in case().checks {
        // The qualifier cannot fail: a DUT with it is none that the case is about.
        if check.id == "qualifier" {
            assert_eq!(check.fault, "apm");
            continue;
        }
        let named = EXPECTED.iter().find(|(fault, _)| *fault == check.fault);
        assert!(
            named.is_some_and(|(_, checks)| checks.contains(&check.id)),
            "{} by {}",
            check.id,
            check.fault
        );
    }
}

#[test]
fn a_dut_that_never_gives_up_fails_and_the_test_ends() {
    let plan = plan(7, 14, 1024);
    let mut bench = Virtual::new(&["never-completes", "stays-in-rts"]);
    bench.endless = Some(RcPlan::transport_timer(14));
    let evidence = bench.run(&plan);
    let judged = judged(&evidence);
    assert_eq!(
        with(&judged.checks, Verdict::Fail),
        ["requests", "one-completion", "qp-error"],
        "{:#?}",
        judged.checks
    );
    let test = evidence.test.unwrap();
    assert!(test.packets.len() > 30, "{}", test.packets.len());
}

#[test]
fn values_are_told() {
    let judged = judged(&Virtual::new(&[]).run(&of_document()));
    let step = |number: &str| {
        &judged
            .steps
            .iter()
            .find(|step| step.step == number)
            .unwrap()
            .found
    };
    assert_eq!(step("4"), "T_tr = 4.096 us * 2^18 = 1073.742 ms");
    assert_eq!(step("6"), "3 transmissions");
    assert!(
        step("6.1").ends_with("at 0.000 ms, 1073.742 ms, 2147.484 ms"),
        "{}",
        step("6.1")
    );
    assert!(
        step("6.3").contains("opcode 0x0c, R_Key 0x12345, VA 0x999000, length 1024"),
        "{}",
        step("6.3")
    );
    assert!(
        step("6.7").contains("1 left") && step("6.7").ends_with("0 left"),
        "{}",
        step("6.7")
    );
    assert!(step("12").contains("status: 12"), "{}", step("12"));
    assert!(
        step("13").ends_with("given back in state Error"),
        "{}",
        step("13")
    );
    let count = check(&judged, "retry-count");
    assert!(
        count
            .assertions
            .iter()
            .all(|comparison| !comparison.actual.contains("derived")),
        "{count:?}"
    );
}

/// Verdicts of the steps, by their numbers.
fn steps(judged: &Judged, numbers: &[&str]) -> Vec<Verdict> {
    numbers
        .iter()
        .map(|number| {
            judged
                .steps
                .iter()
                .find(|step| step.step == *number)
                .unwrap()
                .verdict
        })
        .collect()
}

#[test]
fn a_step_fails_with_what_it_asks_for() {
    for (fault, failed, passed) in [
        (
            "never-completes",
            &["9", "10", "11", "12"][..],
            &["6.1", "6.2", "6.5", "8"][..],
        ),
        ("late-completion", &["9", "10", "11", "12"], &["6.2", "8"]),
        ("wrong-status", &["9", "10", "12"], &["8", "11"]),
        (
            "one-retry-less",
            &["6.1", "6.2", "6.6", "8"],
            &["6.3", "6.5", "9", "12"],
        ),
        ("keeps-count", &["6.7", "8"], &["6.1", "6.2"]),
        ("changes-psn", &["6.2"], &["6.1", "8"]),
    ] {
        let judged = judged(&Virtual::new(&[fault]).run(&of_document()));
        assert_eq!(
            steps(&judged, failed),
            vec![Verdict::Fail; failed.len()],
            "{fault}: {:#?}",
            judged.steps
        );
        assert_eq!(
            steps(&judged, passed),
            vec![Verdict::Pass; passed.len()],
            "{fault}: {:#?}",
            judged.steps
        );
    }
}

#[test]
fn a_completion_that_comes_early_does_not_pass() {
    let plan = plan(2, 14, 1024);
    let t_tr = RcPlan::transport_timer(14);
    for percent in 40..95 {
        let mut bench = Virtual::new(&[]);
        bench.early = Some((3, t_tr * percent / 100));
        let judged = judged(&bench.run(&plan));
        // The retries came after T_tr each: the last one did not come in late.
        assert_eq!(
            with(&judged.checks, Verdict::Fail),
            ["one-completion"],
            "{percent}: {:#?}",
            judged.checks
        );
    }
    // Nor does it where the agent's word comes late, so that it is heard in time.
    let began = Virtual::new(&[]).now;
    let mut undecided = 0;
    for (percent, at, length) in (60..95).step_by(2).flat_map(|percent| {
        (40..150)
            .step_by(2)
            .flat_map(move |at| [2, 8, 20].map(|length| (percent, at, length)))
    }) {
        let mut bench = Virtual::new(&[]);
        bench.early = Some((3, t_tr * percent / 100));
        bench.stall = Some((At::Answered, began + at * t_tr / 20, length * t_tr / 20));
        let judged = judged(&bench.run(&plan));
        let verdict = check(&judged, "one-completion").verdict;
        assert_ne!(
            verdict,
            Verdict::Pass,
            "{percent}, {at}, {length}: {:#?}",
            judged.checks
        );
        undecided += usize::from(verdict == Verdict::Inconclusive);
    }
    assert!(undecided > 0);
}

#[test]
fn a_retry_that_comes_early_fails_whichever_it_is() {
    for plan in [of_document(), plan(3, 14, 1024)] {
        let good = Virtual::new(&[]).run(&plan);
        let t_tr = RcPlan::transport_timer(plan.timeout);
        for retry in 1..=usize::from(plan.retry_count) {
            for percent in 40..95 {
                let mut evidence = good.clone();
                let packets = &mut evidence.test.as_mut().unwrap().packets;
                // The gaps after it are as they should be.
                for packet in &mut packets[retry..] {
                    packet.time -= t_tr - t_tr * percent / 100;
                }
                let judged = judged(&evidence);
                let interval = check(&judged, "interval");
                let what = format!("retry {retry} after {percent} % of T_tr, {}", plan.name);
                assert_eq!(interval.verdict, Verdict::Fail, "{what}: {interval:?}");
            }
        }
    }
}
