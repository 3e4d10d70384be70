//! Frame octets -> class; pure, used by the XDP program and by host tests alike.

use crate::filling::Filled;
use crate::stamp::{self, Stamp};
use crate::wire::Malformed;
use crate::wire::mac_control::MacControl;
use crate::wire::{Octets, Part, ethernet, ip, udp};

/// Place of a datagram in its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    ip: ip::Header,
    udp: udp::Header,
}

impl Datagram {
    /// True if its UDP checksum is right; `frame` is the one that it was found in.
    #[inline(always)]
    pub fn is_intact(&self, frame: &(impl Octets + ?Sized)) -> bool {
        udp::is_intact(frame, &self.ip, &self.udp)
    }

    /// True if what stands behind its stamp is the [filling](crate::filling) of test frames.
    #[inline(always)]
    pub fn is_filled(&self, frame: &(impl Filled + ?Sized)) -> bool {
        const BEFORE: usize = udp::LEN + stamp::LEN;
        frame.is_filling(self.ip.payload + BEFORE, self.udp.length - BEFORE)
    }
}

/// Marks that tell the priority of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// VLAN tags in the frame: 0 to 2, 0 where they could not be read.
    pub tags: u8,
    /// PCP of the outermost tag (0 to 7); `None` without a tag.
    pub pcp: Option<u8>,
    /// DSCP (0 to 63); `None` without a whole IP header.
    pub dscp: Option<u8>,
}

impl Marks {
    /// Nothing that could be read.
    const NONE: Self = Self {
        tags: 0,
        pcp: None,
        dscp: None,
    };
}

/// Actions on a frame of each class: exactly one of these is called. So that the program in the
/// kernel goes straight on where it knows the class, and does not put it into a value to take it
/// out again.
pub trait Visitor: Sized {
    /// Result of the action.
    type Output;
    /// A test frame with a whole stamp.
    fn test(self, marks: Marks, stamp: Stamp, datagram: Datagram) -> Self::Output;
    /// PAUSE or PFC.
    fn control(self, control: MacControl) -> Self::Output;
    /// Anything else that can be read.
    fn other(self, marks: Marks) -> Self::Output;
    /// Could not be read.
    fn malformed(self, marks: Marks, reason: Malformed) -> Self::Output;
}

/// Reads a frame as far as its class needs, and calls what is to be done with it.
#[inline(always)]
pub fn visit<V: Visitor>(frame: &(impl Octets + ?Sized), visitor: V) -> V::Output {
    let unread = Marks::NONE;
    // Most frames, with their own way through the program: there everything stands where the
    // compiler knows.
    if let Some(headers) = frame.part::<{ ethernet::LEN + ip::IPV4_LEN }>(0)
        && headers.word::<{ ethernet::TYPE }>() == ethernet::IPV4
        && let Some(packet) = ip::parse_plain_v4(
            frame,
            headers.inner::<{ ethernet::LEN }, { ip::IPV4_LEN }>(),
            ethernet::LEN,
        )
    {
        return above_ip(frame, unread, packet, visitor);
    }
    let header = match ethernet::parse(frame) {
        Ok(header) => header,
        Err(reason) => return visitor.malformed(unread, reason),
    };
    let tagged = Marks {
        tags: header.tags,
        pcp: if header.tags > 0 {
            Some(header.pcp)
        } else {
            None
        },
        ..unread
    };
    let packet = match header.ethertype {
        ethernet::IPV4 => ip::parse_v4(frame, header.payload),
        ethernet::IPV6 => ip::parse_v6(frame, header.payload),
        ethernet::MAC_CONTROL if header.tags > 0 => {
            return visitor.malformed(tagged, Malformed::ControlTagged);
        }
        ethernet::MAC_CONTROL => {
            return match MacControl::parse(frame) {
                Ok(control) => visitor.control(control),
                Err(reason) => visitor.malformed(unread, reason),
            };
        }
        _ => return visitor.other(tagged),
    };
    above_ip(frame, tagged, packet, visitor)
}

/// Reads on where there is an IP header, or should be.
#[inline(always)]
fn above_ip<V: Visitor>(
    frame: &(impl Octets + ?Sized),
    tagged: Marks,
    packet: Result<ip::Header, Malformed>,
    visitor: V,
) -> V::Output {
    let packet = match packet {
        Ok(packet) => packet,
        Err(reason) => return visitor.malformed(tagged, reason),
    };
    let marks = Marks {
        dscp: Some(packet.dscp),
        ..tagged
    };
    if packet.protocol != ip::UDP || packet.fragment {
        return visitor.other(marks);
    }
    // Header and stamp by one look at the end of the frame, where it is long enough for both.
    let whole = frame.part::<{ udp::LEN + stamp::LEN }>(packet.payload);
    let datagram = match whole {
        Some(whole) => udp::read(whole.inner::<0, { udp::LEN }>(), &packet),
        None => udp::parse(frame, &packet),
    };
    let datagram = match datagram {
        Ok(datagram) => datagram,
        Err(reason) => return visitor.malformed(marks, reason),
    };
    if datagram.destination != stamp::UDP_PORT {
        return visitor.other(marks);
    }
    let stamp = match whole {
        Some(whole) if datagram.length >= udp::LEN + stamp::LEN => {
            Stamp::read(whole.inner::<{ udp::LEN }, { stamp::LEN }>())
        }
        _ => Err(stamp::DamagedStamp),
    };
    match stamp {
        Ok(stamp) => visitor.test(
            marks,
            stamp,
            Datagram {
                ip: packet,
                udp: datagram,
            },
        ),
        Err(stamp::DamagedStamp) => visitor.malformed(marks, Malformed::Stamp),
    }
}
