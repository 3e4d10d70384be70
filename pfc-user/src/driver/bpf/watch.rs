//! The programs of `watch`: attach to a port that carries traffic already, and read what they
//! count.

mod classifier;
mod clsact;

use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray, RingBuf};
use aya::util::KernelVersion;
use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::SEEN_WINDOW;
use pfc_ebpf::abi::watch::{
    ABI_VERSION, Config, Control, Counters, FlowState, HEADERS, PauseClock, Sketch, name,
};
use pfc_ebpf::units::{Dscp, LineRate, Nanos, Priority};

use self::classifier::Classifier;
pub use self::classifier::Direction;

use super::mmap::Words;
use super::object::{Interface, Program};
use super::pod::Plain;
use super::verifier_log;
use super::{TestResult, TraceOutput, XdpError, XdpMode};
use crate::driver::kernel::clock;

/// Made by `cargo xtask build-ebpf`; empty where the tool was built without.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/watch"));
/// The variant that writes lines about frames.
static TRACED: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/watch-traced"));
/// The program for XDP.
const NAME: &str = "watch";
/// Classes that can be paused: eight priorities, and the whole link.
pub const CLASSES: usize = Priority::COUNT + 1;
const WORDS_OF_CLOCK: usize = size_of::<PauseClock>() / size_of::<u64>();

/// Place on a port where frames are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// All that comes in, before the stack.
    Xdp(XdpMode),
    /// At tcx: frames that XDP lets pass on the way in, or frames that the stack sends.
    Tcx(Direction),
    /// The same by a filter of `clsact`, on kernels without tcx.
    Clsact(Direction),
}

impl Point {
    /// At tcx, or at its replacement on kernels without it.
    pub fn tc(direction: Direction) -> Self {
        if KernelVersion::current().is_ok_and(|version| version < TCX) {
            Self::Clsact(direction)
        } else {
            Self::Tcx(direction)
        }
    }
}

/// The first kernel with tcx.
const TCX: KernelVersion = KernelVersion::new(6, 6, 0);

/// Settings by which frames are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The field that tells the priority.
    pub trust: Trust,
    /// Priority by DSCP.
    pub dscp_map: [Priority; Dscp::COUNT],
    /// Speed of the port, which turns quanta into time.
    pub line_rate: Option<LineRate>,
    /// MAC control frames are kept.
    pub capture: bool,
    /// Flows of test frames that are told apart by their stamps, at most; 0: none is, and no frame
    /// is sorted.
    pub flows: u32,
}

/// Counts of a port since it was attached.
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
    /// Time of arrival, CLOCK_MONOTONIC.
    pub time: Nanos,
    /// Octets of the whole frame, without FCS.
    pub length: u32,
    /// Its first octets.
    pub octets: Vec<u8>,
}

/// Counts of a flow of test frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Run in the stamps.
    pub run: u16,
    /// Flow in the stamps.
    pub flow: u16,
    /// Priority of the last frame, 0 to 7.
    pub priority: Option<u8>,
    /// The lowest sequence number.
    pub lowest: u64,
    /// The highest sequence number plus one.
    pub next: u64,
    /// Distinct frames.
    pub distinct: u64,
    /// Frames that had passed before.
    pub duplicate: u64,
    /// Frames so late that it cannot be told whether they had passed before.
    pub beyond_window: u64,
}

/// A program on a port. Dropping it detaches it; so does the end of the process.
pub struct Watch {
    holder: Holder,
    counters: PerCpuArray<MapData, Plain<Counters>>,
    clocks: Words,
    controls: RingBuf<MapData>,
    flows: HashMap<MapData, u32, u32>,
    states: Array<MapData, Plain<FlowState>>,
    sketch: PerCpuArray<MapData, Plain<Sketch>>,
}

enum Holder {
    Xdp(Program),
    Tc(Classifier),
}

