//! The programs in the kernel against the classifier on the host, on arbitrary frames.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::watch::{ClassCounters, Counters, Hidden, Volume};
use pfc_ebpf::wire::Malformed;
use pfc_ebpf::wire::mac_control::MacControl;
use pfc_ebpf::wire::{Octets, ethernet, ip, roce};
use validator::driver::bpf::watch::{Point, Watch};

use crate::classified::{Class, classify};
use crate::common::{corpus, need_root};
use crate::watch::tunnels::{EXTENDED, TUNNELS};
use crate::watch::{PASS, hex, settings};
use crate::{frames, roce_frames};

/// Adds the expected counts of a frame, by the classifier of the test frames and the parser of
/// RoCEv2, which read frames in other ways than the program does.
fn add(model: &mut Counters, trust: Trust, octets: &[u8]) {
    let frame = classify(octets);
    let volume = Volume {
        frames: 1,
        octets: octets.len() as u64,
    };
    let plus = |sum: &mut Volume| {
        *sum = Volume {
            frames: sum.frames + volume.frames,
            octets: sum.octets + volume.octets,
        }
    };
    plus(&mut model.total);
    let priority = if trust == Trust::Pcp {
        frame.marks.pcp
    } else {
        frame.marks.dscp.map(|dscp| dscp % 8)
    };
    plus(priority.map_or(&mut model.no_priority, |priority| {
        &mut model.by_priority[usize::from(priority)]
    }));
    if let Some(pcp) = frame.marks.pcp {
        plus(&mut model.by_pcp[usize::from(pcp)]);
        model.double_tagged += u64::from(frame.marks.tags == 2);
    }
    let ecn = frame.marks.dscp.map(|dscp| {
        plus(&mut model.by_dscp[usize::from(dscp)]);
        let ecn = ecn(octets);
        model.by_ecn[ecn] += 1;
        ecn
    });
    let ce = u64::from(ecn == Some(3));
    if let Some(priority) = priority {
        model.ce[usize::from(priority)] += ce;
    }
    match frame.class {
        Class::Test { .. } => model.stamped += 1,
        Class::Control(MacControl::Pause { quanta }) => class(&mut model.pause, quanta),
        Class::Control(MacControl::Pfc { vector, quanta }) => {
            model.pfc_frames += 1;
            model.pfc_empty += u64::from(vector & 0xff == 0);
            for priority in (0..8).filter(|priority| vector & 1 << priority != 0) {
                class(&mut model.pfc[priority], quanta[priority]);
            }
        }
        // Port 50000 is anybody's here.
        Class::Other | Class::Malformed(Malformed::Stamp) => {}
        Class::Malformed(reason) => model.malformed[reason as usize] += 1,
    }
    if let Some(hidden) = hidden(octets) {
        model.hidden[hidden as usize] += 1;
    }
    if let Some(packet) = roce::parse(octets) {
        plus(&mut model.roce);
        model.roce_ce += ce;
        model.by_opcode[usize::from(packet.bth.opcode)] += 1;
    }
}

fn class(counts: &mut ClassCounters, quanta: u16) {
    counts.xoff += u64::from(quanta > 0);
    counts.xon += u64::from(quanta == 0);
}

/// The ECN field of a frame with a whole IP header.
fn ecn(octets: &[u8]) -> usize {
    let header = ethernet::parse(octets).unwrap();
    let [first, second]: [u8; 2] = Octets::get(octets, header.payload).unwrap();
    let traffic_class = if header.ethertype == ethernet::IPV6 {
        first << 4 | second >> 4
    } else {
        second
    };
    usize::from(traffic_class & 3)
}

/// Frames with each number behind the IP header, and tunnels: arbitrary frames have few.
fn hidden_transports() -> impl Iterator<Item = Vec<u8>> {
    /// Offset of the number of IPv6's next header.
    const NEXT: usize = 14 + 6;
    let (_, make) = TUNNELS.iter().find(|(name, _)| *name == EXTENDED).unwrap();
    let numbers = (0..=u8::MAX).map(move |number| {
        let mut frame = make(1);
        frame[NEXT] = number;
        frame
    });
    TUNNELS.iter().map(|(_, make)| make(1)).chain(numbers)
}

