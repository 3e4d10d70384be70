//! The contract between the program `flow` and userspace: ports that count the frames of an engine.

use super::watch::PauseClock;

/// Raised whenever a layout below changes.
pub const ABI_VERSION: u32 = 1;
/// Sequence numbers of a flow that are remembered: a frame that comes later than so many others
/// cannot be told from a duplicate. A power of two.
pub const SEEN_WINDOW: u64 = 512;
/// Classes that can be paused: eight priorities, and the whole link by 802.3x.
pub const CLASSES: usize = 9;
/// The entry of 802.3x among them.
pub const WHOLE_LINK: usize = 8;
/// Longest frame that is kept whole, without FCS.
pub const LONGEST: usize = 16 * 1024 - size_of::<RecordHead>();
/// In [`Flow::generation`], beside the generation: the place is in use.
pub const IN_USE: u64 = 1 << 16;

/// Names of the maps in the object.
pub mod name {
    /// `Array<Config>`, one entry; memory-mapped.
    pub const CONFIG: &str = "CONFIG";
    /// `PerCpuArray<Port>`, one entry.
    pub const PORT: &str = "PORT";
    /// `Array<Flow>` by the stamp's flow; memory-mapped. The loader sets the number of entries.
    pub const FLOWS: &str = "FLOWS";
    /// `Array<[PauseClock; CLASSES]>`, one entry; memory-mapped.
    pub const PAUSE: &str = "PAUSE";
    /// Ring buffer of captured frames: [`super::RecordHead`], then the octets.
    pub const CAPTURE: &str = "CAPTURE";
    /// Ring buffer of ARP and ND frames in the same form.
    pub const NEIGHBOURS: &str = "NEIGHBOURS";
}

/// Pauses of all classes.
pub type Pauses = [PauseClock; CLASSES];

/// Settings of the program. Before userspace has written them, nothing is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// [`ABI_VERSION`].
    pub abi: u64,
    /// Not 0: frames are captured.
    pub capture: u64,
    /// [`crate::units::LineRate::quantum`] of the port.
    pub quantum: u64,
}

/// What a port received, on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Port {
    /// All frames.
    pub frames: u64,
    /// Their octets, without FCS.
    pub octets: u64,
    /// Frames with a whole stamp of a flow in use.
    pub test: u64,
    /// Frames with a whole stamp of an earlier start.
    pub stale: u64,
    /// Frames with a stamp whose check is wrong.
    pub damaged: u64,
    /// PAUSE frames.
    pub pause: u64,
    /// PFC frames.
    pub pfc: u64,
    /// PFC frames by class that they address.
    pub pfc_by_class: [u64; 8],
    /// MAC control frames that are neither.
    pub other_control: u64,
    /// ARP and ND frames.
    pub neighbours: u64,
    /// Any other frames.
    pub other: u64,
    /// Frames that the capture had no room for.
    pub missed: u64,
}

impl Port {
    /// Adds what another CPU counted.
    pub fn merge(&mut self, cpu: &Self) {
        self.frames += cpu.frames;
        self.octets += cpu.octets;
        self.test += cpu.test;
        self.stale += cpu.stale;
        self.damaged += cpu.damaged;
        self.pause += cpu.pause;
        self.pfc += cpu.pfc;
        for (sum, cpu) in self.pfc_by_class.iter_mut().zip(cpu.pfc_by_class) {
            *sum += cpu;
        }
        self.other_control += cpu.other_control;
        self.neighbours += cpu.neighbours;
        self.other += cpu.other;
        self.missed += cpu.missed;
    }
}

/// A place for the frames of one start of a flow. Words are only raised or added to while it is in
/// use, so that several CPUs may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Flow {
    /// Generation in the stamps, and [`IN_USE`].
    pub generation: u64,
    /// The highest sequence number plus one.
    pub next: u64,
    /// Distinct frames.
    pub received: u64,
    /// Their octets, without FCS.
    pub octets: u64,
    /// Frames whose sequence number had been seen.
    pub duplicates: u64,
    /// Distinct frames after a later one.
    pub reordered: u64,
    /// Frames too late to say whether they had been seen.
    pub beyond: u64,
    /// Frames with other octets than were sent.
    pub corrupt: u64,
    /// Sum of latencies, nanoseconds.
    pub latency_sum: u64,
    /// Greatest latency.
    pub latency_max: u64,
    /// The bits of the least latency, inverted.
    pub not_latency_min: u64,
    /// Not 0: the UDP checksum of the frames is right, and is verified.
    pub verify: u64,
    /// The last sequence number seen there plus one, by sequence number modulo [`SEEN_WINDOW`].
    pub seen: [u64; SEEN_WINDOW as usize],
}

/// What stands before the octets of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RecordHead {
    /// CLOCK_MONOTONIC nanoseconds of the arrival.
    pub time: u64,
    /// Octets of the frame, without FCS; those that are kept follow.
    pub length: u64,
}
