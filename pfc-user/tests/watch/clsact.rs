//! The program as a filter of `clsact`, as on kernels without tcx: counts alike, and leaves
//! nothing.

use std::process::Command;

use pfc_ebpf::abi::Trust;
use validator::driver::bpf::watch::{Direction, Point, Watch};

use crate::common::{need_root, need_tool};
use crate::watch::lab::{BEYOND, Lab, MACS};
use crate::watch::settings;

/// In a handle: the `clsact` is for a `watch` to remove.
const OURS: u32 = 1 << 30;
/// Priority of the filter on the way in.
const INGRESS: u32 = 13;

/// The number of a process that is gone.
fn dead() -> u32 {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// Reads what is attached to t0: true if it has a `clsact`, and the filters of both directions.
fn hanging(lab: &Lab) -> (bool, String) {
    let tc = |arguments: &str| lab.tool(&lab.tester, "tc", arguments);
    let filters = ["ingress", "egress"].map(|way| tc(&format!("filter show dev t0 {way}")));
    (tc("qdisc show dev t0").contains("clsact"), filters.concat())
}

fn attach(lab: &Lab, direction: Direction) -> Watch {
    let attach = || Watch::attach("t0", Point::Clsact(direction), &settings(Trust::Dscp));
    lab.tester.run(attach).unwrap().unwrap()
}

/// A filter with that handle, as a process that was killed leaves it, at a `clsact` that is made
/// here.
fn leave(lab: &Lab, priority: u32, handle: u32) {
    lab.tool(&lab.tester, "tc", "qdisc add dev t0 clsact");
    let filter = format!("filter add dev t0 ingress protocol all pref {priority} handle {handle}");
    // All frames are left to the next filter.
    let arguments = format!("{filter} bpf bytecode 1,6#0#0#4294967295, direct-action");
    let arguments: Vec<_> = arguments
        .split(' ')
        .map(|word| word.replace('#', " "))
        .collect();
    let run = || Command::new("tc").args(&arguments).output().unwrap();
    let output = lab.tester.run(run).unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn ready(test: &str) -> bool {
    need_root(test) && need_tool(test, "tc")
}

#[test]
fn root_frames_of_both_directions_are_counted_and_nothing_is_left() {
    if !ready("root_frames_of_both_directions_are_counted_and_nothing_is_left") {
        return;
    }
    let lab = Lab::new();
    let before = hanging(&lab);
    let directions = [Direction::Ingress, Direction::Egress];
    let [ingress, egress] = directions.map(|direction| attach(&lab, direction));
    assert_eq!(
        [ingress.place(), egress.place()],
        ["tc ingress", "tc egress"]
    );
    let mut frame = [0; 60];
    frame[..6].copy_from_slice(&MACS[0]);
    // The stack is not to answer it.
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    let device = lab.device_port();
    for _ in 0..5 {
        device.send(&frame).unwrap();
    }
    let sender = lab.sender(26);
    for _ in 0..3 {
        sender.send_to(&[0; 100], (BEYOND, 9)).unwrap();
    }
    let out = egress.read().unwrap().counters;
    assert_eq!(out.by_dscp[26].frames, 3);
    // The other end's CPU takes its time.
    let begin = std::time::Instant::now();
    while ingress.read().unwrap().counters.total.frames < 5 {
        assert!(begin.elapsed() < crate::watch::lab::PATIENCE);
    }
    assert_eq!(ingress.read().unwrap().counters.total.frames, 5);
    // From another namespace than that of the port.
    drop(ingress);
    assert!(hanging(&lab).0, "the other direction hangs there");
    drop(egress);
    assert_eq!(hanging(&lab), before);
    assert!(!before.0);
}

#[test]
fn root_what_a_killed_process_left_is_taken_away() {
    if !ready("root_what_a_killed_process_left_is_taken_away") {
        return;
    }
    let lab = Lab::new();
    leave(&lab, INGRESS, OURS | dead());
    let watch = attach(&lab, Direction::Egress);
    let (clsact, filters) = hanging(&lab);
    assert!(clsact && !filters.contains("bytecode"), "{filters}");
    assert!(filters.contains("watch_tc"), "{filters}");
    drop(watch);
    assert_eq!(hanging(&lab), (false, String::new()));
}

#[test]
fn root_what_others_made_stays() {
    if !ready("root_what_others_made_stays") {
        return;
    }
    for (priority, handle, stays) in [
        // A filter of another program, and its `clsact`.
        (1, OURS | dead(), true),
        // A filter of a `watch` that is gone, at a `clsact` of somebody else's.
        (INGRESS, dead(), false),
    ] {
        let lab = Lab::new();
        leave(&lab, priority, handle);
        drop(attach(&lab, Direction::Ingress));
        let (clsact, filters) = hanging(&lab);
        assert!(clsact, "{filters}");
        assert_eq!(filters.contains("bytecode"), stays, "{filters}");
    }
}
