//! Frames that are not as they were sent.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::OffenceKind;

use super::{by_priority, kinds, only_flow, run};
use crate::frames::TestFrame;
use crate::{loaded, stamp};

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
