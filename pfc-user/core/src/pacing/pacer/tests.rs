//! Flows in virtual time.

use pfc_ebpf::units::MILLISECOND as MS;

use super::*;

const GIGABIT: u64 = 1_000_000_000;
const START: Nanos = 123_456_789;

fn line() -> LineRate {
    LineRate::from_bits_per_second(GIGABIT).unwrap()
}

fn flow(priority: u8, rate: u64, length: usize) -> Paced {
    Paced {
        priority: Priority::new(priority).unwrap(),
        rate,
        bits: LineRate::frame_bits(length),
    }
}

fn pacer(flows: &[Paced]) -> Pacer {
    let mut pacer = Pacer::new(flows, line(), 4 * MS).unwrap();
    pacer.start(START, 100);
    pacer
}

const FREE: Pauses = [PauseState { until: 0, since: 0 }; Priority::COUNT];

/// A pause of that priority alone.
fn pause(priority: usize, since: Nanos, until: Nanos) -> Pauses {
    let mut pauses = FREE;
    pauses[priority] = PauseState { until, since };
    pauses
}

fn pop(pacer: &mut Pacer) -> Option<usize> {
    pacer.take().map(|token| token.flow)
}

fn drain(pacer: &mut Pacer) -> Vec<usize> {
    std::iter::from_fn(|| pop(pacer)).collect()
}

#[test]
fn frames_that_had_no_room_are_due_as_before_and_burst_no_more() {
    let flows = [flow(0, GIGABIT / 2, 1024), flow(1, GIGABIT / 2, 1024)];
    let mut pacer = pacer(&flows);
    let mut other = self::pacer(&flows);
    for round in 1..=200u64 {
        let now = START + round * MS / 10;
        pacer.advance(now, &FREE);
        other.advance(now, &FREE);
        let taken: Vec<Token> = std::iter::from_fn(|| pacer.take()).collect();
        assert!(round > 1 || taken.len() > 2);
        pacer.give_back(taken.into_iter().rev());
        assert_eq!(pacer.next_due(), other.next_due());
    }
    // There is room again, after 20 ms: what leaves is what would after any other stall.
    let burst = drain(&mut pacer);
    assert_eq!(burst, drain(&mut other));
    assert!((475..=477).contains(&burst.len()), "{}", burst.len());
}

/// A small generator (xorshift), so that the tests are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[test]
fn frames_are_due_exactly_when_their_bits_have_accrued() {
    // 8384 bits at 300 Mbit/s: 27946.67 ns.
    let flow = flow(0, 300_000_000, 1024);
    let mut pacer = pacer(&[flow]);
    for k in 1..=100_000u128 {
        let due =
            START + (k * u128::from(flow.bits) * SECOND).div_ceil(u128::from(flow.rate)) as Nanos;
        assert_eq!(pacer.next_due(), Some(due));
        pacer.advance(due - 1, &FREE);
        assert_eq!(pop(&mut pacer), None);
        pacer.advance(due, &FREE);
        assert_eq!(drain(&mut pacer), [0]);
    }
}

#[test]
fn sixty_four_flows_fill_the_line_and_no_more() {
    let flows: Vec<_> = (0..64).map(|i| flow(i % 8, GIGABIT / 64, 1024)).collect();
    let mut pacer = pacer(&flows);
    let mut sent = [0u64; 64];
    let mut now = START;
    while now < START + 1000 * MS {
        now += 100_000;
        pacer.advance(now, &FREE);
        drain(&mut pacer)
            .into_iter()
            .for_each(|index| sent[index] += 1);
    }
    // 1 s * 15625000 bit/s / 8384 bit = 1863.7, and 64 of that = 119274.8.
    assert!(
        sent.iter().all(|sent| [1863, 1864].contains(sent)),
        "{sent:?}"
    );
    assert_eq!(sent.iter().sum::<u64>(), 119_274);
}

#[test]
fn frames_come_in_the_order_in_which_they_are_due() {
    let flows = [
        flow(0, 100_000_000, 1024),
        flow(1, 400_000_000, 1024),
        flow(1, 50_000_000, 100),
    ];
    let mut pacer = pacer(&flows);
    pacer.advance(START + MS, &FREE);
    let mut sent = [0.0; 3];
    let mut last = 0.0;
    for index in drain(&mut pacer) {
        // The first after a third, two thirds and the whole of the time between two.
        let due = (sent[index] + (index + 1) as f64 / 3.0) * flows[index].bits as f64
            / flows[index].rate as f64;
        assert!(due > last - 1e-9);
        last = due;
        sent[index] += 1.0;
    }
    assert_eq!(sent, [12.0, 48.0, 50.0]);
}

