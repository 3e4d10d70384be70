//! Gaps of a storm: a class whose pause ran out before the next pause frame of the flow left. No
//! clock is asked.

use pfc_ebpf::abi::flow::{CLASSES, WHOLE_LINK};
use pfc_ebpf::units::{LineRate, Nanos, Quanta};
use pfc_ebpf::wire::mac_control::MacControl;

use crate::evidence::pfc::Departure;
use crate::pacing::storm::silence;

/// Gaps so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Frames that left after the pause of the one before had ended, for one class at least.
    pub count: u64,
    /// The longest time from such a frame to the one before.
    pub longest: Nanos,
}

/// A flow of pause frames.
#[derive(Clone, Debug)]
pub struct Storm {
    line_rate: LineRate,
    classes: [Option<Paused>; CLASSES],
    gaps: Gaps,
}

/// A class that the last frame which addressed it pauses.
#[derive(Clone, Copy, Debug)]
struct Paused {
    since: Nanos,
    time: Nanos,
}

impl Storm {
    /// Makes the storm of a flow that has sent nothing yet, on a line of `line_rate`.
    pub const fn new(line_rate: LineRate) -> Self {
        Self {
            line_rate,
            classes: [None; CLASSES],
            gaps: Gaps {
                count: 0,
                longest: 0,
            },
        }
    }

    /// The gaps so far.
    pub const fn gaps(&self) -> Gaps {
        self.gaps
    }

    /// Forgets all pauses: an order stopped or held the flow, so that the silence which follows is
    /// no gap.
    pub const fn interrupt(&mut self) {
        self.classes = [None; CLASSES];
    }

    /// Accounts a frame that left. Silence that may have been a gap counts as one.
    pub fn left(&mut self, frame: &[u8], departure: Departure) {
        let Ok(control) = MacControl::parse(frame) else {
            return;
        };
        let mut longest = 0;
        match control {
            MacControl::Pause { quanta } => longest = self.pause(WHOLE_LINK, quanta, departure),
            MacControl::Pfc { vector, quanta } => {
                for (class, quanta) in quanta.into_iter().enumerate() {
                    if vector & 1 << class != 0 {
                        longest = longest.max(self.pause(class, quanta, departure));
                    }
                }
            }
        }
        self.gaps.count += u64::from(longest > 0);
        self.gaps.longest = self.gaps.longest.max(longest);
    }

    /// Returns the gap of a class before this pause of it; 0 if there was none. A pause of no time
    /// ends the storm of its class on purpose.
    fn pause(&mut self, class: usize, quanta: u16, departure: Departure) -> Nanos {
        let paused = (quanta > 0).then(|| Paused {
            since: departure.before,
            time: Quanta(quanta).nanos(self.line_rate),
        });
        let Some(before) = std::mem::replace(&mut self.classes[class], paused) else {
            return 0;
        };
        let silent = silence(before.since, departure).length();
        if paused.is_some() && silent > before.time {
            silent
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pfc_ebpf::units::Priority;

    /// At 1 Gbit/s a quantum lasts 512 ns.
    const QUANTUM: Nanos = 512;

    fn storm() -> Storm {
        Storm::new(LineRate::from_bits_per_second(1_000_000_000).unwrap())
    }

    fn pfc(classes: &[u8], quanta: u16) -> Vec<u8> {
        let classes = classes.iter().map(|class| Priority::new(*class).unwrap());
        MacControl::pfc(classes, Quanta(quanta)).emit([2; 6]).into()
    }

    fn left(storm: &mut Storm, frame: &[u8], before: Nanos, after: Nanos) {
        storm.left(frame, Departure { before, after });
    }

    /// The gaps of these frames, each of which left at its time.
    fn gaps(frames: &[(Nanos, Vec<u8>)]) -> (u64, Nanos) {
        let mut storm = storm();
        for (at, frame) in frames {
            left(&mut storm, frame, *at, *at);
        }
        (storm.gaps().count, storm.gaps().longest)
    }

    #[test]
    fn a_frame_within_the_pause_of_the_one_before_leaves_no_gap() {
        let at = |times: &[Nanos]| -> Vec<_> {
            times.iter().map(|time| (*time, pfc(&[3], 10))).collect()
        };
        let pause = 10 * QUANTUM;
        assert_eq!(gaps(&at(&[0])), (0, 0));
        assert_eq!(gaps(&at(&[0, pause, 2 * pause])), (0, 0));
        assert_eq!(gaps(&at(&[0, pause + 1])), (1, pause + 1));
        let times = [0, 9_000, 10_000, 15_200, 20_000];
        assert_eq!(gaps(&at(&times)), (2, 9_000));
    }

    #[test]
    fn each_class_has_its_own_pause_and_its_end_on_purpose_is_no_gap() {
        let both = |at| (at, pfc(&[3, 4], 10));
        let one = |at| (at, pfc(&[3], 10));
        // Class 4 runs out at 5120.
        assert_eq!(gaps(&[both(0), one(5000), both(9000)]), (1, 9000));
        assert_eq!(gaps(&[both(0), one(5000), one(9000)]), (0, 0));
        let end = (5000, pfc(&[3, 4], 0));
        assert_eq!(gaps(&[both(0), end, both(90_000)]), (0, 0));
        let pause = |at| (at, MacControl::Pause { quanta: 10 }.emit([2; 6]).to_vec());
        assert_eq!(gaps(&[pause(0), one(5200), pause(5300)]), (1, 5300));
    }

    #[test]
    fn a_gap_is_what_may_have_been_one_and_none_is_where_an_order_was() {
        let mut storm = storm();
        left(&mut storm, &pfc(&[0], 10), 0, 200);
        left(&mut storm, &pfc(&[0], 10), 5000, 5200);
        assert_eq!((storm.gaps().count, storm.gaps().longest), (1, 5200));
        storm.interrupt();
        left(&mut storm, &pfc(&[0], 10), 90_000, 90_100);
        left(&mut storm, &[0xff; 60], 99_000, 99_100);
        assert_eq!(storm.gaps().count, 1);
    }
}
