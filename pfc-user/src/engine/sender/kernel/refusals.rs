//! Frames that a port does not take, and what follows from them.

use std::time::Duration;

use pfc_ebpf::units::Nanos;

/// A port that takes no frame for this time takes none at present.
const REFUSES: Nanos = 20_000_000;

/// Time for which the CPU is left to others after frames were refused. A veth's ring is emptied on
/// the CPU that fills it, by ksoftirqd if there is much to do, and before Linux 6.5 by nothing else
/// then: a thread that is preferred to ksoftirqd would find the ring full as long as it runs.
const PAUSE: Duration = Duration::from_micros(50);
/// Twice as long each time that it was not enough, but no longer than that.
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// Action after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on.
    Send,
    /// Leave the CPU to others for this time, and try a few frames then.
    Pause(Duration),
    /// Send in another way.
    GiveUp,
}

/// The refusals of a run.
#[derive(Default)]
pub struct Refusals {
    /// Frames that the port took so far, and those that it did not.
    taken: u64,
    refused: u64,
    /// Time since which the port has taken no frame, if it refused some.
    since: Option<Nanos>,
    /// The last pause, if frames have been refused in each call since.
    pause: Option<Duration>,
}

impl Refusals {
    /// A call is over after which the port took `taken` frames in the run, and refused `refused`.
    pub fn after(&mut self, taken: u64, refused: u64, now: Nanos) -> Next {
        let some_taken = taken > self.taken;
        let some_refused = refused > self.refused;
        (self.taken, self.refused) = (taken, refused);
        if some_taken {
            self.since = None;
        }
        if !some_refused {
            // Where no frame was due the port was not asked.
            (self.since, self.pause) = (None, None);
            return Next::Send;
        }
        if !some_taken && now - *self.since.get_or_insert(now) >= REFUSES {
            return Next::GiveUp;
        }
        let pause = self.pause.map_or(PAUSE, |pause| pause * 2);
        Next::Pause(*self.pause.insert(pause.min(LONGEST_PAUSE)))
    }
}

#[cfg(test)]
mod tests {
    use pfc_ebpf::units::MILLISECOND as MS;

    use super::*;

    fn micros(pause: u64) -> Next {
        Next::Pause(Duration::from_micros(pause))
    }

    #[test]
    fn pauses_grow_while_frames_are_refused_and_begin_anew_when_none_was() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.after(100, 0, 0), Next::Send);
        let grow = [50, 100, 200, 400, 800, 1600, 2000, 2000];
        for (call, pause) in (1..).zip(grow) {
            // Some are taken each time.
            assert_eq!(refusals.after(100 + call, call, call * MS), micros(pause));
        }
        assert_eq!(refusals.after(200, 8, 9 * MS), Next::Send);
        assert_eq!(refusals.after(200, 9, 10 * MS), micros(50));
    }

    #[test]
    fn a_port_is_given_up_that_has_taken_nothing_for_20_ms() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.after(10, 1, 100 * MS), micros(50));
        assert_eq!(refusals.after(10, 2, 101 * MS), micros(100));
        assert_eq!(refusals.after(10, 3, 120 * MS), micros(200));
        assert_eq!(refusals.after(10, 4, 121 * MS), Next::GiveUp);
    }

    #[test]
    fn a_frame_that_is_taken_begins_the_20_ms_anew() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.after(0, 1, 0), micros(50));
        assert_eq!(refusals.after(1, 2, 19 * MS), micros(100));
        assert_eq!(refusals.after(1, 3, 21 * MS), micros(200));
        assert_eq!(refusals.after(1, 4, 40 * MS), micros(400));
        assert_eq!(refusals.after(1, 5, 41 * MS), Next::GiveUp);
    }

    #[test]
    fn time_in_which_nothing_was_due_is_none_of_the_20_ms() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.after(10, 1, 0), micros(50));
        assert_eq!(refusals.after(10, 1, 15 * MS), Next::Send);
        assert_eq!(refusals.after(10, 2, 25 * MS), micros(50));
        assert_eq!(refusals.after(10, 3, 44 * MS), micros(100));
        assert_eq!(refusals.after(10, 4, 45 * MS), Next::GiveUp);
    }

    #[test]
    fn a_flow_with_nothing_due_is_not_refused() {
        let mut refusals = Refusals::default();
        for call in 0..100 {
            assert_eq!(refusals.after(5, 0, call * MS), Next::Send);
        }
    }
}
