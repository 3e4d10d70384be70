//! Reads any frame of a port for `watch`, by whomever it was sent, and counts it.

use crate::abi::Trust;
use crate::abi::watch::{Config, Counters, Hidden, Untold, Volume};
use crate::stamp::{self, Stamp};
use crate::wire::mac_control::MacControl;
use crate::wire::roce::{self, Bth};
use crate::wire::segment::{self, Headers};
use crate::wire::{Malformed, Octets, ethernet, ip, udp};

/// A VLAN tag that a NIC or the kernel took out of the frame, and keeps beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// TPID.
    pub tpid: u16,
    /// PCP, DEI and VLAN id.
    pub tci: u16,
}

/// Content of a PAUSE or PFC frame. Every field has a value whatever the frame is, for the verifier
/// refuses to see an undefined part of a value moved, which the compiler makes of an enum's other
/// variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// PFC; else PAUSE, whose time is the first of `quanta`.
    pub pfc: bool,
    /// The class-enable vector of PFC as it stands in the frame; 0 for PAUSE.
    pub vector: u16,
    /// Times of priorities 0 to 7.
    pub quanta: [u16; 8],
}

impl From<MacControl> for Pauses {
    #[inline(always)]
    fn from(control: MacControl) -> Self {
        match control {
            MacControl::Pause { quanta } => Self {
                pfc: false,
                vector: 0,
                quanta: [quanta, 0, 0, 0, 0, 0, 0, 0],
            },
            MacControl::Pfc { vector, quanta } => Self {
                pfc: true,
                vector,
                quanta,
            },
        }
    }
}

/// Content of a frame, as far as it is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// PAUSE or PFC.
    Control(Pauses),
    /// A RoCEv2 packet.
    Roce {
        /// Operation of the BTH.
        opcode: u8,
    },
    /// A test frame of the validator, with a whole stamp.
    Stamped(Stamp),
    /// A packet whose transport is not looked for, as this stands before it.
    Hidden(Hidden),
    /// Anything else that can be read.
    Other,
    /// Could not be read.
    Malformed(Malformed),
}

/// Fields of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// DSCP, 0 to 63.
    pub dscp: u8,
    /// ECN field, 0 to 3.
    pub ecn: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Offset of the payload.
    pub payload: usize,
}

/// Fields that were read of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// VLAN tags, 0 to 2; 0 where they could not be read.
    pub tags: u8,
    /// PCP of the outermost tag, 0 to 7.
    pub pcp: Option<u8>,
    /// Offset of what follows the EtherType; 0 where it could not be read.
    pub network: usize,
    /// A whole IP header.
    pub ip: Option<Ip>,
    /// The rest.
    pub content: Content,
}

impl Observed {
    /// The priority, 0 to 7, as `config` tells it.
    #[inline(always)]
    pub const fn priority(&self, config: &Config) -> Option<u8> {
        if config.trust == Trust::Pcp as u8 {
            return self.pcp;
        }
        match self.ip {
            // The mask says to the verifier what the parser guarantees.
            Some(ip) => Some(config.dscp_to_priority[ip.dscp as usize & 63]),
            None => None,
        }
    }
}

/// Reads a frame with the tag that stands beside it, if one does.
///
/// Other than [`crate::classify::visit`] it sums no payload, and takes a frame to the test port
/// with a damaged stamp for any sender's.
#[inline(always)]
pub fn observe(frame: &(impl Octets + ?Sized), beside: Option<Tag>) -> Observed {
    let unread = |reason| Observed {
        tags: 0,
        pcp: None,
        network: 0,
        ip: None,
        content: Content::Malformed(reason),
    };
    let header = match ethernet::parse(frame) {
        Ok(header) => header,
        Err(reason) => return unread(reason),
    };
    let (tags, pcp) = match beside {
        Some(_) if header.tags == 2 => return unread(Malformed::TooManyTags),
        Some(tag) => (header.tags + 1, Some((tag.tci >> 13) as u8)),
        None => (
            header.tags,
            if header.tags > 0 {
                Some(header.pcp)
            } else {
                None
            },
        ),
    };
    let at = header.payload;
    let (packet, traffic_class) = match header.ethertype {
        ethernet::IPV4 => (ip::parse_v4(frame, at), frame.word(at)),
        ethernet::IPV6 => (
            ip::parse_v6(frame, at),
            frame.word(at).map(|word| word >> 4),
        ),
        ethernet::MAC_CONTROL => {
            return Observed {
                tags,
                pcp,
                network: at,
                ip: None,
                content: control(frame, tags),
            };
        }
        _ => {
            return Observed {
                tags,
                pcp,
                network: at,
                ip: None,
                content: Content::Other,
            };
        }
    };
    match packet {
        Ok(packet) => {
            let ecn = traffic_class.unwrap_or(0) as u8 & 3;
            let ip = Ip {
                dscp: packet.dscp,
                ecn,
                protocol: packet.protocol,
                payload: packet.payload,
            };
            Observed {
                tags,
                pcp,
                network: at,
                ip: Some(ip),
                content: datagram(frame, &packet),
            }
        }
        Err(reason) => Observed {
            tags,
            pcp,
            network: at,
            ip: None,
            content: Content::Malformed(reason),
        },
    }
}

