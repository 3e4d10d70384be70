//! Frames that wait to leave, by priority.

use std::collections::VecDeque;

use pfc_ebpf::units::Priority;

use super::config::{Scheduler, Weights};
use super::pause::Pauses;
use super::port::Started;
use crate::plan::Nanos;

/// First in, first out.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// Each with the port at which it came in.
    frames: VecDeque<(usize, Vec<u8>)>,
    octets: u64,
    /// Frames that may leave though the priority is paused; 0 in a switch without faults.
    leaks: u64,
}

/// Octets that a turn of [`Scheduler::Drr`] is worth, by weight: no less than the longest frame.
const QUANTUM: u64 = 4096;

/// Eight queues.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    queues: [Queue; Priority::COUNT],
    scheduler: Scheduler,
    weights: Weights,
    /// Priority with which the next turn begins.
    turn: usize,
    /// Octets that the priority at `turn` may still send in it.
    credit: u64,
}

impl Queue {
    /// Time at which its first frame may start, `now` or later.
    fn ready_at(&self, priority: Priority, pauses: &Pauses, now: Nanos) -> Option<Nanos> {
        match (self.frames.is_empty(), self.leaks) {
            (true, _) => None,
            (false, 0) => Some(pauses.resumes(priority, now)),
            (false, _) => Some(now),
        }
    }
}

impl Queues {
    /// Empty queues, served in that order.
    pub fn new(scheduler: Scheduler, weights: Weights) -> Self {
        Self {
            scheduler,
            weights,
            ..Self::default()
        }
    }

    /// Octets that `priority` holds.
    pub fn octets(&self, priority: Priority) -> u64 {
        self.queues[priority.index()].octets
    }

    /// Appends a frame that came in at port `from`.
    pub fn push(&mut self, priority: Priority, from: usize, frame: Vec<u8>) {
        let queue = &mut self.queues[priority.index()];
        queue.octets += frame.len() as u64;
        queue.frames.push_back((from, frame));
    }

    /// Lets so many more frames of `priority` leave despite a pause.
    pub fn leak(&mut self, priority: Priority, frames: u64) {
        self.queues[priority.index()].leaks += frames;
    }

    /// Time at which the next frame may start, `now` or later.
    pub fn ready_at(&self, pauses: &Pauses, now: Nanos) -> Option<Nanos> {
        Priority::all()
            .filter_map(|priority| self.queues[priority.index()].ready_at(priority, pauses, now))
            .min()
    }

    /// Takes the frame whose turn it is out of those that may start at `now`.
    pub fn pop(&mut self, pauses: &Pauses, now: Nanos) -> Option<(Started, Vec<u8>)> {
        let priority = self.next(pauses, now)?;
        let queue = &mut self.queues[priority.index()];
        queue.leaks = if pauses.is_paused(priority, now) {
            queue.leaks - 1
        } else {
            0
        };
        let (from, frame) = queue.frames.pop_front()?;
        let octets = frame.len() as u64;
        queue.octets -= octets;
        let started = Started {
            priority,
            from,
            octets,
        };
        Some((started, frame))
    }

    /// The priority whose turn it is.
    fn next(&mut self, pauses: &Pauses, now: Nanos) -> Option<Priority> {
        let ready = |priority: &Priority| {
            self.queues[priority.index()].ready_at(*priority, pauses, now) == Some(now)
        };
        let turns = self.turn..self.turn + Priority::COUNT;
        let mut in_turn = turns.map(|turn| Priority::from_low_bits(turn as u8));
        let next = match self.scheduler {
            Scheduler::Strict => Priority::all().rfind(ready),
            Scheduler::RoundRobin | Scheduler::Drr => in_turn.find(ready),
        }?;
        match self.scheduler {
            Scheduler::Strict => {}
            Scheduler::RoundRobin => self.turn = next.index() + 1,
            Scheduler::Drr => self.take_credit(next),
        }
        Some(next)
    }

    /// Pays for the first frame of `priority`. Its turn ends with its last frame, or when the next
    /// one is longer than the credit left.
    fn take_credit(&mut self, priority: Priority) {
        if priority.index() != self.turn % Priority::COUNT || self.credit == 0 {
            self.turn = priority.index();
            self.credit = QUANTUM * self.weights.of(priority);
        }
        let mut lengths = self.queues[priority.index()]
            .frames
            .iter()
            .map(|(_, frame)| frame.len());
        let first = lengths.next().unwrap_or(0) as u64;
        self.credit = self.credit.saturating_sub(first);
        if lengths.next().is_none_or(|next| next as u64 > self.credit) {
            self.turn += 1;
            self.credit = 0;
        }
    }
}
