//! Filler behind the headers: octets of a pattern, and their sums.

use std::sync::{Arc, LazyLock};

use pfc_ebpf::wire::fold;

use crate::engine::packet::Payload;

/// Longest frame that is made, without FCS.
const LONGEST: usize = 16 * 1024;

/// Filler of flows that ask for no other payload, made once.
static COUNTING: LazyLock<Arc<Filler>> = LazyLock::new(|| Arc::new(Filler::new(&Payload::Up)));

/// As many octets of a payload as a frame can have.
#[derive(Debug)]
pub struct Filler {
    octets: Vec<u8>,
    /// Ones-complement sums of the first octets, by their number.
    sums: Vec<u16>,
}

impl Filler {
    /// Returns the filler of a payload.
    pub fn of(payload: &Payload) -> Arc<Self> {
        match payload {
            Payload::Up => Arc::clone(&COUNTING),
            _ => Arc::new(Self::new(payload)),
        }
    }

    fn new(payload: &Payload) -> Self {
        let octets: Vec<u8> = (0..LONGEST).map(|place| payload.octet(place)).collect();
        let mut sum = 0;
        let mut sums = vec![0];
        for (place, octet) in octets.iter().enumerate() {
            let high = if place % 2 == 0 { 8 } else { 0 };
            sum = fold(u32::from(sum) + (u32::from(*octet) << high));
            sums.push(sum);
        }
        Self { octets, sums }
    }

    /// Returns the first octets.
    pub fn first(&self, octets: usize) -> &[u8] {
        &self.octets[..octets]
    }

    /// Returns the ones-complement sum of the first octets.
    pub fn sum(&self, octets: usize) -> u16 {
        self.sums[octets]
    }
}

impl Payload {
    /// The octet at that place behind the headers.
    fn octet(&self, place: usize) -> u8 {
        // The high octet of a word comes first.
        let of_word = |word: u16| word.to_be_bytes()[place % 2];
        let word = (place / 2) as u16;
        match self {
            Self::Up => place as u8,
            Self::Down => !(place as u8),
            Self::WordsUp => of_word(word),
            Self::WordsDown => of_word(!word),
            Self::Pattern { octets, repeat } => {
                let place = if *repeat {
                    place % octets.len().max(1)
                } else {
                    place
                };
                octets.get(place).copied().unwrap_or(0)
            }
        }
    }
}
