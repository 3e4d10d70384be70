//! Interfaces that somebody else deletes, takes down or changes while a plan is in force.

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::{self, Command};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use validator::driver::kernel::link::{self, Property};
use validator::driver::kernel::netns::Namespace;
use validator_core::engine::plan::{End, Flow, FlowIndex, Obeys, Plan, PortIndex, Rate};
use validator_core::engine::{Engine, Order, Problem, Warning};

use crate::common;
use crate::engine::bench::{Bench, PATIENCE, cable, flow, plan};

const FLOWS: [FlowIndex; 1] = [FlowIndex(0)];

fn fifty(length: u32) -> Flow {
    flow(
        "one",
        length,
        Rate::FramesPerSecond(10_000),
        End::Frames(50),
    )
}

fn plan_of(length: u32) -> Plan {
    plan(Obeys::Nothing, vec![fifty(length)])
}

fn ip(namespace: &Namespace, arguments: &[&str]) {
    let mut ip = Command::new("ip");
    ip.args(arguments);
    let status = namespace.run(|| ip.status()).unwrap();
    assert!(status.unwrap().success(), "{arguments:?}");
}

/// Deletes the cable between the ports.
fn delete(bench: &Bench) {
    ip(&bench.namespace, &["link", "delete", "dev", "a"]);
}

/// Moves port `a` to another namespace and back, where it is as before.
fn move_there_and_back(bench: &Bench) {
    let here = &bench.namespace;
    let index = || link::state(here, "a").unwrap().index;
    let before = index();
    let there = Namespace::new().unwrap();
    for (from, to) in [(here, &there), (&there, here)] {
        let to = format!("/proc/{}/fd/{}", process::id(), to.as_fd().as_raw_fd());
        ip(from, &["link", "set", "dev", "a", "netns", &to]);
    }
    assert_eq!(index(), before);
    // Its neighbour discovery would be counted where it arrives.
    let quiet = || fs::write("/proc/sys/net/ipv6/conf/a/disable_ipv6", "1");
    match here.run(quiet).unwrap() {
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => other.unwrap(),
    }
    set(bench, "a", Property::Up(true));
}

fn set(bench: &Bench, port: &str, property: Property) {
    link::set(&bench.namespace, port, property).unwrap();
}

/// All orders that need the ports are refused with words that each have one of these.
fn refused(bench: &mut Bench, words: &[&str]) {
    for order in [Order::Start, Order::Resume] {
        let problems = bench.engine.transmit(&FLOWS, order).unwrap_err();
        assert_eq!(problems.len(), words.len(), "{problems:?}");
        for (problem, word) in problems.iter().zip(words) {
            let Problem::Order(text) = problem else {
                panic!("{problem:?}");
            };
            assert!(text.contains(word), "{text}");
        }
    }
}

fn fifty_arrive(bench: &mut Bench) {
    bench.engine.transmit(&FLOWS, Order::Start).unwrap();
    let done = bench.until_done();
    assert_eq!(done.flows[0].received.frames, 50);
}

#[test]
fn root_ports_that_are_deleted_are_down_and_refused_by_name_until_they_are_configured_again() {
    let test =
        "root_ports_that_are_deleted_are_down_and_refused_by_name_until_they_are_configured_again";
    if !common::need_root(test) {
        return;
    }
    let mut bench = Bench::new();
    bench.engine.configure(plan_of(64)).unwrap();
    fifty_arrive(&mut bench);

    delete(&bench);
    let gone = bench.snapshot();
    assert_eq!(gone.flows[0].received.frames, 50);
    assert!(gone.ports.iter().all(|port| !port.link_up));
    refused(&mut bench, &["\"a\": a is gone", "\"b\": b is gone"]);
    assert!(bench.engine.capture(&[PortIndex(1)], true).is_err());
    let problems = bench.engine.configure(plan_of(64)).unwrap_err();
    assert!(matches!(
        &problems[..],
        [Problem::Order(_), Problem::Order(_)]
    ));

    cable(&bench.namespace, "a", "b");
    assert!(bench.snapshot().ports.iter().all(|port| !port.link_up));
    refused(
        &mut bench,
        &["\"a\": a was deleted", "\"b\": b was deleted"],
    );
    assert!(bench.engine.link(PortIndex(0), false).is_err());
    assert!(link::state(&bench.namespace, "a").unwrap().up);

    bench.engine.configure(plan_of(64)).unwrap();
    fifty_arrive(&mut bench);
    let Bench { engine, namespace } = bench;
    drop(engine);
    assert!(link::state(&namespace, "a").unwrap().up);
}

#[test]
fn root_a_port_that_was_moved_there_and_back_is_refused_until_it_is_configured_again() {
    let test = "root_a_port_that_was_moved_there_and_back_is_refused_until_it_is_configured_again";
    if !common::need_root(test) {
        return;
    }
    let mut bench = Bench::new();
    bench.engine.configure(plan_of(64)).unwrap();
    fifty_arrive(&mut bench);

    move_there_and_back(&bench);
    refused(&mut bench, &["\"a\": a was taken away and is back"]);
    assert!(bench.engine.link(PortIndex(0), false).is_err());
    bench.engine.configure(plan_of(64)).unwrap();
    fifty_arrive(&mut bench);
}

