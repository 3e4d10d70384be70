//! Parsing of RoCEv2 headers on the host. The tests of `pfc-user` compare the program in the kernel
//! with it.

mod roce_frames;

use pfc_ebpf::wire::roce::{Bth, Reth, parse};
use roce_frames::{Frames, Request, shapes};

const QUEUE_PAIR: u32 = 0x12_3456;

#[test]
fn a_read_request_is_read_whatever_stands_before_it() {
    for request in shapes(QUEUE_PAIR) {
        let octets = request.octets();
        let packet = parse(&*octets).unwrap_or_else(|| panic!("{request:?}"));
        assert_eq!(packet.length, 12 + 16 + 4);
        assert_eq!(packet.at + packet.length, octets.len());
        let bth = Bth {
            opcode: 0x0c,
            pad: 0,
            version: 0,
            partition: 0xffff,
            destination: QUEUE_PAIR,
            ack_request: true,
            psn: 0xab_cdef,
        };
        assert_eq!(packet.bth, bth);
        assert_eq!(
            packet.reth(&*octets),
            Some(Reth {
                address: 0x99_9000,
                r_key: 0x12345,
                length: 1024
            })
        );
    }
}

#[test]
fn every_field_of_the_bth_has_its_place() {
    let bth = Bth::from_octets([
        0x0c, 0xb5, 0x12, 0x34, 0xff, 0x65, 0x43, 0x21, 0x7f, 0x0f, 0xed, 0xcb,
    ]);
    let expected = Bth {
        opcode: 0x0c,
        pad: 3,
        version: 5,
        partition: 0x1234,
        destination: 0x65_4321,
        ack_request: false,
        psn: 0x0f_edcb,
    };
    assert_eq!(
        bth, expected,
        "neither solicited event, nor migration, nor what is reserved"
    );
}

#[test]
fn a_frame_cut_anywhere_has_no_packet() {
    for request in shapes(QUEUE_PAIR) {
        let octets = request.octets();
        for length in 0..octets.len() {
            assert_eq!(parse(&octets[..length]), None, "{length} of {request:?}");
        }
    }
}

#[test]
fn what_pads_the_frame_is_no_part_of_the_packet() {
    let mut octets = Request::new(QUEUE_PAIR).octets();
    let packet = parse(&*octets);
    octets.extend([0xff; 9]);
    assert_eq!(parse(&*octets), packet);
}

#[test]
fn other_protocols_ports_and_fragments_have_no_packet() {
    for v6 in [false, true] {
        let request = Request {
            v6,
            ..Request::new(QUEUE_PAIR)
        };
        assert_eq!(
            parse(
                &*Request {
                    port: 4790,
                    ..request.clone()
                }
                .octets()
            ),
            None
        );
        assert_eq!(
            parse(
                &*Request {
                    protocol: 6,
                    ..request.clone()
                }
                .octets()
            ),
            None
        );
    }
    for fragment in [0x2000, 0x0001, 0x1fff, 0x6000] {
        assert_eq!(
            parse(
                &*Request {
                    fragment,
                    ..Request::new(QUEUE_PAIR)
                }
                .octets()
            ),
            None,
            "{fragment:#06x}"
        );
    }
}

#[test]
fn a_packet_without_room_for_a_reth_has_none() {
    let mut octets = Request::new(QUEUE_PAIR).octets();
    // UDP length: BTH, 15 octets, ICRC.
    octets[38..40].copy_from_slice(&(8 + 12 + 15 + 4u16).to_be_bytes());
    assert_eq!(parse(&*octets).unwrap().reth(&*octets), None);
    octets[38..40].copy_from_slice(&(8 + 12 + 4u16).to_be_bytes());
    assert!(parse(&*octets).is_some());
    octets[38..40].copy_from_slice(&(8 + 12 + 3u16).to_be_bytes());
    assert_eq!(parse(&*octets), None);
}

#[test]
fn no_frame_makes_it_panic_and_both_outcomes_are_met() {
    let mut whole = 0;
    for frame in Frames::new(3, QUEUE_PAIR).take(50_000) {
        if let Some(packet) = parse(&*frame) {
            whole += 1;
            assert!(packet.at + packet.length <= frame.len());
            packet.reth(&*frame);
        }
    }
    assert!((5_000..45_000).contains(&whole), "{whole}");
}
