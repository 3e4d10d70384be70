//! Measures the engine of flows: frames of 64 octets that it sends and stamps in a second, beside
//! the cases' sender in the same rounds; that it counts as well; whether paced flows have their
//! rate; the time of a snapshot of 256 flows at full load; that from a start to the first frame;
//! and the gaps of a storm beside data. Root; `cargo bench --bench engine`; all of it, or the parts
//! that are named: `sending`, `counted`, `paced`, `latencies`, `storm`.
//!
//! The far end of one veth pair only drops. Both ends of another are the engine's own, so that each
//! frame is counted as well.

mod case;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/live.rs"]
mod live;

use std::time::{Duration, Instant};

use common::{Extent, Report, Spread};
use pfc_ebpf::flow_stamp::Form;
use pfc_ebpf::units::{LineRate, Nanos, Priority, Quanta};
use validator::config::Sender;
use validator::driver::kernel::clock;
use validator::driver::kernel::link::{End, create_veth};
use validator::driver::kernel::netns::Namespace;
use validator::engine::{LiveEngine, Options};
use validator_core::engine::packet::{Header, Packet, Protocol, Value};
use validator_core::engine::plan::{
    self, Captures, Flow, FlowIndex, Length, Metrics, Obeys, Plan, Port, PortIndex, Rate, Schedule,
    Span,
};
use validator_core::engine::snapshot::Snapshot;
use validator_core::engine::{Engine, Order};

const REPORT: Report = Report("engine");
const LINE: u64 = 1_600_000_000_000;

/// Beyond any sender here.
const UNPACED: u64 = 100_000_000;

fn main() {
    let namespace = Namespace::new().expect("root may make a network namespace");
    let end = |name, last| End {
        namespace: &namespace,
        name,
        mac: [2, 0, 0, 0, 0, last],
    };
    create_veth(end("a", 1), end("b", 2), 3400).expect("a veth pair");
    create_veth(end("s", 3), end("d", 4), 3400).expect("a veth pair");
    let dropping = namespace.run(|| case::drop_all("d"));
    let _dropping = dropping.expect("a thread there");
    let parts: Vec<_> = std::env::args().skip(1).collect();
    // Cargo adds `--bench`.
    let parts = parts.iter().filter(|part| !part.starts_with("--"));
    let asked = |name| parts.clone().count() == 0 || parts.clone().any(|part| part == name);
    if asked("sending") {
        for flows in [1, 64, 4096] {
            sending(&namespace, flows);
        }
    }
    if asked("counted") {
        counted(&namespace);
    }
    let mut engine = engine(&namespace, Sender::Auto);
    if asked("paced") {
        for flows in [1, 64, 4096] {
            paced(&mut engine, flows);
        }
    }
    if asked("latencies") {
        let (mut snapshots, mut firsts) = (Vec::new(), Vec::new());
        for _ in 0..Extent::asked().pick(3, 20) {
            let (snapshot, first) = latencies(&mut engine);
            snapshots.push(snapshot);
            firsts.push(first);
        }
        print("snapshot of 256 flows at full load", "ms", &snapshots);
        print("start to first frame, 256 flows", "ms", &firsts);
    }
    if asked("storm") {
        storm(&mut engine);
    }
}

fn engine(namespace: &Namespace, sender: Sender) -> LiveEngine {
    let options = Options {
        sender,
        ..Options::default()
    };
    let engine = namespace.run(|| LiveEngine::new(options));
    engine.expect("a thread there").expect("an engine")
}

fn print(name: &str, unit: &str, values: &[f64]) {
    let Spread { median, min, max } = Spread::of(values);
    println!("{name:<44} {median:>9.3} {min:>9.3} {max:>9.3} {unit}");
    REPORT.figure(name, unit, values);
}

/// Returns `flows` flows that together want `frames` frames a second, from the first port to the
/// last.
fn data(ports: usize, flows: usize, frames: u64) -> Vec<Flow> {
    let stack = [Protocol::Ethernet, Protocol::Ipv4, Protocol::Udp];
    let flow = |number: usize| Flow {
        name: number.to_string(),
        from: PortIndex(0),
        to: vec![PortIndex(ports - 1)],
        queue: Priority::from_low_bits(number as u8),
        packet: Packet {
            headers: stack.map(Header::new).into(),
            ..Packet::default()
        },
        length: Length::Fixed(64),
        rate: Rate::FramesPerSecond(frames / flows as u64),
        schedule: Schedule {
            delay: Span::Time(0),
            end: plan::End::Never,
            gap: 12,
        },
        metrics: Metrics {
            stamp: Some(Form::Whole),
            latency: true,
        },
        next_hops: Vec::new(),
    };
    (0..flows).map(flow).collect()
}

