//! Wire formats: one protocol a file, checked views that never panic.
//!
//! Everything is read through [`Octets`], so that one parser serves a slice on the host and a packet in the kernel, where
//! the verifier wants to see each access checked against the end of the packet.

pub mod ethernet;
pub mod ip;
pub mod mac_control;
pub mod roce;
pub mod udp;

/// The octets of a frame, without FCS.
pub trait Octets {
    /// How many there are.
    fn length(&self) -> usize;

    /// `N` octets from `offset`; `None` where the frame ends before them.
    fn get<const N: usize>(&self, offset: usize) -> Option<[u8; N]>;

    /// The ones-complement sum (RFC 1071) of `length` octets from `offset`, as 16-bit words in network order, an odd last
    /// octet padded with zero. `None` where the frame ends before them or there are more than [`MAX_SUM`].
    fn sum(&self, offset: usize, length: usize) -> Option<u16>;

    /// The 16-bit number in network order at `offset`.
    #[inline(always)]
    fn word(&self, offset: usize) -> Option<u16> {
        self.get(offset).map(u16::from_be_bytes)
    }
}

/// Octets that one sum covers at most: above every frame that Ethernet carries; the verifier wants a bound.
pub const MAX_SUM: usize = 16 * 1024;

/// Folds a sum of 16-bit words to one word, carries added in.
#[inline(always)]
pub const fn fold(mut sum: u32) -> u16 {
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

impl Octets for [u8] {
    fn length(&self) -> usize {
        self.len()
    }

    fn get<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.get(offset..)?.first_chunk().copied()
    }

    fn sum(&self, offset: usize, length: usize) -> Option<u16> {
        if length > MAX_SUM {
            return None;
        }
        let octets = self.get(offset..)?.get(..length)?;
        let word = |pair: &[u8]| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
        Some(fold(octets.chunks(2).map(|pair| word(pair) as u32).sum()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_of_the_example_of_rfc_1071() {
        let octets: &[u8] = &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(octets.sum(0, 8), Some(0xddf2));
        assert_eq!(octets.sum(2, 3), Some(fold(0xf203 + 0xf400)));
        assert_eq!(octets.sum(1, 8), None);
        assert_eq!(octets.sum(9, 0), None);
    }

    #[test]
    fn octets_beyond_the_end_are_not_there() {
        let octets: &[u8] = &[1, 2, 3];
        assert_eq!(octets.word(1), Some(0x0203));
        assert_eq!(octets.word(2), None);
        assert_eq!(octets.word(usize::MAX), None);
    }
}
