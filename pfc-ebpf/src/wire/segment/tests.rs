use super::*;

fn of(frame: &[u8]) -> Option<(usize, usize)> {
    let read = |at: usize| frame.get(at..)?.first_chunk().copied();
    headers(read).map(|headers| (headers.repeated, headers.removed))
}

/// These headers, and payload.
fn frame(parts: &[&[u8]]) -> Vec<u8> {
    [parts.concat(), vec![0; 100]].concat()
}

fn ethernet(ethertype: u16) -> Vec<u8> {
    [&[2; 12][..], &ethertype.to_be_bytes()].concat()
}

fn v4(protocol: u8) -> Vec<u8> {
    let mut header = vec![0; 20];
    (header[0], header[9]) = (0x45, protocol);
    header
}

fn v6(next: u8) -> Vec<u8> {
    let mut header = vec![0; 40];
    (header[0], header[6]) = (0x60, next);
    header
}

fn udp(port: u16) -> Vec<u8> {
    [&[0; 2][..], &port.to_be_bytes(), &[0; 4]].concat()
}

fn tcp(words: u8) -> Vec<u8> {
    let mut header = vec![0; words as usize * 4];
    header[12] = words << 4;
    header
}

fn extension(next: u8, eights: u8) -> Vec<u8> {
    let mut header = vec![0; 8 * (eights as usize + 1)];
    (header[0], header[1]) = (next, eights);
    header
}

const VNI: [u8; 8] = [8, 0, 0, 0, 0, 0, 7, 0];
const JUMBO_OF_TCP: [u8; 8] = [6, 0, 0xc2, 4, 0, 1, 0, 0];

/// Name, the headers in order, and the octets of them that are repeated and removed.
type Case<'a> = (&'a str, &'a [&'a [u8]], (usize, usize));

#[test]
fn headers_end_behind_the_innermost_tcp_or_udp() {
    let (eth4, eth6) = (ethernet(ethernet::IPV4), ethernet(ethernet::IPV6));
    let geneve = [2, 0, 0x65, 0x58, 0, 0, 7, 0];
    let key = [0x20, 0, 0x65, 0x58, 0, 0, 0, 9];
    let all = [&[0xb0, 0, 0x86, 0xdd][..], &[0; 12]].concat();
    let mut long = v4(6);
    long[0] = 0x46;
    long.extend([1; 4]);
    let tags = [0, 1, 0x81, 0, 0, 2, 8, 0];
    let cases: &[Case] = &[
        ("TCP", &[&eth4, &v4(6), &tcp(5)], (54, 0)),
        ("options", &[&eth4, &long, &tcp(8)], (70, 0)),
        ("UDP", &[&eth6, &v6(17), &udp(4791)], (62, 0)),
        (
            "two tags",
            &[&ethernet(0x88a8), &tags, &v4(6), &tcp(5)],
            (62, 0),
        ),
        ("BIG TCP", &[&eth6, &v6(0), &JUMBO_OF_TCP, &tcp(8)], (86, 8)),
        (
            "hop-by-hop, destination, routing, destination",
            &[
                &eth6,
                &v6(0),
                &extension(60, 0),
                &extension(43, 1),
                &extension(60, 6),
                &extension(17, 2),
                &udp(9),
            ],
            (166, 0),
        ),
        (
            "VXLAN",
            &[&eth4, &v4(17), &udp(4789), &VNI, &eth4, &v4(6), &tcp(8)],
            (116, 0),
        ),
        (
            "VXLAN of Linux, in IPv6, of a tagged frame",
            &[
                &eth6,
                &v6(17),
                &udp(8472),
                &VNI,
                &ethernet(0x8100),
                &[0, 5, 0x86, 0xdd],
                &v6(17),
                &udp(9),
            ],
            (136, 0),
        ),
        (
            "GENEVE with options",
            &[
                &eth6,
                &v6(17),
                &udp(6081),
                &geneve,
                &[0; 8],
                &eth6,
                &v6(17),
                &udp(9),
            ],
            (140, 0),
        ),
        (
            "GRE",
            &[&eth4, &v4(47), &[0, 0, 8, 0], &v4(6), &tcp(5)],
            (78, 0),
        ),
        (
            "GRE of frames, with a key",
            &[&eth4, &v4(47), &key, &eth4, &v4(6), &tcp(5)],
            (96, 0),
        ),
        (
            "GRE with checksum, key and sequence number",
            &[&eth6, &v6(47), &all, &v6(6), &tcp(5)],
            (130, 0),
        ),
        ("IP in IP", &[&eth4, &v4(4), &v4(6), &tcp(5)], (74, 0)),
        ("IPv6 in IPv4", &[&eth4, &v4(41), &v6(6), &tcp(5)], (94, 0)),
        ("IPv4 in IPv6", &[&eth6, &v6(4), &v4(17), &udp(9)], (82, 0)),
        (
            "SRv6",
            &[&eth6, &v6(43), &extension(41, 4), &v6(6), &tcp(5)],
            (154, 0),
        ),
        (
            "SRv6 of frames",
            &[&eth6, &v6(143), &eth4, &v4(6), &tcp(5)],
            (108, 0),
        ),
    ];
    for (name, parts, expected) in cases {
        assert_eq!(of(&frame(parts)), Some(*expected), "{name}");
    }
}

