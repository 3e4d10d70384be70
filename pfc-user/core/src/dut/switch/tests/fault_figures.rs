//! The figures of faults that have one.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::Quanta;

use super::lab::*;
use crate::dut::switch::control;
use crate::plan::form::Form;
use crate::plan::{Nanos, PfcFrame};

/// The sequences of flow 3 that leave by `now`, of ten frames that come in at once.
fn ten(faults: &[&str], now: Nanos) -> Vec<u64> {
    let mut switch = switch(faults);
    (0..10).for_each(|n| switch.ingress(0, 0, frame(3, n)));
    let order = order(&mut switch, now).into_iter();
    order.map(|(_, sequence)| sequence).collect()
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

/// A PFC frame with times of some classes, and those that it does not name.
fn pfc_of(times: &[(u8, u16)], unnamed: &[u8]) -> Vec<u8> {
    let mut classes = [None; 8];
    for (class, quanta) in times {
        classes[usize::from(*class)] = Some(Quanta(*quanta));
    }
    let mut frame = control::pfc([2, 0, 0, 0, 0, 0x33], &classes);
    unnamed.iter().for_each(|class| frame[17] &= !(1 << class));
    frame
}

/// For how many quanta, counted from the last of these frames of PFC, priorities 3, 4 and 5 are
/// paused. The frames come 1000 quanta after each other.
fn paused(faults: &[&str], frames: &[Vec<u8>]) -> [u64; 3] {
    const QUANTUM: Nanos = 512;
    [3, 4, 5].map(|flow| {
        let mut switch = switch(faults);
        let mut at = 0;
        for frame in frames {
            at += 1000 * QUANTUM;
            switch.ingress(1, at, frame.clone());
        }
        switch.ingress(0, at, frame(flow, 0));
        let left = left(&mut switch, 100 * MS);
        assert_eq!(left.len(), 1, "{faults:?}");
        let waited = left[0].2 - FRAME - at;
        assert_eq!(waited % QUANTUM, 0, "{faults:?}");
        waited / QUANTUM
    })
}

/// Times for several classes in a PFC frame, and in a frame before it.
#[test]
fn classes_have_the_times_that_the_fault_says() {
    let times = |times: &[(u8, u16)]| pfc_of(times, &[]);
    let all = || vec![times(&[(3, 2000), (4, 3000), (5, 4000)])];
    let hidden = || vec![pfc_of(&[(3, 2000), (4, 3000)], &[4])];
    let nobody = || vec![pfc_of(&[(3, 2000), (4, 3000)], &[3, 4])];
    let lossy = || vec![times(&[(5, 4000)])];
    let shorter = || vec![times(&[(3, 5000), (4, 3000)]), times(&[(3, 1000)])];
    let xon = || vec![times(&[(3, 5000), (4, 3000)]), times(&[(3, 0)])];
    // The second of two changes nothing.
    let zeros = || vec![times(&[(3, 0), (4, 0), (5, 0)]); 2];
    let expired = || vec![times(&[(3, 500)]), times(&[(3, 0)])];
    let first = || vec![times(&[(0, 500), (3, 2000), (4, 3000)])];
    let octets = || vec![times(&[(3, 0x0102)])];
    for (fault, frames, good, expected) in [
        ("ignores-vector", hidden(), [2000, 0, 0], [2000, 3000, 0]),
        ("ignores-vector", nobody(), [0, 0, 0], [2000, 3000, 0]),
        (
            "zero-vector-names-all",
            nobody(),
            [0, 0, 0],
            [2000, 3000, 0],
        ),
        (
            "zero-vector-names-all",
            hidden(),
            [2000, 0, 0],
            [2000, 0, 0],
        ),
        (
            "lossy-obeys-beside",
            all(),
            [2000, 3000, 0],
            [2000, 3000, 4000],
        ),
        ("lossy-obeys-beside", lossy(), [0, 0, 0], [0, 0, 0]),
        ("lossy-obeys-pfc", lossy(), [0, 0, 0], [0, 0, 4000]),
        ("shares-timer", all(), [2000, 3000, 0], [3000, 3000, 0]),
        ("shares-timer", shorter(), [1000, 2000, 0], [1000, 1000, 0]),
        ("keeps-longer", shorter(), [1000, 2000, 0], [4000, 2000, 0]),
        ("keeps-longer", xon(), [0, 2000, 0], [0, 2000, 0]),
        ("xon-ends-all", xon(), [0, 2000, 0], [0, 0, 0]),
        ("ignores-xon", xon(), [0, 2000, 0], [4000, 2000, 0]),
        ("zero-pauses-idle", xon(), [0, 2000, 0], [0, 2000, 0]),
        ("zero-pauses-idle", zeros(), [0, 0, 0], [65535, 65535, 0]),
        ("zero-pauses-idle", expired(), [0, 0, 0], [65535, 0, 0]),
        ("misses-first", all(), [2000, 3000, 0], [0, 0, 0]),
        ("misses-first", shorter(), [1000, 2000, 0], [1000, 0, 0]),
        ("caps-quanta=2500", all(), [2000, 3000, 0], [2000, 2500, 0]),
        ("swaps-quanta", octets(), [0x0102, 0, 0], [0x0201, 0, 0]),
        ("reads-first-time", first(), [2000, 3000, 0], [500, 500, 0]),
        ("reads-next-time", all(), [2000, 3000, 0], [3000, 4000, 0]),
        ("reads-high-vector", all(), [2000, 3000, 0], [0, 0, 0]),
        // Class 4 is named where class 3 is, and has its own time.
        ("reverses-vector", hidden(), [2000, 0, 0], [0, 3000, 0]),
    ] {
        assert_eq!(paused(&[], &frames), good, "without {fault}");
        assert_eq!(paused(&[fault], &frames), expected, "{fault}");
    }
}

#[test]
fn some_frames_go_at_an_xon_that_ends_nothing() {
    for (fault, expected) in [("xon-lets-go", 1), ("xon-lets-go=4", 4)] {
        let mut switch = switch(&[fault]);
        switch.ingress(1, 0, pfc(3, 10_000));
        (0..10).for_each(|n| switch.ingress(0, 1, frame(3, n)));
        switch.ingress(1, MS, pfc(3, 0));
        let early = left(&mut switch, 10_000 * 512);
        assert_eq!(early.len(), expected, "{fault}: {early:?}");
        assert_eq!(left(&mut switch, 10 * MS).len(), 10 - expected, "{fault}");
    }
}

#[test]
fn held_frames_leave_slowly_for_a_while() {
    // The time between two frames in the first 20 ms after the pause, and later.
    for (fault, often) in [("slow-again", 5), ("slow-again=50", 2)] {
        let mut switch = switch(&[fault]);
        switch.ingress(1, 0, pfc(3, 10_000));
        (0..20 * MS / FRAME + 20).for_each(|n| switch.ingress(0, n * FRAME, frame(3, n)));
        let times = times(&mut switch, 40 * MS);
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps[0], often * FRAME, "{fault}");
        assert_eq!(*gaps.last().unwrap(), FRAME, "{fault}");
    }
}

