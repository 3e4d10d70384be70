//! The XDP program `responder`: takes the RoCEv2 packets for the tester's queue pair off the wire,
//! and keeps them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use aya::maps::{Array, MapData, PerCpuArray, RingBuf};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use pfc_ebpf::abi::responder::{ABI_VERSION, Config, Counters, Record, SNAP_LEN, name};
use pfc_ebpf::units::Nanos;

use super::object::{Interface, Program, by_cpu, over_cpus};
use super::pod::Plain;
use super::verifier_log;
use super::{TestResult, XdpError, XdpMode};

/// Made by `cargo xtask build-ebpf`; empty where the tool was built without.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/responder"));
/// The program in it.
const NAME: &str = "responder";

/// A loaded program with its maps. Dropping it detaches it; so does the end of the process.
pub struct Responder {
    program: Program,
    config: Array<MapData, Plain<Config>>,
    counters: PerCpuArray<MapData, Plain<Counters>>,
    records: RingBuf<MapData>,
}

/// A frame that was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFrame {
    /// Time of arrival, CLOCK_MONOTONIC.
    pub time: Nanos,
    /// Its length, without FCS.
    pub length: u32,
    /// Its first octets: all of them up to [`SNAP_LEN`].
    pub octets: Vec<u8>,
}

impl Responder {
    /// Loads a program and attaches it to `interface` of the calling thread's network namespace. It
    /// lets everything pass until [`Responder::configure`].
    pub fn attach(interface: &str, mode: XdpMode) -> Result<Self, XdpError> {
        let interface = Interface::find(interface)?;
        let mut responder = Self::load()?;
        responder.program.attach(&interface, mode)?;
        Ok(responder)
    }

    /// Loads a program without attaching it: it sees the frames of [`Responder::test_run`] alone.
    pub fn load() -> Result<Self, XdpError> {
        let mut program = Program::load(OBJECT, NAME, ABI_VERSION, &mut verifier_log::loader())?;
        Ok(Self {
            config: program.map(name::CONFIG)?,
            counters: program.map(name::COUNTERS)?,
            records: program.map(name::RECORDS)?,
            program,
        })
    }

    /// `driver` or `skb`; `none` where it is not attached.
    pub fn mode(&self) -> &'static str {
        self.program.mode()
    }

    /// Begins anew: counters and records are gone, then packets for `queue_pair` (24 bits) are
    /// dropped and recorded.
    ///
    /// Frames that arrive meanwhile pass and are not counted.
    pub fn configure(&mut self, queue_pair: u32) -> Result<(), XdpError> {
        // The program stops at another ABI, and begins by a last write that changes nothing else.
        self.config
            .set(0, Plain(Config { abi: 0, queue_pair }), 0)?;
        self.counters.set(0, by_cpu(|_| Counters::ZERO)?, 0)?;
        while self.records.next().is_some() {}
        self.config.set(
            0,
            Plain(Config {
                abi: ABI_VERSION,
                queue_pair,
            }),
            0,
        )?;
        Ok(())
    }

    /// Takes the frames that were dropped, in the order of their arrival; later calls give later
    /// ones.
    pub fn records(&mut self) -> Result<Vec<RecordedFrame>, XdpError> {
        let mut frames = Vec::new();
        while let Some(record) = self.records.next() {
            frames.push(Plain::read(&record).map(recorded).ok_or(XdpError::Record {
                expected: size_of::<Record>(),
                found: record.len(),
            })?);
        }
        // Several CPUs take their time before they take their place in the ring.
        frames.sort_by_key(|frame| frame.time);
        Ok(frames)
    }

    /// Waits until there is a record, at most for `timeout`; false where there is none. A signal
    /// may end it sooner.
    pub fn wait(&self, timeout: Duration) -> Result<bool, XdpError> {
        let mut files = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut files, Some(timeout.into()), None) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(XdpError::Wait(io::Error::from(error))),
        }
    }

    /// Counts of the program, over all CPUs.
    pub fn counters(&self) -> Result<Counters, XdpError> {
        over_cpus(&self.counters, 0, Counters::ZERO, Counters::merge)
    }

    /// Runs the program `repeat` times on `frame`, which counts as if it had arrived so often. The
    /// kernel takes no frame of less than 14 octets here.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> Result<TestResult, XdpError> {
        self.program.test_run(frame, repeat)
    }
}

/// Readable while there is a record: for those who wait for something else at the same time.
impl AsFd for Responder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.records.as_fd()
    }
}

fn recorded(record: Record) -> RecordedFrame {
    let captured = (record.captured as usize).min(SNAP_LEN);
    RecordedFrame {
        time: record.time,
        length: record.length,
        octets: record.octets[..captured].to_vec(),
    }
}