#[test]
fn what_is_not_known_has_no_headers() {
    let (eth4, eth6) = (ethernet(ethernet::IPV4), ethernet(ethernet::IPV6));
    let inside = [&eth4[..], &v4(6), &tcp(5)].concat();
    let on_udp = |port, header: [u8; 8]| {
        let parts: [&[u8]; 5] = [&eth4, &v4(17), &udp(port), &header, &inside];
        frame(&parts)
    };
    let gre = |header: [u8; 4]| frame(&[&eth4, &v4(47), &header, &inside]);
    assert!(of(&on_udp(4789, VNI)).is_some());
    assert!(of(&gre([0, 0, 0x65, 0x58])).is_some());
    let mut others = vec![
        (
            "MPLS",
            frame(&[&ethernet(0x8847), &[0; 4], &v4(6), &tcp(5)]),
        ),
        (
            "another TPID",
            frame(&[&ethernet(0x9100), &[0, 1, 8, 0], &v4(6), &tcp(5)]),
        ),
        ("ESP", frame(&[&eth4, &v4(50)])),
        ("SCTP", frame(&[&eth4, &v4(132)])),
        (
            "a fragment",
            frame(&[&eth6, &v6(44), &extension(6, 0), &tcp(5)]),
        ),
        (
            "authentication",
            frame(&[&eth6, &v6(51), &extension(6, 4), &tcp(5)]),
        ),
        ("GRE, version 1", gre([0, 1, 0x65, 0x58])),
        ("GRE with a route", gre([0x40, 0, 0x65, 0x58])),
        ("ERSPAN", gre([0, 0, 0x88, 0xbe])),
        ("VXLAN without a VNI", on_udp(4789, [0; 8])),
        ("VXLAN-GPE", on_udp(4789, [0x0c, 0, 0, 1, 0, 0, 7, 0])),
        (
            "GENEVE, version 1",
            on_udp(6081, [0x40, 0, 0x65, 0x58, 0, 0, 7, 0]),
        ),
        (
            "a short IPv4 header",
            frame(&[&eth4, &[&[0x44][..], &v4(6)[1..]].concat()]),
        ),
        (
            "a short TCP header",
            frame(&[&eth4, &v4(6), &tcp(4), &[0; 4]]),
        ),
    ];
    others.extend(OTHER_TUNNELS.map(|port| ("another tunnel", on_udp(port, VNI))));
    for (name, octets) in others {
        assert_eq!(of(&octets), None, "{name}");
    }
    let endless = v4(4).repeat(MAX_HEADERS);
    assert_eq!(of(&frame(&[&eth4, &endless])), None);
}

#[test]
fn ports_of_tunnels_are_told() {
    let tunnels: Vec<_> = (0..=u16::MAX).filter(|port| is_tunnel(*port)).collect();
    let all = [2152, 4500, 4754, 4789, 4790, 6080, 6081, 6635, 8472];
    assert_eq!(tunnels, all);
}

