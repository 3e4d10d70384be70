//! The contract between the XDP programs and userspace: map names, keys and values.
//!
//! Every value is plain old data of fixed layout, in the byte order of the host. Userspace writes [`Config`] with its
//! [`ABI_VERSION`] and a program that was built for another one counts nothing; userspace checks the object's own
//! [`ABI_SECTION`] at load time, so that a mismatch is an error and not a wrong count.

use crate::stamp::Phase;

/// Raised whenever a layout below changes.
pub const ABI_VERSION: u32 = 1;
/// The section (and so the map) of the object that holds the version it was built with, and nothing else.
pub const ABI_SECTION: &str = ".rodata.abi";
/// Flows that one object can account for.
pub const MAX_FLOWS: u32 = 4096;
/// Sequence numbers back in which a duplicate is told from a late frame.
pub const SEEN_WINDOW: u64 = 1024;
/// Buckets of the latency histogram: bucket n counts latencies of n significant bits in nanoseconds, the last all above.
pub const LATENCY_BUCKETS: usize = 32;
/// Octets kept of an offending frame.
pub const SNAP_LEN: usize = 256;

/// Names of the maps in the object.
pub mod name {
    /// `Array<Config>`, one entry.
    pub const CONFIG: &str = "CONFIG";
    /// `Array<FlowConfig>` by flow.
    pub const FLOWS: &str = "FLOWS";
    /// `PerCpuArray<FlowCounters>` by `flow * PHASES + phase`.
    pub const COUNTS: &str = "COUNTS";
    /// `Array<u64>` by `flow * SEEN_WINDOW + sequence % SEEN_WINDOW`: the last sequence seen there plus one.
    pub const SEEN: &str = "SEEN";
    /// `Array<u64>` by flow: the highest sequence seen plus one (`NextExp` of RFC 4737).
    pub const NEXT: &str = "NEXT";
    /// `PerCpuArray<WindowCounters>` by `(now - epoch) / window`; arrivals after the last go into the last.
    pub const WINDOWS: &str = "WINDOWS";
    /// `PerCpuArray<PortCounters>`, one entry.
    pub const PORT: &str = "PORT";
    /// `Array<PauseState>` by priority, entry 8 for 802.3x; memory-mapped, so that a sender reads it without a system call.
    pub const PAUSE: &str = "PAUSE";
    /// Ring buffer of [`super::Arrival`].
    pub const ARRIVALS: &str = "ARRIVALS";
    /// Ring buffer of [`super::Control`].
    pub const CONTROLS: &str = "CONTROLS";
    /// Ring buffer of [`super::Offence`].
    pub const OFFENCES: &str = "OFFENCES";
}

/// Which field tells the priority of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Trust {
    /// The DSCP, through the map of [`Config::dscp_to_priority`].
    Dscp = 0,
    /// The PCP of the outermost VLAN tag.
    Pcp = 1,
}

/// What a program needs to know; written before the frames of a repetition.
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
    /// Only frames stamped with this run are accounted; others count as [`PortCounters::foreign_run`].
    pub run: u16,
    /// A [`Trust`].
    pub trust: u8,
    /// Padding.
    pub _pad: u8,
    /// The link's speed in bit/s, not 0: turns quanta into time for [`PauseState`].
    pub line_rate: u64,
    /// Source address of the tester's own PAUSE/PFC frames: seen at a receiving port they were forwarded.
    pub storm_source: [u8; 6],
    /// Padding.
    pub _pad2: [u8; 2],
    /// Priority by DSCP.
    pub dscp_to_priority: [u8; 64],
}

/// What is expected of a flow's frames.
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
}

/// Exact counts of one flow in one phase, on one CPU. Times are CLOCK_MONOTONIC nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FlowCounters {
    /// Distinct frames: those whose sequence number had not been seen.
    pub received: u64,
    /// Octets of those frames, without FCS.
    pub octets: u64,
    /// Frames whose sequence number had been seen.
    pub duplicate: u64,
    /// Distinct frames that came after a later one (RFC 4737, 3.3: `s < NextExp`).
    pub reordered: u64,
    /// Frames more than [`SEEN_WINDOW`] behind: late or duplicate cannot be told; counted here alone.
    pub beyond_window: u64,
    /// Frames whose stamp is whole but whose UDP checksum is wrong; counted as received (or duplicate) too.
    pub corrupt: u64,
    /// Frames whose DSCP or PCP is not what was sent; counted as received (or duplicate) too.
    pub remarked: u64,
    /// Of those, frames that carried no VLAN tag where the PCP is trusted.
    pub untagged: u64,
    /// Arrival of the first frame; 0 when none.
    pub first: u64,
    /// Arrival of the last frame.
    pub last: u64,
    /// Largest one-way latency, in nanoseconds.
    pub latency_max: u64,
    /// Sum of latencies, in nanoseconds.
    pub latency_sum: u64,
    /// Latencies by significant bits.
    pub latency: [u32; LATENCY_BUCKETS],
}

/// Test frames that arrived in one window, on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct WindowCounters {
    /// Distinct frames by [`FlowConfig::priority`].
    pub frames: [u32; 8],
    /// Octets without FCS.
    pub octets: [u32; 8],
}

/// PAUSE/PFC of one class: a priority of PFC, or all of 802.3x.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ClassCounters {
    /// Frames that address the class.
    pub frames: u64,
    /// Of those, with time > 0.
    pub xoff: u64,
    /// Of those, with time 0.
    pub xon: u64,
    /// Time of the last one, in quanta.
    pub last_quanta: u64,
    /// Arrival of the last one, CLOCK_MONOTONIC nanoseconds.
    pub last: u64,
}

