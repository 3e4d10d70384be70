//! Flows that want more than a thread sends leave from the kernel: every count is as exact, and
//! every order is carried out, as if a thread sent them.

use std::time::Duration;

use pfc_ebpf::abi::generate::SHORT_BATCH;
use pfc_ebpf::flow_stamp::Form;
use pfc_ebpf::units::{LineRate, Priority};
use validator::config::Sender;
use validator::engine::Options;
use validator_core::engine::packet::{Protocol, Value};
use validator_core::engine::plan::{
    End, Flow, FlowIndex, Length, Metrics, Obeys, Plan, PortIndex, Rate, Span,
};
use validator_core::engine::port::MEMORY;
use validator_core::engine::snapshot::{Count, FlowCounts, Response, Snapshot, Transmit};
use validator_core::engine::{Change, Engine, Order, Warning};

use crate::common;
use crate::engine::bench::{self, Bench, flow, packet, pauses, until_not_spoilt};
use crate::engine::witness::{Witness, decided};

/// More than a thread sends, in each of two flows.
const RATE: u64 = 500_000;

/// On lines of so many Gbit/s.
fn plan(gigabits: u64, obeys: Obeys, flows: Vec<Flow>) -> Plan {
    let mut plan = bench::plan(obeys, flows);
    for port in &mut plan.ports {
        port.line_rate = LineRate::from_bits_per_second(gigabits * 1_000_000_000).ok();
    }
    plan
}

fn fast(length: u32, end: End) -> Flow {
    flow("fast", length, Rate::FramesPerSecond(RATE), end)
}

fn two(length: u32, end: End) -> Vec<Flow> {
    vec![fast(length, end.clone()), fast(length, end)]
}

/// Each flow arrived as it left: once, whole, in order.
fn is_exact(flow: &FlowCounts, length: u32) {
    assert_eq!(flow.sent, flow.received);
    assert_eq!(flow.sent.octets, flow.sent.frames * u64::from(length));
    let faults = [
        flow.duplicates,
        flow.reordered,
        flow.corrupt,
        flow.leaked,
        flow.beyond_window,
    ];
    assert_eq!(faults, [0; 5], "{flow:?}");
}

/// A port that has sent no other flows counted as many frames as they did, and apart from them.
fn agree(flows: &[FlowCounts], sent: Count) {
    let sum = |of: fn(&FlowCounts) -> u64| flows.iter().map(of).sum();
    let flows = Count {
        frames: sum(|flow| flow.sent.frames),
        octets: sum(|flow| flow.sent.octets),
    };
    assert_eq!(flows, sent);
}

/// Waits until each flow has sent so many more frames than in `before`.
fn more(bench: &mut Bench, before: &Snapshot, frames: u64) -> Snapshot {
    bench.until("more frames", |now| {
        let mut flows = now.flows.iter().zip(&before.flows);
        flows.all(|(now, before)| now.sent.frames >= before.sent.frames + frames)
    })
}

/// Linux before 6.3 does not tell that veths take frames of XDP.
fn bench() -> Bench {
    Bench::with(Options {
        sender: Sender::LiveFrames,
        ..Options::default()
    })
}

/// Frames of port 0 that the kernel sent.
fn by_kernel(bench: &Bench) -> u64 {
    bench.engine.sent_by_kernel(PortIndex(0))
}

#[test]
fn root_fixed_numbers_of_frames_arrive_whatever_their_length_and_headers() {
    let test = "root_fixed_numbers_of_frames_arrive_whatever_their_length_and_headers";
    if !common::need_root(test) {
        return;
    }
    let (v4, v6) = (packet(&STACKS[0]), packet(&STACKS[1]));
    let tcp = packet(&[Protocol::Ethernet, Protocol::Ipv4, Protocol::Tcp]);
    let frames = 200_000;
    // From 105 octets on, the stamp begins behind what is written of the headers; a short one from
    // 93 on.
    for (length, packet, form) in [
        (64, &v4, Form::Whole),
        (65, &v4, Form::Whole),
        (91, &v4, Form::Whole),
        (105, &v4, Form::Whole),
        (114, &v6, Form::Whole),
        (120, &v6, Form::Whole),
        (1518, &v4, Form::Whole),
        (3412, &v6, Form::Whole),
        (64, &tcp, Form::Short),
        (65, &tcp, Form::Short),
        (66, &tcp, Form::Short),
        (93, &tcp, Form::Short),
        (1518, &v4, Form::Short),
    ] {
        let flow = Flow {
            packet: packet.clone(),
            metrics: Metrics {
                stamp: Some(form),
                latency: form == Form::Whole,
            },
            ..fast(length, End::Frames(frames))
        };
        let mut bench = bench();
        bench.start(plan(100, Obeys::Nothing, vec![flow.clone(), flow]));
        let done = bench.until_done();
        for flow in &done.flows {
            is_exact(flow, length);
            assert_eq!(flow.sent.frames, frames, "{length} octets");
            assert!(flow.first_frame.is_some());
        }
        let all = Count {
            frames: 2 * frames,
            octets: 2 * frames * u64::from(length),
        };
        assert_eq!(done.ports[0].sent, all);
        let fast = by_kernel(&bench);
        assert!(fast > frames, "{length} octets: the kernel sent {fast}");
    }
}

