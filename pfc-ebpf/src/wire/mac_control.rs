//! MAC control frames: PAUSE (IEEE 802.3, Annex 31B) and PFC (IEEE 802.3, Annex 31D; IEEE
//! 802.1Qbb).

use super::{Malformed, Octets, Part, ethernet};
use crate::units::{Priority, Quanta};

/// The address to which PAUSE and PFC frames are sent; bridges do not forward it.
pub const DESTINATION: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
/// Opcode of PAUSE.
pub const PAUSE: u16 = 0x0001;
/// Opcode of PFC.
pub const PFC: u16 = 0x0101;
/// Length of a frame that is sent: the shortest that Ethernet knows, without FCS.
pub const LEN: usize = 60;
/// Offset of the opcode: such frames carry no tag.
const OPCODE: usize = 14;
/// Offset of the time of PAUSE, and of the class-enable vector of PFC.
const OPERANDS: usize = OPCODE + 2;
/// Offset of the times of PFC.
pub const TIMES: usize = OPERANDS + 2;

numbered! {
    /// A departure of a frame that MACs read as PAUSE or PFC from the form in which the standard
    /// has it sent; indexes the counters of such frames.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
    Deviation {
        /// The source is a group address; it is an individual one (IEEE 802.3, 31.4.1).
        GroupSource = 0,
        /// The upper octet of the class-enable vector, which is reserved, is not 0 (IEEE 802.3,
        /// Annex 31D).
        ReservedVector = 1,
        /// An octet behind the operands is not 0 (IEEE 802.3, 31.4.1).
        Padding = 2,
        /// The frame is not as long as Ethernet's shortest, 64 octets with FCS (IEEE 802.3,
        /// 31.4.1).
        Length = 3,
    }
}

/// Content of a PAUSE or PFC frame. Times are in quanta of 512 bit times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacControl {
    /// Pauses the whole link.
    Pause {
        /// Length of the pause; 0 ends it.
        quanta: u16,
    },
    /// Pauses single priorities.
    Pfc {
        /// Bit per priority that is addressed; the high octet is reserved, and ignored as MACs do.
        vector: u16,
        /// Length of the pause by priority; 0 ends the pause of a priority that is addressed.
        quanta: [u16; 8],
    },
}

