//! Failures that are not the fault of the DUT.

use std::collections::BTreeSet;

use validator_core::cases::{self};
use validator_core::evidence::pfc::Stall;
use validator_core::evidence::rc::RcEvidence;
use validator_core::evidence::whole::{self, Rule};
use validator_core::evidence::{CaseEvidence, Repetition};
use validator_core::plan::rc::RcPlan;
use validator_core::verdict::{CaseResult, Verdict};

use super::bench::{At, Virtual, case, check, judged, of_document, plan, with};

/// The whole case's result.
fn result(evidence: &RcEvidence) -> CaseResult {
    let repetitions = vec![Repetition::Rc(Box::new(evidence.clone()))];
    cases::judge_case(&CaseEvidence::of(case().id, repetitions))
}

/// All but the qualifier are inconclusive for that reason, and no step is said to have failed.
fn all_inconclusive(evidence: &RcEvidence, reason: &str) {
    let judged = judged(evidence);
    for result in judged
        .checks
        .iter()
        .filter(|result| result.check != "qualifier")
    {
        assert_eq!(result.verdict, Verdict::Inconclusive, "{result:?}");
        assert!(result.reason.contains(reason), "{result:?}");
    }
    assert!(
        judged
            .steps
            .iter()
            .all(|step| step.verdict != Verdict::Fail),
        "{:#?}",
        judged.steps
    );
    assert_eq!(result(evidence).verdict, Verdict::Inconclusive);
}

/// Moves all that the test shows after its packet of that index, so much later.
fn hold_up(evidence: &mut RcEvidence, index: usize, by: u64) {
    let test = evidence.test.as_mut().unwrap();
    let from = test.packets[index].time;
    for packet in &mut test.packets[index..] {
        packet.time += by;
    }
    for shown in &mut test.shown {
        if shown.asked >= from {
            shown.asked += by;
            shown.answered += by;
        }
    }
    for completion in &mut test.completions {
        completion.since += by;
        completion.time += by;
    }
    test.until += by;
}

#[test]
fn what_is_late_because_the_simulated_dut_stood_still_is_inconclusive() {
    let t_tr = RcPlan::transport_timer(14);
    let good = Virtual::new(&[]).run(&plan(2, 14, 1024));
    // A retry.
    let mut evidence = good.clone();
    let before = evidence.test.as_ref().unwrap().packets[1].time;
    hold_up(&mut evidence, 2, 5 * t_tr);
    let of = |evidence: &RcEvidence, stalls: &[(u64, u64)], id: &str| {
        let mut evidence = evidence.clone();
        evidence.stalls = stalls
            .iter()
            .map(|&(from, to)| Stall { from, to })
            .collect();
        check(&judged(&evidence), id).verdict
    };
    assert_eq!(of(&evidence, &[], "interval"), Verdict::Fail);
    let due = before + t_tr;
    assert_eq!(
        of(&evidence, &[(due, due + 5 * t_tr)], "interval"),
        Verdict::Inconclusive
    );
    // Too short, and at another time.
    assert_eq!(
        of(&evidence, &[(due, due + t_tr)], "interval"),
        Verdict::Fail
    );
    assert_eq!(
        of(&evidence, &[(before - 9 * t_tr, before)], "interval"),
        Verdict::Fail
    );
    // The completion.
    let mut evidence = good.clone();
    let test = evidence.test.as_mut().unwrap();
    let last = test.packets[2].time;
    for completion in &mut test.completions {
        completion.since += 5 * t_tr;
        completion.time += 5 * t_tr;
    }
    test.until += 5 * t_tr;
    assert_eq!(of(&evidence, &[], "one-completion"), Verdict::Fail);
    let stall = [(last + t_tr, last + 6 * t_tr)];
    assert_eq!(
        of(&evidence, &stall, "one-completion"),
        Verdict::Inconclusive
    );
    // A retry that did not come, and no completion.
    let mut evidence = good;
    let test = evidence.test.as_mut().unwrap();
    test.packets.truncate(2);
    test.completions.clear();
    let until = test.packets[1].time + 9 * t_tr;
    test.until = until;
    let stall = [(test.packets[1].time + t_tr, until)];
    for id in ["requests", "one-completion"] {
        assert_eq!(of(&evidence, &[], id), Verdict::Fail);
        assert_eq!(of(&evidence, &stall, id), Verdict::Inconclusive);
    }
}

