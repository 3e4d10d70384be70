//! Arithmetic of the senders: the token bucket of a flow, the burst meter of a worker, and the time
//! that PFC withheld. The program `generate` and userspace share it.

use core::mem::offset_of;

use crate::abi::account::PauseState;

/// Nanoseconds in a second: bits times this many make
/// [`crate::abi::generate::Flow::cost`].
pub use crate::units::SECOND;

/// The part of the time from `from` to `to` in which `pause` held, an empty one where it did not:
/// what was withheld. `pause` is as it stands at `to`.
///
/// The part need not begin with the look before or end with this one: a sender that did not run
/// meanwhile stalled, and owes what it might have sent before and after. Nothing is known of an
/// earlier pause that ended in that time, and it counts for nothing.
#[inline(always)]
pub const fn withheld(pause: &PauseState, from: u64, to: u64) -> (u64, u64) {
    let from = if pause.since > from {
        pause.since
    } else {
        from
    };
    let to = if pause.until < to { pause.until } else { to };
    if from < to { (from, to) } else { (from, from) }
}

/// Schedule of a flow's frames: a token bucket, kept as the first whole nanosecond at which
/// it will hold the next frame and what this is too late by, so that it neither drifts nor ever
/// runs ahead: k frames of b bits are due no earlier than k * b / rate after the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Bucket {
    due: u64,
    /// Lateness of `due` in units of 1/rate ns, less than one nanosecond.
    excess: u64,
    /// Time for one frame in nanoseconds, rounded up, and what that is too long by.
    step: u64,
    step_excess: u64,
    rate: u64,
}

impl Bucket {
    /// A bucket, empty at `now`, for frames of `bits` at `load` percent (1 to 100) of `rate` bit/s.
    pub const fn new(now: u64, bits: u64, rate: u64, load: u8) -> Self {
        Self::staggered(now, bits, rate, load, Share::WHOLE)
    }

    /// Like `new`, but the first frame is due after `wait` of the time from one to the next.
    pub const fn staggered(now: u64, bits: u64, rate: u64, load: u8, wait: Share) -> Self {
        let load = if load > 100 { 100 } else { load } as u64;
        let rate = rate as u128 * load as u128 / 100;
        let rate = if rate == 0 { 1 } else { rate };
        let cost = bits as u128 * SECOND as u128;
        let step = cost.div_ceil(rate);
        let step_excess = (step * rate - cost) as u64;
        Self {
            due: now + (step * wait.of as u128).div_ceil(wait.whole as u128) as u64,
            excess: step_excess,
            step: step as u64,
            step_excess,
            rate: rate as u64,
        }
    }

    /// The first whole nanosecond at which the frame may leave.
    #[inline(always)]
    pub const fn ready(&self) -> u64 {
        self.due
    }

    /// Takes a frame out at `now`, when one is ready. Of what was due more than `max_lateness`
    /// before, one frame is left. The others are left out whole, so that flows which were staggered
    /// still are.
    #[inline(always)]
    pub const fn take(&mut self, now: u64, max_lateness: u64) {
        // A difference costs the program less than a saturating one.
        if now - self.due >= max_lateness {
            let late = now - max_lateness - self.due;
            // Never 0; the verifier wants to see it.
            if let Some(left_out) = late.checked_div(self.step) {
                self.due += left_out * self.step;
            }
        }
        self.advance();
    }

    /// Returns the bucket of a flow that sends a frame each `interval` from `due` on, times in
    /// units of 2^-32 ns. Both are kept exactly; an interval is at most a second.
    pub const fn of_fine(due: u128, interval: u64) -> Self {
        const UNIT: u64 = 1 << 32;
        let (whole, step) = (due.div_ceil(UNIT as u128), interval.div_ceil(UNIT));
        Self {
            due: whole as u64,
            excess: ((whole << 32) - due) as u64,
            step,
            step_excess: (step << 32).wrapping_sub(interval),
            rate: UNIT,
        }
    }

