//! Storms at the intervals of fast links, and single pause frames, on an idle machine, beside a busy loop on every CPU and
//! beside traffic at full rate. The sender's own account beside the arrivals that the XDP program at the other end counted.
//! Needs root and the XDP programs: `cargo bench -p pfc-user --bench storm`, with words of a row's name to run that alone.
//!
//! Slices of all rows are interleaved, so that what else goes on hits all alike.

#[path = "common/mod.rs"]
mod common;
#[path = "common/live.rs"]
mod live;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use common::{Extent, Report, Spread};
use pfc_ebpf::maps::{Config, FlowConfig, Trust};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Dscp, LineRate, Priority, Quanta};
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::control::storm::placement::Placement;
use validator::driver::control::{ControlSender, Storm};
use validator::driver::link::{End, create_veth};
use validator::driver::netns::Namespace;
use validator::driver::traffic::sendmmsg::Sendmmsg;
use validator::driver::traffic::{Addresses, Burst, FlowControl, Source, TrafficPlan};
use validator::driver::xdp::{Account, Mode, Sizes};
use validator::driver::{clock, realtime};
use validator::evidence::pfc::{Departure, StormReport};
use validator::plan::{FlowPlan, Nanos, Role, StormKind, StormPlan};

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1000 * MS;
/// Slices of each row, 10 s in all, and their length; fewer and shorter ones where a first idea is asked for.
static EXTENT: LazyLock<(usize, Nanos)> = LazyLock::new(|| Extent::asked().pick((3, 300 * MS), (5, 2 * SECOND)));
const REPORT: Report = Report("storm");
/// Single frames in a slice, and the time from one to the next.
const PROBES: usize = 400;
const PROBE_EVERY: Nanos = MS;
/// How often the records of the receiver are taken: its ring holds those of 300 ms at the highest rate.
const TAKE: Nanos = 20 * MS;
const MTU: u32 = 1500;
const STORM_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const DATA_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const GBITS: [u64; 3] = [100, 400, 800];

type Open = fn(&TrafficPlan<'_>, FlowControl) -> Result<Box<dyn Source + Send>>;

/// Every sender of traffic, with the rate asked of it in Gbit/s: more than it can, but for live frames at a rate that leaves time.
const SOURCES: [(&str, u64, Open); 3] = [
    ("sendmmsg", 40, |plan, flow_control| Ok(Box::new(Sendmmsg::open(plan, flow_control)?))),
    ("live frames", 40, |plan, flow_control| live::live(plan, flow_control, plan.cpu.as_slice())),
    ("live, 2.4 Mpps", 20, |plan, flow_control| live::live(plan, flow_control, plan.cpu.as_slice())),
];

/// What else goes on.
#[derive(Clone, Copy)]
enum Load {
    Idle,
    /// A busy loop on every CPU.
    Hog,
    /// A sender of traffic on another port, at so many Gbit/s.
    Traffic(&'static str, u64, Open),
}

impl Load {
    fn all() -> Vec<Self> {
        [Self::Idle, Self::Hog].into_iter().chain(SOURCES.map(|(name, gbits, open)| Self::Traffic(name, gbits, open))).collect()
    }

    fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Hog => "CPU hog",
            Self::Traffic(name, ..) => name,
        }
    }
}

/// Two ports and their other ends, each with the program `account`.
struct Lab {
    tester: Namespace,
    storm: Account,
    data: Account,
    _far: Namespace,
}

impl Lab {
    fn new() -> Result<Self> {
        let (tester, far) = (Namespace::new()?, Namespace::new()?);
        let mut accounts = Vec::new();
        for (near_name, far_name, mac) in [("storm", "storm-end", STORM_MAC), ("data", "data-end", DATA_MAC)] {
            let far_mac = [mac[0], 0, 0, 0, 1, mac[5]];
            create_veth(End { namespace: &tester, name: near_name, mac }, End { namespace: &far, name: far_name, mac: far_mac }, MTU)?;
            accounts.push(far.run(|| Account::attach(far_name, Mode::Driver, Sizes { flows: 1, windows: 1 }))??);
        }
        let (Some(data), Some(storm)) = (accounts.pop(), accounts.pop()) else { unreachable!("two were pushed") };
        Ok(Self { tester, storm, data, _far: far })
    }

