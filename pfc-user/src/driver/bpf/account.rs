//! The XDP program `account`: load, attach, configure, read.

mod control_log;
mod read;
mod sending;

use std::mem::offset_of;
use std::sync::Arc;
use std::time::Duration;

use aya::maps::{Array, MapData, PerCpuArray, RingBuf};
use aya::programs::ProgramFd;
use pfc_ebpf::abi::account::{
    ABI_VERSION, CLASSES, Config, Flow, FlowConfig, FlowCounters, Local, MAX_FLOWS, PauseState,
    Port, PortCounters, WindowCounters, name,
};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, OutOfRange};

use self::control_log::Log;
pub use self::read::{OffendingFrame, Rings};
pub use self::sending::CaseGenerator;
use self::sending::CaseMaps;
use super::batch;
use super::mmap::Words;
use super::object::{Interface, Program, by_cpu, cpus};
use super::pod::Plain;
use super::{Constant, TraceOutput, Tracepoints, XdpError, XdpMode, verifier_log};

/// Made by `cargo xtask build-ebpf`; empty where the tool was built without.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/account"));
/// The variant that writes lines about frames.
static TRACED: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/account-traced"));
/// The program in it.
const NAME: &str = "account";

/// Capacity of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Flows, 1 to [`MAX_FLOWS`].
    pub flows: u32,
    /// Windows, at least 1.
    pub windows: u32,
}

/// Result of a test run of the program on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestResult {
    /// The XDP action.
    pub action: u32,
    /// Time of one run, the mean where there were several.
    pub duration: Duration,
}

/// A loaded program with its maps. Dropping it detaches it; so does the end of the process.
pub struct AccountProgram {
    program: Program,
    sizes: Sizes,
    /// Flows and windows of the present configuration: what has to be zeroed before the next.
    used: Sizes,
    /// The configuration in force; before the first one nothing is counted.
    configured: Config,
    /// The interface lets only one CPU at a time run the program.
    sole: bool,
    config: Array<MapData, Plain<Config>>,
    flows: Words,
    counts: PerCpuArray<MapData, Plain<FlowCounters>>,
    windows: PerCpuArray<MapData, Plain<WindowCounters>>,
    port: PerCpuArray<MapData, Plain<Port>>,
    pause: Arc<Words>,
    arrivals: RingBuf<MapData>,
    controls: Log,
    offences: RingBuf<MapData>,
    generator: Option<Arc<CaseGenerator>>,
}

/// The present pauses, read without system calls.
#[derive(Clone, Debug)]
pub struct PauseView(Arc<Words>);

const WORDS_OF_PAUSE: usize = size_of::<PauseState>() / size_of::<u64>();
const WORDS_OF_FLOW: usize = size_of::<Flow>() / size_of::<u64>();

impl PauseView {
    /// Pause state of a class after its last pause frame: a priority (0 to 7), or 8 for 802.3x.
    ///
    /// # Panics
    /// Above 8.
    pub fn state(&self, class: usize) -> PauseState {
        assert!(
            class < CLASSES,
            "there are eight priorities and the whole link, found class {class}"
        );
        // In the reverse order of the program's writes: a reader that sees the end of a pause also
        // sees its beginning.
        const { assert!(offset_of!(PauseState, until) < offset_of!(PauseState, since)) };
        self.0.value(class * WORDS_OF_PAUSE)
    }

    /// The end of each class's pause.
    pub fn ends(&self) -> [u64; CLASSES] {
        std::array::from_fn(|class| self.state(class).until)
    }
}

impl AccountProgram {
    /// Loads a program and attaches it to `interface` of the calling thread's network namespace.
    pub fn attach(interface: &str, mode: XdpMode, sizes: Sizes) -> Result<Self, XdpError> {
        let index = Interface::find(interface)?;
        Self::load(sizes)?.attached(&index, mode)
    }

    /// Like [`Self::attach`], with the variant that writes lines about frames to `output`: slower,
    /// and no other program.
    pub fn attach_traced(
        interface: &str,
        mode: XdpMode,
        sizes: Sizes,
        output: &TraceOutput,
    ) -> Result<Self, XdpError> {
        let index = Interface::find(interface)?;
        Self::load_traced(sizes, interface, output)?.attached(&index, mode)
    }

