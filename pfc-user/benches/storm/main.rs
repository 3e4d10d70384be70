//! Measures storms at the intervals of fast links, and single pause frames: on an idle machine,
//! beside a busy loop on every CPU, and beside traffic at full rate. The sender's own account
//! stands beside the arrivals counted by the XDP program at the other end. Needs root and the XDP
//! programs: `cargo bench -p pfc-user --bench storm`. Words of a row's name select that row.
//!
//! Slices of all rows are interleaved, so that disturbances hit all alike. A witness separates the
//! machine's gaps from the tool's; `--unwatched` runs without it.

#[path = "../common/mod.rs"]
mod common;
mod lab;
#[path = "../common/live.rs"]
mod live;
mod witness;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use anyhow::{Context, Result};
use common::{Extent, Report, Spread};
use lab::{Lab, Load};
use pfc_ebpf::units::{LineRate, Priority, Quanta};
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::kernel::{clock, realtime};
use validator::driver::storm::Storm;
use validator_core::evidence::pfc::{Departure, StormReport};
use validator_core::pacing::storm::placement::Placement;
use validator_core::plan::{Nanos, StormKind, StormPlan};
use witness::{Keeper, Seen, Witness};

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1000 * MS;
/// Slices per row, 10 s in all, and their length; fewer and shorter ones for rough figures.
static EXTENT: LazyLock<(usize, Nanos)> =
    LazyLock::new(|| Extent::asked().pick((3, 300 * MS), (5, 2 * SECOND)));
const REPORT: Report = Report("storm");
/// Single frames per slice, and the time between them.
const PROBES: usize = 400;
const PROBE_EVERY: Nanos = MS;
/// Interval at which the receiver's records are taken: its ring holds 300 ms of them at the highest
/// rate.
const TAKE: Nanos = 20 * MS;
const GBITS: [u64; 3] = [100, 400, 800];

/// A row of the table.
#[derive(Clone, Copy)]
enum Row {
    Storm {
        gbits: u64,
        redundant: bool,
        load: Load,
    },
    Single {
        load: Load,
    },
}

impl Row {
    fn all() -> Vec<Self> {
        let loads = Load::all();
        let storms = GBITS.into_iter().flat_map(|gbits| {
            let loads = loads.clone().into_iter();
            loads.flat_map(move |load| {
                [false, true].map(|redundant| Self::Storm {
                    gbits,
                    redundant,
                    load,
                })
            })
        });
        // Proves that the witness excuses only the machine: here all gaps above the pause are ours.
        let control = Self::Storm {
            gbits: GBITS[0],
            redundant: true,
            load: Load::Kept,
        };
        storms
            .chain([control])
            .chain(loads.iter().map(|load| Self::Single { load: *load }))
            .collect()
    }

    fn name(self) -> String {
        match self {
            Self::Storm {
                gbits,
                redundant,
                load,
            } => {
                format!(
                    "{gbits} Gbit/s, {}, {}",
                    if redundant {
                        "two senders"
                    } else {
                        "one sender"
                    },
                    load.name()
                )
            }
            Self::Single { load } => format!("single frame, {}", load.name()),
        }
    }
}

/// Result of a slice, in nanoseconds.
#[derive(Clone, Copy, Default)]
struct Slice {
    frames: u64,
    seconds: f64,
    p50: Nanos,
    p99: Nanos,
    max: Nanos,
    /// Gaps above the pause; single frames: arrivals outside of their departure.
    above: usize,
    /// Causes of these gaps; `None` without a witness.
    causes: Option<Causes>,
    /// The largest gap between arrivals; single frames: the latest arrival after the call returned.
    received: Option<Nanos>,
}

/// Gaps by cause.
#[derive(Clone, Copy, Default)]
struct Causes {
    host: usize,
    kernel: usize,
    ours: usize,
}

type Count = fn(&Causes) -> usize;

