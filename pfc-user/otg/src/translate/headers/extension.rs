//! Extension headers of IPv6: the segment routing header is the one that the model knows.

use validator_core::engine::packet::{Header, Protocol};

use super::field;
use crate::reader::Reader;

/// Most segments: the header's length in units of 8 octets has 8 bits.
const SEGMENTS: usize = 127;

/// Reads an extension header: the segment routing header, and one more header for each segment.
pub fn read(reader: &Reader<'_>) -> Vec<Header> {
    if !reader.chooses("routing", "routing is") {
        return Vec::new();
    }
    let routing = reader.object("routing");
    let needs = "segment_routing is; write the addresses that the segments make";
    if !routing.chooses("segment_routing", needs) {
        return Vec::new();
    }
    let object = routing.object("segment_routing");
    let mut header = Header::new(Protocol::SegmentRouting);
    for object in [reader, &object, &object.object("flags")] {
        field::add(&mut header, object);
    }
    let list = object.children("segment_list");
    if !(1..=SEGMENTS).contains(&list.len()) {
        let text = format!("must have 1 to {SEGMENTS} segments, found {}", list.len());
        object.error("segment_list", text);
    }
    let mut headers = vec![header];
    for reader in list {
        let mut segment = Header::new(Protocol::Segment);
        field::add(&mut segment, &reader);
        headers.push(segment);
    }
    headers
}
