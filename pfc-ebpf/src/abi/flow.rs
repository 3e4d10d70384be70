//! The contract between the program `flow` and userspace: ports that count the frames of an engine.

use super::watch::PauseClock;
pub use super::{CLASSES, WHOLE_LINK};

/// Raised whenever a layout below changes.
pub const ABI_VERSION: u32 = 5;
/// Sequence numbers of a flow that are remembered: a frame that comes later than so many others
/// cannot be told from a duplicate. A power of two.
pub const SEEN_WINDOW: u64 = 512;
/// Queues of a port that classes hold.
pub const QUEUES: usize = 8;
/// Sources of MAC control frames that can be known as this tester's own.
pub const OWN_SOURCES: u32 = 1 << 16;
/// Longest frame that is kept whole, without FCS.
pub const LONGEST: usize = 16 * 1024 - size_of::<RecordHead>();
/// In [`Flow::generation`], beside the generation: the place is in use.
pub const IN_USE: u64 = 1 << 16;
/// In [`Flow::generation`]: frames of the flow have a short stamp, and no other.
pub const SHORT: u64 = 1 << 17;

/// Names of the maps in the object.
pub mod name {
    /// `Array<Config>`, one entry; memory-mapped.
    pub const CONFIG: &str = "CONFIG";
    /// `PerCpuArray<Port>`, one entry.
    pub const PORT: &str = "PORT";
    /// `Array<Flow>` by the stamp's flow; memory-mapped. The loader sets the number of entries.
    pub const FLOWS: &str = "FLOWS";
    /// `Array<Pauses>`, one entry; memory-mapped.
    pub const PAUSE: &str = "PAUSE";
    /// `HashMap<u64, u64>` whose keys are the source addresses of this tester's own MAC control
    /// frames, as 48-bit numbers in network order.
    pub const OWN: &str = "OWN";
    /// Ring buffer of captured frames: [`super::RecordHead`], then the octets.
    pub const CAPTURE: &str = "CAPTURE";
    /// Ring buffer of ARP and ND frames in the same form.
    pub const NEIGHBOURS: &str = "NEIGHBOURS";
}

/// By queue, a bit for each class that holds it.
pub type Holders = [u64; QUEUES];

/// Pauses that frames asked for, and how long they held the queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pauses {
    /// By class, the end of its pause, CLOCK_MONOTONIC nanoseconds; 0 after a time of 0.
    pub until: [u64; CLASSES],
    /// By queue, the time for which it was held by whichever of its classes: at no time by two of
    /// them, though both were paused.
    pub queues: [PauseClock; QUEUES],
}

/// The end of the last pause among `classes`, which has a bit for each; 0 where there is none.
#[inline(always)]
pub const fn latest(classes: u64, until: &[u64; CLASSES]) -> u64 {
    let (mut class, mut latest) = (0, 0);
    while class < CLASSES {
        // Without a branch: a verifier walks both sides of each.
        let end = until[class] & (classes >> class & 1).wrapping_neg();
        latest = if end > latest { end } else { latest };
        class += 1;
    }
    latest
}

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
    /// Classes that hold each queue.
    pub holders: Holders,
}

/// Counts of what a port received, on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// PAUSE frames that are not this tester's own.
    pub pause: u64,
    /// PFC frames that are not.
    pub pfc: u64,
    /// These by class that they address.
    pub pfc_by_class: [u64; 8],
    /// PAUSE frames of this tester's own, by [`name::OWN`].
    pub own_pause: u64,
    /// PFC frames of its own.
    pub own_pfc: u64,
    /// These by class that they address.
    pub own_pfc_by_class: [u64; 8],
    /// PAUSE frames with a source address of zeros, which is nobody's.
    pub nobodys_pause: u64,
    /// PFC frames with it.
    pub nobodys_pfc: u64,
    /// These by class that they address.
    pub nobodys_pfc_by_class: [u64; 8],
    /// MAC control frames that are neither.
    pub other_control: u64,
    /// ARP and ND frames.
    pub neighbours: u64,
    /// Their octets, without FCS.
    pub neighbour_octets: u64,
    /// Any other frames.
    pub other: u64,
    /// Frames that the capture had no room for.
    pub missed: u64,
}

counts!(Port Received);

/// Frames of one start of a flow that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Received {
    /// Distinct frames.
    pub frames: u64,
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
    /// Frames that are within another: quoted by an ICMP error, or in a tunnel.
    pub wrapped: u64,
    /// Sum of latencies, nanoseconds.
    pub latency_sum: u64,
    /// Greatest latency.
    pub latency_max: u64,
    /// The bits of the least latency, inverted.
    pub not_latency_min: u64,
}

impl Received {
    /// Least latency, nanoseconds; the greatest number there is where no frame arrived.
    pub const fn latency_min(&self) -> u64 {
        !self.not_latency_min
    }
}

/// A place for the frames of one start of a flow. Words are only raised or added to while it is in
/// use, so that several CPUs may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Flow {
    /// Generation in the stamps, [`IN_USE`], and [`SHORT`].
    pub generation: u64,
    /// The highest sequence number plus one.
    pub next: u64,
    /// Counts of what arrived.
    pub received: Received,
    /// Not 0: the UDP checksum of the frames is right, and is verified.
    pub verify: u64,
    /// Wrappings, by bits of [`crate::wire::wrap`], with which frames are still its own.
    pub wraps: u64,
    /// The last sequence number seen there plus one, by sequence number modulo [`SEEN_WINDOW`].
    pub seen: [u64; SEEN_WINDOW as usize],
}

/// Head of a record, before its octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RecordHead {
    /// CLOCK_MONOTONIC nanoseconds of the arrival.
    pub time: u64,
    /// Octets of the frame, without FCS; those that are kept follow.
    pub length: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_end_is_that_of_the_classes_asked_for_alone() {
        let until = core::array::from_fn(|class| [5, 80, 30, 70, 0, 1, 2, 3, 90][class]);
        for (classes, expected) in [(0, 0), (1, 5), (0b1101, 70), (0x1ff, 90), (0x10, 0)] {
            assert_eq!(latest(classes, &until), expected, "{classes:#b}");
        }
    }
}
