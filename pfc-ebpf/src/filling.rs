//! The octets of a test frame behind its stamp: a function of their place, so that a receiver can
//! compare each. They do not depend on the flow or the number of the frame, for a sender in the
//! kernel writes headers and stamp anew for each frame, and nothing else.
//!
//! In eights they are the multiples of an odd number, little-endian. No two of the eights are
//! equal, nor are two words at equal places in them, so that octets that change places show.

use crate::wire::Octets;

/// Octets of a frame that can be compared with the filling.
pub trait Filled: Octets {
    /// True if `length` octets from `offset` are there and are the filling.
    fn is_filling(&self, offset: usize, length: usize) -> bool;
}

/// Octets that are compared at most: above every frame that Ethernet carries; the verifier wants a
/// bound.
pub const MAX: usize = crate::wire::MAX_SUM;
/// Odd, with octets that differ.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The eight octets of that number, counted from 0 at the end of the stamp, as a little-endian
/// number.
#[inline(always)]
pub const fn eight(number: u64) -> u64 {
    (number + 1).wrapping_mul(STEP)
}

/// The octet `at` octets behind the stamp.
pub const fn octet(at: usize) -> u8 {
    eight(at as u64 / 8).to_le_bytes()[at % 8]
}

impl Filled for [u8] {
    fn is_filling(&self, offset: usize, length: usize) -> bool {
        let octets = self.get(offset..).and_then(|rest| rest.get(..length));
        octets.is_some_and(|octets| {
            let mut octets = octets.iter().enumerate();
            octets.all(|(at, found)| *found == octet(at))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_words_at_equal_places_are_alike() {
        let eights: Vec<_> = (0..MAX as u64 / 8).map(eight).collect();
        for word in 0..4 {
            let mut words: Vec<_> = eights.iter().map(|eight| eight >> (16 * word)).collect();
            words.sort_unstable();
            words.dedup();
            assert_eq!(words.len(), eights.len());
        }
    }

    #[test]
    fn neighbouring_words_differ() {
        for at in 0..MAX - 4 {
            assert_ne!([octet(at), octet(at + 1)], [octet(at + 2), octet(at + 3)]);
        }
    }

    #[test]
    fn each_octet_that_differs_is_noticed() {
        let mut octets: Vec<_> = (0..1000).map(octet).collect();
        let is_whole = |octets: &[u8]| octets.is_filling(0, octets.len());
        assert!(is_whole(&octets) && is_whole(&octets[..999]) && is_whole(&[]));
        assert!(!octets[..].is_filling(0, 1001) && !octets[..].is_filling(1001, 0));
        for at in 0..octets.len() {
            octets[at] ^= 0x10;
            assert!(!is_whole(&octets), "octet {at}");
            octets[at] ^= 0x10;
        }
        assert!(!is_whole(&octets[1..]));
    }
}
