//! Frames that are not as they were sent.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::OffenceKind;

use super::{by_priority, kinds, only_flow, run};
use crate::frames::TestFrame;
use crate::xdp::{loaded, stamp};

#[test]
fn root_flipped_octets_are_corruption_at_every_length() {
    let account = loaded(Trust::Dscp);
    let mut sequence = 0;
    let mut corrupt = 0;
    for v6 in [false, true] {
        // Odd and even lengths, lengths around the chunks in which the checksum is summed, and the
        // longest that XDP takes without fragments.
        for payload in [
            22, 23, 24, 25, 26, 27, 28, 31, 57, 255, 503, 504, 505, 511, 512, 513, 1000, 1023,
            1024, 1025, 2049, 3300,
        ] {
            let frame = |sequence| {
                TestFrame {
                    payload,
                    v6,
                    ..TestFrame::new(stamp(3, sequence))
                }
                .octets()
            };
            run(&account, &frame(sequence));
            sequence += 1;
            assert_eq!(
                only_flow(&account).corrupt,
                corrupt,
                "whole, IPv6 {v6}, payload {payload}"
            );
            let octets = frame(0);
            let payload_at = octets.len() - payload;
            // Source port, checksum, and the payload behind the stamp. Damage further ahead would
            // be of another kind.
            let places = [
                payload_at - 8,
                payload_at - 2,
                payload_at + 22,
                (payload_at + octets.len()) / 2,
                octets.len() - 1,
            ];
            for place in places
                .into_iter()
                .filter(|place| *place < payload_at || *place >= payload_at + 22)
            {
                if place >= octets.len() {
                    continue;
                }
                let mut octets = frame(sequence);
                octets[place] ^= 0x10;
                run(&account, &octets);
                sequence += 1;
                corrupt += 1;
                assert_eq!(
                    only_flow(&account).corrupt,
                    corrupt,
                    "octet {place}, IPv6 {v6}, payload {payload}"
                );
            }
        }
    }
    let flow = only_flow(&account);
    assert_eq!(
        (flow.frames, flow.duplicate),
        (sequence, 0),
        "a corrupt frame whose stamp is whole is received too"
    );
}

/// Two words of the payload that change places leave the checksum as it was.
#[test]
fn root_swapped_words_are_an_altered_payload_at_every_length_and_place() {
    let account = loaded(Trust::Dscp);
    let mut sequence = 0;
    let mut altered = 0;
    for v6 in [false, true] {
        for payload in [22, 24, 26, 57, 82, 83, 146, 147, 505, 1024, 3300] {
            let mut run_one = |change: &dyn Fn(&mut Vec<u8>), changed: bool| {
                let frame = TestFrame {
                    payload,
                    v6,
                    ..TestFrame::new(stamp(3, sequence))
                };
                let mut octets = frame.octets();
                change(&mut octets);
                run(&account, &octets);
                sequence += 1;
                altered += u64::from(changed);
                let flow = only_flow(&account);
                assert_eq!(
                    (flow.altered, flow.corrupt, flow.duplicate),
                    (altered, 0, 0),
                    "IPv6 {v6}, payload {payload}"
                );
            };
            run_one(&|_| (), false);
            let behind_stamp = payload - 18;
            let mut places = vec![0, behind_stamp / 4 * 2, (behind_stamp - 4) & !1];
            places.retain(|place| place + 4 <= behind_stamp);
            for place in places {
                let swap = |octets: &mut Vec<u8>| {
                    let at = octets.len() - behind_stamp + place;
                    octets[at..at + 4].rotate_left(2);
                };
                run_one(&swap, true);
            }
        }
    }
}

#[test]
fn root_a_frame_that_grew_is_resized_and_one_with_a_tag_is_not() {
    let mut account = loaded(Trust::Dscp);
    let plain = |sequence| TestFrame::new(stamp(3, sequence));
    let tagged = TestFrame {
        tags: vec![(0x8100, 0x6000)],
        ..plain(0)
    };
    run(&account, &tagged.octets());
    run(&account, &plain(1).octets());
    assert_eq!(kinds(&mut account), []);
    run(&account, &[plain(2).octets(), vec![0; 4]].concat());
    let longer = TestFrame {
        payload: 22,
        ..plain(3)
    };
    run(&account, &longer.octets());
    assert_eq!(only_flow(&account).resized, 2);
    assert_eq!(kinds(&mut account), [OffenceKind::Resized; 2]);
}

#[test]
fn root_a_checksum_that_was_taken_out_is_corruption() {
    let mut account = loaded(Trust::Dscp);
    let mut octets = TestFrame::new(stamp(3, 0)).octets();
    octets[40..42].fill(0);
    run(&account, &octets);
    assert_eq!(only_flow(&account).corrupt, 1);
    assert_eq!(kinds(&mut account), [OffenceKind::Corrupt]);
}

#[test]
fn root_a_changed_dscp_is_a_remark_and_a_changed_ecn_is_not() {
    let mut account = loaded(Trust::Dscp);
    let frame = |sequence, traffic_class| {
        TestFrame {
            traffic_class,
            ..TestFrame::new(stamp(3, sequence))
        }
        .octets()
    };
    run(&account, &frame(0, 3 << 2 | 3));
    run(&account, &frame(1, 4 << 2 | 1));
    let flow = only_flow(&account);
    assert_eq!((flow.frames, flow.remarked, flow.untagged), (2, 1, 0));
    assert_eq!(kinds(&mut account), [OffenceKind::Remarked]);
    let port = account.port_counters().unwrap();
    assert_eq!((port.by_dscp[3], port.by_dscp[4]), (1, 1));
    assert_eq!(by_priority(&account), [0, 0, 0, 1, 1, 0, 0, 0]);
}