const CAUSES: [(&str, Count); 3] = [
    ("host", |causes| causes.host),
    ("kernel", |causes| causes.kernel),
    ("ours", |causes| causes.ours),
];

fn line_rate(gbits: u64) -> LineRate {
    LineRate::from_bits_per_second(gbits * 1_000_000_000).expect("a rate that Ethernet has")
}

fn storm(lab: &mut Lab, gbits: u64, redundant: bool, load: Load, watched: bool) -> Result<Slice> {
    let rate = line_rate(gbits);
    let pause = Quanta::MAX.nanos(rate);
    let plan = StormPlan {
        kind: StormKind::Pfc(vec![Priority::from_low_bits(3)]),
        quanta: Quanta::MAX,
        interval: pause / 3,
    };
    let placement = if redundant {
        Placement::choose(pause, &realtime::allowed_cpus())
    } else {
        Placement::Single
    };
    lab.reset()?;
    let _running = lab.load(load, EXTENT.1)?;
    let witness = watched.then(|| Witness::begin(pause)).transpose()?;
    let storm = Storm::start_on(lab.control()?, &plan, rate, placement)?;
    let begun = clock::now();
    let mut arrivals = Vec::new();
    while clock::now() < begun + EXTENT.1 {
        clock::sleep_until(clock::now() + TAKE);
        arrivals.extend(
            lab.storm
                .take_rings()?
                .controls
                .iter()
                .map(|control| control.time),
        );
    }
    let report = storm.stop();
    let seen = witness.map(Witness::end).transpose()?.flatten();
    let seconds = (report.last.after - report.first.before) as f64 / 1e9;
    arrivals.extend(
        lab.storm
            .take_rings()?
            .controls
            .iter()
            .map(|control| control.time),
    );
    let port = lab.storm.port()?;
    anyhow::ensure!(
        port.pfc_frames == report.frames,
        "{} frames left by the account of the storm ({} were refused), {} arrived",
        report.frames,
        report.errors,
        port.pfc_frames
    );
    arrivals.sort_unstable();
    // If records were lost, the gaps between the others mean nothing.
    let received = (port.controls_lost == 0).then(|| {
        arrivals
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .max()
            .unwrap_or(0)
    });
    let causes = seen.map(|seen| causes(&report, pause, placement, &seen));
    Ok(Slice {
        causes,
        ..slice_of(&report, pause, seconds, received)
    })
}

fn slice_of(report: &StormReport, pause: Nanos, seconds: f64, received: Option<Nanos>) -> Slice {
    let quantile = |q| {
        report
            .histogram
            .quantile(q)
            .unwrap_or(0)
            .min(report.max_gap)
    };
    let above = report
        .gaps
        .iter()
        .filter(|gap| gap.length() > pause)
        .count();
    Slice {
        frames: report.frames,
        seconds,
        p50: quantile(0.5),
        p99: quantile(0.99),
        max: report.max_gap,
        above,
        causes: None,
        received,
    }
}

/// Attributes the gaps above the pause. With two senders, a gap has the cause of the one with the
/// weaker excuse.
fn causes(report: &StormReport, pause: Nanos, placement: Placement, seen: &Seen) -> Causes {
    let mut causes = Causes::default();
    for gap in report.gaps.iter().filter(|gap| gap.length() > pause) {
        let keepers = |cpus: &[usize]| {
            cpus.iter()
                .map(|cpu| seen.keeper(gap, pause, *cpu))
                .collect::<Vec<_>>()
        };
        let keeper = match placement {
            Placement::Redundant(cpus) => keepers(&cpus).into_iter().max(),
            // The sender may be on any CPU.
            Placement::Single => keepers(&realtime::allowed_cpus()).into_iter().min(),
        };
        match keeper.unwrap_or(Keeper::Ours) {
            Keeper::Host => causes.host += 1,
            Keeper::Kernel => causes.kernel += 1,
            Keeper::Ours => causes.ours += 1,
        }
    }
    causes
}

