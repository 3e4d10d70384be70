//! PFC that a port sends to the neighbour that fills its buffers: XOFF above a threshold,
//! refreshed, and XON at another.

use pfc_ebpf::units::{LineRate, Priority, Quanta};

use super::config::{Priorities, SwitchConfig};
use super::control;
use crate::fault::switch::Fault;
use crate::plan::Nanos;

/// Frames of lossy priorities for each XOFF that should not be there.
const STRAY_EVERY: u64 = 1000;

/// The sending half of PFC on one port.
#[derive(Clone, Debug)]
pub struct Upstream {
    mac: [u8; 6],
    xoff: u64,
    xon: u64,
    /// The pause time that XOFF asks for; XON follows before it runs out.
    asks: Quanta,
    refresh: Nanos,
    /// Priorities whose buffer is above the thresholds.
    congested: Priorities,
    refresh_at: Nanos,
    /// Priorities held back without need, and until when.
    held: (Priorities, Nanos),
    /// Times to send in the next frame.
    pending: [Option<Quanta>; Priority::COUNT],
    silent: bool,
    sends_xon: bool,
    never_releases: bool,
    /// Where frames of lossy priorities cause XOFF: the time asked for, and those frames so far.
    stray: Option<(Quanta, u64)>,
    /// Where frames of lossy priorities cause PAUSE: those frames so far, and true if a PAUSE
    /// waits.
    stray_pause: Option<(u64, bool)>,
    /// PFC frames sent, by class in their vector.
    pub sent: [u64; Priority::COUNT],
    /// PFC frames sent that ask for a pause of the priority.
    pub xoff_sent: [u64; Priority::COUNT],
}

impl Upstream {
    /// Returns the sending half for the port with that address.
    pub fn new(config: &SwitchConfig, mac: [u8; 6], faults: &[Fault]) -> Self {
        Self {
            mac,
            xoff: config.xoff,
            xon: config.xon,
            asks: config.xoff_quanta,
            refresh: refresh(config.xoff_quanta, config.line_rate),
            congested: Priorities::default(),
            refresh_at: 0,
            held: (Priorities::default(), 0),
            pending: [None; Priority::COUNT],
            sends_xon: config.sends_xon,
            silent: faults.contains(&Fault::NoUpstreamPfc),
            never_releases: faults.contains(&Fault::NeverReleasesUpstream),
            stray: faults.iter().find_map(|fault| match fault {
                Fault::XoffForLossy(quanta) => Some((Quanta(quanta.get()), 0)),
                _ => None,
            }),
            stray_pause: faults.contains(&Fault::SendsPause).then_some((0, false)),
            sent: [0; Priority::COUNT],
            xoff_sent: [0; Priority::COUNT],
        }
    }

    /// A lossless priority's buffer has grown to `octets`.
    pub fn filled(&mut self, priority: Priority, octets: u64, now: Nanos) {
        if octets <= self.xoff || self.congested.contains(priority) || self.silent {
            return;
        }
        self.ask(priority, now);
        self.congested.insert(priority);
    }

    /// Holds these priorities back without need until `until`.
    pub fn hold(&mut self, priorities: Priorities, now: Nanos, until: Nanos) {
        for priority in priorities.iter() {
            if !self.held.0.contains(priority) {
                self.ask(priority, now);
                self.held.0.insert(priority);
            }
            self.held.1 = until;
        }
    }

    /// Asks for a pause of one more priority.
    fn ask(&mut self, priority: Priority, now: Nanos) {
        if !self.is_asking() {
            self.refresh_at = now + self.refresh;
        }
        self.pending[priority.index()] = Some(self.asks);
    }

    /// A lossless priority's buffer has shrunk to `octets`.
    pub fn drained(&mut self, priority: Priority, octets: u64) {
        if octets > self.xon || !self.congested.contains(priority) || self.never_releases {
            return;
        }
        self.congested.remove(priority);
        if !self.held.0.contains(priority) {
            self.let_go(priority);
        }
    }

    /// Ends the pause of a priority that was asked for.
    fn let_go(&mut self, priority: Priority) {
        self.pending[priority.index()] = self.sends_xon.then_some(Quanta::ZERO);
    }

    /// Ends what was held back without need.
    fn release(&mut self) {
        for priority in std::mem::take(&mut self.held.0).iter() {
            if !self.congested.contains(priority) {
                self.let_go(priority);
            }
        }
    }

    fn is_asking(&self) -> bool {
        !self.congested.is_empty() || !self.held.0.is_empty()
    }

    /// A frame of a lossy priority has come.
    pub fn lossy(&mut self, priority: Priority) {
        if let Some((quanta, frames)) = &mut self.stray {
            *frames += 1;
            if frames.is_multiple_of(STRAY_EVERY) {
                self.pending[priority.index()] = Some(*quanta);
            }
        }
        if let Some((frames, waits)) = &mut self.stray_pause {
            *frames += 1;
            *waits |= frames.is_multiple_of(STRAY_EVERY);
        }
    }

    /// When XOFF is due again, or XON for what is held back without need.
    pub fn refresh_at(&self) -> Option<Nanos> {
        let release = (!self.held.0.is_empty()).then_some(self.held.1);
        let refresh = self.is_asking().then_some(self.refresh_at);
        release.into_iter().chain(refresh).min()
    }

    /// Asks again for what has not drained by `now`.
    pub fn refresh(&mut self, now: Nanos) {
        if self.held.1 <= now {
            self.release();
        }
        if self.is_asking() && self.refresh_at <= now {
            for priority in self.congested.iter().chain(self.held.0.iter()) {
                self.pending[priority.index()] = Some(self.asks);
            }
            self.refresh_at = now + self.refresh;
        }
    }

    /// True if a frame waits to be sent.
    pub fn has_pending(&self) -> bool {
        let waits = matches!(self.stray_pause, Some((_, true)));
        waits || self.pending.iter().any(Option::is_some)
    }

    /// The frame that waits to be sent.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if !self.has_pending() {
            return None;
        }
        if let Some((_, waits)) = &mut self.stray_pause
            && std::mem::take(waits)
        {
            return Some(control::pause(self.mac, Quanta(16)));
        }
        let times = std::mem::take(&mut self.pending);
        for (class, time) in times.iter().enumerate() {
            self.sent[class] += u64::from(time.is_some());
            self.xoff_sent[class] += u64::from(time.is_some_and(|time| time > Quanta::ZERO));
        }
        Some(control::pfc(self.mac, &times))
    }
}

/// The time from one XOFF to the next: a third of the pause, so that one may get lost.
fn refresh(asks: Quanta, line_rate: LineRate) -> Nanos {
    // Time has to pass between two of them.
    (asks.nanos(line_rate) / 3).max(1)
}
