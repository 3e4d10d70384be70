//! Frames that are no test frames.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::OffenceKind;
use pfc_ebpf::stamp::Stamp;
use pfc_ebpf::wire::Malformed;
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::bpf::AccountProgram;

use super::{PEER, by_priority, kinds, run};
use crate::frames::TestFrame;
use crate::xdp::{DROP, PASS, RUN, config, config_of_ipv6, flows, hex, loaded, stamp};

/// A frame of each kind that cannot be read, with the action on it. All but MAC control frames are
/// test frames, where that can still be seen.
fn malformed_frames() -> Vec<(Malformed, Vec<u8>, u32)> {
    let test = TestFrame::new(stamp(3, 0));
    let v4 = test.octets();
    let v6 = TestFrame {
        v6: true,
        ..test.clone()
    }
    .octets();
    let tagged = |count: usize| {
        TestFrame {
            tags: vec![(0x8100, 0); count],
            ..test.clone()
        }
        .octets()
    };
    let with = |frame: &[u8], at: usize, octets: &[u8]| {
        let mut frame = frame.to_vec();
        frame[at..at + octets.len()].copy_from_slice(octets);
        frame
    };
    let pfc = MacControl::Pfc {
        vector: 8,
        quanta: [9; 8],
    }
    .emit(PEER);
    let pause = MacControl::Pause { quanta: 9 }.emit(PEER);
    let tag = [0x81, 0x00, 0x60, 0x00];
    vec![
        (Malformed::EthernetTruncated, tagged(1)[..17].to_vec(), PASS),
        (Malformed::EthernetTruncated, tagged(2)[..21].to_vec(), PASS),
        (Malformed::TooManyTags, tagged(3), PASS),
        (Malformed::Ipv4Truncated, v4[..33].to_vec(), PASS),
        (Malformed::Ipv4Truncated, v4[..v4.len() - 1].to_vec(), PASS),
        (Malformed::IpVersion, with(&v4, 14, &[0x65]), PASS),
        (Malformed::IpVersion, with(&v6, 14, &[0x45]), PASS),
        (Malformed::Ipv6Truncated, v6[..53].to_vec(), PASS),
        (Malformed::Ipv6Truncated, v6[..v6.len() - 1].to_vec(), PASS),
        (Malformed::UdpTruncated, with(&v4, 38, &[0, 27]), PASS),
        (Malformed::UdpTruncated, with(&v6, 58, &[0, 7]), PASS),
        (Malformed::ControlTruncated, pfc[..33].to_vec(), DROP),
        (Malformed::ControlTruncated, pause[..17].to_vec(), DROP),
        (Malformed::ControlOpcode, with(&pause, 14, &[1, 0]), DROP),
        (
            Malformed::ControlTagged,
            [&pfc[..12], &tag, &pfc[12..]].concat(),
            DROP,
        ),
        (
            Malformed::ControlDestination,
            with(&pfc, 0, &[2, 0, 0, 0, 0, 1]),
            DROP,
        ),
        (Malformed::Stamp, with(&v4, 42, &[0]), DROP),
        (Malformed::Stamp, with(&v4, 38, &[0, 25]), DROP),
        (Malformed::Ipv4Checksum, with(&v4, 22, &[63]), PASS),
        (Malformed::Headers, with(&v4, 36, &[0, 53]), DROP),
    ]
}

#[test]
fn root_malformed_frames_are_counted_by_reason() {
    let mut account = loaded(Trust::Dscp);
    for (reason, frame, action) in malformed_frames() {
        account.configure(&config(Trust::Dscp), &flows(8)).unwrap();
        assert_eq!(run(&account, &frame), action, "{reason:?} {}", hex(&frame));
        let port = account.port().unwrap();
        assert_eq!(port.malformed, [(reason, 1)], "{}", hex(&frame));
        assert_eq!(
            (port.frames, port.other, port.test_frames, port.pfc_frames),
            (1, 0, 0, 0)
        );
        let offences = account.take_rings().unwrap().offences;
        if !concerns_the_test(reason, &frame) {
            assert_eq!(
                (port.damaged, offences),
                (vec![], vec![]),
                "{}",
                hex(&frame)
            );
            continue;
        }
        assert_eq!(port.damaged, [(reason, 1)], "{}", hex(&frame));
        assert_eq!(offences.len(), 1);
        assert_eq!(
            (offences[0].kind, offences[0].malformed),
            (OffenceKind::Malformed, Some(reason))
        );
    }
    let reasons: Vec<_> = malformed_frames()
        .into_iter()
        .map(|(reason, ..)| reason)
        .collect();
    assert!(Malformed::ALL.iter().all(|reason| reasons.contains(reason)));
}

