//! Records of a repetition of an RC case. Times are of the tester's CLOCK_MONOTONIC.

use pfc_ebpf::units::Nanos;
use serde::{Deserialize, Serialize};

use super::pfc::Stall;
use crate::agent::protocol::{Channel, Device, QueuePair};
use crate::plan::rc::RcPlan;
use crate::quantity::{from_hex, hex};

/// One repetition of an RC case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RcEvidence {
    /// The attempted action.
    pub plan: RcPlan,
    /// The DUT's adapter, as the agent reports it.
    pub device: Device,
    /// The testbed's statement on Automatic Path Migration; overrides the device's flag.
    pub apm: Option<bool>,
    /// The tester's port: interface, and how the XDP program is attached.
    pub port: String,
    /// Proof that the DUT reaches the tester and hears it: requests dropped, then one answered.
    pub control: Option<Phase>,
    /// The test itself: every request dropped.
    pub test: Option<Phase>,
    /// One more READ on the queue pair in error.
    pub flush: Option<Phase>,
    /// The reason why the channel could not be opened, where that is no error of the tool: a
    /// neighbour that does not resolve.
    pub unreachable: Option<String>,
    /// The repetition was interrupted.
    pub interrupted: bool,
    /// Times at which the simulated DUT stood still, in their order.
    pub stalls: Vec<Stall>,
}

/// One READ and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The DUT's end, as read back from it after it was opened.
    pub channel: Channel,
    /// The tester's queue pair.
    pub queue_pair: u32,
    /// First PSN that the DUT was given.
    pub psn: u32,
    /// Time at which the tester asked the agent to post the READ.
    pub posted: Nanos,
    /// The reason why the DUT did not take the READ.
    pub refused: Option<String>,
    /// Packets for the tester's queue pair, in the order of their times.
    pub packets: Vec<Packet>,
    /// Packets that the tester answered with, each whole.
    pub answers: Vec<Packet>,
    /// Retries that were left, where the DUT shows them.
    pub shown: Vec<Shown>,
    /// Packets for another queue pair, which are left out.
    pub foreign: u64,
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

/// A packet for the tester's queue pair, as it came in; or an answer, as it left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Packet {
    /// Time.
    pub time: Nanos,
    /// Octets of the frame.
    pub length: u32,
    /// Its first octets, hexadecimal; all of it where it is no longer than
    /// [`pfc_ebpf::abi::responder::SNAP_LEN`].
    pub octets: String,
}

impl Packet {
    /// A frame of `length` octets that begins with `octets`.
    pub fn new(time: Nanos, length: u32, octets: &[u8]) -> Self {
        Self {
            time,
            length,
            octets: hex(octets),
        }
    }

    /// The octets that were kept; `None` if they are not hexadecimal.
    pub fn frame(&self) -> Option<Vec<u8>> {
        from_hex(&self.octets)
    }
}

/// The DUT's retry counter, as a query showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// Time of the question.
    pub asked: Nanos,
    /// Time of the answer.
    pub answered: Nanos,
    /// Retries that were left.
    pub retries_left: u8,
}

/// A completion as the agent reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// Earliest time at which it may have been there: the agent's last answer without it.
    pub since: Nanos,
    /// Time at which the tester heard of it.
    pub time: Nanos,
    /// The request.
    pub work_request: u64,
    /// `ibv_wc_status`.
    pub status: u32,
    /// The vendor's own code.
    pub vendor_error: u32,
}
