//! MAC control frames as a MAC takes and makes them (IEEE 802.3 Annexes 31A, 31B, 31D).
//!
//! Not the tester's own reader: what the tester reads wrongly, its DUT must not read wrongly alike.

use pfc_ebpf::units::{Priority, Quanta};

use super::config::Priorities;
use crate::fault::switch::Fault;

const DESTINATION: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 1];
const ETHERTYPE: u16 = 0x8808;
const PAUSE: u16 = 0x0001;
const PFC: u16 = 0x0101;
/// Offset of what is behind the times of PFC.
const TAIL: usize = 34;
/// The shortest frame of Ethernet, without FCS.
const MIN_FRAME: usize = 60;

/// The request of a MAC control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// 802.3x: stop sending.
    Pause(Quanta),
    /// 802.1Qbb: stop sending frames of the enabled classes.
    Pfc {
        /// Class-enable vector; its high octet is reserved and not looked at.
        enabled: Priorities,
        /// Time of each class.
        times: [Quanta; Priority::COUNT],
    },
}

impl Control {
    /// The same with no time longer than that.
    pub fn capped(&self, most: Quanta) -> Self {
        match self {
            Self::Pause(time) => Self::Pause(most.min(*time)),
            Self::Pfc { enabled, times } => Self::Pfc {
                enabled: *enabled,
                times: times.map(|time| most.min(time)),
            },
        }
    }
}

/// Departures of a reader from the standard; none by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader {
    /// True: every opcode but that of PAUSE counts as that of PFC.
    any_opcode: bool,
    /// Octets at the end of the destination that are not compared.
    less_destination: usize,
    /// True: the high octet of the EtherType alone is compared.
    half_ethertype: bool,
    /// True: PFC with a reserved octet that is not 0 is not read.
    wants_zeroes: bool,
    /// True: frames from 00-00-00-00-00-00 are not read.
    wants_source: bool,
}

impl Reader {
    /// The reader of a switch with these faults.
    pub fn new(faults: &[Fault]) -> Self {
        let less_destination = faults.iter().find_map(|fault| match fault {
            Fault::AnyDestination => Some(DESTINATION.len()),
            Fault::NeighbourDestination => Some(1),
            _ => None,
        });
        Self {
            any_opcode: faults.contains(&Fault::AnyOpcode),
            less_destination: less_destination.unwrap_or(0),
            half_ethertype: faults.contains(&Fault::HalfEthertype),
            wants_zeroes: faults.contains(&Fault::WantsZeroes),
            wants_source: faults.contains(&Fault::WantsSource),
        }
    }

    /// Reads a frame; `None` for what a MAC does not act on: a VLAN tag, another destination than
    /// 01-80-C2-00-00-01, an unknown opcode, too short for its opcode.
    pub fn parse(&self, frame: &[u8]) -> Option<Control> {
        let compared = DESTINATION.len() - self.less_destination;
        let [high, low] = *frame.get(12..14)?.as_array()?;
        let is_control = [high, low] == ETHERTYPE.to_be_bytes()
            || self.half_ethertype && high == ETHERTYPE.to_be_bytes()[0];
        if frame.get(..compared)? != &DESTINATION[..compared] || !is_control {
            return None;
        }
        let reserved = frame.get(16).into_iter().chain(frame.iter().skip(TAIL));
        if self.wants_zeroes && reserved.into_iter().any(|octet| *octet != 0) {
            return None;
        }
        if self.wants_source && frame.get(6..12)? == [0; 6] {
            return None;
        }
        read(frame, self.any_opcode)
    }
}

/// Reads a frame as the standard has it.
#[cfg(test)]
pub fn parse(frame: &[u8]) -> Option<Control> {
    Reader::default().parse(frame)
}

/// The request of a MAC control frame, with one of PFC for every opcode that is not PAUSE if `any`.
fn read(frame: &[u8], any: bool) -> Option<Control> {
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    match word(14)? {
        PAUSE => Some(Control::Pause(Quanta(word(16)?))),
        opcode if opcode == PFC || any => {
            let mut times = [Quanta::ZERO; Priority::COUNT];
            for (class, time) in times.iter_mut().enumerate() {
                *time = Quanta(word(18 + 2 * class)?);
            }
            Some(Control::Pfc {
                enabled: Priorities(word(16)? as u8),
                times,
            })
        }
        _ => None,
    }
}

/// Departures from the standard of the PFC frames that a switch makes; none by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Writer {
    /// True: the source is a group address.
    from_group: bool,
    /// True: the reserved octet of the vector is a copy of the other one.
    reserved_vector: bool,
    /// True: the octets behind the times are not 0.
    unclean: bool,
    /// True: four octets too long.
    long: bool,
    /// True: behind a VLAN tag of priority 7.
    tagged: bool,
    /// True: to 01-80-C2-00-00-00.
    to_bridges: bool,
}

