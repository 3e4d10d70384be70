use pfc_ebpf::abi::Trust;

use super::lab::*;
use crate::dut::switch::config::Scheduler;
use crate::dut::switch::model::Departure;

#[test]
fn a_frame_leaves_unchanged_at_the_other_port_when_its_last_bit_is_out() {
    let mut switch = switch(&[]);
    switch.ingress(0, 500, frame(0, 0));
    switch.ingress(1, 700, frame(0, 1));
    switch.advance(700);
    assert_eq!(switch.next_event(), Some(500 + FRAME));
    let expected = [
        Departure {
            port: 1,
            at: 500 + FRAME,
            frame: frame(0, 0),
        },
        Departure {
            port: 0,
            at: 700 + FRAME,
            frame: frame(0, 1),
        },
    ];
    assert_eq!(departures(&mut switch, 500 + FRAME - 1), []);
    assert_eq!(departures(&mut switch, 700 + FRAME), expected);
    assert_eq!(switch.next_event(), None);
}

#[test]
fn frames_leave_at_exactly_the_line_rate() {
    let mut switch = switch(&[]);
    (0..1000).for_each(|n| switch.ingress(0, 10, frame(0, n)));
    let expected: Vec<_> = (0..1000).map(|n| (0, n, 10 + (n + 1) * FRAME)).collect();
    assert_eq!(left(&mut switch, 1000 * FRAME + 10), expected);
}

#[test]
fn priorities_take_turns_and_keep_their_own_order() {
    let mut switch = switch(&[]);
    for flow in 0..8 {
        (0..10).for_each(|n| switch.ingress(0, 0, frame(flow, n)));
    }
    let expected: Vec<_> = (0..80).map(|turn| ((turn % 8) as u8, turn / 8)).collect();
    assert_eq!(order(&mut switch, 80 * FRAME), expected);
}

/// The order in which the flows' frames leave that are all there at once, the first of flow 0 being
/// on the wire: pairs of a flow and its number of frames of that length.
fn served(scheduler: Scheduler, weights: &str, waiting: &[(u8, u64, usize)]) -> Vec<u8> {
    let mut config = config();
    config.scheduler = scheduler;
    config.weights = weights.parse().unwrap();
    let mut switch = with(config, &[]);
    switch.ingress(0, 0, frame(0, 1000));
    for (flow, frames, length) in waiting {
        (0..*frames).for_each(|n| switch.ingress(0, 1, frame_of(*flow, n, *length)));
    }
    let left = left(&mut switch, 100 * FRAME).into_iter();
    left.skip(1).map(|(flow, ..)| flow).collect()
}

const EQUAL: &str = "1,1,1,1,1,1,1,1";

#[test]
fn a_scheduler_serves_the_highest_first_or_frame_by_frame_or_octet_by_octet() {
    let waiting = [(1, 6, 500), (5, 3, 1000), (2, 3, 1000)];
    for (scheduler, expected) in [
        (Scheduler::Strict, [5, 5, 5, 2, 2, 2, 1, 1, 1, 1, 1, 1]),
        (Scheduler::RoundRobin, [1, 2, 5, 1, 2, 5, 1, 2, 5, 1, 1, 1]),
        // 4096 octets a turn.
        (Scheduler::Drr, [1, 1, 1, 1, 1, 1, 2, 2, 2, 5, 5, 5]),
    ] {
        assert_eq!(
            served(scheduler, EQUAL, &waiting),
            expected,
            "{scheduler:?}"
        );
    }
    let longer = [(1, 10, 1000), (2, 30, 500)];
    let found = served(Scheduler::Drr, EQUAL, &longer);
    let turns = [
        vec![1; 4],
        vec![2; 8],
        vec![1; 4],
        vec![2; 8],
        vec![1; 2],
        vec![2; 14],
    ];
    assert_eq!(found, turns.concat());
}

#[test]
fn shares_are_by_weight_in_octets() {
    let waiting = [(1, 40, 1024), (2, 40, 1024), (5, 40, 512)];
    let found = served(Scheduler::Drr, "1,3,1,1,1,1,1,1", &waiting);
    let turn = [vec![1; 12], vec![2; 4], vec![5; 8]].concat();
    assert_eq!(found[..3 * turn.len()], turn.repeat(3));
}

