//! Quantities as people write them in files and on the command line: `300ms`, `512KiB`, `2.5G`.

use std::fmt;
use std::ops::RangeInclusive;

use pfc_ebpf::units::{LineRate, Nanos};
use serde::de::value::{Error, StrDeserializer};
use serde::de::{self, Deserialize, Deserializer, IntoDeserializer, Unexpected, Visitor};

/// A span of time, written as `300ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Nanos);

/// An amount of data in octets, written as `512KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Octets(pub u64);

/// A rate in bit/s, written as `25G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub LineRate);

/// A kind of quantity: its units from small to large, the first with factor 1.
struct Kind {
    expected: &'static str,
    units: &'static [(&'static str, u64)],
    /// A number without quotes is one, too.
    takes_numbers: bool,
}

const TIME: Kind = Kind {
    expected: "a time with its unit (ns, us, ms, s, min), such as \"300ms\"",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
    ],
    takes_numbers: false,
};
const DATA: Kind = Kind {
    expected: "octets as a number, or with their unit (B, KiB, MiB, GiB), such as \"512KiB\"",
    units: &[
        ("", 1),
        ("B", 1),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    takes_numbers: true,
};
const RATE: Kind = Kind {
    expected: "a rate with its unit (K, M, G, T for bit/s), such as \"25G\"",
    units: &[
        ("", 1),
        ("K", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
    ],
    takes_numbers: false,
};

impl Kind {
    /// Parses `text` as a number of smallest units; `None` unless that is a whole number below
    /// 2^64.
    fn parse(&self, text: &str) -> Option<u64> {
        let text = text.trim();
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let mut units = self.units.iter();
        let (_, factor) = units.find(|(name, _)| *name == unit.trim_start())?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let scale = 10u128.checked_pow(fraction.len().try_into().ok()?)?;
        let scaled = whole
            .parse::<u128>()
            .ok()?
            .checked_mul(scale)?
            .checked_add(fraction.parse().ok()?)?
            .checked_mul((*factor).into())?;
        (scaled % scale == 0).then(|| u64::try_from(scaled / scale).ok())?
    }

    /// Writes `value` exactly, in the largest unit that it fills.
    fn write(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, factor): &&(&str, u64)| value >= *factor && is_decimal(value, *factor);
        let (unit, factor) = *self.units.iter().rev().find(fits).unwrap_or(&self.units[0]);
        write!(f, "{}", value / factor)?;
        let mut rest = value % factor;
        if rest > 0 {
            f.write_str(".")?;
        }
        while rest > 0 {
            let scaled = u128::from(rest) * 10;
            write!(f, "{}", scaled / u128::from(factor))?;
            rest = (scaled % u128::from(factor)) as u64;
        }
        f.write_str(unit)
    }
}

/// True if `value / factor` has at most six decimals.
fn is_decimal(value: u64, factor: u64) -> bool {
    (u128::from(value) * 1_000_000).is_multiple_of(factor.into())
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TIME.write(self.0, f)
    }
}

impl fmt::Display for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        DATA.write(self.0, f)
    }
}

impl Visitor<'_> for &Kind {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        self.parse(text)
            .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        match u64::try_from(number) {
            _ if !self.takes_numbers => Err(E::invalid_type(Unexpected::Signed(number), &self)),
            Ok(number) => Ok(number),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(&TIME).map(Self)
    }
}

impl<'de> Deserialize<'de> for Octets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(&DATA).map(Self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bits = deserializer.deserialize_str(&RATE)?;
        LineRate::from_bits_per_second(bits)
            .map(Self)
            .map_err(de::Error::custom)
    }
}

/// Parses a value of the command line like one of a file.
pub fn value<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    let text: StrDeserializer<'a, Error> = text.into_deserializer();
    T::deserialize(text).map_err(|error: Error| error.to_string())
}

/// Parses a time with its unit, such as `300ms`; 0 is an error.
pub fn time(text: &str) -> Result<Span, String> {
    match value(text)? {
        Span(0) => Err("expected a time above 0".to_owned()),
        time => Ok(time),
    }
}

