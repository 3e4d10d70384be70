//! The contract between the XDP programs and userspace: map names, keys and values.
//!
//! Every value is plain old data of fixed layout, in the byte order of the host. Userspace writes
//! [`Config`] with its [`ABI_VERSION`] and a program that was built for another one counts nothing;
//! userspace checks the object's own [`super::ABI_SECTION`] at load time, so that a mismatch is an
//! error and not a wrong count.

mod control;

pub use super::{CLASSES, WHOLE_LINK};
pub use control::{ClassCounters, Control, LastControl, PauseState, PfcCounters};

use super::Trust;
use crate::stamp::Phase;
use crate::wire::Malformed;
use crate::wire::mac_control::Deviation;

/// Raised whenever a layout below changes, or one of [`super::generate`], or what a word in them
/// means.
pub const ABI_VERSION: u32 = 11;
/// Flows that one object can account for.
pub const MAX_FLOWS: u32 = 4096;
/// Sequence numbers back in which a duplicate is told from a late frame.
pub const SEEN_WINDOW: u64 = 1024;
/// Buckets of the latency histogram: bucket n counts latencies of n significant bits in
/// nanoseconds, the last all above.
pub const LATENCY_BUCKETS: usize = 32;
/// Octets kept of an offending frame.
pub const SNAP_LEN: usize = 256;

/// Names of the maps in the object.
pub mod name {
    /// `Config`, a section (and so a map) by itself.
    pub const CONFIG: &str = ".data.config";
    /// `Array<Flow>` by flow; memory-mapped.
    pub const FLOWS: &str = "FLOWS";
    /// `PerCpuArray<FlowCounters>` by `flow * PHASES + phase`.
    pub const COUNTS: &str = "COUNTS";
    /// `PerCpuArray<WindowCounters>` by `(now - epoch) / window`; arrivals after the last go into
    /// the last. Those of the present window are in [`super::Local`] until it ends.
    pub const WINDOWS: &str = "WINDOWS";
    /// `PerCpuArray<Port>`, one entry.
    pub const PORT: &str = "PORT";
    /// `Array<[PauseState; 9]>` of one entry: by priority, the last for 802.3x; memory-mapped, so
    /// that a sender reads it without a system call.
    pub const PAUSE: &str = "PAUSE";
    /// Ring buffer of [`super::Arrival`].
    pub const ARRIVALS: &str = "ARRIVALS";
    /// `Array<Control>`, a segment of equal length for each CPU, see [`super::Local`];
    /// memory-mapped, so that it is read without a system call.
    pub const CONTROLS: &str = "CONTROLS";
    /// Ring buffer of [`super::Offence`].
    pub const OFFENCES: &str = "OFFENCES";
}

/// Source of the time of a test frame whose flow and phase are not logged. Logged arrivals,
/// PAUSE and PFC are always [`Clock::Exact`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[repr(u8)]
pub enum Clock {
    /// The clock is read for each frame.
    #[default]
    Exact = 0,
    /// One reading serves up to [`BATCH`] frames, where all of these hold: the frames since the
    /// reading before came [`SPACING`] apart or less in the mean; the frame's stamp is not
    /// later than the reading; and the kernel's tick has not come since.
    ///
    /// So the arrival of at most [`BATCH`] - 1 frames in a row is told too early, by less than the
    /// frame's own latency and less than a tick (1 to 10 ms), which shows in the latencies, in
    /// the first and last arrival and in the window. No frame is counted otherwise than with
    /// [`Clock::Exact`].
    Batched = 1,
}

/// Frames that one reading of [`Clock::Batched`] serves at most.
pub const BATCH: u64 = 8;
/// Mean time between frames up to which [`Clock::Batched`] serves several with one reading, in
/// nanoseconds: 500 kframe/s.
pub const SPACING: u64 = 2000;

/// Configuration of a program; written before the frames of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// [`ABI_VERSION`] of the writer; 0 (never written) counts nothing.
    pub abi: u32,
    /// Flows in use; a stamp with another flow is malformed.
    pub flows: u32,
    /// CLOCK_MONOTONIC at the start of window 0, in nanoseconds.
    pub epoch: u64,
    /// Width of a window in nanoseconds, not 0.
    pub window: u64,
    /// Windows in use, not 0.
    pub windows: u32,
    /// Only frames stamped with this run are accounted; others count as
    /// [`PortCounters::foreign_run`].
    pub run: u16,
    /// A [`Trust`].
    pub trust: u8,
    /// A [`Clock`].
    pub clock: u8,
    /// The link's speed in bit/s, not 0: turns quanta into time for [`PauseState`].
    pub line_rate: u64,
    /// Factor for quanta at `line_rate`: [`crate::units::LineRate::quantum`].
    pub quantum: u64,
    /// Source address of the tester's own PAUSE/PFC frames: seen at a receiving port they were
    /// forwarded.
    pub storm_source: [u8; 6],
    /// 1: never do two CPUs run the program at once, so that what they share needs no atomic
    /// operations.
    pub exclusive: u8,
    /// 1: test frames are of IPv6, else of IPv4.
    pub ipv6: u8,
    /// Length, UDP checksum and filling are verified of one frame in this many, see
    /// [`crate::stamp::is_sampled`]: a power of two, 1 for all of them.
    pub verify_every: u64,
    /// Priority by DSCP; userspace alone needs it.
    pub dscp_to_priority: [u8; 64],
    /// Source and destination address of the test frames, as their IP header has them, by four
    /// octets in the order of memory: two of IPv4, eight of IPv6.
    pub addresses: [u32; 8],
}