    /// Begins anew to count.
    fn reset(&mut self) -> Result<()> {
        let config = Config {
            epoch: clock::now(),
            window: SECOND,
            windows: 1,
            run: 1,
            trust: Trust::Dscp as u8,
            line_rate: 1_000_000_000,
            verify_every: 1,
            ..Config::default()
        };
        for account in [&mut self.storm, &mut self.data] {
            account.configure(&config, &[FlowConfig::default()])?;
        }
        Ok(())
    }

    fn control(&self) -> Result<ControlSender> {
        Ok(self.tester.run(|| ControlSender::open("storm", STORM_MAC))??)
    }

    /// Begins `load`; it ends when it is dropped.
    fn load(&self, load: Load, length: Nanos) -> Result<Running> {
        Ok(match load {
            Load::Idle => Running { _hogs: None, _source: None },
            Load::Hog => Running { _hogs: Some(Hogs::start()), _source: None },
            Load::Traffic(_, gbits, open) => {
                let line_rate = LineRate::from_bits_per_second(gbits * 1_000_000_000)?;
                let flows = [FlowPlan {
                    id: 0,
                    role: Role::Test,
                    priority: Priority::from_low_bits(0),
                    dscp: Dscp::new(0)?,
                    pcp: None,
                    rate: line_rate.bits_per_second(),
                    length: 1024,
                }];
                let plan = TrafficPlan {
                    interface: "data",
                    run: 1,
                    flows: &flows,
                    addresses: Addresses {
                        source_mac: DATA_MAC,
                        destination_mac: STORM_MAC,
                        source_ip: Ipv4Addr::new(192, 0, 2, 1).into(),
                        destination_ip: Ipv4Addr::new(192, 0, 2, 2).into(),
                    },
                    line_rate,
                    max_burst: 4 * MS,
                    epoch: clock::now(),
                    width: SECOND,
                    windows: 1,
                    cpu: realtime::first_cpu(),
                };
                let flow_control = || FlowControl::Unaware("the benchmark has no DUT".into());
                let mut source = self.tester.run(|| open(&plan, flow_control()))??;
                let from = clock::now() + 10 * MS;
                source.start(Burst { phase: Phase::Baseline, from, to: from + length + SECOND, load: 100 })?;
                Running { _hogs: None, _source: Some(source) }
            }
        })
    }
}

struct Running {
    _hogs: Option<Hogs>,
    _source: Option<Box<dyn Source + Send>>,
}

/// A busy loop on each CPU.
struct Hogs {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Hogs {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let hog = |cpu| {
            let stop = stop.clone();
            thread::spawn(move || {
                realtime::pin(cpu);
                let mut rounds = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    rounds = black_box(rounds + 1);
                }
            })
        };
        let threads = realtime::allowed_cpus().into_iter().map(hog).collect();
        Self { stop, threads }
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("a hog does not panic"));
    }
}

/// A row of the table.
#[derive(Clone, Copy)]
enum Row {
    Storm { gbits: u64, redundant: bool, load: Load },
    Single { load: Load },
}

impl Row {
    fn all() -> Vec<Self> {
        let loads = Load::all();
        let storms = GBITS.into_iter().flat_map(|gbits| {
            let loads = loads.clone().into_iter();
            loads.flat_map(move |load| [false, true].map(|redundant| Self::Storm { gbits, redundant, load }))
        });
        storms.chain(loads.iter().map(|load| Self::Single { load: *load })).collect()
    }