impl Holder {
    fn map<M: TryFrom<Map, Error = MapError>>(
        &mut self,
        name: &'static str,
    ) -> Result<M, XdpError> {
        match self {
            Self::Xdp(program) => program.map(name),
            Self::Tc(program) => program.map(name),
        }
    }

    fn words(&mut self, name: &'static str, length: usize) -> Result<Words, XdpError> {
        match self {
            Self::Xdp(program) => program.words(name, length),
            Self::Tc(program) => program.words(name, length),
        }
    }
}

impl Watch {
    /// Loads a program and attaches it to `interface` of the calling thread's network namespace,
    /// where it counts at once.
    pub fn attach(interface: &str, point: Point, settings: &Settings) -> Result<Self, XdpError> {
        let found = Interface::find(interface)?;
        Self::load(point, settings)?.attached(&found, interface, point)
    }

    /// Like [`Self::attach`], with the variant that writes lines about frames to `output`: slower,
    /// and no other program.
    pub fn attach_traced(
        interface: &str,
        point: Point,
        settings: &Settings,
        output: &TraceOutput,
    ) -> Result<Self, XdpError> {
        let found = Interface::find(interface)?;
        Self::load_traced(point, settings, interface, output)?.attached(&found, interface, point)
    }

    fn attached(
        mut self,
        found: &Interface<'_>,
        interface: &str,
        point: Point,
    ) -> Result<Self, XdpError> {
        match (&mut self.holder, point) {
            (Holder::Xdp(program), Point::Xdp(mode)) => program.attach(found, mode)?,
            (Holder::Tc(program), Point::Tcx(direction)) => program.attach(interface, direction)?,
            (Holder::Tc(program), Point::Clsact(direction)) => {
                program.attach_to_clsact(interface, direction)?;
            }
            _ => unreachable!("loaded for this point"),
        }
        Ok(self)
    }

    /// Loads a program without attaching it: it sees the frames of [`Watch::test_run`] alone.
    pub fn load(point: Point, settings: &Settings) -> Result<Self, XdpError> {
        Self::open(OBJECT, point, settings)?.configured(settings)
    }

    /// Like [`Self::load`], with the variant that writes lines about frames of `port` to `output`.
    pub fn load_traced(
        point: Point,
        settings: &Settings,
        port: &str,
        output: &TraceOutput,
    ) -> Result<Self, XdpError> {
        let mut watch = Self::open(TRACED, point, settings)?;
        match &mut watch.holder {
            Holder::Xdp(program) => program.trace(port, output)?,
            Holder::Tc(program) => program.trace(port, output)?,
        }
        watch.configured(settings)
    }

    fn configured(mut self, settings: &Settings) -> Result<Self, XdpError> {
        let mut config: Array<_, _> = self.holder.map(name::CONFIG)?;
        config.set(0, Plain(settings.config()), 0)?;
        Ok(self)
    }

    fn open(object: &[u8], point: Point, settings: &Settings) -> Result<Self, XdpError> {
        let mut loader = verifier_log::loader();
        let places = settings.flows.max(1);
        loader
            .map_max_entries(name::FLOWS, places)
            .map_max_entries(name::STATES, places)
            .map_max_entries(name::SEEN, places * SEEN_WINDOW as u32);
        let mut holder = match point {
            Point::Xdp(_) => Holder::Xdp(Program::load(object, NAME, ABI_VERSION, &mut loader)?),
            Point::Tcx(_) | Point::Clsact(_) => {
                Holder::Tc(Classifier::load(object, ABI_VERSION, &mut loader)?)
            }
        };
        Ok(Self {
            counters: holder.map(name::COUNTERS)?,
            clocks: holder.words(name::PAUSE, CLASSES * WORDS_OF_CLOCK)?,
            controls: holder.map(name::CONTROLS)?,
            flows: holder.map(name::FLOWS)?,
            states: holder.map(name::STATES)?,
            sketch: holder.map(name::SKETCH)?,
            holder,
        })
    }

