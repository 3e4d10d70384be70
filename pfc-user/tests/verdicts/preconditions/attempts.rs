//! Repetitions that were measured more than once: a failure of any attempt stays one, and a pass
//! needs an attempt whose preconditions held.

use super::*;
use validator_core::cases;
use validator_core::evidence::{CaseEvidence, Repetition};
use validator_core::verdict::CaseResult;

/// Good evidence of a case, and the same after each of these.
fn attempts(case: &str, tampers: &[Tamper]) -> CaseEvidence {
    let numbered = (1..).zip(tampers).map(|(attempt, tamper)| {
        let mut evidence = good(case);
        tamper(&mut evidence);
        evidence.attempt = attempt;
        Repetition::Pfc(Box::new(evidence))
    });
    CaseEvidence::of(case, numbered.collect())
}

const UNDISTURBED: Tamper = |_| {};
const LARGE_BURST: Tamper = |e| e.sender.max_burst = e.limits.max_burst + 1;
const LOST: Tamper = |e| lose(e, Role::Test, Phase::Resume, 1);
const LOST_IN_STORM: Tamper = |e| lose(e, Role::Test, Phase::Storm, 1);
const DISTURBED_AND_LOST: Tamper = |e| {
    LARGE_BURST(e);
    LOST(e);
};

/// The checks that did not pass, with their verdicts.
fn shortfalls(result: &CaseResult) -> Vec<(&str, Verdict)> {
    let open = result
        .checks
        .iter()
        .filter(|check| check.verdict != Verdict::Pass && check.verdict != Verdict::NotApplicable);
    open.map(|check| (check.check.as_str(), check.verdict))
        .collect()
}

#[test]
fn a_check_passes_by_an_attempt_whose_preconditions_held() {
    let found = cases::judge_case(&attempts(SINGLE, &[LARGE_BURST, UNDISTURBED]));
    assert_eq!(shortfalls(&found), []);
    assert_eq!(found.checks.len(), good_checks(SINGLE), "each check once");
    // Every attempt is shown, and the figures are those of the last.
    let shown: Vec<(u32, &str)> = found
        .attempts
        .iter()
        .map(|attempt| (attempt.attempt, attempt.repetition.as_str()))
        .collect();
    assert_eq!(shown, [(1, "lossless 3"), (2, "lossless 3")]);
    let first = &found.attempts[0].checks;
    assert!(first.iter().any(|check| check.verdict == INCONCLUSIVE));
    let of = |repetition| {
        found
            .figures
            .iter()
            .any(|figure| figure.repetition == repetition)
    };
    assert!(of("lossless 3") && of("lossless 3, attempt 1") && !of("lossless 3, attempt 2"));
    // One attempt is not told as such.
    assert_eq!(
        cases::judge_case(&attempts(SINGLE, &[UNDISTURBED])).attempts,
        []
    );
}

fn good_checks(case: &str) -> usize {
    bench::case(case).case.checks.len()
}

#[test]
fn a_failure_in_any_attempt_is_one_whatever_the_others_found() {
    let open = ["paused", "background", "no-dip"].map(|check| (check, INCONCLUSIVE));
    let failed = [("resume", FAIL), ("response", SKIPPED), ("xon", SKIPPED)];
    for (what, tampers, expected) in [
        ("first", &[DISTURBED_AND_LOST, UNDISTURBED][..], &failed[..]),
        ("last", &[LARGE_BURST, LOST], &failed),
        (
            "between",
            &[LARGE_BURST, DISTURBED_AND_LOST, UNDISTURBED],
            &failed,
        ),
        (
            "all disturbed",
            &[DISTURBED_AND_LOST, LARGE_BURST],
            &[&open[..], &failed].concat(),
        ),
    ] {
        let found = cases::judge_case(&attempts(SINGLE, tampers));
        assert_eq!(shortfalls(&found), expected, "{what}");
        let resume = found.checks.iter().find(|check| check.check == "resume");
        let reason = &resume.unwrap().reason;
        assert!(
            reason.starts_with("attempt ") && reason.contains(" of "),
            "{what}: {reason}"
        );
    }
    // Checks that depend on it are skipped, though they passed in the attempt in which it passed.
    let found = cases::judge_case(&attempts(SINGLE, &[LOST_IN_STORM, UNDISTURBED]));
    let mut expected = vec![("delivered", FAIL)];
    expected.extend(["resume", "response", "xon"].map(|check| (check, SKIPPED)));
    assert_eq!(shortfalls(&found), expected);
}

