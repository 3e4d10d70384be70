//! The places at which the program counts the frames of flows.

use std::mem::offset_of;

use pfc_ebpf::abi::flow::{Flow, IN_USE, Received, SHORT};

use crate::driver::bpf::mmap::Words;

const WORD: usize = size_of::<u64>();
const WORDS: usize = size_of::<Flow>() / WORD;

/// Values in the stamps of one start of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Place in the map.
    pub flow: u16,
    /// Number that tells the start from those that had the place before.
    pub generation: u16,
}

/// Known properties of the frames of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Their UDP checksums are right.
    pub verify: bool,
    /// Wrappings that the frames may have, by bits of [`pfc_ebpf::wire::wrap`].
    pub wraps: u64,
    /// They have a short stamp.
    pub short: bool,
}

/// All places, in memory that the program shares.
#[derive(Debug)]
pub struct Places {
    words: Words,
    count: u32,
}

macro_rules! word {
    ($($field:ident).+) => {
        offset_of!(Flow, $($field).+) / WORD
    };
}

impl Places {
    pub(super) const fn new(words: Words, count: u32) -> Self {
        Self { words, count }
    }

    /// Their number.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Begins to count at a place, from zero.
    pub fn begin(&self, place: Place, expected: Expected) {
        let at = usize::from(place.flow) * WORDS;
        self.end(place.flow);
        self.words.zero(at + 1..at + WORDS);
        self.words.store(at + word!(verify), expected.verify.into());
        self.words.store(at + word!(wraps), expected.wraps);
        // Last: what the program sees as in use is whole.
        let form = if expected.short { SHORT } else { 0 };
        let generation = IN_USE | form | u64::from(place.generation);
        self.words.store(at + word!(generation), generation);
    }

    /// Stops counting at a place; what was counted stays.
    pub fn end(&self, flow: u16) {
        let at = usize::from(flow) * WORDS;
        self.words.store(at + word!(generation), 0);
    }

    /// Returns the counts of a place.
    pub fn read(&self, flow: u16) -> Received {
        // The program writes the number of frames last.
        const { assert!(offset_of!(Received, frames) == 0) };
        self.words
            .value(usize::from(flow) * WORDS + word!(received))
    }
}