#[test]
fn a_dut_that_migrates_paths_is_not_applicable() {
    for (fault, apm) in [(&["apm"][..], None), (&[], Some(true))] {
        let mut bench = Virtual::new(fault);
        bench.apm = apm;
        let evidence = bench.run(&of_document());
        assert_eq!(bench.opened, 0);
        let judged = judged(&evidence);
        assert_eq!(
            with(&judged.checks, Verdict::NotApplicable).len(),
            judged.checks.len()
        );
        assert_eq!(result(&evidence).verdict, Verdict::NotApplicable);
    }
}

#[test]
fn the_testbed_has_the_last_word_on_path_migration() {
    let mut bench = Virtual::new(&["apm"]);
    bench.apm = Some(false);
    let result = result(&bench.run(&of_document()));
    assert_eq!(result.verdict, Verdict::Pass, "{result:#?}");
    assert_eq!(
        result
            .assertions
            .iter()
            .map(|assertion| assertion.outcome())
            .collect::<Vec<_>>(),
        ["pass", "pass"]
    );
}

#[test]
fn where_nobody_says_anything_of_path_migration_it_is_asked_for() {
    let mut bench = Virtual::new(&[]);
    bench.no_flag = true;
    let evidence = bench.run(&of_document());
    all_inconclusive(&evidence, "write `apm = false`");
    assert_eq!(
        check(&judged(&evidence), "qualifier").verdict,
        Verdict::Inconclusive
    );
}

#[test]
fn a_neighbour_that_does_not_resolve_is_inconclusive() {
    let evidence = Virtual::new(&["no-neighbour"]).run(&of_document());
    all_inconclusive(&evidence, "no MAC address for 192.0.2.1");
}

#[test]
fn a_dead_path_is_inconclusive() {
    let mut bench = Virtual::new(&[]);
    bench.receives_nothing = true;
    let evidence = bench.run(&of_document());
    all_inconclusive(
        &evidence,
        "no packet of the positive control came in at veth0 (driver)",
    );
    // The test could show no more.
    assert_eq!(bench.opened, 1);
}

#[test]
fn success_without_a_packet_fails_the_control_alone() {
    let mut bench = Virtual::new(&["reports-success"]);
    bench.receives_nothing = true;
    let judged = judged(&bench.run(&of_document()));
    assert_eq!(with(&judged.checks, Verdict::Fail), ["path-alive"]);
    assert_eq!(with(&judged.checks, Verdict::Pass), ["qualifier"]);
}

#[test]
fn an_agent_that_cannot_bring_a_queue_pair_up_is_an_error() {
    let error = Virtual::new(&["refuses-state"])
        .try_run(&of_document())
        .unwrap_err();
    let words = validator::error_text::in_words(&error);
    assert!(
        words.contains("the DUT's side failed: cannot bring the queue pair to RTR"),
        "{words}"
    );
}

#[test]
fn a_connection_that_breaks_is_an_error_and_the_queue_pair_is_given_back() {
    for polls in [0, 3, 40] {
        let mut bench = Virtual::new(&[]);
        bench.breaks_after = Some(polls);
        let error = bench.try_run(&of_document()).unwrap_err();
        assert!(error.to_string().contains("connection reset"), "{error}");
    }
}