/// Starts `flows` flows of `frames` frames a second together, from the first of these interfaces to
/// the other, if there is one; returns when the order was given.
fn start(engine: &mut LiveEngine, interfaces: &[&str], flows: usize, frames: u64) -> Nanos {
    let flows = data(interfaces.len(), flows, frames);
    start_all(engine, interfaces, LINE, flows)
}

/// Starts flows on lines of that rate.
fn start_all(
    engine: &mut LiveEngine,
    interfaces: &[&str],
    line_rate: u64,
    flows: Vec<Flow>,
) -> Nanos {
    let port = |name: &&str| Port {
        name: (*name).into(),
        interface: (*name).into(),
        namespace: None,
        line_rate: LineRate::from_bits_per_second(line_rate).ok(),
        mtu: None,
        obeys: Obeys::Nothing,
        captures: Captures::default(),
    };
    let all: Vec<_> = (0..flows.len()).map(FlowIndex).collect();
    let plan = Plan {
        ports: interfaces.iter().map(port).collect(),
        flows,
        interfaces: Vec::new(),
    };
    let warnings = engine.configure(plan).expect("a plan");
    assert!(warnings.is_empty(), "{warnings:?}");
    let at = clock::now();
    engine.transmit(&all, Order::Start).expect("a start");
    at
}

/// Millions of frames a second between two snapshots `time` apart, by the count of each.
fn rate(engine: &mut LiveEngine, time: Duration, count: impl Fn(&Snapshot) -> u64) -> f64 {
    let before = engine.snapshot().expect("counts");
    std::thread::sleep(time);
    let after = engine.snapshot().expect("counts");
    (count(&after) - count(&before)) as f64 * 1e3 / (after.at - before.at) as f64
}

/// Measures what leaves, beside the cases' sender on the same veths.
fn sending(namespace: &Namespace, flows: usize) {
    let (mut ours, mut threads, mut cases) = (Vec::new(), Vec::new(), Vec::new());
    let time = Duration::from_millis(500);
    for _ in 0..Extent::asked().pick(3, 7) {
        for (sender, rates) in [(Sender::Auto, &mut ours), (Sender::Sendmmsg, &mut threads)] {
            let mut engine = engine(namespace, sender);
            start(&mut engine, &["s"], flows, UNPACED);
            std::thread::sleep(Duration::from_millis(100));
            rates.push(rate(&mut engine, time, |snapshot| {
                snapshot.ports[0].sent.frames
            }));
        }
        let sent = namespace.run(|| case::rate("s", flows, time.as_nanos() as u64));
        cases.push(sent.expect("a thread there") / 1e6);
    }
    let (name, beside) = (format!("sending, {flows} flows, 64 B"), "cases' sender");
    print(&name, "Mframe/s", &ours);
    print(
        &format!("by a thread, {flows} flows, 64 B"),
        "Mframe/s",
        &threads,
    );
    print(
        &format!("{beside}, {flows} flows, 64 B"),
        "Mframe/s",
        &cases,
    );
    let ratio = Spread::of_ratios(&ours, &cases);
    println!(
        "{:<44} {:>9.3} {:>9.3} {:>9.3}",
        "  ratio", ratio.median, ratio.min, ratio.max
    );
    REPORT.beside(&name, "Mframe/s", &ours, beside, &cases);
}

