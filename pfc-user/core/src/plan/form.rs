//! Forms of a PFC frame: the one that IEEE 802.1Qbb has, and departures from it, one at a time.

use pfc_ebpf::wire::{ethernet, mac_control};
use serde::{Deserialize, Serialize};

/// The form of a PFC frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// As the standard has it.
    Standard,
    /// The reserved octet of the class-enable vector is 0xff.
    ReservedVector,
    /// The octets behind the times are 0xff.
    ReservedTail,
    /// Opcode 0x0000.
    OpcodeZero,
    /// Opcode 0x0102, the one behind that of PFC.
    OpcodeNext,
    /// Opcode 0x0201, of which the low octet alone is that of PFC.
    OpcodeLowOctet,
    /// Opcode 0xffff.
    OpcodeLast,
    /// EtherType 0x8809, the one behind that of MAC control.
    EthertypeNext,
    /// To a station that is not there.
    OtherStation,
    /// To all stations.
    Broadcast,
    /// To 01-80-C2-00-00-00, the address before that of PFC.
    AddressBefore,
    /// To 01-80-C2-00-00-02, the address behind that of PFC.
    AddressBehind,
    /// Behind a VLAN tag (0x8100).
    OneTag,
    /// Behind two VLAN tags (0x88a8, 0x8100).
    TwoTags,
    /// From 00-00-00-00-00-00.
    ZeroSource,
    /// From 00-00-00-00-00-00, which the DUT is declared to obey.
    ZeroSourceDeclared,
    /// From a group address.
    GroupSource,
}

/// What a PFC frame of a form does at a device that keeps to the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It pauses.
    Pauses,
    /// It has none.
    None,
    /// The standard leaves it open.
    Open,
}

/// An individual address, locally administered, that no device has.
const NOBODY: [u8; 6] = [0x02, 0x76, 0x6f, 0x69, 0x64, 0x01];
/// A group address (IPv4, all systems).
const GROUP: [u8; 6] = [0x01, 0x00, 0x5e, 0x00, 0x00, 0x01];
/// Offset of the opcode in an untagged frame.
const OPCODE: usize = ethernet::LEN;
/// Offset of the class-enable vector.
const VECTOR: usize = OPCODE + 2;
/// Offset of what is behind the eight times.
const TAIL: usize = mac_control::TIMES + 16;
/// A tag of priority 3 and no VLAN, behind its EtherType.
const TCI: [u8; 2] = [0x60, 0x00];

impl Form {
    /// Forms that depart in what a MAC reads, in the order in which they are sent.
    pub const ODD: [Self; 13] = [
        Self::ReservedVector,
        Self::ReservedTail,
        Self::OpcodeZero,
        Self::OpcodeNext,
        Self::OpcodeLowOctet,
        Self::OpcodeLast,
        Self::EthertypeNext,
        Self::OtherStation,
        Self::Broadcast,
        Self::AddressBefore,
        Self::AddressBehind,
        Self::OneTag,
        Self::TwoTags,
    ];

    /// Forms of another source, in the order in which they are sent; `declared`: the DUT is said to
    /// obey 00-00-00-00-00-00.
    pub const fn sources(declared: bool) -> [Self; 2] {
        let zero = match declared {
            true => Self::ZeroSourceDeclared,
            false => Self::ZeroSource,
        };
        [zero, Self::GroupSource]
    }

    /// What a frame of this form does. A MAC acts on EtherType 0x8808, opcode 0x0101 and
    /// destination 01-80-C2-00-00-01, and ignores reserved octets (IEEE 802.3 clause 31 and Annex
    /// 31D).
    pub fn effect(self) -> Effect {
        match self {
            Self::Standard
            | Self::ReservedVector
            | Self::ReservedTail
            | Self::ZeroSourceDeclared => Effect::Pauses,
            Self::OneTag | Self::TwoTags | Self::ZeroSource | Self::GroupSource => Effect::Open,
            _ => Effect::None,
        }
    }

    /// The frame in words, such as `PFC with opcode 0x0000`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Standard => "PFC",
            Self::OpcodeZero => "PFC with opcode 0x0000",
            Self::OpcodeNext => "PFC with opcode 0x0102",
            Self::OpcodeLowOctet => "PFC with opcode 0x0201",
            Self::OpcodeLast => "PFC with opcode 0xffff",
            Self::EthertypeNext => "PFC with EtherType 0x8809",
            Self::OtherStation => "PFC to another station",
            Self::Broadcast => "PFC to all stations",
            Self::AddressBefore => "PFC to 01-80-C2-00-00-00",
            Self::AddressBehind => "PFC to 01-80-C2-00-00-02",
            Self::ReservedVector => "PFC with the reserved octet of its vector set",
            Self::ReservedTail => "PFC with the octets behind its times set",
            Self::OneTag => "PFC behind a VLAN tag",
            Self::TwoTags => "PFC behind two VLAN tags",
            Self::ZeroSource | Self::ZeroSourceDeclared => "PFC from 00-00-00-00-00-00",
            Self::GroupSource => "PFC from 01-00-5E-00-00-01, a group",
        }
    }

    /// `standard`, a whole frame of the standard's form, in this one.
    pub(super) fn shape(self, standard: [u8; mac_control::LEN]) -> Vec<u8> {
        let mut frame = standard.to_vec();
        let mut put =
            |at: usize, octets: &[u8]| frame[at..at + octets.len()].copy_from_slice(octets);
        match self {
            Self::Standard => {}
            Self::OpcodeZero => put(OPCODE, &[0x00, 0x00]),
            Self::OpcodeNext => put(OPCODE, &[0x01, 0x02]),
            Self::OpcodeLowOctet => put(OPCODE, &[0x02, 0x01]),
            Self::OpcodeLast => put(OPCODE, &[0xff, 0xff]),
            Self::EthertypeNext => put(OPCODE - 2, &[0x88, 0x09]),
            Self::OtherStation => put(0, &NOBODY),
            Self::Broadcast => put(0, &[0xff; 6]),
            Self::AddressBefore => put(5, &[0x00]),
            Self::AddressBehind => put(5, &[0x02]),
            Self::ReservedVector => put(VECTOR, &[0xff]),
            Self::ReservedTail => put(TAIL, &[0xff; mac_control::LEN - TAIL]),
            Self::ZeroSource | Self::ZeroSourceDeclared => put(ethernet::SOURCE, &[0; 6]),
            Self::GroupSource => put(ethernet::SOURCE, &GROUP),
            Self::OneTag => insert(&mut frame, &[&[0x81, 0x00], &TCI[..]]),
            Self::TwoTags => {
                insert(&mut frame, &[&[0x88, 0xa8], &TCI[..], &[0x81, 0x00], &TCI]);
            }
        }
        frame
    }
}

