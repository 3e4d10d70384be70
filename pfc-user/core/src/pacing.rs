//! The times at which frames leave, and the account of those that left. No I/O; time is an
//! argument.
//!
//! [`pacer`] paces test traffic, [`sent_ledger`] and [`history`] keep its account; [`storm`] does
//! both for pause frames. [`workers`] deals flows to CPUs.

pub mod history;
pub mod pacer;
pub mod sent_ledger;
pub mod storm;
pub mod workers;

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Nanos;

use crate::evidence::pfc::SenderReport;

/// The next traffic of all flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Phase in the stamps.
    pub phase: Phase,
    /// Start of the token buckets, staggered. To be some milliseconds ahead: a start in the past is
    /// a stall.
    pub from: Nanos,
    /// No frame is stamped at or after this time.
    pub to: Nanos,
    /// Share of each flow's rate, 1 to 100 percent.
    pub load: u8,
}

/// A sender's account.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sent {
    /// Frames by flow and phase, and what kept them from leaving.
    pub report: SenderReport,
    /// Frames by the window of their stamp, and by priority.
    pub offered: Vec<[u32; 8]>,
    /// Frames among those of the report that the kernel lost before they left, by the reason.
    pub lost: Vec<(&'static str, u64)>,
}