#[test]
fn whatever_the_order_a_priority_that_is_paused_is_passed_over() {
    for scheduler in Scheduler::ALL {
        let mut config = config();
        config.scheduler = scheduler;
        let mut switch = with(config, &[]);
        switch.ingress(1, 0, pfc(4, 1000));
        for n in 0..3 {
            switch.ingress(0, 0, frame(4, n));
            switch.ingress(0, 0, frame(3, n));
        }
        let left = left(&mut switch, MS).into_iter();
        let flows: Vec<_> = left.map(|(flow, ..)| flow).collect();
        assert_eq!(flows, [3, 3, 3, 4, 4, 4], "{scheduler:?}");
    }
}

#[test]
fn a_lossy_queue_drops_what_comes_on_top_and_counts_it() {
    let mut config = config();
    config.lossy_queue = 10 * LENGTH as u64;
    let mut switch = with(config, &[]);
    // One of them is on the wire at once, as time passes after the first.
    switch.ingress(0, 0, frame(5, 0));
    (1..21).for_each(|n| switch.ingress(0, 1, frame(5, n)));
    assert_eq!(
        switch.drops().iter().collect::<Vec<_>>(),
        [(&"lossy-queue-full", &10)]
    );
    let expected: Vec<_> = (0..11).map(|sequence| (5, sequence)).collect();
    assert_eq!(order(&mut switch, MS), expected);
    assert_eq!(
        switch.xoff_sent(),
        [0; 8],
        "a lossy priority asks for no pause"
    );
}

#[test]
fn the_trusted_field_tells_the_priority() {
    let tag = |frame: &[u8], tci: u16| {
        let [high, low] = tci.to_be_bytes();
        [&frame[..12], &[0x81, 0x00, high, low], &frame[12..]].concat()
    };
    let ipv6 = |traffic_class: u8| {
        let mut frame = ADDRESSES.to_vec();
        frame.extend([
            0x86,
            0xdd,
            0x60 | traffic_class >> 4,
            traffic_class << 4,
            0,
            0,
        ]);
        frame.resize(100, 0);
        frame
    };
    let arp = || [&ADDRESSES[..], &[0x08, 0x06], &[0; 46]].concat();
    let cases = [
        (Trust::Dscp, frame(3, 0), true),
        (Trust::Dscp, frame(11, 0), true),
        (Trust::Dscp, frame(5, 0), false),
        (Trust::Dscp, tag(&frame(3, 0), 5 << 13), true),
        (Trust::Dscp, tag(&tag(&frame(3, 0), 7), 5 << 13), true),
        (Trust::Dscp, ipv6(3 << 2), true),
        (Trust::Dscp, ipv6(59 << 2 | 3), true),
        (Trust::Dscp, ipv6(5 << 2), false),
        (Trust::Dscp, arp(), false),
        (Trust::Pcp, tag(&frame(5, 0), 3 << 13 | 1), true),
        (Trust::Pcp, tag(&frame(3, 0), 5 << 13 | 1), false),
        (Trust::Pcp, frame(3, 0), false),
    ];
    for (trust, frame, is_3) in cases {
        let mut config = config();
        config.trust = trust;
        let mut switch = with(config, &[]);
        switch.ingress(1, 0, pfc(3, 0xffff));
        switch.ingress(0, 0, frame.clone());
        assert_eq!(
            departures(&mut switch, MS).is_empty(),
            is_3,
            "{trust:?} {frame:02x?}"
        );
    }
}

#[test]
fn a_frame_shorter_than_its_header_is_dropped() {
    let mut switch = switch(&[]);
    switch.ingress(0, 0, vec![0; 13]);
    switch.ingress(0, 0, [&[2; 12][..], &[0x81, 0x00, 0, 0]].concat());
    assert_eq!(departures(&mut switch, MS), []);
    assert_eq!(switch.drops()["runt"], 2);
}

#[test]
fn a_frame_from_the_past_counts_as_present() {
    let mut switch = switch(&[]);
    switch.advance(1000);
    switch.ingress(0, 400, frame(0, 0));
    assert_eq!(left(&mut switch, MS), [(0, 0, 1000 + FRAME)]);
}
