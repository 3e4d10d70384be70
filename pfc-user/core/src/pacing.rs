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
use crate::plan::PortName;

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

impl Sent {
    /// The same as the account of a sender at that port.
    pub fn at(mut self, port: &PortName) -> Self {
        let report = &mut self.report;
        let listed = report.withheld.iter_mut().map(|span| &mut span.port);
        let left_out = report.withheld_left_out.iter_mut().map(|of| &mut of.port);
        listed.chain(left_out).for_each(|at| *at = port.clone());
        self
    }

    /// Adds the account of a sender at another port.
    pub fn add(&mut self, other: Self) {
        let (all, more) = (&mut self.report, other.report);
        for (text, other) in [
            (&mut all.method, more.method),
            (&mut all.honours_pfc, more.honours_pfc),
        ] {
            if text.is_empty() {
                *text = other;
            } else if *text != other {
                text.push_str("; ");
                text.push_str(&other);
            }
        }
        all.flows.extend(more.flows);
        all.withheld.extend(more.withheld);
        all.withheld_left_out.extend(more.withheld_left_out);
        for (most, other) in all.after_xoff.iter_mut().zip(more.after_xoff) {
            *most = other.max(*most);
        }
        all.stalls.extend(more.stalls);
        all.stalls_left_out.merge(more.stalls_left_out);
        all.errors += more.errors;
        all.waits += more.waits;
        all.max_burst = all.max_burst.max(more.max_burst);
        let windows = self.offered.len().max(other.offered.len());
        self.offered.resize(windows, [0; 8]);
        for (window, other) in self.offered.iter_mut().zip(other.offered) {
            for (frames, other) in window.iter_mut().zip(other) {
                *frames += other;
            }
        }
        self.lost.extend(other.lost);
    }
}
