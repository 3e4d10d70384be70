//! The contract between the programs of `watch` and userspace, and what they read and count of a
//! frame: all that passes a port, by whomever it was sent.

pub use super::{CLASSES as PAUSED, WHOLE_LINK};
use crate::stamp::Stamp;
use crate::wire::Malformed;

/// Raised whenever a layout below changes.
pub const ABI_VERSION: u32 = 5;
/// Ports that the programs of one object can count apart, at most: as many as it has entries.
pub const PORTS: usize = 32;
/// Octets of a frame that are read: two tags, IPv4 with all its options, UDP, and a stamp. More
/// than any MAC control frame has.
pub const HEADERS: usize = 112;

/// Names of maps and programs in the object, and places of programs in their arrays.
pub mod name {
    /// `ProgramArray` of [`XDP_PROGRAMS`], to the first of which the entries of the ports hand on.
    pub const XDP: &str = "XDP";
    /// `ProgramArray` of [`TC_PROGRAMS`], likewise.
    pub const TC: &str = "TC";
    /// Programs for XDP by their place: counts frames in one piece, counts frames in several, sorts
    /// frames.
    pub const XDP_PROGRAMS: [&str; 3] = ["watch", "watch_pieces", "watch_sort"];
    /// Place of `watch_pieces`.
    pub const PIECES: u32 = 1;
    /// Place of `watch_sort`.
    pub const XDP_SORT: u32 = 2;
    /// Programs for tc by their place: counts frames, sorts frames.
    pub const TC_PROGRAMS: [&str; 2] = ["watch_tc", "watch_tc_sort"];
    /// Place of `watch_tc_sort`.
    pub const TC_SORT: u32 = 1;
    /// `Array<Config>` by port.
    pub const CONFIG: &str = "CONFIG";
    /// `PerCpuArray<Counters>` by port.
    pub const COUNTERS: &str = "COUNTERS";
    /// `Array<PauseClock>` by `port * PAUSED + priority`, at priority 8 for 802.3x;
    /// memory-mapped, to be read without a system call.
    pub const PAUSE: &str = "PAUSE";
    /// Ring buffer of [`super::Control`].
    pub const CONTROLS: &str = "CONTROLS";
    /// `HashMap<u64, u32>` from [`super::flow_key`] to a flow's place in STATES and SEEN.
    pub const FLOWS: &str = "FLOWS";
    /// `Array<u64>` by port: how many of its places are taken.
    pub const TAKEN: &str = "TAKEN";
    /// `Array<FlowState>` by place.
    pub const STATES: &str = "STATES";
    /// `Array<u64>` by `place * SEEN_WINDOW + sequence % SEEN_WINDOW`: the last sequence number
    /// seen there plus one.
    pub const SEEN: &str = "SEEN";
    /// `PerCpuArray<Sketch>` by [`super::Config::sketch`].
    pub const SKETCH: &str = "SKETCH";
}

/// Octets from the network header on by which frames are told apart: IPv6, TCP with options, and
/// some payload.
pub const COMPARED: usize = 128;
/// Classes into which frames are sorted. A value of a per-CPU map is at most 32 KiB.
pub const CLASSES: usize = 2048;

/// Frames that have a priority, sorted by a hash of the octets that no device on the way changes:
/// two ports that saw the same frames have equal sketches. Filled where flows are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Sketch {
    /// Sum of the hashes, modulo 2^64.
    pub digest: u64,
    /// Frames that are in no class: merged ones, whose parts are not to be seen.
    pub unsorted: u64,
    /// Frames by the lowest bits of their hash.
    pub classes: [u64; CLASSES],
}

impl Sketch {
    /// The frames sorted since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            digest: self.digest.wrapping_sub(earlier.digest),
            unsorted: self.unsorted.saturating_sub(earlier.unsorted),
            classes: core::array::from_fn(|class| {
                self.classes[class].saturating_sub(earlier.classes[class])
            }),
        }
    }

    /// Frames in all classes.
    pub fn sorted(&self) -> u64 {
        self.classes.iter().sum()
    }
}

/// Configuration of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// [`ABI_VERSION`] of the writer; 0 (never written) counts nothing.
    pub abi: u32,
    /// A [`super::Trust`].
    pub trust: u8,
    /// 1: MAC control frames are recorded in CONTROLS.
    pub capture: u8,
    /// The entry of SKETCH where its frames are sorted, if flows are told apart.
    pub sketch: u16,
    /// Flows of test frames that are told apart, by run and flow; 0: their stamps are only
    /// counted.
    pub flows: u32,
    /// The first of the places that belong to its flows.
    pub first_flow: u32,
    /// The link's speed in bit/s, which turns quanta into time; 0 where it is not known.
    pub line_rate: u64,
    /// Priority by DSCP.
    pub dscp_to_priority: [u8; 64],
}

/// Frames, and their octets without FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Volume {
    /// Frames.
    pub frames: u64,
    /// Octets.
    pub octets: u64,
}

impl Volume {
    #[inline(always)]
    pub(crate) fn add(&mut self, more: Self) {
        self.frames += more.frames;
        self.octets += more.octets;
    }
}

