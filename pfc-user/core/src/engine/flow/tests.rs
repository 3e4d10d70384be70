use pfc_ebpf::units::MILLISECOND;

use super::*;

fn gigabit() -> LineRate {
    LineRate::from_bits_per_second(1_000_000_000).unwrap()
}

fn schedule(end: End) -> Schedule {
    Schedule {
        delay: Span::Time(0),
        end,
        gap: 12,
    }
}

fn pace(rate: Rate, length: u32, schedule: Schedule) -> Pace {
    Pace::new(rate, Length::Fixed(length), schedule, gigabit())
}

/// When the frames of a flow that starts at `from` leave, if each leaves when it is due, until
/// then.
fn times(pace: &mut Pace, from: Nanos, until: Nanos) -> Vec<Nanos> {
    pace.start(from);
    let mut times = Vec::new();
    while pace.is_started() && whole(pace.progress().due) <= until {
        let now = whole(pace.progress().due);
        if pace.take().is_some() {
            times.push(now);
        }
    }
    times
}

#[test]
fn rates_of_all_kinds_are_exact_over_a_second_and_over_an_hour() {
    let second = 1_000 * MILLISECOND;
    for (rate, length, by_second) in [
        (Rate::FramesPerSecond(1000), 64, 1000.0),
        (Rate::FramesPerSecond(7), 64, 7.0),
        (Rate::BitsPerSecond(100_000_000), 1000, 12_500.0),
        (Rate::Percent(45.0), 1024, 0.45 * 1e9 / (1044.0 * 8.0)),
        (Rate::Percent(100.0), 64, 1e9 / (84.0 * 8.0)),
    ] {
        let frames = times(&mut pace(rate, length, schedule(End::Never)), 5, 4 + second);
        assert!(
            (frames.len() as f64 - by_second).abs() < 1.0 + by_second * 1e-9,
            "{rate:?}: {}",
            frames.len()
        );
    }
    // No drift: after an hour the frames of a rate that does not divide a second are on time.
    let mut slow = pace(Rate::FramesPerSecond(7), 64, schedule(End::Never));
    let frames = times(&mut slow, 0, 3600 * second);
    assert_eq!(frames.len(), 7 * 3600 + 1);
    assert_eq!(frames[7 * 3600].div_ceil(second), 3600);
}

#[test]
fn a_rate_above_the_line_is_capped_by_the_line_and_the_gap() {
    let second = 1_000 * MILLISECOND;
    for (gap, octets) in [(12, 84.0), (112, 184.0)] {
        let long_gap = Schedule {
            gap,
            ..schedule(End::Never)
        };
        let mut fast = pace(Rate::FramesPerSecond(1 << 40), 64, long_gap);
        let expected = 1e9 / (octets * 8.0);
        let frames = times(&mut fast, 0, second).len() as f64;
        assert!((frames - expected).abs() <= 1.0, "{frames}, {expected}");
    }
}

#[test]
fn a_flow_of_so_many_frames_ends_with_the_last() {
    let mut three = pace(Rate::FramesPerSecond(1000), 64, schedule(End::Frames(3)));
    assert_eq!(
        times(&mut three, 10, 100 * MILLISECOND),
        [10, 10 + MILLISECOND, 10 + 2 * MILLISECOND]
    );
    assert_eq!(three.progress().state, Transmit::Stopped);
    let mut none = pace(Rate::FramesPerSecond(1000), 64, schedule(End::Frames(0)));
    none.start(0);
    assert!(!none.is_started());
}

#[test]
fn a_flow_of_so_much_time_sends_what_is_due_in_it_and_begins_after_its_delay() {
    let late = Schedule {
        delay: Span::Time(50 * MILLISECOND),
        ..schedule(End::Time(10 * MILLISECOND))
    };
    let frames = times(
        &mut pace(Rate::FramesPerSecond(1000), 64, late),
        0,
        1000 * MILLISECOND,
    );
    assert_eq!(frames.len(), 10);
    assert_eq!(frames[0], 50 * MILLISECOND);
    // A delay in octets lasts as long as they take at line rate.
    let octets = Schedule {
        delay: Span::Octets(125),
        ..schedule(End::Frames(1))
    };
    let frames = times(
        &mut pace(Rate::FramesPerSecond(1000), 64, octets),
        0,
        MILLISECOND,
    );
    assert_eq!(frames, [1000]);
}

