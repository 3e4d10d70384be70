//! Measures the engine of flows: frames of 64 octets that it sends, stamps and counts in a second;
//! the time of a snapshot of 256 flows meanwhile; that from a start to the first frame; and the gaps
//! of a storm beside data. Root; `cargo bench --bench engine`.
//!
//! Both ports of a veth pair are the engine's own, so that each frame is counted as well.

#[path = "common/mod.rs"]
mod common;

use std::time::{Duration, Instant};

use common::{Extent, Report, Spread};
use pfc_ebpf::units::{LineRate, Priority, Quanta};
use validator::driver::kernel::link::{End, create_veth};
use validator::driver::kernel::netns::Namespace;
use validator::engine::{LiveEngine, Options};
use validator_core::engine::packet::{Header, Packet, Protocol, Value};
use validator_core::engine::plan::{
    self, Flow, FlowIndex, Keeps, Length, Metrics, Obeys, Plan, Port, PortIndex, Rate, Schedule,
    Span,
};
use validator_core::engine::{Engine, Order};

const REPORT: Report = Report("engine");
const LINE: u64 = 1_600_000_000_000;

fn main() {
    let namespace = Namespace::new().expect("root may make a network namespace");
    let end = |name, last| End {
        namespace: &namespace,
        name,
        mac: [2, 0, 0, 0, 0, last],
    };
    create_veth(end("a", 1), end("b", 2), 3400).expect("a veth pair");
    let engine = namespace.run(|| LiveEngine::new(Options::default()));
    let mut engine = engine.expect("a thread there").expect("an engine");
    for flows in [1, 8, 64, 512, 4096] {
        saturated(&mut engine, flows);
    }
    let (mut snapshots, mut firsts) = (Vec::new(), Vec::new());
    for _ in 0..Extent::asked().pick(3, 20) {
        let (snapshot, first) = latencies(&mut engine);
        snapshots.push(snapshot);
        firsts.push(first);
    }
    print("snapshot of 256 flows at full load", "ms", &snapshots);
    print("start to first frame, 256 flows", "ms", &firsts);
    storm(&mut engine);
}

fn print(name: &str, unit: &str, values: &[f64]) {
    let Spread { median, min, max } = Spread::of(values);
    println!("{name:<44} {median:>9.3} {min:>9.3} {max:>9.3} {unit}");
    REPORT.figure(name, unit, values);
}

fn header(protocol: Protocol) -> Header {
    Header {
        protocol,
        fields: Vec::new(),
        octets: Vec::new(),
    }
}

/// So many flows that together want so many frames a second.
fn data(flows: usize, frames: u64) -> Vec<Flow> {
    let stack = [Protocol::Ethernet, Protocol::Ipv4, Protocol::Udp];
    let flow = |number: usize| Flow {
        name: number.to_string(),
        from: PortIndex(0),
        to: vec![PortIndex(1)],
        queue: Priority::from_low_bits(number as u8),
        packet: Packet {
            headers: stack.map(header).into(),
        },
        length: Length::Fixed(64),
        rate: Rate::FramesPerSecond(frames / flows as u64),
        schedule: Schedule {
            delay: Span::Time(0),
            end: plan::End::Never,
            gap: 12,
        },
        metrics: Metrics {
            count: true,
            latency: true,
        },
        next_hop: None,
    };
    (0..flows).map(flow).collect()
}

/// Starts so many flows that together want more than any sender has.
fn start(engine: &mut LiveEngine, flows: usize) {
    start_all(engine, LINE, data(flows, 100_000_000));
}

/// Starts flows on a line of that rate.
fn start_all(engine: &mut LiveEngine, line_rate: u64, flows: Vec<Flow>) {
    let port = |name: &str| Port {
        name: name.into(),
        interface: name.into(),
        namespace: None,
        line_rate: LineRate::from_bits_per_second(line_rate).ok(),
        mtu: None,
        obeys: Obeys::Nothing,
        keeps: Keeps::Newest,
    };
    let all: Vec<_> = (0..flows.len()).map(FlowIndex).collect();
    let plan = Plan {
        ports: vec![port("a"), port("b")],
        flows,
        interfaces: Vec::new(),
    };
    engine.configure(plan).expect("a plan");
    engine.transmit(&all, Order::Start).expect("a start");
}

fn saturated(engine: &mut LiveEngine, flows: usize) {
    start(engine, flows);
    let mut rates = Vec::new();
    for _ in 0..Extent::asked().pick(3, 7) {
        let before = engine.snapshot().expect("counts");
        std::thread::sleep(Duration::from_millis(300));
        let after = engine.snapshot().expect("counts");
        let frames = after.ports[1].received.frames - before.ports[1].received.frames;
        rates.push(frames as f64 * 1e3 / (after.at - before.at) as f64);
    }
    print(&format!("{flows} flows, 64 B"), "Mframe/s", &rates);
}

/// Milliseconds of a snapshot while all flows are sent, and of the first frame after the order.
fn latencies(engine: &mut LiveEngine) -> (f64, f64) {
    start(engine, 256);
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
        let mut pauses = header(Protocol::PfcPause);
        pauses.fields = vec![
            ("class_enable_vector", Value::Fixed(1 << 3)),
            ("pause_class_3", Value::Fixed(0xffff)),
        ];
        let mut flows = data(8, 10_000_000);
        let pauses = Flow {
            packet: Packet {
                headers: vec![pauses],
            },
            rate: Rate::FramesPerSecond(3_000_000_000 / Quanta::MAX.nanos(line_rate)),
            ..flows[0].clone()
        };
        flows.push(pauses);
        let (mut gaps, mut longest) = (Vec::new(), Vec::new());
        for _ in 0..Extent::asked().pick(3, 7) {
            start_all(engine, line_rate.bits_per_second(), flows.clone());
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
