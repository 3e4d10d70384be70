//! A switch that shares no code with the simulated one: good ones pass, and each mistake is found.

mod switch;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use validator_core::cases::pfc::CASES;
use validator_core::plan::RepetitionPlan;
use validator_core::verdict::{CheckResult, Verdict};

use self::switch::{Bug, Foreign, Order};
use crate::bench;
use crate::verdicts::faults::Repetition;

const MS: u64 = 1_000_000;

/// Shorter than in plans, which have 300 ms and 1 s, and enough for a switch that forgets pauses.
const BASELINE: u64 = 250 * MS;
const RESUME: u64 = 250 * MS;

const REPETITIONS: [Repetition; 22] = [
    ("pfc.pause-single-lossless", &[3], None),
    ("pfc.pause-multi-lossless", &[3, 4], None),
    ("pfc.pause-multi-lossless", &[3, 4], Some(&[3])),
    ("pfc.pause-lossy", &[3], None),
    ("pfc.global-pause", &[3, 4], None),
    ("pfc.pause-single-lossless", &[4], None),
    ("pfc.pause-multi-lossless", &[2, 3, 4], Some(&[3, 4])),
    ("pfc.enable-vector", &[3, 4], Some(&[])),
    ("pfc.enable-vector", &[3, 4], Some(&[4])),
    ("pfc.class-map", &[3, 4], Some(&[3])),
    ("pfc.class-map", &[3, 4], Some(&[5])),
    ("pfc.sizes", &[3, 4], None),
    ("pfc.sizes", &[3, 4], Some(&[0, 1, 2, 5, 6, 7])),
    ("pfc.zero-time", &[3, 4], None),
    ("pfc.independent-times", &[3, 4], None),
    ("pfc.timer-reload", &[3, 4], None),
    ("pfc.pause-time", &[3, 4], None),
    ("pfc.response-time", &[3, 4], None),
    ("pfc.invalid-frames", &[3, 4], None),
    ("pfc.source-address", &[3, 4], None),
    ("pfc.generation", &[3, 4], None),
    ("pfc.no-congestion", &[3, 4], None),
];

/// Repetitions of a switch whose lossless priorities are 3 and 4 and cannot be changed.
const FIXED: [Repetition; 12] = [
    ("pfc.pause-single-lossless", &[3, 4], Some(&[3])),
    ("pfc.pause-single-lossless", &[3, 4], Some(&[4])),
    ("pfc.pause-multi-lossless", &[3, 4], None),
    ("pfc.pause-multi-lossless", &[3, 4], Some(&[3])),
    ("pfc.pause-lossy", &[3, 4], None),
    ("pfc.global-pause", &[3, 4], None),
    ("pfc.zero-time", &[3, 4], None),
    ("pfc.independent-times", &[3, 4], None),
    ("pfc.timer-reload", &[3, 4], None),
    ("pfc.pause-time", &[3, 4], None),
    ("pfc.invalid-frames", &[3, 4], None),
    ("pfc.source-address", &[3, 4], None),
];

/// Switches that do nothing wrong: XON is optional, and 0.5 ms are within `max_response`, as is one
/// frame more after an XOFF.
const GOOD: [Bug; 5] = [
    Bug::None,
    Bug::NoXon,
    Bug::AnswersLate(MS / 2),
    Bug::LeakAtStart(1),
    Bug::SmallXoffQuanta,
];

