//! The program in the kernel against the classifier on the host, on arbitrary frames.

use pfc_ebpf::classify::{Class, Classified, classify};
use pfc_ebpf::maps::{ClassCounters, Malformed, PortCounters, Trust};
use pfc_ebpf::stamp::Stamp;
use pfc_ebpf::wire::mac_control::MacControl;

use crate::frames::Frames;
use crate::{DROP, PASS, RUN, STORM_SOURCE, hex, loaded};

/// Flows of [`loaded`].
const FLOWS: u16 = 8;

/// What the flows should have counted, whichever frames were new.
#[derive(Debug, Default, PartialEq)]
struct Tested {
    frames: u64,
    corrupt: u64,
    remarked: u64,
    untagged: u64,
}

fn add_class(counts: &mut ClassCounters, quanta: u16) {
    counts.frames += 1;
    counts.xoff += (quanta > 0) as u64;
    counts.xon += (quanta == 0) as u64;
    counts.last_quanta = quanta as u64;
}

fn add_test(port: &mut PortCounters, tested: &mut Tested, trust: Trust, frame: &Classified, stamp: &Stamp, intact: bool) {
    if stamp.run != RUN {
        port.foreign_run += 1;
        return;
    }
    if stamp.flow >= FLOWS {
        port.malformed[Malformed::Stamp as usize] += 1;
        return;
    }
    port.test_frames += 1;
    let mark = if trust == Trust::Pcp { frame.pcp } else { frame.dscp };
    tested.frames += 1;
    tested.corrupt += !intact as u64;
    tested.remarked += (mark != Some(stamp.flow as u8)) as u64;
    tested.untagged += (mark.is_none()) as u64;
}

/// What the program should count of a frame.
fn add(port: &mut PortCounters, tested: &mut Tested, trust: Trust, octets: &[u8]) -> u32 {
    let frame = classify(octets);
    port.frames += 1;
    port.octets += octets.len() as u64;
    port.tagged += (frame.tags > 0) as u64;
    if let Some(dscp) = frame.dscp {
        port.by_dscp[dscp as usize] += 1;
    }
    let priority = if trust == Trust::Pcp { frame.pcp } else { frame.dscp.map(|dscp| dscp % 8) };
    if let Some(priority) = priority {
        port.by_priority[priority as usize] += 1;
    }
    match frame.class {
        Class::Test { stamp, intact } => add_test(port, tested, trust, &frame, &stamp, intact),
        Class::Control(control) => {
            port.own_control += (octets[6..12] == STORM_SOURCE) as u64;
            match control {
                MacControl::Pause { quanta } => add_class(&mut port.pause, quanta),
                MacControl::Pfc { vector, quanta } => {
                    port.pfc_frames += 1;
                    port.pfc_empty += (vector & 0xff == 0) as u64;
                    for (priority, quanta) in quanta.into_iter().enumerate().filter(|(priority, _)| vector & 1 << priority != 0) {
                        add_class(&mut port.pfc[priority], quanta);
                    }
                }
            }
        }
        Class::Other => port.other += 1,
        Class::Malformed(reason) => port.malformed[reason as usize] += 1,
    }
    if frame.class.is_consumed() { DROP } else { PASS }
}

/// Without what the host cannot know: times, and records that did not fit.
fn comparable(mut port: PortCounters) -> PortCounters {
    for class in port.pfc.iter_mut().chain([&mut port.pause]) {
        class.last = 0;
    }
    PortCounters { arrivals_lost: 0, controls_lost: 0, offences_lost: 0, ..port }
}

fn agree(trust: Trust, seed: u64, count: usize) {
    let account = loaded(trust);
    let mut port = account.port_counters().unwrap();
    let mut tested = Tested::default();
    // The kernel takes none shorter than an Ethernet header here.
    for octets in Frames::new(seed).filter(|octets| octets.len() >= 14).take(count) {
        let expected = add(&mut port, &mut tested, trust, &octets);
        assert_eq!(account.test_run(&octets, 1).unwrap().action, expected, "{}", hex(&octets));
        assert_eq!(comparable(account.port_counters().unwrap()), port, "{}", hex(&octets));
    }
    let mut found = Tested::default();
    for flow in account.flows().unwrap() {
        found.frames += flow.frames + flow.duplicate + flow.beyond_window;
        // What came too late to be told is counted there alone.
        tested.frames -= flow.beyond_window;
        found.frames -= flow.beyond_window;
        found.corrupt += flow.corrupt;
        found.remarked += flow.remarked;
        found.untagged += flow.untagged;
    }
    assert_eq!(found.frames, tested.frames);
    assert!(found.corrupt > 0 && found.corrupt <= tested.corrupt, "{found:?} {tested:?}");
    assert!(found.remarked > 0 && found.remarked <= tested.remarked, "{found:?} {tested:?}");
    assert!(found.untagged <= tested.untagged && (found.untagged > 0) == (trust == Trust::Pcp), "{found:?} {tested:?}");
}

#[test]
fn root_kernel_and_host_agree_on_arbitrary_frames() {
    std::thread::scope(|scope| {
        scope.spawn(|| agree(Trust::Dscp, 11, 60_000));
        scope.spawn(|| agree(Trust::Pcp, 12, 60_000));
    });
}
