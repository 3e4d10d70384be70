//! The account in virtual time, beside what truly left when.

use super::*;
use crate::pacing::storm::schedule::Schedule;

const US: Nanos = 1000;
const PAUSE: Nanos = 300 * US;
const INTERVAL: Nanos = 100 * US;
/// The longest that a sender which does not stall wakes up late, that a frame takes, and that it
/// takes to be noted.
const LATE: Nanos = 8 * US;
const SEND: Nanos = 5 * US;
const NOTE: Nanos = 3 * US;
const FOREVER: Nanos = 1 << 40;

fn at(before: Nanos) -> Departure {
    Departure {
        before,
        after: before + 10,
    }
}

fn gap(from: Nanos, to: Nanos) -> Gap {
    Gap { from, to }
}

fn one_sender(departures: &[Departure], pause: Nanos, end: Nanos) -> StormReport {
    let (mut account, latest) = (GapLedger::new(pause), Latest::default());
    departures
        .iter()
        .for_each(|departure| account.left(*departure, &latest));
    GapLedger::end("virtual".into(), vec![account], end)
}

#[test]
fn gaps_reach_from_before_one_frame_to_after_the_next() {
    let report = one_sender(&[at(1000), at(1100), at(1201), at(1500)], 110, 1501);
    assert_eq!(
        (report.frames, report.errors, report.first, report.last),
        (4, 0, at(1000), at(1500))
    );
    assert_eq!(report.max_gap, 309);
    // 110 is not above the pause time.
    assert_eq!(report.gaps, [gap(1100, 1211), gap(1201, 1510)]);
    assert_eq!(report.histogram, GapHistogram(vec![(112, 2), (320, 1)]));
}

#[test]
fn a_storm_that_went_quiet_before_it_was_stopped_ends_with_a_gap() {
    assert_eq!(one_sender(&[at(1000)], 110, 1110).gaps, []);
    let report = one_sender(&[at(1000)], 110, 1111);
    assert_eq!((report.max_gap, report.gaps), (111, vec![gap(1000, 1111)]));
    assert_eq!(report.histogram, GapHistogram::default());
    let nothing = one_sender(&[], 110, 1 << 40);
    assert_eq!(
        (nothing.frames, nothing.first, nothing.max_gap, nothing.gaps),
        (0, NEVER, 0, vec![])
    );
}

#[test]
fn refused_frames_are_counted_and_end_no_gap() {
    let (mut account, latest) = (GapLedger::new(110), Latest::default());
    account.left(at(1000), &latest);
    account.refused();
    account.left(at(1200), &latest);
    let report = GapLedger::end(String::new(), vec![account], 1210);
    assert_eq!(
        (report.frames, report.errors, report.gaps),
        (2, 1, vec![gap(1000, 1210)])
    );
}

#[test]
fn gaps_that_there_is_no_room_for_are_summed_up_exactly() {
    let latest = Latest::default();
    let mut accounts = [(); 2].map(|()| GapLedger::new(110));
    let room = ROOM as Nanos;
    for n in 0..2 * room + 7 {
        accounts[(n % 2) as usize].left(at(1000 * (n + 1)), &latest);
    }
    let last = 1000 * (2 * room + 7);
    let report = GapLedger::end(String::new(), accounts.into(), last);
    // The first frame ends no gap.
    assert_eq!(
        (report.gaps.len(), report.gaps_above()),
        (2 * ROOM, 2 * room + 6)
    );
    assert!(
        report
            .gaps
            .windows(2)
            .all(|pair| pair[0].from < pair[1].from)
    );
    let gap = 1010;
    assert_eq!(
        report.gaps_left_out,
        LeftOut {
            count: 6,
            total: 6 * gap,
            from: last - 6000,
            to: last + 10
        }
    );
    assert_eq!(
        (report.max_gap, report.histogram),
        (gap, GapHistogram(vec![(1024, 2 * room + 6)]))
    );
}