    fn name(self) -> String {
        match self {
            Self::Storm { gbits, redundant, load } => {
                format!("{gbits} Gbit/s, {}, {}", if redundant { "two senders" } else { "one sender" }, load.name())
            }
            Self::Single { load } => format!("single frame, {}", load.name()),
        }
    }
}

/// What a slice gave, in nanoseconds.
#[derive(Clone, Copy, Default)]
struct Slice {
    frames: u64,
    seconds: f64,
    p50: Nanos,
    p99: Nanos,
    max: Nanos,
    /// Gaps above the pause; single frames: arrivals outside of their departure.
    above: usize,
    /// The largest gap between arrivals; single frames: the latest arrival after the call returned.
    received: Option<Nanos>,
}

fn line_rate(gbits: u64) -> LineRate {
    LineRate::from_bits_per_second(gbits * 1_000_000_000).expect("a rate that Ethernet has")
}

fn storm(lab: &mut Lab, gbits: u64, redundant: bool, load: Load) -> Result<Slice> {
    let rate = line_rate(gbits);
    let pause = Quanta::MAX.nanos(rate);
    let plan = StormPlan { kind: StormKind::Pfc(vec![Priority::from_low_bits(3)]), quanta: Quanta::MAX, interval: pause / 3 };
    let placement = if redundant { Placement::choose(pause, &realtime::allowed_cpus()) } else { Placement::Single };
    lab.reset()?;
    let _running = lab.load(load, EXTENT.1)?;
    let storm = Storm::start_on(lab.control()?, &plan, rate, placement)?;
    let begun = clock::now();
    let mut arrivals = Vec::new();
    while clock::now() < begun + EXTENT.1 {
        clock::sleep_until(clock::now() + TAKE);
        arrivals.extend(lab.storm.take_rings()?.controls.iter().map(|control| control.time));
    }
    let report = storm.stop();
    let seconds = (report.last.after - report.first.before) as f64 / 1e9;
    arrivals.extend(lab.storm.take_rings()?.controls.iter().map(|control| control.time));
    let port = lab.storm.port()?;
    anyhow::ensure!(
        port.pfc_frames == report.frames,
        "{} frames left by the account of the storm ({} were refused), {} arrived",
        report.frames,
        report.errors,
        port.pfc_frames
    );
    arrivals.sort_unstable();
    // Where records were lost the gaps between the others say nothing.
    let received = (port.controls_lost == 0).then(|| arrivals.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0));
    Ok(slice_of(&report, pause, seconds, received))
}

fn slice_of(report: &StormReport, pause: Nanos, seconds: f64, received: Option<Nanos>) -> Slice {
    let quantile = |q| report.histogram.quantile(q).unwrap_or(0).min(report.max_gap);
    let above = report.gaps.iter().filter(|gap| gap.length() > pause).count();
    Slice { frames: report.frames, seconds, p50: quantile(0.5), p99: quantile(0.99), max: report.max_gap, above, received }
}

/// Single frames as the probe sends them: how long a call takes, and whether the frame arrives meanwhile.
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
    let arrivals: Vec<Nanos> = lab.storm.take_rings()?.controls.iter().map(|control| control.time).collect();
    anyhow::ensure!(arrivals.len() == PROBES, "{PROBES} single frames left, {} arrived", arrivals.len());
    let late = |(departure, arrival): (&Departure, &Nanos)| arrival.saturating_sub(departure.after);
    let outside = departures.iter().zip(&arrivals).filter(|(departure, arrival)| !(departure.before..=departure.after).contains(arrival));
    let mut calls: Vec<Nanos> = departures.iter().map(|departure| departure.after - departure.before).collect();
    calls.sort_unstable();
    Ok(Slice {
        frames: PROBES as u64,
        seconds: (clock::now() - begun) as f64 / 1e9,
        p50: calls[PROBES / 2],
        p99: calls[PROBES * 99 / 100],
        max: calls[PROBES - 1],
        above: outside.count(),
        received: departures.iter().zip(&arrivals).map(late).max(),
    })
}