impl Config {
    /// Counts nothing, for it has no ABI.
    pub const NONE: Self = Self {
        abi: 0,
        flows: 0,
        epoch: 0,
        window: 1,
        windows: 1,
        run: 0,
        trust: Trust::Dscp as u8,
        clock: Clock::Exact as u8,
        line_rate: 0,
        quantum: 0,
        storm_source: [0; 6],
        exclusive: 0,
        ipv6: 0,
        verify_every: 1,
        dscp_to_priority: [0; 64],
        addresses: [0; 8],
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::NONE
    }
}

/// Expected marks of a flow's frames, and how they are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FlowConfig {
    /// The DSCP or PCP (as [`Config::trust`] says) that was sent; another one is a re-mark.
    pub mark: u8,
    /// Bit per [`Phase`]: each arrival of the phase is logged in ARRIVALS.
    pub log_phases: u8,
    /// Priority (0 to 7) under which its arrivals count in WINDOWS, whatever they carry.
    pub priority: u8,
    /// Padding.
    pub _pad: u8,
    /// Length of its frames without tags and FCS.
    pub length: u16,
    /// Padding.
    pub _pad2: u16,
}

/// A flow, on cache lines of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Flow {
    /// Expected marks.
    pub config: FlowConfig,
    /// The highest sequence seen plus one (`NextExp` of RFC 4737).
    pub next: u64,
    /// Padding. With it flows are no power of two apart, so that equal places of several are in
    /// different sets of a cache.
    pub _pad2: [u64; 6],
    /// By `sequence % SEEN_WINDOW`: the last sequence seen there plus one.
    pub seen: [u64; SEEN_WINDOW as usize],
}

/// Exact counts of one flow in one phase, on one CPU. Times are CLOCK_MONOTONIC nanoseconds, of the
/// [`Clock`] that is configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FlowCounters {
    /// Distinct frames: those whose sequence number had not been seen.
    pub received: u64,
    /// Octets of those frames, without FCS.
    pub octets: u64,
    /// Arrival of the first frame; 0 when none.
    pub first: u64,
    /// Arrival of the last frame.
    pub last: u64,
    /// Sum of latencies, in nanoseconds.
    pub latency_sum: u64,
    /// Largest one-way latency, in nanoseconds.
    pub latency_max: u64,
    /// Frames of which length, UDP checksum and filling were verified, received or duplicate.
    pub verified: u64,
    /// Latencies by significant bits.
    pub latency: [u32; LATENCY_BUCKETS],
    /// Verified frames whose stamp is whole but whose UDP checksum is wrong.
    pub corrupt: u64,
    /// Frames whose sequence number had been seen.
    pub duplicate: u64,
    /// Distinct frames that came after a later one (RFC 4737, 3.3: `s < NextExp`).
    pub reordered: u64,
    /// Frames more than [`SEEN_WINDOW`] behind: late or duplicate cannot be told; counted here
    /// alone.
    pub beyond_window: u64,
    /// Frames whose DSCP or PCP is not what was sent; counted as received (or duplicate) too.
    pub remarked: u64,
    /// Remarked frames that carried no VLAN tag where the PCP is trusted.
    pub untagged: u64,
    /// Verified frames whose [filling](crate::filling) is not what was sent.
    pub altered: u64,
    /// Verified frames longer or shorter than was sent, tags left out.
    pub resized: u64,
}

/// Test frames that arrived in one window, on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct WindowCounters {
    /// Distinct frames by [`FlowConfig::priority`].
    pub frames: [u32; 8],
}

/// The program's value for a port on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Port {
    /// State from frame to frame.
    pub local: Local,
    /// Counts.
    pub counters: PortCounters,
}

/// State of the program from frame to frame, on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Local {
    /// The clock's last reading, CLOCK_MONOTONIC nanoseconds.
    pub now: u64,
    /// The kernel's ticks at that reading.
    pub tick: u64,
    /// Frames that this reading was to serve, the first among them.
    pub serves: u64,
    /// Frames of these that have not come yet.
    pub left: u64,
    /// End of the present window; 0: not known.
    pub window_end: u64,
    /// The present window.
    pub window: u32,
    /// Place in CONTROLS of the next record.
    pub log_next: u32,
    /// Place behind this CPU's last one; userspace sets both.
    pub log_end: u32,
    /// Bucket of the last latency, less 1; 0 at first.
    pub bucket: u32,
    /// Counts of the present window, which go to WINDOWS when it ends.
    pub present: WindowCounters,
}