#[test]
fn root_counts_of_a_port_go_on_while_another_is_gone() {
    if !common::need_root("root_counts_of_a_port_go_on_while_another_is_gone") {
        return;
    }
    let mut bench = Bench::new();
    cable(&bench.namespace, "c", "d");
    let mut four = plan_of(64);
    for name in ["c", "d"] {
        let mut port = four.ports[0].clone();
        (port.name, port.interface) = (name.into(), name.into());
        four.ports.push(port);
    }
    (four.flows[0].from, four.flows[0].to) = (PortIndex(2), vec![PortIndex(3)]);
    bench.engine.configure(four).unwrap();
    delete(&bench);
    bench.engine.transmit(&FLOWS, Order::Start).unwrap();
    let now = bench.until("all frames", |now| now.flows[0].received.frames == 50);
    let links: Vec<bool> = now.ports.iter().map(|port| port.link_up).collect();
    assert_eq!(links, [false, false, true, true]);
}

#[test]
fn root_a_link_that_somebody_else_took_down_is_named_and_one_taken_down_by_order_is_not() {
    let test =
        "root_a_link_that_somebody_else_took_down_is_named_and_one_taken_down_by_order_is_not";
    if !common::need_root(test) {
        return;
    }
    let mut bench = Bench::new();
    bench.engine.configure(plan_of(64)).unwrap();
    set(&bench, "a", Property::Up(false));
    refused(&mut bench, &["`ip link set dev a up`"]);
    assert!(bench.engine.configure(plan_of(64)).is_err());
    set(&bench, "a", Property::Up(true));
    fifty_arrive(&mut bench);

    bench.engine.link(PortIndex(1), false).unwrap();
    bench.engine.transmit(&FLOWS, Order::Start).unwrap();
    // Another plan has its links, as if none had been before it.
    assert_eq!(bench.engine.configure(plan_of(64)), Ok(Vec::new()));
    assert!(link::state(&bench.namespace, "b").unwrap().up);
    fifty_arrive(&mut bench);
}

#[test]
fn root_an_mtu_that_somebody_else_changed_is_named_and_taken_with_the_next_plan() {
    let test = "root_an_mtu_that_somebody_else_changed_is_named_and_taken_with_the_next_plan";
    if !common::need_root(test) {
        return;
    }
    let mut bench = Bench::new();
    bench.engine.configure(plan_of(3000)).unwrap();
    for port in ["a", "b"] {
        set(&bench, port, Property::Mtu(1500));
        let why = format!("too long for {port}, which takes 1518 with an MTU of 1500");
        refused(&mut bench, &[&why]);
        set(&bench, port, Property::Mtu(9200));
    }
    fifty_arrive(&mut bench);
    set(&bench, "a", Property::Mtu(1500));
    let problems = bench.engine.configure(plan_of(3000)).unwrap_err();
    assert!(matches!(&problems[..], [Problem::Order(_)]), "{problems:?}");
    bench.engine.configure(plan_of(1518)).unwrap();
    fifty_arrive(&mut bench);
    set(&bench, "a", Property::Mtu(9200));
    set(&bench, "b", Property::Mtu(1500));
    let warnings = bench.engine.configure(plan_of(3000)).unwrap();
    assert!(
        matches!(&warnings[..], [Warning(text)] if text.contains("too long for b")),
        "{warnings:?}"
    );
}

/// Warnings of the engine about flows that are sent without end while `change` is made at their
/// port. Waits until there is one.
fn warnings_of(length: u32, change: impl FnOnce(&mut Bench)) -> String {
    let mut bench = Bench::new();
    let endless = flow("one", length, Rate::FramesPerSecond(10_000), End::Never);
    bench.start(plan(Obeys::Nothing, vec![endless]));
    bench.until("a frame", |now| now.flows[0].received.frames > 0);
    assert!(bench.engine.notices().is_empty());
    change(&mut bench);
    let end = Instant::now() + PATIENCE;
    let warnings = loop {
        let warnings = bench.engine.notices();
        if !warnings.is_empty() {
            break warnings;
        }
        assert!(Instant::now() < end, "nothing was told");
        thread::sleep(Duration::from_millis(1));
    };
    assert!(bench.engine.notices().is_empty());
    let warnings: Vec<_> = warnings.into_iter().map(|warning| warning.0).collect();
    warnings.join("\n")
}

#[test]
fn root_what_ends_or_stalls_a_flow_that_is_sent_is_told_once_by_name() {
    if !common::need_root("root_what_ends_or_stalls_a_flow_that_is_sent_is_told_once_by_name") {
        return;
    }
    let warnings = warnings_of(3000, |bench| set(bench, "a", Property::Mtu(1500)));
    assert!(
        warnings.contains("flow \"one\" ended early: a no longer takes"),
        "{warnings}"
    );
    let warnings = warnings_of(64, |bench| set(bench, "a", Property::Up(false)));
    assert!(
        warnings.contains("port \"a\": a took no frames for a time"),
        "{warnings}"
    );
    assert!(warnings.contains("`ip link set dev a up`"), "{warnings}");
    let warnings = warnings_of(64, |bench| delete(bench));
    assert!(warnings.contains("\"a\": a is gone"), "{warnings}");
    assert!(
        warnings.contains("what was due meanwhile never left"),
        "{warnings}"
    );
}

#[test]
fn root_a_link_taken_down_by_order_is_no_news() {
    if !common::need_root("root_a_link_taken_down_by_order_is_no_news") {
        return;
    }
    let mut bench = Bench::new();
    let endless = flow("one", 64, Rate::FramesPerSecond(10_000), End::Never);
    bench.start(plan(Obeys::Nothing, vec![endless]));
    let sent = bench.until("a frame", |now| now.flows[0].sent.frames > 0);
    bench.engine.link(PortIndex(0), false).unwrap();
    bench.until("a silence", |now| now.flows[0].sent_rate.frames == 0.0);
    bench.engine.link(PortIndex(0), true).unwrap();
    bench.until("more frames", |now| {
        now.flows[0].sent.frames > sent.flows[0].sent.frames + 100
    });
    assert_eq!(bench.engine.notices(), []);
}
