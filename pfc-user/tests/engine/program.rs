//! The program `flow` by BPF_PROG_TEST_RUN, which runs it in the kernel without an interface: each
//! count against the host's own codec.

use pfc_ebpf::abi::flow::{CLASSES, Pauses};
use pfc_ebpf::flow_stamp::{FlowStamp, Form, MAGIC};
use pfc_ebpf::stamp::MASK_40;
use pfc_ebpf::units::{Priority, Quanta};
use pfc_ebpf::wire::mac_control::{MacControl, number};
use pfc_ebpf::wire::wrap;
use validator::driver::bpf::flow::{Expected, FlowProgram, Place, Received};
use validator::driver::kernel::clock;
use validator_core::engine::packet::{Packet, Protocol, Template};

use crate::common;
use crate::engine::bench::{gigabit, packet, udp};

const DROP: u32 = 1;
const PASS: u32 = 2;
const PLACE: Place = Place {
    flow: 5,
    generation: 0xbeef,
};
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 5];

/// Frames that a device may take out of a tunnel.
const fn expected(verify: bool) -> Expected {
    Expected {
        verify,
        wraps: wrap::PLAIN | wrap::UDP_TUNNEL,
        short: false,
    }
}

const EXPECTED_SHORT: Expected = Expected {
    short: true,
    ..expected(false)
};

/// A program that counts at [`PLACE`].
fn loaded(verify: bool) -> FlowProgram {
    let program = FlowProgram::load(8).unwrap();
    program.configure(gigabit());
    program.places().begin(PLACE, expected(verify));
    program
}

fn stamp(place: Place, sequence: u64) -> FlowStamp {
    FlowStamp {
        flow: place.flow,
        generation: place.generation,
        sequence,
        time: clock::now() & MASK_40,
    }
}

/// A frame of so many octets without FCS.
fn frame(packet: &Packet, length: usize, stamp: &FlowStamp) -> Vec<u8> {
    frame_with(Form::Whole, packet, length, stamp)
}

fn frame_with(form: Form, packet: &Packet, length: usize, stamp: &FlowStamp) -> Vec<u8> {
    let template = Template::new(packet, &[], Some(form));
    let mut frame = Vec::new();
    template.render(0, length, &mut frame);
    template.stamp(&mut frame, stamp);
    frame
}

fn run(program: &FlowProgram, frame: &[u8]) -> u32 {
    program.test_run(frame, 1).unwrap().action
}

fn run_all(program: &FlowProgram, sequences: impl IntoIterator<Item = u64>) -> Received {
    for sequence in sequences {
        let frame = frame(&udp(), 60, &stamp(PLACE, sequence));
        assert_eq!(run(program, &frame), DROP);
    }
    program.places().read(PLACE.flow)
}

#[test]
fn root_stamped_frames_count_with_octets_and_latency() {
    if !common::need_root("root_stamped_frames_count_with_octets_and_latency") {
        return;
    }
    let program = loaded(true);
    let before = clock::now();
    let late = FlowStamp {
        time: (clock::now() - (1 << 30)) & MASK_40,
        ..stamp(PLACE, 0)
    };
    run(&program, &frame(&udp(), 1020, &late));
    let received = run_all(&program, 1..5);
    let after = clock::now();
    assert_eq!((received.frames, received.octets), (5, 1020 + 4 * 60));
    assert!((1 << 30..=(1 << 30) + after - before).contains(&received.latency_max));
    assert!(received.latency_min() < 1 << 30);
    assert!(received.latency_sum >= received.latency_max);
    assert_eq!((received.corrupt, received.reordered), (0, 0));
    let port = program.port().unwrap();
    assert_eq!((port.frames, port.test, port.octets), (5, 5, 1260));
}

#[test]
fn root_duplicates_late_ones_and_those_beyond_the_window_count_apart() {
    if !common::need_root("root_duplicates_late_ones_and_those_beyond_the_window_count_apart") {
        return;
    }
    let received = run_all(&loaded(true), [1, 2, 3, 6, 4, 5, 8, 9, 9, 4]);
    assert_eq!(
        (received.frames, received.duplicates, received.reordered),
        (8, 2, 2)
    );
    let received = run_all(&loaded(true), [0, 2000, 1488, 2000, 1489]);
    assert_eq!(
        (received.frames, received.duplicates, received.beyond),
        (3, 1, 1)
    );
}

