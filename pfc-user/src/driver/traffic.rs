//! Test traffic: stamped flows at layer-1 rates.
//!
//! A [`Source`] sends all flows of a repetition, one [`Burst`] a phase. [`sendmmsg::Sendmmsg`]
//! works on every interface; [`live_frames::LiveFrames`] is the fast one, where the interface and
//! the kernel allow it.

pub mod choice;
pub mod live_frames;
pub mod sendmmsg;

use pfc_ebpf::abi::account::PauseState;
use pfc_ebpf::units::{LineRate, Nanos};
use validator_core::pacing::pacer::{Paced, PacingError};
pub use validator_core::pacing::{Burst, Sent};
use validator_core::plan::{FlowPlan, PortName};
pub use validator_core::test_frame::Addresses;
use validator_core::test_frame::{FrameError, FrameTemplate};

pub use self::choice::{Lack, lacks};
use crate::driver::bpf::{PauseView, XdpError};
use crate::driver::kernel::link::LinkError;
use crate::driver::kernel::packet::PacketError;

/// A sender of test traffic. Sequence numbers go on from burst to burst.
pub trait Source {
    /// Begins a burst; an error while one is running.
    fn start(&mut self, burst: Burst) -> Result<(), TrafficError>;
    /// Waits until the burst is over, or for `deadline`; returns true if it is over. The error is
    /// the one that ended it early.
    fn wait(&mut self, deadline: Nanos) -> Result<bool, TrafficError>;
    /// Ends a burst at once; when it returns, no further frame leaves. The error is the one that
    /// had ended the burst before.
    fn stop(&mut self) -> Result<(), TrafficError>;
    /// Account of all bursts so far; waits for the one that is running.
    fn report(&mut self) -> Result<Sent, TrafficError>;
}

/// In [`Sent::lost`]: frames that a driver may have counted in its `tx_dropped` too.
pub const NOT_TAKEN: &str = "live frames the driver did not take";

/// Reads what PFC the port has received.
pub trait PauseSource: Send {
    /// State of `class`: a priority, 0 to 7.
    fn state(&self, class: usize) -> PauseState;
}

impl PauseSource for PauseView {
    fn state(&self, class: usize) -> PauseState {
        PauseView::state(self, class)
    }
}

/// Treatment by the sender of the DUT's PFC.
pub enum FlowControl {
    /// The sender looks before every batch.
    Software(Box<dyn PauseSource>),
    /// The sender does not look; the text says why, or what honours PFC instead.
    Unaware(String),
}

/// Flows that a [`Source`] sends, their port and their times.
#[derive(Clone, Copy, Debug)]
pub struct TrafficPlan<'a> {
    /// Interface of the tx port, in the calling thread's network namespace.
    pub interface: &'a str,
    /// Run number in the stamps.
    pub run: u16,
    /// Flows; all run in every burst.
    pub flows: &'a [FlowPlan],
    /// Addresses of those that go to the rx port.
    pub addresses: Addresses,
    /// MAC addresses of the further receiving ports.
    pub receivers: &'a [(PortName, [u8; 6])],
    /// Speed of the port.
    pub line_rate: LineRate,
    /// Most that may leave at once beyond the flows' rates, as time at line rate.
    pub max_burst: Nanos,
    /// Start of window 0.
    pub epoch: Nanos,
    /// Width of a window, not 0.
    pub width: Nanos,
    /// Windows, not 0; frames after the last count in the last.
    pub windows: usize,
    /// CPUs that it may use, which no other sender does; all of the process if there are none.
    pub cpus: &'a [usize],
}

impl TrafficPlan<'_> {
    /// Each flow with its pace and its frame.
    fn paced(&self) -> Result<Vec<(u16, Paced, FrameTemplate)>, FrameError> {
        let paced = |flow: &FlowPlan| {
            let mut addresses = self.addresses;
            if let Some((_, mac)) = self.receivers.iter().find(|(name, _)| *name == flow.to) {
                addresses.destination_mac = *mac;
            }
            let template = FrameTemplate::new(flow, &addresses)?;
            let paced = Paced {
                priority: flow.priority,
                rate: flow.rate,
                bits: LineRate::frame_bits(template.length()),
            };
            Ok((flow.id, paced, template))
        };
        self.flows.iter().map(paced).collect()
    }
}

/// Errors of a sender.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// A flow has no frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The flows cannot be paced.
    #[error(transparent)]
    Pacing(#[from] PacingError),
    /// The socket.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The program that makes live frames.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// The interface cannot be asked.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The testbed asks for live frames, and they are not possible.
    #[error(
        "live frames cannot be sent on {interface}: {lacks}; leave ports.sender out of the \
         testbed, or set it to \"auto\""
    )]
    NoLiveFrames {
        /// Interface.
        interface: String,
        /// The missing ability.
        lacks: String,
    },
    /// Flows of which only some have a tag, in one plan of live frames.
    #[error(
        "live frames of one plan have to have equal headers, found stamps at octets {first} and \
         {other}: flows with a VLAN tag want a plan of their own"
    )]
    Headers {
        /// Offset of the first flow's stamp.
        first: usize,
        /// Offset of another flow's stamp.
        other: usize,
    },
    /// More flows, windows or CPUs than the program was loaded for.
    #[error(
        "the sender has to have at most {max} {what}, found {found}; the XDP program was loaded \
         for that many"
    )]
    Room {
        /// The things, such as `flows`.
        what: &'static str,
        /// The most that fits.
        max: usize,
        /// The number asked for.
        found: usize,
    },
    /// A core of the sender is none.
    #[error("the sender may not run on CPU {cpu}; `taskset -p` shows those that it may")]
    Cpu {
        /// Its number.
        cpu: usize,
    },
    /// The record of what was held back is not whole.
    #[error(
        "{lost} spans in which PFC held traffic back, or the sender stalled, were not recorded: \
         they came faster than they can be read"
    )]
    SpansLost {
        /// The number.
        lost: u64,
    },
    /// No thread.
    #[error("cannot start the sender's thread: {0}")]
    Spawn(#[source] std::io::Error),
    /// Two bursts at a time.
    #[error("a burst is running; wait for its end or stop it before the next one")]
    Running,
    /// The sender's thread is gone.
    #[error("the sender's thread ended unexpectedly; its message is on stderr")]
    Died,
}
