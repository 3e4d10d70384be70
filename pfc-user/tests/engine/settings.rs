//! Settings of links that the machine refuses, or that somebody else changes meanwhile.

use std::net::IpAddr;
use std::os::fd::{AsFd as _, AsRawFd as _};

use aya::maps::MapInfo;
use aya::programs::loaded_programs;
use pfc_ebpf::abi::flow::name::OWN;
use validator::driver::bpf::flow::FlowProgram;
use validator::driver::bpf::{XdpError, XdpMode};
use validator::driver::kernel::link::{self, Property};
use validator_core::engine::packet::Value;
use validator_core::engine::plan::{End, Flow, FlowIndex, Interface, Obeys, PortIndex, Rate};
use validator_core::engine::snapshot::Transmit;
use validator_core::engine::{Engine, Order, Problem, Warning};

use crate::common;
use crate::engine::bench::{Bench, flow, pauses, plan};

#[test]
fn root_an_mtu_that_the_kernel_refuses_leaves_the_plan_in_force() {
    if !common::need_root("root_an_mtu_that_the_kernel_refuses_leaves_the_plan_in_force") {
        return;
    }
    let endless = || flow("endless", 64, Rate::FramesPerSecond(10_000), End::Never);
    let mut bench = Bench::new();
    let mut good = plan(Obeys::Nothing, vec![endless()]);
    good.ports[1].mtu = Some(4000);
    bench.start(good);

    // The ports in another order, of which the first would do and the second is none at all.
    let mut refused = plan(Obeys::Nothing, vec![endless()]);
    refused.ports.swap(0, 1);
    refused.ports[0].mtu = Some(5000);
    refused.ports[1].mtu = Some(67);
    let problems = bench.engine.configure(refused).unwrap_err();
    let [Problem::Machine(why)] = &problems[..] else {
        panic!("{problems:?}");
    };
    assert!(why.contains("MTU is 67"), "{why}");

    let mtu = |name: &str| link::state(&bench.namespace, name).unwrap().mtu;
    assert_eq!((mtu("a"), mtu("b")), (9200, 4000));
    let before = bench.snapshot();
    let counted = before.flows[0].received.frames;
    bench.until("frames of the plan in force", |now| {
        now.flows[0].received.frames > counted + 100 && now.ports[0].sent.frames > counted + 100
    });
}

