//! The figures of faults that have one.

use pfc_ebpf::abi::Trust;

use super::lab::*;
use crate::dut::switch::model::Switch;
use crate::plan::Nanos;

/// The sequences of flow 3 that leave by `now`, of ten frames that come in at once.
fn ten(faults: &[&str], now: Nanos) -> Vec<u64> {
    let mut switch = switch(faults);
    (0..10).for_each(|n| switch.ingress(0, 0, frame(3, n)));
    left(&mut switch, now)
        .into_iter()
        .map(|(_, sequence, _)| sequence)
        .collect()
}

/// When the frame that comes in at 5 has left, after XOFF at 0 with that time and, if asked for,
/// XON at 1 ms.
fn resumed(fault: &str, quanta: u16, xon: bool) -> Nanos {
    let mut switch = switch(&[fault]);
    switch.ingress(1, 0, pfc(3, quanta));
    switch.ingress(0, 5, frame(0, 0));
    switch.ingress(0, 5, frame(3, 0));
    if xon {
        switch.ingress(1, MS, pfc(3, 0));
    }
    left(&mut switch, 10_000 * MS)
        .into_iter()
        .find(|(flow, ..)| *flow == 3)
        .map_or(Nanos::MAX, |(.., at)| at)
}

#[test]
fn pauses_end_when_the_fault_says() {
    let full = |quanta: u64| quanta * 512 + FRAME;
    for (fault, quanta, xon, expected) in [
        ("resumes-early", 10_000, false, full(5_000)),
        ("pauses-longer", 10_000, false, full(20_000)),
        ("pauses-longer=10", 10_000, false, full(11_000)),
        ("adds-up-pauses", 10_000, false, full(10_000)),
        ("adds-up-pauses", 10_000, true, MS + FRAME),
        ("ignores-xon", 10_000, true, full(10_000)),
        ("never-resumes", 10_000, false, Nanos::MAX),
        ("never-resumes", 10_000, true, MS + FRAME),
        // Not paused yet when the frame comes, so it does not wait for more than its turn.
        ("slow-response=2", 10_000, false, 5 + 2 * FRAME),
    ] {
        assert_eq!(resumed(fault, quanta, xon), expected, "{fault}");
    }
}

#[test]
fn a_slow_response_is_late_by_its_delay() {
    let mut switch = switch(&["slow-response=2"]);
    switch.ingress(1, 100, pfc(3, 1000));
    switch.advance(2 * MS + 99);
    switch.ingress(0, 2 * MS + 100, frame(3, 0));
    assert_eq!(
        left(&mut switch, 10 * MS),
        [(3, 0, 2 * MS + 100 + 512_000 + FRAME)]
    );
}

#[test]
fn a_refresh_is_ignored_only_while_paused() {
    let mut switch = switch(&["ignores-refresh"]);
    switch.ingress(1, 0, pfc(3, 100));
    switch.ingress(1, 100 * 512 - 1, pfc(3, 0xffff));
    switch.ingress(1, 100 * 512, pfc(3, 200));
    switch.ingress(0, 100 * 512, frame(3, 0));
    assert_eq!(left(&mut switch, MS), [(3, 0, 300 * 512 + FRAME)]);
}

#[test]
fn a_pause_that_is_refreshed_lasts_for_the_sum() {
    let mut switch = switch(&["adds-up-pauses"]);
    for at in [0, 100, 200] {
        switch.ingress(1, at, pfc(3, 1000));
    }
    switch.ingress(0, 300, frame(3, 0));
    assert_eq!(left(&mut switch, 10 * MS), [(3, 0, 3 * 512_000 + FRAME)]);
}

/// Class and quanta of what the switch asks for at port 0, with the times.
fn asked_at_0(switch: &mut Switch, now: Nanos) -> Vec<(Nanos, Vec<(u8, u16)>)> {
    let left = departures(switch, now).into_iter();
    left.filter(|left| left.port == 0)
        .map(|left| (left.at, asked(&left.frame)))
        .collect()
}

