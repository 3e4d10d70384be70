//! Frames of a packet: the octets common to all are made once, the rest by frame.

mod filler;
#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;

use pfc_ebpf::flow_stamp::{FlowStamp, Form, INNER_FCS, LEN, SHORT_LEN};
use pfc_ebpf::wire::mac_control::number;
use pfc_ebpf::wire::{fold, sum_of_words};

use self::filler::Filler;
use super::table::{LeftAlone, Place};
use super::value::mask;
use super::{Header, Packet, Payload, Protocol, Value, vlan};

/// Makes the frames of a packet, which has to have no defects ([`Packet::check`]).
#[derive(Clone, Debug)]
pub struct Template {
    /// The headers, with all octets that are the same in each frame.
    headers: Vec<u8>,
    walks: Vec<Walk>,
    lengths: Vec<Rest>,
    /// Innermost first: outer ones cover inner ones.
    sums: Vec<Sum>,
    payload: Payload,
    filler: Arc<Filler>,
    /// Octets at the end behind the stamp.
    tail: usize,
    stamp: Option<Form>,
    pause: bool,
}

/// A field that differs from frame to frame.
#[derive(Clone, Debug)]
struct Walk {
    /// Highest bit of the field, from the begin of the frame.
    bit: usize,
    bits: usize,
    value: Value,
}

/// A field with a length.
#[derive(Clone, Copy, Debug)]
struct Rest {
    at: usize,
    /// Octet of the frame at which the count begins.
    begin: usize,
    /// Octets of the frame behind the end of the count.
    tail: usize,
}

/// A field with a checksum.
#[derive(Clone, Debug)]
struct Sum {
    at: usize,
    begin: usize,
    tail: usize,
    covers: Covers,
    /// Wrong on purpose.
    bad: bool,
}

#[derive(Clone, Copy, Debug)]
enum Covers {
    /// Header of this many octets.
    Header(usize),
    /// Everything up to the end.
    Payload {
        pseudo: Option<Pseudo>,
        /// 0 stands for no checksum (RFC 768).
        zero_is_none: bool,
    },
}

/// A pseudo-header.
#[derive(Clone, Copy, Debug)]
struct Pseudo {
    source: usize,
    destination: usize,
    /// Octets of an address.
    octets: usize,
    protocol: u16,
}

impl Template {
    /// Makes the template of a packet whose frames have such a stamp; `next_hops` are, in turn, the
    /// destinations of its Ethernet header where those are left alone.
    pub fn new(packet: &Packet, next_hops: &[[u8; 6]], stamp: Option<Form>) -> Self {
        let mut template = Self {
            headers: vec![0; packet.header_octets()],
            walks: Vec::new(),
            lengths: Vec::new(),
            sums: Vec::new(),
            payload: packet.payload.clone(),
            filler: Filler::of(&packet.payload),
            tail: packet.inner_fcs(),
            stamp: stamp.filter(|_| !packet.is_pause()),
            pause: packet.is_pause(),
        };
        let mut begin = 0;
        let mut tail = 0;
        for (place, header) in packet.headers.iter().enumerate() {
            let placed = Placed {
                packet,
                place,
                begin,
                tail,
            };
            template.add(&placed, header);
            begin += header.length();
            if header.protocol == Protocol::Vxlan {
                tail += INNER_FCS;
            }
        }
        if let Some(first) = packet.headers.first()
            && first.protocol == Protocol::Ethernet
            && !next_hops.is_empty()
            && !first.fields.iter().any(|(name, _)| *name == "dst")
        {
            let macs = next_hops.iter().map(|mac| u128::from(number(*mac)));
            template.set(0, 48, &Value::of_each(macs));
        }
        template.sums.reverse();
        template
    }

    fn add(&mut self, placed: &Placed<'_>, header: &Header) {
        let Some(table) = header.protocol.table() else {
            let end = placed.begin + header.octets.len();
            self.headers[placed.begin..end].copy_from_slice(&header.octets);
            return;
        };
        for field in table.fields {
            let Place::Here(at) = field.place else {
                continue;
            };
            let bit = placed.begin * 8 + at;
            match header.field(field.name) {
                Some(Value::Bad) => self.compute(placed, field.left_alone, bit, field.bits, true),
                Some(value) => self.set(bit, field.bits, value),
                None => self.compute(placed, field.left_alone, bit, field.bits, false),
            }
        }
    }

    /// Sets a field to a value.
    fn set(&mut self, bit: usize, bits: usize, value: &Value) {
        match value.constant(bits) {
            Some(constant) => put(&mut self.headers, bit, bits, constant),
            None => self.walks.push(Walk {
                bit,
                bits,
                value: value.clone(),
            }),
        }
    }

