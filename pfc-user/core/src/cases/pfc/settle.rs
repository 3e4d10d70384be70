//! The wait for the last frames of a phase. No I/O; time is an argument.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Quanta;

use crate::evidence::pfc::{Wait, WaitEnd};
use crate::plan::{Limits, Nanos, RepetitionPlan};

/// Beyond the longest pause: no scheduler leaves a queue that nothing holds alone for as long on an
/// idle line, and readings of the counters come late.
const MARGIN: Nanos = 300_000_000;

/// A wait that goes on until all frames have arrived, nothing has moved for so long that nothing
/// will, or the deadline.
#[derive(Debug)]
pub struct Settling {
    sent: u64,
    quiet: Nanos,
    arrived: u64,
    moved: Nanos,
    wait: Wait,
}

impl Settling {
    /// A wait from `now` on for `sent` frames of `phase`.
    pub fn new(phase: Phase, now: Nanos, deadline: Nanos, sent: u64, quiet: Nanos) -> Self {
        Self {
            sent,
            quiet,
            arrived: 0,
            moved: now,
            wait: Wait {
                phase,
                from: now,
                to: now,
                deadline,
                end: WaitEnd::Deadline,
            },
        }
    }

    /// Notes that `arrived` frames have arrived by `now`. Returns the record of the wait once it is
    /// over.
    pub fn look(&mut self, now: Nanos, arrived: u64) -> Option<Wait> {
        if arrived != self.arrived {
            (self.arrived, self.moved) = (arrived, now);
        }
        let end = if arrived >= self.sent {
            WaitEnd::AllArrived
        } else if now >= self.wait.deadline {
            WaitEnd::Deadline
        } else if now.saturating_sub(self.moved) >= self.quiet {
            WaitEnd::Quiet
        } else {
            return None;
        };
        Some(Wait {
            to: now,
            end,
            ..self.wait
        })
    }
}

/// Silence after which nothing more is to come: longer than the longest pause that may be in force
/// as the wait begins. How long a frame may stay in the DUT (`max_residence`) has no part in it: a
/// pause may keep it there, but nothing else does while the line is idle. What comes later all the
/// same still counts as long as the deadline has not passed and the ports count.
pub fn quiet(plan: &RepetitionPlan, limits: &Limits) -> Nanos {
    let probed = plan.bursts().map(|burst| burst.longest(plan.probed()));
    let longest = probed.fold(plan.storm_quanta(), Quanta::max);
    limits.pause_time(longest) + MARGIN
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// A wait for 10 frames for at most 2 s, or until nothing has moved for 500 ms.
    fn settling() -> Settling {
        Settling::new(Phase::Storm, 1000 * MS, 3000 * MS, 10, 500 * MS)
    }

    fn end(looks: &[(Nanos, u64)]) -> Option<(Nanos, WaitEnd)> {
        let mut settling = settling();
        let mut looks = looks.iter();
        let wait = looks.find_map(|(now, arrived)| settling.look(now * MS, *arrived))?;
        assert!(looks.next().is_none(), "it ended before");
        assert_eq!((wait.phase, wait.from), (Phase::Storm, 1000 * MS));
        Some((wait.to / MS, wait.end))
    }

    #[test]
    fn a_wait_ends_with_the_last_frame_at_the_deadline_or_after_a_long_silence() {
        assert_eq!(end(&[(1000, 10)]), Some((1000, WaitEnd::AllArrived)));
        assert_eq!(
            end(&[(1200, 3), (1300, 11)]),
            Some((1300, WaitEnd::AllArrived))
        );
        let quiet = Some((1500, WaitEnd::Quiet));
        assert_eq!(end(&[(1100, 0), (1499, 0), (1500, 0)]), quiet);
        // Each frame begins the silence anew.
        let moving = [(1400, 1), (1800, 2), (2299, 2), (2300, 2)];
        assert_eq!(end(&moving), Some((2300, WaitEnd::Quiet)));
        let slow: Vec<_> = (0..=5).map(|n| (1000 + 400 * n, n)).collect();
        assert_eq!(end(&slow), Some((3000, WaitEnd::Deadline)));
        assert_eq!(end(&[(1499, 0)]), None);
    }
}
