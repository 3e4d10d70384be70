//! Quantities of the field, typed so that one cannot stand in for another.

use core::fmt;

/// A time of CLOCK_MONOTONIC, or a span, in nanoseconds.
pub type Nanos = u64;
/// A millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// A second.
pub const SECOND: Nanos = 1000 * MILLISECOND;

/// Declares types of numbers from 0 up, each with the number of its values.
macro_rules! bounded {
    ($($(#[$doc:meta])* $name:ident: $what:literal, $count:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(try_from = "u8", into = "u8"))]
        pub struct $name(u8);

        impl $name {
            /// Number of them.
            pub const COUNT: usize = $count;

            /// The one of that number; an error where there is none.
            pub const fn new(value: u8) -> Result<Self, OutOfRange> {
                if value < $count {
                    return Ok(Self(value));
                }
                Err(OutOfRange {
                    what: $what,
                    found: value as u64,
                    min: 0,
                    max: $count - 1,
                })
            }

            /// All of them, 0 first.
            pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Clone {
                (0..$count).map(Self)
            }

            /// The number.
            pub const fn get(self) -> u8 {
                self.0
            }

            /// The number, to index an array of as many as there are.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl TryFrom<u8> for $name {
            type Error = OutOfRange;
            fn try_from(value: u8) -> Result<Self, OutOfRange> {
                Self::new(value)
            }
        }

        impl From<$name> for u8 {
            fn from(value: $name) -> u8 {
                value.0
            }
        }
    )*};
}

bounded! {
    /// A traffic class of IEEE 802.1Q, 0 to 7: what PFC pauses.
    Priority: "priority", 8;
    /// A Differentiated Services Code Point (RFC 2474), 0 to 63.
    Dscp: "DSCP", 64;
}

/// A pause time in quanta of 512 bit times (IEEE 802.3 Annex 31B, 802.1Qbb).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Quanta(pub u16);

/// The speed of a link in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct LineRate(u64);

/// A value outside the range of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// The quantity.
    pub what: &'static str,
    /// The value found.
    pub found: u64,
    /// The smallest value allowed.
    pub min: u64,
    /// The largest value allowed.
    pub max: u64,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} must be {} to {}, found {}",
            self.what, self.min, self.max, self.found
        )
    }
}

impl core::error::Error for OutOfRange {}

impl Priority {
    /// The three low bits of `value`, as where a PCP is read from a VLAN tag.
    pub const fn from_low_bits(value: u8) -> Self {
        Self(value & 7)
    }
}

impl Dscp {
    /// The six high bits of an IPv4 TOS or IPv6 Traffic Class octet.
    pub const fn from_traffic_class(octet: u8) -> Self {
        Self(octet >> 2)
    }
}

impl Quanta {
    /// The longest pause, 65535 quanta.
    pub const MAX: Self = Self(u16::MAX);
    /// Time 0: transmission may resume.
    pub const ZERO: Self = Self(0);
    /// Bit times in a quantum.
    pub const BITS: u64 = 512;

    /// Bits of the fraction of [`LineRate::quantum`]: with 24, the longest pause at 1 Mbit/s fits
    /// 64 bits, and no pause is off by as much as 0.01 ns before it is rounded.
    const FRACTION: u32 = 24;

    /// Length of the pause where a quantum lasts [`LineRate::quantum`], in nanoseconds:
    /// [`Quanta::nanos`] or 1 more, and never 0 for a pause.
    #[inline(always)]
    pub const fn nanos_by(self, quantum: u64) -> u64 {
        let nanos = (self.0 as u64 * quantum) >> Self::FRACTION;
        // One quantum of 512 bit times is less than a nanosecond from 512 Gbit/s on.
        if nanos == 0 && self.0 > 0 { 1 } else { nanos }
    }

    /// Length of the pause at `rate`, in nanoseconds, rounded down.
    pub const fn nanos(self, rate: LineRate) -> u64 {
        rate.bits_to_nanos(self.0 as u64 * Self::BITS)
    }
}

impl LineRate {
    /// Preamble, start delimiter and the minimal gap between frames, in octets.
    pub const OVERHEAD: u64 = 20;
    /// Octets of the frame check sequence, which software does not see.
    pub const FCS: u64 = 4;