    fn attached(mut self, interface: &Interface<'_>, mode: XdpMode) -> Result<Self, XdpError> {
        self.program.attach(interface, mode)?;
        self.sole = self.program.runs_on_one_cpu_at_a_time();
        Ok(self)
    }

    /// Loads a program without attaching it: it sees the frames of [`AccountProgram::test_run`]
    /// alone.
    pub fn load(sizes: Sizes) -> Result<Self, XdpError> {
        Self::load_object(OBJECT, sizes)
    }

    /// Like [`Self::load`], with the variant that writes lines about frames of `port` to `output`.
    pub fn load_traced(sizes: Sizes, port: &str, output: &TraceOutput) -> Result<Self, XdpError> {
        let mut account = Self::load_object(TRACED, sizes)?;
        account.program.trace(port, output)?;
        Ok(account)
    }

    /// Like `load`, with another object, such as a variant that is to be measured beside the
    /// program.
    pub fn load_object(object: &[u8], sizes: Sizes) -> Result<Self, XdpError> {
        within("flows", sizes.flows, 1, MAX_FLOWS)?;
        within("windows", sizes.windows, 1, u32::MAX)?;
        let cpus = cpus()?;
        let mut loader = verifier_log::loader();
        loader
            .map_max_entries(name::FLOWS, sizes.flows)
            .map_max_entries(name::COUNTS, sizes.flows * Phase::COUNT as u32)
            .map_max_entries(name::WINDOWS, sizes.windows)
            .map_max_entries(name::CONTROLS, (control_log::segment(cpus) * cpus) as u32);
        sending::size(&mut loader, sizes)?;
        let mut program = Program::load(object, NAME, ABI_VERSION, &mut loader)?;
        Ok(Self {
            config: program.map(name::CONFIG)?,
            flows: program.words(name::FLOWS, sizes.flows as usize * WORDS_OF_FLOW)?,
            counts: program.map(name::COUNTS)?,
            windows: program.map(name::WINDOWS)?,
            port: program.map(name::PORT)?,
            pause: Arc::new(program.words(name::PAUSE, CLASSES * WORDS_OF_PAUSE)?),
            arrivals: program.map(name::ARRIVALS)?,
            controls: Log::new(program.words(name::CONTROLS, Log::words(cpus))?, cpus),
            offences: program.map(name::OFFENCES)?,
            generator: None,
            program,
            sizes,
            configured: Config::default(),
            sole: true,
            used: Sizes {
                flows: 0,
                windows: 0,
            },
        })
    }