/// Frames of priority 3 that leave later than `late` after an XOFF at 10 ms, of frames that come
/// `every` so often.
fn after_xoff(fault: &str, every: Nanos, late: Nanos) -> usize {
    let mut switch = switch(&[fault]);
    for n in 0..20 * MS / every {
        if n == 10 * MS / every {
            switch.ingress(1, n * every, pfc(3, 0xffff));
        }
        switch.ingress(0, n * every, frame(3, n));
    }
    let left = left(&mut switch, 20 * MS).into_iter();
    left.filter(|(.., at)| *at > 10 * MS + late).count()
}

#[test]
fn a_response_is_late_on_a_full_link_alone() {
    for (fault, every, late, expected) in [
        ("slow-when-full", FRAME, 5 * MS - 2 * FRAME, true),
        ("slow-when-full", FRAME, 5 * MS + FRAME, false),
        ("slow-when-full=2", FRAME, 2 * MS - 2 * FRAME, true),
        ("slow-when-full=2", FRAME, 2 * MS + FRAME, false),
        ("slow-when-full", 2 * FRAME, FRAME, false),
    ] {
        let found = after_xoff(fault, every, late) > 0;
        assert_eq!(found, expected, "{fault}, one in {every} ns, {late} ns");
    }
}

#[test]
fn lossy_frames_have_a_share_of_half_the_line_in_a_storm() {
    for (fault, share) in [
        ("throttles-lossy-in-storm", 40),
        ("throttles-lossy-in-storm=20", 10),
    ] {
        let mut switch = switch(&[fault]);
        switch.ingress(1, 0, pfc(3, 0xffff));
        (0..100).for_each(|n| switch.ingress(0, 0, frame(5, n)));
        let at = times(&mut switch, 20 * MS);
        let every = FRAME * 100 / share;
        let expected: Vec<_> = (0..at.len() as u64).map(|n| n * every + FRAME).collect();
        assert_eq!(at, expected, "{fault}");
    }
}