const STACKS: [[Protocol; 3]; 2] = [
    [Protocol::Ethernet, Protocol::Ipv4, Protocol::Udp],
    [Protocol::Ethernet, Protocol::Ipv6, Protocol::Udp],
];

#[test]
fn root_flows_that_the_kernel_cannot_send_are_sent_beside_those_that_it_sends() {
    let test = "root_flows_that_the_kernel_cannot_send_are_sent_beside_those_that_it_sends";
    if !common::need_root(test) {
        return;
    }
    let end = End::Frames(20_000);
    let walk = Value::Increment {
        start: 1,
        step: 1,
        count: 100,
    };
    let mut walks = flow("walks", 64, Rate::FramesPerSecond(10_000), end.clone());
    walks.packet.headers[2].fields = vec![("src_port", walk)];
    let other = flow("other length", 256, Rate::FramesPerSecond(10_000), end);
    let mut flows = two(64, End::Frames(1_000_000));
    flows.extend([walks, other]);
    let mut bench = bench();
    bench.start(plan(100, Obeys::Nothing, flows));
    let done = bench.until_done();
    let expected = [1_000_000, 1_000_000, 20_000, 20_000];
    for (place, (flow, frames)) in done.flows.iter().zip(expected).enumerate() {
        is_exact(flow, if place == 3 { 256 } else { 64 });
        assert_eq!(flow.sent.frames, frames);
    }
    agree(&done.flows, done.ports[0].sent);
    assert!(by_kernel(&bench) > 1_000_000);
}

#[test]
fn root_orders_reach_flows_that_the_kernel_sends() {
    if !common::need_root("root_orders_reach_flows_that_the_kernel_sends") {
        return;
    }
    let (first, second) = (FlowIndex(0), FlowIndex(1));
    let mut bench = bench();
    bench.start(plan(100, Obeys::Nothing, two(64, End::Never)));
    let before = more(
        &mut bench,
        &Snapshot {
            flows: vec![FlowCounts::default(); 2],
            ..Snapshot::default()
        },
        1000,
    );
    more(&mut bench, &before, 50_000);
    bench.engine.transmit(&[first], Order::Pause).unwrap();
    let paused = bench.snapshot();
    let later = bench.until("frames of the other flow", |now| {
        now.flows[1].sent.frames >= paused.flows[1].sent.frames + 50_000
    });
    assert_eq!(later.flows[0].transmit, Transmit::Paused);
    assert_eq!(later.flows[0].sent, paused.flows[0].sent);
    bench.engine.transmit(&[first], Order::Resume).unwrap();
    more(&mut bench, &later, 50_000);
    // The kernel sends frames of one length; those of the other are left to the thread.
    let changes = [
        (first, Change::Length(Length::Fixed(200))),
        (second, Change::Rate(Rate::FramesPerSecond(300_000))),
    ];
    bench.engine.update(&changes).unwrap();
    let changed = bench.snapshot();
    more(&mut bench, &changed, 20_000);
    bench
        .engine
        .transmit(&[first, second], Order::Stop)
        .unwrap();
    let done = bench.until_done();
    is_exact(&done.flows[1], 64);
    assert_eq!(done.flows[0].sent, done.flows[0].received);
    agree(&done.flows, done.ports[0].sent);
    assert!(by_kernel(&bench) > 200_000);
    // From zero, and with none of the frames of before.
    bench.engine.transmit(&[second], Order::Start).unwrap();
    bench.engine.transmit(&[second], Order::Stop).unwrap();
    let again = bench.until_done();
    is_exact(&again.flows[1], 64);
    assert!(again.flows[1].sent.frames < done.flows[1].sent.frames);
}

#[test]
fn root_flows_end_by_time_with_all_frames_that_were_due() {
    let test = "root_flows_end_by_time_with_all_frames_that_were_due";
    if !common::need_root(test) {
        return;
    }
    // A machine that stands still at the end of a flow leaves frames behind: then it is done again.
    until_not_spoilt("a flow ended without all its frames", ended_with_all);
}