#[test]
fn every_length_has_a_bucket_that_ends_above_it_and_near_it() {
    let lengths = (0..64)
        .flat_map(|bits| [0, 1, 2].map(|more| (1u64 << bits).saturating_add(more).wrapping_sub(1)));
    for length in lengths.chain([14_000, 83_900, Nanos::MAX]) {
        let index = bucket(length);
        assert!(index < BUCKETS, "{length}");
        assert!(
            below(index) > length || length == Nanos::MAX,
            "{length}: {}",
            below(index)
        );
        assert!(
            index == 0 || below(index - 1) <= length,
            "{length}: {}",
            below(index - 1)
        );
        assert!(
            u128::from(below(index)) <= u128::from(length) + u128::from(length) / 16 + 1,
            "{length}: {}",
            below(index)
        );
    }
    assert_eq!(bucket(Nanos::MAX), BUCKETS - 1);
}

#[test]
fn a_frame_that_another_overtook_neither_ends_nor_begins_a_gap() {
    let (mut slow, mut fast, latest) = (
        GapLedger::new(PAUSE),
        GapLedger::new(PAUSE),
        Latest::default(),
    );
    slow.left(at(1000), &latest);
    [1100, 1200, 1300, 1400, 1500]
        .into_iter()
        .for_each(|before| fast.left(at(before), &latest));
    // Began before those, and was noted after them.
    slow.left(
        Departure {
            before: 1090,
            after: 1505,
        },
        &latest,
    );
    fast.left(at(1600), &latest);
    let report = GapLedger::end(String::new(), vec![slow, fast], 1610);
    assert_eq!(
        (report.frames, report.max_gap, &report.gaps[..]),
        (8, 110, &[][..])
    );
    assert_eq!((report.first, report.last), (at(1000), at(1600)));
    assert_eq!(report.histogram.count(), 7);
}

/// Numbers without a pattern (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A frame: when it truly left, and when its sender noted it.
#[derive(Clone, Copy)]
struct Frame {
    sender: usize,
    departure: Departure,
    left: Nanos,
    noted: Nanos,
}

type Stalls<'s> = &'s [(Nanos, Nanos)];

/// Runs a sender for each of `stalls`, the times in which it does not run, from 1 ms to `end`. The
/// account, and the true times of departure in their order.
fn storm(stalls: &[Stalls], end: Nanos, numbers: &mut Numbers) -> (StormReport, Vec<Nanos>) {
    let mut frames = Vec::new();
    for (sender, stalls) in stalls.iter().enumerate() {
        // Anything due at `time` happens at the end of the stall that `time` falls into.
        let runs = |time| {
            stalls
                .iter()
                .find(|(from, to)| (*from..*to).contains(&time))
                .map_or(time, |(_, to)| *to)
        };
        let mut schedule = Schedule::new(1000 * US, INTERVAL, sender, 2);
        let mut wake = schedule.first();
        loop {
            let before = runs(wake + numbers.below(LATE));
            let left = runs(before + numbers.below(SEND));
            let after = runs(left + numbers.below(SEND));
            let noted = runs(after + numbers.below(NOTE));
            if noted >= end {
                break;
            }
            frames.push(Frame {
                sender,
                departure: Departure { before, after },
                left,
                noted,
            });
            wake = schedule.next(before, noted);
        }
    }
    frames.sort_by_key(|frame| frame.noted);
    let latest = Latest::default();
    let mut accounts: Vec<GapLedger> = stalls.iter().map(|_| GapLedger::new(PAUSE)).collect();
    frames
        .iter()
        .for_each(|frame| accounts[frame.sender].left(frame.departure, &latest));
    let mut left: Vec<Nanos> = frames.iter().map(|frame| frame.left).collect();
    left.sort_unstable();
    let report = GapLedger::end("virtual".into(), accounts, end);
    assert_eq!(report.frames, left.len() as u64);
    assert_eq!(report.histogram.count(), report.frames.saturating_sub(1));
    (report, left)
}

/// Longest gap of senders that do not stall: an interval, and what each end of it may be late.
const STEADY: Nanos = INTERVAL + LATE + 2 * SEND;