/// Parses a rate with its unit, such as `25G`.
pub fn rate(text: &str) -> Result<LineRate, String> {
    value::<Rate>(text).map(|rate| rate.0)
}

/// Parses a number of octets, such as `524288` or `512KiB`.
pub fn octets(text: &str) -> Result<u64, String> {
    value::<Octets>(text).map(|octets| octets.0)
}

/// Nanoseconds as milliseconds for people: `0.250 ms`.
pub fn ms(nanos: Nanos) -> String {
    format!("{:.3} ms", nanos as f64 / 1e6)
}

/// The octets of a MAC address such as `02:00:00:00:00:01`, with colons or hyphens between, and so
/// many digits for each; `None` for any other text.
pub fn mac(text: &str, digits: RangeInclusive<usize>) -> Option<[u8; 6]> {
    let octet = |part: &str| {
        // `from_str_radix` takes a sign.
        let is_octet = digits.contains(&part.len()) && !part.starts_with('+');
        u8::from_str_radix(part, 16).ok().filter(|_| is_octet)
    };
    let octets: Option<Vec<u8>> = text.split([':', '-']).map(octet).collect();
    octets?.try_into().ok()
}

/// Octets as hexadecimal digits: `0180c2`.
pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The octets of hexadecimal digits, two for each; `None` for any other text.
pub fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    let octets = pairs
        .iter()
        .map(|&[high, low]| Some((digit(high)? << 4 | digit(low)?) as u8));
    rest.is_empty().then(|| octets.collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shown<'a>(&'a Kind, u64);

    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.write(self.1, f)
        }
    }

    #[test]
    fn times_sizes_and_rates_are_read_with_their_units() {
        for (text, nanos) in [
            ("300ms", 300_000_000),
            ("1s", 1_000_000_000),
            ("500us", 500_000),
            ("0.5 ms", 500_000),
            ("7ns", 7),
            ("0s", 0),
            ("2min", 120_000_000_000),
            ("33.55392ms", 33_553_920),
        ] {
            assert_eq!(TIME.parse(text), Some(nanos), "{text}");
        }
        assert_eq!(DATA.parse("512KiB"), Some(524_288));
        assert_eq!(DATA.parse("1.5MiB"), Some(1_572_864));
        assert_eq!(RATE.parse("2.5G"), Some(2_500_000_000));
        assert_eq!(RATE.parse("1.6T"), Some(1_600_000_000_000));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "300",
            "ms",
            "-1s",
            "1 parsec",
            "1.s",
            ".5s",
            "1.2.3s",
            "0.5ns",
            "1e3s",
            "99999999999999999999s",
            "600000000000min",
        ] {
            assert_eq!(TIME.parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let values = (0..64)
            .flat_map(|bit| [1u64 << bit, (1u64 << bit) - 1, (1u64 << bit) + 12_345])
            .chain([u64::MAX, 90_000_000_000, 33_553_920]);
        for value in values {
            for kind in [&TIME, &DATA, &RATE] {
                let text = Shown(kind, value).to_string();
                assert_eq!(kind.parse(&text), Some(value), "{text}");
            }
        }
    }

    #[test]
    fn both_spellings_of_addresses_are_read_and_others_are_not() {
        let read = |text| mac(text, 2..=2);
        assert_eq!(read("02:00:5e:10:FF:01"), Some([2, 0, 0x5e, 0x10, 0xff, 1]));
        assert_eq!(read("02-00-00-00-00-01"), Some([2, 0, 0, 0, 0, 1]));
        assert_eq!(mac("2:0:0:0:0:1", 1..=2), Some([2, 0, 0, 0, 0, 1]));
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "2:0:0:0:0:1",
            "+2:00:00:00:00:01",
            "0200.0000.0001",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn the_largest_fitting_unit_is_written() {
        assert_eq!(Span(300_000_000).to_string(), "300ms");
        assert_eq!(Span(90_000_000_000).to_string(), "1.5min");
        assert_eq!(Span(0).to_string(), "0ns");
        assert_eq!(Shown(&DATA, 1 << 20).to_string(), "1MiB");
        assert_eq!(Shown(&RATE, 2_500_000_000).to_string(), "2.5G");
    }
}
