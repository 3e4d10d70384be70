//! Receivers side by side at the same offered load: the share of frames they count, and the cost.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use nix::sys::resource::UsageWho;
use validator::driver::kernel::{clock, realtime};
use validator_core::plan::Nanos;

use super::REPORT;
use super::common::{Extent, Spread};
use super::link::{self, Wire};
use super::napi;
use super::ours::{self, LIVE_FRAMES, Load, Ours, SENDMMSG};
use super::receiver::{self, Kind};

/// Longest wait for frames that a kernel thread still has to receive after the sender has ended;
/// exceeding it is a failure.
const LATEST: Nanos = 2_000_000_000;
const FLOWS: u16 = 8;
const LENGTH: usize = 64;
const AT_XDP: [Kind; 4] = [Kind::Account, Kind::Exact, Kind::Classify, Kind::Drop];
/// Frames per second; the last is as many as the sender can.
const RATES: [Option<u64>; 3] = [Some(250_000), Some(1_000_000), None];

/// One run of one receiver.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// Share of the frames counted, of all those sent, including those for which the link had no
    /// room.
    counted: f64,
    /// Frames counted per second.
    rate: f64,
    /// Unaccounted frames: neither counted, nor lost by the receiver's or the link's own account.
    unexplained: i64,
    /// The receiving process's CPU time per frame sent, in nanoseconds; receivers that are not
    /// processes use the sender's.
    cpu: f64,
}

/// Repeats of a receiver at one rate.
struct Row {
    kind: Kind,
    rate: Option<u64>,
    outcomes: Vec<Outcome>,
}

/// CPU of the kernel's part of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The sender's CPU, as usual on a veth.
    Same,
    /// The last CPU, by threaded NAPI. Frames for which the ring between the two (256 frames) has
    /// no room are lost.
    Cross,
}

/// A sender, and the CPU that receives its frames.
#[derive(Clone, Copy)]
struct Course {
    sender: Ours,
    place: Place,
}

impl Course {
    fn name(&self) -> String {
        match self.place {
            Place::Same => self.sender.name.to_owned(),
            Place::Cross => format!("{}, received on another CPU", self.sender.name),
        }
    }
}

/// Measures all receivers with the sender that reaches them all, then those at XDP with the faster
/// sender, which on a veth needs XDP at the other end.
pub fn run(extent: Extent) -> Result<()> {
    beside_each_other(
        extent,
        Course {
            sender: SENDMMSG,
            place: Place::Same,
        },
        &receiver::ALL,
    )?;
    beside_each_other(
        extent,
        Course {
            sender: LIVE_FRAMES,
            place: Place::Same,
        },
        &AT_XDP,
    )
}

/// Measures the receivers at XDP with one CPU for the sender and one for the receiver.
pub fn cross(extent: Extent) -> Result<()> {
    if realtime::first_cpu() == realtime::last_cpu() {
        REPORT.skip("received on another CPU", "there is one CPU");
        return Ok(());
    }
    beside_each_other(
        extent,
        Course {
            sender: LIVE_FRAMES,
            place: Place::Cross,
        },
        &AT_XDP,
    )
}

fn beside_each_other(extent: Extent, course: Course, all: &[Kind]) -> Result<()> {
    let (rounds, duration) =
        extent.pick((3, Duration::from_millis(200)), (5, Duration::from_secs(1)));
    let load = |rate| Load {
        first: 0,
        flows: FLOWS,
        length: LENGTH,
        rate,
        duration,
        run: 1,
        cpu: realtime::first_cpu().unwrap_or(0),
    };
    let mut kinds = Vec::new();
    for &kind in all {
        match measure(kind, course, &load(RATES[0])) {
            Ok(_) => kinds.push(kind),
            Err(error) => REPORT.skip(kind.name(), &format!("{error:#}")),
        }
    }
    let mut rows: Vec<Row> = RATES
        .iter()
        .flat_map(|rate| {
            kinds.iter().map(|kind| Row {
                kind: *kind,
                rate: *rate,
                outcomes: Vec::new(),
            })
        })
        .collect();
    for _ in 0..rounds {
        for row in &mut rows {
            row.outcomes
                .push(measure(row.kind, course, &load(row.rate))?);
        }
    }
    print_rows(&rows, course);
    figures(&rows, course);
    Ok(())
}

