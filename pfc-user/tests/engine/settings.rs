//! Settings of links that the machine refuses, or that somebody else changes meanwhile.

use std::net::IpAddr;

use validator::driver::kernel::link::{self, Property};
use validator_core::engine::plan::{End, Interface, Obeys, PortIndex, Rate};
use validator_core::engine::{Engine, Problem};

use crate::bench::{Bench, flow, plan};
use crate::common;

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
