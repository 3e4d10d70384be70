use pfc_ebpf::units::{MILLISECOND, Priority, SECOND};

use super::*;
use crate::engine::flow::Pace;
use crate::engine::plan::{End, Length, Rate, Schedule, Span};
use crate::engine::queue::{Hold, Holds};

const NONE: [usize; 0] = [];

fn line() -> LineRate {
    LineRate::from_bits_per_second(10_000_000_000).unwrap()
}

/// A flow of 64 octets.
fn pace(rate: u64, end: End, delay: Nanos) -> Pace {
    let schedule = Schedule {
        delay: Span::Time(delay),
        end,
        gap: 12,
    };
    let rate = Rate::FramesPerSecond(rate);
    Pace::new(rate, Length::Fixed(64), schedule, line())
}

fn endless(rate: u64) -> Pace {
    pace(rate, End::Never, 0)
}

/// A port whose flows were started at a second.
fn started(flows: &[Pace]) -> PortSchedule {
    let mut port = PortSchedule::new(line());
    for (place, pace) in flows.iter().enumerate() {
        port.add(pace.clone(), Priority::new(0).ok());
        port.change(place, |pace| pace.start(SECOND));
    }
    port
}

/// Work of a sender that can make the frames of all flows.
fn run(port: &PortSchedule, now: Nanos) -> Run {
    port.fast(now, line(), |_, length| Some(length))
}

fn places(run: &Run) -> Vec<usize> {
    run.flows.iter().map(|offloaded| offloaded.flow).collect()
}

/// Sends what is due at each millisecond until then; returns how much left of each flow.
fn send(
    port: &mut PortSchedule,
    flows: usize,
    from: Nanos,
    until: Nanos,
    holds: &Holds,
) -> Vec<u64> {
    let mut sent = vec![0; flows];
    for now in (from..=until).step_by(MILLISECOND as usize) {
        port.look(now, holds);
        while let Some(due) = port.take(now) {
            sent[due.flow] += 1;
        }
    }
    sent
}

#[test]
fn flows_are_handed_over_where_all_want_more_than_the_schedule_carries() {
    let few = started(&[endless(100_000), endless(100_000)]);
    assert_eq!(places(&run(&few, SECOND)), NONE);
    let many = started(&[endless(100_000), endless(101_000)]);
    assert_eq!(places(&run(&many, SECOND)), [0, 1]);
    // A flow that is not started wants nothing.
    let mut one = started(&[endless(150_000), endless(150_000)]);
    one.change(1, Pace::stop);
    assert_eq!(places(&run(&one, SECOND)), NONE);
}

#[test]
fn only_flows_of_the_kind_that_has_most_frames_are_handed_over() {
    let flows = [
        endless(90_000),
        endless(300_000),
        endless(250_000),
        endless(1),
    ];
    let port = started(&flows);
    let kind = |flow, _| [Some(1), Some(2), Some(1), Some(1)][flow];
    // 300 frames of kind 2, 340 of kind 1; one frame a second is left to the schedule.
    assert_eq!(places(&port.fast(SECOND, line(), kind)), [0, 2]);
    let kind = |flow, _| [None, Some(2), None, None][flow];
    assert_eq!(places(&port.fast(SECOND, line(), kind)), [1]);
    assert_eq!(places(&port.fast(SECOND, line(), |_, _| None::<u8>)), NONE);
}

#[test]
fn a_line_that_is_too_full_is_shared_by_the_schedule() {
    // 14.88 million frames of 64 octets a second are 10 Gbit/s.
    let full = started(&[endless(10_000_000), endless(4_880_000)]);
    assert_eq!(places(&run(&full, SECOND)), [0, 1]);
    let more = started(&[endless(10_000_000), endless(4_890_000)]);
    assert_eq!(places(&run(&more, SECOND)), NONE);
}

