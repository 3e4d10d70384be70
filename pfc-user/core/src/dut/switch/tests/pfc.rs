use pfc_ebpf::units::Quanta;

use super::lab::*;
use crate::dut::switch::model::{Departure, Switch};
use crate::plan::Nanos;

/// Times at which the only frame of each flow has left.
fn each(switch: &mut Switch) -> Vec<(u8, Nanos)> {
    let mut left: Vec<_> = left(switch, 1000 * MS)
        .into_iter()
        .map(|(flow, _, at)| (flow, at))
        .collect();
    left.sort_unstable();
    left
}

#[test]
fn a_pause_lasts_its_quanta_from_when_the_frame_came() {
    for quanta in [1, 2, 10, 40, 0xffff] {
        let mut switch = switch(&[]);
        switch.ingress(1, 1000, pfc(3, quanta));
        switch.ingress(0, 1001, frame(3, 0));
        assert_eq!(
            each(&mut switch),
            [(3, 1000 + u64::from(quanta) * 512 + FRAME)],
            "{quanta} quanta"
        );
    }
}

#[test]
fn the_frame_on_the_wire_is_finished_and_no_other_begins() {
    let mut switch = switch(&[]);
    switch.ingress(0, 0, frame(3, 0));
    switch.ingress(0, 0, frame(3, 1));
    switch.ingress(1, FRAME - 1, pfc(3, 10));
    assert_eq!(
        left(&mut switch, MS),
        [(3, 0, FRAME), (3, 1, FRAME - 1 + 5120 + FRAME)]
    );
}

#[test]
fn what_comes_at_the_instant_of_a_start_is_acted_on_first() {
    let mut switch = switch(&[]);
    switch.ingress(0, 0, frame(3, 0));
    switch.ingress(0, 0, frame(3, 1));
    switch.ingress(1, FRAME, pfc(3, 1));
    assert_eq!(
        left(&mut switch, MS),
        [(3, 0, FRAME), (3, 1, FRAME + 512 + FRAME)]
    );
}

#[test]
fn a_new_time_replaces_the_old_one_at_once() {
    for (quanta, resumes) in [(0, 5000), (1, 5512), (1000, 517_000)] {
        let mut switch = switch(&[]);
        switch.ingress(0, 0, frame(0, 0));
        switch.ingress(1, 0, pfc(3, 100));
        switch.ingress(0, 10, frame_of(3, 0, 100));
        switch.ingress(1, 5000, pfc(3, quanta));
        let start = resumes.max(FRAME);
        assert_eq!(
            each(&mut switch),
            [(0, FRAME), (3, start + 992)],
            "{quanta} quanta"
        );
    }
}

#[test]
fn every_priority_has_its_own_timer() {
    let mut config = config();
    config.lossless = set(&[0, 1, 2, 3, 4, 5, 6, 7]);
    let mut switch = with(config, &[]);
    let mut all = pfc(0, 0);
    all[17] = 0xff;
    for class in 0..8 {
        all[18 + 2 * class..][..2].copy_from_slice(&(100 + 100 * class as u16).to_be_bytes());
    }
    switch.ingress(1, 0, all);
    (0..8).for_each(|flow| switch.ingress(0, 0, frame(flow, 0)));
    let expected: Vec<_> = (0..8)
        .map(|flow| (flow, (100 + 100 * u64::from(flow)) * 512 + FRAME))
        .collect();
    assert_eq!(each(&mut switch), expected);
}

#[test]
fn only_valid_pfc_for_enabled_lossless_priorities_pauses() {
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = pfc(3, 0xffff);
        change(&mut frame);
        frame
    };
    let ignored = [
        ("a lossy priority", pfc(5, 0xffff)),
        ("vector 0 with times", changed(&|frame| frame[17] = 0)),
        (
            "another class enabled",
            changed(&|frame| frame[17] = 1 << 4),
        ),
        ("802.3x", pause(0xffff)),
        (
            "unicast",
            changed(&|frame| frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1])),
        ),
        ("opcode 0x0100", changed(&|frame| frame[15] = 0)),
        ("truncated", changed(&|frame| frame.truncate(33))),
        (
            "tagged",
            changed(&|frame| drop(frame.splice(12..12, [0x81, 0x00, 0x60, 0x00]))),
        ),
    ];
    for (what, control) in ignored {
        let mut switch = switch(&[]);
        switch.ingress(1, 0, control);
        (0..8).for_each(|flow| switch.ingress(0, 0, frame(flow, 0)));
        assert_eq!(
            departures(&mut switch, 8 * FRAME).len(),
            8,
            "{what}: nothing is paused, and nothing is forwarded to port 0"
        );
    }
}

