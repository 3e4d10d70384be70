//! Pause frames as they leave, and what they hold. At 10 Mbit/s the longest pause lasts 3.3 s: one
//! frame holds for as long as a test looks.

use pfc_ebpf::units::{LineRate, Priority};
use validator_core::engine::packet::{Packet, Protocol, Value};
use validator_core::engine::plan::{self, End, Flow, FlowIndex, Obeys, Plan, PortIndex, Rate};
use validator_core::engine::snapshot::{Snapshot, Transmit};
use validator_core::engine::{Engine, Order};

use crate::bench::{Bench, flow, header, pauses, plan};
use crate::common;

/// The longest pause at 10 Mbit/s, nanoseconds.
const LONGEST: u64 = 3_355_392_000;
/// The flow of pause frames that hold, and the one of those that let go.
const XOFF: FlowIndex = FlowIndex(0);
const XON: FlowIndex = FlowIndex(1);
/// A flow that nothing holds, from port 1.
const WITNESS: usize = 2;
/// The flows of queues 0 to 7 follow.
const QUEUES: usize = 3;

fn queue(number: u8) -> Option<Priority> {
    Some(Priority::new(number).unwrap())
}

fn slow(mut plan: Plan) -> Plan {
    for port in &mut plan.ports {
        port.line_rate = Some(LineRate::from_bits_per_second(10_000_000).unwrap());
    }
    plan
}

/// A flow of every queue from port 0, one from port 1, and a pause frame each that holds and lets
/// go.
fn storm(obeys: Obeys, pause: impl Fn(u128) -> Packet) -> Plan {
    let one = |time| Flow {
        packet: pause(time),
        ..pauses(&[], 1000, End::Frames(1))
    };
    let mut flows = vec![one(0xffff), one(0)];
    flows.push(Flow {
        from: PortIndex(1),
        to: vec![PortIndex(0)],
        ..flow("witness", 64, Rate::FramesPerSecond(1000), End::Never)
    });
    flows.extend((0..8).map(|number| Flow {
        queue: Priority::new(number).unwrap(),
        ..flow("queue", 64, Rate::FramesPerSecond(1000), End::Never)
    }));
    slow(plan(obeys, flows))
}

/// PFC that addresses these classes.
fn pfc(vector: u8, time: u128) -> Packet {
    let mut fields = vec![("class_enable_vector", Value::Fixed(vector.into()))];
    let names = [
        "pause_class_0",
        "pause_class_1",
        "pause_class_2",
        "pause_class_3",
        "pause_class_4",
        "pause_class_5",
        "pause_class_6",
        "pause_class_7",
    ];
    fields.extend(names.map(|name| (name, Value::Fixed(time))));
    Packet {
        headers: vec![header(Protocol::PfcPause, &fields)],
    }
}

fn pause(time: u128) -> Packet {
    Packet {
        headers: vec![header(
            Protocol::EthernetPause,
            &[("time", Value::Fixed(time))],
        )],
    }
}

fn sent(snapshot: &Snapshot) -> [u64; 8] {
    std::array::from_fn(|queue| snapshot.flows[QUEUES + queue].sent.frames)
}

/// Waits until the witness has sent so many more frames.
fn a_while(bench: &mut Bench) -> Snapshot {
    let before = bench.snapshot().flows[WITNESS].sent.frames;
    bench.until("frames of the witness", |now| {
        now.flows[WITNESS].sent.frames >= before + 50
    })
}

/// The queues of `expected` send nothing while all others do.
fn held(bench: &mut Bench, expected: &[usize]) {
    let before = a_while(bench);
    let after = bench.until("frames of the queues that are not held", |now| {
        let moved =
            |flow: usize| now.flows[flow].sent.frames >= before.flows[flow].sent.frames + 20;
        let free = (0..8).filter(|queue| !expected.contains(queue));
        moved(WITNESS) && free.into_iter().all(|queue| moved(QUEUES + queue))
    });
    for queue in expected {
        assert_eq!(sent(&before)[*queue], sent(&after)[*queue], "queue {queue}");
    }
}

/// Sends one pause frame, and waits until it has arrived.
fn send(bench: &mut Bench, pause: FlowIndex) {
    let arrived = |now: &Snapshot| {
        now.ports[0].pause_received + now.ports[0].pfc_received.iter().sum::<u64>()
    };
    let before = arrived(&bench.snapshot());
    bench.engine.transmit(&[pause], Order::Start).unwrap();
    bench.until("a pause frame", |now| arrived(now) > before);
}

/// Starts the flows of data, and sends a pause frame, which holds these queues, and one that lets
/// them go.
fn holds(plan: Plan, expected: &[usize]) {
    let mut bench = Bench::new();
    let data: Vec<_> = (WITNESS..plan.flows.len()).map(FlowIndex).collect();
    bench.engine.configure(plan).unwrap();
    bench.engine.transmit(&data, Order::Start).unwrap();
    held(&mut bench, &[]);
    send(&mut bench, XOFF);
    held(&mut bench, expected);
    let times = bench.snapshot().ports[0].held;
    for (queue, time) in times.iter().enumerate() {
        let is_held = expected.contains(&queue);
        assert_eq!(*time > 0, is_held, "queue {queue}: {times:?}");
    }
    send(&mut bench, XON);
    held(&mut bench, &[]);
    let times = bench.snapshot().ports[0].held;
    assert!(times.iter().all(|time| *time < LONGEST), "{times:?}");
}

