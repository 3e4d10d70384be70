//! Frames that left are those that arrived, flow by flow.

use validator_core::engine::packet::Protocol;
use validator_core::engine::plan::{End, FlowIndex, Obeys, Rate};
use validator_core::engine::snapshot::{Count, Transmit};
use validator_core::engine::{Engine, Order};

use crate::bench::{Bench, flow, packet, plan};
use crate::common;

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
    assert_eq!(snapshot.ports[1].received.frames, 600);
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
