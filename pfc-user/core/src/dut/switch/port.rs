//! The sending side of a port: what waits, what is on the wire, and what holds it back.

use ib_mad::value_of;
use pfc_ebpf::units::{LineRate, Priority};

use super::config::{Priorities, SwitchConfig};
use super::pause::Pauses;
use super::queue::Queues;
use super::upstream::Upstream;
use super::wire::Wire;
use crate::fault::switch::Fault;
use crate::plan::Nanos;

/// Period of a switch with dips, and the part of it in which it sends no data.
const DIP_EVERY: Nanos = 250_000_000;
const DIP: Nanos = 20_000_000;

/// For so long a priority of a switch that is slow again is slow after its pause.
const SLOW_AGAIN: Nanos = 20_000_000;

/// Shortest busy time of a full link; gaps of up to `IDLE` do not end it.
const FULL: Nanos = 1_000_000;
const IDLE: Nanos = 1_000;

/// A frame of data that has started to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its priority.
    pub priority: Priority,
    /// The port at which it came in.
    pub from: usize,
    /// Its length.
    pub octets: u64,
}

/// A port of the switch.
#[derive(Clone, Debug)]
pub struct Port {
    /// Data to be sent.
    pub queues: Queues,
    /// Pauses that the other end has asked for.
    pub pauses: Pauses,
    /// Pauses asked of the other end; they go ahead of data.
    pub upstream: Upstream,
    wire: Wire,
    /// Since when frames have left back to back.
    busy_since: Nanos,
    /// The frame on the wire, and when its time there is over.
    sending: Option<(Nanos, Vec<u8>)>,
    dips: bool,
    /// Lossy priorities, and what they may send in a storm.
    lossy: Option<(Priorities, Wire)>,
    /// Lossless priorities, and what each may send soon after its pause.
    after_pause: Option<(Priorities, [Wire; Priority::COUNT])>,
}

impl Port {
    /// An idle port with that address.
    pub fn new(config: &SwitchConfig, mac: [u8; 6], faults: &[Fault]) -> Self {
        let throttled = |percent: u64| {
            LineRate::from_bits_per_second(config.line_rate.bits_per_second() * percent / 100).ok()
        };
        let rate = value_of!(faults, Fault::Throttles);
        let rate = rate.and_then(|percent| throttled(percent.get().into()));
        Self {
            queues: Queues::new(config.scheduler, config.weights),
            pauses: Pauses::default(),
            upstream: Upstream::new(config, mac, faults),
            wire: Wire::new(rate.unwrap_or(config.line_rate)),
            busy_since: 0,
            sending: None,
            dips: faults.contains(&Fault::Dips),
            lossy: value_of!(faults, Fault::ThrottlesLossyInStorm)
                .and_then(|percent| throttled(u64::from(percent.get()) / 2))
                .map(|rate| (config.lossless.others(), Wire::new(rate))),
            after_pause: value_of!(faults, Fault::SlowAgain)
                .and_then(|percent| throttled(percent.get().into()))
                .map(|rate| (config.lossless, [Wire::new(rate); Priority::COUNT])),
        }
    }

    /// Time at which the port has something to do, `now` or later.
    pub fn next_event(&self, now: Nanos) -> Option<Nanos> {
        let send = match &self.sending {
            Some((end, _)) => Some(*end),
            None if self.upstream.has_pending() => Some(now),
            None => self
                .queues
                .ready_at(&self.pauses, now)
                .map(|ready| self.after_dip(ready)),
        };
        send.into_iter().chain(self.upstream.refresh_at()).min()
    }

    /// The frame whose time on the wire is over, and when it was.
    pub fn finish(&mut self, now: Nanos) -> Option<(Nanos, Vec<u8>)> {
        self.sending.take_if(|(end, _)| *end <= now)
    }

    /// Puts the next frame on the wire, if that is free and a frame may start. Returns which data
    /// frame that was: its queue has shrunk.
    pub fn start(&mut self, now: Nanos) -> Option<Started> {
        if self.sending.is_some() {
            return None;
        }
        if let Some(frame) = self.upstream.take() {
            self.send(frame, now);
            return None;
        }
        if self.after_dip(now) > now {
            return None;
        }
        let (started, frame) = self.queues.pop(&self.pauses, now)?;
        let priority = started.priority;
        if let Some((lossy, wire)) = &mut self.lossy
            && lossy.contains(priority)
            && self.pauses.in_storm(now)
        {
            self.pauses.slow_down(*lossy, wire.send(now, frame.len()));
        }
        if let Some((lossless, wires)) = &mut self.after_pause
            && lossless.contains(priority)
            && self.pauses.ended_within(priority, SLOW_AGAIN, now)
        {
            let next = wires[priority.index()].send(now, frame.len());
            self.pauses.slow_down(Priorities::only(priority), next);
        }
        self.send(frame, now);
        Some(started)
    }

    /// True if the line has not been idle for a while.
    pub fn is_full(&self, now: Nanos) -> bool {
        self.sending.is_some() && now.saturating_sub(self.busy_since) >= FULL
    }

    fn send(&mut self, frame: Vec<u8>, now: Nanos) {
        if now > self.wire.free_at() + IDLE {
            self.busy_since = now;
        }
        self.sending = Some((self.wire.send(now, frame.len()), frame));
    }

    /// `time`, or the end of the dip that it falls into.
    fn after_dip(&self, time: Nanos) -> Nanos {
        let into = time % DIP_EVERY;
        if self.dips && into < DIP {
            (time - into).saturating_add(DIP)
        } else {
            time
        }
    }
}