    /// Computes a field that is left alone; `bad`: a checksum that is wrong on purpose.
    fn compute(
        &mut self,
        placed: &Placed<'_>,
        left_alone: LeftAlone,
        bit: usize,
        bits: usize,
        bad: bool,
    ) {
        let (at, begin, tail) = (bit / 8, placed.begin, placed.tail);
        let next = placed.next();
        let protocol = next.map(|header| header.protocol);
        let table = protocol.and_then(Protocol::table);
        let constant = match left_alone {
            LeftAlone::Value(value) => value,
            LeftAlone::EtherType => {
                if let Some(tpid) = next.and_then(|next| next.field(vlan::TPID_FIELD)) {
                    return self.set(bit, bits, tpid);
                }
                // Reserved, and so no protocol's (IEEE 802).
                table.and_then(|table| table.ether_type).unwrap_or(0xffff)
            }
            LeftAlone::Protocol(none) => table.and_then(|table| table.number).unwrap_or(none),
            LeftAlone::Port => table.and_then(|table| table.port).unwrap_or(0),
            LeftAlone::Segments { each, less } => {
                (placed.segments() as u128 * each).saturating_sub(less)
            }
            LeftAlone::Bottom => u128::from(protocol != Some(placed.header().protocol)),
            LeftAlone::Rest(less) => {
                return self.lengths.push(Rest {
                    at,
                    begin: begin + less,
                    tail,
                });
            }
            LeftAlone::HeaderSum | LeftAlone::PayloadSum | LeftAlone::MessageSum => {
                return self.sums.push(Sum {
                    at,
                    begin,
                    tail,
                    covers: placed.covers(left_alone),
                    bad,
                });
            }
        };
        put(&mut self.headers, bit, bits, constant);
    }

    /// True if frames of one length are all the same but for their stamps.
    pub fn is_constant(&self) -> bool {
        self.walks.is_empty()
    }

    /// Octets of all headers.
    pub fn header_octets(&self) -> usize {
        self.headers.len()
    }

    /// Payload behind the headers.
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Form of the frames' stamp.
    pub const fn stamp_form(&self) -> Option<Form> {
        self.stamp
    }

    /// Place of the stamp in a frame of `length` octets without FCS.
    pub fn stamp_at(&self, length: usize) -> Option<usize> {
        self.stamp.map(|form| length - self.tail - form.len())
    }

    /// Writes the stamp into a frame that has room for one.
    pub fn stamp(&self, frame: &mut [u8], stamp: &FlowStamp) {
        let Some(at) = self.stamp_at(frame.len()) else {
            return;
        };
        match self.stamp {
            Some(Form::Short) => frame[at..at + SHORT_LEN].copy_from_slice(&stamp.emit_short()),
            _ => frame[at..at + LEN].copy_from_slice(&stamp.emit()),
        }
    }

    /// Makes frame `number`, of `length` octets without FCS, with zeros in the stamp's place.
    pub fn render(&self, number: u64, length: usize, frame: &mut Vec<u8>) {
        let headers = self.headers.len();
        // The old contents are overwritten; a longer or shorter frame has its end made anew.
        frame.resize(length.max(headers), 0);
        frame[..headers].copy_from_slice(&self.headers);
        let filled = self.filled(length);
        frame[headers..headers + filled].copy_from_slice(self.filler.first(filled));
        frame[headers + filled..].fill(0);
        for walk in &self.walks {
            put(frame, walk.bit, walk.bits, walk.value.at(number, walk.bits));
        }
        for rest in &self.lengths {
            let octets = length.saturating_sub(rest.begin + rest.tail) as u16;
            frame[rest.at..rest.at + 2].copy_from_slice(&octets.to_be_bytes());
        }
        for sum in &self.sums {
            let checksum = self.checksum(frame, sum, filled);
            frame[sum.at..sum.at + 2].copy_from_slice(&checksum.to_be_bytes());
        }
    }

    /// Octets of filler behind the headers.
    fn filled(&self, length: usize) -> usize {
        if self.pause {
            return 0;
        }
        let stamp = self.stamp.map_or(0, Form::len);
        length.saturating_sub(self.headers.len() + self.tail + stamp)
    }