/// Sends single frames as the probe does. Measures how long a call takes, and whether the frame
/// arrives during it.
fn single(lab: &mut Lab, load: Load) -> Result<Slice> {
    lab.reset()?;
    let _running = lab.load(load, PROBES as Nanos * PROBE_EVERY)?;
    let sender = lab.control()?;
    let xoff = MacControl::pfc([Priority::from_low_bits(3)], Quanta::MAX);
    let begun = clock::now();
    let mut departures: Vec<Departure> = Vec::with_capacity(PROBES);
    for number in 0..PROBES as Nanos {
        clock::sleep_until(begun + number * PROBE_EVERY);
        departures.push(sender.send(&xoff)?);
    }
    let arrivals: Vec<Nanos> = lab
        .storm
        .take_rings()?
        .controls
        .iter()
        .map(|control| control.time)
        .collect();
    anyhow::ensure!(
        arrivals.len() == PROBES,
        "{PROBES} single frames left, {} arrived",
        arrivals.len()
    );
    let late = |(departure, arrival): (&Departure, &Nanos)| arrival.saturating_sub(departure.after);
    let outside = departures
        .iter()
        .zip(&arrivals)
        .filter(|(departure, arrival)| !(departure.before..=departure.after).contains(arrival));
    let mut calls: Vec<Nanos> = departures
        .iter()
        .map(|departure| departure.after - departure.before)
        .collect();
    calls.sort_unstable();
    Ok(Slice {
        frames: PROBES as u64,
        seconds: (clock::now() - begun) as f64 / 1e9,
        p50: calls[PROBES / 2],
        p99: calls[PROBES * 99 / 100],
        max: calls[PROBES - 1],
        above: outside.count(),
        causes: None,
        received: departures.iter().zip(&arrivals).map(late).max(),
    })
}

fn us(nanos: Nanos) -> f64 {
    nanos as f64 / 1e3
}

fn print(row: Row, slices: &[Slice]) {
    let of =
        |value: fn(&Slice) -> f64| Spread::of(&slices.iter().map(value).collect::<Vec<_>>()).median;
    let frames: u64 = slices.iter().map(|slice| slice.frames).sum();
    let seconds: f64 = slices.iter().map(|slice| slice.seconds).sum();
    let above: usize = slices.iter().map(|slice| slice.above).sum();
    let longest = slices.iter().map(|slice| slice.max).max().unwrap_or(0);
    let received: Option<Vec<f64>> = slices.iter().map(|slice| slice.received.map(us)).collect();
    let [host, kernel, ours] = CAUSES.map(|(_, count)| {
        let gaps: Option<usize> = slices
            .iter()
            .map(|slice| slice.causes.as_ref().map(count))
            .sum();
        gaps.map_or("-".into(), |gaps| gaps.to_string())
    });
    let received = received.map_or("lost".into(), |received| {
        format!("{:.1}", received.into_iter().fold(0.0, f64::max))
    });
    println!(
        "{:<36} | {frames:>8} | {:>7.1} | {:>6.1} | {:>6.1} | {:>7.1} | {:>8.1} | {:>8} | \
         {above:>5} | {host:>5} | {kernel:>6} | {ours:>4}",
        row.name(),
        frames as f64 / seconds / 1e3,
        of(|slice| us(slice.p50)),
        of(|slice| us(slice.p99)),
        of(|slice| us(slice.max)),
        us(longest),
        received,
    );
}

