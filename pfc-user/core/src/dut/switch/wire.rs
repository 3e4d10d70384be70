//! An emulated wire: how long a frame occupies it.

use pfc_ebpf::units::LineRate;

use crate::plan::Nanos;

/// A wire that carries one frame at a time, at exactly its rate over any number of frames.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    bits_per_second: u64,
    free_at: Nanos,
    /// Part of a nanosecond beyond `free_at` that the last frame still takes, in 1/rate ns.
    rest: u64,
}

impl Wire {
    /// A free wire of that rate.
    pub const fn new(rate: LineRate) -> Self {
        Self {
            bits_per_second: rate.bits_per_second(),
            free_at: 0,
            rest: 0,
        }
    }

    /// Time at which the last frame is over.
    pub const fn free_at(&self) -> Nanos {
        self.free_at
    }

    /// Puts a frame of `length` octets (without FCS) on the wire at `start`; returns when FCS,
    /// preamble and gap are over.
    pub const fn send(&mut self, start: Nanos, length: usize) -> Nanos {
        if start > self.free_at {
            self.rest = 0;
        }
        let time = LineRate::frame_bits(length) * 1_000_000_000 + self.rest;
        self.rest = time % self.bits_per_second;
        self.free_at = start + time / self.bits_per_second;
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_frames_back_to_back_take_the_time_of_their_bits() {
        for rate in [1_000_000_000, 10_000_000_000, 25_781_250_000, 999_999_937] {
            let mut wire = Wire::new(LineRate::from_bits_per_second(rate).unwrap());
            let mut end = 5;
            for _ in 0..1_000_000 {
                end = wire.send(end, 1000);
            }
            assert_eq!(
                end - 5,
                (1_000_000 * LineRate::frame_bits(1000) as u128 * 1_000_000_000 / u128::from(rate))
                    as u64,
                "{rate}"
            );
        }
    }

    #[test]
    fn an_idle_wire_owes_nothing() {
        let mut wire = Wire::new(LineRate::from_bits_per_second(3_000_000_000).unwrap());
        assert_eq!(wire.send(0, 60), 224, "672 bits at 3 bit/ns");
        assert_eq!(wire.send(1000, 61), 1226, "680 bits: 226.67 ns");
        assert_eq!(wire.send(5000, 61), 5226);
        assert_eq!(
            wire.send(5226, 61),
            5453,
            "and two thirds of a nanosecond more"
        );
    }
}
