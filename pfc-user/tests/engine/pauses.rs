//! Pause frames as they leave, and what they hold. At 10 Mbit/s the longest pause lasts 3.3 s: one
//! frame holds for as long as a test looks.

use std::sync::{Arc, mpsc};

use pfc_ebpf::units::{LineRate, Priority, Quanta};
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::kernel::packet::PacketSocket;
use validator::driver::kernel::realtime;
use validator_core::engine::packet::{Packet, Protocol, Value};
use validator_core::engine::plan::{self, End, Flow, FlowIndex, Obeys, Plan, PortIndex, Rate};
use validator_core::engine::snapshot::{Response, Snapshot, Transmit};
use validator_core::engine::storm::Gaps;
use validator_core::engine::{Change, Engine, Order};
use validator_core::pacing::storm::placement::Placement;

use crate::common;
use crate::engine::bench::{Bench, flow, header, pauses, plan, until_not_spoilt};
use crate::engine::witness::{Witness, decided};

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

/// Source of the pauses: zeros are nobody's address.
const SOURCE: (&str, Value) = ("src", Value::Fixed(0x0200_0000_00fb));

/// PFC that addresses these classes.
fn pfc(vector: u8, time: u128) -> Packet {
    let mut fields = vec![SOURCE, ("class_enable_vector", Value::Fixed(vector.into()))];
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
        ..Packet::default()
    }
}