/// Frames with a short stamp count in full but for their latency: over the end of 16 bits, and
/// after a loss of 65,000 frames. Copies and frames of an earlier start are told apart, and a frame
/// of anybody that ends in six octets of such a sum is no frame of a flow with whole stamps.
#[test]
fn root_frames_with_a_short_stamp_count_but_for_their_latency() {
    use Protocol::{Ethernet, Ipv4, Tcp, Udp, Vlan};
    if !common::need_root("root_frames_with_a_short_stamp_count_but_for_their_latency") {
        return;
    }
    let program = loaded(false);
    let short_frame =
        |stack: &[Protocol], stamp: &FlowStamp| frame_with(Form::Short, &packet(stack), 60, stamp);
    let tcp = [Ethernet, Ipv4, Tcp];
    run(&program, &short_frame(&tcp, &stamp(PLACE, 0)));
    let port = program.port().unwrap();
    assert_eq!((port.test, port.other, port.damaged), (0, 1, 0));
    for stack in [&tcp[..], &[Ethernet, Vlan, Ipv4, Udp]] {
        program.places().begin(PLACE, EXPECTED_SHORT);
        let sent = [
            0, 1, 3, 2, 3, 65_000, 65_535, 65_536, 65_537, 65_536, 130_537,
        ];
        for sequence in sent {
            let frame = short_frame(stack, &stamp(PLACE, sequence));
            assert_eq!(run(&program, &frame), DROP);
        }
        let found = program.places().read(PLACE.flow);
        assert_eq!(
            (
                found.frames,
                found.octets,
                found.duplicates,
                found.reordered,
                found.beyond
            ),
            (9, 9 * 60, 2, 1, 0),
            "{stack:?}"
        );
        assert_eq!(
            (found.latency_sum, found.latency_max, found.corrupt),
            (0, 0, 0)
        );
        let before = program.port().unwrap();
        let next = Place {
            generation: PLACE.generation + 1,
            ..PLACE
        };
        run(&program, &short_frame(stack, &stamp(next, 9)));
        let whole = frame(&udp(), 60, &stamp(PLACE, 10));
        run(&program, &whole);
        let after = program.port().unwrap();
        assert_eq!(
            (after.stale - before.stale, after.test - before.test),
            (2, 0)
        );
    }
}

/// Octets before a short stamp that look like the begin of a whole one do not hide it.
#[test]
fn root_a_short_stamp_is_found_behind_octets_of_the_other_magic() {
    if !common::need_root("root_a_short_stamp_is_found_behind_octets_of_the_other_magic") {
        return;
    }
    let program = loaded(false);
    program.places().begin(PLACE, EXPECTED_SHORT);
    let mut frame = vec![0; 60];
    frame[42..44].copy_from_slice(&MAGIC.to_be_bytes());
    frame[54..].copy_from_slice(&stamp(PLACE, 0).emit_short());
    run(&program, &frame);
    assert_eq!(program.places().read(PLACE.flow).frames, 1);
    frame[59] ^= 1;
    run(&program, &frame);
    let port = program.port().unwrap();
    assert_eq!((port.test, port.damaged), (1, 1));
}