    /// Time at which the next frame is due, of a bucket that was made by [`Self::of_fine`], in its
    /// units.
    pub const fn fine(&self) -> u128 {
        Self::fine_of([self.due, self.excess])
    }

    /// Like [`Self::fine`], of the first words of a bucket.
    pub const fn fine_of([due, excess]: [u64; 2]) -> u128 {
        let due = if due >= Self::NEVER {
            due - Self::NEVER
        } else {
            due
        };
        ((due as u128) << 32) - excess as u128
    }

    /// Later than any time.
    const NEVER: u64 = 1 << 62;

    /// No frame is ready any more, until one is given back.
    #[inline(always)]
    pub const fn suspend(&mut self) {
        self.due += Self::NEVER;
    }

    /// The last frame taken out did not leave: it is due again.
    #[inline(always)]
    pub const fn give_back(&mut self) {
        if self.due >= Self::NEVER {
            self.due -= Self::NEVER;
        }
        self.due -= self.step;
        if self.excess < self.step_excess {
            self.excess += self.rate;
            self.due += 1;
        }
        self.excess -= self.step_excess;
    }

    #[inline(always)]
    const fn advance(&mut self) {
        self.due += self.step;
        self.excess += self.step_excess;
        if self.excess >= self.rate {
            self.excess -= self.rate;
            self.due -= 1;
        }
    }
}

const _: () = assert!(offset_of!(Bucket, due) == 0 && offset_of!(Bucket, excess) == 8);

/// A part of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// At most the whole.
    pub of: u32,
    /// Not 0.
    pub whole: u32,
}

impl Share {
    /// All of it.
    pub const WHOLE: Self = Self { of: 1, whole: 1 };
}

/// A bucket that frames fill and the flows' rates empty: its highest level is the largest burst,
/// what left at once beyond the rates. In bits times a second, which is what one bit/s brings in a
/// nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct BurstMeter {
    rate: u64,
    level: u64,
    largest: u64,
}

impl BurstMeter {
    /// Longest time that is taken as such: it empties every burst, and its product with the highest
    /// rate fits.
    const MAX_PASSED: u64 = 10_000_000;

    /// A meter, empty, for flows that have `rate` bit/s together.
    pub const fn new(rate: u64) -> Self {
        Self {
            rate,
            level: 0,
            largest: 0,
        }
    }

    /// Lets `nanos` pass.
    #[inline(always)]
    pub const fn pass(&mut self, nanos: u64) {
        // The level only falls here: no need to look after every frame.
        self.largest = self.highest();
        let nanos = if nanos < Self::MAX_PASSED {
            nanos
        } else {
            Self::MAX_PASSED
        };
        self.level = self.level.saturating_sub(self.rate * nanos);
    }

    /// A frame of that many bits times a second leaves.
    #[inline(always)]
    pub const fn add(&mut self, cost: u64) {
        self.level += cost;
    }

    /// The present level, in its units.
    #[inline(always)]
    pub const fn level(&self) -> u64 {
        self.level
    }

    #[inline(always)]
    const fn highest(&self) -> u64 {
        if self.level > self.largest {
            self.level
        } else {
            self.largest
        }
    }

