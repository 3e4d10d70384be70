//! The plan of a repetition of a MAD case.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Nanos;

/// One repetition of a MAD case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadPlan {
    /// Its name, unique in its case, such as `protect-bits-2`.
    pub name: String,
    /// The stimulus.
    pub stimulus: MadStimulus,
    /// Way to the DUT: `path 0,1` or `LID 5`.
    pub route: String,
    /// Key that the DUT has before the run; 0 for none. All SMPs carry it unless a step says
    /// otherwise.
    #[serde(with = "hex")]
    pub m_key_current: u64,
    /// M_KEY_DUT; not 0.
    #[serde(with = "hex")]
    pub m_key_dut: u64,
    /// M_KEY_OTHER; neither 0 nor M_KEY_DUT.
    #[serde(with = "hex")]
    pub m_key_other: u64,
    /// Bits of M_KEY_DUT that differ in a wrong key, one at a time.
    pub key_bits: Vec<u8>,
    /// The least time that is waited for an answer, and all that is waited before the DUT's own
    /// times are known.
    pub timeout: Nanos,
}

impl MadPlan {
    /// How the wrong keys differ that are tried one after the other. At protect bits 0 a DUT
    /// compares no key.
    pub fn differences(&self) -> Vec<Difference> {
        let bits = self.key_bits.iter().map(|bit| Difference::Bit(*bit));
        match self.stimulus.protect_bits() {
            None => Vec::new(),
            Some(0) => vec![Difference::Everywhere],
            Some(_) => bits.chain(Difference::OF_MANY_BITS).collect(),
        }
    }

    /// How M_KEY_OTHER differs in that attempt, and its number among the attempts that differ so,
    /// from 0. Each difference has [`ATTEMPTS`] attempts, numbered from 1 over all of them.
    pub fn trial(&self, attempt: u32) -> (Difference, u32) {
        let attempt = attempt.max(1) - 1;
        let differences = self.differences();
        let index = ((attempt / ATTEMPTS) as usize).min(differences.len().saturating_sub(1));
        let difference = differences.get(index).copied();
        (
            difference.unwrap_or(Difference::Everywhere),
            attempt % ATTEMPTS,
        )
    }

    /// M_KEY_OTHER of that attempt, from 1. But for those that differ in one bit, each attempt of
    /// each subcase has another, so that a trap tells which of the requests has arrived.
    pub fn wrong_key(&self, attempt: u32) -> u64 {
        let (difference, nth) = self.trial(attempt);
        let Some(bits @ 1..) = self.stimulus.protect_bits() else {
            return self.m_key_other;
        };
        let seed = (u32::from(bits.min(3)) - 1) * ATTEMPTS + nth;
        let half = u64::from(u32::MAX - seed);
        match difference {
            Difference::Bit(bit) => self.m_key_dut ^ 1 << (bit % 64),
            Difference::LowerHalf => self.m_key_dut ^ half,
            Difference::UpperHalf => self.m_key_dut ^ half << 32,
            Difference::Everywhere => {
                let earlier = if bits == 3 { seed - ATTEMPTS } else { nth };
                let keys = (0..).map(|step| self.m_key_other.wrapping_add(step));
                keys.filter(|key| ![0, self.m_key_dut].contains(key))
                    .nth(earlier as usize)
                    .expect("no end of keys")
            }
        }
    }

    /// Its least duration.
    pub fn shortest(&self) -> Nanos {
        match self.stimulus.protect_bits() {
            // A silence that is awaited after each wrong key, one before them and one at the end.
            Some(2 | 3) => (2 + self.differences().len() as Nanos) * self.timeout,
            _ => self.timeout,
        }
    }
}

/// Attempts with each difference of a wrong key while the violations stay 0.
pub const ATTEMPTS: u32 = 3;

/// How a wrong key differs from M_KEY_DUT. A DUT that compares only a part of a key takes one of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The key differs in this bit alone, 0 to 63.
    Bit(u8),
    /// The key differs in the lower half alone.
    LowerHalf,
    /// The key differs in the upper half alone.
    UpperHalf,
    /// The key is M_KEY_OTHER of the testbed.
    Everywhere,
}

impl Difference {
    /// Differences in more than one bit, in the order in which they are tried.
    pub const OF_MANY_BITS: [Self; 3] = [Self::LowerHalf, Self::UpperHalf, Self::Everywhere];
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bit(bit) => write!(f, "in bit {bit}"),
            Self::LowerHalf => f.write_str("in the lower half"),
            Self::UpperHalf => f.write_str("in the upper half"),
            Self::Everywhere => f.write_str("everywhere"),
        }
    }
}

/// The stimulus of a MAD case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MadStimulus {
    /// 768 Sets, then 768 Gets of LinearForwardingTable.
    LinearForwardingTable,
    /// Gets of PortInfo with and without the key, at these M_KeyProtectBits (0 to 3).
    MKeyGet(u8),
    /// A Get of PortInfo.
    PortInfo,
    /// 20 timed Gets of PortInfo, each after one of the tester's own.
    TimedPortInfo,
}

impl MadStimulus {
    /// M_KeyProtectBits of the subcase; `None` in a case that sets no M_Key.
    pub fn protect_bits(self) -> Option<u8> {
        match self {
            Self::MKeyGet(bits) => Some(bits),
            Self::LinearForwardingTable | Self::PortInfo | Self::TimedPortInfo => None,
        }
    }
}

/// Keys as they are written everywhere else: `0x0123456789abcdef`.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(key: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{key:#018x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text
            .strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok());
        digits.ok_or_else(|| {
            de::Error::invalid_value(
                de::Unexpected::Str(&text),
                &"a key such as 0x0123456789abcdef",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn wrong_keys_differ_as_they_say_and_from_each_other() {
        let keys = [
            (0x1122_3344_5566_7788, 0x99aa_bbcc_ddee_ff00),
            (1, 2),
            (u64::MAX, 0xffff_ffff),
            (0xffff_ffff, 1 << 63),
        ];
        for (m_key_dut, m_key_other) in keys {
            let mut all = BTreeSet::new();
            for bits in 1..=3 {
                let plan = MadPlan {
                    name: String::new(),
                    stimulus: MadStimulus::MKeyGet(bits),
                    route: String::new(),
                    m_key_current: 0,
                    m_key_dut,
                    m_key_other,
                    key_bits: vec![bits, 60 + bits],
                    timeout: 0,
                };
                for attempt in 1..=5 * ATTEMPTS {
                    let key = plan.wrong_key(attempt);
                    let difference = key ^ m_key_dut;
                    assert_ne!(difference, 0);
                    let (expected, nth) = plan.trial(attempt);
                    match expected {
                        Difference::Bit(bit) => assert_eq!(difference, 1 << bit),
                        Difference::LowerHalf => assert_eq!(difference >> 32, 0),
                        Difference::UpperHalf => assert_eq!(difference as u32, 0),
                        Difference::Everywhere => continue,
                    }
                    let is_again = matches!(expected, Difference::Bit(_)) && nth > 0;
                    let is_new = all.insert(key);
                    assert_eq!(is_new, !is_again, "{key:#x} of {m_key_dut:#x}");
                }
                assert_eq!(plan.trial(13), (Difference::Everywhere, 0));
                let first = plan.wrong_key(13);
                assert!(bits == 3 || first == m_key_other, "{first:#x}");
            }
        }
    }
}