impl Writer {
    /// The writer of a switch with these faults.
    pub fn new(faults: &[Fault]) -> Self {
        Self {
            from_group: faults.contains(&Fault::PfcFromGroup),
            reserved_vector: faults.contains(&Fault::PfcReservedVector),
            unclean: faults.contains(&Fault::PfcUncleanPadding),
            long: faults.contains(&Fault::PfcLong),
            tagged: faults.contains(&Fault::PfcTagged),
            to_bridges: faults.contains(&Fault::PfcToBridges),
        }
    }

    /// A PFC frame from `source` with a time for each class that is enabled.
    pub fn pfc(&self, source: [u8; 6], classes: &[Option<Quanta>; Priority::COUNT]) -> Vec<u8> {
        let mut frame = pfc(source, classes);
        if self.from_group {
            frame[6] |= 1;
        }
        if self.reserved_vector {
            frame[16] = frame[17];
        }
        if self.unclean {
            frame[TAIL..].fill(0xa5);
        }
        if self.long {
            frame.resize(MIN_FRAME + 4, 0);
        }
        if self.tagged {
            frame.splice(12..12, [0x81, 0x00, 0xe0, 0x00]);
        }
        if self.to_bridges {
            frame[5] = 0;
        }
        frame
    }
}

/// A PFC frame as the standard has it.
pub fn pfc(source: [u8; 6], classes: &[Option<Quanta>; Priority::COUNT]) -> Vec<u8> {
    let enabled: Priorities = Priority::all()
        .filter(|class| classes[class.index()].is_some())
        .collect();
    let times = classes.map(|time| time.unwrap_or(Quanta::ZERO).0);
    control(source, &[&[PFC, enabled.0.into()], &times[..]].concat())
}

/// A PAUSE frame from `source`.
pub fn pause(source: [u8; 6], time: Quanta) -> Vec<u8> {
    control(source, &[PAUSE, time.0])
}

/// A MAC control frame from `source` with the opcode and parameters in `words`.
fn control(source: [u8; 6], words: &[u16]) -> Vec<u8> {
    let mut frame = [DESTINATION, source].concat();
    frame.extend(ETHERTYPE.to_be_bytes());
    frame.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    frame.resize(MIN_FRAME, 0);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames that the RTL of an open-source 10G MAC sent, FCS included.
    const XOFF_3: &str = "0180c20000015a5152535455880801010008000000000000a0030000000000000000000000000000000000000000000000000000000000000000000090e4450e";
    const XOFF_ALL: &str = "0180c20000015a51525354558808010100ffa000a001a002a003a004a005a006a0070000000000000000000000000000000000000000000000000000352ae782";
    const PAUSE_1234: &str = "0180c20000015a51525354558808000112340000000000000000000000000000000000000000000000000000000000000000000000000000000000008d9c4ba8";

    fn octets(hex: &str) -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    }

    #[test]
    fn frames_of_a_real_mac_are_read() {
        let times = |times: [u16; 8]| times.map(Quanta);
        let only_3 = Control::Pfc {
            enabled: Priorities(8),
            times: times([0, 0, 0, 0xa003, 0, 0, 0, 0]),
        };
        assert_eq!(parse(&octets(XOFF_3)), Some(only_3));
        let all = [
            0xa000, 0xa001, 0xa002, 0xa003, 0xa004, 0xa005, 0xa006, 0xa007,
        ];
        let all = Control::Pfc {
            enabled: Priorities::ALL,
            times: times(all),
        };
        assert_eq!(parse(&octets(XOFF_ALL)), Some(all));
        let pause = Control::Pause(Quanta(0x1234));
        assert_eq!(parse(&octets(PAUSE_1234)), Some(pause));
    }

    #[test]
    fn frames_are_made_as_a_real_mac_makes_them() {
        let source = [0x5a, 0x51, 0x52, 0x53, 0x54, 0x55];
        let all: [_; 8] = std::array::from_fn(|class| Some(Quanta(0xa000 + class as u16)));
        let mut only_3 = [None; 8];
        only_3[3] = all[3];
        assert_eq!(pfc(source, &only_3), octets(XOFF_3)[..60]);
        assert_eq!(pfc(source, &all), octets(XOFF_ALL)[..60]);
    }

    #[test]
    fn padding_and_the_reserved_octet_of_the_vector_do_not_matter() {
        let frame = octets(XOFF_3);
        let expected = parse(&frame);
        assert_eq!(parse(&frame[..34]), expected, "unpadded");
        assert_eq!(
            parse(&[&frame[..60], &[0; 68]].concat()),
            expected,
            "128 octets"
        );
        let mut reserved = frame;
        reserved[16] = 0xff;
        assert_eq!(parse(&reserved), expected);
    }

    #[test]
    fn what_a_mac_ignores_is_not_read() {
        // The switch as a whole is tested with the others.
        let mut other = octets(XOFF_3);
        assert_eq!(parse(&other[..13]), None, "cut within the header");
        other[5] = 2;
        assert_eq!(parse(&other), None, "another reserved address");
    }
}
