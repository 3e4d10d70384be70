//! From the way to the DUT and its keys to repetitions.

use ib_mad::mad::MKey;
use ib_mad::smp::Route;

use crate::plan::Nanos;
use crate::plan::mad::{MadPlan, MadStimulus};

/// Way to the DUT, and the keys that it has and gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortContext {
    /// Way to the DUT.
    pub route: Route,
    /// Key that the DUT has before the run; 0 for none.
    pub m_key_current: MKey,
    /// M_KEY_DUT.
    pub m_key_dut: MKey,
    /// M_KEY_OTHER.
    pub m_key_other: MKey,
    /// Bits of M_KEY_DUT that are tried one at a time.
    pub key_bits: KeyBits,
    /// The least time to wait for an answer.
    pub timeout: Nanos,
}

/// A choice of bits of M_KEY_DUT, each of which differs in one wrong key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyBits {
    /// All 64, at protect bits 1, 2 and 3 each.
    All,
    /// Every eighth bit: another eight at each of the protect bits, and in eight turns all.
    Turn(u8),
}

impl KeyBits {
    /// The bits at these protect bits.
    pub(super) fn at(self, protect_bits: u8) -> Vec<u8> {
        match (self, protect_bits) {
            (_, 0) => Vec::new(),
            (Self::All, _) => (0..64).collect(),
            (Self::Turn(turn), bits) => {
                let first = turn.wrapping_add(bits) % 8;
                (0..8).map(|nth| first + 8 * nth).collect()
            }
        }
    }
}

impl PortContext {
    /// The repetition of that name.
    pub(super) fn repetition(&self, name: impl Into<String>, stimulus: MadStimulus) -> MadPlan {
        MadPlan {
            name: name.into(),
            stimulus,
            key_bits: Vec::new(),
            route: self.route.to_string(),
            m_key_current: self.m_key_current.0,
            m_key_dut: self.m_key_dut.0,
            m_key_other: self.m_key_other.0,
            timeout: self.timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn eight_turns_try_all_bits_at_each_of_the_protect_bits() {
        for protect_bits in 1..=3 {
            let bits = (0..8).flat_map(|turn| KeyBits::Turn(turn).at(protect_bits));
            let tried: Vec<u8> = bits.collect();
            assert_eq!(tried.len(), 64);
            assert_eq!(BTreeSet::from_iter(tried), (0..64).collect());
            assert_eq!(KeyBits::All.at(protect_bits).len(), 64);
        }
        // Bits of one turn differ between protect bits, so that a trap shows which key has arrived.
        let bits = (1..=3).flat_map(|bits| KeyBits::Turn(7).at(bits));
        assert_eq!(BTreeSet::from_iter(bits).len(), 24);
    }
}