fn us(nanos: Nanos) -> f64 {
    nanos as f64 / 1e3
}

fn print(row: Row, slices: &[Slice]) {
    let of = |value: fn(&Slice) -> f64| Spread::of(&slices.iter().map(value).collect::<Vec<_>>()).median;
    let frames: u64 = slices.iter().map(|slice| slice.frames).sum();
    let seconds: f64 = slices.iter().map(|slice| slice.seconds).sum();
    let above: usize = slices.iter().map(|slice| slice.above).sum();
    let longest = slices.iter().map(|slice| slice.max).max().unwrap_or(0);
    let received: Option<Vec<f64>> = slices.iter().map(|slice| slice.received.map(us)).collect();
    let received = received.map_or("lost".into(), |received| format!("{:.1}", received.into_iter().fold(0.0, f64::max)));
    println!(
        "{:<36} | {frames:>8} | {:>7.1} | {:>6.1} | {:>6.1} | {:>7.1} | {:>8.1} | {:>8} | {above:>5}",
        row.name(),
        frames as f64 / seconds / 1e3,
        of(|slice| us(slice.p50)),
        of(|slice| us(slice.p99)),
        of(|slice| us(slice.max)),
        us(longest),
        received,
    );
}

/// The largest gap of each slice beside the pause time, or the 99th percentile of the calls beside that of an `idle` machine.
fn report(row: Row, slices: &[Slice], idle: Option<&[Slice]>) {
    let of = |slices: &[Slice], value: fn(&Slice) -> Nanos| slices.iter().map(|slice| us(value(slice))).collect::<Vec<_>>();
    let name = row.name();
    match row {
        Row::Storm { gbits, .. } => {
            let pause = us(Quanta::MAX.nanos(line_rate(gbits)));
            let gaps = of(slices, |slice| slice.max);
            REPORT.beside(&format!("{name}: largest gap"), "us", &gaps, "pause time", &vec![pause; gaps.len()]);
        }
        Row::Single { .. } => {
            let (name, calls) = (format!("{name}: p99 of the call"), of(slices, |slice| slice.p99));
            match idle {
                Some(idle) => REPORT.beside(&name, "us", &calls, "idle", &of(idle, |slice| slice.p99)),
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
    let words: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let rows: Vec<Row> = Row::all().into_iter().filter(|row| words.iter().all(|word| row.name().contains(word.as_str()))).collect();
    let mut lab = Lab::new()?;
    let mut slices: BTreeMap<usize, Vec<Slice>> = BTreeMap::new();
    for _ in 0..EXTENT.0 {
        for (index, row) in rows.iter().enumerate() {
            let slice = match *row {
                Row::Storm { gbits, redundant, load } => storm(&mut lab, gbits, redundant, load),
                Row::Single { load } => single(&mut lab, load),
            };
            slices.entry(index).or_default().push(slice.with_context(|| row.name())?);
        }
    }
    println!(
        "Storms with quanta 0xffff, a frame of each sender every third of the pause; {} x {} s each, us:",
        EXTENT.0,
        EXTENT.1 as f64 / SECOND as f64
    );
    println!(
        "{:<36} | {:>8} | {:>7} | {:>6} | {:>6} | {:>7} | {:>8} | {:>8} | {:>5}",
        "", "frames", "kHz", "p50", "p99", "max", "longest", "received", "above"
    );
    let idle = rows.iter().position(|row| matches!(row, Row::Single { load: Load::Idle })).map(|index| &slices[&index][..]);
    for (index, row) in rows.iter().enumerate() {
        print(*row, &slices[&index]);
        report(*row, &slices[&index], idle);
    }
    println!("max: median of the slices; received: largest gap of arrivals; above: gaps above the pause (335.5, 83.9, 41.9 us) in all.");
    println!("Single frames: how long the call took, the latest arrival after its return, and arrivals outside of the call.");
    Ok(())
}
