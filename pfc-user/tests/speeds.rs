//! All four cases at speeds from 10 Mbit/s to 800 Gbit/s, in virtual time: stimulation and judging
//! as a whole, with a good switch and with each fault of time.
//!
//! Frames are counted one by one, so that fast links are loaded less and for a shorter time.
//!
//! lane: computing

mod bench;

use std::collections::BTreeSet;

use pfc_ebpf::units::{LineRate, Quanta};
use validator::case::{CheckResult, Verdict};
use validator::cases::pfc::planning::{PortContext, RepetitionRequest};
use validator::plan::{Durations, Limits, Nanos, RepetitionPlan};

const MS: Nanos = 1_000_000;

/// Case, lossless priorities, and the storm where it is not on all of them.
type Repetition = (&'static str, &'static [u8], Option<&'static [u8]>);

const REPETITIONS: [Repetition; 5] = [
    ("pfc.pause-single-lossless", &[3], None),
    ("pfc.pause-multi-lossless", &[3, 4], None),
    ("pfc.pause-multi-lossless", &[3, 4], Some(&[3])),
    ("pfc.pause-lossy", &[3], None),
    ("pfc.global-pause", &[3, 4], None),
];

/// A speed, and what is sent at it.
#[derive(Clone, Copy, Debug)]
struct Speed {
    bits_per_second: u64,
    /// Octets of a frame, without FCS.
    frame: usize,
    /// Share of the line.
    load: f64,
    /// Phases as long as the windows of 100 ms need them.
    long: bool,
}

/// Links that a machine can fill frame by frame.
const SLOW: [Speed; 4] = [
    // The smallest frames, and the longest of the usual ones.
    speed(10_000_000, 60, 1.0),
    speed(10_000_000, 1514, 1.0),
    speed(100_000_000, 1024, 1.0),
    speed(1_000_000_000, 1024, 1.0),
];

/// Links on which a millisecond is many frames.
const FAST: [Speed; 4] = [
    short(25_000_000_000, 1.0),
    short(100_000_000_000, 0.25),
    short(400_000_000_000, 0.08),
    short(800_000_000_000, 0.05),
];

const fn speed(bits_per_second: u64, frame: usize, load: f64) -> Speed {
    Speed {
        bits_per_second,
        frame,
        load,
        long: true,
    }
}

const fn short(bits_per_second: u64, load: f64) -> Speed {
    Speed {
        long: false,
        ..speed(bits_per_second, 3400, load)
    }
}

impl Speed {
    fn line_rate(self) -> LineRate {
        LineRate::from_bits_per_second(self.bits_per_second).unwrap()
    }

    /// A DUT has a tenth of the longest pause to obey it, or 1 ms.
    fn limits(self) -> Limits {
        let line_rate = self.line_rate();
        Limits {
            line_rate,
            max_response: MS.min(Quanta::MAX.nanos(line_rate) / 10),
            ..bench::limits()
        }
    }

    fn plan(self, (id, lossless, storm): Repetition) -> RepetitionPlan {
        let port = PortContext {
            line_rate: self.line_rate(),
            load: self.load,
            ..bench::port()
        };
        let (lossless, storm) = (bench::priorities(lossless), storm.map(bench::priorities));
        let durations = if self.long {
            bench::DURATIONS
        } else {
            Durations {
                baseline: 2 * MS,
                lead: MS,
                traffic: 4 * MS,
                tail: MS,
                resume: 2 * MS,
                drain_max: 20 * MS,
            }
        };
        let request = RepetitionRequest {
            lossless: &lossless,
            storm: storm.as_deref(),
            durations,
            frame: self.frame,
            quanta: Quanta::MAX,
            interval: Quanta::MAX.nanos(self.line_rate()) / 3,
        };
        (bench::case(id).plan)(&port, &request).unwrap()
    }

    /// All repetitions against a switch with these faults; results with the case's short name.
    fn run(self, faults: &[&str]) -> Vec<(&'static str, CheckResult)> {
        let faults: Vec<_> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        let run_one = |repetition: Repetition| {
            let plan = self.plan(repetition);
            let evidence = bench::run_at(&self.limits(), &plan, &faults);
            let judged = bench::case(repetition.0).judge(&evidence);
            judged
                .checks
                .into_iter()
                .map(move |result| (short_name(repetition.0), result))
        };
        REPETITIONS.into_iter().flat_map(run_one).collect()
    }
}

fn short_name(id: &str) -> &str {
    let name = id.trim_start_matches("pfc.").trim_start_matches("pause-");
    name.split('-').next().unwrap()
}

fn with(results: &[(&str, CheckResult)], verdict: Verdict) -> BTreeSet<String> {
    results
        .iter()
        .filter(|(_, result)| result.verdict == verdict)
        .map(|(case, result)| format!("{case} {}", result.check))
        .collect()
}

#[test]
fn show() {
    for speed in SLOW.into_iter().chain(FAST) {
        let began = std::time::Instant::now();
        for faults in [
            &[][..],
            &["resumes-early"],
            &["ignores-xon"],
            &["slow-response"],
            &["ignores-refresh"],
            &["never-resumes"],
            &["dips"],
            &["obeys-pause"],
            &["throttles"],
            &["dies-after-pause"],
            &["leaks"],
        ] {
            if faults.len() > 0 && std::env::var_os("GOOD").is_some() {
                continue;
            }
            let results = speed.run(faults);
            println!(
                "{speed:?} {faults:?} {:?} fail {:?}",
                began.elapsed(),
                with(&results, Verdict::Fail)
            );
            for (case, result) in &results {
                if result.verdict == Verdict::Inconclusive {
                    println!(
                        "   {case} {} [{}] {}",
                        result.check, result.repetition, result.reason
                    );
                }
                if faults.is_empty() && result.verdict == Verdict::Fail {
                    println!(
                        "   FAIL {case} {} [{}] {}",
                        result.check, result.repetition, result.reason
                    );
                }
            }
        }
    }
}