#[test]
fn root_the_stamp_is_found_where_a_device_took_tags_off_and_padded() {
    use Protocol::{Ethernet, Ipv4, Ipv6, Udp, Vlan};
    if !common::need_root("root_the_stamp_is_found_where_a_device_took_tags_off_and_padded") {
        return;
    }
    const TAG: usize = 4;
    for (form, expected) in [(Form::Whole, expected(true)), (Form::Short, EXPECTED_SHORT)] {
        let program = loaded(true);
        program.places().begin(PLACE, expected);
        let mut count = 0;
        for (tags, rest) in [
            (1, vec![Ipv4]),
            (2, vec![Ipv4]),
            (1, vec![Ipv4, Udp]),
            (2, vec![Ipv4, Udp]),
            (1, vec![]),
            (2, vec![]),
        ] {
            let stack = [vec![Ethernet], vec![Vlan; tags], rest].concat();
            let shortest = packet(&stack).shortest(Some(form)) as usize - 4;
            for length in shortest.max(60)..70 {
                let mut frame = frame_with(form, &packet(&stack), length, &stamp(PLACE, count));
                frame.drain(12..12 + tags * TAG);
                frame.resize(frame.len().max(60), 0);
                run(&program, &frame);
                count += 1;
                let found = program.places().read(PLACE.flow);
                assert_eq!(
                    (found.frames, found.corrupt),
                    (count, 0),
                    "{form:?}, {stack:?}, {length} octets"
                );
            }
        }
        // A device may pad to more than the shortest frame.
        for stack in [[Ethernet, Ipv4, Udp], [Ethernet, Ipv6, Udp]] {
            let mut padded = frame_with(form, &packet(&stack), 100, &stamp(PLACE, count));
            padded.resize(131, 0);
            run(&program, &padded);
            count += 1;
            assert_eq!(program.places().read(PLACE.flow).frames, count);
        }
    }
}

#[test]
fn root_frames_that_another_quotes_or_has_in_a_tunnel_are_not_the_flows_own() {
    let test = "root_frames_that_another_quotes_or_has_in_a_tunnel_are_not_the_flows_own";
    if !common::need_root(test) {
        return;
    }
    let program = loaded(false);
    let expected = Expected {
        wraps: wrap::PLAIN,
        ..expected(false)
    };
    program.places().begin(PLACE, expected);
    let own = frame(&udp(), 100, &stamp(PLACE, 0));
    let mut damaged = own.clone();
    damaged[90] ^= 1;
    let ip = |protocol: u8, rest: &[u8], inner: &[u8]| {
        let mut frame = own[..14].to_vec();
        let total = (20 + rest.len() + inner.len()) as u16;
        frame.extend([0x45, 0]);
        frame.extend(total.to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 9, 192, 0, 2, 1]);
        [&frame[..], rest, inner].concat()
    };
    let ipv6 = |next: u8, rest: &[u8], inner: &[u8]| {
        let mut frame = [&own[..12], &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
        let length = (rest.len() + inner.len()) as u16;
        frame.extend(length.to_be_bytes());
        frame.extend([next, 64]);
        frame.extend([0xfd; 32]);
        [&frame[..], rest, inner].concat()
    };
    let mut others = Vec::new();
    for inner in [&own[..], &damaged[..]] {
        // Protocol, its first octets, and what is within.
        let mut within: Vec<(u8, [u8; 8], &[u8])> = vec![
            // GRE of frames, and a mirror (ERSPAN).
            (47, [0x10, 0, 0x65, 0x58, 0, 0, 0, 1], inner),
            (47, [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1], inner),
        ];
        // IP, Ethernet, a compressed payload, L2TP, MPLS.
        within.extend([4, 41, 97, 108, 115, 137, 143].map(|number| (number, [0; 8], inner)));
        for port in [2152, 4500, 4754, 4789, 4790, 6080, 6081, 6635, 8472_u16] {
            let [high, low] = port.to_be_bytes();
            within.push((17, [0xc0, 0, high, low, 0, 0, 0, 0], inner));
        }
        for (protocol, first, inner) in &within {
            others.push(ip(*protocol, first, inner));
        }
        others.push(ip(1, &[11, 0, 0, 0, 0, 0, 0, 0], &inner[14..]));
        within.push((58, [3, 0, 0, 0, 0, 0, 0, 0], &inner[14..]));
        for (protocol, first, inner) in within {
            others.push(ipv6(protocol, &first, inner));
            // Hop-by-hop options, a routing header, and the options in which Linux says how many
            // tunnels may follow.
            for extension in [0, 43, 60] {
                let header = [protocol, 0, 4, 1, 4, 1, 1, 0];
                others.push(ipv6(extension, &[header, first].concat(), inner));
            }
            let options = [60, 0, 1, 4, 0, 0, 0, 0, protocol, 0, 4, 1, 4, 1, 1, 0];
            others.push(ipv6(0, &[&options[..], &first].concat(), inner));
        }
        // The last fragment of such a packet.
        others.push(ipv6(44, &[60, 0, 0, 8, 0, 0, 0, 1], inner));
    }
    for (count, frame) in (1..).zip(&others) {
        run(&program, frame);
        let found = program.places().read(PLACE.flow);
        assert_eq!(found.wrapped, count, "{frame:02x?}");
        assert_eq!((found.frames, found.duplicates, found.corrupt), (0, 0, 0));
    }
    run(&program, &own);
    let found = program.places().read(PLACE.flow);
    assert_eq!((found.frames, found.duplicates), (1, 0));
}

