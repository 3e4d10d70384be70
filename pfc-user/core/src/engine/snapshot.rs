//! Counts of an engine, at one time.

use std::net::IpAddr;
use std::ops::{Add, AddAssign};

use pfc_ebpf::units::{Nanos, Priority};

use super::storm::Gaps;

/// Time from one look at the counts to the next, from which rates are computed.
pub const SAMPLING: Nanos = 50_000_000;

/// All counts, read within a few milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub at: Nanos,
    /// Counts by port, in the plan's order.
    pub ports: Vec<PortCounts>,
    /// Counts by flow, in the plan's order.
    pub flows: Vec<FlowCounts>,
}

/// Counts of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Frames.
    pub frames: u64,
    /// Octets of the frames, with FCS.
    pub octets: u64,
}

impl Count {
    /// Frames counted since then.
    pub const fn since(self, then: Self) -> Self {
        Self {
            frames: self.frames.saturating_sub(then.frames),
            octets: self.octets.saturating_sub(then.octets),
        }
    }
}

impl Add for Count {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            frames: self.frames + more.frames,
            octets: self.octets + more.octets,
        }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, more: Self) {
        *self = *self + more;
    }
}

/// Rate over the last second, or since traffic began within it; 0 within a tenth of a second after
/// it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Frames a second.
    pub frames: f64,
    /// Octets a second, with FCS.
    pub octets: f64,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortCounts {
    /// True if the link is up.
    pub link_up: bool,
    /// True if some flow of it is started and has not ended.
    pub transmitting: bool,
    /// True if it captures.
    pub capturing: bool,
    /// Frames that its last capture had no room for.
    pub capture_missed: u64,
    /// Frames of flows that left since its counts began: with the plan, and anew with a start. ARP
    /// and Neighbour Discovery without a stamp are not among them.
    pub sent: Count,
    /// Frames that arrived since then, without ARP and Neighbour Discovery that have no stamp.
    pub received: Count,
    /// Rate of the frames that left.
    pub sent_rate: Rates,
    /// Rate of the frames that arrived.
    pub received_rate: Rates,
    /// PAUSE (802.3x) frames that arrived and that no flow of the plan sends.
    pub pause_received: u64,
    /// PAUSE frames of the plan's own flows that arrived.
    pub own_pause_received: u64,
    /// PAUSE frames that left.
    pub pause_sent: u64,
    /// PFC frames that arrived, held or released a class, and that no flow of the plan sends, by
    /// class.
    pub pfc_received: [u64; Priority::COUNT],
    /// PFC frames of the plan's own flows that arrived, by class.
    pub own_pfc_received: [u64; Priority::COUNT],
    /// PAUSE frames that arrived from an address of zeros, as a flow of the plan sends them: they
    /// are that flow's or a device's.
    pub undecided_pause_received: u64,
    /// PFC frames of that kind, by class.
    pub undecided_pfc_received: [u64; Priority::COUNT],
    /// PFC frames that left, by class.
    pub pfc_sent: [u64; Priority::COUNT],
    /// Time for which each queue was held, nanoseconds.
    pub held: [Nanos; Priority::COUNT],
    /// Responses of each queue's sender to what held it, since the port is in use.
    pub responses: [Response; Priority::COUNT],
}

/// Responses of a queue so far. Frames and times are upper bounds: the order of frames that were
/// sent together is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Times that the queue was found held, having been free before.
    pub holds: u64,
    /// Frames that left after the pause frame had arrived, of all holds.
    pub after: Count,
    /// The longest time from a pause frame's arrival to the last frame that left after it.
    pub longest: Nanos,
}

impl Add for Response {
    type Output = Self;

    /// The responses of two senders, each to holds that the other has not counted.
    fn add(self, other: Self) -> Self {
        Self {
            holds: self.holds + other.holds,
            after: self.after + other.after,
            longest: self.longest.max(other.longest),
        }
    }
}

/// State of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transmit {
    /// Not started, stopped, or at its end.
    #[default]
    Stopped,
    /// Sent, or held by a pause frame of the DUT alone.
    Started,
    /// Held by an order.
    Paused,
}

/// A flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowCounts {
    /// State.
    pub transmit: Transmit,
    /// Frames that left since its start.
    pub sent: Count,
    /// Frames of that start that arrived where they should.
    pub received: Count,
    /// Rate of the frames that left.
    pub sent_rate: Rates,
    /// Rate of the frames that arrived.
    pub received_rate: Rates,
    /// Frames that arrived a second time; not among `received`.
    pub duplicates: u64,
    /// Frames that arrived so long after a later one that it is unknown whether they had been
    /// counted: neither among `received` nor among `duplicates`.
    pub beyond_window: u64,
    /// Frames that arrived after a later one.
    pub reordered: u64,
    /// Frames that arrived with other octets than were sent.
    pub corrupt: u64,
    /// Frames that arrived at a port that is none of the flow's.
    pub leaked: u64,
    /// Frames that arrived within another: quoted by an ICMP error, or in a tunnel that they were
    /// not sent in. Counted nowhere else.
    pub wrapped: u64,
    /// Latency of the frames that arrived, if asked for and any did.
    pub latency: Option<Latency>,
    /// Time from the order to start until the first frame was handed to the port, nanoseconds.
    pub first_frame: Option<Nanos>,
    /// Gaps, of a flow of pause frames.
    pub storm: Option<Gaps>,
}

/// One-way latency, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Least.
    pub min: Nanos,
    /// Mean.
    pub mean: Nanos,
    /// Greatest.
    pub max: Nanos,
}

/// An interface's next hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The interface, by its place in the plan.
    pub interface: usize,
    /// Address that was asked for.
    pub address: IpAddr,
    /// The MAC address that answered.
    pub mac: Option<[u8; 6]>,
}