numbered! {
    /// Obstacle between the IP header of a packet and its transport, which may be RoCEv2.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    Hidden {
        /// An extension header of IPv6, other than the fragment header. Behind IPv4 those of IPsec
        /// may stand, too. RoCEv2 has none: its next header is UDP (InfiniBand Architecture
        /// Specification, annex A17).
        Extension = 0,
        /// The packet is one of several fragments.
        Fragment = 1,
        /// A tunnel: IP, GRE, Ethernet, MPLS, L2TP or a compressed payload in IP, or one on UDP.
        Tunnel = 2,
    }
}

numbered! {
    /// Reason why the frames of a merged packet are unknown.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    Untold {
        /// The headers could not be read, or do not fit the number of frames: they are octets of
        /// one frame alone.
        Headers = 0,
        /// The stack does not know the number of frames either: they count as one.
        Number = 1,
    }
}

/// PAUSE or PFC frames that address a class: a priority, or the whole link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ClassCounters {
    /// Frames with time > 0.
    pub xoff: u64,
    /// Frames with time 0.
    pub xon: u64,
}

/// Counts of a port, on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// All frames.
    pub total: Volume,
    /// Frames by the priority that [`Config::trust`] gives.
    pub by_priority: [Volume; 8],
    /// Frames that have none: no IP where the DSCP is trusted, no tag where the PCP is; and those
    /// that could not be read.
    pub no_priority: Volume,
    /// IP frames by DSCP.
    pub by_dscp: [Volume; 64],
    /// Tagged frames by PCP of the outermost tag.
    pub by_pcp: [Volume; 8],
    /// Tagged frames with two tags.
    pub double_tagged: u64,
    /// IP frames by ECN field: Not-ECT, ECT(1), ECT(0), CE (RFC 3168, 5).
    pub by_ecn: [u64; 4],
    /// Frames with CE by priority.
    pub ce: [u64; 8],
    /// Frames that could not be read, by [`Malformed`]. Those of
    /// [`Malformed::is_of_a_test`] stay 0: no port is the tester's own here.
    pub malformed: [u64; Malformed::COUNT],
    /// Frames whose transport was not looked for, by [`Hidden`].
    pub hidden: [u64; Hidden::COUNT],
    /// Packets that offloads merged and whose frames are unknown, by [`Untold`].
    pub untold: [u64; Untold::COUNT],
    /// 802.3x PAUSE.
    pub pause: ClassCounters,
    /// PFC frames, whatever their vector.
    pub pfc_frames: u64,
    /// PFC frames whose class-enable vector is zero.
    pub pfc_empty: u64,
    /// PFC by priority.
    pub pfc: [ClassCounters; 8],
    /// RoCEv2 packets.
    pub roce: Volume,
    /// RoCEv2 packets with CE.
    pub roce_ce: u64,
    /// RoCEv2 packets by the opcode in the BTH.
    pub by_opcode: [u64; 256],
    /// Frames with a whole stamp of the validator.
    pub stamped: u64,
    /// Stamped frames for whose flow there was no place.
    pub flows_lost: u64,
    /// MAC control frames that did not fit into CONTROLS.
    pub controls_lost: u64,
}

/// Time for which a class has been paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PauseClock {
    /// Nanoseconds paused up to `at`.
    pub paused: u64,
    /// Arrival of the last frame that addressed the class, CLOCK_MONOTONIC nanoseconds.
    pub at: u64,
    /// End of the pause that it began; not after `at` where a time of 0 ended it.
    pub until: u64,
}

impl PauseClock {
    /// Nanoseconds paused up to `now`.
    #[inline(always)]
    pub const fn paused(&self, now: u64) -> u64 {
        let end = if now < self.until { now } else { self.until };
        self.paused + end.saturating_sub(self.at)
    }
}

/// Key of a flow of a port in FLOWS.
pub const fn flow_key(port: u32, stamp: &Stamp) -> u64 {
    (port as u64) << 32 | (stamp.run as u64) << 16 | stamp.flow as u64
}

/// The sequence numbers of a flow of test frames. Words are only ever raised or added to, so that
/// several CPUs may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FlowState {
    /// The bits of the lowest sequence number, inverted.
    pub not_lowest: u64,
    /// The highest sequence number plus one.
    pub next: u64,
    /// Distinct frames: those whose sequence number had not been seen.
    pub distinct: u64,
    /// Frames whose sequence number had been seen.
    pub duplicate: u64,
    /// Frames more than [`crate::abi::account::SEEN_WINDOW`] behind: late or duplicate cannot be
    /// told.
    pub beyond_window: u64,
    /// Priority of the last frame; 8 where it has none.
    pub priority: u64,
}

/// A MAC control frame as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Control {
    /// CLOCK_MONOTONIC nanoseconds.
    pub time: u64,
    /// Octets of the frame, without FCS and without the tag below.
    pub length: u32,
    /// TPID of the tag that stood beside the frame, between its source address and what follows; 0
    /// where there was none.
    pub tpid: u16,
    /// The tag's TCI.
    pub tci: u16,
    /// The port that it came to.
    pub port: u32,
    /// Padding.
    pub _pad: u32,
    /// The frame's first octets, the rest zero.
    pub octets: [u8; HEADERS],
}

counts!(Counters Sketch);

impl ClassCounters {
    #[inline(always)]
    pub(crate) fn add(&mut self, quanta: u16) {
        if quanta > 0 {
            self.xoff += 1;
        } else {
            self.xon += 1;
        }
    }
}
