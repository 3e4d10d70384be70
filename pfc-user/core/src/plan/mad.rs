//! The plan of a repetition of a MAD case.

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
    /// The least time that is waited for an answer, and all that is waited before the DUT's own
    /// times are known.
    pub timeout: Nanos,
}

impl MadPlan {
    /// M_KEY_OTHER of that attempt, from 1. Where it is not to be answered each attempt has another,
    /// so that a trap tells which of the requests has arrived.
    pub fn wrong_key(&self, attempt: u32) -> u64 {
        let earlier = attempt.clamp(1, ATTEMPTS) - 1;
        let nth = match self.stimulus {
            MadStimulus::MKeyGet(2) => earlier,
            MadStimulus::MKeyGet(3) => ATTEMPTS + earlier,
            _ => 0,
        };
        let keys = (0..).map(|step| self.m_key_other.wrapping_add(step));
        keys.filter(|key| ![0, self.m_key_dut].contains(key))
            .nth(nth as usize)
            .expect("no end of keys")
    }

    /// Its least duration.
    pub fn shortest(&self) -> Nanos {
        match self.stimulus {
            // A silence that is awaited.
            MadStimulus::MKeyGet(2 | 3) => 2 * self.timeout,
            _ => self.timeout,
        }
    }
}

/// Attempts at a repetition of the M_Key case while the violations stay 0.
pub const ATTEMPTS: u32 = 3;

/// The stimulus of a MAD case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MadStimulus {
    /// 768 Sets, then 768 Gets of LinearForwardingTable.
    LinearForwardingTable,
    /// Gets of PortInfo with and without the key, at these M_KeyProtectBits (0 to 3).
    MKeyGet(u8),
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
