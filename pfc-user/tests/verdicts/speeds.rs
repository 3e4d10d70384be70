//! The cases at speeds from 10 Mbit/s to 800 Gbit/s, in virtual time: stimulation and judging
//! as a whole, with a good switch and with each fault of time.
//!
//! Frames are counted one by one, so that fast links are loaded less and for a shorter time.

use std::collections::BTreeSet;

use pfc_ebpf::abi::account::Clock;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Quanta};
use validator_core::cases::pfc::planning::RepetitionRequest;
use validator_core::cases::pfc::port::PortContext;
use validator_core::cases::pfc::stimulate;
use validator_core::evidence::pfc::Arrival;
use validator_core::evidence::whole::{self, Rule};
use validator_core::evidence::{self, CaseEvidence};
use validator_core::plan::{Durations, FlowPlan, Limits, Nanos, RepetitionPlan, effort};
use validator_core::verdict::{CheckResult, Verdict};

use crate::bench;
use crate::verdicts::faults::{LEAVES_IN_PAUSE, LONGER, Repetition, each, short, with};

const MS: Nanos = 1_000_000;

const REPETITIONS: [Repetition; 9] = [
    ("pfc.pause-single-lossless", &[3], None),
    ("pfc.pause-multi-lossless", &[3, 4], None),
    ("pfc.pause-multi-lossless", &[3, 4], Some(&[3])),
    ("pfc.pause-lossy", &[3], None),
    ("pfc.global-pause", &[3, 4], None),
    ("pfc.independent-times", &[3, 4], None),
    ("pfc.timer-reload", &[3, 4], None),
    ("pfc.pause-time", &[3, 4], None),
    ("pfc.invalid-frames", &[3, 4], None),
];

/// The repetition of a case with tests of its own.
const VICTIM: Repetition = ("pfc.victim", &[3, 4], Some(&[3]));

/// A speed, and what is sent at it.
#[derive(Clone, Copy, Debug)]
struct Speed {
    bits_per_second: u64,
    /// Octets of a frame, without FCS.
    frame: usize,
    /// Share of the line.
    load: f64,
    max_response: Nanos,
    durations: Durations,
}

/// Links of which the bench fills every frame.
const SLOW: [Speed; 4] = [
    // The smallest frames, and the longest of the usual ones, of which four are to pass in the time
    // for a response.
    speed(10_000_000, 60, MS),
    speed(10_000_000, 1514, 20 * MS),
    speed(100_000_000, 1024, MS),
    speed(1_000_000_000, 1024, MS),
];

/// Links on which a millisecond is many frames.
const FAST: [Speed; 4] = [
    part(25_000_000_000, 0.4),
    part(100_000_000_000, 0.1),
    part(400_000_000_000, 0.04),
    part(800_000_000_000, 0.03),
];

/// Every fault of time, and the checks that fail for it at any speed.
const FAULTS: [(&str, &[&str]); 10] = [
    // All that a storm of a few pauses holds arrives within the wait.
    (
        "adds-up-pauses",
        &[
            "lets-go: single multi",
            "response: single multi",
            "replaced: timer",
            "alive: invalid",
        ],
    ),
    ("pauses-longer", LONGER),
    ("resumes-early", LEAVES_IN_PAUSE),
    ("ignores-xon", &["xon: single multi"]),
    ("keeps-longer", KEEPS_LONGER),
    (
        "shares-timer",
        &[
            "response: multi",
            "own-time: independent",
            "replaced: timer",
        ],
    ),
    (
        "ignores-refresh",
        &[
            "paused: single multi",
            "response: single multi",
            "replaced: timer",
            "alive: invalid",
        ],
    ),
    // Longer than the lead of the storm.
    (
        "slow-response=50",
        &[
            "paused: single multi",
            "response: single multi",
            "own-time: independent",
            "replaced: timer",
            "not-early: time",
            "not-late: time",
            "alive: invalid source",
            "still-pauses: invalid",
            "pauses: source",
        ],
    ),
    (
        "never-resumes",
        &[
            "delivered: single multi",
            "lets-go: single multi",
            "background: lossy",
            "no-loss: global",
            "throughput: global",
            "own-time: independent",
            "replaced: timer",
            "alive: invalid source",
            "still-pauses: invalid",
            "pauses: source",
            "not-late: time",
        ],
    ),
    ("obeys-pause", &["no-loss: global", "throughput: global"]),
];

