//! The XDP program: load, attach, configure, read.

mod attached;
mod error;
mod link;
mod plain;
mod read;
mod words;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use aya::maps::{Array, Map, MapData, MapError, PerCpuArray, PerCpuValues, RingBuf};
use aya::programs::{TestRun, Xdp};
use aya::util::{KernelVersion, nr_cpus};
use aya::{Ebpf, EbpfLoader, Pod, TestRunOptions};
use nix::net::if_::if_nametoindex;
use pfc_ebpf::maps::{
    ABI_SECTION, ABI_VERSION, Config, FlowConfig, FlowCounters, MAX_FLOWS, PauseState, PortCounters, SEEN_WINDOW, WindowCounters, name,
};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::OutOfRange;

pub use error::XdpError;
pub use read::{OffendingFrame, Rings};

use plain::Plain;
use words::Words;

/// Made by `cargo xtask build-ebpf`; empty where the tool was built without.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/account"));
/// The program in it.
const PROGRAM: &str = "account";

/// How a program is attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// By the driver if it can, else generic.
    #[default]
    Auto,
    /// In the driver, before the kernel makes an skb.
    Driver,
    /// Generic: in the stack, on every kind of interface.
    Skb,
}

/// How much a program can account for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Flows, 1 to [`MAX_FLOWS`].
    pub flows: u32,
    /// Windows, at least 1.
    pub windows: u32,
}

/// What a single run of the program on a frame gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestResult {
    /// The XDP action.
    pub action: u32,
    /// Time of one run, the mean where there were several.
    pub duration: Duration,
}

/// A loaded program with its maps. Dropping it detaches it; so does the end of the process.
pub struct Account {
    object: Ebpf,
    /// Attached as long as this is open.
    link: Option<(OwnedFd, link::Mode)>,
    sizes: Sizes,
    /// Flows and windows of the present configuration: what has to be zeroed before the next.
    used: Sizes,
    config: Array<MapData, Plain<Config>>,
    flows: Array<MapData, Plain<FlowConfig>>,
    counts: PerCpuArray<MapData, Plain<FlowCounters>>,
    windows: PerCpuArray<MapData, Plain<WindowCounters>>,
    port: PerCpuArray<MapData, Plain<PortCounters>>,
    seen: Words,
    next: Words,
    pause: Arc<Words>,
    arrivals: RingBuf<MapData>,
    controls: RingBuf<MapData>,
    offences: RingBuf<MapData>,
}

/// The present pauses, read without system calls.
#[derive(Clone, Debug)]
pub struct PauseView(Arc<Words>);

/// Entries of PAUSE: eight priorities and the whole link.
const CLASSES: usize = 9;
const WORDS_OF_PAUSE: usize = size_of::<PauseState>() / size_of::<u64>();

impl PauseView {
    /// What the last pause frame of a class said: a priority (0 to 7), or 8 for 802.3x.
    ///
    /// # Panics
    /// Above 8.
    pub fn state(&self, class: usize) -> PauseState {
        assert!(class < CLASSES, "there are eight priorities and the whole link, found class {class}");
        let word = |index| self.0.load(class * WORDS_OF_PAUSE + index);
        // In the order opposite to the program's writes: who sees the end of a pause sees its beginning.
        let until = word(0);
        PauseState { until, since: word(1), xoff: word(2), xon: word(3) }
    }
}

impl Account {
    /// Loads a program and attaches it to `interface` of the calling thread's network namespace.
    pub fn attach(interface: &str, mode: Mode, sizes: Sizes) -> Result<Self, XdpError> {
        let index = if_nametoindex(interface).map_err(|_| XdpError::UnknownInterface(interface.to_owned()))?;
        let mut account = Self::load(sizes)?;
        let attach = |mode: link::Mode| {
            let fd = account.program()?.fd()?;
            link::create(fd.as_fd(), index, mode).map_err(|error| XdpError::of_attach(interface, index, mode, error))
        };
        let (link, mode) = match mode {
            Mode::Driver => (attach(link::Mode::Driver)?, link::Mode::Driver),
            Mode::Skb => (attach(link::Mode::Skb)?, link::Mode::Skb),
            Mode::Auto => match attach(link::Mode::Driver) {
                Err(XdpError::Refused { .. }) => (attach(link::Mode::Skb)?, link::Mode::Skb),
                link => (link?, link::Mode::Driver),
            },
        };
        account.link = Some((link, mode));
        Ok(account)
    }

    /// Loads a program without attaching it: it sees the frames of [`Account::test_run`] alone.
    pub fn load(sizes: Sizes) -> Result<Self, XdpError> {
        if OBJECT.is_empty() {
            return Err(XdpError::NotBuilt);
        }
        within("flows", sizes.flows, 1, MAX_FLOWS)?;
        within("windows", sizes.windows, 1, u32::MAX)?;
        if KernelVersion::current().is_ok_and(|version| version < KernelVersion::new(5, 18, 0)) {
            return Err(XdpError::Kernel { lacks: "the BPF helper bpf_xdp_load_bytes (Linux 5.18)" });
        }
        let mut object = EbpfLoader::new()
            .map_max_entries(name::FLOWS, sizes.flows)
            .map_max_entries(name::COUNTS, sizes.flows * Phase::COUNT as u32)
            .map_max_entries(name::SEEN, sizes.flows * SEEN_WINDOW as u32)
            .map_max_entries(name::NEXT, sizes.flows)
            .map_max_entries(name::WINDOWS, sizes.windows)
            .load(OBJECT)?;
        check_abi(&object)?;
        let program: &mut Xdp = object.program_mut(PROGRAM).ok_or(XdpError::Missing(PROGRAM))?.try_into()?;
        program.load()?;
        Ok(Self {
            config: map(&mut object, name::CONFIG)?,
            flows: map(&mut object, name::FLOWS)?,
            counts: map(&mut object, name::COUNTS)?,
            windows: map(&mut object, name::WINDOWS)?,
            port: map(&mut object, name::PORT)?,
            seen: words(&mut object, name::SEEN, sizes.flows as usize * SEEN_WINDOW as usize)?,
            next: words(&mut object, name::NEXT, sizes.flows as usize)?,
            pause: Arc::new(words(&mut object, name::PAUSE, CLASSES * WORDS_OF_PAUSE)?),
            arrivals: map(&mut object, name::ARRIVALS)?,
            controls: map(&mut object, name::CONTROLS)?,
            offences: map(&mut object, name::OFFENCES)?,
            object,
            link: None,
            sizes,
            used: Sizes { flows: 0, windows: 0 },
        })
    }