/// Counts of a port, on one CPU. Each frame raises one of `test_frames`, `foreign_run`, `other`,
/// `malformed`, `pause` and `pfc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PortCounters {
    /// All octets, without FCS.
    pub octets: u64,
    /// Frames with a whole stamp of this run.
    pub test_frames: u64,
    /// Frames that are neither test frames, nor MAC control, nor malformed.
    pub other: u64,
    /// Frames with a whole stamp of another run.
    pub foreign_run: u64,
    /// MAC control frames, well-formed or not, whose source is [`Config::storm_source`]. They are
    /// counted here alone.
    pub own_control: u64,
    /// 802.3x PAUSE.
    pub pause: ClassCounters,
    /// IP frames by DSCP.
    pub by_dscp: [u64; 64],
    /// Tagged frames by the PCP of the outermost tag.
    pub by_pcp: [u64; 8],
    /// Frames that could not be read, by [`Malformed`].
    pub malformed: [u64; Malformed::COUNT],
    /// Malformed MAC control frames and [damaged test frames](crate::own); the others are foreign.
    pub damaged: [u64; Malformed::COUNT],
    /// Frames of [`Self::pause`] and [`Self::pfc`] that depart from the standard's form, by
    /// [`Deviation`].
    pub deviations: [u64; Deviation::COUNT],
    /// Records that did not fit into ARRIVALS.
    pub arrivals_lost: u64,
    /// Records that did not fit into CONTROLS.
    pub controls_lost: u64,
    /// Records that did not fit into OFFENCES.
    pub offences_lost: u64,
    /// PFC.
    pub pfc: PfcCounters,
}

counts!(PortCounters);

impl PortCounters {
    /// All frames.
    pub fn frames(&self) -> u64 {
        let tests = self.test_frames + self.foreign_run;
        tests
            + self.other
            + self.pfc.frames()
            + self.pause.frames()
            + self.own_control
            + self.malformed.iter().sum::<u64>()
    }

    /// Frames with at least one VLAN tag.
    pub fn tagged(&self) -> u64 {
        self.by_pcp.iter().sum()
    }

    /// Frames by priority, as `config` tells it: of IP frames where the DSCP is trusted, else of
    /// tagged frames.
    pub fn by_priority(&self, config: &Config) -> [u64; 8] {
        if config.trust == Trust::Pcp as u8 {
            return self.by_pcp;
        }
        let mut by_priority = [0; 8];
        for (count, priority) in self.by_dscp.iter().zip(config.dscp_to_priority) {
            by_priority[priority as usize & 7] += count;
        }
        by_priority
    }
}

/// The arrival of a test frame whose flow is logged in its phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Arrival {
    /// CLOCK_MONOTONIC nanoseconds.
    pub time: u64,
    /// Sequence number in its flow.
    pub sequence: u64,
    /// One-way latency in nanoseconds, at most `u32::MAX`.
    pub latency: u32,
    /// Flow.
    pub flow: u16,
    /// A [`Phase`].
    pub phase: u8,
    /// Padding.
    pub _pad: u8,
}

numbered! {
    /// The reason for keeping a frame.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
    OffenceKind {
        /// Its sequence number had been seen.
        Duplicate = 1,
        /// The frame came after a later one of its flow.
        Reordered = 2,
        /// The frame came more than [`SEEN_WINDOW`] behind.
        BeyondWindow = 3,
        /// UDP checksum wrong.
        Corrupt = 4,
        /// DSCP or PCP changed.
        Remarked = 5,
        /// Its arrival is logged: of a flow and phase in which frames should not arrive, or of a
        /// probe.
        Logged = 6,
        /// A PAUSE/PFC frame of the tester's own storm.
        OwnControl = 7,
        /// One of [`PortCounters::damaged`]; [`Offence::detail`] is the [`Malformed`].
        Malformed = 8,
        /// Its filling is not what was sent.
        Altered = 9,
        /// Longer or shorter than was sent.
        Resized = 10,
        /// One of [`PortCounters::deviations`].
        Deviation = 11,
    }
}

/// A frame that may make a check fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Offence {
    /// CLOCK_MONOTONIC nanoseconds.
    pub time: u64,
    /// Length of the frame, without FCS.
    pub length: u16,
    /// Octets kept of it.
    pub kept: u16,
    /// An [`OffenceKind`].
    pub kind: u8,
    /// A [`Malformed`] where the kind is that.
    pub detail: u8,
    /// Padding.
    pub _pad: [u8; 2],
    /// The first octets of the frame; those from `kept` on are zero.
    pub snap: [u8; SNAP_LEN],
}

/// The entry of COUNTS for a flow in a phase.
pub const fn counts_index(flow: u16, phase: Phase) -> u32 {
    flow as u32 * Phase::COUNT as u32 + phase as u32
}
