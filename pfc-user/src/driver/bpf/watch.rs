//! The programs of `watch`: attach to ports that carry traffic already, and read what they count.
//!
//! The verifier takes a tenth of a second for a program, however many ports it is to count: it is
//! loaded once for all of them.

mod clsact;
mod direction;
mod link;
mod programs;
mod record;
mod shared;

use std::sync::Arc;

use aya::util::KernelVersion;
use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::watch::{Counters, PAUSED, PORTS};
use pfc_ebpf::units::{Dscp, LineRate, Nanos, Priority};
use validator_core::preflight::kernel;

pub use self::direction::Direction;
use self::link::Link;
use self::programs::{Kind, Place};
use self::shared::Shared;
use super::trace::Trace;
use super::{TestResult, TraceOutput, XdpError, XdpMode};
use crate::driver::kernel::clock;

/// Made by `cargo xtask build-ebpf`; empty where the tool was built without.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/watch"));
/// The variant that writes lines about frames.
static TRACED: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/watch-traced"));
/// Classes that can be paused: eight priorities, and the whole link.
pub const CLASSES: usize = PAUSED;
const _: () = assert!(CLASSES == Priority::COUNT + 1);

/// Place on a port where frames are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// All that comes in, before the stack.
    Xdp(XdpMode),
    /// At tcx: frames that XDP lets pass on the way in, or frames that the stack sends.
    Tcx(Direction),
    /// The place of `Tcx`, by a filter of `clsact` on kernels without tcx.
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
const TCX: KernelVersion = KernelVersion::new(kernel::TCX.0, kernel::TCX.1, 0);

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

/// A port with counts of its own. Dropping it detaches its program; so does the end of the process.
pub struct Watch {
    /// First, so that nothing counts any more when the rest goes.
    link: Option<Link>,
    kind: Kind,
    port: u32,
    shared: Arc<Shared>,
    /// Last, so that the lines of the last frames are taken when nothing more comes.
    _trace: Option<Trace>,
}

impl Watch {
    /// Makes one for each port, with its settings. They share their programs, which the first
    /// that is attached loads.
    pub fn of_ports(settings: &[Settings]) -> Result<Vec<Self>, XdpError> {
        let mut watches = Vec::new();
        for settings in settings.chunks(PORTS) {
            let shared = Arc::new(Shared::load(OBJECT, settings)?);
            watches.extend((0..settings.len() as u32).map(|port| Self::new(&shared, port)));
        }
        Ok(watches)
    }

    /// Returns a watch that shares its programs with no other.
    fn single(object: &[u8], settings: &Settings) -> Result<Self, XdpError> {
        let shared = Shared::load(object, std::slice::from_ref(settings))?;
        Ok(Self::new(&Arc::new(shared), 0))
    }

    fn new(shared: &Arc<Shared>, port: u32) -> Self {
        Self {
            link: None,
            kind: Kind::Xdp,
            port,
            shared: shared.clone(),
            _trace: None,
        }
    }

    /// Attaches each to an interface of the calling thread's network namespace, where all of them
    /// begin to count before this returns. They are detached from where they were before. A result
    /// for each, unless the programs cannot be loaded.
    ///
    /// # Panics
    /// If there are not as many places.
    pub fn attach_all(
        watches: &mut [Self],
        places: &[(&str, Point)],
    ) -> Result<Vec<Result<(), XdpError>>, XdpError> {
        assert_eq!(watches.len(), places.len(), "a place for each");
        let mut places = places.iter();
        let mut done = Vec::new();
        for watches in watches.chunk_by_mut(|one, next| Arc::ptr_eq(&one.shared, &next.shared)) {
            let mut wanted = Vec::new();
            for (watch, (interface, point)) in watches.iter_mut().zip(&mut places) {
                watch.link = None;
                watch.kind = (*point).into();
                wanted.push(Place {
                    port: watch.port,
                    interface,
                    point: *point,
                });
            }
            let shared = watches[0].shared.clone();
            let links = shared.programs().attach(&wanted)?;
            done.extend(watches.iter_mut().zip(links).map(|(watch, link)| {
                watch.link = Some(link?);
                Ok(())
            }));
        }
        Ok(done)
    }

    /// Like [`Self::attach_all`], for this one.
    pub fn attach_to(&mut self, interface: &str, point: Point) -> Result<(), XdpError> {
        let done = Self::attach_all(std::slice::from_mut(self), &[(interface, point)])?;
        done.into_iter().collect()
    }

    /// Loads a program and attaches it to `interface` of the calling thread's network namespace.
    pub fn attach(interface: &str, point: Point, settings: &Settings) -> Result<Self, XdpError> {
        let mut watch = Self::single(OBJECT, settings)?;
        watch.attach_to(interface, point)?;
        Ok(watch)
    }

    /// Loads a program without attaching it: it sees the frames of [`Watch::test_run`] alone.
    pub fn load(point: Point, settings: &Settings) -> Result<Self, XdpError> {
        let mut watch = Self::single(OBJECT, settings)?;
        watch.kind = point.into();
        watch.shared.programs().ready(watch.kind, watch.port)?;
        Ok(watch)
    }

    /// Returns a watch of the variant that writes lines about frames of `port` to `output`: slower.
    pub fn traced(settings: &Settings, port: &str, output: &TraceOutput) -> Result<Self, XdpError> {
        let mut watch = Self::single(TRACED, settings)?;
        let trace = Trace::begin(&mut watch.shared.programs().object, port, output)?;
        watch._trace = Some(trace);
        Ok(watch)
    }

    /// Place where it counts: `driver` or `skb` for XDP, `tcx ingress` or `tcx egress`, `tc
    /// ingress` or `tc egress` on kernels without tcx; `none` where it is not attached.
    pub fn place(&self) -> &'static str {
        self.link.as_ref().map_or("none", Link::place)
    }

    /// Its counts since it was attached.
    pub fn read(&self) -> Result<Reading, XdpError> {
        let counters = self.counters()?;
        let time = clock::now();
        Ok(Reading {
            time,
            counters,
            paused: std::array::from_fn(|class| self.clock(class).paused(time)),
        })
    }

    /// Runs the program `repeat` times on `frame`, which counts as if it had arrived so often. The
    /// kernel takes no frame of less than 14 octets here.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> Result<TestResult, XdpError> {
        let mut programs = self.shared.programs();
        programs.test_run(self.kind, self.port, frame, repeat, [0; 2])
    }

    /// Runs the program on what the stack holds as one and is to cut into `gso_segs` frames (0: it
    /// does not know how many) of `gso_size` octets of payload. XDP knows no such thing.
    pub fn test_run_merged(
        &self,
        frame: &[u8],
        gso_size: u32,
        gso_segs: u32,
    ) -> Result<TestResult, XdpError> {
        let mut programs = self.shared.programs();
        programs.test_run(self.kind, self.port, frame, 1, [gso_size, gso_segs])
    }
}
