//! What a repetition of an RC case recorded. Times are of the tester's CLOCK_MONOTONIC.

use serde::{Deserialize, Serialize};

use crate::agent::protocol::{Channel, Device, QueuePair};
use crate::plan::Nanos;
use crate::plan::rc::RcPlan;

/// One repetition of an RC case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RcEvidence {
    /// What was to be done.
    pub plan: RcPlan,
    /// What the agent says of the DUT's adapter.
    pub device: Device,
    /// What the testbed says of Automatic Path Migration; wins over the device's flag.
    pub apm: Option<bool>,
    /// The tester's port: interface, and how the XDP program is attached.
    pub port: String,
    /// How the DUT was shown to reach the tester and hear it: requests dropped, then one answered.
    pub control: Option<Phase>,
    /// The test itself: every request dropped.
    pub test: Option<Phase>,
    /// One more READ on the queue pair in error.
    pub flush: Option<Phase>,
    /// Why the channel could not be opened, where that is no error of the tool: a neighbour that does not resolve.
    pub unreachable: Option<String>,
    /// The repetition was interrupted.
    pub interrupted: bool,
}

/// One READ and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The DUT's end, as read back from it after it was opened.
    pub channel: Channel,
    /// The tester's queue pair.
    pub queue_pair: u32,
    /// When the tester asked the agent to post the READ.
    pub posted: Nanos,
    /// Packets for the tester's queue pair.
    pub packets: Vec<Packet>,
    /// When the tester answered; `None`: it did not.
    pub answered: Option<Nanos>,
    /// Packets whose record was lost.
    pub lost: u64,
    /// Frames that the tester's side of the link lost otherwise, by counter.
    pub drops: Vec<(String, u64)>,
    /// Completions of the DUT's send queue.
    pub completions: Vec<Completion>,
    /// Until when packets and completions were awaited.
    pub until: Nanos,
    /// The DUT's queue pair at the end.
    pub after: Option<QueuePair>,
}

/// A packet for the tester's queue pair, as it came in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Packet {
    /// When.
    pub time: Nanos,
    /// Octets of the frame.
    pub length: u32,
    /// Its first octets, hexadecimal; all of it where it is no longer than [`pfc_ebpf::responder::SNAP_LEN`].
    pub octets: String,
}

/// A completion as the agent told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// When the tester heard of it.
    pub time: Nanos,
    /// Which request.
    pub work_request: u64,
    /// `ibv_wc_status`.
    pub status: u32,
    /// The vendor's own code.
    pub vendor_error: u32,
}