/// Neither what ends before its addresses nor what stands behind too many tags can be known.
fn concerns_the_test(reason: Malformed, frame: &[u8]) -> bool {
    let unknown = [Malformed::EthernetTruncated, Malformed::TooManyTags];
    // The program counts tests of IPv4: of IPv6 neither addresses nor stamp stand in their place.
    let v6 = frame[12..14] == [0x86, 0xdd];
    reason.is_control() || !(unknown.contains(&reason) || v6 || frame.len() < 42)
}

/// Frames of a third station and of an earlier run, as they come to a port that is not the test's
/// alone. One of each damage that a test frame may have.
#[test]
fn root_what_others_send_is_foreign_whatever_is_wrong_with_it() {
    let mut account = loaded(Trust::Dscp);
    let test = TestFrame::new(stamp(3, 0)).octets();
    let with = |frame: &[u8], at: usize, octets: &[u8]| {
        let mut frame = frame.to_vec();
        frame[at..at + octets.len()].copy_from_slice(octets);
        frame
    };
    let earlier = TestFrame::new(Stamp {
        run: RUN + 1,
        ..stamp(3, 0)
    });
    // Another source address, the checksum set right.
    let third = with(&with(&test, 26, &[192, 0, 2, 9]), 24, &[0, 0]);
    let sum = !pfc_ebpf::wire::Octets::sum(&third[..], 14, 20).unwrap();
    let third = with(&third, 24, &sum.to_be_bytes());
    let no_stamp = with(&third, 42, b"hello");
    let foreign = [
        (no_stamp.clone(), DROP, "a datagram to the test port"),
        (with(&no_stamp, 24, &[1, 2]), PASS, "a wrong IPv4 checksum"),
        (
            with(&no_stamp, 36, &[0, 53]),
            PASS,
            "a datagram to another port",
        ),
        (no_stamp[..40].to_vec(), PASS, "cut short"),
        (earlier.octets(), DROP, "a frame of an earlier run"),
        (
            with(&with(&earlier.octets(), 26, &[9]), 22, &[63]),
            PASS,
            "a damaged one of it",
        ),
    ];
    all_are_foreign(&mut account, &foreign);
}

/// Asserts that the port takes each of these frames for foreign, with that action.
fn all_are_foreign(account: &mut AccountProgram, foreign: &[(Vec<u8>, u32, &str)]) {
    for (frame, action, what) in foreign {
        assert_eq!(run(account, frame), *action, "{what}");
    }
    let (port, all) = (account.port().unwrap(), foreign.len() as u64);
    assert_eq!((port.frames, port.foreign()), (all, all));
    assert_eq!((port.damaged, port.test_frames), (vec![], 0));
    assert_eq!(kinds(account), []);
}

/// A router changes MACs, TTL and DSCP; a test frame is known by stamp and run, or by addresses
/// and ports.
#[test]
fn root_damaged_test_frames_are_known_behind_a_router() {
    let mut account = loaded(Trust::Dscp);
    let mut test = TestFrame::new(stamp(3, 0)).octets();
    test[..12].copy_from_slice(&[7; 12]);
    let with = |at: usize, octets: &[u8]| {
        let mut frame = test.clone();
        frame[at..at + octets.len()].copy_from_slice(octets);
        frame
    };
    let damaged = [
        (with(42, &[0; 4]), Malformed::Stamp),
        (with(26, &[9]), Malformed::Ipv4Checksum),
        (with(12, &[0x08, 0x01]), Malformed::Headers),
        (with(36, &[0xff]), Malformed::Headers),
        (test[..test.len() - 1].to_vec(), Malformed::Ipv4Truncated),
    ];
    for (frame, reason) in &damaged {
        account.configure(&config(Trust::Dscp), &flows(8)).unwrap();
        run(&account, frame);
        let port = account.port().unwrap();
        assert_eq!((port.foreign(), port.damaged), (0, vec![(*reason, 1)]));
    }
}