/// Measures what leaves, arrives and is counted, each number of flows beside 64 in the same round.
fn counted(namespace: &Namespace) {
    const BESIDE: usize = 64;
    let numbers = [1, 8, BESIDE, 512, 4096];
    let mut rates = numbers.map(|_| Vec::new());
    let time = Duration::from_millis(300);
    let mut engine = engine(namespace, Sender::Auto);
    for _ in 0..Extent::asked().pick(3, 9) {
        for (flows, rates) in numbers.into_iter().zip(&mut rates) {
            start(&mut engine, &["a", "b"], flows, UNPACED);
            std::thread::sleep(Duration::from_millis(100));
            rates.push(rate(&mut engine, time, |snapshot| {
                snapshot.ports[1].received.frames
            }));
        }
    }
    let beside = format!("{BESIDE} flows");
    let [_, _, same, _, _] = &rates;
    for (flows, rates) in numbers.into_iter().zip(&rates) {
        let name = format!("counted, {flows} flows, 64 B");
        print(&name, "Mframe/s", rates);
        let ratio = Spread::of_ratios(rates, same);
        println!(
            "{:<44} {:>9.3} {:>9.3} {:>9.3}",
            format!("  x {beside}"),
            ratio.median,
            ratio.min,
            ratio.max
        );
        REPORT.beside(&name, "Mframe/s", rates, &beside, same);
    }
}

/// How far the rate of a million frames a second is off: in all the time since the order to start,
/// second by second, and in each second alone.
fn paced(engine: &mut LiveEngine, flows: usize) {
    let each = 1_000_000 / flows as u64;
    let began = start(engine, &["a", "b"], flows, 1_000_000);
    let asked = (each * flows as u64) as f64 / 1e9;
    let off = |frames: u64, time: u64| (frames as f64 / time as f64 / asked - 1.0) * 100.0;
    let (mut since, mut alone) = (Vec::new(), Vec::new());
    let mut before = (began, 0);
    for _ in 0..Extent::asked().pick(4, 10) {
        std::thread::sleep(Duration::from_secs(1));
        let snapshot = engine.snapshot().expect("counts");
        // The port's own count goes on from the flows before.
        let frames = snapshot.flows.iter().map(|flow| flow.sent.frames).sum();
        let at = snapshot.at;
        since.push(off(frames, at - began));
        alone.push(off(frames - before.1, at - before.0));
        before = (at, frames);
    }
    let name = format!("off 1 Mframe/s, {flows} flows");
    print(&format!("{name}, since the start"), "%", &since);
    print(&format!("{name}, in a second"), "%", &alone);
}

/// Milliseconds of a snapshot while all flows are sent, and of the first frame after the order.
fn latencies(engine: &mut LiveEngine) -> (f64, f64) {
    start(engine, &["a", "b"], 256, UNPACED);
    let first = loop {
        let snapshot = engine.snapshot().expect("counts");
        if let Some(first) = snapshot.flows[0].first_frame {
            break first;
        }
    };
    let before = Instant::now();
    engine.snapshot().expect("counts");
    (before.elapsed().as_secs_f64() * 1e3, first as f64 / 1e6)
}

/// Gaps of a storm on fast lines, whose frames are due every third of their pause, beside data that
/// want more than the sender has.
fn storm(engine: &mut LiveEngine) {
    for gbits in [100, 400] {
        let line_rate = LineRate::from_bits_per_second(gbits * 1_000_000_000).expect("a rate");
        let mut pauses = Header::new(Protocol::PfcPause);
        pauses.fields = vec![
            ("class_enable_vector", Value::Fixed(1 << 3)),
            ("pause_class_3", Value::Fixed(0xffff)),
        ];
        let mut flows = data(2, 8, 10_000_000);
        let pauses = Flow {
            packet: Packet {
                headers: vec![pauses],
                ..Packet::default()
            },
            rate: Rate::FramesPerSecond(3_000_000_000 / Quanta::MAX.nanos(line_rate)),
            ..flows[0].clone()
        };
        flows.push(pauses);
        let (mut gaps, mut longest) = (Vec::new(), Vec::new());
        for _ in 0..Extent::asked().pick(3, 7) {
            start_all(
                engine,
                &["a", "b"],
                line_rate.bits_per_second(),
                flows.clone(),
            );
            std::thread::sleep(Duration::from_secs(1));
            let counts = engine.snapshot().expect("counts");
            let found = counts.flows[8].storm.expect("a flow of pause frames");
            gaps.push(found.count as f64 * 1000.0 / counts.flows[8].sent.frames.max(1) as f64);
            longest.push(found.longest as f64 / 1e3);
        }
        print(
            &format!("storm, {gbits} Gbit/s: gaps in 1000 frames"),
            "",
            &gaps,
        );
        print(
            &format!("storm, {gbits} Gbit/s: longest gap"),
            "us",
            &longest,
        );
    }
}