#[test]
fn after_a_stall_no_more_than_the_largest_burst_leaves_and_the_rest_is_lost() {
    let mut pacer = pacer(&[flow(0, GIGABIT / 2, 1024), flow(1, GIGABIT / 2, 1024)]);
    pacer.advance(START + 100 * MS, &FREE);
    let burst = drain(&mut pacer).len() as u64;
    // 4 ms at 1 Gbit/s are 477.1 frames, one of each flow being kept for what had accrued
    // before.
    assert!((475..=477).contains(&burst), "{burst}");
    pacer.advance(START + 110 * MS, &FREE);
    let late = drain(&mut pacer).len() as u64;
    assert!((475..=477).contains(&late), "{late}");
}

#[test]
fn a_short_stall_is_caught_up_with_in_full() {
    let paced = flow(0, GIGABIT, 1024);
    let mut pacer = pacer(&[paced]);
    pacer.advance(START + 3 * MS, &FREE);
    // A bit takes a nanosecond.
    assert_eq!(drain(&mut pacer).len() as u64, 3 * MS / paced.bits);
    pacer.advance(START + 1000 * MS, &FREE);
    drain(&mut pacer);
    pacer.advance(START + 1000 * MS + 10 * paced.bits, &FREE);
    assert_eq!(drain(&mut pacer).len(), 10);
}

#[test]
fn what_a_pause_withheld_is_not_owed_afterwards_and_the_others_go_on() {
    let paced = flow(3, GIGABIT / 10, 1024);
    let mut pacer = pacer(&[paced, flow(4, GIGABIT / 10, 1024)]);
    let us = |n: Nanos| START + n * 1000;
    pacer.advance(us(2000), &FREE);
    // 23.9 frames' time, which one of the flows begins in the middle of.
    assert_eq!(drain(&mut pacer).len(), 23 + 24);
    let of_other = |pacer: &mut Pacer| drain(pacer).iter().all(|&index| index == 1);
    // From 2.5 ms on; what the rest of the time brought is owed.
    let held = pause(3, us(2500), us(60_000));
    assert_eq!(pacer.advance(us(3000), &held)[3], us(2500)..us(3000));
    assert!(of_other(&mut pacer));
    for n in 4..52 {
        let stood = pacer.advance(us(1000 * n), &held);
        assert_eq!(
            (stood[3].clone(), stood[4].is_empty()),
            (us(1000 * n - 1000)..us(1000 * n), true)
        );
        assert!(of_other(&mut pacer));
    }
    // An XON at 51.5 ms.
    assert_eq!(
        pacer.advance(us(52_000), &pause(3, us(2500), us(51_500)))[3],
        us(51_000)..us(51_500)
    );
    let owed = drain(&mut pacer)
        .iter()
        .filter(|&&index| index == 0)
        .count() as u64;
    // 3 ms in all at 100 Mbit/s: 35.8 frames' time.
    assert_eq!(owed, 36 - 24);
}

#[test]
fn a_stall_while_a_pause_holds_is_withheld_for_no_longer_than_the_pause() {
    let paced = flow(3, GIGABIT / 10, 1024);
    let mut pacer = pacer(&[paced]);
    let ms = |n| START + n * MS;
    pacer.advance(ms(1), &FREE);
    drain(&mut pacer);
    // 50 ms without a look, of which the last was paused: the 49 before are the stall's, and no
    // more is caught up with than the largest burst.
    let held = pause(3, ms(50), ms(90));
    assert_eq!(pacer.advance(ms(51), &held)[3], ms(50)..ms(51));
    assert!(drain(&mut pacer).is_empty());
    assert_eq!(
        pacer.advance(ms(53), &pause(3, ms(50), ms(52)))[3],
        ms(51)..ms(52)
    );
    let frames = drain(&mut pacer).len() as u64;
    let caught_up = pacer.max_lateness / 10 / paced.bits;
    assert!(
        (caught_up..=caught_up + 1).contains(&frames),
        "{frames} frames, {caught_up} for what may be caught up with"
    );
    // A pause that came and went in a stall withheld that long.
    assert_eq!(
        pacer.advance(ms(153), &pause(3, ms(60), ms(93)))[3],
        ms(60)..ms(93)
    );
}

