//! Frames that left are those that arrived, flow by flow.

use pfc_ebpf::flow_stamp::Form;
use pfc_ebpf::units::{MILLISECOND, Priority, Quanta};
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::kernel::packet::PacketSocket;
use validator_core::engine::packet::{Header, Protocol, Value};
use validator_core::engine::plan::{End, FlowIndex, Obeys, Rate};
use validator_core::engine::snapshot::{Count, Transmit};
use validator_core::engine::{Change, Engine, Order, Warning};

use crate::common;
use crate::engine::bench::{Bench, flow, header, packet, pauses, plan, until_not_spoilt};

#[test]
fn root_all_frames_arrive_at_every_length_up_to_9000_octets() {
    let test = "root_all_frames_arrive_at_every_length_up_to_9000_octets";
    if !common::need_root(test) {
        return;
    }
    let lengths = [64, 65, 128, 512, 1024, 1518, 4096, 9000];
    let flows = lengths
        .iter()
        .map(|length| {
            flow(
                &format!("{length}"),
                *length,
                Rate::Percent(10.0),
                End::Frames(500),
            )
        })
        .collect();
    let mut bench = Bench::new();
    bench.start(plan(Obeys::Nothing, flows));
    let snapshot = bench.until_done();
    for (flow, length) in snapshot.flows.iter().zip(lengths) {
        let all = Count {
            frames: 500,
            octets: 500 * u64::from(length),
        };
        assert_eq!((flow.sent, flow.received), (all, all), "{length} octets");
        assert_eq!(
            (flow.duplicates, flow.reordered, flow.corrupt, flow.leaked),
            (0, 0, 0, 0)
        );
        let latency = flow.latency.unwrap();
        assert!(latency.min <= latency.mean && latency.mean <= latency.max);
        assert!(flow.first_frame.is_some());
    }
    let octets: u64 = lengths.iter().map(|length| 500 * u64::from(*length)).sum();
    let all = Count {
        frames: 500 * lengths.len() as u64,
        octets,
    };
    assert_eq!(
        (snapshot.ports[0].sent, snapshot.ports[1].received),
        (all, all)
    );
    assert!(
        snapshot
            .ports
            .iter()
            .all(|port| port.link_up && !port.transmitting)
    );
}

#[test]
fn root_flows_of_every_stack_are_told_apart_by_their_stamps() {
    use Protocol::{Ethernet, Ipv4, Ipv6, Tcp, Udp, Vlan, Vxlan};
    let test = "root_flows_of_every_stack_are_told_apart_by_their_stamps";
    if !common::need_root(test) {
        return;
    }
    let stacks = [
        vec![Ethernet],
        vec![Ethernet, Vlan, Ipv4, Udp],
        vec![Ethernet, Vlan, Vlan, Ipv6, Udp],
        vec![Ethernet, Ipv4, Tcp],
        vec![Ethernet, Ipv6, Tcp],
        vec![Ethernet, Ipv4, Udp, Vxlan, Ethernet, Ipv4, Udp],
    ];
    let mut frames = 10;
    let flows = stacks
        .iter()
        .map(|stack| {
            frames += 10;
            let mut flow = flow(
                "stack",
                200,
                Rate::FramesPerSecond(5000),
                End::Frames(frames),
            );
            flow.packet = packet(stack);
            flow
        })
        .collect();
    let mut bench = Bench::new();
    bench.start(plan(Obeys::Nothing, flows));
    let snapshot = bench.until_done();
    for (place, flow) in snapshot.flows.iter().enumerate() {
        let frames = 20 + 10 * place as u64;
        assert_eq!((flow.sent.frames, flow.received.frames), (frames, frames));
        assert_eq!(flow.corrupt, 0);
    }
}