/// An address as a 48-bit number in network order.
pub const fn number(address: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = address;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

impl MacControl {
    /// A PFC frame that gives each of `priorities` the same time and does not address the others.
    pub fn pfc(priorities: impl IntoIterator<Item = Priority>, time: Quanta) -> Self {
        let mut vector = 0;
        let mut quanta = [0; 8];
        for priority in priorities {
            vector |= 1 << priority.get();
            quanta[priority.index()] = time.0;
        }
        Self::Pfc { vector, quanta }
    }

    /// The opcode.
    #[inline(always)]
    pub const fn opcode(&self) -> u16 {
        match self {
            Self::Pause { .. } => PAUSE,
            Self::Pfc { .. } => PFC,
        }
    }

    /// Reads an untagged frame of EtherType 0x8808. One that is not padded to the minimal length is
    /// taken, as MACs do.
    #[inline(always)]
    pub fn parse(frame: &(impl Octets + ?Sized)) -> Result<Self, Malformed> {
        let opcode = frame.word(OPCODE).ok_or(Malformed::ControlTruncated)?;
        let control = if opcode == PFC {
            let operands = frame
                .part::<18>(OPERANDS)
                .ok_or(Malformed::ControlTruncated)?;
            let word = [
                operands.word::<2>(),
                operands.word::<4>(),
                operands.word::<6>(),
                operands.word::<8>(),
                operands.word::<10>(),
                operands.word::<12>(),
                operands.word::<14>(),
                operands.word::<16>(),
            ];
            Self::Pfc {
                vector: operands.word::<0>(),
                quanta: word,
            }
        } else if opcode == PAUSE {
            Self::Pause {
                quanta: frame.word(OPERANDS).ok_or(Malformed::ControlTruncated)?,
            }
        } else {
            return Err(Malformed::ControlOpcode);
        };
        let addresses = frame
            .part::<{ OPCODE }>(0)
            .ok_or(Malformed::ControlTruncated)?;
        if addresses.high_48::<0>() == number(DESTINATION) {
            Ok(control)
        } else {
            Err(Malformed::ControlDestination)
        }
    }

    /// [`Deviation`]s of a frame of that opcode, which was read: a bit for each. Of one that is
    /// too short nothing else is looked at.
    #[inline(always)]
    pub fn deviations(frame: &(impl Octets + ?Sized), opcode: u16) -> u8 {
        let mut found = 0;
        let mut note =
            |wrong: bool, deviation: Deviation| found |= (wrong as u8) << deviation as u8;
        note(frame.length() != LEN, Deviation::Length);
        let Some(frame) = frame.part::<LEN>(0) else {
            return found;
        };
        note(
            frame.octet::<{ ethernet::SOURCE }>() & 1 != 0,
            Deviation::GroupSource,
        );
        let mut padding = frame.quad::<34>() | frame.quad::<42>() | frame.quad::<50>();
        padding |= frame.word::<58>() as u64;
        if opcode == PFC {
            note(frame.octet::<OPERANDS>() != 0, Deviation::ReservedVector);
        } else {
            padding |= frame.quad::<TIMES>() | frame.quad::<{ TIMES + 8 }>();
        }
        note(padding != 0, Deviation::Padding);
        found
    }

    /// The frame as it is sent, without FCS.
    pub fn emit(&self, source: [u8; 6]) -> [u8; LEN] {
        let mut frame = [0; LEN];
        let mut put =
            |at: usize, octets: &[u8]| frame[at..at + octets.len()].copy_from_slice(octets);
        put(0, &DESTINATION);
        put(ethernet::SOURCE, &source);
        put(OPCODE - 2, &ethernet::MAC_CONTROL.to_be_bytes());
        put(OPCODE, &self.opcode().to_be_bytes());
        match self {
            Self::Pause { quanta } => put(OPERANDS, &quanta.to_be_bytes()),
            Self::Pfc { vector, quanta } => {
                put(OPERANDS, &vector.to_be_bytes());
                for (priority, time) in quanta.iter().enumerate() {
                    put(TIMES + 2 * priority, &time.to_be_bytes());
                }
            }
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source address of the MAC that made [`GOLDEN`].
    const MAC: [u8; 6] = [0x5a, 0x51, 0x52, 0x53, 0x54, 0x55];

    /// Frames as two independent open hardware MACs sent them (register-transfer simulation), FCS
    /// taken off: the octets up to the padding, which is zero, and their meaning.
    fn golden() -> Vec<([u8; 6], &'static str, MacControl)> {
        let times = [40960, 40961, 40962, 40963, 40964, 40965, 40966, 40967];
        vec![
            (
                MAC,
                "880801010008000000000000a003",
                MacControl::Pfc {
                    vector: 8,
                    quanta: [0, 0, 0, 40963, 0, 0, 0, 0],
                },
            ),
            (
                MAC,
                "880801010008",
                MacControl::Pfc {
                    vector: 8,
                    quanta: [0; 8],
                },
            ),
            (
                MAC,
                "8808010100ffa000a001a002a003a004a005a006a007",
                MacControl::Pfc {
                    vector: 0xff,
                    quanta: times,
                },
            ),
            (
                MAC,
                "8808010100ff0000000000000000a004a005a006a007",
                MacControl::Pfc {
                    vector: 0xff,
                    quanta: [0, 0, 0, 0, 40964, 40965, 40966, 40967],
                },
            ),
            (
                MAC,
                "8808010100f0",
                MacControl::Pfc {
                    vector: 0xf0,
                    quanta: [0; 8],
                },
            ),
            (MAC, "880800011234", MacControl::Pause { quanta: 4660 }),
            (MAC, "880800010000", MacControl::Pause { quanta: 0 }),
            (
                [2, 0, 0, 0, 0, 1],
                "880800011234",
                MacControl::Pause { quanta: 0x1234 },
            ),
        ]
    }

    fn frame(source: [u8; 6], tail: &str) -> Vec<u8> {
        let octets = (0..tail.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&tail[at..at + 2], 16).unwrap());
        let mut frame: Vec<u8> = DESTINATION
            .into_iter()
            .chain(source)
            .chain(octets)
            .collect();
        frame.resize(LEN, 0);
        frame
    }

    #[test]
    fn frames_of_hardware_macs_are_read() {
        for (source, octets, control) in golden() {
            assert_eq!(
                MacControl::parse(&*frame(source, octets)),
                Ok(control),
                "{octets}"
            );
        }
    }

    #[test]
    fn frames_are_sent_as_hardware_macs_send_them() {
        for (source, octets, control) in golden() {
            assert_eq!(
                control.emit(source)[..],
                frame(source, octets)[..],
                "{octets}"
            );
        }
    }

    #[test]
    fn frames_of_hardware_macs_have_no_deviation_and_each_octet_has_its_own() {
        let found = |frame: &[u8]| {
            let opcode = MacControl::parse(frame).unwrap().opcode();
            let found = MacControl::deviations(frame, opcode);
            let is_found = |one: &Deviation| found >> *one as u8 & 1 > 0;
            Deviation::ALL
                .into_iter()
                .filter(is_found)
                .collect::<Vec<_>>()
        };
        for (source, octets, control) in golden() {
            let good = frame(source, octets);
            assert_eq!(found(&good), [], "{octets}");
            let padding = match control {
                MacControl::Pause { .. } => 18..LEN,
                MacControl::Pfc { .. } => 34..LEN,
            };
            for at in 6..LEN {
                let mut other = good.clone();
                other[at] ^= 1;
                let expected: &[Deviation] = match at {
                    6 => &[Deviation::GroupSource],
                    12..16 => continue,
                    16 if control.opcode() == PFC => &[Deviation::ReservedVector],
                    _ if padding.contains(&at) => &[Deviation::Padding],
                    _ => &[],
                };
                assert_eq!(found(&other), expected, "{octets} {at}");
            }
            assert_eq!(found(&good[..LEN - 1]), [Deviation::Length]);
            assert_eq!(found(&[&good[..], &[0; 4]].concat()), [Deviation::Length]);
            let long = [&good[..LEN - 1], &[1; 5]].concat();
            assert_eq!(found(&long), [Deviation::Padding, Deviation::Length]);
        }
    }

    #[test]
    fn priorities_make_the_vector() {
        let priorities = [3, 4].map(|priority| Priority::new(priority).unwrap());
        assert_eq!(
            MacControl::pfc(priorities, Quanta::MAX),
            MacControl::Pfc {
                vector: 0x18,
                quanta: [0, 0, 0, 0xffff, 0xffff, 0, 0, 0]
            }
        );
    }

    #[test]
    fn unpadded_frames_are_taken_and_shorter_ones_are_truncated() {
        let pause = MacControl::Pause { quanta: 5 };
        assert_eq!(MacControl::parse(&pause.emit(MAC)[..18]), Ok(pause));
        assert_eq!(
            MacControl::parse(&pause.emit(MAC)[..17]),
            Err(Malformed::ControlTruncated)
        );
        let pfc = MacControl::Pfc {
            vector: 0xff01,
            quanta: [7; 8],
        };
        assert_eq!(MacControl::parse(&pfc.emit(MAC)[..34]), Ok(pfc));
        assert_eq!(
            MacControl::parse(&pfc.emit(MAC)[..33]),
            Err(Malformed::ControlTruncated)
        );
        assert_eq!(
            MacControl::parse(&pfc.emit(MAC)[..15]),
            Err(Malformed::ControlTruncated)
        );
    }

    #[test]
    fn other_opcodes_and_destinations_are_malformed() {
        let mut frame = MacControl::Pause { quanta: 5 }.emit(MAC);
        frame[14] = 1;
        frame[15] = 0;
        assert_eq!(MacControl::parse(&frame[..]), Err(Malformed::ControlOpcode));
        let mut frame = MacControl::Pause { quanta: 5 }.emit(MAC);
        frame[..6].copy_from_slice(&MAC);
        assert_eq!(
            MacControl::parse(&frame[..]),
            Err(Malformed::ControlDestination)
        );
    }
}