#[test]
fn root_sequence_numbers_go_on_after_40_bits() {
    if !common::need_root("root_sequence_numbers_go_on_after_40_bits") {
        return;
    }
    // In steps that the 40 bits tell apart.
    let steps = [0, 0x70_0000_0000, 0xe0_0000_0000, MASK_40, 1, 0, 2];
    let received = run_all(&loaded(true), steps);
    assert_eq!(
        (received.frames, received.duplicates, received.reordered),
        (7, 0, 1)
    );
}

#[test]
fn root_frames_of_another_start_count_nowhere() {
    if !common::need_root("root_frames_of_another_start_count_nowhere") {
        return;
    }
    let program = loaded(true);
    run_all(&program, 0..3);
    for place in [
        Place {
            generation: 0xbeee,
            ..PLACE
        },
        Place { flow: 6, ..PLACE },
        Place {
            flow: 5000,
            ..PLACE
        },
    ] {
        assert_eq!(run(&program, &frame(&udp(), 60, &stamp(place, 9))), DROP);
    }
    assert_eq!(program.places().read(PLACE.flow).frames, 3);
    assert_eq!(program.port().unwrap().stale, 3);
    // The place has another owner now, which begins at zero.
    let next = Place {
        generation: 7,
        ..PLACE
    };
    program.places().begin(next, expected(true));
    run_all(&program, 3..5);
    assert_eq!(program.places().read(next.flow).frames, 0);
    run(&program, &frame(&udp(), 60, &stamp(next, 0)));
    assert_eq!(program.places().read(next.flow).frames, 1);
    assert_eq!(program.port().unwrap().stale, 5);
}

#[test]
fn root_damage_is_found_in_the_stamp_and_in_what_a_checksum_covers() {
    if !common::need_root("root_damage_is_found_in_the_stamp_and_in_what_a_checksum_covers") {
        return;
    }
    let whole = frame(&udp(), 200, &stamp(PLACE, 0));
    // The sequence number, the payload, an IP address.
    for at in [190, 100, 27] {
        let program = loaded(true);
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        run(&program, &damaged);
        run(&program, &frame(&udp(), 200, &stamp(PLACE, 1)));
        let received = program.places().read(PLACE.flow);
        assert_eq!(received.corrupt, 1, "octet {at}");
    }
    // Where the checksum is wrong on purpose, it says nothing.
    let program = loaded(false);
    let mut damaged = whole.clone();
    damaged[100] ^= 0x10;
    run(&program, &damaged);
    let received = program.places().read(PLACE.flow);
    assert_eq!((received.frames, received.corrupt), (1, 0));
}

#[test]
fn root_the_stamp_is_found_behind_every_stack() {
    use Protocol::{Ethernet, Ipv4, Ipv6, Tcp, Udp, Vlan, Vxlan};
    if !common::need_root("root_the_stamp_is_found_behind_every_stack") {
        return;
    }
    let program = loaded(false);
    let stacks = [
        vec![Ethernet],
        vec![Ethernet, Ipv6, Tcp],
        vec![Ethernet, Vlan, Vlan, Ipv4, Udp],
        vec![Ethernet, Ipv4, Udp, Vxlan, Ethernet, Ipv4, Udp],
    ];
    let mut count = 0;
    for stack in &stacks {
        for length in [150, 151, 1500] {
            let frame = frame(&packet(stack), length, &stamp(PLACE, count));
            assert_eq!(run(&program, &frame), DROP);
            count += 1;
            let found = program.places().read(PLACE.flow).frames;
            assert_eq!(found, count, "{stack:?}, {length} octets");
        }
    }
}