#[test]
fn a_dscp_has_the_priority_that_the_fault_gives_it() {
    let mut config = config();
    let map = config.dscp_to_priority.iter_mut().enumerate();
    map.for_each(|(dscp, to)| *to = priority(dscp as u8 / 8));
    config.dscp_to_priority[3] = priority(3);
    for (fault, expected) in [
        ("maps-own-dscp-alone", [3, 0, 0, 0]),
        ("maps-low-dscps-alone", [3, 1, 3, 0]),
        ("maps-low-bits", [3, 1, 3, 5]),
        ("misplaces-dscp=9", [3, 3, 3, 5]),
        ("misplaces-dscp=27", [3, 1, 0, 5]),
    ] {
        let found = [3, 9, 27, 45].map(|dscp| {
            let mut switch = with(config.clone(), &[fault]);
            switch.ingress(0, 0, frame(dscp, 0));
            let received = &switch.counts()[0].received;
            received.iter().position(|frames| *frames == 1).unwrap()
        });
        assert_eq!(found, expected, "{fault}");
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
        // A storm that the fault is not about moves nothing.
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
fn what_a_pause_holds_may_depend_on_the_size() {
    for (fault, expected) in [
        ("leaks-for-long=LENGTH", vec![]),
        ("leaks-for-long=LESS", (0..3).collect()),
        ("loses-short=LENGTH", vec![]),
        ("loses-short=MORE", vec![]),
    ] {
        let length = frame(3, 0).len();
        let fault = fault
            .replace("LENGTH", &length.to_string())
            .replace("LESS", &(length - 1).to_string())
            .replace("MORE", &(length + 1).to_string());
        let mut switch = switch(&[&fault]);
        switch.ingress(1, 0, pfc(3, 0xffff));
        (0..3).for_each(|n| switch.ingress(0, n * 20_000, frame(3, n)));
        let in_pause: Vec<u64> = left(&mut switch, MS)
            .into_iter()
            .map(|(_, n, _)| n)
            .collect();
        assert_eq!(in_pause, expected, "{fault}");
        let short = fault.starts_with("loses-short") && fault.ends_with(&(length + 1).to_string());
        let after = left(&mut switch, 100 * MS).len();
        assert_eq!(in_pause.len() + after, if short { 0 } else { 3 }, "{fault}");
    }
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
        ("loses-short=2000", (0..10).collect()),
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
    let expected = [(3, 0), (4, 2), (4, 3), (3, 1)];
    assert_eq!(order(&mut switch, 20 * MS), expected);
}

#[test]
fn a_throttled_port_sends_at_its_share_of_the_line_rate() {
    let mut switch = switch(&["throttles=50"]);
    (0..100).for_each(|n| switch.ingress(0, 0, frame(3, n)));
    let at = times(&mut switch, 10 * MS);
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
    let ipv6 = |first: u8| [&ADDRESSES[..], &[0x86, 0xdd, first, 0xc1], &[0; 50]].concat();
    let tagged = |tci: u8| [&ADDRESSES[..], &[0x81, 0x00, tci, 0x05], &frame(0, 0)[12..]].concat();
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
    assert_eq!(order(&mut switch, 300 * MS), [(3, 0), (4, 0)]);
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

/// Forms of PFC for class 3 that hold its frames.
fn obeyed(faults: &[&str]) -> Vec<Form> {
    let holds = |form: &Form| {
        let mut switch = switch(faults);
        let odd = PfcFrame::new(&[(priority(3), Quanta(1000))], Quanta(1)).of(*form);
        switch.ingress(1, 0, odd.emit([2, 0, 0, 0, 0, 0x33]));
        switch.ingress(0, 5, frame(3, 0));
        // Nothing but this frame leaves.
        let left = departures(&mut switch, 1000 * MS);
        assert_eq!((left.len(), left[0].port), (1, 1), "{form:?}");
        left[0].at > MS / 2
    };
    Form::ODD.into_iter().filter(holds).collect()
}

#[test]
fn forms_of_pfc_that_each_reader_obeys() {
    use Form::*;
    let reserved = [ReservedVector, ReservedTail];
    let with = |more: &[Form]| {
        let mut forms = [&reserved[..], more].concat();
        forms.sort();
        forms
    };
    assert_eq!(obeyed(&[]), reserved);
    let opcodes = with(&[OpcodeZero, OpcodeNext, OpcodeLowOctet, OpcodeLast]);
    assert_eq!(obeyed(&["any-opcode"]), opcodes);
    let addresses = with(&[OtherStation, Broadcast, AddressBefore, AddressBehind]);
    assert_eq!(obeyed(&["any-destination"]), addresses);
    let neighbours = with(&[AddressBefore, AddressBehind]);
    assert_eq!(obeyed(&["neighbour-destination"]), neighbours);
    assert_eq!(obeyed(&["half-ethertype"]), with(&[EthertypeNext]));
    assert_eq!(obeyed(&["wants-zeroes"]), []);
}

#[test]
fn a_switch_that_dies_of_an_odd_frame_obeys_those_before_it_alone() {
    let mut switch = switch(&["dies-of-odd-frame"]);
    let odd = PfcFrame::uniform(&[priority(3)], Quanta(1000)).of(Form::OpcodeZero);
    switch.ingress(1, 0, pfc(3, 0xffff));
    switch.ingress(0, 5, frame(3, 0));
    assert!(times(&mut switch, MS).is_empty());
    switch.ingress(1, MS, odd.emit([2, 0, 0, 0, 0, 0x33]));
    assert_eq!(times(&mut switch, 1000 * MS), [0xffff * 512 + FRAME]);
    switch.ingress(1, 1000 * MS, pfc(3, 0xffff));
    switch.ingress(0, 1000 * MS, frame(3, 1));
    assert_eq!(times(&mut switch, 2000 * MS), [1000 * MS + FRAME]);
}