/// Pauses that a later frame makes shorter go on.
const KEEPS_LONGER: &[&str] = &["response: single multi", "replaced: timer"];

/// Faults that show in windows of 100 ms of a line that is full.
const FAULTS_OF_RATE: [(&str, &[&str]); 2] = [
    (
        "throttles",
        &[
            "no-dip: single multi lossy global",
            "no-delay: lossy",
            "throughput: global",
        ],
    ),
    // A dip in what a storm held back.
    (
        "dips",
        &[
            "no-dip: single multi lossy global",
            "lets-go: multi",
            "no-delay: lossy",
            "throughput: global",
        ],
    ),
];

/// A full line.
const fn speed(bits_per_second: u64, frame: usize, max_response: Nanos) -> Speed {
    Speed {
        bits_per_second,
        frame,
        load: 1.0,
        max_response,
        durations: Durations {
            // A pause of 10 Mbit/s lasts 3.4 s, also where an XON should have ended it, and what
            // it held back has to drain.
            drain_max: 8000 * MS,
            ..bench::DURATIONS
        },
    }
}

/// A part of the line, for a short time. A DUT has a tenth of the longest pause to obey one.
const fn part(bits_per_second: u64, load: f64) -> Speed {
    Speed {
        load,
        durations: Durations {
            baseline: 2 * MS,
            lead: MS,
            traffic: 4 * MS,
            tail: MS,
            resume: 2 * MS,
            drain_max: 20 * MS,
        },
        ..speed(
            bits_per_second,
            3400,
            (65_535 * 512 * 100_000_000) / bits_per_second,
        )
    }
}

impl Speed {
    fn line_rate(self) -> LineRate {
        LineRate::from_bits_per_second(self.bits_per_second).unwrap()
    }

    fn limits(self) -> Limits {
        Limits {
            line_rate: self.line_rate(),
            max_response: self.max_response,
            ..bench::limits()
        }
    }

    fn plan(self, (id, lossless, storm): Repetition) -> RepetitionPlan {
        let port = PortContext {
            line_rate: self.line_rate(),
            max_response: self.max_response,
            load: self.load,
            ..bench::port()
        };
        let (lossless, storm) = (bench::priorities(lossless), storm.map(bench::priorities));
        let request = RepetitionRequest {
            lossless: &lossless,
            storm: storm.as_deref(),
            turn: 0,
            durations: self.durations,
            frame: self.frame,
            quanta: Quanta::MAX,
            interval: Quanta::MAX.nanos(self.line_rate()) / 3,
        };
        (bench::case(id).plan)(&port, &request).unwrap()
    }

    /// All repetitions against a switch with these faults; results with the case's short name.
    fn run(self, faults: &[&str]) -> Vec<(&'static str, CheckResult)> {
        let run_one = |repetition| self.run_one(repetition, faults);
        REPETITIONS.into_iter().flat_map(run_one).collect()
    }

    /// One of them.
    fn run_one(self, repetition: Repetition, faults: &[&str]) -> Vec<(&'static str, CheckResult)> {
        let faults: Vec<_> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        let evidence = bench::run_at(&self.limits(), &self.plan(repetition), &faults);
        let judged = bench::case(repetition.0).judge(&evidence);
        let checks = judged.checks.into_iter();
        checks.map(|result| (short(repetition.0), result)).collect()
    }
}

/// Expects that no check fails, and that exactly those that so short or slow a phase leaves open
/// are undecided.
fn good(speed: Speed) -> Option<String> {
    let results = speed.run(&[]);
    let failed: Vec<_> = results
        .iter()
        .filter(|(_, result)| result.verdict == Verdict::Fail)
        .map(|(case, result)| (case, &result.check, &result.reason))
        .collect();
    // Phases without a window say nothing of what is looked for in them.
    let undecided: &[&str] = if speed.durations.baseline < 100 * MS {
        &OF_WINDOWS
    } else {
        &[]
    };
    let mut undecided = each(undecided);
    let mut found = with(&results, Verdict::Inconclusive);
    // At so small a share of the line the longest pause is as short as from one frame of a lossy
    // priority to its next, the shortest may hold no frame, and no pause shows that the storm of
    // case 4 arrives.
    if speed.bits_per_second > 100_000_000_000 {
        undecided.insert("invalid ignored".into());
        undecided.extend(each(&["no-loss throughput: global"]));
        found.remove("time linear");
    }
    let good = failed.is_empty() && found == undecided;
    (!good).then(|| format!("{speed:?}: {failed:#?}, undecided {found:?}, not {undecided:?}"))
}