    /// The largest burst as nanoseconds of `line` bit/s.
    pub const fn largest(&self, line: u64) -> u64 {
        self.highest().div_ceil(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_never_ahead_of_its_rate_and_never_a_nanosecond_behind() {
        for (bits, rate, load) in [
            (672, 10_000_000_000, 100),
            (8384, 333_333_333, 100),
            (672, 7, 100),
            (12_304, 1_000_000_007, 37),
        ] {
            let from = 123_456_789;
            let mut bucket = Bucket::new(from, bits, rate, load);
            let rate = u128::from(rate * u64::from(load) / 100).max(1);
            for k in 1..10_000u128 {
                let exact = u128::from(bits) * u128::from(SECOND) * k;
                assert_eq!(u128::from(bucket.ready() - from), exact.div_ceil(rate));
                // Late by less than what may be caught up with: nothing is lost.
                bucket.take(bucket.ready(), 1000);
            }
        }
    }

    #[test]
    fn a_staggered_bucket_begins_within_its_first_step_and_goes_on_from_there() {
        for (of, first) in [(1, 250), (3, 750), (4, 1000)] {
            let wait = Share { of, whole: 4 };
            let mut bucket = Bucket::staggered(5000, 1000, SECOND, 100, wait);
            for k in 0..100 {
                assert_eq!(bucket.ready(), 5000 + first + 1000 * k);
                bucket.take(bucket.ready(), 10_000);
            }
        }
    }

    #[test]
    fn flows_that_were_staggered_still_are_after_a_stall() {
        let first = |of| {
            let mut bucket = Bucket::staggered(0, 1000, SECOND, 100, Share { of, whole: 4 });
            bucket.take(1_000_000, 10_000);
            bucket.ready() % 1000
        };
        assert_eq!([1, 2, 3, 4].map(first), [250, 500, 750, 0]);
    }

    #[test]
    fn a_fine_bucket_tells_when_the_next_frame_is_due_to_its_last_bit() {
        let (mut due, interval) = ((7u128 << 32) + 5, (999u64 << 32) + 123_456_789);
        let mut bucket = Bucket::of_fine(due, interval);
        for _ in 0..10_000 {
            assert_eq!(bucket.fine(), due);
            assert_eq!(u128::from(bucket.ready()), due.div_ceil(1 << 32));
            bucket.take(bucket.ready(), SECOND);
            due += u128::from(interval);
        }
    }

    #[test]
    fn a_frame_that_is_given_back_is_due_as_before() {
        let mut bucket = Bucket::of_fine(3 << 31, (10 << 32) + 0xf000_0000);
        for _ in 0..1000 {
            let before = bucket;
            bucket.take(bucket.ready(), SECOND);
            let after = bucket;
            bucket.give_back();
            assert_eq!(bucket, before);
            bucket.take(bucket.ready(), SECOND);
            bucket.suspend();
            assert!(bucket.ready() > 1 << 60, "none is ready");
            assert_eq!(bucket.fine(), after.fine());
            bucket.give_back();
            assert_eq!(bucket, before);
            bucket = after;
        }
    }

    #[test]
    fn withheld_is_what_the_last_pause_is_known_to_have_held_and_nothing_else() {
        for (since, until, expected) in [
            // Not paused, or not in that time.
            (0, 0, None),
            (0, 100, None),
            (50, 90, None),
            (200, 900, None),
            // The pause began or ended meanwhile, or both, or neither.
            (150, 900, Some((150, 200))),
            (50, 160, Some((100, 160))),
            (120, 130, Some((120, 130))),
            (0, u64::MAX, Some((100, 200))),
        ] {
            let (from, to) = withheld(&PauseState { since, until }, 100, 200);
            assert_eq!(
                (from < to).then_some((from, to)),
                expected,
                "{since} to {until}"
            );
            assert!(from <= to);
        }
    }

    #[test]
    fn a_late_bucket_catches_up_with_no_more_than_allowed() {
        let mut bucket = Bucket::new(0, 1000, SECOND, 100);
        let (now, mut frames) = (1_000_000, 0);
        while bucket.ready() <= now {
            bucket.take(now, 10_000);
            frames += 1;
        }
        // The frame that was due, and one for each microsecond of the ten.
        assert_eq!(frames, 11);
    }

    #[test]
    fn the_largest_burst_is_what_left_beyond_the_rate() {
        let mut excess = BurstMeter::new(500_000_000);
        excess.add(8384 * SECOND);
        excess.add(8384 * SECOND);
        excess.pass(16_768);
        excess.add(8384 * SECOND);
        assert_eq!(excess.largest(SECOND), 2 * 8384);
        excess.add(8384 * SECOND);
        // Also before time has passed.
        assert_eq!(excess.largest(SECOND), 3 * 8384);
        excess.pass(u64::MAX);
        excess.add(8384 * SECOND);
        assert_eq!(excess.largest(SECOND), 3 * 8384);
    }
}