#[test]
fn what_no_attempt_decided_is_inconclusive() {
    let found = cases::judge_case(&attempts(SINGLE, &[LARGE_BURST; 3]));
    let open = ["paused", "background", "no-dip", "resume"].map(|check| (check, INCONCLUSIVE));
    assert_eq!(shortfalls(&found), open);
    assert!(found.checks[0].reason.starts_with("attempt 3 of 3: rate: "));
}

#[test]
fn attempts_count_by_their_number_and_not_by_their_place() {
    let mut evidence = attempts(SINGLE, &[LARGE_BURST, LOST, UNDISTURBED]);
    let found = cases::judge_case(&evidence);
    for _ in 0..3 {
        evidence.repetitions.rotate_left(1);
        assert_eq!(cases::judge_case(&evidence), found);
    }
}

#[test]
fn only_a_disturbance_of_the_tester_is_a_reason_to_measure_again() {
    for (case, tamper, words) in [
        (
            SINGLE,
            LARGE_BURST,
            "paused: rate: the sender's largest burst",
        ),
        (
            SINGLE,
            |e| lost_by_tester(e, 2),
            "paused: accounting: drops",
        ),
        (
            MULTI,
            |e| {
                with_gap(e);
            },
            "paused: storm-continuity: ",
        ),
        // A stall that explains what came late.
        (
            LOSSY,
            |e| {
                let from = e.span(Phase::Storm).unwrap().from;
                let stall = |at: Nanos| Stall {
                    from: from + at * MS,
                    to: from + (at + 5) * MS,
                };
                e.sender.stalls.extend([90, 180, 270].map(stall));
            },
            "no-dip: share of phase Storm",
        ),
        // The same probe in an attempt that stalls less is long enough.
        (
            SINGLE,
            |e| {
                for probe in &mut e.probes {
                    probe.left[0].after += PAUSE;
                }
            },
            "response: kinds of probes measured well enough: expected 4, found 0: pause frames of the \
             probe left so late",
        ),
    ] as [(&str, Tamper, &str); 5]
    {
        let reason = cases::again(&attempts(case, &[tamper])).expect(words);
        assert!(reason.starts_with(words), "{reason:?}, not {words:?}");
        assert_eq!(
            cases::again(&attempts(case, &[tamper, UNDISTURBED])),
            None,
            "{words}"
        );
        assert!(
            cases::again(&attempts(case, &[UNDISTURBED, tamper])).is_none(),
            "{words}"
        );
    }
    for (what, case, tamper) in [
        ("nothing", SINGLE, UNDISTURBED),
        ("a failure", SINGLE, LOST),
        ("a watchdog that nobody declared", SINGLE, |e| {
            e.watchdog = None
        }),
        ("a storm that was not shown to arrive", LOSSY, |e| {
            e.probes.clear()
        }),
        ("PFC that was not shown to be visible", GLOBAL, blind),
        ("a run that was interrupted", SINGLE, |e| {
            LARGE_BURST(e);
            e.interrupted = true;
        }),
        ("evidence that contradicts itself", SINGLE, |e| {
            e.phases[0].to = 0
        }),
        // No probe is measured better where max_response takes all of the longest pause.
        ("pauses that are too short to be seen", SINGLE, |e| {
            let longest = e.limits.pause_time(pfc_ebpf::units::Quanta(0xffff));
            let first = e.span(Phase::Storm).unwrap().from - longest;
            e.storm.as_mut().unwrap().first = at(first, first);
            e.limits.max_response = longest;
        }),
    ] as [(&str, &str, Tamper); 8]
    {
        assert_eq!(cases::again(&attempts(case, &[tamper])), None, "{what}");
    }
}