#[test]
fn root_each_map_of_classes_holds_its_queues_alone() {
    if !common::need_root("root_each_map_of_classes_holds_its_queues_alone") {
        return;
    }
    let identity: [_; 8] = std::array::from_fn(|class| queue(class as u8));
    let mut reversed = identity;
    reversed.reverse();
    let mut without = identity;
    without[3] = None;
    let mut swapped = identity;
    swapped.swap(3, 6);
    for (map, vector, expected) in [
        (identity, 0b0000_1000, vec![3]),
        (identity, 0b1111_1111, (0..8).collect()),
        (reversed, 0b0000_1001, vec![4, 7]),
        (without, 0b0001_1000, vec![4]),
        (swapped, 0b0000_1000, vec![6]),
        ([queue(5); 8], 0b1000_0000, vec![5]),
    ] {
        holds(storm(Obeys::Pfc(map), |time| pfc(vector, time)), &expected);
    }
}

#[test]
fn root_pause_of_802_3x_holds_all_queues_of_a_port_that_obeys_it() {
    if !common::need_root("root_pause_of_802_3x_holds_all_queues_of_a_port_that_obeys_it") {
        return;
    }
    let all: Vec<_> = (0..8).collect();
    holds(storm(Obeys::Pause, pause), &all);
    let identity: [_; 8] = std::array::from_fn(|class| queue(class as u8));
    holds(storm(Obeys::Pfc(identity), pause), &[]);
    holds(storm(Obeys::Pause, |time| pfc(0xff, time)), &[]);
    holds(storm(Obeys::Nothing, |time| pfc(0xff, time)), &[]);
}

#[test]
fn root_a_flow_that_is_held_ends_when_its_time_is_over() {
    if !common::need_root("root_a_flow_that_is_held_ends_when_its_time_is_over") {
        return;
    }
    let identity: [_; 8] = std::array::from_fn(|class| queue(class as u8));
    let mut plan = storm(Obeys::Pfc(identity), |time| pfc(0b1000, time));
    plan.flows[QUEUES + 3].schedule.end = End::Time(500_000_000);
    let mut bench = Bench::new();
    bench.engine.configure(plan).unwrap();
    send(&mut bench, XOFF);
    let order = bench.snapshot().at;
    bench
        .engine
        .transmit(&[FlowIndex(QUEUES + 3)], Order::Start)
        .unwrap();
    let state = |now: &Snapshot| now.flows[QUEUES + 3].transmit;
    assert_eq!(state(&bench.snapshot()), Transmit::Started);
    let end = bench.until("its end", |now| state(now) == Transmit::Stopped);
    assert!(end.at - order >= 500_000_000);
    assert!(end.ports[0].held[3] < LONGEST, "it was held to the end");
    assert_eq!(end.flows[QUEUES + 3].sent.frames, 0);
}

#[test]
fn root_pause_frames_leave_octet_by_octet_and_count_at_no_flow() {
    if !common::need_root("root_pause_frames_leave_octet_by_octet_and_count_at_no_flow") {
        return;
    }
    // A class without its bit, and one with it and no time.
    let fields = [
        ("src", Value::Fixed(0x0000_fafe_0001)),
        ("class_enable_vector", Value::Fixed(0b0100_1000)),
        ("pause_class_3", Value::Fixed(0x1234)),
        ("pause_class_5", Value::Fixed(7)),
    ];
    let mut expected = vec![
        1, 0x80, 0xc2, 0, 0, 1, 0, 0, 0xfa, 0xfe, 0, 1, 0x88, 8, 1, 1, 0, 0x48,
    ];
    expected.extend([0, 0, 0, 0, 0, 0, 0x12, 0x34, 0, 0, 0, 7, 0, 0, 0, 0]);
    expected.resize(60, 0);
    let mut bench = Bench::new();
    bench
        .engine
        .configure(plan(
            Obeys::Nothing,
            vec![pauses(&fields, 10_000, plan::End::Frames(300))],
        ))
        .unwrap();
    bench.engine.capture(&[PortIndex(0)], true).unwrap();
    bench
        .engine
        .transmit(&[FlowIndex(0)], Order::Start)
        .unwrap();
    let done = bench.until_done();
    let captured = bench.engine.captured(PortIndex(0)).unwrap().unwrap();
    assert_eq!((captured.frames.len(), captured.missed), (300, 0));
    for frame in &captured.frames {
        assert_eq!(frame.octets, expected);
    }
    assert_eq!(done.ports[1].pfc_sent, [0, 0, 0, 300, 0, 0, 300, 0]);
    assert_eq!(done.ports[0].pfc_received, [0, 0, 0, 300, 0, 0, 300, 0]);
    assert_eq!(done.flows[0].sent.frames, 300);
    assert_eq!(
        (done.flows[0].received.frames, done.flows[0].leaked),
        (0, 0)
    );
}