/// Finds what stands before the transport of a frame with a whole IP header, and a whole UDP header
/// if it has one.
fn hidden(octets: &[u8]) -> Option<Hidden> {
    let frame = classify(octets);
    if frame.marks.dscp.is_none() || frame.class == Class::Malformed(Malformed::UdpTruncated) {
        return None;
    }
    let header = ethernet::parse(octets).ok()?;
    let (protocol, payload) = ip::next(octets, &header)?;
    let fragment = octets.word(header.payload + 6)? & 0x3fff;
    match protocol {
        _ if header.ethertype == ethernet::IPV4 && fragment != 0 => Some(Hidden::Fragment),
        17 => match octets.word(payload + 2)? {
            4789 | 8472 | 6081 | 2152 | 4500 | 4754 | 4790 | 6080 | 6635 => Some(Hidden::Tunnel),
            _ => None,
        },
        44 => Some(Hidden::Fragment),
        0 | 43 | 50 | 51 | 60 | 135 | 139 | 140 | 253 | 254 => Some(Hidden::Extension),
        4 | 41 | 47 | 97 | 108 | 115 | 137 | 143 => Some(Hidden::Tunnel),
        _ => None,
    }
}

/// Octets that BPF_PROG_TEST_RUN needs at least: an Ethernet header, and at tcx also the IP header
/// that it announces.
fn shortest(point: Point, octets: &[u8]) -> usize {
    match octets.get(12..14) {
        _ if matches!(point, Point::Xdp(_)) => 14,
        Some([0x08, 0x00]) => 34,
        Some([0x86, 0xdd]) => 54,
        _ => 15,
    }
}

fn agree(point: Point, pass: u32, trust: Trust, seed: u64) {
    let watch = Watch::load(point, &settings(trust)).unwrap();
    let mut model = Counters::ZERO;
    let (mut ours, mut roce) = (frames::Frames::new(seed), roce_frames::Frames::new(seed, 7));
    let both = std::iter::from_fn(|| Some([ours.next()?, roce.next()?])).flatten();
    for (number, octets) in hidden_transports()
        .chain(both)
        .filter(|octets| octets.len() >= shortest(point, octets))
        .take(corpus(25_000, 500_000))
        .enumerate()
    {
        add(&mut model, trust, &octets);
        assert_eq!(
            watch.test_run(&octets, 1).unwrap().action,
            pass,
            "{}",
            hex(&octets)
        );
        // Reading takes longer than counting. The first 5000 are read one by one, which names a
        // frame that differs; the others only now and then.
        if number < 5000 || number.is_multiple_of(100) {
            assert_eq!(watch.read().unwrap().counters, model, "{}", hex(&octets));
        }
    }
    assert_eq!(watch.read().unwrap().counters, model);
    let reasons = model
        .malformed
        .iter()
        .zip(Malformed::ALL)
        .filter(|(_, reason)| !reason.is_of_a_test());
    assert!(
        reasons.clone().all(|(count, _)| *count > 0),
        "every reason was met: {reasons:?}"
    );
    let met = [
        model.stamped,
        model.roce.frames,
        model.roce_ce,
        model.pause.xoff,
        model.pfc_frames,
        model.double_tagged,
    ];
    assert!(
        met.iter()
            .chain(&model.by_ecn)
            .chain(&model.hidden)
            .all(|count| *count > 0),
        "{met:?}"
    );
}

#[test]
fn root_kernel_and_host_agree_on_arbitrary_frames() {
    if !need_root("root_kernel_and_host_agree_on_arbitrary_frames") {
        return;
    }
    std::thread::scope(|scope| {
        for (seed, (point, pass)) in PASS.into_iter().enumerate() {
            for trust in [Trust::Dscp, Trust::Pcp] {
                scope.spawn(move || agree(point, pass, trust, 21 + seed as u64));
            }
        }
    });
}
