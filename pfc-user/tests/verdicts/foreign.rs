//! A switch that shares no code with the simulated one: good ones pass, and each mistake is found.

mod switch;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use validator_core::verdict::{CheckResult, Verdict};

use self::switch::{Bug, Foreign, Order};
use crate::bench;

const MS: u64 = 1_000_000;

/// Shorter than in plans, which have 300 ms and 1 s, and enough for a switch that forgets pauses.
const BASELINE: u64 = 250 * MS;
const RESUME: u64 = 250 * MS;

/// Case, lossless priorities, and the storm where it is not on all of them.
type Repetition = (&'static str, &'static [u8], Option<&'static [u8]>);

const REPETITIONS: [Repetition; 10] = [
    ("pfc.pause-single-lossless", &[3], None),
    ("pfc.pause-multi-lossless", &[3, 4], None),
    ("pfc.pause-multi-lossless", &[3, 4], Some(&[3])),
    ("pfc.pause-lossy", &[3], None),
    ("pfc.global-pause", &[3, 4], None),
    ("pfc.pause-single-lossless", &[4], None),
    ("pfc.pause-multi-lossless", &[2, 3, 4], Some(&[3, 4])),
    ("pfc.enable-vector", &[3, 4], Some(&[])),
    ("pfc.enable-vector", &[3, 4], Some(&[4])),
    ("pfc.zero-time", &[3, 4], None),
];

/// Repetitions of a switch whose lossless priorities are 3 and 4 and cannot be changed.
const FIXED: [Repetition; 7] = [
    ("pfc.pause-single-lossless", &[3, 4], Some(&[3])),
    ("pfc.pause-single-lossless", &[3, 4], Some(&[4])),
    ("pfc.pause-multi-lossless", &[3, 4], None),
    ("pfc.pause-multi-lossless", &[3, 4], Some(&[3])),
    ("pfc.pause-lossy", &[3, 4], None),
    ("pfc.global-pause", &[3, 4], None),
    ("pfc.zero-time", &[3, 4], None),
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
    let switch = Foreign::new(1_000_000_000, lossless, order, bug);
    let evidence = bench::run_foreign(&plan, Box::new(switch));
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

/// Expects that each mistake fails a check of these repetitions.
///
/// `VALIDATOR_FOREIGN=XonLets` looks at these mistakes alone, and prints what each check says.
fn each_fails(repetitions: &[Repetition]) {
    let only = std::env::var("VALIDATOR_FOREIGN").ok();
    let mut jobs = bugs();
    if let Some(only) = &only {
        jobs.retain(|bug| format!("{bug:?}").contains(only.as_str()));
    }
    let passed = in_parallel(&jobs, |bug| {
        let mut failed = false;
        for (turn, repetition) in repetitions.iter().copied().enumerate() {
            let results = results((turn, repetition), Order::InTurn, *bug);
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
    let mut known: Vec<_> = not_found().iter().map(|bug| format!("{bug:?}")).collect();
    known.retain(|bug| jobs.iter().any(|job| format!("{job:?}") == *bug));
    missed.sort();
    known.sort();
    assert_eq!(missed, known);
}

#[test]
fn each_mistake_of_a_foreign_switch_fails_a_check() {
    each_fails(&REPETITIONS);
}

#[test]
fn each_mistake_of_a_foreign_switch_with_a_fixed_set_fails_a_check() {
    each_fails(&FIXED);
}
