//! PFC that a port sends to the neighbour that fills its buffers: XOFF above a threshold,
//! refreshed, and XON at another.

use std::num::NonZeroU64;

use ib_mad::value_of;
use pfc_ebpf::units::{Priority, Quanta};

use super::config::{Priorities, SwitchConfig};
use super::control::{self, Writer};
use crate::fault::switch::{Fault, OneIn};
use crate::plan::Nanos;

/// Frames of lossy priorities for each XOFF that should not be there.
const STRAY_EVERY: u64 = 1000;

/// The sending half of PFC on one port.
#[derive(Clone, Debug)]
pub struct Upstream {
    mac: [u8; 6],
    writer: Writer,
    xoff: u64,
    xon: u64,
    /// The pause time that XOFF asks for; XON follows before it runs out.
    asks: Quanta,
    /// The time from one XOFF to the next.
    refresh: Nanos,
    /// Frames of a priority that are lost before XOFF, where the thresholds do not count.
    asks_after: Option<u64>,
    /// Frames lost of each priority for lack of room.
    lost: [u64; Priority::COUNT],
    /// Octets that came in at the port and wait at any, by priority.
    pub held: [u64; Priority::COUNT],
    /// Priorities whose buffer is above the thresholds.
    congested: Priorities,
    refresh_at: Nanos,
    /// Priorities stopped without need, and until when.
    stopped: (Priorities, Nanos),
    /// Times to send in the next frame.
    pending: [Option<Quanta>; Priority::COUNT],
    sends_xon: bool,
    never_releases: bool,
    /// Frames of lossy priorities so far.
    lossy: u64,
    /// The time of the XOFF that some of them cause.
    stray: Option<Quanta>,
    /// True: some of them cause PAUSE.
    sends_pause: bool,
    pause_waits: bool,
    /// PFC frames sent, by class in their vector.
    pub sent: [u64; Priority::COUNT],
    /// PFC frames sent that ask for a pause of the priority.
    pub xoff_sent: [u64; Priority::COUNT],
}

impl Upstream {
    /// Returns the sending half for the port with that address.
    pub fn new(config: &SwitchConfig, mac: [u8; 6], faults: &[Fault]) -> Self {
        let asks_after = value_of!(faults, Fault::AsksLate).map(OneIn::get);
        Self {
            mac,
            writer: Writer::new(faults),
            xoff: if faults.contains(&Fault::NoUpstreamPfc) || asks_after.is_some() {
                u64::MAX
            } else {
                value_of!(faults, Fault::AsksEarly).map_or(config.xoff, NonZeroU64::get)
            },
            asks_after,
            lost: [0; Priority::COUNT],
            xon: config.xon,
            asks: config.xoff_quanta,
            // A third of the pause, so that one may get lost; time has to pass between two of them.
            refresh: (config.xoff_quanta.nanos(config.line_rate) / 3).max(1),
            held: [0; Priority::COUNT],
            congested: Priorities::default(),
            refresh_at: 0,
            stopped: (Priorities::default(), 0),
            pending: [None; Priority::COUNT],
            sends_xon: config.sends_xon,
            never_releases: faults.contains(&Fault::NeverReleasesUpstream),
            lossy: 0,
            stray: value_of!(faults, Fault::XoffForLossy).map(|quanta| Quanta(quanta.get())),
            sends_pause: faults.contains(&Fault::SendsPause),
            pause_waits: false,
            sent: [0; Priority::COUNT],
            xoff_sent: [0; Priority::COUNT],
        }
    }

    /// A frame of so many octets has come in, and waits.
    pub fn take_in(&mut self, priority: Priority, octets: u64) {
        self.held[priority.index()] += octets;
    }

    /// A lossless priority's buffer has grown.
    pub fn filled(&mut self, priority: Priority, now: Nanos) {
        if self.held[priority.index()] > self.xoff && !self.congested.contains(priority) {
            self.ask(priority, now);
            self.congested.insert(priority);
        }
    }

