//! Frames that an engine keeps apart, and settings that it takes and puts back.

use std::net::IpAddr;

use pfc_ebpf::flow_stamp::{self, FlowStamp};
use validator::driver::kernel::link;
use validator::driver::kernel::packet::PacketSocket;
use validator::engine::{LiveEngine, Options};
use validator_core::engine::plan::{End, FlowIndex, Interface, Obeys, PortIndex, Rate};
use validator_core::engine::{Engine, Order, Problem};

use crate::common;
use crate::engine::bench::{Bench, flow, plan};

#[test]
fn root_frames_of_an_earlier_start_count_nowhere() {
    if !common::need_root("root_frames_of_an_earlier_start_count_nowhere") {
        return;
    }
    let mut bench = Bench::new();
    let plan = plan(
        Obeys::Nothing,
        vec![flow(
            "one",
            64,
            Rate::FramesPerSecond(10_000),
            End::Frames(50),
        )],
    );
    bench.engine.configure(plan).unwrap();
    bench.engine.capture(&[PortIndex(1)], true).unwrap();
    let start = |bench: &mut Bench| {
        bench
            .engine
            .transmit(&[FlowIndex(0)], Order::Start)
            .unwrap();
        bench.until_done()
    };
    start(&mut bench);
    let old = bench.engine.captured(PortIndex(1)).unwrap().unwrap();
    assert_eq!(start(&mut bench).flows[0].received.frames, 50);
    let socket = bench.namespace.run(|| PacketSocket::open("a")).unwrap();
    let socket = socket.unwrap();
    for frame in old.frames.iter() {
        socket.send(&frame.octets).unwrap();
    }
    let now = bench.until("the old frames", |now| now.ports[1].received.frames == 100);
    let flow = &now.flows[0];
    assert_eq!((flow.received.frames, flow.duplicates), (50, 0));
    // Frames of this start do count, a second time.
    let captured = bench.engine.captured(PortIndex(1)).unwrap().unwrap();
    socket.send(&captured.frames[60].octets).unwrap();
    bench.until("a duplicate", |now| now.flows[0].duplicates == 1);
}

#[test]
fn root_a_frame_that_nobody_sent_is_one_more_than_left() {
    if !common::need_root("root_a_frame_that_nobody_sent_is_one_more_than_left") {
        return;
    }
    let (one, end) = (Rate::FramesPerSecond(10_000), End::Frames(50));
    let mut bench = Bench::new();
    let plan = plan(Obeys::Nothing, vec![flow("one", 64, one, end)]);
    bench.engine.configure(plan).unwrap();
    bench.engine.capture(&[PortIndex(1)], true).unwrap();
    let flows = [FlowIndex(0)];
    bench.engine.transmit(&flows, Order::Start).unwrap();
    bench.until_done();
    let captured = bench.engine.captured(PortIndex(1)).unwrap().unwrap();
    let mut frame = captured.frames[49].octets.clone();
    let stamp = frame.last_chunk_mut::<{ flow_stamp::LEN }>().unwrap();
    let last = FlowStamp::read(*stamp).unwrap();
    let next = FlowStamp {
        sequence: last.sequence + 1,
        ..last
    };
    *stamp = next.emit();
    let socket = bench.namespace.run(|| PacketSocket::open("a")).unwrap();
    socket.unwrap().send(&frame).unwrap();
    let now = bench.until("that frame", |now| now.flows[0].received.frames == 51);
    let flow = &now.flows[0];
    assert_eq!(
        (flow.sent.frames, flow.duplicates, flow.corrupt),
        (50, 0, 0)
    );
}

#[test]
fn root_a_frame_at_a_port_that_is_not_its_own_is_a_leak() {
    if !common::need_root("root_a_frame_at_a_port_that_is_not_its_own_is_a_leak") {
        return;
    }
    let mut astray = flow("astray", 64, Rate::FramesPerSecond(10_000), End::Frames(50));
    astray.to = vec![PortIndex(0)];
    let mut bench = Bench::new();
    bench.start(plan(Obeys::Nothing, vec![astray]));
    let done = bench.until_done();
    assert_eq!(
        (done.flows[0].received.frames, done.flows[0].leaked),
        (0, 50)
    );
}