    /// `driver` or `skb`; `none` where it is not attached.
    pub fn mode(&self) -> &'static str {
        self.link.as_ref().map_or("none", |(_, mode)| mode.word())
    }

    /// Begins a repetition: every counter, everything seen and all records are gone, then the program works by `config`
    /// (whose `abi` and `flows` are filled in here) and `flows`.
    ///
    /// Frames that arrive meanwhile are not counted.
    pub fn configure(&mut self, config: &Config, flows: &[FlowConfig]) -> Result<(), XdpError> {
        within("flows", u32::try_from(flows.len()).unwrap_or(u32::MAX), 0, self.sizes.flows)?;
        within("windows", config.windows, 1, self.sizes.windows)?;
        // The program stops at another ABI, and begins by a last write that changes nothing else.
        let config = Config { abi: 0, flows: flows.len() as u32, ..*config };
        self.config.set(0, Plain(config), 0)?;
        self.clear()?;
        for (index, flow) in flows.iter().enumerate() {
            self.flows.set(index as u32, Plain(*flow), 0)?;
        }
        self.used = Sizes { flows: config.flows, windows: config.windows };
        self.config.set(0, Plain(Config { abi: ABI_VERSION, ..config }), 0)?;
        Ok(())
    }

    /// Zeroes what the last configuration used.
    fn clear(&mut self) -> Result<(), XdpError> {
        for index in 0..self.used.flows * Phase::COUNT as u32 {
            self.counts.set(index, on_all_cpus(FlowCounters::default())?, 0)?;
        }
        for index in 0..self.used.windows {
            self.windows.set(index, on_all_cpus(WindowCounters::default())?, 0)?;
        }
        self.port.set(0, on_all_cpus(read::NO_PORT_COUNTS)?, 0)?;
        self.seen.zero(self.used.flows as usize * SEEN_WINDOW as usize);
        self.next.zero(self.used.flows as usize);
        self.pause.zero(CLASSES * WORDS_OF_PAUSE);
        for ring in [&mut self.arrivals, &mut self.controls, &mut self.offences] {
            while ring.next().is_some() {}
        }
        Ok(())
    }

    /// A view of the present pauses, for the sender's thread.
    pub fn pause_view(&self) -> PauseView {
        PauseView(self.pause.clone())
    }

    /// Runs the program `repeat` times on `frame`, which counts as if it had arrived so often. The kernel takes no frame
    /// of less than 14 octets here.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> Result<TestResult, XdpError> {
        let result = self.program()?.test_run(TestRunOptions { data_in: Some(frame), repeat, ..TestRunOptions::new() })?;
        Ok(TestResult { action: result.return_value, duration: result.duration })
    }

    fn program(&self) -> Result<&Xdp, XdpError> {
        Ok(self.object.program(PROGRAM).ok_or(XdpError::Missing(PROGRAM))?.try_into()?)
    }
}

fn within(what: &'static str, found: u32, min: u32, max: u32) -> Result<(), XdpError> {
    if (min..=max).contains(&found) {
        return Ok(());
    }
    Err(OutOfRange { what, found: found.into(), min: min.into(), max: max.into() }.into())
}

/// The object says which layout of the maps it was built with.
fn check_abi(object: &Ebpf) -> Result<(), XdpError> {
    let found = match object.map(ABI_SECTION) {
        Some(map) => Some(Array::<_, u32>::try_from(map)?.get(&0, 0)?),
        None => None,
    };
    if found == Some(ABI_VERSION) { Ok(()) } else { Err(XdpError::Abi { found, expected: ABI_VERSION }) }
}

/// Takes a map out of the object, typed.
fn map<M: TryFrom<Map, Error = MapError>>(object: &mut Ebpf, name: &'static str) -> Result<M, XdpError> {
    Ok(object.take_map(name).ok_or(XdpError::Missing(name))?.try_into()?)
}

/// Maps an array into memory.
fn words(object: &mut Ebpf, name: &'static str, length: usize) -> Result<Words, XdpError> {
    match object.take_map(name) {
        Some(Map::Array(array)) => Words::map(array.fd().as_fd(), length).map_err(|error| XdpError::Memory { name, error }),
        _ => Err(XdpError::Missing(name)),
    }
}

fn on_all_cpus<T: Copy>(value: T) -> Result<PerCpuValues<Plain<T>>, XdpError>
where
    Plain<T>: Pod,
{
    let cpus = nr_cpus().map_err(|(_, error)| MapError::from(error))?;
    Ok(PerCpuValues::try_from(vec![Plain(value); cpus]).map_err(MapError::from)?)
}
