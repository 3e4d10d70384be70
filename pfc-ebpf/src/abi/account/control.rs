//! Counters, states and records of PAUSE and PFC.

/// PAUSE/PFC of one class: a priority of PFC, or all of 802.3x.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ClassCounters {
    /// Frames that address the class with time > 0.
    pub xoff: u64,
    /// Frames that address the class with time 0.
    pub xon: u64,
    /// The last one.
    pub last: LastControl,
}

/// The last PAUSE/PFC frame that addressed a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct LastControl {
    /// Its time for the class, in quanta.
    pub quanta: u64,
    /// Its arrival, CLOCK_MONOTONIC nanoseconds; 0: there was none.
    pub at: u64,
}

/// PFC frames by the classes that they address: one or two counts a frame, of which follow those of
/// each class. They are only ever added up: a copy made while a frame is counted lacks at most that
/// frame, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PfcCounters {
    /// All frames, by the vector of the classes that they address with time > 0.
    pub by_xoff: [u64; 256],
    /// Frames that address a class with time 0, by the vector of such classes.
    pub by_xon: [u64; 256],
    /// Frames whose class-enable vector (its low octet) is zero.
    pub empty: u64,
    /// By priority.
    pub last: [LastControl; 8],
}

counts!(PfcCounters);

impl PfcCounters {
    /// All frames, whatever their vector.
    pub fn frames(&self) -> u64 {
        self.by_xoff.iter().sum()
    }

    /// Counters of each priority.
    pub fn classes(&self) -> [ClassCounters; 8] {
        let (xoff, xon) = (addressed(&self.by_xoff), addressed(&self.by_xon));
        core::array::from_fn(|priority| ClassCounters {
            xoff: xoff[priority],
            xon: xon[priority],
            last: self.last[priority],
        })
    }
}

/// Sums frames counted by vector into those that address each priority.
fn addressed(by_vector: &[u64; 256]) -> [u64; 8] {
    let mut frames = [0; 8];
    for (vector, count) in by_vector
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
    {
        for (priority, frames) in frames.iter_mut().enumerate() {
            *frames += count * (vector as u64 >> priority & 1);
        }
    }
    frames
}

impl ClassCounters {
    /// Frames that address the class.
    pub const fn frames(&self) -> u64 {
        self.xoff + self.xon
    }
}

/// Pause state of a class after its last PFC (or PAUSE) frame; written by the program, read by the
/// sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PauseState {
    /// The class is paused until then, CLOCK_MONOTONIC nanoseconds; at or before now: not paused.
    pub until: u64,
    /// Begin of the last unbroken pause: changes if and only if an XOFF (time > 0) comes to a
    /// class that is not paused. An XON to such a class changes nothing.
    pub since: u64,
}

/// A well-formed PAUSE or PFC frame that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Control {
    /// CLOCK_MONOTONIC nanoseconds, never 0; written last, so that the record is whole where this
    /// is not 0.
    pub time: u64,
    /// Times of priorities 0 to 7, each 16 bits in network order as in the frame, in the memory's
    /// order of octets; of PAUSE the first.
    pub quanta: [u64; 2],
    /// 0x0001 PAUSE (vector 0) or 0x0101 PFC.
    pub opcode: u16,
    /// Class-enable vector of PFC as it stands in the frame.
    pub vector: u16,
    /// Padding.
    pub _pad: u32,
}

impl Control {
    /// Times of priorities 0 to 7 in quanta; of PAUSE the first.
    pub fn quanta(&self) -> [u16; 8] {
        let octets = self.quanta.map(u64::to_ne_bytes);
        core::array::from_fn(|index| {
            u16::from_be_bytes([
                octets[index / 4][index % 4 * 2],
                octets[index / 4][index % 4 * 2 + 1],
            ])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two counts of a frame, in the order in which the program makes them.
    fn counts(counters: &mut PfcCounters, xoff: usize, xon: usize) -> [&mut u64; 2] {
        [&mut counters.by_xoff[xoff], &mut counters.by_xon[xon]]
    }

    #[test]
    fn a_frame_of_which_a_copy_has_a_part_changes_no_count_of_the_other_kind() {
        for part in 0..2 {
            let mut copy = PfcCounters::ZERO;
            // Priorities 0 and 3 are paused; of the frame that lets 3 and 4 go and pauses 7 the
            // copy has one count.
            counts(&mut copy, 0b1001, 0)
                .into_iter()
                .take(1)
                .for_each(|count| *count += 1);
            *counts(&mut copy, 0b1000_0000, 0b1_1000)
                .into_iter()
                .nth(part)
                .unwrap() += 1;
            let classes = copy.classes();
            assert_eq!(
                [0, 3, 4].map(|priority| classes[priority].xoff),
                [1, 1, 0],
                "part {part}"
            );
            assert!(
                classes[3].xon <= 1 && classes[7].xoff <= 1 && classes[7].xon == 0,
                "part {part}: {classes:?}"
            );
        }
    }
}
