//! PAUSE and PFC frames for Wireshark, written while they come.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pfc_ebpf::abi::watch::HEADERS;

use crate::driver::bpf::watch::ControlFrame;
use crate::driver::kernel::clock;

/// A capture of several ports.
pub struct Capture<W: Write> {
    writer: PcapNgWriter<W>,
    /// The time of day at CLOCK_MONOTONIC 0.
    boot: Duration,
}

impl<W: Write> Capture<W> {
    /// Begins a capture of `interfaces`, which go by their places from then on. What can be read of
    /// it is in the file then.
    pub fn begin(out: W, interfaces: &[&str]) -> io::Result<Self> {
        let mut writer = PcapNgWriter::new(out).map_err(io::Error::other)?;
        for name in interfaces {
            let options = vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(9),
            ];
            let block = InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: HEADERS as u32 + 4,
                options,
            };
            writer
                .write_block(&block.into_block())
                .map_err(io::Error::other)?;
        }
        writer.get_mut().flush()?;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_err(io::Error::other)?;
        Ok(Self {
            writer,
            boot: now.saturating_sub(Duration::from_nanos(clock::now())),
        })
    }

    /// Adds frames of the interface at that place, and makes sure that they are in the file.
    pub fn write(&mut self, interface: usize, frames: &[ControlFrame]) -> io::Result<()> {
        for frame in frames {
            let block = EnhancedPacketBlock {
                interface_id: interface as u32,
                timestamp: self.boot + Duration::from_nanos(frame.time),
                original_len: frame.length,
                data: Cow::Borrowed(&frame.octets),
                options: Vec::new(),
            };
            self.writer
                .write_block(&block.into_block())
                .map_err(io::Error::other)?;
        }
        if frames.is_empty() {
            Ok(())
        } else {
            self.writer.get_mut().flush()
        }
    }
}