#[test]
fn bursts_are_apart_by_their_gap() {
    let bursts = |count| {
        schedule(End::Bursts {
            bursts: count,
            frames: 2,
            gap: Span::Time(MILLISECOND),
        })
    };
    let line = Rate::Percent(100.0);
    // A frame of 105 octets takes 1 us with preamble and gap, 0.904 us without the gap.
    let frames = times(&mut pace(line, 105, bursts(Some(2))), 0, 100 * MILLISECOND);
    assert_eq!(frames, [0, 1000, 1_001_904, 1_002_904]);
    let endless = times(&mut pace(line, 105, bursts(None)), 0, 100 * MILLISECOND);
    assert_eq!(endless.len(), 200);
}

#[test]
fn what_was_due_while_it_was_held_is_not_owed() {
    let mut held = pace(Rate::FramesPerSecond(1000), 64, schedule(End::Never));
    held.start(0);
    held.take();
    held.was_held(10 * MILLISECOND, 11 * MILLISECOND);
    // The frame that was due after 1 ms is, after 11.
    assert_eq!(whole(held.progress().due), 11 * MILLISECOND);
    held.take();
    assert_eq!(whole(held.progress().due), 12 * MILLISECOND);
    // One that is due later is as before.
    held.was_held(MILLISECOND, 11 * MILLISECOND);
    assert_eq!(whole(held.progress().due), 12 * MILLISECOND);
}

#[test]
fn a_flow_that_is_paused_by_an_order_has_the_time_left_that_it_had() {
    let mut paused = pace(
        Rate::FramesPerSecond(1000),
        64,
        schedule(End::Time(10 * MILLISECOND)),
    );
    paused.start(0);
    for _ in 0..4 {
        assert!(paused.take().is_some());
    }
    paused.pause(4 * MILLISECOND - 1);
    assert_eq!(paused.progress().state, Transmit::Paused);
    paused.resume(504 * MILLISECOND - 1);
    assert_eq!(whole(paused.progress().due), 504 * MILLISECOND);
    let left = std::iter::from_fn(|| paused.take()).count();
    assert_eq!(left, 6);
}

#[test]
fn a_new_rate_takes_effect_at_once() {
    let mut slow = pace(Rate::FramesPerSecond(1), 64, schedule(End::Never));
    slow.start(0);
    slow.take();
    slow.set_rate(Rate::FramesPerSecond(1000), 5 * MILLISECOND);
    assert_eq!(whole(slow.progress().due), 6 * MILLISECOND);
}

#[test]
fn a_start_begins_anew() {
    let mut pace = pace(Rate::FramesPerSecond(1000), 64, schedule(End::Frames(2)));
    assert_eq!(times(&mut pace, 0, 100 * MILLISECOND).len(), 2);
    assert_eq!(times(&mut pace, 0, 100 * MILLISECOND).len(), 2);
    assert_eq!(pace.progress().number, 2);
}

#[test]
fn another_rate_shortens_neither_a_delay_nor_the_gap_between_bursts() {
    let delay = 10_000 * MILLISECOND;
    let faster = Rate::FramesPerSecond(1_000_000);
    let mut delayed = pace(
        Rate::FramesPerSecond(10),
        64,
        Schedule {
            delay: Span::Time(delay),
            ..schedule(End::Never)
        },
    );
    delayed.start(0);
    delayed.set_rate(faster, MILLISECOND);
    assert_eq!(whole(delayed.progress().due), delay);

    let mut bursts = pace(
        Rate::FramesPerSecond(1000),
        64,
        schedule(End::Bursts {
            bursts: None,
            frames: 2,
            gap: Span::Time(delay),
        }),
    );
    bursts.start(0);
    bursts.take();
    // In a burst the next frame comes by the new rate.
    bursts.set_rate(faster, 0);
    assert_eq!(whole(bursts.progress().due), 1000);
    bursts.take();
    let next = bursts.progress().due;
    bursts.set_rate(faster, MILLISECOND);
    assert_eq!(bursts.progress().due, next);
    assert!(whole(next) > delay);
}