    /// A frame of a lossless priority was lost for lack of room.
    pub fn overflowed(&mut self, priority: Priority, now: Nanos) {
        let lost = &mut self.lost[priority.index()];
        *lost += 1;
        let asks = self.asks_after.is_some_and(|after| *lost >= after);
        if asks && !self.congested.contains(priority) {
            self.ask(priority, now);
            self.congested.insert(priority);
        }
    }

    /// True if the buffer of that priority is above the thresholds.
    pub fn is_congested(&self, priority: Priority) -> bool {
        self.congested.contains(priority)
    }

    /// Stops these priorities without need until `until`.
    pub fn hold(&mut self, priorities: Priorities, now: Nanos, until: Nanos) {
        for priority in priorities.iter() {
            if !self.stopped.0.contains(priority) {
                self.ask(priority, now);
                self.stopped.0.insert(priority);
            }
            self.stopped.1 = until;
        }
    }

    /// Asks for a pause of one more priority.
    fn ask(&mut self, priority: Priority, now: Nanos) {
        if !self.is_asking() {
            self.refresh_at = now + self.refresh;
        }
        self.pending[priority.index()] = Some(self.asks);
    }

    /// A frame of so many octets that came in here has begun to leave.
    pub fn drained(&mut self, priority: Priority, octets: u64) {
        self.held[priority.index()] -= octets;
        if self.held[priority.index()] > self.xon
            || !self.congested.contains(priority)
            || self.never_releases
        {
            return;
        }
        self.congested.remove(priority);
        if !self.stopped.0.contains(priority) {
            self.let_go(priority);
        }
    }

    /// Ends the pause of a priority that was asked for.
    fn let_go(&mut self, priority: Priority) {
        self.pending[priority.index()] = self.sends_xon.then_some(Quanta::ZERO);
    }

    /// Ends what was stopped without need.
    fn release(&mut self) {
        for priority in std::mem::take(&mut self.stopped.0).iter() {
            if !self.congested.contains(priority) {
                self.let_go(priority);
            }
        }
    }

    fn is_asking(&self) -> bool {
        !self.congested.is_empty() || !self.stopped.0.is_empty()
    }

    /// A frame of a lossy priority has come.
    pub fn lossy(&mut self, priority: Priority) {
        self.lossy += 1;
        if self.lossy.is_multiple_of(STRAY_EVERY) {
            self.pause_waits |= self.sends_pause;
            if self.stray.is_some() {
                self.pending[priority.index()] = self.stray;
            }
        }
    }

    /// Time at which XOFF is due again, or XON for what is stopped without need.
    pub fn refresh_at(&self) -> Option<Nanos> {
        let release = (!self.stopped.0.is_empty()).then_some(self.stopped.1);
        let refresh = self.is_asking().then_some(self.refresh_at);
        release.into_iter().chain(refresh).min()
    }

    /// Asks again for what has not drained by `now`.
    pub fn refresh(&mut self, now: Nanos) {
        if self.stopped.1 <= now {
            self.release();
        }
        if self.is_asking() && self.refresh_at <= now {
            for priority in self.congested.iter().chain(self.stopped.0.iter()) {
                self.pending[priority.index()] = Some(self.asks);
            }
            self.refresh_at = now + self.refresh;
        }
    }

    /// True if a frame waits to be sent.
    pub fn has_pending(&self) -> bool {
        self.pause_waits || self.pending.iter().any(Option::is_some)
    }

    /// The frame that waits to be sent.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if !self.has_pending() {
            return None;
        }
        if std::mem::take(&mut self.pause_waits) {
            return Some(control::pause(self.mac, Quanta(16)));
        }
        let times = std::mem::take(&mut self.pending);
        for (class, time) in times.iter().enumerate() {
            self.sent[class] += u64::from(time.is_some());
            self.xoff_sent[class] += u64::from(time.is_some_and(|time| time > Quanta::ZERO));
        }
        Some(self.writer.pfc(self.mac, &times))
    }
}