#[test]
fn needless_xoff_goes_out_while_a_storm_lasts_and_xon_after_it() {
    let (refresh, pause) = (65535 * 512 / 3, 65535 * 512);
    let both = |quanta| vec![(3, quanta), (4, quanta)];
    for (fault, class, expected) in [
        ("xoff-lossless-in-lossy-storm", 5, (both(0xffff), both(0))),
        ("xoff-other-lossless", 3, (vec![(4, 0xffff)], vec![(4, 0)])),
    ] {
        let mut switch = switch(&[fault]);
        switch.ingress(1, 0, pfc(class, 0xffff));
        let (xoff, xon) = expected;
        let found = asked_at_0(&mut switch, 100 * MS);
        let times: Vec<_> = found.iter().map(|(at, _)| *at).collect();
        let until = [0, refresh, 2 * refresh, 3 * refresh];
        assert_eq!(times, until.map(|at| at + CONTROL), "{fault}: {found:?}");
        assert!(
            found[..3].iter().all(|(_, asked)| *asked == xoff),
            "{fault}"
        );
        assert_eq!(found[3], (pause + CONTROL, xon), "{fault}");
        assert_eq!(switch.next_event(), None, "{fault}");
        // What it is not about moves nothing.
        let other = if class == 5 { 3 } else { 5 };
        switch.ingress(1, 200 * MS, pfc(other, 0xffff));
        assert_eq!(asked_at_0(&mut switch, 300 * MS), [], "{fault}");
    }
}

#[test]
fn an_xoff_that_is_never_released_is_repeated_for_ever() {
    let mut config = config();
    (config.xoff, config.xon) = (0, 0);
    let mut switch = with(config, &["never-releases-upstream"]);
    switch.ingress(0, 0, frame(3, 0));
    let refresh = 65535 * 512 / 3;
    let times: Vec<_> = (0..5).map(|n| n * refresh + CONTROL).collect();
    let found = asked_at_0(&mut switch, 4 * refresh + CONTROL);
    assert_eq!(found.iter().map(|(at, _)| *at).collect::<Vec<_>>(), times);
    assert!(found.iter().all(|(_, asked)| *asked == [(3, 0xffff)]));
}

#[test]
fn one_frame_in_n_leaks_in_its_turn() {
    let mut switch = switch(&["leaks=4"]);
    switch.ingress(1, 0, pfc(3, 0xffff));
    (0..10).for_each(|n| switch.ingress(0, n * 20_000, frame(3, n)));
    assert_eq!(
        left(&mut switch, MS),
        [(3, 0, 3 * 20_000 + FRAME), (3, 1, 7 * 20_000 + FRAME)]
    );
}

