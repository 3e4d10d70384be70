//! Stalls of processes, and spans for which a list had no room.

use pfc_ebpf::abi::generate;
use pfc_ebpf::units::Nanos;
use serde::{Deserialize, Serialize};

/// Spans for which a list had no room, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The number.
    pub count: u64,
    /// Their total length.
    pub total: Nanos,
    /// Begin of the first.
    pub from: Nanos,
    /// End of the last.
    pub to: Nanos,
}

impl LeftOut {
    /// True if no span was left out.
    pub fn is_none(&self) -> bool {
        self.count == 0
    }

    /// Adds a span.
    pub fn add(&mut self, from: Nanos, to: Nanos) {
        self.merge(Self {
            count: 1,
            total: to.saturating_sub(from),
            from,
            to,
        });
    }

    /// The last span added goes on from where it ended.
    pub fn prolong(&mut self, from: Nanos, to: Nanos) {
        self.total = self.total.saturating_add(to.saturating_sub(from));
        self.to = self.to.max(to);
    }

    /// Adds others.
    pub fn merge(&mut self, other: Self) {
        if self.is_none() {
            *self = other;
        } else if !other.is_none() {
            self.count += other.count;
            self.total = self.total.saturating_add(other.total);
            self.from = self.from.min(other.from);
            self.to = self.to.max(other.to);
        }
    }

    /// True if one of them may overlap the time from `from` to `to`.
    pub fn may_overlap(&self, from: Nanos, to: Nanos) -> bool {
        !self.is_none() && self.from < to && self.to > from
    }
}

/// A span in which a process of the tester or the simulated DUT did not run though it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// Begin.
    pub from: Nanos,
    /// End.
    pub to: Nanos,
}

impl Stall {
    /// Lateness above it is a stall, for the program in the kernel as for processes.
    pub const ABOVE: Nanos = generate::STALL;

    /// Its length; 0 where it ends before it begins.
    pub fn length(&self) -> Nanos {
        self.to.saturating_sub(self.from)
    }
}
