//! An engine of ports and flows: the orders that it takes, and the counts that it returns.
//!
//! Vocabulary of traffic that is not a case's: [`plan`] has ports and flows, [`packet`] the stacks
//! of headers, [`snapshot`] the counts. [`port`] decides which frame leaves when: [`flow`] knows
//! when the frames of a flow are due, [`queue`] which queues pause frames hold. [`response`]
//! measures how fast received pause frames are obeyed, [`storm`] finds gaps between those that are
//! sent. A driver of real ports implements [`Engine`]; a server of another protocol needs no more
//! than this module.

pub mod filter;
pub mod flow;
pub mod length;
pub mod neighbour;
pub mod packet;
pub mod plan;
pub mod port;
pub mod queue;
pub mod response;
pub mod snapshot;
pub mod storm;

use std::sync::Arc;
use std::time::SystemTime;

use plan::{Flow, FlowIndex, Length, Plan, PortIndex, Rate};
use snapshot::{Neighbour, Snapshot};

/// Ports that send and count.
///
/// Calls return when the order has been carried out, not when traffic ends; none waits for traffic.
pub trait Engine: Send {
    /// Takes the ports of `plan`, and brings its interfaces to life; the plan before it ends.
    /// Nothing is sent yet but ARP and ND.
    ///
    /// # Errors
    ///
    /// All defects of the plan at once; the plan before it is then still in force.
    fn configure(&mut self, plan: Plan) -> Result<Vec<Warning>, Vec<Problem>>;

    /// Starts, stops, pauses or resumes flows. A start clears the counts of these flows, and those
    /// of ports that no other flow has used. Flows that are in that state already are left as they
    /// are, but for a start, which begins anew. A flow that has ended or never began is resumed
    /// from its first frame on; its counts go on.
    ///
    /// # Errors
    ///
    /// All that is in the way, such as a next hop that has not answered; every flow is then left as
    /// it was.
    fn transmit(&mut self, flows: &[FlowIndex], order: Order) -> Result<(), Vec<Problem>>;

    /// Changes rates and lengths of flows while they are sent, or before. The warnings are those
    /// that the changes alone give rise to.
    ///
    /// # Errors
    ///
    /// All that is wrong with the changes; none of them is in force then.
    fn update(&mut self, changes: &[(FlowIndex, Change)]) -> Result<Vec<Warning>, Vec<Problem>>;

    /// Takes a port's link up or down. The link is as it was found once the engine is dropped.
    fn link(&mut self, port: PortIndex, up: bool) -> Result<(), Problem>;

    /// Begins to capture at these ports, with nothing captured yet, or ends it.
    fn capture(&mut self, ports: &[PortIndex], on: bool) -> Result<(), Problem>;

    /// Returns a port's captured frames, in the order of arrival; `None` if it never captured.
    fn captured(&mut self, port: PortIndex) -> Result<Option<Captured>, Problem>;

    /// The next hops of the plan's interfaces: those that answered, and those that did not.
    fn neighbours(&mut self) -> Vec<Neighbour>;

    /// All counts, at one time.
    fn snapshot(&mut self) -> Result<Snapshot, Problem>;

    /// Notes counts, from which rates are computed later, if there is something to note; to be
    /// called each [`snapshot::SAMPLING`] or so.
    fn sample(&mut self) {}

    /// Returns events since the last call that whoever ordered the flows should know.
    fn notices(&mut self) -> Vec<Warning> {
        Vec::new()
    }
}

/// An order to flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Sends from the first frame on, with all counts zero.
    Start,
    /// Ends; frames under way are still counted.
    Stop,
    /// Holds until [`Order::Resume`].
    Pause,
    /// Goes on where it was paused; from the first frame on where it was not.
    Resume,
}

/// A change of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Another rate.
    Rate(Rate),
    /// Other lengths of frames.
    Length(Length),
}

impl Change {
    /// Makes the change in a flow of the plan.
    pub fn apply(self, flow: &mut Flow) {
        match self {
            Self::Rate(rate) => flow.rate = rate,
            Self::Length(length) => flow.length = length,
        }
    }

    /// Returns the change that restores what this one replaces in `flow`.
    pub fn before(&self, flow: &Flow) -> Self {
        match self {
            Self::Rate(_) => Self::Rate(flow.rate),
            Self::Length(_) => Self::Length(flow.length.clone()),
        }
    }
}

/// Capture of a port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Captured {
    /// Frames, in the order of arrival. They may be a gigabyte, and are never copied.
    pub frames: Arc<Vec<CapturedFrame>>,
    /// Frames that arrived meanwhile and are not among them, for lack of room.
    pub missed: u64,
}

/// A received frame.
#[derive(Clone, Debug, PartialEq)]
pub struct CapturedFrame {
    /// Wall time of its arrival.
    pub at: SystemTime,
    /// The whole frame, without FCS.
    pub octets: Vec<u8>,
}

/// A fact that a client should know, though the order was carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Warning(pub String);

/// Reason why an order was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The order is at fault: what was expected, what was found, what to do.
    #[error("{0}")]
    Order(String),
    /// The machine is at fault.
    #[error("{0}")]
    Machine(String),
}