#[test]
fn packets_without_a_record_are_inconclusive() {
    for lost in 1..=3 {
        let mut bench = Virtual::new(&[]);
        bench.unrecorded = vec![lost];
        let judged = judged(&bench.run(&of_document()));
        assert_eq!(
            with(&judged.checks, Verdict::Fail),
            [] as [&str; 0],
            "{:#?}",
            judged.checks
        );
        let of_packets = [
            "requests",
            "single-packet",
            "same-request",
            "interval",
            "retry-count",
            "one-completion",
        ];
        assert_eq!(with(&judged.checks, Verdict::Inconclusive), of_packets);
        assert!(
            check(&judged, "requests")
                .reason
                .contains("1 packets came of which there is no record")
        );
        assert_eq!(
            with(&judged.checks, Verdict::Pass),
            ["qualifier", "path-alive", "status", "qp-error", "flush"]
        );
    }
}

#[test]
fn drops_on_the_testers_side_are_inconclusive() {
    let mut bench = Virtual::new(&["one-retry-less"]);
    bench.drops = vec![("rx_missed_errors".into(), 1)];
    let judged = judged(&bench.run(&of_document()));
    assert_eq!(with(&judged.checks, Verdict::Fail), [] as [&str; 0]);
    assert!(
        check(&judged, "requests")
            .reason
            .contains("rx_missed_errors rose by 1"),
        "{judged:#?}"
    );
}

#[test]
fn an_interruption_is_told_and_the_queue_pair_given_back() {
    let mut whole = Virtual::new(&[]);
    let began = whole.now;
    whole.run(&of_document());
    let length = whole.now - began;
    for part in 0..10 {
        let mut bench = Virtual::new(&[]);
        bench.stop_at = Some(began + length * part / 10);
        let evidence = bench.run(&of_document());
        assert!(evidence.interrupted);
        all_inconclusive(&evidence, "interrupted");
    }
}

#[test]
fn a_dut_that_hides_its_counter_has_it_derived() {
    let mut bench = Virtual::new(&["keeps-count"]);
    bench.hides_counter = true;
    let judged = judged(&bench.run(&of_document()));
    assert_eq!(check(&judged, "retry-count").verdict, Verdict::Pass);
    assert!(
        check(&judged, "retry-count")
            .assertions
            .iter()
            .all(|comparison| comparison.actual.contains("derived"))
    );
}

#[test]
fn a_tester_that_stood_still_does_not_blame_the_dut() {
    let plan = plan(2, 14, 1024);
    let t_tr = RcPlan::transport_timer(14);
    let began = Virtual::new(&[]).now;
    let mut undecided = BTreeSet::new();
    let stalls = (0..220)
        .step_by(3)
        .flat_map(|at| [1, 10, 25, 50, 120, 200, 600].map(|length| (at, length)));
    for (stands, (at, length)) in stalls.flat_map(|stall| At::ALL.map(|stands| (stands, stall))) {
        let mut bench = Virtual::new(&[]);
        // Longer than one question, so that an answer without it can be late.
        bench.completion_takes = 3_000_000;
        bench.stall = Some((stands, began + at * t_tr / 20, length * t_tr / 20));
        let judged = judged(&bench.run(&plan));
        assert_eq!(
            with(&judged.checks, Verdict::Fail),
            [] as [&str; 0],
            "{stands:?}, {at}, {length}: {:#?}",
            judged.checks
        );
        let inconclusive = with(&judged.checks, Verdict::Inconclusive);
        let short = length == 1 && stands != At::Answered;
        assert!(
            !short || inconclusive.is_empty(),
            "{stands:?}, {at}: {:#?}",
            judged.checks
        );
        undecided.extend(inconclusive.into_iter().map(str::to_owned));
    }
    // Checks that rest on the tester's own times, and no others.
    assert_eq!(
        undecided,
        BTreeSet::from(["path-alive", "retry-count", "one-completion"].map(str::to_owned))
    );
}