#[test]
fn what_is_cut_short_has_no_headers() {
    let eth4 = ethernet(ethernet::IPV4);
    let whole = [&eth4[..], &v4(17), &udp(4789), &VNI, &eth4, &v4(6), &tcp(5)].concat();
    assert!(of(&whole).is_some());
    // The last octets that are read of TCP stand four before its end.
    for length in 0..whole.len() - 4 {
        assert_eq!(of(&whole[..length]), None, "{length}");
    }
}

/// Numbers that look random (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u8 {
        (self.next() % bound) as u8
    }
}

/// A frame as a sender puts it together from the inside out.
fn nested(numbers: &mut Numbers) -> (Vec<u8>, usize) {
    let (mut protocol, mut inner) = if numbers.below(2) == 0 {
        (6, tcp(5 + numbers.below(11)))
    } else {
        (17, udp(20_000))
    };
    let mut count = 1;
    loop {
        let is_v6 = numbers.below(2) == 0;
        let (mut header, of_packet, ethertype) = if is_v6 {
            for _ in 0..numbers.below(3) {
                let next = [0, 43, 60][usize::from(numbers.below(3))];
                let mut header = extension(protocol, numbers.below(4));
                header[2..]
                    .iter_mut()
                    .for_each(|octet| *octet = numbers.below(100));
                inner = [header, inner].concat();
                (protocol, count) = (next, count + 1);
            }
            (v6(protocol), 41, ethernet::IPV6)
        } else {
            let mut header = v4(protocol);
            let words = numbers.below(11);
            header[0] += words;
            header.resize(20 + 4 * usize::from(words), 1);
            (header, 4, ethernet::IPV4)
        };
        header.append(&mut inner);
        inner = header;
        count += 1;
        let framed = |inner: &[u8]| [&ethernet(ethertype), inner].concat();
        if count > MAX_HEADERS - 9 || numbers.below(3) == 0 {
            inner = framed(&inner);
            for _ in 0..numbers.below(3) {
                inner.splice(
                    12..12,
                    [[0x81, 0, 0, 1], [0x88, 0xa8, 0, 2]][usize::from(numbers.below(2))],
                );
            }
            return (inner.clone(), inner.len());
        }
        (protocol, inner) = match numbers.below(5) {
            0 => (of_packet, inner),
            1 => (143, framed(&inner)),
            2 => (17, [&udp(4789)[..], &VNI, &framed(&inner)].concat()),
            3 => {
                let length = 4 * numbers.below(8);
                let header = [length / 4, 0, 0x65, 0x58, 0, 0, 9, 0];
                let options = vec![3; length.into()];
                (
                    17,
                    [&udp(6081)[..], &header, &options, &framed(&inner)].concat(),
                )
            }
            _ => {
                let fields = numbers.below(8);
                let flags = (fields & 4) << 5 | (fields & 3) << 4;
                let header = [&[flags, 0][..], &ethertype.to_be_bytes()].concat();
                let more = vec![0; 4 * fields.count_ones() as usize];
                (47, [header, more, inner].concat())
            }
        };
        count += 3;
    }
}

#[test]
fn headers_are_found_however_they_are_nested() {
    let mut numbers = Numbers(1);
    let mut longest = 0;
    for number in 0..20_000 {
        let (octets, length) = nested(&mut numbers);
        longest = longest.max(length);
        let found = of(&frame(&[&octets]));
        assert_eq!(found, Some((length, 0)), "{number}: {octets:02x?}");
    }
    assert!(longest > 400, "{longest}");
}

#[test]
fn no_octets_make_it_panic_or_read_beyond_them() {
    let mut numbers = Numbers(2);
    let mut found = 0;
    for _ in 0..20_000 {
        let (mut octets, _) = nested(&mut numbers);
        octets.resize(octets.len() + usize::from(numbers.below(40)), 0);
        for _ in 0..numbers.below(4) {
            let at = numbers.next() as usize % octets.len();
            octets[at] = numbers.next() as u8;
        }
        octets.truncate(numbers.next() as usize % (octets.len() + 1));
        if let Some((repeated, removed)) = of(&octets) {
            // The fields that tell the length of the last header are all that is read of it.
            assert!(
                repeated + removed <= octets.len() + 60 - 16,
                "{octets:02x?}"
            );
            found += 1;
        }
    }
    assert!(found > 1000, "{found}");
}