#[test]
fn root_a_start_counts_from_zero_and_its_flow_alone() {
    let test = "root_a_start_counts_from_zero_and_its_flow_alone";
    if !common::need_root(test) {
        return;
    }
    let of = |name: &str| flow(name, 64, Rate::FramesPerSecond(10_000), End::Frames(200));
    let mut bench = Bench::new();
    bench.start(plan(Obeys::Nothing, vec![of("one"), of("other")]));
    bench.until_done();
    bench
        .engine
        .transmit(&[FlowIndex(1)], Order::Start)
        .unwrap();
    let snapshot = bench.until_done();
    for flow in &snapshot.flows {
        assert_eq!((flow.sent.frames, flow.received.frames), (200, 200));
    }
    // The start takes off what the port counted of its flow alone.
    assert_eq!(snapshot.ports[1].received.frames, 400);
}

#[test]
fn root_counts_go_on_after_a_stop_and_stay() {
    let test = "root_counts_go_on_after_a_stop_and_stay";
    if !common::need_root(test) {
        return;
    }
    let mut bench = Bench::new();
    bench.start(plan(
        Obeys::Nothing,
        vec![flow("one", 1024, Rate::Percent(20.0), End::Never)],
    ));
    bench.until("a hundred frames", |now| now.flows[0].received.frames > 100);
    for order in [Order::Pause, Order::Resume, Order::Stop, Order::Stop] {
        bench.engine.transmit(&[FlowIndex(0)], order).unwrap();
    }
    let snapshot = bench.until_done();
    assert_eq!(snapshot.flows[0].transmit, Transmit::Stopped);
    assert!(snapshot.flows[0].sent.frames > 100);
    assert_eq!(snapshot.flows[0].sent, snapshot.flows[0].received);
}

/// Stops a flow of five frames a second. False: it had a rate for longer than 100 ms yet. Without
/// an order, only a silence of about half a second ends it.
fn rate_ends_with_a_stop() -> bool {
    let mut bench = Bench::new();
    let slow = flow("slow", 64, Rate::FramesPerSecond(5), End::Never);
    bench.start(plan(Obeys::Nothing, vec![slow]));
    bench.until("a second of frames, and their rate", |now| {
        now.flows[0].received.frames >= 6 && now.flows[0].sent_rate.frames > 0.0
    });
    bench.engine.transmit(&[FlowIndex(0)], Order::Stop).unwrap();
    let stopped = bench.until("the stop", |now| now.flows[0].transmit == Transmit::Stopped);
    let still = bench.until("no rate of the flow and its port", |now| {
        let of_flow = &now.flows[0];
        let rates = [of_flow.sent_rate, of_flow.received_rate];
        let rates = rates.iter().chain([&now.ports[0].sent_rate]);
        rates.map(|rate| rate.frames).sum::<f64>() == 0.0
    });
    still.at - stopped.at <= 100 * MILLISECOND
}

#[test]
fn root_a_slow_flow_that_is_stopped_has_no_rate() {
    if !common::need_root("root_a_slow_flow_that_is_stopped_has_no_rate") {
        return;
    }
    until_not_spoilt(
        "a stopped flow kept its rate for 100 ms",
        rate_ends_with_a_stop,
    );
}

#[test]
fn root_ports_count_from_a_start_and_from_a_plan_on_as_flows_do() {
    if !common::need_root("root_ports_count_from_a_start_and_from_a_plan_on_as_flows_do") {
        return;
    }
    let rate = Rate::FramesPerSecond(10_000);
    let two = || {
        let flows = ["one", "other"].map(|name| flow(name, 64, rate, End::Frames(50)));
        plan(Obeys::Nothing, flows.to_vec())
    };
    let mut bench = Bench::new();
    let ports = |bench: &mut Bench| {
        let ports = bench.until_done().ports;
        [ports[0].sent.frames, ports[1].received.frames]
    };
    for _ in 0..2 {
        bench.engine.configure(two()).unwrap();
        let begun = bench.snapshot();
        assert_eq!(
            begun.ports[0].sent.frames + begun.ports[1].received.frames,
            0
        );
        for _ in 0..2 {
            let both = [FlowIndex(0), FlowIndex(1)];
            bench.engine.transmit(&both, Order::Start).unwrap();
            assert_eq!(ports(&mut bench), [100, 100]);
        }
        // Frames that the other has sent stay counted; those of this one are taken off.
        bench
            .engine
            .transmit(&[FlowIndex(1)], Order::Start)
            .unwrap();
        assert_eq!(ports(&mut bench), [100, 100]);
    }
}