#[test]
fn root_interfaces_find_their_next_hops_and_flows_go_to_them() {
    if !common::need_root("root_interfaces_find_their_next_hops_and_flows_go_to_them") {
        return;
    }
    let pairs = [
        ("198.18.0.1", "198.18.0.2", vec![]),
        ("2001:db8::1", "2001:db8::2", vec![]),
        ("198.18.0.1", "198.18.0.2", vec![7]),
    ];
    let mut plan = plan(
        Obeys::Nothing,
        vec![flow("one", 64, Rate::FramesPerSecond(1000), End::Frames(5))],
    );
    for (here, there, vlans) in &pairs {
        for (port, address, gateway) in [(0, here, there), (1, there, here)] {
            plan.interfaces.push(Interface {
                name: format!("interface {}", plan.interfaces.len()),
                port: PortIndex(port),
                mac: [2, 0, 0, 9, 0, plan.interfaces.len() as u8],
                vlans: vlans.clone(),
                address: address.parse().unwrap(),
                prefix: 24,
                gateway: gateway.parse().unwrap(),
            });
        }
    }
    plan.flows[0].next_hops = vec![4];
    let mut bench = Bench::new();
    bench.engine.configure(plan).unwrap();
    let end = std::time::Instant::now() + crate::engine::bench::PATIENCE;
    let mut found = bench.engine.neighbours();
    while found.iter().any(|neighbour| neighbour.mac.is_none()) {
        assert!(std::time::Instant::now() < end, "{found:?}");
        std::thread::sleep(std::time::Duration::from_millis(5));
        found = bench.engine.neighbours();
    }
    assert_eq!(found.len(), 6);
    for (place, neighbour) in found.iter().enumerate() {
        assert_eq!(neighbour.mac, Some([2, 0, 0, 9, 0, (place ^ 1) as u8]));
        let there: IpAddr = pairs[place / 2].1.parse().unwrap();
        assert_eq!(neighbour.address == there, place % 2 == 0);
    }
    // Their ARP and ND crossed the cable, and no port counts any of it.
    for port in bench.snapshot().ports {
        assert_eq!((port.sent.frames, port.received.frames), (0, 0));
    }
    bench.engine.capture(&[PortIndex(1)], true).unwrap();
    bench
        .engine
        .transmit(&[FlowIndex(0)], Order::Start)
        .unwrap();
    bench.until("its frames", |now| now.flows[0].received.frames == 5);
    let captured = bench.engine.captured(PortIndex(1)).unwrap().unwrap();
    let mut of_flow = captured
        .frames
        .iter()
        .filter(|frame| frame.octets[12..14] == [8, 0]);
    assert!(of_flow.all(|frame| frame.octets[..6] == [2, 0, 0, 9, 0, 5]));
}

