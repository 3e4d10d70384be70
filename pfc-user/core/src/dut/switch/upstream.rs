//! PFC that a port sends to whoever fills its buffers: XOFF above a threshold, refreshed, and XON
//! at another.

use pfc_ebpf::units::{LineRate, Priority, Quanta};

use super::config::{Priorities, SwitchConfig};
use super::control;
use crate::fault::switch::Fault;
use crate::plan::Nanos;

/// The pause time asked for; XON follows long before it runs out.
const XOFF: Quanta = Quanta::MAX;
/// Pause time of an XOFF that should not be there: too short to hold anything up.
const STRAY_XOFF: Quanta = Quanta(16);
/// Frames of lossy priorities for each such XOFF.
const STRAY_EVERY: u64 = 1000;

/// The sending half of PFC on one port.
#[derive(Clone, Debug)]
pub struct Upstream {
    mac: [u8; 6],
    xoff: u64,
    xon: u64,
    refresh: Nanos,
    /// Priorities whose buffer is above the thresholds.
    congested: Priorities,
    refresh_at: Nanos,
    /// Times to be told in the next frame.
    pending: [Option<Quanta>; Priority::COUNT],
    silent: bool,
    /// Frames of lossy priorities so far, where those cause XOFF.
    stray: Option<u64>,
    /// XOFF frames sent, by priority.
    pub xoff_sent: [u64; Priority::COUNT],
}

impl Upstream {
    /// Of the port with that address.
    pub fn new(config: &SwitchConfig, mac: [u8; 6], faults: &[Fault]) -> Self {
        Self {
            mac,
            xoff: config.xoff,
            xon: config.xon,
            refresh: refresh(config.line_rate),
            congested: Priorities::default(),
            refresh_at: 0,
            pending: [None; Priority::COUNT],
            silent: faults.contains(&Fault::NoUpstreamPfc),
            stray: faults.contains(&Fault::XoffForLossy).then_some(0),
            xoff_sent: [0; Priority::COUNT],
        }
    }

    /// A lossless priority's buffer has grown to `octets`.
    pub fn filled(&mut self, priority: Priority, octets: u64, now: Nanos) {
        if octets <= self.xoff || self.congested.contains(priority) || self.silent {
            return;
        }
        if self.congested.is_empty() {
            self.refresh_at = now + self.refresh;
        }
        self.congested.insert(priority);
        self.pending[priority.index()] = Some(XOFF);
    }

    /// A lossless priority's buffer has shrunk to `octets`.
    pub fn drained(&mut self, priority: Priority, octets: u64) {
        if octets <= self.xon && self.congested.contains(priority) {
            self.congested.remove(priority);
            self.pending[priority.index()] = Some(Quanta::ZERO);
        }
    }

    /// A frame of a lossy priority has come.
    pub fn lossy(&mut self, priority: Priority) {
        if let Some(frames) = &mut self.stray {
            *frames += 1;
            if frames.is_multiple_of(STRAY_EVERY) {
                self.pending[priority.index()] = Some(STRAY_XOFF);
            }
        }
    }

    /// When XOFF is due again.
    pub fn refresh_at(&self) -> Option<Nanos> {
        (!self.congested.is_empty()).then_some(self.refresh_at)
    }

    /// Asks again for what has not drained by `now`.
    pub fn refresh(&mut self, now: Nanos) {
        if self.refresh_at().is_some_and(|at| at <= now) {
            self.congested
                .iter()
                .for_each(|priority| self.pending[priority.index()] = Some(XOFF));
            self.refresh_at = now + self.refresh;
        }
    }

    /// True if a frame waits to be sent.
    pub fn has_pending(&self) -> bool {
        self.pending.iter().any(Option::is_some)
    }

    /// The frame that waits to be sent.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if !self.has_pending() {
            return None;
        }
        let times = std::mem::take(&mut self.pending);
        for (sent, time) in self.xoff_sent.iter_mut().zip(times) {
            *sent += u64::from(time.is_some_and(|time| time > Quanta::ZERO));
        }
        Some(control::pfc(self.mac, &times))
    }
}

/// The time from one XOFF to the next: a third of the pause, so that one may get lost.
fn refresh(line_rate: LineRate) -> Nanos {
    XOFF.nanos(line_rate) / 3
}