    /// The checksum of a frame in which `filled` octets behind the headers are filler, and those
    /// behind it zero.
    fn checksum(&self, frame: &mut [u8], sum: &Sum, filled: usize) -> u16 {
        frame[sum.at..sum.at + 2].fill(0);
        let headers = self.headers.len();
        let mut zero_is_none = false;
        let total = match sum.covers {
            Covers::Header(octets) => sum_of_words(&frame[sum.begin..sum.begin + octets]),
            Covers::Payload {
                pseudo,
                zero_is_none: none,
            } => {
                zero_is_none = none;
                let filler = self.filler.sum(filled);
                // Behind an odd number of octets, words are summed with their octets swapped.
                let filler = if (headers - sum.begin).is_multiple_of(2) {
                    filler
                } else {
                    filler.swap_bytes()
                };
                let length = frame.len().saturating_sub(sum.begin + sum.tail) as u32;
                let pseudo = pseudo.map_or(0, |pseudo| pseudo.sum(frame, length));
                pseudo + sum_of_words(&frame[sum.begin..headers]) + u32::from(filler)
            }
        };
        let mut checksum = !fold(total);
        if sum.bad {
            // No two numbers that differ so are the same in ones complement.
            checksum ^= 0x0101;
        }
        if zero_is_none && checksum == 0 {
            checksum = if sum.bad { 0x0202 } else { 0xffff };
        }
        checksum
    }
}

/// A header in its packet.
struct Placed<'a> {
    packet: &'a Packet,
    place: usize,
    begin: usize,
    /// Octets behind the end of its packet.
    tail: usize,
}

impl Placed<'_> {
    fn header(&self) -> &Header {
        &self.packet.headers[self.place]
    }

    fn covers(&self, sum: LeftAlone) -> Covers {
        if sum == LeftAlone::HeaderSum {
            return Covers::Header(self.header().length());
        }
        if sum == LeftAlone::MessageSum {
            return Covers::Payload {
                pseudo: None,
                zero_is_none: false,
            };
        }
        let protocol = self.header().protocol;
        let number = protocol.table().and_then(|table| table.number);
        let (source, destination, octets) = self.addresses();
        Covers::Payload {
            pseudo: Some(Pseudo {
                source,
                destination,
                octets,
                protocol: number.unwrap_or(0) as u16,
            }),
            zero_is_none: protocol == Protocol::Udp,
        }
    }

    /// Returns the places of the source and the destination address of the packet's IP header, and
    /// the octets of each. The destination is the final one: the first segment, where segments are
    /// left (RFC 8200, 8.1).
    fn addresses(&self) -> (usize, usize, usize) {
        let (mut at, mut first_segment, mut last) = (self.begin, 0, None);
        for header in self.packet.headers[..self.place].iter().rev() {
            at -= header.length();
            match header.protocol {
                Protocol::Segment => first_segment = at,
                Protocol::SegmentRouting => {
                    if header.field("segments_left") != Some(&Value::Fixed(0)) {
                        last = last.or(Some(first_segment));
                    }
                }
                Protocol::Ipv4 => return (at + 12, at + 16, 4),
                Protocol::Ipv6 => return (at + 8, last.unwrap_or(at + 24), 16),
                _ => break,
            }
        }
        (0, 0, 0)
    }

    /// The header that this one announces.
    fn next(&self) -> Option<&Header> {
        let segments = match self.header().protocol {
            Protocol::SegmentRouting => self.segments(),
            _ => 0,
        };
        self.packet.headers.get(self.place + 1 + segments)
    }

    /// Segments that follow.
    fn segments(&self) -> usize {
        let behind = self.packet.headers[self.place + 1..].iter();
        behind
            .take_while(|header| header.protocol == Protocol::Segment)
            .count()
    }
}

impl Pseudo {
    /// Returns the sum of the pseudo-header, for a payload of `length` octets.
    fn sum(&self, frame: &[u8], length: u32) -> u32 {
        let lengths = (length & 0xffff) + (length >> 16);
        let address = |at: usize| sum_of_words(&frame[at..at + self.octets]);
        address(self.source) + address(self.destination) + u32::from(self.protocol) + lengths
    }
}

/// Writes the low `bits` of `value` from the bit `at` on, which is the highest.
fn put(octets: &mut [u8], at: usize, bits: usize, value: u128) {
    let value = value & mask(bits);
    let (first, end) = (at / 8, at + bits);
    for (place, octet) in octets[first..end.div_ceil(8)].iter_mut().enumerate() {
        let place = first + place;
        // Bits of the field that stand behind this octet, or of the octet that stand behind the
        // field.
        let behind = end as isize - (place as isize + 1) * 8;
        let (part, places) = if behind >= 0 {
            ((value >> behind) as u8, 0xffu8)
        } else {
            ((value << -behind) as u8, 0xff << -behind)
        };
        let before = at.saturating_sub(place * 8);
        let places = places & (0xff >> before);
        *octet = *octet & !places | part & places;
    }
}
