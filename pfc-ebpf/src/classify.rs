//! Frame octets -> class; pure, used by the XDP program and by host tests alike.

use crate::maps::Malformed;
use crate::stamp::{self, Stamp};
use crate::wire::mac_control::MacControl;
use crate::wire::{Octets, ethernet, ip, udp};

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A test frame with a whole stamp.
    Test {
        /// Its stamp.
        stamp: Stamp,
        /// Its UDP checksum is right.
        intact: bool,
    },
    /// PAUSE or PFC.
    Control(MacControl),
    /// Anything else that can be read.
    Other,
    /// Could not be read.
    Malformed(Malformed),
}

impl Class {
    /// Whether the frame belongs to the test, also where it is damaged: such frames go no further than the port, where the
    /// host would answer or count them.
    #[inline(always)]
    pub const fn is_consumed(&self) -> bool {
        match self {
            Self::Test { .. } | Self::Control(_) => true,
            Self::Other => false,
            Self::Malformed(reason) => matches!(
                reason,
                Malformed::ControlTruncated
                    | Malformed::ControlOpcode
                    | Malformed::ControlTagged
                    | Malformed::ControlDestination
                    | Malformed::Stamp
            ),
        }
    }
}

/// A frame's class, and what tells its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classified {
    /// VLAN tags in the frame: 0 to 2, 0 where they could not be read.
    pub tags: u8,
    /// PCP of the outermost tag (0 to 7); `None` without a tag.
    pub pcp: Option<u8>,
    /// DSCP (0 to 63); `None` without a whole IP header.
    pub dscp: Option<u8>,
    /// What it is.
    pub class: Class,
}

/// Reads a frame as far as its class needs.
#[inline(always)]
pub fn classify(frame: &(impl Octets + ?Sized)) -> Classified {
    let unread = Classified { tags: 0, pcp: None, dscp: None, class: Class::Other };
    let header = match ethernet::parse(frame) {
        Ok(header) => header,
        Err(reason) => return Classified { class: Class::Malformed(reason), ..unread },
    };
    let tagged = Classified { tags: header.tags, pcp: if header.tags > 0 { Some(header.pcp) } else { None }, ..unread };
    let packet = match header.ethertype {
        ethernet::IPV4 => ip::parse_v4(frame, header.payload),
        ethernet::IPV6 => ip::parse_v6(frame, header.payload),
        ethernet::MAC_CONTROL => return Classified { class: control(frame, header.tags), ..tagged },
        _ => return tagged,
    };
    match packet {
        Ok(packet) => Classified { dscp: Some(packet.dscp), class: datagram(frame, &packet), ..tagged },
        Err(reason) => Classified { class: Class::Malformed(reason), ..tagged },
    }
}

#[inline(always)]
fn control(frame: &(impl Octets + ?Sized), tags: u8) -> Class {
    if tags > 0 {
        return Class::Malformed(Malformed::ControlTagged);
    }
    match MacControl::parse(frame) {
        Ok(control) => Class::Control(control),
        Err(reason) => Class::Malformed(reason),
    }
}

#[inline(always)]
fn datagram(frame: &(impl Octets + ?Sized), packet: &ip::Header) -> Class {
    if packet.protocol != ip::UDP || packet.fragment {
        return Class::Other;
    }
    let datagram = match udp::parse(frame, packet) {
        Ok(datagram) => datagram,
        Err(reason) => return Class::Malformed(reason),
    };
    if datagram.destination != stamp::UDP_PORT {
        return Class::Other;
    }
    if datagram.length < udp::LEN + stamp::LEN {
        return Class::Malformed(Malformed::Stamp);
    }
    let Some(octets) = frame.get(packet.payload + udp::LEN) else { return Class::Malformed(Malformed::Stamp) };
    match Stamp::parse(&octets) {
        Ok(stamp) => Class::Test { stamp, intact: udp::is_intact(frame, packet, &datagram) },
        Err(stamp::DamagedStamp) => Class::Malformed(Malformed::Stamp),
    }
}
