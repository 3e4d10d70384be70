use super::*;
use pfc_ebpf::flow_stamp::ShortStamp;
use pfc_ebpf::wire::{ethernet, ip, udp};

fn header(protocol: Protocol, fields: &[(&'static str, Value)]) -> Header {
    Header {
        fields: fields.to_vec(),
        ..Header::new(protocol)
    }
}

pub fn fixed(value: u128) -> Value {
    Value::Fixed(value)
}

pub fn packet(protocols: &[Protocol]) -> Packet {
    let headers = protocols.iter().map(|protocol| header(*protocol, &[]));
    Packet {
        headers: headers.collect(),
        ..Packet::default()
    }
}

pub fn render(packet: &Packet, number: u64, length: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    let shortest = packet.shortest(WHOLE);
    assert_eq!(packet.check(shortest, WHOLE), [""; 0]);
    Template::new(packet, &[], WHOLE).render(number, length, &mut frame);
    frame
}

pub const WHOLE: Option<Form> = Some(Form::Whole);

pub const STAMP: FlowStamp = FlowStamp {
    flow: 3,
    generation: 0xfedc,
    sequence: 0x0102_0304,
    time: 0xb0_c0d0_e0f0,
};

/// True if the frame's UDP datagram is right, with the stamp in it.
fn is_intact(packet: &Packet, length: usize) -> bool {
    let mut frame = render(packet, 0, length);
    Template::new(packet, &[], WHOLE).stamp(&mut frame, &STAMP);
    let octets: [u8; LEN] = *frame.last_chunk().unwrap();
    assert_eq!(FlowStamp::read(octets), Ok(STAMP));
    is_right(&frame)
}

/// True if the frame is a UDP datagram with right lengths and sums.
fn is_right(frame: &[u8]) -> bool {
    let octets = frame;
    let header = ethernet::parse(octets).unwrap();
    let ip = match header.ethertype {
        ethernet::IPV4 => ip::parse_v4(octets, header.payload),
        _ => ip::parse_v6(octets, header.payload),
    }
    .unwrap();
    assert_eq!(
        ip.payload + ip.length,
        frame.len(),
        "all of the frame is in it"
    );
    udp::is_intact(octets, &ip, &udp::parse(octets, &ip).unwrap())
}

#[test]
fn datagrams_of_every_length_are_right_and_stamped_ones_too() {
    use Protocol::{Ethernet, Ipv4, Ipv6, Udp, Vlan};
    for (stack, shortest) in [
        (vec![Ethernet, Ipv4, Udp], 60),
        (vec![Ethernet, Vlan, Ipv4, Udp], 64),
        (vec![Ethernet, Ipv6, Udp], 80),
        (vec![Ethernet, Vlan, Vlan, Ipv6, Udp], 88),
    ] {
        let packet = packet(&stack);
        assert_eq!(packet.shortest(WHOLE), shortest + 4, "{stack:?}");
        for length in (shortest as usize..200).chain([1023, 1024, 8996, 16_000]) {
            assert!(is_intact(&packet, length), "{stack:?}, {length} octets");
        }
    }
}

#[test]
fn a_short_stamp_leaves_datagrams_right() {
    use Protocol::{Ethernet, Ipv4, Udp, Vlan};
    let packet = packet(&[Ethernet, Vlan, Ipv4, Udp]);
    let template = Template::new(&packet, &[], Some(Form::Short));
    for length in 56..80 {
        let mut frame = Vec::new();
        template.render(0, length, &mut frame);
        template.stamp(&mut frame, &STAMP);
        let octets = *frame.last_chunk().unwrap();
        let read = ShortStamp::read(octets).unwrap();
        assert_eq!(
            (read.flow, read.generation, read.sequence),
            (3, 0xfedc & 7, 0x0304)
        );
        assert!(is_right(&frame), "{length} octets");
    }
}

#[test]
fn a_udp_frame_of_64_octets_has_room_for_the_stamp_and_a_tcp_frame_for_a_short_one() {
    use Protocol::{Ethernet, Ipv4, Tcp, Udp};
    assert_eq!(packet(&[Ethernet, Ipv4, Udp]).check(64, WHOLE), [""; 0]);
    let tcp = packet(&[Ethernet, Ipv4, Tcp]);
    let wrong = tcp.check(64, WHOLE);
    assert_eq!(wrong.len(), 1);
    assert!(wrong[0].contains("needs at least 76"), "{wrong:?}");
    assert_eq!(tcp.check(64, None), [""; 0]);
    assert_eq!(tcp.check(64, Some(Form::Short)), [""; 0]);
    let short = tcp.check(63, Some(Form::Short));
    assert!(short[0].contains("needs at least 64"), "{short:?}");
    use Protocol::{Arp, Icmpv6, Ipv6, Vlan, Vxlan};
    for stack in [
        &[Ethernet, Ipv4, Udp, Vxlan, Ethernet, Ipv4, Tcp][..],
        &[Ethernet, Vlan, Arp],
        &[Ethernet, Ipv6, Icmpv6],
    ] {
        let found = packet(stack).check(150, Some(Form::Short));
        assert!(found[0].contains("by a whole stamp alone"), "{found:?}");
        assert_eq!(packet(stack).check(150, WHOLE), [""; 0]);
    }
}

#[test]
fn payloads_stand_behind_the_headers_and_the_checksums_cover_them() {
    let pattern = |repeat| Payload::Pattern {
        octets: vec![0xde, 0xad, 0xbf],
        repeat,
    };
    for (payload, begins) in [
        (Payload::Up, [0, 1, 2, 3, 4, 5]),
        (Payload::Down, [255, 254, 253, 252, 251, 250]),
        (Payload::WordsUp, [0, 0, 0, 1, 0, 2]),
        (Payload::WordsDown, [255, 255, 255, 254, 255, 253]),
        (pattern(true), [0xde, 0xad, 0xbf, 0xde, 0xad, 0xbf]),
        (pattern(false), [0xde, 0xad, 0xbf, 0, 0, 0]),
    ] {
        let mut packet = packet(&[Protocol::Ethernet, Protocol::Ipv4, Protocol::Udp]);
        packet.payload = payload.clone();
        for length in [66, 67, 1513, 1514] {
            assert_eq!(render(&packet, 0, length)[42..48], begins, "{payload:?}");
            assert!(is_intact(&packet, length), "{payload:?}, {length} octets");
        }
    }
    let mut words = packet(&[Protocol::Ethernet]);
    words.payload = Payload::WordsUp;
    assert_eq!(render(&words, 0, 1000)[14 + 2 * 300..][..2], [1, 44]);
}

#[test]
fn fields_of_a_part_of_an_octet_leave_their_neighbours_alone() {
    let mut octets = [0xff; 4];
    put(&mut octets, 3, 1, 0);
    put(&mut octets, 12, 12, 0x123);
    assert_eq!(octets, [0xef, 0xf1, 0x23, 0xff]);
    let mut octets = [0; 20];
    put(&mut octets, 12, 128, u128::MAX);
    assert_eq!(
        (octets[1], octets[2], octets[17], octets[18]),
        (0x0f, 0xff, 0xf0, 0)
    );
}

#[test]
fn walking_fields_keep_the_checksums_right() {
    let mut packet = packet(&[Protocol::Ethernet, Protocol::Ipv4, Protocol::Udp]);
    packet.headers[1].fields = vec![
        ("priority", Value::List(vec![0, 0x18, 0xb8])),
        (
            "src",
            Value::Increment {
                start: 0x0a00_00ff,
                step: 1,
                count: 1000,
            },
        ),
    ];
    for number in 0..9 {
        let frame = render(&packet, number, 60);
        assert_eq!(frame[15], [0, 0x18, 0xb8][number as usize % 3]);
        let source = u32::from_be_bytes(*frame[26..].first_chunk().unwrap());
        assert_eq!(source, 0x0a00_00ff + number as u32);
        let octets = &frame[..];
        let ip = ip::parse_v4(octets, 14).unwrap();
        assert!(udp::is_intact(
            octets,
            &ip,
            &udp::parse(octets, &ip).unwrap()
        ));
    }
}

#[test]
fn checksums_that_are_wrong_on_purpose_are_wrong() {
    for (place, name) in [(1, "header_checksum"), (2, "checksum")] {
        let mut packet = packet(&[Protocol::Ethernet, Protocol::Ipv4, Protocol::Udp]);
        let right = render(&packet, 0, 60);
        packet.headers[place].fields = vec![(name, Value::Bad)];
        let wrong = render(&packet, 0, 60);
        let differ: Vec<_> = (0..60).filter(|at| right[*at] != wrong[*at]).collect();
        assert_eq!(differ, if place == 1 { [24, 25] } else { [40, 41] });
    }
}

#[test]
fn the_next_hop_is_the_destination_unless_one_is_given() {
    let mut packet = packet(&[Protocol::Ethernet, Protocol::Ipv4, Protocol::Udp]);
    let macs = [9, 8].map(|last| [2, 0, 0, 0, 0, last]);
    let of_frame = |packet: &Packet, next_hops: &[[u8; 6]], number| {
        let mut frame = Vec::new();
        Template::new(packet, next_hops, WHOLE).render(number, 60, &mut frame);
        *frame.first_chunk::<6>().unwrap()
    };
    for number in 0..4 {
        assert_eq!(of_frame(&packet, &macs[..1], number), macs[0]);
        assert_eq!(of_frame(&packet, &macs, number), macs[number as usize % 2]);
    }
    packet.headers[0].fields = vec![("dst", fixed(5))];
    assert_eq!(of_frame(&packet, &macs, 0), [0, 0, 0, 0, 0, 5]);
}

#[test]
fn defects_name_the_header_and_the_field() {
    let check = |protocol, fields: &[(&'static str, Value)]| {
        let headers = vec![header(Protocol::Ethernet, &[]), header(protocol, fields)];
        Packet {
            headers,
            ..Packet::default()
        }
        .check(1500, WHOLE)
    };
    let one = |wrong: Vec<String>, expected: &str| {
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].contains(expected), "{wrong:?}");
    };
    one(
        check(Protocol::Ipv4, &[("ttl", fixed(1))]),
        "header 2 (ipv4): field \"ttl\": no such field; there are version,",
    );
    one(
        check(Protocol::Ipv4, &[("priority", fixed(256))]),
        "header 2 (ipv4): field \"priority\": expected at most 255 in 8 bits, found 256",
    );
    one(
        check(Protocol::Ipv4, &[("src", Value::Bad)]),
        "only a checksum",
    );
    one(
        check(Protocol::Ipv4, &[("src", Value::List(vec![]))]),
        "is empty",
    );
    one(
        check(Protocol::Ipv4, &[("src", fixed(1)), ("src", fixed(1))]),
        "is set twice",
    );
    one(check(Protocol::PfcPause, &[]), "first and alone");
    one(
        check(Protocol::Custom, &[("a", fixed(1))]),
        "octets have no fields",
    );
    one(
        packet(&[Protocol::Ipv4]).check(1500, WHOLE),
        "header 1 is ipv4",
    );
}

#[test]
fn a_header_behind_one_that_does_not_announce_it_is_named() {
    use Protocol::{Arp, Ethernet, Icmp, Icmpv6, Ipv4, Ipv6, Udp, Vlan};
    for (stack, behind) in [
        (
            vec![Ethernet, Ipv4, Vlan],
            "header 3 (vlan): it cannot stand behind ipv4",
        ),
        (
            vec![Ethernet, Ipv6, Icmp],
            "header 3 (icmp): it cannot stand behind ipv6",
        ),
        (
            vec![Ethernet, Ipv4, Icmpv6],
            "header 3 (icmpv6): it cannot stand behind ipv4",
        ),
        (
            vec![Ethernet, Arp, Udp],
            "header 3 (udp): it cannot stand behind arp",
        ),
    ] {
        assert_eq!(packet(&stack).check(1500, WHOLE), [behind]);
    }
}