#[test]
fn bursts_and_lengths_that_vary_are_left_to_the_schedule() {
    let bursts = End::Bursts {
        bursts: None,
        frames: 100,
        gap: Span::Time(MILLISECOND),
    };
    let lengths = Pace::new(
        Rate::FramesPerSecond(400_000),
        Length::Random { min: 64, max: 80 },
        Schedule {
            delay: Span::Time(0),
            end: End::Never,
            gap: 12,
        },
        line(),
    );
    let port = started(&[pace(400_000, bursts, 0), lengths, endless(10_000)]);
    assert_eq!(places(&run(&port, SECOND)), [2]);
}

#[test]
fn flows_come_back_when_one_ends_or_another_begins() {
    let ends = pace(300_000, End::Time(50 * MILLISECOND), 0);
    let begins = pace(300_000, End::Never, 40 * MILLISECOND);
    let port = started(&[endless(300_000), ends.clone()]);
    assert_eq!(run(&port, SECOND).to, SECOND + 50 * MILLISECOND);
    let port = started(&[endless(300_000), ends, begins]);
    let first = run(&port, SECOND);
    assert_eq!(
        (places(&first), first.to),
        (vec![0, 1], SECOND + 40 * MILLISECOND)
    );
    assert_eq!(places(&run(&port, first.to)), [0, 1, 2]);
}

#[test]
fn a_flow_that_is_lent_leaves_by_the_other_sender_alone_and_goes_on_where_it_came_to() {
    let frames = End::Frames(150_000);
    let mut port = started(&[pace(300_000, frames, 0), endless(1000)]);
    let free = Holds::default();
    let Offloaded { steady, .. } = run(&port, SECOND).flows[0];
    assert_eq!((steady.number, steady.left), (0, Some(150_000)));
    port.offload(0);
    let until = SECOND + 100 * MILLISECOND;
    assert_eq!(send(&mut port, 2, SECOND, until, &free), [0, 101]);
    // It sent all that was due.
    port.take_back(0, 30_000, steady.due + 30_000 * steady.interval);
    assert_eq!(send(&mut port, 2, until, 2 * SECOND, &free), [120_000, 900]);
    assert_eq!(port.progress(0).state, Transmit::Stopped);
}

#[test]
fn what_the_other_sender_left_of_a_flow_that_ends_by_time_leaves_still() {
    let time = End::Time(100 * MILLISECOND);
    let mut port = started(&[pace(250_000, time, 0), endless(10_000)]);
    let Run { flows, to } = run(&port, SECOND);
    let steady = flows[0].steady;
    port.offload(0);
    port.offload(1);
    let other = flows[1].steady;
    port.take_back(0, 24_000, steady.due + 24_000 * steady.interval);
    port.take_back(1, 1000, other.due + 1000 * other.interval);
    // One whose time is over is handed to nobody.
    assert_eq!(places(&run(&port, to)), [1]);
    let sent = send(&mut port, 2, to, to + 50 * MILLISECOND, &Holds::default());
    assert_eq!(sent, [1000, 501]);
}

#[test]
fn time_for_which_a_lent_flow_was_held_is_taken_off_once() {
    let mut port = started(&[endless(300_000), endless(1000)]);
    let steady = run(&port, SECOND).flows[0].steady;
    port.offload(0);
    // Its queue was held for 40 of 100 ms, which the other sender took into account.
    let now = SECOND + 100 * MILLISECOND;
    let held = 40 * MILLISECOND;
    let mut holds = Holds::default();
    holds[0] = Hold {
        until: now - MILLISECOND,
        total: held,
    };
    port.hold(now, &holds);
    // It owes a millisecond.
    let left = 300 * 59;
    port.take_back(
        0,
        left,
        steady.due + u128::from(left) * steady.interval + fine(held),
    );
    let sent = send(&mut port, 2, now, now + MILLISECOND, &holds);
    // The debt of the schedule's own flow is gone with the hold.
    assert_eq!(sent[0], 300 * 2 + 1);
    assert!(sent[1] <= 62, "{sent:?}");
}
