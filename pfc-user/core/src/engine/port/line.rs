//! A line that carries one frame after the other.

use pfc_ebpf::units::{LineRate, Nanos};

use crate::engine::flow::{Fine, fine, octets_at, whole};

/// What a sender that was late may send at once. More would be more than the line carries in any
/// time that a receiver measures in.
const BURST: Nanos = 1_000_000;

/// When the line is free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    rate: LineRate,
    free: Fine,
}

impl Line {
    /// A free one.
    pub const fn new(rate: LineRate) -> Self {
        Self { rate, free: 0 }
    }

    /// True if a frame may begin.
    pub const fn is_free(&self, now: Nanos) -> bool {
        self.free <= fine(now)
    }

    /// When a frame may begin.
    pub const fn free(&self) -> Nanos {
        whole(self.free)
    }

    /// So many frames leave, of so many octets together, with FCS.
    pub fn carry(&mut self, now: Nanos, frames: u64, octets: u64) {
        let begin = self.free.max(fine(now.saturating_sub(BURST)));
        self.free = begin + octets_at(self.rate, octets + frames * LineRate::OVERHEAD);
    }
}
