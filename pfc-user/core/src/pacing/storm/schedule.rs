//! The times at which a sender of a storm sends. No I/O; time is an argument.

use pfc_ebpf::units::Nanos;

/// A late sender sleeps for this share of an interval before its next frame, and never for less
/// than [`SHORTEST_REST`].
const REST: Nanos = 4;
/// After a long round it sleeps for this share of it, up to an interval or [`LONGEST_REST`]: a
/// thread under SCHED_FIFO that sleeps for less than a twentieth of the time is throttled for 50 ms
/// (sched_rt_runtime_us).
const REST_OF_ROUND: Nanos = 8;
/// A shorter sleep hardly lets another thread run.
const SHORTEST_REST: Nanos = 5_000;
/// A longer sleep than this is never needed to let others run, where frames are due more often:
/// nanoseconds.
pub const LONGEST_REST: Nanos = 20_000;

/// The schedule of one sender: times that are an interval apart, which it keeps to after a delay,
/// so that it stays between the times of another.
#[derive(Debug)]
pub struct Schedule {
    interval: Nanos,
    /// Time at which the last frame was due.
    due: Nanos,
}

impl Schedule {
    /// The schedule of sender `index` of `senders`, which begin at `start` and share the interval
    /// evenly.
    pub fn new(start: Nanos, interval: Nanos, index: usize, senders: usize) -> Self {
        Self {
            interval,
            due: start + interval * index as Nanos / senders as Nanos,
        }
    }

    /// Time of the first frame.
    pub fn first(&self) -> Nanos {
        self.due
    }

    /// Time of the next frame, after one for which the thread woke up at `woke` and which was
    /// done at `now`. What was missed is not made up for.
    pub fn next(&mut self, woke: Nanos, now: Nanos) -> Nanos {
        let missed = now.saturating_sub(self.due) / self.interval;
        self.due += (missed + 1) * self.interval;
        let least = SHORTEST_REST.max(self.interval / REST);
        let rest = (now.saturating_sub(woke) / REST_OF_ROUND)
            .clamp(least, LONGEST_REST.max(self.interval));
        self.due.max(now + rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Nanos = 1000;

    /// The schedule of sender `index` of two, or of one; times in microseconds from here on.
    fn schedule(index: usize, senders: usize) -> Schedule {
        Schedule::new(1000 * US, 100 * US, index, senders)
    }

    fn next(schedule: &mut Schedule, woke: Nanos, now: Nanos) -> Nanos {
        schedule.next(woke * US, now * US) / US
    }

    #[test]
    fn the_schedule_does_not_drift_and_does_not_hurry_after_a_delay() {
        let mut schedule = schedule(0, 1);
        assert_eq!(schedule.first(), 1000 * US);
        assert_eq!(next(&mut schedule, 1001, 1003), 1100);
        assert_eq!(next(&mut schedule, 1140, 1142), 1200);
        // Late by more than an interval: no second frame at once, and none of those missed.
        assert_eq!(next(&mut schedule, 1530, 1550), 1600);
        assert_eq!(next(&mut schedule, 1600, 1601), 1700);
    }

    #[test]
    fn a_late_sender_rests_before_its_next_frame_and_finds_back_to_its_times() {
        let mut schedule = schedule(0, 1);
        assert_eq!(next(&mut schedule, 1090, 1095), 1120);
        assert_eq!(next(&mut schedule, 1120, 1121), 1200);
        // The next time is reached exactly: it is missed.
        assert_eq!(next(&mut schedule, 1250, 1300), 1400);
    }

    #[test]
    fn senders_share_the_interval_and_keep_apart_after_a_delay() {
        let mut pair = [0, 1].map(|index| schedule(index, 2));
        assert_eq!(pair.each_ref().map(Schedule::first), [1000 * US, 1050 * US]);
        assert_eq!(next(&mut pair[0], 1000, 5010), 5110);
        assert_eq!(next(&mut pair[0], 5110, 5111), 5200);
        assert_eq!(next(&mut pair[1], 1050, 1051), 1150);
    }

    /// However short the interval is beside what a frame takes.
    #[test]
    fn a_sender_that_cannot_keep_up_sleeps_for_a_twentieth_of_the_time() {
        for interval in [1, 20, 640, 14_000, 112_000] {
            for work in [500, 3000, 13_000, 14_001, 99_000] {
                let mut schedule = Schedule::new(0, interval, 0, 1);
                let (mut wake, mut worked) = (schedule.first(), 0);
                for _ in 0..1000 {
                    worked += work;
                    wake = schedule.next(wake, wake + work);
                }
                assert!(
                    worked * 20 <= wake * 19,
                    "{work} every {interval}: {worked} of {wake}"
                );
            }
        }
    }
}
