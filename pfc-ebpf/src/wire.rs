//! Wire formats: one protocol a file, checked views that never panic.
//!
//! Everything is read through [`Octets`], so that one parser serves a slice on the host and a
//! packet in the kernel, where the verifier wants to see each access checked against the end of the
//! packet.

pub mod ethernet;
pub mod ip;
pub mod mac_control;
mod malformed;
pub mod neighbour;
pub mod roce;
pub mod segment;
pub mod udp;
pub mod wrap;

pub use malformed::Malformed;

/// The octets of a frame, without FCS.
pub trait Octets {
    /// `N` of them that are there.
    type Part<const N: usize>: Part;

    /// Number of octets.
    fn length(&self) -> usize;

    /// The `N` octets from `offset`, to be read by field; `None` where the frame ends before them.
    fn part<const N: usize>(&self, offset: usize) -> Option<Self::Part<N>>;

    /// `N` octets from `offset`; `None` where the frame ends before them.
    fn get<const N: usize>(&self, offset: usize) -> Option<[u8; N]>;

    /// The ones-complement sum (RFC 1071) of `length` octets from `offset`, as 16-bit words in
    /// network order, an odd last octet padded with zero. `None` where the frame ends before
    /// them or there are more than [`MAX_SUM`].
    fn sum(&self, offset: usize, length: usize) -> Option<u16>;

    /// True for what offloads merged from several frames. Above 65,535 octets the total length of
    /// its IPv4 header is 0, and all that follows belongs to it (BIG TCP, Linux 6.3).
    #[inline(always)]
    fn is_merged(&self) -> bool {
        false
    }

    /// The 16-bit number in network order at `offset`.
    #[inline(always)]
    fn word(&self, offset: usize) -> Option<u16> {
        self.part::<2>(offset).map(|part| part.word::<0>())
    }
}

/// Octets that are there, whose presence was checked once for all: `AT` beyond them does not
/// compile. Numbers stand in network order.
pub trait Part: Copy {
    /// `N` of them.
    type Inner<const N: usize>: Part;

    /// The `N` octets from `AT`.
    fn inner<const AT: usize, const N: usize>(self) -> Self::Inner<N>;
    /// The octet at `AT`.
    fn octet<const AT: usize>(self) -> u8;
    /// The 16-bit number at `AT`.
    fn word<const AT: usize>(self) -> u16;
    /// The 32-bit number at `AT`.
    fn long<const AT: usize>(self) -> u32;
    /// The 64-bit number at `AT`.
    fn quad<const AT: usize>(self) -> u64;

    /// The 48-bit number in the first six of the eight octets at `AT`.
    #[inline(always)]
    fn high_48<const AT: usize>(self) -> u64 {
        self.quad::<AT>() >> 16
    }

    /// The 32-bit word at `AT` as the machine reads it: sums of such words say the same in either
    /// order (RFC 1071, 2B).
    #[inline(always)]
    fn summand<const AT: usize>(self) -> u64 {
        u32::from_be(self.long::<AT>()) as u64
    }
}

impl<const N: usize> Part for [u8; N] {
    type Inner<const M: usize> = [u8; M];

    #[inline(always)]
    fn inner<const AT: usize, const M: usize>(self) -> [u8; M] {
        const { assert!(AT + M <= N) };
        core::array::from_fn(|index| self[AT + index])
    }

    #[inline(always)]
    fn octet<const AT: usize>(self) -> u8 {
        const { assert!(AT < N) };
        self[AT]
    }

    #[inline(always)]
    fn word<const AT: usize>(self) -> u16 {
        const { assert!(AT + 2 <= N) };
        u16::from_be_bytes([self[AT], self[AT + 1]])
    }

    #[inline(always)]
    fn long<const AT: usize>(self) -> u32 {
        const { assert!(AT + 4 <= N) };
        u32::from_be_bytes([self[AT], self[AT + 1], self[AT + 2], self[AT + 3]])
    }

