//! The XDP program `flow`: load, attach, set, read.

mod places;
mod sending;

use std::collections::BTreeSet;
use std::sync::Arc;

use aya::maps::{HashMap, MapData, PerCpuArray, RingBuf};
use pfc_ebpf::abi::flow::{ABI_VERSION, Config, Flow, Holders, Pauses, Port, name};
use pfc_ebpf::abi::generate::name as generate_name;
use pfc_ebpf::units::LineRate;

pub use self::places::{Expected, Place, Places};
pub use self::sending::FlowGenerator;
use self::sending::FlowMaps;
use super::mmap::Words;
use super::object::{Interface, Program, over_cpus};
use super::pod::Plain;
use super::{TestResult, Tracepoints, XdpError, XdpMode, generate, verifier_log};
pub use pfc_ebpf::abi::flow::Received;

/// Made by `cargo xtask build-ebpf`; empty where the tool was built without.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/flow"));
/// The program in it.
const NAME: &str = "flow";

const WORDS_OF_CONFIG: usize = size_of::<Config>() / size_of::<u64>();
const WORDS_OF_PAUSES: usize = size_of::<Pauses>() / size_of::<u64>();
/// Places of [`Config`]'s words.
const ABI: usize = 0;
const CAPTURE: usize = 1;
const QUANTUM: usize = 2;
const HOLDERS: usize = 3;

/// A loaded program with its maps. Dropping it detaches it; so does the end of the process.
pub struct FlowProgram {
    program: Program,
    config: Words,
    port: PerCpuArray<MapData, Plain<Port>>,
    places: Places,
    pauses: PauseClocks,
    own: HashMap<MapData, u64, u64>,
    rings: Option<FrameRings>,
    generator: Option<Arc<FlowGenerator>>,
}

/// The present pauses of all classes and queues, read without system calls.
#[derive(Clone, Debug)]
pub struct PauseClocks(Arc<Words>);

/// Rings of whole frames, for the thread that reads them.
pub struct FrameRings {
    /// The capture.
    pub capture: RingBuf<MapData>,
    /// ARP and ND.
    pub neighbours: RingBuf<MapData>,
}

impl PauseClocks {
    /// All of them, as at one time.
    pub fn read(&self) -> Pauses {
        self.0.stable(0)
    }
}

impl FlowProgram {
    /// Loads a program with `places` places for flows and attaches it to `interface` of the calling
    /// thread's network namespace.
    pub fn attach(interface: &str, mode: XdpMode, places: u32) -> Result<Self, XdpError> {
        let found = Interface::find(interface)?;
        let mut program = Self::load(places)?;
        program.program.attach(&found, mode)?;
        Ok(program)
    }

    /// Loads a program without attaching it: it sees the frames of [`Self::test_run`] alone.
    pub fn load(places: u32) -> Result<Self, XdpError> {
        let mut loader = verifier_log::loader();
        loader
            .map_max_entries(name::FLOWS, places)
            .map_max_entries(generate_name::LOST, places);
        generate::size(&mut loader, places)?;
        let mut program = Program::load(OBJECT, NAME, ABI_VERSION, &mut loader)?;
        let words = places as usize * size_of::<Flow>() / size_of::<u64>();
        Ok(Self {
            config: program.words(name::CONFIG, WORDS_OF_CONFIG)?,
            places: Places::new(program.words(name::FLOWS, words)?, places),
            pauses: PauseClocks(Arc::new(program.words(name::PAUSE, WORDS_OF_PAUSES)?)),
            own: program.map(name::OWN)?,
            port: program.map(name::PORT)?,
            rings: Some(FrameRings {
                capture: program.map(name::CAPTURE)?,
                neighbours: program.map(name::NEIGHBOURS)?,
            }),
            generator: None,
            program,
        })
    }

    /// Detaches the program, so that another one has room.
    pub fn detach(&mut self) {
        self.program.detach();
    }

    /// Counts from now on, with quanta of that line rate.
    pub fn configure(&self, line_rate: LineRate) {
        self.config.store(QUANTUM, line_rate.quantum());
        self.config.store(ABI, u64::from(ABI_VERSION));
    }

    /// These classes hold the queues from their next pause on.
    pub fn set_holders(&self, holders: &Holders) {
        for (queue, classes) in holders.iter().enumerate() {
            self.config.store(HOLDERS + queue, *classes);
        }
    }

    /// MAC control frames with these source addresses are this tester's own, and no others.
    pub fn set_own(&mut self, sources: &BTreeSet<u64>) -> Result<(), XdpError> {
        let before = self.own.keys().collect::<Result<BTreeSet<u64>, _>>()?;
        for gone in before.difference(sources) {
            self.own.remove(gone)?;
        }
        for new in sources.difference(&before) {
            self.own.insert(new, 0u64, 0)?;
        }
        Ok(())
    }

    /// Captures whole frames from now on, or no longer.
    pub fn capture(&self, on: bool) {
        self.config.store(CAPTURE, on.into());
    }

    /// Returns the counts of what the port received since the program was loaded.
    pub fn port(&self) -> Result<Port, XdpError> {
        over_cpus(&self.port, 0, Port::ZERO, Port::merge)
    }

    /// The places of flows.
    pub const fn places(&self) -> &Places {
        &self.places
    }

    /// The pauses.
    pub fn pauses(&self) -> PauseClocks {
        self.pauses.clone()
    }

    /// The part of the object that sends; made at the first call. What this program receives of
    /// pause frames holds what it sends.
    pub fn generator(&mut self) -> Result<Arc<FlowGenerator>, XdpError> {
        if let Some(generator) = &self.generator {
            return Ok(generator.clone());
        }
        let flows = self.places.count();
        let own = FlowMaps::open(&self.program, flows)?;
        let program = &mut self.program;
        let generator = FlowGenerator::load(program, flows, own, Tracepoints::default())?;
        Ok(self.generator.insert(Arc::new(generator)).clone())
    }

    /// The rings, once.
    pub fn take_rings(&mut self) -> Option<FrameRings> {
        self.rings.take()
    }

    /// `driver` or `skb`; `none` where it is not attached.
    pub fn mode(&self) -> &'static str {
        self.program.mode()
    }

    /// Runs the program `repeat` times on `frame`.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> Result<TestResult, XdpError> {
        self.program.test_run(frame, repeat)
    }
}