#[test]
fn attributes_that_were_not_taken_are_inconclusive() {
    for (shows, reason) in [
        (
            (|shown| shown.retry_count = 1) as fn(&mut validator::agent::protocol::QueuePair),
            "retry count 2 was asked for, and 1 is shown",
        ),
        (
            |shown| shown.path_mtu = 512,
            "path MTU 1024 was asked for, and 512 is shown",
        ),
        (
            |shown| shown.timeout = 0,
            "time-out 18 was asked for, and 0 is shown",
        ),
        (
            |shown| shown.timeout = 17,
            "time-out 18 was asked for, and 17 is shown",
        ),
    ] {
        let mut bench = Virtual::new(&[]);
        bench.shows = Some(shows);
        let evidence = bench.run(&of_document());
        all_inconclusive(&evidence, reason);
    }
}

#[test]
fn an_answer_that_is_not_right_blames_nobody() {
    let mut bench = Virtual::new(&[]);
    bench.mute = true;
    let mut evidence = bench.run(&of_document());
    assert_eq!(
        with(&judged(&evidence).checks, Verdict::Fail),
        ["path-alive"]
    );
    let answer = &mut evidence.control.as_mut().unwrap().answers[0].octets;
    let at = answer.len() - 1;
    answer.replace_range(at.., if answer.ends_with('0') { "1" } else { "0" });
    let judged = judged(&evidence);
    assert_eq!(check(&judged, "path-alive").verdict, Verdict::Inconclusive);
    assert!(
        check(&judged, "path-alive")
            .reason
            .contains("the ICRC is wrong")
    );
}

#[test]
fn a_queue_pair_in_error_that_takes_no_read_fails_the_flush() {
    let mut bench = Virtual::new(&[]);
    bench.refuses_flush = true;
    let judged = judged(&bench.run(&of_document()));
    assert_eq!(with(&judged.checks, Verdict::Fail), ["flush"]);
    assert!(
        check(&judged, "flush")
            .reason
            .contains("ibv_post_send: invalid argument")
    );
}

#[test]
fn evidence_that_contradicts_itself_is_an_error() {
    let good = Virtual::new(&[]).run(&of_document());
    let packets = |evidence: &mut RcEvidence| evidence.test.as_mut().unwrap().packets.clone();
    let changes: [fn(&mut RcEvidence); 4] = [
        |evidence| evidence.plan.retry_count = 8,
        |evidence| evidence.test.as_mut().unwrap().queue_pair ^= 1,
        |evidence| evidence.test.as_mut().unwrap().packets.reverse(),
        |evidence| evidence.test.as_mut().unwrap().packets[0].octets.push('x'),
    ];
    for change in changes {
        let mut evidence = good.clone();
        assert_eq!(packets(&mut evidence).len(), 3);
        change(&mut evidence);
        assert_eq!(result(&evidence).verdict, Verdict::Error);
    }
}

#[test]
fn evidence_without_a_phase_that_was_due_is_refused() {
    let good = Virtual::new(&[]).run(&of_document());
    let refused = |evidence: &RcEvidence| {
        let repetitions = vec![Repetition::Rc(Box::new(evidence.clone()))];
        let case = CaseEvidence::of(case().id, repetitions);
        whole::check_case(&case, "case").map_err(|defect| (defect.rule, defect.part))
    };
    assert_eq!(refused(&good), Ok(()));
    type Remove = fn(&mut RcEvidence);
    let without: [(&str, Remove); 3] = [
        ("control", |evidence| evidence.control = None),
        ("test", |evidence| evidence.test = None),
        ("flush", |evidence| evidence.flush = None),
    ];
    for (name, remove) in without {
        let mut evidence = good.clone();
        remove(&mut evidence);
        let (rule, part) = refused(&evidence).unwrap_err();
        assert_eq!(rule, Rule::Phases);
        assert!(part.ends_with(name), "{part}");
        // An interruption keeps it from taking place.
        evidence.interrupted = true;
        assert_eq!(refused(&evidence), Ok(()), "{name}");
    }
    // A DUT to which the document does not apply, and one that cannot be reached.
    for bench in [Virtual::new(&["apm"]), Virtual::new(&["no-neighbour"])] {
        let mut bench = bench;
        assert_eq!(refused(&bench.run(&of_document())), Ok(()));
    }
    let mut bench = Virtual::new(&[]);
    bench.receives_nothing = true;
    assert_eq!(refused(&bench.run(&of_document())), Ok(()));
}