    #[inline(always)]
    fn quad<const AT: usize>(self) -> u64 {
        const { assert!(AT + 8 <= N) };
        let high = u32::from_be_bytes([self[AT], self[AT + 1], self[AT + 2], self[AT + 3]]);
        let low = u32::from_be_bytes([self[AT + 4], self[AT + 5], self[AT + 6], self[AT + 7]]);
        (high as u64) << 32 | low as u64
    }
}

/// Octets that one sum covers at most: above every frame that Ethernet carries; the verifier wants
/// a bound.
pub const MAX_SUM: usize = 16 * 1024;

/// True if a sum of 32-bit words, in whichever order they were read, is that of octets with a right
/// checksum: folded it is 0xffff, so it is a multiple of that and not 0. Multiples of a number, and
/// nothing else, are small when they are multiplied by its inverse modulo 2^64, which takes a third
/// of the instructions of folding.
#[inline(always)]
pub const fn is_right(sum: u64) -> bool {
    const INVERSE: u64 = (u64::MAX / 0xffff).wrapping_neg();
    const { assert!(INVERSE.wrapping_mul(0xffff) == 1) };
    sum != 0 && sum.wrapping_mul(INVERSE) <= u64::MAX / 0xffff
}

/// Folds a sum of 16-bit words to one word, carries added in.
#[inline(always)]
pub const fn fold(mut sum: u32) -> u16 {
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

/// The sum of at most 128 KiB as 16-bit words in network order, an odd last octet padded with zero.
pub fn sum_of_words(octets: &[u8]) -> u32 {
    let (words, odd) = octets.as_chunks();
    let words = words.iter().map(|word| u16::from_be_bytes(*word) as u32);
    words.sum::<u32>() + odd.first().map_or(0, |octet| (*octet as u32) << 8)
}

impl Octets for [u8] {
    type Part<const N: usize> = [u8; N];

    fn part<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        Octets::get(self, offset)
    }

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
        Some(fold(sum_of_words(self.get(offset..)?.get(..length)?)))
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
    fn every_way_to_sum_says_the_same() {
        // All pairs of words round the carries.
        let edges = [
            0u32,
            1,
            2,
            0x7fff,
            0x8000,
            0xfffe,
            0xffff,
            0x1_0000,
            0x7fff_8000,
            0xffff_0000,
            0xffff_fffe,
            0xffff_ffff,
        ];
        for a in edges {
            for b in edges {
                let octets = [a.to_be_bytes(), b.to_be_bytes()].concat();
                let part: [u8; 8] = Octets::get(&octets[..], 0).unwrap();
                let right = octets[..].sum(0, 8) == Some(0xffff);
                assert_eq!(
                    is_right(part.summand::<0>() + part.summand::<4>()),
                    right,
                    "{octets:02x?}"
                );
            }
        }
        // Large sums.
        assert!(is_right((1 << 14) * u64::from(u32::MAX)) && is_right(u64::MAX));
        assert!(
            !is_right((1 << 14) * u64::from(u32::MAX) - 1)
                && !is_right(u64::MAX - 1)
                && !is_right(0)
        );
    }

    #[test]
    fn numbers_of_a_part_are_in_network_order() {
        let part = [0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09];
        assert_eq!(
            (part.octet::<8>(), part.word::<1>(), part.long::<2>()),
            (0x09, 0x0203, 0x0304_0506)
        );
        assert_eq!(part.quad::<1>(), 0x0203_0405_0607_0809);
        assert_eq!(part.high_48::<0>(), 0x0102_0304_0506);
    }

    #[test]
    fn octets_beyond_the_end_are_not_there() {
        let octets: &[u8] = &[1, 2, 3];
        assert_eq!(octets.word(1), Some(0x0203));
        assert_eq!(octets.word(2), None);
        assert_eq!(octets.word(usize::MAX), None);
    }
}
