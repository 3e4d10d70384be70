//! Records of a repetition of a MAD case: every packet sent and received, octet by octet. All that
//! is judged is decoded from these octets.

use std::fmt;

use ib_mad::mad::LENGTH;
use pfc_ebpf::units::Nanos;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::pfc::Stall;
use crate::m_key::Protection;
use crate::plan::mad::MadPlan;
use crate::quantity::{from_hex, hex};

/// One repetition of a MAD case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MadEvidence {
    /// The attempted action.
    pub plan: MadPlan,
    /// Name of the transport, for people.
    pub transport: String,
    /// True if packets that match no request under way could be seen. Linux' umad drops them in
    /// the kernel.
    pub shows_unmatched: bool,
    /// True if the transport leaves all of a TID as it is; else its upper half may be another.
    pub keeps_tids: bool,
    /// Requests in the order they were sent.
    pub exchanges: Vec<Exchange>,
    /// Packets that answered no request under way, in the order they came.
    pub strays: Vec<Stray>,
    /// How many more came after the first [`MOST_STRAYS`], but for those in `traps_left_out`.
    pub strays_left_out: u64,
    /// How many traps and other nodes' requests, which answer nothing, came after the first
    /// `MOST_STRAYS`.
    pub traps_left_out: u64,
    /// Times at which the tester or its simulated DUT stood still, in their order.
    pub stalls: Vec<Stall>,
    /// Until when packets were listened for; the transport's time, as all times here.
    pub listened_until: Nanos,
    /// The user ended the repetition.
    pub interrupted: bool,
    /// Protection to be restored: M_Key, protect bits and lease as they were before the run's
    /// first Set. `None` where nothing was to be set.
    pub original: Option<Protection>,
    /// The reason why the repetition ended early: the tester or its surroundings failed.
    pub error: Option<String>,
}

/// Packets that answered no request under way are kept up to this number, traps and other nodes'
/// requests up to it too; more are counted.
pub const MOST_STRAYS: usize = 1000;

/// Purpose of a request. A request that is repeated, for want of an answer or because the DUT was
/// busy, has the purpose of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Get of the tester's own PortInfo.
    TesterPort,
    /// Get of the DUT's PortInfo with modifier 0, where M_Key and times are.
    DutPort,
    /// Get of PortInfo of the DUT's port that the link is at.
    LinkPort,
    /// Get of PortInfo, to see whether the DUT answers at all after it did not answer something
    /// else.
    Alive,
    /// Get of the DUT's PortInfo whose answer is timed, after a Get of the tester's own PortInfo
    /// that shows the tester's part in that time.
    TimedPort,
    /// Get of NodeInfo.
    NodeInfo,
    /// Get of SwitchInfo.
    SwitchInfo,
    /// Set of a block of LinearForwardingTable.
    SetBlock,
    /// Get of a block of LinearForwardingTable.
    GetBlock,
    /// Set of PortInfo with M_KEY_DUT, the protect bits, and violations 0.
    KeySet,
    /// Get of PortInfo after a Set without an answer, to see which M_Key is in force.
    InForce,
    /// Get of PortInfo with M_KEY_DUT, to see whether that was done.
    KeyShown,
    /// Get of PortInfo with M_KEY_DUT: step 1.
    OwnKey,
    /// Get of PortInfo with M_KEY_OTHER: step 4 of the initial steps.
    OtherKey,
    /// Get of PortInfo with M_KEY_DUT after that: step 3 at protect bits 2 and 3.
    DutKey,
    /// Set of PortInfo with M_Key 0, protect bits 0 and violations 0.
    Reset,
    /// Get of PortInfo, to see whether that was done.
    ResetShown,
    /// Set of PortInfo with M_Key, protect bits and lease as they were.
    Restore,
    /// Get of PortInfo with the key as it was, or M_KEY_DUT where there was none, to see whether
    /// that was done.
    Restored,
}

/// A request and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// Its purpose.
    pub purpose: Purpose,
    /// The attempt at the whole repetition that it belongs to, from 1: three for each kind of wrong
    /// key, of which those that are not needed are left out; one for each timed Get.
    pub attempt: u32,
    /// Time of sending.
    pub sent: Nanos,
    /// Until when its answer was waited for.
    pub deadline: Nanos,
    /// Until when its answer could be seen, even where the transport drops what answers no request
    /// that it keeps.
    pub kept: Nanos,
    /// The request.
    pub request: Octets,
    /// The answer; `None` if none came in time.
    pub answer: Option<Packet>,
}

/// A packet that came in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Packet {
    /// Time.
    pub at: Nanos,
    /// Its octets, however many.
    pub octets: Octets,
}

/// A packet that answered no request under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stray {
    /// The packet.
    pub packet: Packet,
    /// True if the packet is a response to a request of an earlier repetition, which is not among
    /// the requests here.
    pub of_earlier: bool,
}

/// Octets, written as hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Octets(pub Vec<u8>);

impl fmt::Debug for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl Serialize for Octets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{self:?}"))
    }
}

impl<'de> Deserialize<'de> for Octets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || {
            de::Error::invalid_value(
                de::Unexpected::Str(&text),
                &"hexadecimal digits, two for each octet",
            )
        };
        from_hex(&text).map(Self).ok_or_else(wrong)
    }
}

impl From<&[u8; LENGTH]> for Octets {
    fn from(octets: &[u8; LENGTH]) -> Self {
        Self(octets.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_read_as_they_are_written() {
        let octets = Octets(vec![0x00, 0x9f, 0xff]);
        let text = serde_json::to_string(&octets).unwrap();
        assert_eq!(text, "\"009fff\"");
        assert_eq!(serde_json::from_str::<Octets>(&text).unwrap(), octets);
        for wrong in ["\"0\"", "\"0g\"", "\"+1\"", "\"0 \"", "\"\u{e9}\""] {
            assert!(serde_json::from_str::<Octets>(wrong).is_err(), "{wrong}");
        }
    }
}