#[test]
fn xoff_is_sent_above_its_threshold_and_repeated_until_xon() {
    let mut config = config();
    config.xoff = 10 * LENGTH as u64;
    config.xon = 5 * LENGTH as u64;
    let mut switch = with(config, &[]);
    let refresh = 65535 * 512 / 3;
    switch.ingress(1, 0, pfc(3, 0xffff));
    (0..10).for_each(|n| switch.ingress(0, 100, frame(3, n)));
    assert_eq!(
        departures(&mut switch, 199),
        [],
        "at the threshold, not above"
    );
    switch.ingress(0, 200, frame(3, 10));
    switch.ingress(0, 300, frame(3, 11));
    let xoff = |at| (at, vec![(3, 0xffff)]);
    let expected = [
        xoff(200 + CONTROL),
        xoff(200 + refresh + CONTROL),
        xoff(200 + 2 * refresh + CONTROL),
    ];
    assert_eq!(asked_at_0(&mut switch, 30 * MS), expected);
    switch.ingress(1, 30 * MS, pfc(3, 0));
    // The start of the seventh of twelve frames leaves five.
    assert_eq!(
        asked_at_0(&mut switch, 100 * MS),
        [(30 * MS + 6 * FRAME + CONTROL, vec![(3, 0)])]
    );
    assert_eq!(switch.xoff_sent(), [0, 0, 0, 3, 0, 0, 0, 0]);
    assert_eq!(switch.next_event(), None, "nothing more to refresh");
}

#[test]
fn xoff_asks_for_the_configured_time_and_is_repeated_each_third_of_it() {
    let mut config = config();
    config.xoff = 0;
    config.xon = 0;
    config.xoff_quanta = Quanta(3000);
    let mut switch = with(config, &[]);
    switch.ingress(1, 0, pfc(3, 0xffff));
    switch.ingress(0, 100, frame(3, 0));
    let left = asked_at_0(&mut switch, 2 * MS);
    // 1000 quanta of 512 ns.
    let expected = [0, 1, 2, 3].map(|n| (100 + n * 512_000 + CONTROL, vec![(3, 3000)]));
    assert_eq!(left, expected);
}

#[test]
fn pfc_goes_ahead_of_data_but_waits_for_the_frame_on_the_wire() {
    let mut config = config();
    config.xoff = 0;
    config.xon = 0;
    let mut switch = with(config, &[]);
    (0..2).for_each(|n| switch.ingress(1, 0, frame(0, n)));
    switch.ingress(1, 0, pfc(3, 0xffff));
    switch.ingress(0, 100, frame(3, 0));
    let left: Vec<_> = departures(&mut switch, 2 * FRAME + CONTROL)
        .iter()
        .map(|left| (left.at, left.frame.len()))
        .collect();
    assert_eq!(
        left,
        [
            (FRAME, LENGTH),
            (FRAME + CONTROL, 60),
            (2 * FRAME + CONTROL, LENGTH)
        ]
    );
}

#[test]
fn pfc_carries_the_address_of_its_port() {
    let mut config = config();
    config.xoff = 0;
    for port in [0, 1] {
        let mut switch = with(config.clone(), &[]);
        switch.ingress(port, 0, frame(3, 0));
        let left: Vec<Departure> = departures(&mut switch, CONTROL);
        assert_eq!(left[0].frame[6..12], config.macs[port]);
        assert_eq!(left[0].port, port);
    }
}

#[test]
fn a_lossless_priority_takes_its_headroom_and_not_more() {
    let config = config();
    let room = (config.xoff + config.headroom) / LENGTH as u64;
    let mut switch = with(config, &[]);
    switch.ingress(1, 0, pfc(3, 0xffff));
    (0..10_000).for_each(|n| switch.ingress(0, n, frame(3, n)));
    assert_eq!(switch.drops()["headroom-overflow"], 10_000 - room);
    let expected: Vec<_> = (0..room).map(|sequence| (3, sequence)).collect();
    assert_eq!(order(&mut switch, 100 * MS), expected);
    // The other lossless priority has buffers of its own.
    let mut switch = with(super::lab::config(), &[]);
    switch.ingress(1, 0, pfc(3, 0xffff));
    (0..10_000).for_each(|n| switch.ingress(0, 0, frame(3, n)));
    switch.ingress(0, 0, frame(4, 0));
    assert_eq!(left(&mut switch, MS), [(4, 0, FRAME)]);
}