/// False: less than a hundredth of the frames was left behind.
fn ended_with_all() -> bool {
    // They begin, and end, one after the other.
    let mut flows = two(64, End::Time(200_000_000));
    flows[1].schedule.delay = Span::Time(100_000_000);
    let mut bench = bench();
    bench.start(plan(100, Obeys::Nothing, flows));
    let done = bench.until_done();
    for flow in &done.flows {
        is_exact(flow, 64);
        assert!(flow.sent.frames <= 100_000, "{flow:?}");
    }
    agree(&done.flows, done.ports[0].sent);
    assert!(by_kernel(&bench) > 10_000);
    done.flows.iter().all(|flow| flow.sent.frames > 99_000)
}

#[test]
fn root_pause_frames_hold_flows_that_the_kernel_sends() {
    let test = "root_pause_frames_hold_flows_that_the_kernel_sends";
    if !common::need_root(test) {
        return;
    }
    // Where this machine stands still, the one flow may forget more than the other: then it is done
    // again.
    until_not_spoilt(
        "a held flow lacked other frames than those of that time",
        held_for_its_time,
    );
}

/// False: the flow that was held lacks more or fewer frames than those of that time.
fn held_for_its_time() -> bool {
    let queue = |number| Priority::new(number).unwrap();
    let mut flows = two(64, End::Never);
    flows[1].queue = queue(3);
    // 3.3 ms each millisecond: class 3 of the other port is held all the time.
    flows.push(pauses(
        &[
            ("class_enable_vector", Value::Fixed(1 << 3)),
            ("pause_class_3", Value::Fixed(0xffff)),
        ],
        1000,
        End::Never,
    ));
    let identity = std::array::from_fn(|class| Some(queue(class as u8)));
    let (data, storm) = ([FlowIndex(0), FlowIndex(1)], [FlowIndex(2)]);
    let mut bench = bench();
    bench
        .engine
        .configure(plan(10, Obeys::Pfc(identity), flows))
        .unwrap();
    bench.engine.transmit(&data, Order::Start).unwrap();
    bench.until("frames of both flows", |now| {
        now.flows[..2].iter().all(|flow| flow.sent.frames > 50_000)
    });
    bench.engine.transmit(&storm, Order::Start).unwrap();
    let held = bench.until("a hold", |now| now.ports[0].held[3] > 20_000_000);
    // The queue was held while the other went on, if nothing stood still.
    let later = bench.until("frames of the queue that is not held", |now| {
        now.flows[0].sent.frames > held.flows[0].sent.frames + 100_000
    });
    bench.engine.transmit(&storm, Order::Stop).unwrap();
    bench.until("the end of the hold", |now| {
        now.flows[1].sent.frames > later.flows[1].sent.frames + 100_000
    });
    bench.engine.transmit(&data, Order::Stop).unwrap();
    let done = bench.until_done();
    let port = &done.ports[0];
    assert_eq!(port.held[0], 0);
    for flow in &done.flows[..2] {
        is_exact(flow, 64);
    }
    agree(&done.flows[..2], port.sent);
    // The held flow owes nothing for the hold: it lacks the frames of that time.
    let [free, held] = [0, 1].map(|flow| done.flows[flow].sent.frames);
    let expected = port.held[3] * RATE / 1_000_000_000;
    assert!(by_kernel(&bench) > 100_000);
    (free - held).abs_diff(expected) < expected / 10
}

#[test]
fn root_the_kernels_response_to_each_pause_is_told_and_bounded() {
    let test = "root_the_kernels_response_to_each_pause_is_told_and_bounded";
    if !common::need_root(test) {
        return;
    }
    decided(test, responses_are_bounded);
}