#[test]
fn root_ports_agree_when_a_flow_without_a_stamp_starts_again_beside_others() {
    let test = "root_ports_agree_when_a_flow_without_a_stamp_starts_again_beside_others";
    if !common::need_root(test) {
        return;
    }
    let of = |name: &str| flow(name, 64, Rate::FramesPerSecond(10_000), End::Frames(50));
    let mut unstamped = of("unstamped");
    (unstamped.metrics.stamp, unstamped.metrics.latency) = (None, false);
    let mut storm = pauses(&[], 10_000, End::Frames(50));
    (storm.metrics.stamp, storm.metrics.latency) = (None, false);
    let mut bench = Bench::new();
    bench.start(plan(Obeys::Nothing, vec![of("data"), unstamped, storm]));
    let agree = |bench: &mut Bench| {
        let ports = bench.until_done().ports;
        for (from, to) in [(0, 1), (1, 0)] {
            assert_eq!(ports[from].sent.frames, ports[to].received.frames, "{from}");
        }
        [ports[0].sent.frames, ports[1].sent.frames]
    };
    assert_eq!(agree(&mut bench), [100, 50]);
    for (flow, sent) in [(1, [150, 50]), (2, [150, 100]), (1, [200, 100])] {
        bench
            .engine
            .transmit(&[FlowIndex(flow)], Order::Start)
            .unwrap();
        assert_eq!(agree(&mut bench), sent);
    }
    // All of them together begin anew, at both ports.
    let all = [0, 1, 2].map(FlowIndex);
    bench.engine.transmit(&all, Order::Start).unwrap();
    assert_eq!(agree(&mut bench), [100, 50]);
}

#[test]
fn root_arp_and_nd_of_flows_without_a_stamp_count_at_neither_port() {
    use Protocol::{Arp, Ethernet, Icmpv6, Ipv6};
    let test = "root_arp_and_nd_of_flows_without_a_stamp_count_at_neither_port";
    if !common::need_root(test) {
        return;
    }
    let of = |name: &str, headers: Vec<Header>, stamp| {
        let mut flow = flow(name, 96, Rate::FramesPerSecond(10_000), End::Frames(50));
        flow.packet.headers = headers;
        (flow.metrics.stamp, flow.metrics.latency) = (stamp, false);
        flow
    };
    let arp = || packet(&[Ethernet, Arp]).headers;
    let icmpv6 = |message| {
        let mut headers = packet(&[Ethernet, Ipv6]).headers;
        headers.push(header(Icmpv6, &[("type", Value::Fixed(message))]));
        headers
    };
    let mut bench = Bench::new();
    bench.start(plan(
        Obeys::Nothing,
        vec![
            of("arp", arp(), None),
            of("solicitation", icmpv6(135), None),
            of("echo", icmpv6(128), None),
            of("stamped", arp(), Some(Form::Whole)),
        ],
    ));
    let sent = |bench: &mut Bench| -> Vec<u64> {
        let done = bench.until_done();
        let octets = |count: Count| (count.frames, count.octets);
        assert_eq!(
            [done.ports[0].sent, done.ports[1].received].map(octets),
            [(100, 9600), (100, 9600)]
        );
        done.flows.iter().map(|flow| flow.sent.frames).collect()
    };
    assert_eq!(sent(&mut bench), [50; 4]);
    // Counts of others stay as they are, however often this flow was started.
    for (order, frames) in [(Order::Resume, 100), (Order::Start, 50), (Order::Start, 50)] {
        bench.engine.transmit(&[FlowIndex(0)], order).unwrap();
        assert_eq!(sent(&mut bench), [frames, 50, 50, 50], "{order:?}");
    }
}