/// The kernel no longer lets anybody write the map of own sources of that port's program.
fn freeze_sources(bench: &Bench, port: &str) {
    const BPF_MAP_FREEZE: libc::c_int = 22;
    let taken = bench
        .namespace
        .run(|| FlowProgram::attach(port, XdpMode::default(), 1));
    let Err(XdpError::Occupied { program, .. }) = taken.unwrap() else {
        panic!("{port} has no program");
    };
    let mut programs = loaded_programs().filter_map(Result::ok);
    let info = programs.find(|info| info.id() == program.id).unwrap();
    let maps = info.map_ids().unwrap().unwrap().into_iter();
    let mut maps = maps.map(|id| MapInfo::from_id(id).unwrap());
    let own = maps.find(|map| map.name_as_str() == Some(OWN)).unwrap();
    let fd = own.fd().unwrap();
    let attributes = fd.as_fd().as_raw_fd();
    // SAFETY: the call reads the map's descriptor, which is open and all that it has attributes.
    let frozen = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_FREEZE,
            &raw const attributes,
            size_of_val(&attributes),
        )
    };
    assert_eq!(frozen, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn root_a_plan_that_the_machine_refuses_late_leaves_the_one_before_as_it_was() {
    let test = "root_a_plan_that_the_machine_refuses_late_leaves_the_one_before_as_it_was";
    if !common::need_root(test) {
        return;
    }
    let storm = |source| Flow {
        from: PortIndex(0),
        to: vec![PortIndex(1)],
        ..pauses(
            &[
                ("src", Value::Fixed(source)),
                ("class_enable_vector", Value::Fixed(1)),
                ("pause_class_0", Value::Fixed(1)),
            ],
            1000,
            End::Never,
        )
    };
    let data = flow("data", 64, Rate::FramesPerSecond(1000), End::Never);
    let mut bench = Bench::new();
    bench.start(plan(Obeys::Nothing, vec![data, storm(1)]));
    bench.until("frames of both flows", |now| {
        now.flows.iter().all(|flow| flow.sent.frames > 10)
    });

    // The first port of the plan takes all of it. The second refuses the source of its flow.
    freeze_sources(&bench, "a");
    let mut refused = plan(Obeys::Nothing, vec![storm(2)]);
    refused.ports.swap(0, 1);
    refused.flows[0].from = PortIndex(1);
    refused.flows[0].to = vec![PortIndex(0)];
    refused.ports[0].mtu = Some(4000);
    let problems = bench.engine.configure(refused).unwrap_err();
    assert!(
        matches!(&problems[..], [Problem::Machine(_)]),
        "{problems:?}"
    );

    let mtu = |name: &str| link::state(&bench.namespace, name).unwrap().mtu;
    assert_eq!((mtu("a"), mtu("b")), (9200, 9200));
    let before = bench.snapshot();
    assert_eq!(before.flows.len(), 2);
    let now = bench.until("frames of both flows, which go on", |now| {
        let more = |flow: usize| now.flows[flow].sent.frames > before.flows[flow].sent.frames + 100;
        more(0)
            && more(1)
            && now.flows[0].received.frames > before.flows[0].received.frames + 100
            && now.ports[1].own_pfc_received[0] > before.ports[1].own_pfc_received[0] + 100
    });
    assert_eq!(now.ports[1].pfc_received, [0; 8]);
    // Orders reach the flows that they mean.
    bench.engine.transmit(&[FlowIndex(0)], Order::Stop).unwrap();
    let states = bench
        .snapshot()
        .flows
        .iter()
        .map(|flow| flow.transmit)
        .collect::<Vec<_>>();
    assert_eq!(states, [Transmit::Stopped, Transmit::Started]);
}

#[test]
fn root_a_link_that_somebody_else_took_down_stays_as_it_was_ordered() {
    if !common::need_root("root_a_link_that_somebody_else_took_down_stays_as_it_was_ordered") {
        return;
    }
    let mut bench = Bench::new();
    bench.start(plan(Obeys::Nothing, Vec::new()));
    let set = |bench: &Bench, up| link::set(&bench.namespace, "b", Property::Up(up)).unwrap();
    let is_up = |bench: &Bench| link::state(&bench.namespace, "b").unwrap().up;

    set(&bench, false);
    for _ in 0..2 {
        bench.engine.link(PortIndex(1), true).unwrap();
        assert!(is_up(&bench));
    }
    bench.engine.link(PortIndex(1), false).unwrap();
    assert!(!is_up(&bench));

    // Taken down by order, set up by somebody else, and taken down again.
    bench.engine.link(PortIndex(0), false).unwrap();
    link::set(&bench.namespace, "a", Property::Up(true)).unwrap();
    bench.engine.link(PortIndex(0), false).unwrap();
    assert!(!link::state(&bench.namespace, "a").unwrap().up);
    let Bench { engine, namespace } = bench;
    drop(engine);
    assert!(link::state(&namespace, "a").unwrap().up);
}

#[test]
fn root_a_port_whose_mac_may_keep_pause_frames_is_warned_of_where_it_obeys_them() {
    let test = "root_a_port_whose_mac_may_keep_pause_frames_is_warned_of_where_it_obeys_them";
    if !common::need_root(test) {
        return;
    }
    let mut bench = Bench::new();
    link::set(&bench.namespace, "lo", Property::Up(true)).unwrap();
    // The kernel does not call it a link in software, and its driver is not in the table.
    let mut of_lo = plan(Obeys::Pause, Vec::new());
    of_lo.ports[1].interface = "lo".into();
    assert_eq!(bench.engine.configure(of_lo.clone()), Ok(Vec::new()));
    of_lo.ports[1].obeys = Obeys::Pause;
    let warnings = bench.engine.configure(of_lo).unwrap();
    let [Warning(text)] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    assert!(
        text.starts_with("port \"b\"") && text.contains("MACs keep them"),
        "{text}"
    );
}

#[test]
fn root_a_gateway_of_another_family_is_refused() {
    if !common::need_root("root_a_gateway_of_another_family_is_refused") {
        return;
    }
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    let mut bench = Bench::new();
    let mut mixed = plan(Obeys::Nothing, Vec::new());
    mixed.interfaces.push(Interface {
        name: "host".into(),
        port: PortIndex(0),
        mac: [2, 0, 0, 0, 0, 9],
        vlans: Vec::new(),
        address: address("198.18.0.1"),
        prefix: 24,
        gateway: address("2001:db8::2"),
    });
    let problems = bench.engine.configure(mixed).unwrap_err();
    assert!(
        matches!(&problems[..], [Problem::Order(why)] if why.contains("one family")),
        "{problems:?}"
    );
}
