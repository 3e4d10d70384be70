//! PAUSE and PFC frames for Wireshark, written while they come.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::mem;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pfc_ebpf::abi::watch::HEADERS;

use crate::driver::bpf::watch::ControlFrame;
use crate::driver::kernel::clock;
use crate::output::{PATIENCE, Queue};

/// Frames that are written at once, or left out at once where the reader stalls.
const PIECE: usize = 64;

/// A capture of several ports. It may go to a FIFO: a reader that stalls holds up nothing.
pub struct Capture {
    /// Blocks that are not handed over yet.
    writer: PcapNgWriter<Vec<u8>>,
    file: Queue,
    /// The time of day at CLOCK_MONOTONIC 0.
    boot: Duration,
}

impl Capture {
    /// Begins a capture of `interfaces`, which go by their places from then on. What can be read of
    /// it is in the file then.
    pub fn begin(path: &Path, interfaces: &[&str]) -> io::Result<Self> {
        let mut writer = PcapNgWriter::new(Vec::new()).map_err(io::Error::other)?;
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
        let mut file = open(path)?;
        file.write_all(&mem::take(writer.get_mut()))?;
        // From here on a thread waits for the reader.
        fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_err(io::Error::other)?;
        Ok(Self {
            writer,
            file: Queue::new(file),
            boot: now.saturating_sub(Duration::from_nanos(clock::now())),
        })
    }

    /// Adds frames of the interface at that place. Returns how many were left out because the
    /// reader is too slow.
    pub fn write(&mut self, interface: usize, frames: &[ControlFrame]) -> io::Result<u64> {
        let mut left_out = 0;
        for frames in frames.chunks(PIECE) {
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
            if !self.file.put(mem::take(self.writer.get_mut())) {
                left_out += frames.len() as u64;
            }
        }
        self.is_written().map(|()| left_out)
    }

    /// Waits until the rest is in the file, for as long as its reader takes something and `goes_on`
    /// says so. Returns true if all is there.
    pub fn finish(mut self, goes_on: impl FnMut() -> bool) -> io::Result<bool> {
        let is_all = self.file.finish(PATIENCE, goes_on);
        self.is_written().map(|()| is_all)
    }

    /// The error that ended the file, if there was one. A reader that is gone is one, too.
    fn is_written(&self) -> io::Result<()> {
        if !self.file.is_closed() {
            return Ok(());
        }
        let failure = self.file.failure();
        Err(failure.unwrap_or_else(|| io::ErrorKind::BrokenPipe.into()))
    }
}

/// Opens the file and empties it. Waits for no reader of a FIFO, and follows no symbolic link.
fn open(path: &Path) -> io::Result<File> {
    let mut flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    flags.set(OFlag::O_NOFOLLOW, !is_descriptor(path));
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(flags.bits())
        .open(path);
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other(
            "expected a file, found a symbolic link; name the file that it leads to",
        ),
        Some(libc::ENXIO) => io::Error::other(
            "expected a file, found a FIFO that nobody reads; start its reader first",
        ),
        _ => error,
    })
}

/// True for a descriptor of this process, such as `/dev/fd/63` of a shell's `>(...)`: a link, but
/// one that nobody else can make.
fn is_descriptor(path: &Path) -> bool {
    let own = fs::canonicalize("/proc/self/fd").ok();
    let folder = path
        .parent()
        .and_then(|folder| fs::canonicalize(folder).ok());
    folder.is_some() && folder == own
}