#[test]
fn root_a_flow_that_has_ended_or_never_began_is_resumed_from_its_begin_and_counts_on() {
    let test = "root_a_flow_that_has_ended_or_never_began_is_resumed_from_its_begin_and_counts_on";
    if !common::need_root(test) {
        return;
    }
    let mut bench = Bench::new();
    let fifty = flow("one", 64, Rate::FramesPerSecond(10_000), End::Frames(50));
    bench
        .engine
        .configure(plan(Obeys::Nothing, vec![fifty]))
        .unwrap();
    for frames in [50, 100, 150] {
        bench
            .engine
            .transmit(&[FlowIndex(0)], Order::Resume)
            .unwrap();
        let done = bench.until_done();
        let flow = &done.flows[0];
        assert_eq!((flow.sent.frames, flow.received.frames), (frames, frames));
        assert_eq!((flow.duplicates, flow.sent), (0, flow.received));
        assert_eq!(done.ports[0].sent.frames, frames);
    }
    bench
        .engine
        .transmit(&[FlowIndex(0)], Order::Start)
        .unwrap();
    assert_eq!(bench.until_done().flows[0].received.frames, 50);
}

#[test]
fn root_a_flow_without_a_rate_sends_once_it_has_one() {
    if !common::need_root("root_a_flow_without_a_rate_sends_once_it_has_one") {
        return;
    }
    let mut bench = Bench::new();
    let still = flow("still", 64, Rate::Percent(0.0), End::Frames(50));
    let other = flow("other", 64, Rate::FramesPerSecond(10_000), End::Frames(50));
    bench.start(plan(Obeys::Nothing, vec![still, other]));
    let now = bench.until("the other's frames", |now| {
        now.flows[1].received.frames == 50
    });
    assert_eq!(now.flows[0].transmit, Transmit::Started);
    assert_eq!(now.flows[0].sent.frames, 0);
    let rate = Change::Rate(Rate::FramesPerSecond(10_000));
    bench.engine.update(&[(FlowIndex(0), rate)]).unwrap();
    assert_eq!(bench.until_done().flows[0].received.frames, 50);
}

#[test]
fn root_pause_frames_from_zeros_are_a_devices_unless_a_flow_sends_such() {
    let test = "root_pause_frames_from_zeros_are_a_devices_unless_a_flow_sends_such";
    if !common::need_root(test) {
        return;
    }
    let of_device = MacControl::pfc([Priority::new(3).unwrap()], Quanta(5)).emit([0; 6]);
    let seven = |bench: &Bench| {
        let socket = bench.namespace.run(|| PacketSocket::open("b")).unwrap();
        let socket = socket.unwrap();
        (0..7).for_each(|_| socket.send(&of_device).unwrap());
    };
    let mut bench = Bench::new();
    let warnings = bench.engine.configure(plan(Obeys::Nothing, Vec::new()));
    assert_eq!(warnings, Ok(Vec::new()));
    seven(&bench);
    let now = bench.until("seven frames", |now| now.ports[0].received.frames == 7);
    assert_eq!(now.ports[0].pfc_received[3], 7);
    assert_eq!(now.ports[0].undecided_pfc_received, [0; 8]);

    let fields = [
        ("src", Value::Fixed(0)),
        ("class_enable_vector", Value::Fixed(8)),
    ];
    let storm = pauses(&fields, 1000, End::Frames(5));
    let warnings = bench.engine.configure(plan(Obeys::Nothing, vec![storm]));
    assert!(
        matches!(&warnings.unwrap()[..], [Warning(text)] if text.contains("undecided")),
        "it is said"
    );
    bench
        .engine
        .transmit(&[FlowIndex(0)], Order::Start)
        .unwrap();
    bench.until_done();
    seven(&bench);
    let now = bench.until("all frames", |now| now.ports[0].received.frames == 12);
    assert_eq!(now.ports[0].undecided_pfc_received[3], 12);
    assert_eq!(
        (
            now.ports[0].pfc_received[3],
            now.ports[0].own_pfc_received[3]
        ),
        (0, 0)
    );
}