#[test]
fn no_flow_is_ever_above_its_rate_and_no_burst_above_the_largest() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for round in 0..40 {
        let count = 1 + random.below(20);
        let flows: Vec<_> = (0..count)
            .map(|_| {
                flow(
                    random.below(8) as u8,
                    1 + random.below(GIGABIT / count),
                    60 + random.below(1500) as usize,
                )
            })
            .collect();
        let total: u128 = flows.iter().map(|flow| u128::from(flow.rate)).sum();
        let waits = stagger(&flows);
        let mut pacer = pacer(&flows);
        let mut now = START;
        let mut sent = vec![0u128; flows.len()];
        let mut free = [0u128; 8];
        let mut pauses = FREE;
        // Bits times a second, beyond what the flows' rates have let drain.
        let mut excess = 0u128;
        for _ in 0..500 {
            let passed = if random.below(20) == 0 {
                random.below(30 * MS)
            } else {
                random.below(300_000)
            };
            now += passed;
            for state in &mut pauses {
                if random.below(8) == 0 {
                    let since = now - random.below(passed + 1);
                    *state = PauseState {
                        since,
                        until: since + random.below(3 * MS),
                    };
                }
            }
            let stood = pacer.advance(now, &pauses);
            for (free, stood) in free.iter_mut().zip(stood) {
                assert!(
                    stood.is_empty()
                        || (now - passed..=now).contains(&stood.start) && stood.end <= now
                );
                *free += u128::from(passed - (stood.end - stood.start));
            }
            excess = excess.saturating_sub(total * u128::from(passed));
            for _ in 0..random.below(400) {
                let Some(index) = pop(&mut pacer) else { break };
                sent[index] += 1;
                excess += u128::from(flows[index].bits) * SECOND;
                let paced = flows[index];
                assert!(pauses[paced.priority.index()].until <= now);
                // The first frame is due before a whole one has accrued.
                let wait = waits[index];
                let accrued = u128::from(paced.rate) * free[paced.priority.index()];
                let frame = u128::from(paced.bits) * SECOND;
                assert!(
                    sent[index] * frame * u128::from(wait.whole)
                        <= accrued * u128::from(wait.whole)
                            + frame * u128::from(wait.whole - wait.of),
                    "round {round}"
                );
            }
            assert!(
                excess <= u128::from(4 * MS) * u128::from(GIGABIT),
                "round {round}"
            );
        }
    }
}

#[test]
fn what_cannot_be_paced_is_refused_with_the_figures() {
    let refuse = |flows: &[Paced], burst| Pacer::new(flows, line(), burst).unwrap_err();
    assert_eq!(
        refuse(&[flow(0, 1, 64), flow(0, 0, 64)], 4 * MS),
        PacingError::NoRate { index: 1 }
    );
    let error = refuse(&[flow(0, GIGABIT, 64), flow(0, 1, 64)], 4 * MS);
    assert_eq!(
        error.to_string(),
        "the flows' rates must add up to at most the line rate, 1 Gbit/s, found 1000000001 \
         bit/s"
    );
    let jumbo = [flow(0, GIGABIT / 64, 9000); 64];
    assert_eq!(
        refuse(&jumbo, MS),
        PacingError::BurstTooSmall {
            min: 72_192 + MS,
            found: MS
        }
    );
    // Without an excess for all of them, one frame of each may leave at once.
    assert_eq!(
        max_lateness(&jumbo, line(), 4 * MS),
        Err(PacingError::BurstTooSmall {
            min: 2 * 64 * 72_192 + MS,
            found: 4 * MS
        })
    );
}

/// The program has no meter of its own that holds frames back: `max_lateness` has to do.
#[test]
fn after_a_stall_of_any_length_a_bucket_alone_holds_no_more_than_the_largest_burst() {
    let paced = flow(0, 672_000_000, 64);
    let most = u128::from(4 * MS) * u128::from(GIGABIT);
    let max_lateness = max_lateness(&[paced], line(), 4 * MS).unwrap();
    let mut largest = 0;
    // All longer than the longest lateness.
    for stall in (0..2000).map(|more| 7 * MS + more) {
        let mut bucket = Bucket::new(START, paced.bits, paced.rate, 100);
        let now = START + stall;
        let mut burst = 0;
        while bucket.ready() <= now {
            bucket.take(now, max_lateness);
            burst += u128::from(paced.bits) * SECOND;
        }
        largest = largest.max(burst);
    }
    let frame = u128::from(paced.bits) * SECOND;
    assert!(largest <= most && largest + 2 * frame > most, "{largest}");
}