    /// The fastest that there may be.
    pub const FASTEST: Self = Self(1_600_000_000_000);

    /// A rate in bit/s, 1 Mbit/s to 1.6 Tbit/s.
    pub const fn from_bits_per_second(value: u64) -> Result<Self, OutOfRange> {
        const MIN: u64 = 1_000_000;
        const MAX: u64 = LineRate::FASTEST.0;
        if value < MIN || value > MAX {
            return Err(OutOfRange {
                what: "line rate in bit/s",
                found: value,
                min: MIN,
                max: MAX,
            });
        }
        Ok(Self(value))
    }

    /// Bit/s.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Nanoseconds that a quantum lasts, times 2^24, rounded up: what [`Quanta::nanos_by`]
    /// multiplies by, for a machine that cannot divide 128 bits.
    pub const fn quantum(self) -> u64 {
        let nanos = Quanta::BITS as u128 * SECOND as u128;
        ((nanos << Quanta::FRACTION).div_ceil(self.0 as u128)) as u64
    }

    /// The time that `bits` take on the wire, in nanoseconds, rounded down.
    pub const fn bits_to_nanos(self, bits: u64) -> u64 {
        (bits as u128 * SECOND as u128 / self.0 as u128) as u64
    }

    /// The bits of layer 1 that a frame of `len` octets (without FCS) takes: FCS, preamble and gap
    /// included.
    pub const fn frame_bits(len: usize) -> u64 {
        (len as u64 + Self::FCS + Self::OVERHEAD) * 8
    }

    /// The time that a frame of `len` octets (without FCS) takes on the wire, in nanoseconds.
    pub const fn frame_nanos(self, len: usize) -> u64 {
        self.bits_to_nanos(Self::frame_bits(len))
    }
}

impl fmt::Display for LineRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            v if v % 1_000_000_000 == 0 => write!(f, "{} Gbit/s", v / 1_000_000_000),
            v => write!(f, "{} Mbit/s", v as f64 / 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pause_lasts_33_ms_at_one_gigabit_and_42_us_at_800() {
        let rate = |bits| LineRate::from_bits_per_second(bits).unwrap();
        assert_eq!(Quanta::MAX.nanos(rate(1_000_000_000)), 33_553_920);
        assert_eq!(Quanta::MAX.nanos(rate(100_000_000_000)), 335_539);
        assert_eq!(Quanta::MAX.nanos(rate(800_000_000_000)), 41_942);
    }

    #[test]
    fn pauses_by_multiplication_end_never_early_and_at_most_a_nanosecond_late() {
        for bits in [
            1_000_000,
            10_000_000,
            333_333_333,
            1_000_000_000,
            2_500_000_000,
            7_777_777_777,
            99_999_999_999,
            1_600_000_000_000,
        ] {
            let rate = LineRate::from_bits_per_second(bits).unwrap();
            let quantum = rate.quantum();
            for quanta in (0..=u16::MAX).map(Quanta) {
                let (exact, found) = (quanta.nanos(rate), quanta.nanos_by(quantum));
                assert!(
                    (exact..=exact + 1).contains(&found),
                    "{quanta:?} at {rate}: {found}, {exact}"
                );
                assert_eq!(found == 0, quanta == Quanta::ZERO);
            }
        }
        let exact = LineRate::from_bits_per_second(1_000_000).unwrap();
        assert_eq!(
            Quanta::MAX.nanos_by(exact.quantum()),
            Quanta::MAX.nanos(exact)
        );
    }

    #[test]
    fn a_frame_of_1024_octets_takes_8384_bit_times() {
        assert_eq!(LineRate::frame_bits(1024), 8384);
        assert_eq!(
            LineRate::from_bits_per_second(1_000_000_000)
                .unwrap()
                .frame_nanos(1024),
            8384
        );
    }

    #[test]
    fn out_of_range_values_name_the_range() {
        assert_eq!(
            Priority::new(8).unwrap_err().to_string(),
            "priority must be 0 to 7, found 8"
        );
        assert_eq!(
            Dscp::new(64).unwrap_err().to_string(),
            "DSCP must be 0 to 63, found 64"
        );
        assert!(LineRate::from_bits_per_second(0).is_err());
    }
}
