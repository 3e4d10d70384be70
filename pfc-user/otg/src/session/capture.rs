//! Captures as files.

use std::borrow::Cow;
use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};
use prost_reflect::DynamicMessage;
use validator_core::engine::plan::{Keeps, PortIndex};
use validator_core::engine::{Captured, CapturedFrame};

use super::{Session, Warnings, read};
use crate::error::Refusal;
use crate::translate::{Capture, Format};

/// Octets of a frame that a file may have.
const LONGEST: u32 = 65_535;
/// Octets of a piece of a file, or a frame more: well below the 4 MiB that clients of gRPC take.
const PIECE: usize = 1 << 20;
/// Octets of the frame check sequence.
const FCS: u8 = 4;
/// Octets of pcap beside each frame's.
const RECORD: u64 = 16;
/// Octets of a block of pcapng beside the frame's, which end at a multiple of four.
const BLOCK: u64 = 32;

impl Session {
    /// The file of what a port has captured.
    ///
    /// # Errors
    ///
    /// A port that is unknown, or has captured nothing yet.
    pub fn captured(&mut self, request: &DynamicMessage) -> Result<File, Refusal> {
        let (port, capture) = read(request, |reader| {
            if let Some(packets) = reader.child("packets") {
                packets.chooses("all", "it needs files of a part of a capture; all is");
            }
            let name = reader.required("port_name")?;
            let ports = &self.force.ports;
            let port = ports.iter().position(|port| port.name == name);
            let port = reader.or_error("port_name", port, || {
                format!("is \"{name}\", which is no port of the configuration in force")
            })?;
            let capture = reader.or_error("port_name", ports[port].capture, || {
                format!("is \"{name}\", which no capture of the configuration has")
            })?;
            Some((PortIndex(port), capture))
        })?;
        // The model has it that a capture is whole when it is read.
        self.engine.capture(&[port], false)?;
        let name = &self.force.ports[port.0].name;
        let Some(captured) = self.engine.captured(port)? else {
            return Err(Refusal::validation(format!(
                "port_name: {name} has captured nothing: start its capture first"
            )));
        };
        if captured.missed > 0 {
            (self.warn)(&overflow(name, capture, captured.missed));
        }
        File::new(&captured, capture, name)
            .map_err(|error| Refusal::internal(format!("cannot write the capture: {error}")))
    }

    /// A warning for each of these ports whose capture outgrew its memory.
    ///
    /// # Errors
    ///
    /// Counts that the engine cannot read.
    pub(super) fn overflows(&mut self, ports: &[PortIndex]) -> Result<Warnings, Refusal> {
        let counts = self.engine.snapshot()?.ports;
        let warnings = ports.iter().filter_map(|port| {
            let names = &self.force.ports[port.0];
            let missed = counts.get(port.0)?.capture_missed;
            (missed > 0).then(|| Some(overflow(&names.name, names.capture?, missed)))?
        });
        Ok(warnings.collect())
    }
}

/// Warns of a capture that outgrew its memory.
fn overflow(port: &str, capture: Capture, missed: u64) -> String {
    let keeps = match capture.keeps {
        Keeps::First => "first",
        Keeps::Newest => "newest",
    };
    format!(
        "the capture of port {port} lacks {missed} frames, which found no room, and keeps the \
         {keeps}; send less, or stop it earlier"
    )
}

/// The file of a capture, made piece by piece, as it is never needed in one.
pub struct File {
    frames: Arc<Vec<CapturedFrame>>,
    next: usize,
    writer: Writer,
    written: Written,
    /// Octets of the whole file.
    pub octets: u64,
}

/// Writes one more frame.
type Writer = Box<dyn FnMut(&CapturedFrame) -> Result<(), PcapError> + Send>;

/// Octets that a writer has written, and that have not been taken yet.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn get(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Written {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.get().extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl File {
    /// Makes the file of a port's capture.
    ///
    /// # Errors
    ///
    /// Errors of the writer.
    pub fn new(captured: &Captured, capture: Capture, port: &str) -> Result<Self, PcapError> {
        let snaplen = capture.octets.unwrap_or(LONGEST).min(LONGEST);
        let written = Written::default();
        let writer = match capture.format {
            Format::Pcap => pcap(written.clone(), snaplen)?,
            Format::PcapNg => pcapng(written.clone(), snaplen, port)?,
        };
        let lengths = captured.frames.iter().map(|frame| {
            let whole = frame.octets.len() as u64 + u64::from(FCS);
            let octets = whole.min(u64::from(snaplen));
            match capture.format {
                Format::Pcap => RECORD + octets,
                Format::PcapNg => BLOCK + octets.next_multiple_of(4),
            }
        });
        let octets = written.get().len() as u64 + lengths.sum::<u64>();
        Ok(Self {
            frames: Arc::clone(&captured.frames),
            next: 0,
            writer,
            written,
            octets,
        })
    }
}