#[inline(always)]
fn control(frame: &(impl Octets + ?Sized), tags: u8) -> Content {
    if tags > 0 {
        return Content::Malformed(Malformed::ControlTagged);
    }
    match MacControl::parse(frame) {
        Ok(control) => Content::Control(control.into()),
        Err(reason) => Content::Malformed(reason),
    }
}

#[inline(always)]
fn datagram(frame: &(impl Octets + ?Sized), packet: &ip::Header) -> Content {
    if packet.fragment {
        return Content::Hidden(Hidden::Fragment);
    }
    if packet.protocol != ip::UDP {
        return match hidden(packet.protocol) {
            Some(Hidden::Extension) if is_big_tcp(frame, packet) => Content::Other,
            Some(hidden) => Content::Hidden(hidden),
            None => Content::Other,
        };
    }
    let datagram = match udp::parse(frame, packet) {
        Ok(datagram) => datagram,
        Err(reason) => return Content::Malformed(reason),
    };
    let at = packet.payload + udp::LEN;
    let length = datagram.length - udp::LEN;
    if datagram.destination == roce::UDP_PORT && length >= Bth::LEN + roce::ICRC {
        if let Some([opcode]) = frame.get(at) {
            return Content::Roce { opcode };
        }
    } else if datagram.destination == stamp::UDP_PORT
        && length >= stamp::LEN
        && let Some(octets) = frame.part::<{ stamp::LEN }>(at)
        && let Ok(stamp) = Stamp::read(octets)
    {
        return Content::Stamped(stamp);
    } else if segment::is_tunnel(datagram.destination) {
        return Content::Hidden(Hidden::Tunnel);
    }
    Content::Other
}

/// Returns what hides the transport, by the number of what follows the IP header.
#[inline(always)]
const fn hidden(protocol: u8) -> Option<Hidden> {
    match protocol {
        segment::FRAGMENT => Some(Hidden::Fragment),
        _ if segment::is_extension(protocol) => Some(Hidden::Extension),
        _ if segment::is_encapsulation(protocol) => Some(Hidden::Tunnel),
        _ => None,
    }
}

/// Returns true for TCP behind a hop-by-hop header with which no frame leaves.
#[inline(always)]
fn is_big_tcp(frame: &(impl Octets + ?Sized), packet: &ip::Header) -> bool {
    frame.is_merged()
        && packet.protocol == segment::HOP_BY_HOP
        && matches!(frame.get(packet.payload), Some(header) if segment::is_jumbo(&header))
}

/// Frames that offloads may have merged into one packet, as the stack holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Octets of payload of each frame but the last; 0: the packet is one frame.
    pub gso_size: u64,
    /// Number of frames; 0 where the stack does not know.
    pub gso_segs: u64,
    /// Headers of each; `None` where they could not be read.
    pub headers: Option<Headers>,
}

impl Merged {
    /// Frames and octets on the wire of a packet of `length` octets, each frame of which has
    /// `beside` more: offloads merge frames before it comes here, and cut it after it has left.
    #[inline(always)]
    pub fn volume(&self, length: u64, beside: u64) -> (Volume, Option<Untold>) {
        let whole = |frames| Volume {
            frames,
            octets: length + frames * beside,
        };
        if self.gso_size == 0 {
            return (whole(1), None);
        }
        if let Some(Headers { repeated, removed }) = self.headers
            && let Some(payload) = length.checked_sub((repeated + removed) as u64)
        {
            let frames = payload.div_ceil(self.gso_size);
            if frames > 0 && (self.gso_segs == 0 || self.gso_segs == frames) {
                let octets = payload + frames * (repeated as u64 + beside);
                return (Volume { frames, octets }, None);
            }
        }
        match self.gso_segs {
            0 => (whole(1), Some(Untold::Number)),
            known => (whole(known), Some(Untold::Headers)),
        }
    }
}

