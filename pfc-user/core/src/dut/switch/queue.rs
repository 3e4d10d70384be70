//! Frames that wait to leave, by priority.

use std::collections::VecDeque;

use pfc_ebpf::units::Priority;

use super::pause::Pauses;
use crate::plan::Nanos;

/// First in, first out.
#[derive(Clone, Debug, Default)]
struct Queue {
    frames: VecDeque<Vec<u8>>,
    octets: u64,
    /// Frames that may leave though the priority is paused; 0 in a switch without faults.
    leaks: u64,
}

/// Eight queues, served in turn, so that none starves.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    queues: [Queue; Priority::COUNT],
    /// Where the next turn begins.
    turn: usize,
}

impl Queue {
    /// When its first frame may start, `now` or later.
    fn ready_at(&self, priority: Priority, pauses: &Pauses, now: Nanos) -> Option<Nanos> {
        match (self.frames.is_empty(), self.leaks) {
            (true, _) => None,
            (false, 0) => Some(pauses.resumes(priority, now)),
            (false, _) => Some(now),
        }
    }
}

impl Queues {
    /// Octets that `priority` holds.
    pub fn octets(&self, priority: Priority) -> u64 {
        self.queues[priority.index()].octets
    }

    /// Appends a frame.
    pub fn push(&mut self, priority: Priority, frame: Vec<u8>) {
        let queue = &mut self.queues[priority.index()];
        queue.octets += frame.len() as u64;
        queue.frames.push_back(frame);
    }

    /// Lets one frame of `priority` leave despite a pause.
    pub fn leak(&mut self, priority: Priority) {
        self.queues[priority.index()].leaks += 1;
    }

    /// When the next frame may start, `now` or later.
    pub fn ready_at(&self, pauses: &Pauses, now: Nanos) -> Option<Nanos> {
        Priority::all()
            .filter_map(|priority| self.queues[priority.index()].ready_at(priority, pauses, now))
            .min()
    }

    /// Takes the frame whose turn it is out of those that may start at `now`.
    pub fn pop(&mut self, pauses: &Pauses, now: Nanos) -> Option<(Priority, Vec<u8>)> {
        let priority = (self.turn..self.turn + Priority::COUNT)
            .map(|turn| Priority::from_low_bits(turn as u8))
            .find(|priority| {
                self.queues[priority.index()].ready_at(*priority, pauses, now) == Some(now)
            })?;
        self.turn = priority.index() + 1;
        let queue = &mut self.queues[priority.index()];
        queue.leaks = if pauses.is_paused(priority, now) {
            queue.leaks - 1
        } else {
            0
        };
        let frame = queue.frames.pop_front()?;
        queue.octets -= frame.len() as u64;
        Some((priority, frame))
    }
}