/// Reports the largest gap of each slice beside the pause time, or the 99th percentile of the calls
/// beside that of an `idle` machine.
fn report(row: Row, slices: &[Slice], idle: Option<&[Slice]>) {
    let of = |slices: &[Slice], value: fn(&Slice) -> Nanos| {
        slices
            .iter()
            .map(|slice| us(value(slice)))
            .collect::<Vec<_>>()
    };
    let name = row.name();
    match row {
        Row::Storm { gbits, .. } => {
            let pause = us(Quanta::MAX.nanos(line_rate(gbits)));
            let gaps = of(slices, |slice| slice.max);
            REPORT.beside(
                &format!("{name}: largest gap"),
                "us",
                &gaps,
                "pause time",
                &vec![pause; gaps.len()],
            );
            REPORT.figure(
                &format!("{name}: gaps above the pause"),
                "",
                &slices
                    .iter()
                    .map(|slice| slice.above as f64)
                    .collect::<Vec<_>>(),
            );
            for (who, count) in CAUSES {
                let gaps: Option<Vec<f64>> = slices
                    .iter()
                    .map(|slice| slice.causes.as_ref().map(|causes| count(causes) as f64))
                    .collect();
                gaps.inspect(|gaps| {
                    REPORT.figure(&format!("{name}: gaps above the pause, {who}"), "", gaps)
                });
            }
        }
        Row::Single { .. } => {
            let (name, calls) = (
                format!("{name}: p99 of the call"),
                of(slices, |slice| slice.p99),
            );
            match idle {
                Some(idle) => {
                    REPORT.beside(&name, "us", &calls, "idle", &of(idle, |slice| slice.p99))
                }
                None => REPORT.figure(&name, "us", &calls),
            }
        }
    }
}

fn main() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: needs root");
        return Ok(());
    }
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let rows: Vec<Row> = Row::all()
        .into_iter()
        .filter(|row| words.iter().all(|word| row.name().contains(word.as_str())))
        .collect();
    let watched = !std::env::args().any(|argument| argument == "--unwatched") && {
        let begun = Witness::begin(SECOND);
        let _ = begun
            .as_ref()
            .inspect_err(|error| REPORT.skip("whose gaps there are", &format!("{error:#}")));
        begun.is_ok()
    };
    let mut lab = Lab::new()?;
    let mut slices: BTreeMap<usize, Vec<Slice>> = BTreeMap::new();
    for _ in 0..EXTENT.0 {
        for (index, row) in rows.iter().enumerate() {
            let slice = match *row {
                Row::Storm {
                    gbits,
                    redundant,
                    load,
                } => storm(&mut lab, gbits, redundant, load, watched),
                Row::Single { load } => single(&mut lab, load),
            };
            slices
                .entry(index)
                .or_default()
                .push(slice.with_context(|| row.name())?);
        }
    }
    println!(
        "Storms with quanta 0xffff, a frame of each sender every third of the pause; {} x {} s \
         each, us:",
        EXTENT.0,
        EXTENT.1 as f64 / SECOND as f64
    );
    println!(
        "{:<36} | {:>8} | {:>7} | {:>6} | {:>6} | {:>7} | {:>8} | {:>8} | {:>5} | {:>5} | {:>6} | \
         {:>4}",
        "",
        "frames",
        "kHz",
        "p50",
        "p99",
        "max",
        "longest",
        "received",
        "above",
        "host",
        "kernel",
        "ours"
    );
    let idle = rows
        .iter()
        .position(|row| matches!(row, Row::Single { load: Load::Idle }))
        .map(|index| &slices[&index][..]);
    for (index, row) in rows.iter().enumerate() {
        print(*row, &slices[&index]);
        report(*row, &slices[&index], idle);
    }
    println!(
        "max: median of the slices; received: largest gap of arrivals; above: gaps above the pause \
         (335.5, 83.9, 41.9 us) in all."
    );
    println!(
        "host, kernel, ours: those of them in which both senders were kept by the machine's host, \
         or by it and the kernel's work for"
    );
    println!(
        "other processes, and all others; one sender may be on any CPU, and the one that stood \
         still is taken for its own."
    );
    println!(
        "Single frames: how long the call took, the latest arrival after its return, and arrivals \
         outside of the call."
    );
    Ok(())
}