impl Counters {
    /// Counts what was observed: one frame, or as many as `volume` says that were merged into one.
    #[inline(always)]
    pub fn add(&mut self, config: &Config, frame: &Observed, volume: Volume) {
        let frames = volume.frames;
        self.total.add(volume);
        let priority = frame.priority(config);
        // The masks say to the verifier what the parsers guarantee.
        match priority {
            Some(priority) => self.by_priority[priority as usize & 7].add(volume),
            None => self.no_priority.add(volume),
        }
        if let Some(pcp) = frame.pcp {
            self.by_pcp[pcp as usize & 7].add(volume);
            self.double_tagged += if frame.tags == 2 { frames } else { 0 };
        }
        let mut ce = false;
        if let Some(ip) = frame.ip {
            self.by_dscp[ip.dscp as usize & 63].add(volume);
            self.by_ecn[ip.ecn as usize & 3] += frames;
            ce = ip.ecn == 3;
            if ce && let Some(priority) = priority {
                self.ce[priority as usize & 7] += frames;
            }
        }
        match frame.content {
            Content::Control(control) => self.control(&control),
            Content::Roce { opcode } => {
                self.roce.add(volume);
                self.roce_ce += if ce { frames } else { 0 };
                self.by_opcode[opcode as usize] += frames;
            }
            Content::Stamped(_) => self.stamped += frames,
            Content::Hidden(hidden) => {
                if let Some(count) = self.hidden.get_mut(hidden as usize) {
                    *count += frames;
                }
            }
            Content::Other => {}
            Content::Malformed(reason) => {
                if let Some(count) = self.malformed.get_mut(reason as usize) {
                    *count += frames;
                }
            }
        }
    }

    #[inline(always)]
    fn control(&mut self, control: &Pauses) {
        if !control.pfc {
            return self.pause.add(control.quanta[0]);
        }
        self.pfc_frames += 1;
        self.pfc_empty += (control.vector & 0xff == 0) as u64;
        let mut priority = 0;
        while priority < 8 {
            if control.vector & (1 << priority) != 0 {
                self.pfc[priority].add(control.quanta[priority]);
            }
            priority += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(
        length: u64,
        gso: [u64; 2],
        headers: Option<[usize; 2]>,
    ) -> ([u64; 2], Option<Untold>) {
        let headers = headers.map(|[repeated, removed]| Headers { repeated, removed });
        let [gso_size, gso_segs] = gso;
        let merged = Merged {
            gso_size,
            gso_segs,
            headers,
        };
        let (Volume { frames, octets }, untold) = merged.volume(length, 4);
        ([frames, octets], untold)
    }

    #[test]
    fn the_number_behind_the_ip_header_tells_what_hides_a_transport() {
        let mut frame = [&[2; 12][..], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 8], &[0; 42]].concat();
        let mut numbers = [const { Vec::new() }; Hidden::COUNT];
        for number in 0..=u8::MAX {
            frame[20] = number;
            if let Content::Hidden(hidden) = observe(&frame[..], None).content {
                numbers[hidden as usize].push(number);
            }
        }
        let [extension, fragment, tunnel] = numbers;
        assert_eq!(extension, [0, 43, 50, 51, 60, 135, 139, 140, 253, 254]);
        assert_eq!(fragment, [44]);
        assert_eq!(tunnel, [4, 41, 47, 97, 108, 115, 137, 143]);
    }

    #[test]
    fn each_frame_of_a_merged_packet_has_the_headers_that_are_repeated() {
        // 3000 octets of payload behind 104 of headers, beside a tag of 4.
        let of = |gso| volume(3104, gso, Some([104, 0]));
        assert_eq!(of([0, 0]), ([1, 3108], None), "none is merged");
        for segments in [0, 3] {
            let three = ([3, 3000 + 3 * 108], None);
            assert_eq!(of([1000, segments]), three);
            assert_eq!(of([1400, segments]), three);
        }
        assert_eq!(of([3000, 1]), ([1, 3108], None));
        let jumbo = volume(3082, [1000, 3], Some([74, 8]));
        assert_eq!(jumbo, ([3, 3000 + 3 * 78], None));
    }

    #[test]
    fn what_is_not_known_of_a_merged_packet_has_a_reason() {
        let known = ([3, 3104 + 12], Some(Untold::Headers));
        let unknown = ([1, 3108], Some(Untold::Number));
        for (headers, gso_size) in [
            (None, 1000),
            // Another number of frames than the stack knows.
            (Some([54, 0]), 1000),
            (Some([104, 0]), 1501),
            // No payload is left.
            (Some([3104, 0]), 1000),
            (Some([3000, 105]), 1000),
        ] {
            assert_eq!(volume(3104, [gso_size, 3], headers), known, "{headers:?}");
        }
        for headers in [None, Some([3104, 0]), Some([3000, 105])] {
            assert_eq!(volume(3104, [1000, 0], headers), unknown, "{headers:?}");
        }
    }
}
