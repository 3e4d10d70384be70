//! The fields of a frame that a switch reads, and those that faulty ones spoil.

use std::ops::Range;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::stamp;
use pfc_ebpf::units::{Dscp, Priority};

/// Ethernet's two addresses and the EtherType.
pub const HEADER: usize = 14;
const VLAN: [u16; 2] = [0x8100, 0x88a8];
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const MAC_CONTROL: u16 = 0x8808;
const UDP: u8 = 17;

/// Places of a frame's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    tagged: bool,
    ethertype: u16,
    /// Offset of what follows the EtherType.
    payload: usize,
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]))
}

impl Layout {
    /// Reads the Ethernet header and up to two VLAN tags; `None` when the frame ends before.
    pub fn of(frame: &[u8]) -> Option<Self> {
        let mut at = HEADER - 2;
        let mut ethertype = word(frame, at)?;
        for _ in 0..2 {
            if VLAN.contains(&ethertype) {
                at += 4;
                ethertype = word(frame, at)?;
            }
        }
        Some(Self {
            tagged: at > HEADER - 2,
            ethertype,
            payload: at + 2,
        })
    }

    /// True for a MAC control frame; those are never forwarded, acted on or not.
    pub fn is_mac_control(self) -> bool {
        self.ethertype == MAC_CONTROL
    }

    /// The priority of `frame`; 0, a port's default priority, where the trusted field is missing.
    pub fn priority(
        self,
        frame: &[u8],
        trust: Trust,
        dscp_to_priority: &[Priority; Dscp::COUNT],
    ) -> Priority {
        let read = match trust {
            Trust::Pcp => self
                .tagged
                .then(|| Priority::from_low_bits(frame[HEADER] >> 5)),
            Trust::Dscp => self
                .traffic_class(frame)
                .map(|octet| dscp_to_priority[Dscp::from_traffic_class(octet).index()]),
        };
        read.unwrap_or(Priority::from_low_bits(0))
    }

    /// DSCP and ECN in one octet.
    fn traffic_class(self, frame: &[u8]) -> Option<u8> {
        match self.ethertype {
            IPV4 => frame.get(self.payload + 1).copied(),
            IPV6 => Some((word(frame, self.payload)? >> 4) as u8),
            _ => None,
        }
    }

    /// Offset of the transport header, its protocol, and where the addresses are.
    fn transport(self, frame: &[u8]) -> Option<(usize, u8, Range<usize>)> {
        let ip = self.payload;
        match self.ethertype {
            IPV4 => Some((
                ip + usize::from(frame.get(ip)? & 15) * 4,
                *frame.get(ip + 9)?,
                ip + 12..ip + 20,
            )),
            IPV6 => Some((ip + 40, *frame.get(ip + 6)?, ip + 8..ip + 40)),
            _ => None,
        }
    }

    /// The key of a flow: traffic class, protocol, addresses and ports; empty for other than IP.
    pub fn flow(self, frame: &[u8]) -> Vec<u8> {
        let key = || {
            let (at, protocol, addresses) = self.transport(frame)?;
            let start = [self.traffic_class(frame)?, protocol];
            Some([&start, frame.get(addresses)?, frame.get(at..at + 4)?].concat())
        };
        key().unwrap_or_default()
    }

    /// The UDP header and what a test frame has behind its stamp, at least `least` octets; `None`
    /// where there is less.
    fn filling(self, frame: &[u8], least: usize) -> Option<(usize, Range<usize>)> {
        let (udp, protocol, _) = self.transport(frame)?;
        let length = usize::from(word(frame, udp + 4)?);
        let filling = udp + 8 + stamp::LEN..udp + length;
        let fits = protocol == UDP && filling.end <= frame.len();
        (fits && filling.start + least <= filling.end).then_some((udp, filling))
    }
}

/// Mistakes in frames, of one shape: some make them longer. `None` where a frame has not what is to
/// be changed.
#[expect(clippy::ptr_arg)]
impl Layout {
    /// Flips the last bit of a UDP payload.
    pub fn corrupt(self, frame: &mut Vec<u8>) -> Option<()> {
        let (_, filling) = self.filling(frame, 1)?;
        frame[filling.end - 1] ^= 1;
        Some(())
    }

    /// Swaps two neighbouring words of a UDP payload.
    pub fn swap_words(self, frame: &mut Vec<u8>) -> Option<()> {
        let (_, filling) = self.filling(frame, 4)?;
        frame[filling][..4].rotate_left(2);
        Some(())
    }

    /// Zeroes the last 64 octets of a UDP payload, and sets the checksum right.
    pub fn zero_tail(self, frame: &mut Vec<u8>) -> Option<()> {
        const TAIL: usize = 64;
        let (udp, filling) = self.filling(frame, TAIL + 1)?;
        // Words of the checksum begin at the header.
        let begin = filling.end - TAIL - (filling.end - udp) % 2;
        for at in (begin..filling.end).step_by(2) {
            let before = u16::from_be_bytes([frame[at], *frame.get(at + 1).unwrap_or(&0)]);
            update_checksum(frame, udp + 6, before, 0)?;
            frame[at..filling.end.min(at + 2)].fill(0);
        }
        Some(())
    }

    /// Flips the last bit of the UDP destination port.
    pub fn change_port(self, frame: &mut Vec<u8>) -> Option<()> {
        let (udp, _) = self.filling(frame, 0)?;
        frame[udp + 3] ^= 1;
        Some(())
    }

    /// Appends four octets behind what the headers speak of.
    pub fn append(self, frame: &mut Vec<u8>) -> Option<()> {
        frame.extend([0; 4]);
        Some(())
    }

    /// Cuts the last four octets off; the headers stay.
    pub fn cut(self, frame: &mut Vec<u8>) -> Option<()> {
        self.filling(frame, 4)?;
        frame.truncate(frame.len() - 4);
        Some(())
    }
}

impl Layout {
    /// Sets another mark in the trusted field: the PCP's low bit, or the DSCP's bit of value 8, so
    /// that DSCPs stay apart by their value mod 8. `None` where the field is missing.
    pub fn remark(self, frame: &mut [u8], trust: Trust) -> Option<()> {
        const DSCP_8: u8 = 8 << 2;
        let ip = self.payload;
        match (trust, self.ethertype) {
            (Trust::Pcp, _) if self.tagged => frame[HEADER] ^= 1 << 5,
            (Trust::Dscp, IPV4) if frame.len() >= ip + 20 => {
                let before = word(frame, ip)?;
                frame[ip + 1] ^= DSCP_8;
                update_checksum(frame, ip + 10, before, word(frame, ip)?)?;
            }
            // The Traffic Class begins in the middle of the first octet.
            (Trust::Dscp, IPV6) if frame.len() >= ip + 40 => frame[ip] ^= DSCP_8 >> 4,
            _ => return None,
        }
        Some(())
    }
}

/// Sets the checksum at `at` right after one word that it covers has changed (RFC 1624, equation
/// 3).
fn update_checksum(frame: &mut [u8], at: usize, before: u16, after: u16) -> Option<()> {
    let sum = u32::from(!word(frame, at)?) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    Some(())
}