fn bugs() -> Vec<Bug> {
    use Bug::*;
    vec![
        // Times.
        TimeSwapped,
        TimeOfClass0,
        TimeOfNext,
        TimeReversed,
        TimeCap(0xff),
        TimeCap(0x3fff),
        TimeCap(0x7fff),
        TimeSigned,
        TimeScale(1, 10),
        TimeScale(10, 1),
        TimeScale(105, 100),
        TimeScale(95, 100),
        TimeScale(2, 1),
        TimeScale(500, 512),
        FixedTime(10 * MS),
        FixedTime(33 * MS),
        FixedTime(100 * MS),
        Maximum,
        Minimum,
        Adds,
        Granularity(MS, false),
        Granularity(10 * MS, false),
        Granularity(4 * MS, true),
        Granularity(10 * MS, true),
        SameTimeIgnored,
        OneTimer,
        TimeFromLastEnabled,
        // The class-enable vector.
        NoVector,
        VectorZeroIsAll,
        VectorHigh,
        VectorReversed,
        LowestOnly,
        HighestOnly,
        IgnoredIfLossyNamed,
        LossyToo,
        AllIfSeveral,
        LossyTooIfSeveral,
        LossyNamedForLossless,
        LossyClassToo(0),
        LossyClassToo(7),
        // The form of a frame.
        AnyDestination,
        FiveOctetsOfDestination,
        HighOctetOfOpcode,
        ObeysFirstOdd,
        OddStopsAll(3 * MS),
        OddDropsNext,
        RefusesTail,
        RefusesVector,
        DeafAfterOdd(300 * MS),
        // XON.
        XonIgnored,
        XonLets(1),
        XonLets(10),
        XonLets(100),
        XonEndsAll,
        XonLate(2 * MS),
        XonLate(5 * MS),
        XonOnlyIfAll,
        XonSlow,
        ZeroIsLongest,
        XonPausesIdle,
        // The end of a pause.
        NeverEnds,
        EndsThenOne,
        EndOfOneEndsAll,
        SlowAfter,
        DeadAfterLong(300 * MS),
        SlowAfterLong(10),
        EndsOnlyOnQuietLink,
        // Load, and the order of frames.
        LateAtFullLink(5 * MS),
        LateIfQueued(5 * MS),
        FirstIgnored,
        FirstAfterQuietIgnored,
        EveryNthIgnored(2),
        EveryNthIgnored(10),
        SecondOfBurstIgnored,
        LeakAtStart(20),
        LeakEvery(10 * MS),
        LeakEvery(100 * MS),
        // Traffic that is not paused.
        LossyStopsAtEnd(5 * MS),
        LossyStopsAtEnd(30 * MS),
        LossyStopsFirst(5 * MS),
        LossyStopsFirst(30 * MS),
        LossyThrottled,
        LossyDelayed(2 * MS),
        LossyDelayed(5 * MS),
        LossyDropsInStorm(1000),
        LossyDropsOneAtXoff,
        HighestLossyStops(10 * MS),
        HighestLossyStops(30 * MS),
        LowestLossyStarves,
        IsolationSlow,
        IsolationLate(5 * MS),
        IsolationStopsAtEnd(5 * MS),
        IsolationStopsAtEnd(20 * MS),
        // Classification.
        OnlyDscpEqual,
        HighDscpTo0,
        DscpShifted,
        // Frames.
        SwapsWords,
        Grows,
        Shrinks,
        ZeroTail,
        CopyAfter(MS),
        CopyAfter(300 * MS),
        CopyAfter(1000 * MS),
        FlipsWithChecksum,
        ReordersFar,
        SwapsNeighboursAfterPause,
        LosesFirstAfterPause,
        LosesLastOfQueue,
        DropsOld(200 * MS),
        // PFC that the switch sends.
        XoffForLossy,
        PauseUpstream,
        XoffWrongClass,
        XoffAllLossless,
        XoffNever,
        XoffOnceOnly,
        Forwards,
        ObeysPause,
        ObeysPauseAtStart,
    ]
}

/// Mistakes that no check finds.
fn not_found() -> Vec<Bug> {
    use Bug::*;
    vec![
        // It obeys PAUSE for 40 ms where it has not seen PFC. The test plan has no PAUSE but the
        // storm's, and case 4 shows first, by PFC, that the storm arrives. Without that probe the
        // 40 ms would be over before the data, which the plans begin 300 ms or more after the
        // storm. The report's figure is of the data alone: a stop of 1.6 ms in any 100 ms
        // (`no-dip`).
        ObeysPauseAtStart,
    ]
}

/// Mistakes that only the cases of the plan `pfc-further` find.
const FURTHER: [Bug; 10] = [
    // The test plan has frames of one form alone.
    Bug::AnyDestination,
    Bug::FiveOctetsOfDestination,
    Bug::HighOctetOfOpcode,
    Bug::ObeysFirstOdd,
    Bug::OddStopsAll(3 * MS),
    Bug::OddDropsNext,
    Bug::RefusesTail,
    Bug::RefusesVector,
    Bug::DeafAfterOdd(300 * MS),
    // It takes an XON where nothing is paused for the longest pause. In the test plan each XON ends
    // a pause.
    Bug::XonPausesIdle,
];

/// Mistakes that may show otherwise, or not at all, where the highest priority goes first.
const IN_ORDER: [Bug; 16] = {
    use Bug::*;
    [
        OneTimer,
        LossyClassToo(0),
        LossyClassToo(7),
        XonEndsAll,
        XonSlow,
        EndsThenOne,
        EndOfOneEndsAll,
        SlowAfter,
        SlowAfterLong(10),
        EndsOnlyOnQuietLink,
        LateAtFullLink(5 * MS),
        LateIfQueued(5 * MS),
        LossyStopsAtEnd(5 * MS),
        LowestLossyStarves,
        IsolationSlow,
        SwapsNeighboursAfterPause,
    ]
};