#[test]
fn root_a_flow_whose_next_hop_is_silent_is_refused_and_nothing_is_touched() {
    let test = "root_a_flow_whose_next_hop_is_silent_is_refused_and_nothing_is_touched";
    if !common::need_root(test) {
        return;
    }
    let endless = |name| flow(name, 64, Rate::FramesPerSecond(1000), End::Never);
    let mut plan = plan(
        Obeys::Nothing,
        ["goes on", "lost", "lost, too"].map(endless).into(),
    );
    for (place, (address, gateway)) in
        [("198.18.0.1", "198.18.0.9"), ("2001:db8::1", "2001:db8::9")]
            .into_iter()
            .enumerate()
    {
        plan.interfaces.push(Interface {
            name: format!("interface {place}"),
            port: PortIndex(0),
            mac: [2, 0, 0, 9, 0, place as u8],
            vlans: Vec::new(),
            address: address.parse().unwrap(),
            prefix: 24,
            gateway: gateway.parse().unwrap(),
        });
        plan.flows[1 + place].next_hops = vec![place];
    }
    let mut bench = Bench::new();
    let flows = crate::engine::bench::all(&plan);
    bench.engine.configure(plan).unwrap();
    bench.engine.transmit(&flows[..1], Order::Start).unwrap();
    let before = bench.until("a flow without a next hop", |now| {
        now.flows[0].sent.frames > 10
    });
    let problems = bench.engine.transmit(&flows, Order::Start).unwrap_err();
    let expected = [
        ["\"lost\"", "198.18.0.9", "ARP", "\"interface 0\""],
        ["\"lost, too\"", "2001:db8::9", "ND", "\"interface 1\""],
    ];
    assert_eq!(problems.len(), 2, "{problems:?}");
    for (problem, parts) in problems.iter().zip(expected) {
        let Problem::Order(text) = problem else {
            panic!("{problem:?}");
        };
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    let now = bench.until("the flow that was sent", |now| {
        now.flows[0].sent.frames > before.flows[0].sent.frames
    });
    assert_eq!([1, 2].map(|flow| now.flows[flow].sent.frames), [0, 0]);
    // Nor does a stop need a next hop.
    bench.engine.transmit(&flows, Order::Stop).unwrap();
}

#[test]
fn root_links_go_down_and_up_and_are_put_back() {
    if !common::need_root("root_links_go_down_and_up_and_are_put_back") {
        return;
    }
    let mut bench = Bench::new();
    let mut plan = plan(
        Obeys::Nothing,
        vec![flow("one", 1024, Rate::FramesPerSecond(2000), End::Never)],
    );
    plan.ports[0].mtu = Some(4000);
    bench.start(plan);
    let up = |bench: &Bench, port: &str| link::state(&bench.namespace, port).unwrap();
    assert_eq!(up(&bench, "a").mtu, 4000);
    bench.until("frames", |now| now.flows[0].received.frames > 10);
    bench.engine.link(PortIndex(1), false).unwrap();
    let down = bench.until("both links down", |now| {
        now.ports.iter().all(|port| !port.link_up)
    });
    bench.engine.link(PortIndex(1), true).unwrap();
    bench.engine.link(PortIndex(1), true).unwrap();
    let before = down.flows[0].received.frames;
    bench.until("frames again", |now| {
        now.ports.iter().all(|port| port.link_up) && now.flows[0].received.frames > before + 100
    });
    bench.engine.link(PortIndex(0), false).unwrap();
    assert!(!up(&bench, "a").up);
    let Bench { engine, namespace } = bench;
    drop(engine);
    let state = link::state(&namespace, "a").unwrap();
    assert_eq!((state.up, state.mtu), (true, 9200));
    // The program is gone: another engine takes the ports.
    let engine = namespace.run(|| LiveEngine::new(Options::default()));
    let mut engine = engine.unwrap().unwrap();
    let again = crate::engine::bench::plan(Obeys::Nothing, Vec::new());
    assert_eq!(engine.configure(again), Ok(Vec::new()));
}

#[test]
fn root_a_plan_with_defects_leaves_the_one_before_in_force() {
    if !common::need_root("root_a_plan_with_defects_leaves_the_one_before_in_force") {
        return;
    }
    let mut bench = Bench::new();
    bench.start(plan(
        Obeys::Nothing,
        vec![flow("one", 64, Rate::FramesPerSecond(5000), End::Never)],
    ));
    let mut wrong = plan(
        Obeys::Nothing,
        vec![
            flow("short", 60, Rate::FramesPerSecond(1), End::Never),
            flow("back", 64, Rate::Percent(-1.0), End::Never),
            flow("lost", 64, Rate::FramesPerSecond(1), End::Never),
        ],
    );
    wrong.flows[2].from = PortIndex(7);
    let problems = bench.engine.configure(wrong).unwrap_err();
    let is_named = |name: &str| {
        problems
            .iter()
            .any(|problem| problem.to_string().contains(&format!("\"{name}\"")))
    };
    assert!(
        is_named("short") && is_named("back") && is_named("lost"),
        "{problems:?}"
    );
    let long = flow("long", 9600, Rate::FramesPerSecond(1), End::Never);
    let problems = bench
        .engine
        .configure(plan(Obeys::Nothing, vec![long]))
        .unwrap_err();
    assert!(
        matches!(&problems[..], [Problem::Order(text)] if text.contains("MTU of 9200")),
        "{problems:?}"
    );
    // Each of the ports is named, by what of it the plan has wrong.
    let mut gone = plan(Obeys::Nothing, Vec::new());
    gone.ports[0].namespace = Some("nowhere".into());
    gone.ports[1].interface = "gone".into();
    let problems = bench.engine.configure(gone).unwrap_err();
    let [Problem::Order(nowhere), Problem::Order(gone)] = &problems[..] else {
        panic!("{problems:?}");
    };
    let namespace = "port \"a\": there is no network namespace \"nowhere\"";
    assert!(nowhere.starts_with(namespace), "{nowhere}");
    let interface = "port \"b\": there is no interface \"gone\"";
    assert!(gone.starts_with(interface), "{gone}");
    let mut speedless = plan(Obeys::Nothing, Vec::new());
    speedless.ports.remove(0);
    speedless.ports[0].line_rate = None;
    speedless.ports[0].obeys = Obeys::Pause;
    // Where the plan before gave the port a line rate, that was its own word.
    let other = bench.namespace.run(|| LiveEngine::new(Options::default()));
    for engine in [&mut other.unwrap().unwrap(), &mut bench.engine] {
        let problems = engine.configure(speedless.clone()).unwrap_err();
        assert!(
            matches!(&problems[..], [Problem::Order(text)] if text.contains("`layer1.speed`")),
            "{problems:?}"
        );
    }
    let before = bench.snapshot().flows[0].sent.frames;
    bench.until("the first plan's flow", |now| {
        now.flows[0].sent.frames > before
    });
}