#[test]
fn root_pauses_are_published_by_class_and_counted() {
    if !common::need_root("root_pauses_are_published_by_class_and_counted") {
        return;
    }
    let program = loaded(true);
    let pauses = program.pauses();
    let classes = [3, 4].map(|class| Priority::new(class).unwrap());
    let pfc = |time| MacControl::pfc(classes, Quanta(time)).emit(PEER);
    // A time of 0 is no pause, not even one that ends as it comes: a sender that has read its clock
    // just before would find a queue held.
    run(&program, &pfc(0));
    assert_eq!(pauses.read().until, [0; CLASSES]);
    let before = clock::now();
    assert_eq!(run(&program, &pfc(1000)), DROP);
    let after = clock::now();
    // A quantum lasts 512 ns at 1 Gbit/s.
    for (class, until) in pauses.read().until.iter().enumerate() {
        if [3, 4].contains(&class) {
            assert!((before + 512_000..=after + 512_001).contains(until));
        } else {
            assert_eq!(*until, 0, "class {class}");
        }
    }
    run(&program, &pfc(0));
    let now = clock::now();
    assert_eq!(pauses.read().until, [0; CLASSES]);
    run(&program, &MacControl::Pause { quanta: 7 }.emit(PEER));
    let mut other = pfc(1);
    other[15] = 9;
    run(&program, &other);
    let port = program.port().unwrap();
    assert_eq!((port.pause, port.pfc, port.other_control), (1, 3, 1));
    assert_eq!(port.pfc_by_class, [0, 0, 0, 3, 3, 0, 0, 0]);
    assert!(pauses.read().until[8] > now);
}

/// Runs the program on a frame; what the clock showed before and after.
fn timed(program: &FlowProgram, frame: &[u8]) -> [u64; 2] {
    let before = clock::now();
    assert_eq!(run(program, frame), DROP);
    [before, clock::now()]
}

#[test]
fn root_a_queue_is_held_for_the_union_of_the_pauses_of_its_classes() {
    let test = "root_a_queue_is_held_for_the_union_of_the_pauses_of_its_classes";
    if !common::need_root(test) {
        return;
    }
    // A frame of no time ends a pause of the longest time. Where this thread was held up for longer
    // than the pause, the rest says nothing.
    let (times, pauses) = loop {
        let (times, pauses) = overlapping();
        if times[5][1] - times[0][0] < Quanta(0xffff).nanos(gigabit()) {
            break (times, pauses);
        }
    };
    // From 1 to the end of 4 without a break, and from the second beginning of 4 to its end.
    let spans = [[0, 3], [4, 5]];
    let least: u64 = spans
        .iter()
        .map(|[on, off]| times[*off][0] - times[*on][1])
        .sum();
    let most: u64 = spans
        .iter()
        .map(|[on, off]| times[*off][1] - times[*on][0])
        .sum();
    let held = pauses.queues[2].paused(clock::now());
    assert!((least..=most).contains(&held), "{least} {held} {most}");
    let others = [0, 1, 3, 4, 5, 6, 7].map(|queue| pauses.queues[queue].at);
    assert_eq!(others, [0; 7]);
}

/// Pauses of classes 1 and 4, which both hold queue 2: when each of the six frames came, and what
/// was published.
fn overlapping() -> ([[u64; 2]; 6], Pauses) {
    let program = loaded(true);
    program.set_holders(&[0, 0, 0b1_0010, 0, 0, 0, 0b10_0000, 0]);
    let frame = |class, time| {
        let class = [Priority::new(class).unwrap()];
        MacControl::pfc(class, Quanta(time)).emit(PEER)
    };
    let (on, off) = (0xffff, 0);
    let times = [(1, on), (4, on), (1, off), (4, off), (4, on), (4, off)]
        .map(|(class, time)| timed(&program, &frame(class, time)));
    // Nothing here obeys 802.3x.
    run(&program, &MacControl::Pause { quanta: on }.emit(PEER));
    (times, program.pauses().read())
}