/// True for a case of the test plan.
fn in_test_plan((id, ..): &Repetition) -> bool {
    bench::case(id).case.document == CASES[0].case.document
}

/// Results of a repetition, in its turn among the others.
fn results(
    (turn, (id, lossless, storm)): (usize, Repetition),
    order: Order,
    bug: Bug,
) -> Vec<CheckResult> {
    let mut plan = bench::plan_in_turn(id, lossless, storm, turn);
    plan.durations.baseline = BASELINE;
    if plan.durations.resume > 0 {
        plan.durations.resume = RESUME;
    }
    judged(id, &plan, lossless, order, bug)
}

/// Results of a plan of a case on a switch with these lossless priorities.
fn judged(
    id: &str,
    plan: &RepetitionPlan,
    lossless: &[u8],
    order: Order,
    bug: Bug,
) -> Vec<CheckResult> {
    let switch = Foreign::new(1_000_000_000, lossless, order, bug);
    let evidence = bench::run_foreign(plan, Box::new(switch));
    bench::case(id).judge(&evidence).checks
}

/// Results of each job, from both CPUs.
fn in_parallel<J: Sync, R: Send>(jobs: &[J], run: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = run(job);
                    done.lock().unwrap().push(result);
                }
            });
        }
    });
    done.into_inner().unwrap()
}

fn describe(repetition: Repetition, result: &CheckResult) -> String {
    let (id, lossless, _) = repetition;
    let found = result.assertions.iter();
    let found = found.filter(|made| made.verdict != Verdict::Pass);
    let found: Vec<_> = found
        .map(|made| {
            format!(
                "{}: expected {}, found {}",
                made.what, made.expected, made.actual
            )
        })
        .collect();
    format!(
        "{id} {lossless:?} {} {:?} {} {}",
        result.check,
        result.verdict,
        result.reason,
        found.join("; ")
    )
}

