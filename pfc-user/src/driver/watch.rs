//! The programs of `watch`: attach to a port that carries traffic already, and read what they count.

mod classifier;

use aya::EbpfLoader;
use aya::maps::{Array, MapData, PerCpuArray, RingBuf};
use pfc_ebpf::maps::Trust;
use pfc_ebpf::units::{Dscp, LineRate, Priority};
use pfc_ebpf::watch::{ABI_VERSION, Config, Control, Counters, HEADERS, PauseClock, name};

use self::classifier::Classifier;
pub use self::classifier::Direction;
use super::clock;
use super::xdp::object::{Interface, Program, on_all_cpus};
use super::xdp::plain::Plain;
use super::xdp::words::Words;
use super::xdp::{Mode, TestResult, XdpError};
use crate::plan::Nanos;

/// Made by `cargo xtask build-ebpf`; empty where the tool was built without.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/watch"));
/// The program for XDP.
const NAME: &str = "watch";
/// Classes that can be paused: eight priorities, and the whole link.
pub const CLASSES: usize = Priority::COUNT + 1;
const WORDS_OF_CLOCK: usize = size_of::<PauseClock>() / size_of::<u64>();

/// Where on a port frames are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// All that comes in, before the stack.
    Xdp(Mode),
    /// At tcx: what an XDP program lets pass on the way in, or what the stack sends.
    Tcx(Direction),
}

/// How frames are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What tells the priority.
    pub trust: Trust,
    /// Priority by DSCP.
    pub dscp_map: [Priority; Dscp::COUNT],
    /// Speed of the port, which turns quanta into time.
    pub line_rate: Option<LineRate>,
    /// MAC control frames are kept.
    pub capture: bool,
}

/// What a port has counted since it was attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// CLOCK_MONOTONIC.
    pub time: Nanos,
    /// Counts, over all CPUs.
    pub counters: Counters,
    /// Time paused by PFC by priority, and in the last by 802.3x.
    pub paused: [Nanos; CLASSES],
}

/// A MAC control frame that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlFrame {
    /// When it arrived, CLOCK_MONOTONIC.
    pub time: Nanos,
    /// Octets of the whole frame, without FCS.
    pub length: u32,
    /// Its first octets.
    pub octets: Vec<u8>,
}

/// A program on a port. Dropping it detaches it; so does the end of the process.
pub struct Watch {
    holder: Holder,
    counters: PerCpuArray<MapData, Plain<Counters>>,
    clocks: Words,
    controls: RingBuf<MapData>,
}

enum Holder {
    Xdp(Program),
    Tcx(Classifier),
}

impl Watch {
    /// Loads a program and attaches it to `interface` of the calling thread's network namespace, where it counts at once.
    pub fn attach(interface: &str, point: Point, settings: &Settings) -> Result<Self, XdpError> {
        let found = Interface::find(interface)?;
        let mut watch = Self::load(point, settings)?;
        match (&mut watch.holder, point) {
            (Holder::Xdp(program), Point::Xdp(mode)) => program.attach(&found, mode)?,
            (Holder::Tcx(program), Point::Tcx(direction)) => program.attach(interface, direction)?,
            _ => unreachable!("loaded for this point"),
        }
        Ok(watch)
    }

    /// Loads a program without attaching it: it sees the frames of [`Watch::test_run`] alone.
    pub fn load(point: Point, settings: &Settings) -> Result<Self, XdpError> {
        let mut loader = EbpfLoader::new();
        let (holder, mut config, counters, clocks, controls): (_, Array<_, _>, _, _, _);
        let words = CLASSES * WORDS_OF_CLOCK;
        match point {
            Point::Xdp(_) => {
                let mut program = Program::load(OBJECT, NAME, ABI_VERSION, &mut loader)?;
                config = program.map(name::CONFIG)?;
                counters = program.map(name::COUNTERS)?;
                clocks = program.words(name::PAUSE, words)?;
                controls = program.map(name::CONTROLS)?;
                holder = Holder::Xdp(program);
            }
            Point::Tcx(_) => {
                let mut program = Classifier::load(OBJECT, ABI_VERSION, &mut loader)?;
                config = program.map(name::CONFIG)?;
                counters = program.map(name::COUNTERS)?;
                clocks = program.words(name::PAUSE, words)?;
                controls = program.map(name::CONTROLS)?;
                holder = Holder::Tcx(program);
            }
        }
        config.set(0, Plain(settings.config()), 0)?;
        Ok(Self { holder, counters, clocks, controls })
    }