fn pause(time: u128) -> Packet {
    Packet {
        headers: vec![header(
            Protocol::EthernetPause,
            &[SOURCE, ("time", Value::Fixed(time))],
        )],
        ..Packet::default()
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

/// Waits until all queues but those of `expected` have sent; those of them that have, too.
fn moved(bench: &mut Bench, expected: &[usize]) -> Vec<usize> {
    let before = a_while(bench);
    let after = bench.until("frames of the queues that are not held", |now| {
        let moved =
            |flow: usize| now.flows[flow].sent.frames >= before.flows[flow].sent.frames + 20;
        let free = (0..8).filter(|queue| !expected.contains(queue));
        moved(WITNESS) && free.into_iter().all(|queue| moved(QUEUES + queue))
    });
    let mut found = expected.to_vec();
    found.retain(|queue| sent(&before)[*queue] != sent(&after)[*queue]);
    found
}

/// Sends one pause frame, and waits until it has arrived.
fn send(bench: &mut Bench, pause: FlowIndex) {
    let arrived = |now: &Snapshot| {
        now.ports[0].own_pause_received + now.ports[0].own_pfc_received.iter().sum::<u64>()
    };
    let before = arrived(&bench.snapshot());
    bench.engine.transmit(&[pause], Order::Start).unwrap();
    bench.until("a pause frame", |now| arrived(now) > before);
}

/// Starts the flows of data, and sends a pause frame, which holds these queues, and one that lets
/// them go. Where this machine was held up for longer than the pause, it says nothing and is done
/// again.
fn holds(plan: &Plan, expected: &[usize]) {
    until_not_spoilt(
        &format!("queues other than {expected:?} were held, or for longer than a pause"),
        || held_in_time(plan.clone(), expected),
    );
}

/// False: the pause was over before its end was sent.
fn held_in_time(plan: Plan, expected: &[usize]) -> bool {
    let mut bench = Bench::new();
    let data: Vec<_> = (WITNESS..plan.flows.len()).map(FlowIndex).collect();
    bench.engine.configure(plan).unwrap();
    bench.engine.transmit(&data, Order::Start).unwrap();
    moved(&mut bench, &[]);
    let begin = bench.snapshot().at;
    send(&mut bench, XOFF);
    let escaped = moved(&mut bench, expected);
    let times = bench.snapshot().ports[0].held;
    send(&mut bench, XON);
    if bench.snapshot().at - begin >= LONGEST {
        return false;
    }
    assert!(escaped.is_empty(), "queues {escaped:?} were not held");
    for (queue, time) in times.iter().enumerate() {
        let is_held = expected.contains(&queue);
        assert_eq!(*time > 0, is_held, "queue {queue}: {times:?}");
    }
    moved(&mut bench, &[]);
    let times = bench.snapshot().ports[0].held;
    assert!(times.iter().all(|time| *time < LONGEST), "{times:?}");
    true
}

/// Holds a flow of two frames a second. False: it had a rate for half a second yet, less than the
/// second after which any silence ends it.
fn rate_ends_early(plan: Plan, flow: usize) -> bool {
    let mut bench = Bench::new();
    bench.engine.configure(plan).unwrap();
    bench
        .engine
        .transmit(&[FlowIndex(flow)], Order::Start)
        .unwrap();
    bench.until("some frames, and their rate", |now| {
        now.flows[flow].sent.frames >= 4 && now.flows[flow].sent_rate.frames > 0.0
    });
    send(&mut bench, XOFF);
    let now = bench.until("no rate of the flow and its ports", |now| {
        let of_flow = &now.flows[flow];
        let rates = [of_flow.sent_rate, of_flow.received_rate];
        let rates = rates.iter().chain([&now.ports[0].sent_rate]);
        rates.map(|rate| rate.frames).sum::<f64>() == 0.0
    });
    assert_eq!(now.flows[flow].transmit, Transmit::Started);
    now.ports[0].held[3] < 500_000_000
}

#[test]
fn root_a_slow_flow_that_is_held_has_no_rate() {
    if !common::need_root("root_a_slow_flow_that_is_held_has_no_rate") {
        return;
    }
    let identity: [_; 8] = std::array::from_fn(|class| queue(class as u8));
    let mut held = storm(Obeys::Pfc(identity), |time| pfc(0b0000_1000, time));
    held.flows[QUEUES + 3].rate = Rate::FramesPerSecond(2);
    until_not_spoilt("a held flow kept its rate for half a second", || {
        rate_ends_early(held.clone(), QUEUES + 3)
    });
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
        holds(&storm(Obeys::Pfc(map), |time| pfc(vector, time)), &expected);
    }
}

#[test]
fn root_pause_of_802_3x_holds_all_queues_of_a_port_that_obeys_it() {
    if !common::need_root("root_pause_of_802_3x_holds_all_queues_of_a_port_that_obeys_it") {
        return;
    }
    let all: Vec<_> = (0..8).collect();
    holds(&storm(Obeys::Pause, pause), &all);
    let identity: [_; 8] = std::array::from_fn(|class| queue(class as u8));
    holds(&storm(Obeys::Pfc(identity), pause), &[]);
    holds(&storm(Obeys::Pause, |time| pfc(0xff, time)), &[]);
    holds(&storm(Obeys::Nothing, |time| pfc(0xff, time)), &[]);
}

#[test]
fn root_a_flow_that_is_held_ends_when_its_time_is_over() {
    if !common::need_root("root_a_flow_that_is_held_ends_when_its_time_is_over") {
        return;
    }
    // As above, for a machine that is held up.
    until_not_spoilt("a held flow ended only with the pause", ended_in_time);
}

/// False: the pause was over before the end of the flow was seen.
fn ended_in_time() -> bool {
    let identity: [_; 8] = std::array::from_fn(|class| queue(class as u8));
    let mut plan = storm(Obeys::Pfc(identity), |time| pfc(0b1000, time));
    plan.flows[QUEUES + 3].schedule.end = End::Time(500_000_000);
    let mut bench = Bench::new();
    bench.engine.configure(plan).unwrap();
    let begin = bench.snapshot().at;
    send(&mut bench, XOFF);
    let order = bench.snapshot().at;
    bench
        .engine
        .transmit(&[FlowIndex(QUEUES + 3)], Order::Start)
        .unwrap();
    let state = |now: &Snapshot| now.flows[QUEUES + 3].transmit;
    let end = bench.until("its end", |now| state(now) == Transmit::Stopped);
    if end.at - begin >= LONGEST {
        return false;
    }
    assert!(end.at - order >= 500_000_000);
    assert_eq!(end.flows[QUEUES + 3].sent.frames, 0);
    true
}

#[test]
fn root_the_senders_response_to_each_pause_is_told_and_bounded() {
    let test = "root_the_senders_response_to_each_pause_is_told_and_bounded";
    if !common::need_root(test) {
        return;
    }
    decided(test, responses_are_bounded);
}

/// The error is for how long this machine stood still, where that was too long to bound a response.
fn responses_are_bounded() -> Result<(), u64> {
    const HOLDS: u64 = 20;
    // Pauses of 2 ms each 50 ms for queue 3, of which 11,000 frames a second want to leave, and as
    // many of queue 5.
    let storm = pauses(
        &[
            ("class_enable_vector", Value::Fixed(0b1000)),
            ("pause_class_3", Value::Fixed(4000)),
        ],
        20,
        End::Frames(HOLDS),
    );
    let data = |number| Flow {
        queue: Priority::new(number).unwrap(),
        ..flow("data", 1024, Rate::Percent(9.0), End::Never)
    };
    let identity: [_; 8] = std::array::from_fn(|class| queue(class as u8));
    let mut bench = Bench::new();
    let plan = plan(Obeys::Pfc(identity), vec![storm, data(3), data(5)]);
    bench.engine.configure(plan).unwrap();
    let flows = [0, 1, 2].map(FlowIndex);
    bench.engine.transmit(&flows[1..], Order::Start).unwrap();
    bench.until("frames of both queues", |now| {
        now.flows[1..].iter().all(|flow| flow.sent.frames > 100)
    });
    let before = bench.snapshot();
    assert_eq!(before.ports[0].responses, [Response::default(); 8]);
    let witness = Witness::start();
    bench.engine.transmit(&flows[..1], Order::Start).unwrap();
    bench.until("the end of the storm", |now| {
        now.flows[0].transmit == Transmit::Stopped
    });
    let held = bench.until("the last pause", |now| {
        now.ports[0].own_pfc_received[3] == HOLDS && now.ports[0].held[3] >= HOLDS * 2_000_000
    });
    let sent = held.flows[1].sent.frames;
    let now = bench.until("frames after it", |now| {
        now.flows[1].sent.frames > sent + 100
    });
    let still = witness.longest().as_nanos() as u64;
    let responses = now.ports[0].responses;
    for (queue, response) in responses.iter().enumerate() {
        assert_eq!(
            response.holds > 0,
            queue == 3,
            "queue {queue}: {response:?}"
        );
    }
    let response = responses[3];
    assert!(response.holds <= HOLDS, "{response:?}");
    assert_eq!(response.after.octets, 1024 * response.after.frames);
    if still >= 1_000_000 {
        return Err(still);
    }
    // A sender looks each 150 us and at least once a millisecond, which is 11 frames of the queue.
    // Twice as long, and it did not obey.
    assert_eq!(response.holds, HOLDS, "{response:?}");
    assert!(response.longest < 2_000_000, "{response:?}");
    assert!(response.after.frames <= 22 * HOLDS, "{response:?}");
    Ok(())
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
    for frame in captured.frames.iter() {
        assert_eq!(frame.octets, expected);
    }
    assert_eq!(done.ports[1].pfc_sent, [0, 0, 0, 300, 0, 0, 300, 0]);
    assert_eq!(done.ports[0].own_pfc_received, [0, 0, 0, 300, 0, 0, 300, 0]);
    assert_eq!(done.ports[0].pfc_received, [0; 8]);
    assert_eq!(done.flows[0].sent.frames, 300);
    assert_eq!(
        (done.flows[0].received.frames, done.flows[0].leaked),
        (0, 0)
    );
}

#[test]
fn root_pause_frames_of_a_device_are_told_from_those_of_the_plans_own_flows() {
    let test = "root_pause_frames_of_a_device_are_told_from_those_of_the_plans_own_flows";
    if !common::need_root(test) {
        return;
    }
    let identity: [_; 8] = std::array::from_fn(|class| queue(class as u8));
    let fields = [
        ("src", Value::List(vec![0x0000_fafe_0001, 0x0000_fafe_0002])),
        ("class_enable_vector", Value::Fixed(0b1000)),
        ("pause_class_3", Value::Fixed(1)),
    ];
    let storm = pauses(&fields, 10_000, End::Frames(40));
    let mut bench = Bench::new();
    bench
        .engine
        .configure(slow(plan(Obeys::Pfc(identity), vec![storm])))
        .unwrap();
    bench.engine.transmit(&[XOFF], Order::Start).unwrap();
    bench.until_done();
    let socket = bench.namespace.run(|| PacketSocket::open("b")).unwrap();
    let socket = socket.unwrap();
    let class = [Priority::new(5).unwrap()];
    let of_device = MacControl::pfc(class, Quanta(1)).emit([2, 0, 0, 0, 0, 2]);
    socket.send(&of_device).unwrap();
    socket
        .send(&MacControl::Pause { quanta: 1 }.emit([2; 6]))
        .unwrap();
    let now = bench.until("both kinds", |now| now.ports[0].received.frames == 42);
    let port = &now.ports[0];
    assert_eq!(port.own_pfc_received, [0, 0, 0, 40, 0, 0, 0, 0]);
    assert_eq!(port.pfc_received, [0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!((port.own_pause_received, port.pause_received), (0, 1));
    // Both are obeyed.
    assert!(port.held[3] > 0 && port.held[5] > 0, "{:?}", port.held);
}

#[test]
fn root_a_storm_whose_pauses_run_out_has_gaps() {
    if !common::need_root("root_a_storm_whose_pauses_run_out_has_gaps") {
        return;
    }
    // Pauses of a quantum, 51 us, at 1000 frames a second; a line of 10 Mbit/s does not let 40
    // frames out at once.
    let fields = [
        ("class_enable_vector", Value::Fixed(1)),
        ("pause_class_0", Value::Fixed(1)),
    ];
    let thin = pauses(&fields, 1000, End::Frames(40));
    let data = flow("data", 64, Rate::FramesPerSecond(1000), End::Frames(40));
    let mut bench = Bench::new();
    bench.start(slow(plan(Obeys::Nothing, vec![thin, data])));
    let done = bench.until_done();
    let gaps = done.flows[0].storm.unwrap();
    assert!((1..40).contains(&gaps.count), "{gaps:?}");
    assert!(gaps.longest > 51_200, "{gaps:?}");
    assert_eq!(done.flows[1].storm, None);
    // Counts begin anew, as all of a start do.
    bench
        .engine
        .transmit(&[FlowIndex(1)], Order::Start)
        .unwrap();
    assert_eq!(bench.until_done().flows[0].storm, Some(gaps));
    let slower = Change::Rate(Rate::BitsPerSecond(1));
    bench.engine.update(&[(FlowIndex(0), slower)]).unwrap();
    bench
        .engine
        .transmit(&[FlowIndex(0)], Order::Start)
        .unwrap();
    let first = bench.until("its first frame", |now| now.flows[0].sent.frames == 1);
    assert_eq!(first.flows[0].storm, Some(Gaps::default()));
}

#[test]
fn root_a_storm_goes_on_where_one_cpu_is_taken_from_it_and_sends_no_frame_twice() {
    let test = "root_a_storm_goes_on_where_one_cpu_is_taken_from_it_and_sends_no_frame_twice";
    if !common::need_root(test) {
        return;
    }
    let Placement::Redundant(cpus) = Placement::choose(0, &realtime::allowed_cpus()) else {
        return common::skip(test, "needs two CPUs");
    };
    // Pauses of 3.4 ms, a frame each 1.7: as valid-PFC tests have it at 10 Gbit/s.
    let fields = [
        ("class_enable_vector", Value::Fixed(1)),
        ("pause_class_0", Value::Fixed(66)),
    ];
    for cpu in cpus {
        let storm = pauses(&fields, 600, End::Never);
        let mut bench = Bench::new();
        bench.start(slow(plan(Obeys::Nothing, vec![storm])));
        bench.until("the storm", |now| now.flows[0].sent.frames >= 20);
        // The CPU is taken for as long as this lives, after a panic too.
        let hold = Arc::new(());
        let held = Arc::downgrade(&hold);
        let (is_taken, taken) = mpsc::channel();
        let taker = std::thread::spawn(move || {
            assert!(realtime::pin(cpu) && realtime::enter_fifo(realtime::STORM + 10));
            is_taken.send(()).unwrap();
            while held.strong_count() > 0 {
                std::hint::spin_loop();
            }
        });
        taken.recv().unwrap();
        let before = bench.snapshot().flows[0].sent.frames;
        let meanwhile = format!("frames while CPU {cpu} is taken");
        bench.until(&meanwhile, |now| now.flows[0].sent.frames >= before + 100);
        drop(hold);
        taker.join().unwrap();
        bench.engine.transmit(&[FlowIndex(0)], Order::Stop).unwrap();
        let done = bench.until_done();
        let sent = done.flows[0].sent.frames;
        assert_eq!(done.ports[1].pfc_sent[0], sent);
        assert_eq!(done.ports[0].own_pfc_received[0], sent);
    }
}