/// The error is for how long this machine stood still, where two pauses may have been one by that.
fn responses_are_bounded() -> Result<(), u64> {
    const HOLDS: u64 = 20;
    // Frames of the batch that runs may leave in it, as may those of the batch before.
    const BATCHES: u64 = 2 * SHORT_BATCH as u64;
    let queue = |number| Priority::new(number).unwrap();
    let mut flows = two(64, End::Never);
    flows[1].queue = queue(3);
    // Pauses of 2 ms, 50 ms apart.
    flows.push(pauses(
        &[
            ("class_enable_vector", Value::Fixed(1 << 3)),
            ("pause_class_3", Value::Fixed(39_063)),
        ],
        20,
        End::Frames(HOLDS),
    ));
    let identity = std::array::from_fn(|class| Some(queue(class as u8)));
    let (data, storm) = ([FlowIndex(0), FlowIndex(1)], [FlowIndex(2)]);
    let mut bench = bench();
    let plan = plan(10, Obeys::Pfc(identity), flows);
    bench.engine.configure(plan).unwrap();
    bench.engine.transmit(&data, Order::Start).unwrap();
    bench.until("frames of both flows", |now| {
        now.flows[..2].iter().all(|flow| flow.sent.frames > 50_000)
    });
    let before = bench.snapshot();
    assert_eq!(before.ports[0].responses, [Response::default(); 8]);
    let witness = Witness::start();
    bench.engine.transmit(&storm, Order::Start).unwrap();
    bench.until("the last pause", |now| {
        now.ports[0].own_pfc_received[3] == HOLDS && now.ports[0].held[3] >= HOLDS * 2_000_000
    });
    let still = witness.longest().as_nanos() as u64;
    bench.engine.transmit(&data, Order::Stop).unwrap();
    let done = bench.until_done();
    assert!(by_kernel(&bench) > 100_000);
    for (queue, response) in done.ports[0].responses.iter().enumerate() {
        assert_eq!(
            response.holds > 0,
            queue == 3,
            "queue {queue}: {response:?}"
        );
    }
    let response = done.ports[0].responses[3];
    assert!(response.holds <= HOLDS, "{response:?}");
    assert_eq!(response.after.octets, 64 * response.after.frames);
    if still >= 20_000_000 {
        return Err(still);
    }
    assert_eq!(response.holds, HOLDS, "{response:?}");
    let frames = 1..=BATCHES * HOLDS;
    assert!(frames.contains(&response.after.frames), "{response:?}");
    assert!((1..20_000_000).contains(&response.longest), "{response:?}");
    Ok(())
}

#[test]
fn root_a_link_that_goes_down_and_up_loses_none_of_a_fixed_number_of_frames() {
    let test = "root_a_link_that_goes_down_and_up_loses_none_of_a_fixed_number_of_frames";
    if !common::need_root(test) {
        return;
    }
    let mut bench = bench();
    bench.start(plan(100, Obeys::Nothing, two(64, End::Frames(300_000))));
    bench.until("frames", |now| now.flows[0].sent.frames > 50_000);
    bench.engine.link(PortIndex(0), false).unwrap();
    let down = bench.snapshot();
    std::thread::sleep(Duration::from_millis(50));
    let still = bench.snapshot();
    assert!(still.flows[0].sent.frames < down.flows[0].sent.frames + 1000);
    bench.engine.link(PortIndex(0), true).unwrap();
    let done = bench.until_done();
    for flow in &done.flows {
        is_exact(flow, 64);
        assert_eq!(flow.sent.frames, 300_000);
    }
    agree(&done.flows, done.ports[0].sent);
    assert!(by_kernel(&bench) > 50_000);
}

#[test]
fn root_what_was_due_and_the_kernel_never_sent_is_told() {
    let test = "root_what_was_due_and_the_kernel_never_sent_is_told";
    if !common::need_root(test) {
        return;
    }
    // A machine that stands still at the end of the flow leaves more behind than is forgotten.
    until_not_spoilt("less was told than never left", counts_what_never_left);
}

/// False: the time that was told is more than what may still be owed at the end short of that of
/// the frames that never left.
fn counts_what_never_left() -> bool {
    // No port sends as many: the line carries them, the CPU does not.
    const MANY: u64 = 60_000_000;
    const LASTS: u64 = 1000;
    let rate = Rate::FramesPerSecond(MANY);
    let many = flow("many", 64, rate, End::Time(LASTS * 1_000_000));
    let mut bench = bench();
    bench.start(plan(800, Obeys::Nothing, vec![many]));
    let done = bench.until_done();
    is_exact(&done.flows[0], 64);
    assert!(by_kernel(&bench) > 10_000);
    let warnings = bench.engine.notices();
    let [Warning(text)] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    assert!(text.contains("its flows want more than it sends"), "{text}");
    let (_, time) = text.split_once("due in ").unwrap();
    let (millis, _) = time.split_once(" ms").unwrap();
    let millis: u64 = millis.parse().unwrap();
    let never_left = LASTS - done.flows[0].sent.frames * 1000 / MANY;
    assert!(millis <= never_left + 1, "{text}: {never_left} ms");
    millis + 2 * MEMORY / 1_000_000 >= never_left
}

#[test]
fn root_thousands_of_flows_leave_and_each_is_exact() {
    let test = "root_thousands_of_flows_leave_and_each_is_exact";
    if !common::need_root(test) {
        return;
    }
    let one = |_| flow("one", 64, Rate::FramesPerSecond(200), End::Frames(100));
    let mut bench = bench();
    bench.start(plan(100, Obeys::Nothing, (0..4096).map(one).collect()));
    let done = bench.until_done();
    for flow in &done.flows {
        is_exact(flow, 64);
        assert_eq!(flow.sent.frames, 100);
    }
    agree(&done.flows, done.ports[0].sent);
    assert!(by_kernel(&bench) > 200_000);
}