fn passes(repetitions: &[Repetition], orders: &[Order]) {
    let jobs: Vec<_> = orders
        .iter()
        .flat_map(|order| GOOD.map(|bug| (*order, bug)))
        .collect();
    let wrong = in_parallel(&jobs, |(order, bug)| {
        let mut wrong = Vec::new();
        for (turn, repetition) in repetitions.iter().copied().enumerate() {
            for result in results((turn, repetition), *order, *bug) {
                if !matches!(result.verdict, Verdict::Pass | Verdict::NotApplicable) {
                    wrong.push(format!(
                        "{order:?} {bug:?}: {}",
                        describe(repetition, &result)
                    ));
                }
            }
        }
        wrong
    });
    let wrong = wrong.concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn good_foreign_switches_pass_every_check() {
    passes(&REPETITIONS, &[Order::InTurn, Order::Strict, Order::Fifo]);
}

#[test]
fn good_foreign_switches_with_a_fixed_set_pass_every_check() {
    passes(&FIXED, &[Order::InTurn]);
}

/// Those of `jobs` that fail no check of the repetitions for which `asked` holds.
///
/// `VALIDATOR_FOREIGN=XonLets` looks at these mistakes alone, and prints what each check says.
fn missed(
    mut jobs: Vec<Bug>,
    repetitions: &[Repetition],
    asked: fn(&Repetition) -> bool,
    order: Order,
) -> Vec<String> {
    let only = std::env::var("VALIDATOR_FOREIGN").ok();
    if let Some(only) = &only {
        jobs.retain(|bug| format!("{bug:?}").contains(only.as_str()));
    }
    let passed = in_parallel(&jobs, |bug| {
        let mut failed = false;
        let repetitions = repetitions.iter().copied().enumerate();
        for (turn, repetition) in repetitions.filter(|(_, repetition)| asked(repetition)) {
            let results = results((turn, repetition), order, *bug);
            if only.is_some() {
                let open = |result: &&CheckResult| {
                    !matches!(result.verdict, Verdict::Pass | Verdict::NotApplicable)
                };
                let open = results.iter().filter(open);
                open.for_each(|result| println!("{bug:?}: {}", describe(repetition, result)));
            }
            failed |= results.iter().any(|result| result.verdict == Verdict::Fail);
            if failed && only.is_none() {
                break;
            }
        }
        (!failed).then_some(*bug)
    });
    let mut missed: Vec<_> = passed
        .into_iter()
        .flatten()
        .map(|bug| format!("{bug:?}"))
        .collect();
    missed.sort();
    missed
}

/// Expects that each mistake fails a check of the test plan's cases among these repetitions, but
/// for those that only the further cases find, and those that none does.
fn each_fails(repetitions: &[Repetition]) {
    let only = std::env::var("VALIDATOR_FOREIGN").unwrap_or_default();
    let named = |bugs: &[Bug]| {
        let names = bugs.iter().map(|bug| format!("{bug:?}"));
        let mut names: Vec<_> = names.filter(|name| name.contains(&only)).collect();
        names.sort();
        names
    };
    let known = [not_found(), FURTHER.to_vec()].concat();
    let by_plan = missed(bugs(), repetitions, in_test_plan, Order::InTurn);
    assert_eq!(by_plan, named(&known));
    let by_further = missed(known, repetitions, |one| !in_test_plan(one), Order::InTurn);
    assert_eq!(by_further, named(&not_found()));
}

#[test]
fn each_mistake_of_a_foreign_switch_fails_a_check() {
    each_fails(&REPETITIONS);
}

#[test]
fn each_mistake_of_a_foreign_switch_with_a_fixed_set_fails_a_check() {
    each_fails(&FIXED);
}

#[test]
fn mistakes_of_a_foreign_switch_that_serves_in_strict_order_fail_a_check() {
    let passed = missed(IN_ORDER.to_vec(), &REPETITIONS, in_test_plan, Order::Strict);
    assert_eq!(passed, [""; 0]);
}

/// Checks that do not pass in the repetition of that number.
fn not_passed(bug: Bug, repetition: usize) -> Vec<(String, Verdict)> {
    let results = results((repetition, REPETITIONS[repetition]), Order::InTurn, bug);
    let open = results
        .into_iter()
        .filter(|result| !matches!(result.verdict, Verdict::Pass | Verdict::NotApplicable));
    open.map(|result| (result.check, result.verdict)).collect()
}

#[test]
fn a_drain_after_the_storm_that_is_slower_than_a_quarter_of_the_line_fails() {
    for repetition in [0, 1, 2] {
        for percent in [10, 20] {
            let found = not_passed(Bug::SlowAfterLong(percent), repetition);
            let several = REPETITIONS[repetition].2.is_none() && repetition == 1;
            // Two that drain at a fifth of the line each fill two fifths of it.
            let expected = if several && percent == 20 {
                Vec::new()
            } else {
                vec![("lets-go".to_owned(), Verdict::Fail)]
            };
            assert_eq!(found, expected, "{percent} % in {repetition}");
        }
        for percent in [25, 33] {
            assert_eq!(not_passed(Bug::SlowAfterLong(percent), repetition), []);
        }
    }
}

#[test]
fn a_copy_that_comes_a_second_later_is_a_duplicate_in_each_case() {
    for (turn, (id, lossless, storm)) in REPETITIONS.into_iter().enumerate() {
        let mut plan = bench::plan_in_turn(id, lossless, storm, turn);
        // As long as in plans, so that copies come before the end.
        plan.durations.baseline = 1000 * MS;
        plan.durations.traffic = 1000 * MS;
        let bug = Bug::CopyAfter(1000 * MS);
        let results = judged(id, &plan, lossless, Order::InTurn, bug);
        let duplicate = results.iter().find(|one| one.check == "no-duplicate");
        assert_eq!(
            duplicate.unwrap().verdict,
            Verdict::Fail,
            "{id} {lossless:?}"
        );
    }
}

/// Seven lossless priorities leave one lossy class, which is named in every other turn: a good
/// switch passes in both. One that lets the class obey is undecided where it is named: what is
/// silent then may be the path.
#[test]
fn the_only_lossy_class_is_named_beside_lossless_ones_in_every_other_turn() {
    let seven: Repetition = ("pfc.pause-multi-lossless", &[0, 1, 2, 3, 4, 5, 6], None);
    let response = |turn, bug| {
        let results = results((turn, seven), Order::InTurn, bug);
        let response = results.into_iter().find(|one| one.check == "response");
        response.unwrap().verdict
    };
    for turn in [0, 1] {
        assert_eq!(response(turn, Bug::None), Verdict::Pass);
    }
    assert_eq!(response(1, Bug::LossyClassToo(7)), Verdict::Inconclusive);
}