    /// `driver` or `skb`; `none` where it is not attached.
    pub fn mode(&self) -> &'static str {
        self.program.mode()
    }

    /// Begins a repetition: zeroes every counter, drops all records, and sets the program to
    /// `config` and `flows`. Fills in `abi`, `flows` and `quantum`. `exclusive` holds only where
    /// the interface allows it (driver mode, one receive queue); a program that is not attached
    /// takes the caller's value.
    ///
    /// Frames that arrive meanwhile are not counted.
    pub fn configure(&mut self, config: &Config, flows: &[FlowConfig]) -> Result<(), XdpError> {
        within(
            "flows",
            u32::try_from(flows.len()).unwrap_or(u32::MAX),
            0,
            self.sizes.flows,
        )?;
        within("windows", config.windows, 1, self.sizes.windows)?;
        if !config.verify_every.is_power_of_two() {
            return Err(XdpError::NoPowerOfTwo(config.verify_every));
        }
        let quantum = LineRate::from_bits_per_second(config.line_rate)?.quantum();
        let exclusive = (config.exclusive != 0 && self.sole) as u8;
        // The program stops at another ABI, and begins by a last write that changes nothing else.
        let config = Config {
            abi: 0,
            flows: flows.len() as u32,
            quantum,
            exclusive,
            ..*config
        };
        self.config.set(0, Plain(config), 0)?;
        self.clear()?;
        self.describe(flows);
        self.used = Sizes {
            flows: config.flows,
            windows: config.windows,
        };
        self.configured = Config {
            abi: ABI_VERSION,
            ..config
        };
        self.config.set(0, Plain(self.configured), 0)?;
        Ok(())
    }

    /// Replaces the configuration of these flows, between two bursts of traffic. Their counts stay.
    pub fn describe(&self, flows: &[FlowConfig]) {
        for (index, flow) in flows.iter().enumerate() {
            self.flows.set(index * WORDS_OF_FLOW, flow);
        }
    }

    /// Ends a repetition: what arrives from now on is passed on and not counted, until the next
    /// [`AccountProgram::configure`].
    pub fn stop(&mut self) -> Result<(), XdpError> {
        let config = Config {
            abi: 0,
            ..self.configured
        };
        Ok(self.config.set(0, Plain(config), 0)?)
    }

    /// Zeroes what the last configuration used.
    fn clear(&mut self) -> Result<(), XdpError> {
        batch::zero(&self.counts, self.used.flows * Phase::COUNT as u32)?;
        batch::zero(&self.windows, self.used.windows)?;
        self.flows.zero(0..self.used.flows as usize * WORDS_OF_FLOW);
        self.pause.zero(0..CLASSES * WORDS_OF_PAUSE);
        for ring in [&mut self.arrivals, &mut self.offences] {
            while ring.next().is_some() {}
        }
        self.controls.clear();
        let places = |cpu| self.controls.places(cpu);
        let local = |cpu| Local {
            log_next: places(cpu).start,
            log_end: places(cpu).end,
            ..Local::default()
        };
        self.port.set(
            0,
            by_cpu(|cpu| Port {
                local: local(cpu),
                counters: PortCounters::ZERO,
            })?,
            0,
        )?;
        Ok(())
    }

    /// The configuration in force, with the fields that were filled in.
    pub fn configured(&self) -> &Config {
        &self.configured
    }

    /// A view of the present pauses, for the sender's thread.
    pub fn pause_view(&self) -> PauseView {
        PauseView(self.pause.clone())
    }

    /// The part of the object that sends; made at the first call. Frames that it makes are held
    /// back by the PFC that this program receives.
    pub fn generator(&mut self) -> Result<Arc<CaseGenerator>, XdpError> {
        self.generator_counting_by(Tracepoints::default())
    }

    /// Like [`Self::generator`], but counts the fate of the frames by these tracepoints.
    /// [`CaseGenerator::uncounted`] tells if the kernel does not have them.
    pub fn generator_counting_by(
        &mut self,
        tracepoints: Tracepoints,
    ) -> Result<Arc<CaseGenerator>, XdpError> {
        if let Some(generator) = &self.generator {
            return Ok(generator.clone());
        }
        let own = CaseMaps::open(&mut self.program, self.sizes)?;
        let flows = self.sizes.flows;
        let generator = CaseGenerator::load(&mut self.program, flows, own, tracepoints)?;
        let generator = Arc::new(generator);
        Ok(self.generator.insert(generator).clone())
    }

    /// Loads the sender of constant frames, which shares the maps of [`Self::generator`]. Only
    /// benchmarks need it; an old kernel takes seconds to verify it.
    pub fn constant(&mut self) -> Result<Constant, XdpError> {
        Constant::load(&mut self.program)
    }

    /// Descriptor of the program, for a benchmark's program to tail-call.
    pub fn program(&self) -> Result<&ProgramFd, XdpError> {
        self.program.fd()
    }

    /// Runs the program `repeat` times on `frame`, which counts as if it had arrived so often. The
    /// kernel takes no frame of less than 14 octets here.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> Result<TestResult, XdpError> {
        self.program.test_run(frame, repeat)
    }
}

fn within(what: &'static str, found: u32, min: u32, max: u32) -> Result<(), XdpError> {
    if (min..=max).contains(&found) {
        return Ok(());
    }
    Err(OutOfRange {
        what,
        found: found.into(),
        min: min.into(),
        max: max.into(),
    }
    .into())
}