impl Iterator for File {
    type Item = Result<Bytes, PcapError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.next < self.frames.len() && self.written.get().len() < PIECE {
            let frame = &self.frames[self.next];
            self.next += 1;
            if let Err(error) = (self.writer)(frame) {
                self.next = self.frames.len();
                self.written.get().clear();
                return Some(Err(error));
            }
        }
        let piece = mem::take(&mut *self.written.get());
        (!piece.is_empty()).then(|| Ok(piece.into()))
    }
}

fn pcap(written: Written, snaplen: u32) -> Result<Writer, PcapError> {
    let header = PcapHeader {
        snaplen,
        datalink: DataLink::ETHERNET,
        ts_resolution: TsResolution::NanoSecond,
        // Some readers know no other order, among them that of the conformance suite.
        endianness: Endianness::Little,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(written, header)?;
    Ok(Box::new(move |frame: &CapturedFrame| {
        let (octets, length) = whole(frame, snaplen);
        let packet = PcapPacket::new(since_1970(frame), length, &octets);
        writer.write_packet(&packet).map(drop)
    }))
}

fn pcapng(written: Written, snaplen: u32, port: &str) -> Result<Writer, PcapError> {
    let mut writer = PcapNgWriter::new(written)?;
    let interface = InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen,
        options: vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(port)),
            InterfaceDescriptionOption::IfTsResol(9),
            InterfaceDescriptionOption::IfFcsLen(FCS),
        ],
    };
    writer.write_block(&interface.into_block())?;
    Ok(Box::new(move |frame: &CapturedFrame| {
        let (octets, original_len) = whole(frame, snaplen);
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: since_1970(frame),
            original_len,
            data: Cow::Owned(octets),
            options: Vec::new(),
        };
        writer.write_block(&block.into_block()).map(drop)
    }))
}

/// A frame with its FCS, which clients expect though NICs keep it; cut, and its whole length.
fn whole(frame: &CapturedFrame, snaplen: u32) -> (Vec<u8>, u32) {
    let mut octets = frame.octets.clone();
    // Sent with the low octet first (IEEE 802.3, 3.2.9).
    octets.extend(crc32fast::hash(&frame.octets).to_le_bytes());
    let length = u32::try_from(octets.len()).unwrap_or(u32::MAX);
    octets.truncate(snaplen as usize);
    (octets, length)
}

fn since_1970(frame: &CapturedFrame) -> Duration {
    frame.at.duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(octets: usize) -> CapturedFrame {
        CapturedFrame {
            at: UNIX_EPOCH + Duration::new(1, 2),
            octets: vec![0; octets],
        }
    }

    fn pieces(frames: Vec<CapturedFrame>, format: Format) -> Vec<Bytes> {
        let captured = Captured {
            frames: frames.into(),
            missed: 0,
        };
        let capture = Capture {
            format,
            octets: None,
            keeps: Keeps::First,
        };
        let file = File::new(&captured, capture, "p1").unwrap();
        file.map(Result::unwrap).collect()
    }

    #[test]
    fn a_pcap_file_has_the_low_octet_first_and_frames_with_their_fcs() {
        let file = pieces(vec![frame(60)], Format::Pcap).concat();
        // The magic of nanoseconds, then version 2.4.
        assert_eq!(file[..8], [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
        let record = [1, 0, 0, 0, 2, 0, 0, 0, 64, 0, 0, 0, 64, 0, 0, 0];
        assert_eq!(file[24..40], record);
        assert_eq!(file.len(), 24 + 16 + 64);
    }

    #[test]
    fn the_length_of_a_file_is_known_before_it_is_written() {
        for format in [Format::Pcap, Format::PcapNg] {
            for kept in [None, Some(62), Some(63), Some(64)] {
                let captured = Captured {
                    frames: (56..64).map(frame).collect::<Vec<_>>().into(),
                    missed: 0,
                };
                let capture = Capture {
                    format,
                    octets: kept,
                    keeps: Keeps::First,
                };
                let file = File::new(&captured, capture, "p1").unwrap();
                let octets = file.octets;
                let whole: usize = file.map(|piece| piece.unwrap().len()).sum();
                assert_eq!(octets, whole as u64, "{format:?} {kept:?}");
            }
        }
    }

    #[test]
    fn a_large_file_comes_in_pieces_and_one_without_frames_has_its_header() {
        for (format, header, beside) in [(Format::Pcap, 24, 16), (Format::PcapNg, 28, 32)] {
            let empty = pieces(Vec::new(), format).concat();
            assert!(empty.len() >= header, "{}", empty.len());
            let file = pieces(vec![frame(60_000); 100], format);
            let lengths: Vec<usize> = file.iter().map(Bytes::len).collect();
            assert_eq!(lengths.len(), 6, "{lengths:?}");
            let (_, whole) = lengths.split_last().unwrap();
            let most = PIECE + 60_004 + beside;
            assert!(whole.iter().all(|length| (PIECE..most).contains(length)));
            assert_eq!(file.concat().len(), empty.len() + 100 * (60_004 + beside));
        }
    }
}