fn measure(kind: Kind, course: Course, load: &Load) -> Result<Outcome> {
    // A wire of its own, so that no queue holds frames of an earlier run.
    let wire = Wire::new(1)?;
    wire.run(|| {
        realtime::last_cpu().map(realtime::pin);
        let mut receiver = kind.open(load)?;
        if course.place == Place::Cross {
            let thread = napi::receive_on(link::RX, realtime::last_cpu().unwrap_or(0))?;
            // The sender's thread has SCHED_FIFO. The receiving thread has to be woken as readily,
            // whatever else runs there.
            link::output(Command::new("renice").args(["-n", "-20", "-p", &thread.to_string()]))?;
        }
        let before = ours::cpu_time(UsageWho::RUSAGE_CHILDREN)?;
        let ends = link::ends()?;
        let sent = ours::send(&course.sender, load, || {})?;
        let tried = sent.frames + sent.refused;
        let deadline = clock::now() + LATEST;
        let (received, unexplained) = loop {
            let received = receiver.received()?;
            let lost = match kind {
                Kind::Account | Kind::Exact | Kind::Classify | Kind::Drop => {
                    link::lost_since(ends)?
                }
                // Without XDP, a frame for which the backlog has no room also counts at both ends.
                Kind::Nft | Kind::Tc | Kind::Tcpdump => {
                    link::counters(link::TX)?.tx_dropped - ends[0].tx_dropped
                }
            };
            let unexplained = tried as i64 - (received.frames + received.lost + lost) as i64;
            if unexplained == 0 || course.place == Place::Same || clock::now() > deadline {
                break (received, unexplained);
            }
        };
        drop(receiver);
        let cpu = ours::cpu_time(UsageWho::RUSAGE_CHILDREN)? - before;
        Ok(Outcome {
            counted: received.frames as f64 / tried as f64,
            rate: received.frames as f64 / load.duration.as_secs_f64(),
            unexplained,
            cpu: if kind == Kind::Tcpdump {
                cpu * 1e9 / sent.frames as f64
            } else {
                0.0
            },
        })
    })?
}

impl Row {
    fn values(&self, value: impl Fn(&Outcome) -> f64) -> Vec<f64> {
        self.outcomes.iter().map(value).collect()
    }

    fn offered(&self) -> String {
        self.rate.map_or("greatest rate".to_owned(), |rate| {
            format!("{} Mpps", rate as f64 / 1e6)
        })
    }

    fn unexplained(&self) -> i64 {
        self.outcomes
            .iter()
            .map(|outcome| outcome.unexplained)
            .max_by_key(|frames| frames.abs())
            .unwrap_or(0)
    }
}

fn print_rows(rows: &[Row], course: Course) {
    println!(
        "  {LENGTH} octets, {FLOWS} flows, sent by {}",
        course.name()
    );
    println!(
        "  {:14} {:20} {:>10} {:>18} {:>8} {:>10} {:>12} {:>12}",
        "offered",
        "receiver",
        "taken Mpps",
        "(least to most)",
        "counted",
        "(least)",
        "unexplained",
        "CPU / frame"
    );
    for row in rows {
        let (rate, counted) = (
            Spread::of(&row.values(|outcome| outcome.rate / 1e6)),
            Spread::of(&row.values(|outcome| outcome.counted * 100.0)),
        );
        let cpu = Spread::of(&row.values(|outcome| outcome.cpu)).median;
        let cpu = if cpu > 0.0 {
            format!("{cpu:.0} ns")
        } else {
            "in sender's".to_owned()
        };
        println!(
            "  {:14} {:20} {:10.3} {:>18} {:6.2} % {:8.2} % {:12} {cpu:>12}",
            row.offered(),
            row.kind.name(),
            rate.median,
            format!("{:.3} to {:.3}", rate.min, rate.max),
            counted.median,
            counted.min,
            row.unexplained(),
        );
    }
}

fn figures(rows: &[Row], course: Course) {
    for row in rows {
        let name = format!(
            "{} at {} by {}",
            row.kind.name(),
            row.offered(),
            course.name()
        );
        REPORT.figure(
            &format!("{name}: counted of those sent"),
            "%",
            &row.values(|outcome| outcome.counted * 100.0),
        );
        REPORT.figure(
            &format!("{name}: unexplained"),
            "frames",
            &row.values(|outcome| outcome.unexplained as f64),
        );
        if row.rate.is_some() {
            continue;
        }
        // If receiving happens on the sender's CPU, the rate shows its cost.
        let of = |kind| {
            rows.iter()
                .find(|other| other.rate.is_none() && other.kind == kind)
        };
        let beside = of(Kind::Drop)
            .or(of(Kind::Account))
            .filter(|other| other.kind != row.kind);
        let (name, rates) = (format!("{name}: counted"), |row: &Row| {
            row.values(|outcome| outcome.rate / 1e6)
        });
        match beside {
            Some(other) => {
                REPORT.beside(&name, "Mpps", &rates(row), other.kind.name(), &rates(other))
            }
            None => REPORT.figure(&name, "Mpps", &rates(row)),
        }
    }
}