    /// Where it counts: `driver` or `skb` for XDP, `tcx ingress` or `tcx egress`; `none` where it is not attached.
    pub fn place(&self) -> &'static str {
        match &self.holder {
            Holder::Xdp(program) => program.mode(),
            Holder::Tcx(program) => program.place(),
        }
    }

    /// What it has counted.
    pub fn read(&self) -> Result<Reading, XdpError> {
        let mut counters = Counters::ZERO;
        for cpu in self.counters.get(&0, 0)?.iter() {
            counters.merge(&cpu.0);
        }
        let time = clock::now();
        Ok(Reading { time, counters, paused: std::array::from_fn(|class| self.clock(class).paused(time)) })
    }

    /// A class's clock. The program may write meanwhile: read until two readings agree.
    fn clock(&self, class: usize) -> PauseClock {
        let word = |index| self.clocks.load(class * WORDS_OF_CLOCK + index);
        let read = || PauseClock { paused: word(0), at: word(1), until: word(2) };
        let mut last = read();
        // Frames are microseconds apart, a reading takes nanoseconds.
        for _ in 0..1000 {
            let next = read();
            if next == last {
                break;
            }
            last = next;
        }
        last
    }

    /// Takes the MAC control frames that were kept, in the order of their arrival; later calls give later ones.
    pub fn controls(&mut self) -> Result<Vec<ControlFrame>, XdpError> {
        let mut frames = Vec::new();
        while let Some(record) = self.controls.next() {
            let error = XdpError::Record { expected: size_of::<Control>(), found: record.len() };
            frames.push(control(&Plain::read(&record).ok_or(error)?));
        }
        // Several CPUs take their time before they take their place in the ring.
        frames.sort_by_key(|frame| frame.time);
        Ok(frames)
    }

    /// Forgets what was counted. Frames that arrive meanwhile may count or not.
    pub fn clear(&mut self) -> Result<(), XdpError> {
        self.counters.set(0, on_all_cpus(Counters::ZERO)?, 0)?;
        self.clocks.zero(CLASSES * WORDS_OF_CLOCK);
        while self.controls.next().is_some() {}
        Ok(())
    }

    /// Runs the program `repeat` times on `frame`, which counts as if it had arrived so often. The kernel takes no frame
    /// of less than 14 octets here.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> Result<TestResult, XdpError> {
        match &self.holder {
            Holder::Xdp(program) => program.test_run(frame, repeat),
            Holder::Tcx(program) => program.test_run(frame, repeat),
        }
    }
}

impl Settings {
    fn config(&self) -> Config {
        Config {
            abi: ABI_VERSION,
            trust: self.trust as u8,
            capture: self.capture.into(),
            _pad: [0; 2],
            line_rate: self.line_rate.map_or(0, LineRate::bits_per_second),
            dscp_to_priority: self.dscp_map.map(Priority::get),
        }
    }
}

/// The frame with its tag where it belongs.
fn control(record: &Control) -> ControlFrame {
    const ADDRESSES: usize = 12;
    let mut octets = record.octets[..(record.length as usize).min(HEADERS)].to_vec();
    let mut length = record.length;
    if record.tpid != 0 && octets.len() >= ADDRESSES {
        octets.splice(ADDRESSES..ADDRESSES, record.tpid.to_be_bytes().into_iter().chain(record.tci.to_be_bytes()));
        length += 4;
    }
    ControlFrame { time: record.time, length, octets }
}