#[test]
fn root_pause_frames_of_known_sources_are_counted_apart_and_pause_all_the_same() {
    let test = "root_pause_frames_of_known_sources_are_counted_apart_and_pause_all_the_same";
    if !common::need_root(test) {
        return;
    }
    let own = [2, 0, 0, 0, 0, 7];
    let mut program = loaded(true);
    let pfc = |class, source| {
        let class = [Priority::new(class).unwrap()];
        MacControl::pfc(class, Quanta(9)).emit(source)
    };
    let pause = MacControl::Pause { quanta: 9 };
    program.set_own(&[number(own), 0].into()).unwrap();
    for frame in [pfc(1, own), pfc(2, own), pfc(2, PEER), pfc(3, [0; 6])] {
        run(&program, &frame);
    }
    run(&program, &pause.emit(own));
    let port = program.port().unwrap();
    assert_eq!((port.own_pause, port.own_pfc), (1, 2));
    assert_eq!(port.own_pfc_by_class, [0, 1, 1, 0, 0, 0, 0, 0]);
    // An address of zeros is nobody's: it may be the plan's or a device's.
    assert_eq!(port.nobodys_pfc_by_class, [0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!((port.pause, port.pfc), (0, 1));
    assert_eq!(port.pfc_by_class, [0, 0, 1, 0, 0, 0, 0, 0]);
    let pauses = program.pauses().read();
    assert!([1, 2, 3, 8].iter().all(|class| pauses.until[*class] > 0));
    // Another plan has other sources.
    program.set_own(&[0].into()).unwrap();
    run(&program, &pfc(1, own));
    run(&program, &pfc(1, [0; 6]));
    let port = program.port().unwrap();
    assert_eq!((port.own_pfc, port.nobodys_pfc, port.pfc), (2, 2, 2));
}

#[test]
fn root_arp_and_neighbour_discovery_reach_the_stack_and_nothing_else_does() {
    if !common::need_root("root_arp_and_neighbour_discovery_reach_the_stack_and_nothing_else_does")
    {
        return;
    }
    let mut program = loaded(true);
    let mut arp = [0; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    let mut tagged = [0; 64];
    tagged[12..18].copy_from_slice(&[0x81, 0, 0, 7, 8, 6]);
    let icmp = |message: u8| {
        let mut frame = [0; 86];
        frame[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
        (frame[20], frame[54]) = (58, message);
        frame
    };
    for (action, frame) in [
        (PASS, &arp[..]),
        (PASS, &tagged),
        (PASS, &icmp(135)),
        (PASS, &icmp(136)),
        (DROP, &icmp(128)),
        (DROP, &icmp(143)),
        (DROP, &[0; 60]),
    ] {
        assert_eq!(run(&program, frame), action, "{frame:02x?}");
    }
    let port = program.port().unwrap();
    assert_eq!((port.neighbours, port.other), (4, 3));
    let mut ring = program.take_rings().unwrap().neighbours;
    let first = ring.next().unwrap().to_vec();
    assert_eq!(first[16..], arp);
    assert_eq!(ring.next().unwrap().len(), 16 + 64);
    // Any frame may end in octets that a short stamp could have.
    program.places().begin(PLACE, EXPECTED_SHORT);
    arp[54..].copy_from_slice(&stamp(PLACE, 0).emit_short());
    assert_eq!(run(&program, &arp), PASS);
    assert_eq!(program.places().read(PLACE.flow), Received::default());
}

#[test]
fn root_captured_frames_are_whole() {
    if !common::need_root("root_captured_frames_are_whole") {
        return;
    }
    let mut program = loaded(true);
    let frames: Vec<_> = [60, 61, 1500, 3000]
        .into_iter()
        .map(|length| frame(&udp(), length, &stamp(PLACE, length as u64)))
        .collect();
    run(&program, &frames[0]);
    program.capture(true);
    for frame in &frames {
        run(&program, frame);
    }
    program.capture(false);
    run(&program, &frames[0]);
    let mut ring = program.take_rings().unwrap().capture;
    for frame in &frames {
        assert_eq!(ring.next().unwrap()[16..], *frame);
    }
    assert!(ring.next().is_none());
    assert_eq!(program.port().unwrap().missed, 0);
}