/// The test frame of IPv6, with `octets` at `at`. Its addresses begin at 22 and 38, its UDP header
/// at 54, its stamp at 62.
fn v6_with(at: usize, octets: &[u8]) -> Vec<u8> {
    let test = TestFrame {
        v6: true,
        ..TestFrame::new(stamp(3, 0))
    };
    let mut frame = test.octets();
    frame[at..at + octets.len()].copy_from_slice(octets);
    frame
}

#[test]
fn root_damaged_test_frames_of_ipv6_are_known_by_stamp_or_by_addresses_and_ports() {
    let mut account = loaded(Trust::Dscp);
    let whole = v6_with(0, &[7; 12]);
    let mut stamp_alone = v6_with(22, &[9]);
    stamp_alone[56] = 0xff;
    let damaged = [
        (v6_with(62, &[0; 4]), Malformed::Stamp),
        (stamp_alone, Malformed::Headers),
        (v6_with(12, &[0x08, 0x01]), Malformed::Headers),
        (v6_with(20, &[6]), Malformed::Headers),
        (v6_with(56, &[0xff]), Malformed::Headers),
        (v6_with(58, &[0, 7]), Malformed::UdpTruncated),
        (v6_with(14, &[0x45]), Malformed::IpVersion),
        (whole[..whole.len() - 1].to_vec(), Malformed::Ipv6Truncated),
    ];
    for (frame, reason) in &damaged {
        account
            .configure(&config_of_ipv6(Trust::Dscp), &flows(8))
            .unwrap();
        run(&account, frame);
        let port = account.port().unwrap();
        assert_eq!(
            (port.foreign(), port.damaged),
            (0, vec![(*reason, 1)]),
            "{}",
            hex(frame)
        );
    }
}

#[test]
fn root_what_others_send_is_foreign_to_a_test_of_ipv6() {
    let mut account = loaded(Trust::Dscp);
    account
        .configure(&config_of_ipv6(Trust::Dscp), &flows(8))
        .unwrap();
    // The stamp shows nothing; each of the eight parts of the addresses and both ports do.
    let without_stamp = |at: usize| {
        let mut frame = v6_with(62, b"hello");
        frame[at] ^= 0x80;
        frame
    };
    let mut foreign: Vec<_> = (22..54)
        .step_by(4)
        .map(|at| (without_stamp(at), DROP, "other addresses"))
        .collect();
    let earlier = TestFrame {
        v6: true,
        ..TestFrame::new(Stamp {
            run: RUN + 1,
            ..stamp(3, 0)
        })
    };
    let mut of_ipv4 = TestFrame::new(stamp(3, 0)).octets();
    of_ipv4[42] = 0;
    foreign.extend([
        (without_stamp(54), DROP, "from another port"),
        (without_stamp(56), PASS, "to another port"),
        (without_stamp(22)[..60].to_vec(), PASS, "cut short"),
        (earlier.octets(), DROP, "a frame of an earlier run"),
        (of_ipv4, DROP, "a damaged frame of IPv4"),
    ]);
    all_are_foreign(&mut account, &foreign);
}

#[test]
fn root_other_frames_pass() {
    let account = loaded(Trust::Dscp);
    let test = TestFrame::new(stamp(3, 0)).octets();
    let arp = [&test[..12], &[0x08, 0x06], &[0; 46]].concat();
    let mut port_53 = test.clone();
    port_53[36..38].copy_from_slice(&53u16.to_be_bytes());
    port_53[42..].fill(0x42);
    let length_field = [&test[..12], &[0x00, 0x26], &[0x42; 46]].concat();
    for frame in [&arp, &port_53, &length_field] {
        assert_eq!(run(&account, frame), PASS);
    }
    let port = account.port_counters().unwrap();
    assert_eq!((port.frames(), port.other, port.test_frames), (3, 3, 0));
    assert_eq!(
        port.octets,
        (arp.len() + port_53.len() + length_field.len()) as u64
    );
    assert_eq!(
        by_priority(&account),
        [0, 0, 0, 1, 0, 0, 0, 0],
        "the one that is IP"
    );
}