    /// Place where it counts: `driver` or `skb` for XDP, `tcx ingress` or `tcx egress`, `tc
    /// ingress` or `tc egress` on kernels without tcx; `none` where it is not attached.
    pub fn place(&self) -> &'static str {
        match &self.holder {
            Holder::Xdp(program) => program.mode(),
            Holder::Tc(program) => program.place(),
        }
    }

    /// Its counts since it was attached.
    pub fn read(&self) -> Result<Reading, XdpError> {
        let mut counters = Counters::ZERO;
        for cpu in self.counters.get(&0, 0)?.iter() {
            counters.merge(&cpu.0);
        }
        let time = clock::now();
        Ok(Reading {
            time,
            counters,
            paused: std::array::from_fn(|class| self.clock(class).paused(time)),
        })
    }

    /// A class's clock. The program may write meanwhile: read until two readings agree.
    fn clock(&self, class: usize) -> PauseClock {
        let word = |index| self.clocks.load(class * WORDS_OF_CLOCK + index);
        let read = || PauseClock {
            paused: word(0),
            at: word(1),
            until: word(2),
        };
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

    /// Takes the MAC control frames that were kept, in the order of their arrival; later calls give
    /// later ones.
    pub fn controls(&mut self) -> Result<Vec<ControlFrame>, XdpError> {
        let mut frames = Vec::new();
        while let Some(record) = self.controls.next() {
            let error = XdpError::Record {
                expected: size_of::<Control>(),
                found: record.len(),
            };
            frames.push(control(&Plain::read(&record).ok_or(error)?));
        }
        // Several CPUs take their time before they take their place in the ring.
        frames.sort_by_key(|frame| frame.time);
        Ok(frames)
    }

    /// The flows of test frames that have passed.
    pub fn flows(&self) -> Result<Vec<Flow>, XdpError> {
        let mut flows = Vec::new();
        for entry in self.flows.iter() {
            let (key, place) = entry?;
            let state = self.states.get(&place, 0)?.0;
            // A flow whose first frame is being counted.
            if state.distinct > 0 {
                flows.push(flow(key, &state));
            }
        }
        flows.sort_by_key(|flow| (flow.run, flow.flow));
        Ok(flows)
    }

    /// All frames that have passed, sorted by what no device changes; none unless flows are told
    /// apart.
    pub fn sketch(&self) -> Result<Sketch, XdpError> {
        let mut sketch = Sketch::ZERO;
        for cpu in self.sketch.get(&0, 0)?.iter() {
            sketch.merge(&cpu.0);
        }
        Ok(sketch)
    }

    /// Runs the program `repeat` times on `frame`, which counts as if it had arrived so often. The
    /// kernel takes no frame of less than 14 octets here.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> Result<TestResult, XdpError> {
        match &self.holder {
            Holder::Xdp(program) => program.test_run(frame, repeat),
            Holder::Tc(program) => program.test_run(frame, repeat, 0),
        }
    }

    /// Runs the program on what the stack holds as one and is to cut into frames of `gso_size`
    /// octets of payload. XDP knows no such thing.
    pub fn test_run_merged(&self, frame: &[u8], gso_size: u32) -> Result<TestResult, XdpError> {
        match &self.holder {
            Holder::Xdp(program) => program.test_run(frame, 1),
            Holder::Tc(program) => program.test_run(frame, 1, gso_size),
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
            flows: self.flows,
            _pad2: 0,
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
        octets.splice(
            ADDRESSES..ADDRESSES,
            record
                .tpid
                .to_be_bytes()
                .into_iter()
                .chain(record.tci.to_be_bytes()),
        );
        length += 4;
    }
    ControlFrame {
        time: record.time,
        length,
        octets,
    }
}

fn flow(key: u32, state: &FlowState) -> Flow {
    Flow {
        run: (key >> 16) as u16,
        flow: key as u16,
        priority: u8::try_from(state.priority)
            .ok()
            .filter(|priority| *priority < 8),
        lowest: !state.not_lowest,
        next: state.next,
        distinct: state.distinct,
        duplicate: state.duplicate,
        beyond_window: state.beyond_window,
    }
}