/// Inserts `octets` behind the source address.
fn insert(frame: &mut Vec<u8>, octets: &[&[u8]]) {
    let at = OPCODE - 2;
    frame.splice(at..at, octets.concat());
}

#[cfg(test)]
mod tests {
    use pfc_ebpf::units::{Priority, Quanta};

    use super::*;
    use crate::plan::PfcFrame;

    /// The frame of each form for class 3, 0xa003 quanta, from 5a-51-52-53-54-55: what it departs
    /// in, written by hand from the octets that a hardware MAC sent.
    const GOLDEN: [(Form, &str); 17] = [
        (
            Form::Standard,
            "0180c2000001 5a5152535455 8808 0101 0008 T 00",
        ),
        (
            Form::ReservedVector,
            "0180c2000001 5a5152535455 8808 0101 ff08 T 00",
        ),
        (
            Form::ReservedTail,
            "0180c2000001 5a5152535455 8808 0101 0008 T ff",
        ),
        (
            Form::OpcodeZero,
            "0180c2000001 5a5152535455 8808 0000 0008 T 00",
        ),
        (
            Form::OpcodeNext,
            "0180c2000001 5a5152535455 8808 0102 0008 T 00",
        ),
        (
            Form::OpcodeLowOctet,
            "0180c2000001 5a5152535455 8808 0201 0008 T 00",
        ),
        (
            Form::OpcodeLast,
            "0180c2000001 5a5152535455 8808 ffff 0008 T 00",
        ),
        (
            Form::EthertypeNext,
            "0180c2000001 5a5152535455 8809 0101 0008 T 00",
        ),
        (
            Form::OtherStation,
            "02766f696401 5a5152535455 8808 0101 0008 T 00",
        ),
        (
            Form::Broadcast,
            "ffffffffffff 5a5152535455 8808 0101 0008 T 00",
        ),
        (
            Form::AddressBefore,
            "0180c2000000 5a5152535455 8808 0101 0008 T 00",
        ),
        (
            Form::AddressBehind,
            "0180c2000002 5a5152535455 8808 0101 0008 T 00",
        ),
        (
            Form::OneTag,
            "0180c2000001 5a5152535455 81006000 8808 0101 0008 T 00",
        ),
        (
            Form::TwoTags,
            "0180c2000001 5a5152535455 88a86000 81006000 8808 0101 0008 T 00",
        ),
        (
            Form::ZeroSource,
            "0180c2000001 000000000000 8808 0101 0008 T 00",
        ),
        (
            Form::ZeroSourceDeclared,
            "0180c2000001 000000000000 8808 0101 0008 T 00",
        ),
        (
            Form::GroupSource,
            "0180c2000001 01005e000001 8808 0101 0008 T 00",
        ),
    ];

    #[test]
    fn each_form_departs_in_one_thing() {
        let class = Priority::new(3).unwrap();
        let times = "00010001 0001a003 00010001 00010001";
        let forms = [&Form::ODD[..], &[Form::ZeroSource], &Form::sources(true)].concat();
        assert!(GOLDEN[1..].iter().map(|(form, _)| *form).eq(forms));
        for (form, octets) in GOLDEN {
            let tail = octets[octets.len() - 2..].repeat(26);
            let octets = octets[..octets.len() - 2].replace('T', times) + &tail;
            let octets = octets.replace(' ', "");
            let mut frame = PfcFrame::new(&[(class, Quanta(0xa003))], Quanta(1));
            frame.form = form;
            let found: String = frame
                .emit([0x5a, 0x51, 0x52, 0x53, 0x54, 0x55])
                .iter()
                .map(|octet| format!("{octet:02x}"))
                .collect();
            assert_eq!(found, octets, "{form:?}");
        }
    }

    #[test]
    fn a_frame_without_effect_pauses_nothing() {
        let class = Priority::new(3).unwrap();
        for form in Form::ODD {
            let mut frame = PfcFrame::uniform(&[class], Quanta(7));
            frame.form = form;
            let pauses = form.effect() == Effect::Pauses;
            assert_eq!(frame.time(class).is_some(), pauses, "{form:?}");
            assert_eq!(frame.asks(), pauses, "{form:?}");
        }
    }
}
