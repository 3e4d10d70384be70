//! Captures for Wireshark of the frames that decided a check: one file for each repetition that has
//! some.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{Block, PcapNgBlock, PcapNgWriter};
use pfc_ebpf::abi::account::{OffenceKind, SNAP_LEN};

use super::pfc;
use crate::evidence::Evidence;
use crate::evidence::pfc::{Offence, PfcEvidence};
use crate::quantity::from_hex;

/// Extension of the files.
pub const EXTENSION: &str = "pcapng";

/// Longest stem of a file's name, below the 255 octets of a name on Linux.
const LONGEST_STEM: usize = 150;

/// The captures of a run: file name, and the repetition that holds the frames. A name fits any
/// folder and belongs to no other capture, however case and repetition are called.
pub fn captures(evidence: &Evidence) -> Vec<(String, &PfcEvidence)> {
    let mut stems = BTreeSet::new();
    let mut captures = Vec::new();
    for case in &evidence.cases {
        for repetition in pfc(case) {
            if !repetition.offences.is_empty() {
                let wanted = file_stem(&format!("{}-{}", case.case, repetition.plan.name));
                let stem = unique(wanted, &mut stems);
                captures.push((format!("{stem}.{EXTENSION}"), repetition));
            }
        }
    }
    captures
}

/// Replaces the characters in `name` that a shell would need quoted by dashes. The result is
/// neither hidden nor empty.
fn file_stem(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric() && !"+.".contains(c));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let joined = words.join("-");
    let shown = joined.trim_start_matches(['.', '-']);
    match &shown[..shown.len().min(LONGEST_STEM)] {
        "" => "unnamed".into(),
        stem => stem.into(),
    }
}

/// Returns `stem`, with a number if it is taken; names that differ in case alone are one name to
/// some file systems.
fn unique(stem: String, taken: &mut BTreeSet<String>) -> String {
    let mut found = stem.clone();
    let mut number = 2;
    while !taken.insert(found.to_ascii_lowercase()) {
        found = format!("{stem}-{number}");
        number += 1;
    }
    found
}

/// Writes the offending frames of a repetition in the order of arrival, with their time of day.
/// `clock` is the time of day at CLOCK_MONOTONIC 0.
pub fn write(out: impl Write, evidence: &PfcEvidence, clock: u64) -> io::Result<()> {
    let name = Cow::Owned(evidence.plan.name.clone());
    let section = SectionHeaderBlock {
        options: vec![SectionHeaderOption::Comment(name)],
        ..Default::default()
    };
    let mut writer = PcapNgWriter::with_section_header(out, section).map_err(io::Error::other)?;
    let mut write = |block: Block<'_>| {
        let written = writer.write_block(&block);
        written.map(drop).map_err(io::Error::other)
    };
    for (name, port) in evidence.ports.iter() {
        let mut options = vec![
            InterfaceDescriptionOption::IfName(Cow::Owned(name.to_string())),
            InterfaceDescriptionOption::IfTsResol(9),
        ];
        if !port.interface.is_empty() {
            let interface = Cow::Borrowed(port.interface.as_str());
            options.push(InterfaceDescriptionOption::IfDescription(interface));
        }
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: SNAP_LEN as u32,
            options,
        };
        write(interface.into_block())?;
    }
    let mut offences: Vec<_> = evidence.offences.iter().collect();
    offences.sort_by_key(|offence| offence.time);
    for offence in offences {
        let mut ports = evidence.ports.iter();
        let port = ports.position(|(name, _)| *name == offence.port);
        let port = port.ok_or_else(|| {
            io::Error::other(format!(
                "an offending frame came in at an unknown port {}",
                offence.port
            ))
        })?;
        write(frame(offence, port as u32, clock)?.into_block())?;
    }
    Ok(())
}

fn frame(offence: &Offence, port: u32, clock: u64) -> io::Result<EnhancedPacketBlock<'static>> {
    let octets = from_hex(&offence.octets).ok_or_else(|| {
        let at = offence.time;
        io::Error::other(format!(
            "offending frame at {at} ns: octets are not hexadecimal"
        ))
    })?;
    let comment = Cow::Borrowed(comment(offence.kind));
    Ok(EnhancedPacketBlock {
        interface_id: port,
        timestamp: Duration::from_nanos(clock.saturating_add(offence.time)),
        original_len: offence.length.into(),
        data: Cow::Owned(octets),
        options: vec![EnhancedPacketOption::Comment(comment)],
    })
}

/// Says why the frame was kept.
fn comment(kind: OffenceKind) -> &'static str {
    match kind {
        OffenceKind::Duplicate => "duplicate: this sequence number had been received",
        OffenceKind::Reordered => "reordered: came after a later frame of its flow",
        OffenceKind::BeyondWindow => "too late to tell whether duplicate or reordered",
        OffenceKind::Corrupt => "corrupt: wrong UDP checksum",
        OffenceKind::Remarked => "re-marked: DSCP or PCP is not what was sent",
        OffenceKind::Logged => "logged: a frame that should not have arrived, or one of a probe",
        OffenceKind::OwnControl => "forwarded: a PAUSE or PFC frame of the tester's own",
        OffenceKind::Altered => "altered: octets behind the stamp are not what was sent",
        OffenceKind::Deviation => "PAUSE or PFC that departs from the standard's form",
        OffenceKind::Resized => "resized: longer or shorter than was sent",
        OffenceKind::Malformed => "malformed",
    }
}
