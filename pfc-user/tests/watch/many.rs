//! Ports that share their programs: each has counts of its own, wherever it is.

use std::thread;
use std::time::Instant;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::watch::PORTS;
use pfc_ebpf::stamp::{Phase, Stamp};
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::bpf::XdpMode;
use validator::driver::bpf::watch::{Direction, Point, Settings, Watch};
use validator::driver::kernel::link;

use crate::common::need_root;
use crate::frames::TestFrame;
use crate::watch::lab::{Lab, PATIENCE};
use crate::watch::settings;

const AT_XDP: Point = Point::Xdp(XdpMode::Auto);

/// XOFF for one priority.
fn xoff(priority: usize) -> Vec<u8> {
    let control = MacControl::Pfc {
        vector: 1 << priority,
        quanta: [9; 8],
    };
    control.emit([2, 0, 0, 0, 0, 5]).to_vec()
}

fn test_frame(sequence: u64) -> Vec<u8> {
    let stamp = Stamp {
        run: 7,
        flow: 1,
        phase: Phase::Baseline,
        sequence,
        time: 1,
    };
    TestFrame::new(stamp).octets()
}

/// Waits until a port has counted so many PFC frames.
fn await_pfc(watch: &Watch, frames: u64) {
    let begin = Instant::now();
    loop {
        let counted = watch.read().unwrap().counters.pfc_frames;
        if counted == frames {
            return;
        }
        assert!(
            counted < frames && begin.elapsed() < PATIENCE,
            "{counted} of {frames} PFC frames"
        );
        thread::yield_now();
    }
}

#[test]
fn root_more_ports_than_an_object_has_entries_count_apart() {
    if !need_root("root_more_ports_than_an_object_has_entries_count_apart") {
        return;
    }
    // Every third tells flows apart, every other one keeps control frames.
    let ports: Vec<Settings> = (0..PORTS as u32 + 3)
        .map(|port| Settings {
            flows: if port % 3 == 0 { 2 } else { 0 },
            capture: port % 2 == 0,
            ..settings(Trust::Dscp)
        })
        .collect();
    let mut watches = Watch::of_ports(&ports).unwrap();
    assert_eq!(watches.len(), ports.len());
    // As many control frames of one priority as the port's number, and a test frame more.
    for (port, watch) in watches.iter().enumerate() {
        if port > 0 {
            watch.test_run(&xoff(port % 8), port as u32).unwrap();
        }
        for sequence in 0..=port as u64 {
            watch.test_run(&test_frame(sequence), 1).unwrap();
        }
    }
    for (port, (watch, settings)) in watches.iter_mut().zip(&ports).enumerate() {
        let reading = watch.read().unwrap();
        let counters = &reading.counters;
        assert_eq!(counters.pfc[port % 8].xoff, port as u64, "port {port}");
        assert_eq!(counters.pfc_frames, port as u64, "port {port}");
        assert_eq!(counters.stamped, port as u64 + 1, "port {port}");
        for class in 0..8 {
            let paused = port > 0 && class == port % 8;
            assert_eq!(reading.paused[class] > 0, paused, "port {port}: {class}");
        }
        let kept = if settings.capture { port } else { 0 };
        assert_eq!(watch.controls().unwrap().len(), kept, "port {port}");
        let flows: Vec<_> = watch.flows().unwrap().iter().map(|f| f.distinct).collect();
        let (expected, sorted) = match settings.flows {
            0 => (vec![], 0),
            _ => (vec![port as u64 + 1], port as u64 + 1),
        };
        assert_eq!(flows, expected, "port {port}: the same flow on each port");
        assert_eq!(watch.sketch().unwrap().sorted(), sorted, "port {port}");
    }
}

#[test]
fn root_interfaces_of_one_index_in_two_namespaces_count_apart() {
    if !need_root("root_interfaces_of_one_index_in_two_namespaces_count_apart") {
        return;
    }
    for point in [AT_XDP, Point::tc(Direction::Ingress)] {
        let labs = [Lab::new(), Lab::new()];
        let index = |lab: &Lab| link::state(&lab.tester, "t0").unwrap().index;
        assert_eq!(index(&labs[0]), index(&labs[1]), "else this shows nothing");
        let mut watches = Watch::of_ports(&[settings(Trust::Dscp); 2]).unwrap();
        for (lab, watch) in labs.iter().zip(&mut watches) {
            let attached = lab.tester.run(|| watch.attach_to("t0", point));
            attached.unwrap().unwrap();
        }
        for (lab, frames) in labs.iter().zip([3, 5]) {
            let port = lab.device_port();
            (0..frames).for_each(|_| port.send(&xoff(3)).unwrap());
        }
        await_pfc(&watches[0], 3);
        await_pfc(&watches[1], 5);
    }
}

#[test]
fn root_a_port_that_ends_or_is_removed_leaves_the_others_counting() {
    if !need_root("root_a_port_that_ends_or_is_removed_leaves_the_others_counting") {
        return;
    }
    let lab = Lab::new();
    let mut watches = Watch::of_ports(&[settings(Trust::Dscp); 3]).unwrap();
    let places = [
        ("t0", AT_XDP),
        ("t1", AT_XDP),
        ("t1", Point::tc(Direction::Ingress)),
    ];
    for (watch, (interface, point)) in watches.iter_mut().zip(places) {
        let attached = lab.tester.run(|| watch.attach_to(interface, point));
        attached.unwrap().unwrap();
    }
    let behind = watches.pop().unwrap();
    let second = watches.pop().unwrap();
    let first = watches.pop().unwrap();
    let open = |interface| {
        let socket = || validator::driver::kernel::packet::PacketSocket::open(interface);
        lab.device.run(socket).unwrap().unwrap()
    };
    let (to_first, to_second) = (open("d0"), open("d1"));
    to_first.send(&xoff(1)).unwrap();
    await_pfc(&first, 1);
    lab.ip(&lab.tester, "link delete t0");
    to_second.send(&xoff(2)).unwrap();
    await_pfc(&second, 1);
    assert_eq!(first.read().unwrap().counters.pfc_frames, 1, "its last");
    drop(first);
    await_pfc(&behind, 1);
    drop(second);
    to_second.send(&xoff(2)).unwrap();
    await_pfc(&behind, 2);
}
