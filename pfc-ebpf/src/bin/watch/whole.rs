//! A frame in one piece, read where it is.

use pfc_ebpf::bpf::packet::Packet;
use pfc_ebpf::wire::{Octets, fold};

/// An IPv4 header without options, and with all that it can have.
const SHORTEST: usize = 20;
const LONGEST: usize = 60;

/// A frame of which no payload is summed, only headers of IPv4.
pub struct Whole(pub Packet);

impl Octets for Whole {
    type Part<const N: usize> = <Packet as Octets>::Part<N>;

    #[inline(always)]
    fn part<const N: usize>(&self, offset: usize) -> Option<Self::Part<N>> {
        self.0.part(offset)
    }

    #[inline(always)]
    fn length(&self) -> usize {
        self.0.length()
    }

    #[inline(always)]
    fn get<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.0.get(offset)
    }

    #[inline(always)]
    fn sum(&self, offset: usize, length: usize) -> Option<u16> {
        let add = |sum: u32, pair: &[u8; 2]| sum + u16::from_be_bytes(*pair) as u32;
        let header: [u8; SHORTEST] = self.get(offset)?;
        let mut sum = header.as_chunks().0.iter().fold(0, add);
        let mut at = SHORTEST;
        while at < LONGEST && at < length {
            let word: [u8; 4] = self.get(offset + at)?;
            sum = word.as_chunks().0.iter().fold(sum, add);
            at += 4;
        }
        Some(fold(sum))
    }
}