/// Why a frame could not be read; indexes [`PortCounters::malformed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[repr(u8)]
pub enum Malformed {
    /// Shorter than its Ethernet header or tags.
    EthernetTruncated = 0,
    /// More than two VLAN tags.
    TooManyTags = 1,
    /// IPv4 header cut short, or its length field below 20 or above the frame.
    Ipv4Truncated = 2,
    /// Version field is not what the EtherType says.
    IpVersion = 3,
    /// IPv6 header cut short, or its length above the frame.
    Ipv6Truncated = 4,
    /// UDP header cut short, or its length field does not fit.
    UdpTruncated = 5,
    /// A MAC control frame too short for its opcode.
    ControlTruncated = 6,
    /// A MAC control frame with an opcode that is neither PAUSE nor PFC.
    ControlOpcode = 7,
    /// A MAC control frame behind a VLAN tag: MACs ignore these.
    ControlTagged = 8,
    /// A PAUSE/PFC frame whose destination is not 01-80-C2-00-00-01: counted apart, not as PAUSE/PFC.
    ControlDestination = 9,
    /// A frame to the test port whose stamp is damaged: cannot be attributed to a flow.
    Stamp = 10,
    /// An IPv4 header whose checksum is wrong.
    Ipv4Checksum = 11,
}

impl Malformed {
    /// Whether it is a MAC control frame.
    pub const fn is_control(self) -> bool {
        matches!(self, Self::ControlTruncated | Self::ControlOpcode | Self::ControlTagged | Self::ControlDestination)
    }

    /// How many reasons there are.
    pub const COUNT: usize = 12;

    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::EthernetTruncated,
        Self::TooManyTags,
        Self::Ipv4Truncated,
        Self::IpVersion,
        Self::Ipv6Truncated,
        Self::UdpTruncated,
        Self::ControlTruncated,
        Self::ControlOpcode,
        Self::ControlTagged,
        Self::ControlDestination,
        Self::Stamp,
        Self::Ipv4Checksum,
    ];
}

/// Counts of a port, on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PortCounters {
    /// All frames.
    pub frames: u64,
    /// All octets, without FCS.
    pub octets: u64,
    /// Frames with a whole stamp of this run.
    pub test_frames: u64,
    /// Frames with a whole stamp of another run.
    pub foreign_run: u64,
    /// Frames that are neither test frames, nor MAC control, nor malformed.
    pub other: u64,
    /// Frames with at least one VLAN tag.
    pub tagged: u64,
    /// IP frames by DSCP.
    pub by_dscp: [u64; 64],
    /// IP or tagged frames by priority, as [`Config::trust`] says.
    pub by_priority: [u64; 8],
    /// Frames that could not be read, by [`Malformed`].
    pub malformed: [u64; Malformed::COUNT],
    /// 802.3x PAUSE.
    pub pause: ClassCounters,
    /// PFC frames, whatever their vector.
    pub pfc_frames: u64,
    /// PFC frames whose class-enable vector is zero.
    pub pfc_empty: u64,
    /// PFC by priority.
    pub pfc: [ClassCounters; 8],
    /// MAC control frames, well-formed or not, whose source is [`Config::storm_source`]; counted in the above too.
    pub own_control: u64,
    /// Records that did not fit into ARRIVALS.
    pub arrivals_lost: u64,
    /// Records that did not fit into CONTROLS.
    pub controls_lost: u64,
    /// Records that did not fit into OFFENCES.
    pub offences_lost: u64,
}

/// What the last PFC (or PAUSE) of a class says; written by the program, read by the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PauseState {
    /// The class is paused until then, CLOCK_MONOTONIC nanoseconds; at or before now: not paused.
    pub until: u64,
    /// When the present unbroken pause began; meaningful while paused.
    pub since: u64,
    /// Frames with time > 0 that addressed the class.
    pub xoff: u64,
    /// Frames with time 0 that addressed the class.
    pub xon: u64,
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

/// A well-formed PAUSE or PFC frame that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Control {
    /// CLOCK_MONOTONIC nanoseconds.
    pub time: u64,
    /// 0x0001 PAUSE (time in `quanta[0]`, vector 0) or 0x0101 PFC.
    pub opcode: u16,
    /// Class-enable vector of PFC as it stands in the frame.
    pub vector: u16,
    /// Times of priorities 0 to 7.
    pub quanta: [u16; 8],
    /// Source address.
    pub source: [u8; 6],
    /// Padding.
    pub _pad: [u8; 6],
}

/// Why a frame was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[repr(u8)]
pub enum OffenceKind {
    /// Its sequence number had been seen.
    Duplicate = 1,
    /// It came after a later frame of its flow.
    Reordered = 2,
    /// More than [`SEEN_WINDOW`] behind.
    BeyondWindow = 3,
    /// UDP checksum wrong.
    Corrupt = 4,
    /// DSCP or PCP changed.
    Remarked = 5,
    /// Its arrival is logged: of a flow and phase in which frames should not arrive, or of a probe.
    Logged = 6,
    /// A PAUSE/PFC frame of the tester's own storm.
    OwnControl = 7,
    /// Could not be read; [`Offence::detail`] is the [`Malformed`].
    Malformed = 8,
}

impl OffenceKind {
    /// All kinds, in the order of their numbers, which begin at 1.
    pub const ALL: [Self; 8] = [
        Self::Duplicate,
        Self::Reordered,
        Self::BeyondWindow,
        Self::Corrupt,
        Self::Remarked,
        Self::Logged,
        Self::OwnControl,
        Self::Malformed,
    ];

    /// The kind of that number, if there is one.
    pub fn from_number(value: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == value)
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