#[test]
fn senders_that_do_not_stall_leave_no_gap() {
    for (stalls, interval) in [(&[&[][..]][..], INTERVAL), (&[&[], &[]], INTERVAL / 2)] {
        let (report, _) = storm(stalls, 1_000_000 * US, &mut Numbers(1));
        assert_eq!(report.gaps, []);
        assert!(
            report.max_gap <= interval + LATE + 2 * SEND,
            "{}",
            report.max_gap
        );
        assert_eq!(report.frames, (1_000_000 - 1000) * US / interval);
    }
}

#[test]
fn the_stall_of_a_lone_sender_is_a_gap() {
    let (report, _) = storm(
        &[&[(50_050 * US, 52_000 * US)]],
        100_000 * US,
        &mut Numbers(1),
    );
    let [gap] = report.gaps[..] else {
        panic!("{:?}", report.gaps)
    };
    assert!(
        gap.from <= 50_050 * US && gap.to >= 52_000 * US && gap.length() <= 1950 * US + STEADY,
        "{gap:?}"
    );
}

#[test]
fn one_of_two_senders_may_stall_for_as_long_as_it_likes() {
    for stalled in [
        (50_050 * US, 52_000 * US),
        (1000 * US, 90_000 * US),
        (50_000 * US, FOREVER),
    ] {
        for stalls in [[&[stalled][..], &[]], [&[], &[stalled]]] {
            let (report, _) = storm(&stalls, 100_000 * US, &mut Numbers(1));
            assert_eq!(report.gaps, [], "{stalled:?}");
            assert!(report.max_gap <= STEADY, "{stalled:?}: {}", report.max_gap);
        }
    }
}

#[test]
fn a_stall_of_both_is_a_gap_as_long_as_what_they_share_of_it() {
    let (report, _) = storm(
        &[&[(50_000 * US, 52_000 * US)], &[(51_000 * US, 53_000 * US)]],
        100_000 * US,
        &mut Numbers(1),
    );
    let [gap] = report.gaps[..] else {
        panic!("{:?}", report.gaps)
    };
    assert!(
        gap.from <= 51_000 * US && gap.to >= 52_000 * US && gap.length() <= 1000 * US + STEADY,
        "{gap:?}"
    );
    let (report, _) = storm(
        &[&[(50_000 * US, 52_000 * US)], &[(51_900 * US, 53_000 * US)]],
        100_000 * US,
        &mut Numbers(1),
    );
    assert_eq!(report.gaps, []);
    let (report, _) = storm(
        &[&[(50_000 * US, FOREVER)], &[(60_000 * US, FOREVER)]],
        100_000 * US,
        &mut Numbers(1),
    );
    let [gap] = report.gaps[..] else {
        panic!("{:?}", report.gaps)
    };
    assert!(gap.from < 60_000 * US && gap.to == 100_000 * US, "{gap:?}");
}

/// Stalls in the middle of a send included, wherever in it the frame left.
#[test]
fn no_silence_is_longer_than_the_account_says() {
    let mut numbers = Numbers(0x5eed);
    let mut silences = 0;
    for _ in 0..300 {
        let mut stalls = [vec![], vec![]];
        for stalls in &mut stalls {
            let mut time = 1000 * US;
            while time < 30_000 * US {
                let from = time + numbers.below(1500 * US);
                time = from + numbers.below(800 * US) + 1;
                stalls.push((from, time));
            }
        }
        let senders = 1 + numbers.below(2) as usize;
        let stalls: Vec<Stalls> = stalls.iter().take(senders).map(Vec::as_slice).collect();
        let (report, left) = storm(&stalls, 32_000 * US, &mut numbers);
        for (from, to) in left.iter().zip(&left[1..]) {
            assert!(
                to - from <= report.max_gap,
                "silence from {from} to {to}, largest gap {}",
                report.max_gap
            );
            if to - from > PAUSE {
                silences += 1;
                assert!(
                    report
                        .gaps
                        .iter()
                        .any(|gap| gap.from <= *from && *to <= gap.to),
                    "{from} to {to}: {:?}",
                    report.gaps
                );
            }
        }
        assert!(
            report
                .gaps
                .iter()
                .all(|gap| gap.length() > PAUSE && gap.length() <= report.max_gap)
        );
    }
    assert!(silences > 1000, "{silences}");
}