/// Checks that look at windows of 10 or 100 ms, in each case.
const OF_WINDOWS: [&str; 2] = [
    "no-dip: single multi lossy global",
    "no-delay: single multi lossy global",
];

/// Describes the difference if other checks fail than exactly these.
fn fails_exactly(speed: Speed, fault: &str, mut expected: BTreeSet<String>) -> Option<String> {
    let results = speed.run(&[fault]);
    let found = with(&results, Verdict::Fail);
    let cases = REPETITIONS.map(|(id, ..)| short(id));
    expected.retain(|check| {
        check
            .split(' ')
            .next()
            .is_some_and(|case| cases.contains(&case))
    });
    if found == expected {
        return None;
    }
    let failed = results
        .iter()
        .filter(|(_, result)| result.verdict == Verdict::Fail);
    let reasons =
        failed.map(|(case, result)| format!("{case} {}: {}", result.check, result.reason));
    Some(format!(
        "{fault}, {speed:?}: expected {expected:?}, found {found:?}: {:#?}",
        reasons.collect::<Vec<_>>()
    ))
}

/// Expects that there are no failures.
fn nothing(failures: impl Iterator<Item = Option<String>>) {
    let failures: Vec<String> = failures.flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Links on which the DUT's buffers fill more than three times, with two ports that send.
const CONGESTED: [Speed; 4] = [
    congested(1_000_000_000, 1000),
    congested(25_000_000_000, 40),
    congested(100_000_000_000, 10),
    congested(400_000_000_000, 4),
];

/// Traffic of so many milliseconds.
const fn congested(bits_per_second: u64, traffic: Nanos) -> Speed {
    let part = part(bits_per_second, 1.0);
    Speed {
        durations: Durations {
            baseline: part.durations.baseline + traffic * MS / 8,
            traffic: traffic * MS,
            ..part.durations
        },
        ..part
    }
}

#[test]
fn who_is_asked_to_wait_is_found_at_each_speed() {
    let repetition = ("pfc.oversubscription", &[3, 4][..], None);
    for speed in CONGESTED {
        for (fault, expected, open) in [
            (&[][..], &[][..], &[][..]),
            (&["asks-first-port"], &["asks-each"], &[]),
            (&["asks-all-ports"], &["asks-no-other"], &[]),
            (
                &["no-upstream-pfc"],
                &["delivered", "asks-each"],
                &["asks-no-other"],
            ),
        ] {
            let results = speed.run_one(repetition, fault);
            let of = |verdict| -> Vec<&str> {
                let found = results
                    .iter()
                    .filter(|(_, result)| result.verdict == verdict);
                found.map(|(_, result)| result.check.as_str()).collect()
            };
            assert_eq!(of(Verdict::Fail), expected, "{fault:?} at {speed:?}");
            assert_eq!(of(Verdict::Inconclusive), open, "{fault:?} at {speed:?}");
        }
    }
}

#[test]
fn who_waits_for_another_s_storm_is_found_at_each_speed() {
    for speed in SLOW.into_iter().chain(FAST) {
        for (fault, failed) in [
            (&[][..], &[][..]),
            (&["pauses-all-ports"], &["victim: victim"]),
            (&["ignores-pfc"], &["paused: victim"]),
        ] {
            let results = speed.run_one(VICTIM, fault);
            let found = with(&results, Verdict::Fail);
            assert_eq!(found, each(failed), "{fault:?} at {speed:?}");
        }
    }
}

/// Expects that a good switch fails no check, that one with `fault` fails those of the line
/// `failed`, and that none is open.
fn good_but_for(speed: Speed, repetition: Repetition, fault: &str, failed: &str) {
    for (fault, failed) in [(&[][..], &[][..]), (&[fault], &[failed])] {
        let results = speed.run_one(repetition, fault);
        let found = with(&results, Verdict::Fail);
        assert_eq!(found, each(failed), "{fault:?} at {speed:?}");
        let open = with(&results, Verdict::Inconclusive);
        assert!(open.is_empty(), "{fault:?} at {speed:?}: {open:?}");
    }
}

#[test]
fn one_late_response_of_many_is_found_at_each_speed() {
    // By 5 ms: no lateness where max_response is longer.
    let speeds = SLOW.into_iter().chain(FAST);
    for speed in speeds.filter(|speed| speed.max_response < 5 * MS) {
        let repetition = ("pfc.response-time", &[3, 4][..], None);
        good_but_for(speed, repetition, "slow-at-times", "response: response");
    }
}

#[test]
fn pfc_without_need_is_found_at_each_speed() {
    for speed in SLOW.into_iter().chain(FAST) {
        let repetition = ("pfc.no-congestion", &[3, 4][..], None);
        good_but_for(speed, repetition, "asks-early=50", "silent: congestion");
    }
}

/// All speeds, with so much traffic on the fast ones that a pause of a probe is seen.
fn with_probes() -> impl Iterator<Item = Speed> {
    let fast = FAST.map(|speed| Speed {
        load: f64::min(4.0 * speed.load, 1.0),
        ..speed
    });
    SLOW.into_iter().chain(fast)
}

#[test]
fn a_misplaced_code_point_is_found_at_each_speed() {
    for speed in with_probes() {
        let repetition = ("pfc.class-map", &[3, 4][..], Some(&[3][..]));
        good_but_for(speed, repetition, "misplaces-dscp", "map: class");
    }
}

#[test]
fn frames_of_one_size_that_do_not_wait_are_found_at_each_speed() {
    // At 10 Mbit/s a pause of a probe is too short for flows of so many sizes.
    for speed in with_probes().filter(|speed| speed.bits_per_second > 10_000_000) {
        let repetition = ("pfc.sizes", &[3, 4][..], None);
        good_but_for(speed, repetition, "leaks-for-long", "paused: sizes");
    }
}

#[test]
fn pfc_of_another_form_and_none_are_found_at_each_speed() {
    let repetition = ("pfc.generation", &[3, 4][..], None);
    // At the slowest the storm makes frames wait for too long.
    for speed in &CONGESTED[1..] {
        let durations = Durations {
            lead: speed.max_response + 2 * MS,
            ..speed.durations
        };
        let speed = Speed {
            durations,
            ..*speed
        };
        for (fault, failed) in [
            (&[][..], &[][..]),
            (&["pfc-unclean-padding"], &["well-formed: generation"]),
            (
                &["no-upstream-pfc"],
                &["delivered: generation", "in-time: generation"],
            ),
        ] {
            let results = speed.run_one(repetition, fault);
            let found = with(&results, Verdict::Fail);
            let reasons: Vec<_> = results
                .iter()
                .map(|(_, result)| (&result.check, &result.reason))
                .collect();
            assert_eq!(found, each(failed), "{fault:?} at {speed:?}: {reasons:?}");
        }
        // At high speed the time for a response is longer than it takes to lose 100 frames.
        let late = speed.run_one(repetition, &["asks-late"]);
        let passed = with(&late, Verdict::Pass);
        assert!(!passed.contains("generation in-time"), "at {speed:?}");
    }
}

#[test]
fn a_repetition_takes_as_long_as_it_says() {
    for (speed, repetition) in [SLOW[3], FAST[0]]
        .into_iter()
        .flat_map(|speed| REPETITIONS.map(|repetition| (speed, repetition)))
    {
        let (limits, plan) = (speed.limits(), speed.plan(repetition));
        let phases = bench::run_at(&limits, &plan, &[]).phases;
        let from = phases.iter().map(|span| span.from).min().unwrap();
        let to = phases.iter().map(|span| span.to).max().unwrap();
        let (planned, took) = (stimulate::least(&plan, &limits), to - from);
        // The first burst takes 2 ms to prepare. What a pause held back comes on top.
        assert!(
            (planned - 2 * MS..planned + planned / 10).contains(&took),
            "{} {repetition:?}: says {planned} ns, took {took} ns",
            speed.bits_per_second,
        );
    }
}

#[test]
fn a_good_switch_passes_on_slow_links() {
    nothing(SLOW.into_iter().map(good));
}

#[test]
fn a_good_switch_passes_on_fast_links() {
    nothing(FAST.into_iter().map(good));
}

/// The checks that fail for a fault of time on a slow link, whose phases have windows.
fn on_a_slow_link(speed: Speed, fault: &str, expected: &[&str]) -> BTreeSet<String> {
    let Durations { lead, traffic, .. } = speed.durations;
    // The first pause of such a storm outlasts the data, and needs no refresh.
    let once = Quanta::MAX.nanos(speed.line_rate()) > lead + traffic;
    let mut expected = each(expected);
    match fault {
        "adds-up-pauses" | "ignores-refresh" if once => {
            let of_probes = each(&["response replaced: *", "alive: invalid"]);
            expected.retain(|check| of_probes.contains(check));
        }
        // Frames that these hold come after the wait: silence ends it before so long a pause does,
        // and the sum of five pauses of a third of a second is longer. `response` depends on it.
        "pauses-longer" if once => fails_delivered(&mut expected),
        "adds-up-pauses" => fails_delivered(&mut expected),
        // The switch's buffer takes all of so few octets: it sends no XOFF, and windows without a
        // frame received are ones with frames offered.
        "never-resumes" if once => {
            expected.insert("global no-dip".into());
            if speed.frame == SLOW[0].frame {
                expected.insert("lossy no-dip".into());
            }
        }
        "obeys-pause" => expected.extend(each(&["no-dip no-delay: global"])),
        _ => {}
    }
    expected
}

/// `delivered` fails, and what depends on it is skipped.
fn fails_delivered(expected: &mut BTreeSet<String>) {
    expected.retain(|check| !check.ends_with(" response"));
    expected.extend(each(&["delivered: single multi"]));
}

#[test]
fn each_fault_of_time_fails_its_checks_on_slow_links() {
    let all = SLOW[..3].iter().flat_map(|speed| {
        FAULTS.map(|(fault, expected)| {
            fails_exactly(*speed, fault, on_a_slow_link(*speed, fault, expected))
        })
    });
    nothing(all);
}

#[test]
fn each_fault_of_time_fails_its_checks_on_fast_links() {
    let all = FAST.iter().flat_map(|speed| {
        FAULTS.map(|(fault, expected)| fails_exactly(*speed, fault, each(expected)))
    });
    nothing(all);
}

/// The smallest frames on a quarter of a line of 10 Gbit/s: too many to read the clock for each.
const MANY: Speed = Speed {
    frame: 60,
    ..part(10_000_000_000, 0.25)
};

#[test]
fn above_the_rate_of_exact_counting_every_arrival_of_a_probe_is_logged_but_at_full_load() {
    let plan = MANY.plan(REPETITIONS[0]);
    let logs = |load: u8| {
        let mut flows = plan.flows.iter();
        flows.all(|flow| plan.logged(flow, load).contains(&Phase::Probe))
    };
    let bursts = &plan.probe.as_ref().unwrap().bursts;
    assert_eq!(effort(&plan.flows).0, Clock::Batched);
    assert!(bursts.iter().any(|burst| burst.load == 100) && !logs(100));
    assert!(
        bursts
            .iter()
            .all(|burst| burst.load == 100 || logs(burst.load))
    );
    // At 100 Gbit/s half load has too many frames as well.
    let faster = Speed {
        frame: 1024,
        ..part(100_000_000_000, 1.0)
    };
    for (repetition, expected) in [(REPETITIONS[0], vec![25, 100]), (REPETITIONS[4], vec![25])] {
        let bursts = faster.plan(repetition).probe.unwrap().bursts;
        let loads: BTreeSet<_> = bursts.iter().map(|burst| burst.load).collect();
        assert_eq!(loads, BTreeSet::from_iter(expected));
    }
}

/// A line of 10 Gbit/s that such frames fill: of its burst at full load the paused flows and one
/// other are logged.
const FULL: Speed = Speed {
    frame: 360,
    ..part(10_000_000_000, 1.0)
};

#[test]
fn a_fault_at_full_load_fails_above_the_rate_of_exact_counting() {
    assert_eq!(effort(&FULL.plan(REPETITIONS[0]).flows).0, Clock::Batched);
    for (faults, expected) in [
        (&[][..], &[][..]),
        (&["slow-when-full"], &["paused: single", "response: single"]),
    ] {
        let results = FULL.run_one(REPETITIONS[0], faults);
        assert_eq!(
            with(&results, Verdict::Fail),
            each(expected),
            "{results:#?}"
        );
    }
}

#[test]
fn evidence_is_whole_where_the_burst_at_full_load_is_not_logged() {
    let plan = MANY.plan(REPETITIONS[0]);
    let evidence = bench::run_at(&MANY.limits(), &plan, &[]);
    let check = |evidence| {
        let repetitions = vec![evidence::Repetition::Pfc(Box::new(evidence))];
        let case = CaseEvidence::of(REPETITIONS[0].0, repetitions);
        whole::check_case(&case, "").map_err(|defect| defect.rule)
    };
    assert_eq!(check(evidence.clone()), Ok(()));
    // The same where that burst was broken off.
    let mut broken_off = evidence.clone();
    broken_off.probes.retain(|probe| probe.burst.load < 100);
    broken_off.interrupted = true;
    assert_eq!(check(broken_off), Ok(()));
    // A flow that every burst logs has each of its frames.
    let is_logged = |flow: &&FlowPlan| plan.logged(flow, 100).contains(&Phase::Probe);
    let logged = plan.flows.iter().find(is_logged).unwrap().id;
    let mut less = evidence;
    let of_it = |arrival: &Arrival| arrival.flow == logged && arrival.phase == Phase::Probe;
    let first = less.arrivals.records.iter().position(of_it).unwrap();
    less.arrivals.records.remove(first);
    assert_eq!(check(less), Err(Rule::Arrivals));
}

#[test]
fn faults_of_probes_fail_above_the_rate_of_exact_counting() {
    assert_eq!(good(MANY), None);
    let all = [
        (
            "pauses-longer",
            ["lets-go: single", "response: single"].as_slice(),
        ),
        ("ignores-xon", &["xon: single"]),
        ("lossy-obeys-beside", &["response: single"]),
        ("slow-again", &["response: single"]),
    ];
    nothing(all.into_iter().map(|(fault, expected)| {
        let results = MANY.run_one(REPETITIONS[0], &[fault]);
        let found = with(&results, Verdict::Fail);
        (found != each(expected)).then(|| format!("{fault}: {found:?}, {results:#?}"))
    }));
}

#[test]
fn a_line_that_is_not_filled_fails_on_slow_links() {
    let all = FAULTS_OF_RATE.map(|(fault, expected)| fails_exactly(SLOW[2], fault, each(expected)));
    nothing(all.into_iter());
}

/// Phases of more than 100 ms, in which a dip can be seen, on part of a fast line.
const fn long(bits_per_second: u64, load: f64) -> Speed {
    let short = part(bits_per_second, load);
    Speed {
        durations: Durations {
            baseline: 150 * MS,
            traffic: 300 * MS,
            ..short.durations
        },
        ..short
    }
}

#[test]
fn dips_are_found_on_fast_links_and_a_good_switch_has_none() {
    for speed in [
        long(25_000_000_000, 0.4),
        long(100_000_000_000, 0.1),
        long(400_000_000_000, 0.02),
        long(800_000_000_000, 0.04),
    ] {
        let no_dip = |faults: &[&str]| {
            let results = speed.run_one(REPETITIONS[3], faults);
            let is_it = |(_, result): &(&str, CheckResult)| result.check == "no-dip";
            let (_, found) = results.into_iter().find(is_it).unwrap();
            (found.verdict, found.reason)
        };
        assert_eq!(no_dip(&[]).0, Verdict::Pass, "{speed:?}: {:?}", no_dip(&[]));
        let dips = no_dip(&["dips"]);
        assert_eq!(dips.0, Verdict::Fail, "{speed:?}: {dips:?}");
    }
}
