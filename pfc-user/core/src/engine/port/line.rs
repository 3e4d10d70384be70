//! A line that carries one frame after the other.

use pfc_ebpf::units::{LineRate, MILLISECOND, Nanos};

use crate::engine::flow::{Fine, fine, octets_at, whole};

/// Longest backlog, in line time, that a late sender may send at once. A longer one would exceed
/// what the line carries in any time that a receiver measures in.
pub const BURST: Nanos = MILLISECOND;

/// Time at which the line is free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    rate: LineRate,
    free: Fine,
}

impl Line {
    /// Makes a free line.
    pub const fn new(rate: LineRate) -> Self {
        Self { rate, free: 0 }
    }

    /// Returns true if a frame may begin.
    pub const fn is_free(&self, now: Nanos) -> bool {
        self.free <= fine(now)
    }

    /// Returns the time at which a frame may begin.
    pub const fn free(&self) -> Nanos {
        whole(self.free)
    }

    /// Accounts `frames` that leave now, with `octets` in total, FCS included.
    pub fn carry(&mut self, now: Nanos, frames: u64, octets: u64) {
        let begin = self.free.max(fine(now.saturating_sub(BURST)));
        self.free = begin + octets_at(self.rate, octets + frames * LineRate::OVERHEAD);
    }
}