#[test]
fn frames_are_lost_doubled_and_swapped_one_in_n() {
    for (fault, expected) in [
        ("drops=3:4", vec![0, 1, 2, 4, 5, 6, 8, 9]),
        ("drops=all:5", vec![0, 1, 2, 3, 5, 6, 7, 8]),
        ("drops=lossless:10", vec![0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("drops=lossy:1", (0..10).collect()),
        ("drops=4:1", (0..10).collect()),
        ("loses-held=1", (0..10).collect()),
        ("duplicates=4", vec![0, 1, 2, 3, 3, 4, 5, 6, 7, 7, 8, 9]),
        // The frame that overtakes does not count.
        ("reorders=4", vec![0, 1, 2, 4, 3, 5, 6, 7, 9, 8]),
    ] {
        assert_eq!(ten(&[fault], MS), expected, "{fault}");
    }
}

#[test]
fn frames_of_other_flows_and_the_end_of_a_flow_do_not_wait_for_ever() {
    let mut switch = switch(&["reorders=2"]);
    for (n, flow) in [3, 3, 4, 4].into_iter().enumerate() {
        switch.ingress(0, n as Nanos, frame(flow, n as u64));
    }
    let left: Vec<_> = left(&mut switch, 20 * MS)
        .into_iter()
        .map(|(flow, sequence, _)| (flow, sequence))
        .collect();
    assert_eq!(left, [(3, 0), (4, 2), (4, 3), (3, 1)]);
}

#[test]
fn a_throttled_port_sends_at_its_share_of_the_line_rate() {
    let mut switch = switch(&["throttles=50"]);
    (0..100).for_each(|n| switch.ingress(0, 0, frame(3, n)));
    let at: Vec<_> = left(&mut switch, 10 * MS)
        .into_iter()
        .map(|(.., at)| at)
        .collect();
    assert_eq!(at, (1..=100).map(|n| 2 * n * FRAME).collect::<Vec<_>>());
}

#[test]
fn only_the_payload_beyond_the_stamp_is_corrupted() {
    let mut switch = switch(&["corrupts=2"]);
    // The first ones have nothing beyond the stamp: the next one that has is hit.
    let frames = [
        frame_of(0, 0, 60),
        frame_of(0, 1, 60),
        frame_of(0, 2, 61),
        frame_of(0, 3, 61),
    ];
    frames
        .iter()
        .for_each(|frame| switch.ingress(0, 0, frame.clone()));
    let mut expected = frames;
    expected[2][60] ^= 1;
    assert_eq!(
        departures(&mut switch, MS)
            .into_iter()
            .map(|left| left.frame)
            .collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn the_trusted_field_is_remarked() {
    let ipv6 = |first: u8| [&[2; 12][..], &[0x86, 0xdd, first, 0xc1], &[0; 50]].concat();
    let tagged = |tci: u8| [&[2; 12][..], &[0x81, 0x00, tci, 0x05], &frame(0, 0)[12..]].concat();
    for (trust, sent, expected) in [
        (Trust::Dscp, ipv6(0x60), ipv6(0x62)),
        (Trust::Pcp, tagged(0xc0), tagged(0xe0)),
    ] {
        let mut config = config();
        config.trust = trust;
        let mut switch = with(config, &["remarks=1"]);
        switch.ingress(0, 0, sent);
        assert_eq!(departures(&mut switch, MS)[0].frame, expected);
    }
    let mut switch = switch(&["remarks=1"]);
    switch.ingress(0, 0, frame(3, 0));
    let left = &departures(&mut switch, MS)[0].frame;
    assert_eq!(left[15], (3 | 8) << 2 | 1, "DSCP 11, ECN as it was");
    assert_eq!(sum(&left[14..34]), 0xffff);
}

#[test]
fn a_priority_that_died_stays_dead() {
    let mut switch = switch(&["dies-after-pause"]);
    (0..4).for_each(|n| switch.ingress(1, n * 30 * MS, pfc(3, 0xffff)));
    switch.ingress(0, MS, frame(3, 0));
    switch.ingress(0, 200 * MS, frame(3, 1));
    switch.ingress(1, 201 * MS, pfc(3, 1));
    (202..204).for_each(|n| switch.ingress(0, n * MS, frame(3, n)));
    switch.ingress(0, 204 * MS, frame(4, 0));
    let left: Vec<_> = left(&mut switch, 300 * MS)
        .into_iter()
        .map(|(flow, sequence, _)| (flow, sequence))
        .collect();
    assert_eq!(left, [(3, 0), (4, 0)]);
}

#[test]
fn without_pfc_upstream_a_buffer_overflows() {
    let room = (512 + 1024) * 1024 / LENGTH as u64;
    let mut switch = switch(&["no-upstream-pfc"]);
    switch.ingress(1, 0, pfc(3, 0xffff));
    (0..room + 5).for_each(|n| switch.ingress(0, 0, frame(3, n)));
    assert_eq!(switch.drops()["headroom-overflow"], 5);
    assert_eq!(departures(&mut switch, MS), [], "no XOFF");
}

#[test]
fn dips_come_four_times_a_second() {
    let mut switch = switch(&["dips"]);
    switch.ingress(0, 245 * MS, frame(0, 0));
    switch.ingress(0, 250 * MS, frame(0, 1));
    switch.ingress(0, 270 * MS, frame(0, 2));
    let expected = [
        (0, 0, 245 * MS + FRAME),
        (0, 1, 270 * MS + FRAME),
        (0, 2, 270 * MS + 2 * FRAME),
    ];
    assert_eq!(left(&mut switch, 400 * MS), expected);
}