#[test]
fn a_packet_that_comes_in_late_does_not_blame_the_dut() {
    let t_tr = RcPlan::transport_timer(18);
    for (number, undecided) in [(1, "interval"), (2, "interval"), (3, "one-completion")] {
        for percent in (5..90).step_by(5) {
            let mut bench = Virtual::new(&[]);
            bench.late = Some((number, t_tr * percent / 100));
            let judged = judged(&bench.run(&of_document()));
            assert_eq!(
                with(&judged.checks, Verdict::Fail),
                [] as [&str; 0],
                "{number}, {percent}: {:#?}",
                judged.checks
            );
            if percent > 5 {
                assert_eq!(
                    check(&judged, undecided).verdict,
                    Verdict::Inconclusive,
                    "{number}, {percent}: {:#?}",
                    judged.checks
                );
            }
        }
    }
    // One that comes in late does not excuse a timer that is too short each time.
    let mut bench = Virtual::new(&["short-timeout"]);
    bench.late = Some((2, t_tr / 5));
    assert_eq!(
        with(&judged(&bench.run(&of_document())).checks, Verdict::Fail),
        ["interval", "one-completion"]
    );
}

#[test]
fn records_that_come_late_do_not_contradict() {
    for late in 1..=2 {
        let mut bench = Virtual::new(&[]);
        bench.hides_counter = true;
        bench.record_late = Some(late);
        let evidence = bench.run(&of_document());
        assert!(
            evidence
                .test
                .as_ref()
                .unwrap()
                .packets
                .is_sorted_by_key(|packet| packet.time)
        );
        assert_eq!(
            result(&evidence).verdict,
            Verdict::Pass,
            "{late}: {:#?}",
            result(&evidence)
        );
    }
    let mut bench = Virtual::new(&[]);
    bench.record_of_control = true;
    let evidence = bench.run(&of_document());
    assert_eq!(
        evidence
            .test
            .as_ref()
            .map(|test| (test.packets.len(), test.foreign)),
        Some((3, 1))
    );
    assert_eq!(
        result(&evidence).verdict,
        Verdict::Pass,
        "{:#?}",
        result(&evidence)
    );
    assert!(
        judged(&evidence)
            .figures
            .iter()
            .any(|figure| figure.name == "packets for another queue pair in the test")
    );
}

#[test]
fn an_answer_without_completions_that_comes_after_the_end_is_not_the_last() {
    let plan = plan(2, 14, 1024);
    let t_tr = RcPlan::transport_timer(14);
    let run = |stall| {
        let mut bench = Virtual::new(&[]);
        (bench.completion_takes, bench.stall) = (3_000_000, stall);
        bench.run(&plan)
    };
    let good = run(None);
    let (answered, flushed) = (
        good.control.unwrap().answers[0].time,
        good.flush.unwrap().posted,
    );
    for from in [answered, flushed] {
        let judged = judged(&run(Some((At::Answered, from + 1, 60 * t_tr))));
        assert_eq!(
            with(&judged.checks, Verdict::Fail),
            [] as [&str; 0],
            "{:#?}",
            judged.checks
        );
    }
}

#[test]
fn a_repetition_takes_as_long_as_it_says() {
    for plan in [of_document(), plan(0, 14, 1024), plan(7, 16, 4096)] {
        let mut bench = Virtual::new(&[]);
        let begin = bench.now;
        bench.run(&plan);
        let (planned, took) = (plan.shortest(), bench.now - begin);
        // Beside the waits there are the exchanges with the agent.
        assert!(
            (planned..planned + planned / 10).contains(&took),
            "{}: says {planned} ns, took {took} ns",
            plan.name
        );
    }
}