#[test]
fn without_flows_nothing_is_ever_due() {
    let mut pacer = pacer(&[]);
    pacer.advance(START + MS, &FREE);
    assert_eq!((pop(&mut pacer), pacer.next_due()), (None, None));
}

/// Returns the frames of 64 flows that fill a line of `bits_per_second`, in windows of `width`:
/// looked at every 150 us, for a second. Returns also the largest burst in nanoseconds of the line.
/// Priorities 3 and 4 are held back for `held` from 100 ms on.
fn windows(bits_per_second: u64, length: usize, width: Nanos, held: Nanos) -> (Vec<u64>, Nanos) {
    let line = LineRate::from_bits_per_second(bits_per_second).unwrap();
    let flows: Vec<_> = (0..64)
        .map(|i| flow(i % 8, bits_per_second / 64, length))
        .collect();
    let total: u128 = flows.iter().map(|flow| u128::from(flow.rate)).sum();
    let frame = LineRate::frame_bits(length) * 1_000_000_000 / bits_per_second;
    let mut pacer = Pacer::new(&flows, line, (4 * MS).max(2 * frame)).unwrap();
    pacer.start(START, 100);
    let (mut counts, mut excess, mut largest) = (vec![0; (1000 * MS / width) as usize], 0, 0);
    let mut now = START;
    while now + 150_000 < START + 1000 * MS {
        now += 150_000;
        let mut pauses = FREE;
        for priority in [3, 4] {
            let since = START + 100 * MS + MS * priority as Nanos;
            if held > 0 && now >= since {
                pauses[priority] = PauseState {
                    since,
                    until: since + held,
                };
            }
        }
        pacer.advance(now, &pauses);
        excess = u128::saturating_sub(excess, total * 150_000);
        for index in drain(&mut pacer) {
            counts[((now - START) / width) as usize] += 1;
            excess += u128::from(flows[index].bits) * SECOND;
            largest = largest.max(excess.div_ceil(u128::from(bits_per_second)) as Nanos);
        }
    }
    (counts, largest)
}

#[test]
fn staggered_flows_fill_every_window_alike() {
    for (line, length) in [(10_000_000, 60), (100_000_000, 1024), (GIGABIT, 1024)] {
        let width = 10 * MS;
        let (counts, largest) = windows(line, length, width, 0);
        let bits = LineRate::frame_bits(length);
        let mean = (line / 100) as f64 / bits as f64;
        // Frames that a tick of 150 us brings, and one at either edge.
        let edge = line as f64 * 150e-6 / bits as f64 + 2.0;
        for count in &counts[..counts.len() - 1] {
            assert!((*count as f64 - mean).abs() <= edge, "{counts:?}");
        }
        let most = 150_000 + 2 * bits * 1_000_000_000 / line;
        assert!(largest <= most, "{line}: {largest} > {most}");
    }
}

#[test]
fn frames_that_take_long_wait_for_each_other_and_none_is_lost() {
    // 1024 octets take 0.84 ms of 10 Mbit/s: one frame of each of 64 flows is 54 ms of it.
    for (line, length, most) in [
        (10_000_000, 60, 4 * MS),
        (10_000_000, 1024, 4 * MS),
        (10_000_000, 3400, 5_478_400),
        (1_000_000, 1024, 16_768_000),
    ] {
        for held in [0, 37 * MS] {
            let (counts, largest) = windows(line, length, 500 * MS, held);
            assert!(largest <= most, "{line}, {length}: {largest}");
            let bits = LineRate::frame_bits(length);
            let held = held * line / 4 / 1_000_000_000;
            let (sent, whole) = (counts.iter().sum::<u64>(), (line - held) / bits);
            // One frame of each priority may be waiting for another.
            let late = if held > 0 { 8 } else { 1 };
            assert!(
                (whole - late..=whole + 1).contains(&sent),
                "{sent}, {whole}"
            );
        }
    }
}

#[test]
fn the_flows_of_a_priority_are_spread_too() {
    // DSCP / 8: neighbours have the same priority.
    let flows: Vec<_> = (0..64).map(|i| flow(i / 8, GIGABIT / 64, 1024)).collect();
    let waits = stagger(&flows);
    for priority in waits.chunks(8) {
        let of: Vec<_> = priority.iter().map(|wait| wait.of).collect();
        assert!(of.windows(2).all(|pair| pair[1] - pair[0] == 8), "{of:?}");
    }
    let mut all: Vec<_> = waits.iter().map(|wait| wait.of).collect();
    all.sort_unstable();
    assert_eq!(all, (1..=64).collect::<Vec<_>>());
}
