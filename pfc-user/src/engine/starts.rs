//! A place of its own for each start of a flow: frames of an earlier start, which may still come
//! out of the DUT, count nowhere then.

use std::collections::BTreeSet;

use super::port::LivePort;
use crate::driver::bpf::flow::{Expected, Place};

/// The places of the ports' maps, dealt out in turn.
pub struct Starts {
    next: u16,
    generation: u16,
    taken: BTreeSet<u16>,
}

impl Starts {
    /// All places are free. The first generation differs from that of a process before.
    pub fn new() -> Self {
        // Nanoseconds since boot: no two processes begin at the same 2^-16 of them for long.
        let now = crate::driver::kernel::clock::now();
        Self {
            next: 0,
            generation: (now ^ now >> 16 ^ now >> 32) as u16,
            taken: BTreeSet::new(),
        }
    }

    /// Gives back the places of starts whose frames count no longer.
    pub fn give_back(&mut self, ports: &[LivePort], before: &[Place]) {
        for before in before {
            for port in ports {
                port.program.places().end(before.flow);
            }
            self.taken.remove(&before.flow);
        }
    }

    /// True if there are places for `starts` starts.
    pub fn has_room(&self, starts: usize) -> bool {
        self.taken.len() + starts <= super::port::PLACES as usize
    }

    /// A place for a start, at which all ports count from zero. There has to be room.
    pub fn place(&mut self, ports: &[LivePort], expected: Expected) -> Place {
        while self.taken.contains(&self.next) {
            self.advance();
        }
        let place = Place {
            flow: self.next,
            generation: self.generation,
        };
        self.advance();
        self.taken.insert(place.flow);
        for port in ports {
            port.program.places().begin(place, expected);
        }
        place
    }

    /// Places are dealt out in turn; whenever they begin again, with another generation.
    fn advance(&mut self) {
        self.next += 1;
        if u32::from(self.next) >= super::port::PLACES {
            self.next = 0;
            self.generation = self.generation.wrapping_add(1);
        }
    }

    /// There are no flows any more.
    pub fn forget(&mut self, ports: &[LivePort]) {
        for flow in std::mem::take(&mut self.taken) {
            for port in ports {
                port.program.places().end(flow);
            }
        }
    }
}
