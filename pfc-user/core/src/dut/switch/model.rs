//! The switch as a state machine: frames and times in, frames and times out, no clock and no
//! sockets of its own.

use std::collections::{BTreeMap, VecDeque};
use std::mem;

use ib_mad::value_of;
use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Dscp, Priority, Quanta};

use super::config::{Priorities, SwitchConfig};
use super::control::{Control, Reader};
use super::counts::PortCounts;
use super::frame::Layout;
use super::impair::{Arrival, Impairments};
use super::pause::{Pauses, Reaction};
use super::port::{Port, Started};
use super::table::{Table, is_reserved};
use crate::fault::switch::Fault;
use crate::plan::Nanos;

/// Time for which a port without need stays stopped after the one that needs it.
const BESIDE: Nanos = 1_000_000;

/// Field from which a switch with these faults takes priorities.
fn reads(configured: Trust, faults: &[Fault]) -> Trust {
    let wrong = faults.iter().find_map(|fault| match fault {
        Fault::TrustsDscp => Some(Trust::Dscp),
        Fault::TrustsPcp => Some(Trust::Pcp),
        _ => None,
    });
    wrong.unwrap_or(configured)
}

/// The map of DSCPs of a switch with these faults.
fn mapped(config: &SwitchConfig, faults: &[Fault]) -> [Priority; Dscp::COUNT] {
    let mut map = config.dscp_to_priority;
    let is_lossless = |priority: &Priority| config.lossless.contains(*priority);
    let zero = Priority::from_low_bits(0);
    for (dscp, priority) in map.iter_mut().enumerate() {
        let dscp = dscp as u8;
        for fault in faults {
            *priority = match fault {
                Fault::MapsOwnDscpAlone if dscp != priority.get() => zero,
                Fault::MapsLowDscpsAlone if dscp >= 32 => zero,
                Fault::MapsLowBits => Priority::from_low_bits(dscp),
                Fault::MisplacesDscp(misplaced) if dscp == misplaced.get() => {
                    let lossless = is_lossless(priority);
                    let other = Priority::all().find(|other| is_lossless(other) != lossless);
                    other.unwrap_or(*priority)
                }
                _ => *priority,
            };
        }
    }
    map
}

/// A frame that has left the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Port, from 0.
    pub port: usize,
    /// Time at which its time on the wire was over.
    pub at: Nanos,
    /// Octets, without FCS.
    pub frame: Vec<u8>,
}

/// A bridge with two to eight ports.
#[derive(Clone, Debug)]
pub struct Switch {
    config: SwitchConfig,
    reaction: Reaction,
    reader: Reader,
    /// True: a MAC control frame that could not be read came in, and none is obeyed any more.
    died: bool,
    /// PAUSE and PFC frames so far.
    controls: u64,
    /// True: such a frame has that effect.
    dies: bool,
    /// True: no port but the first that fills its buffer sends XOFF.
    asks_first: bool,
    /// True: all ports send XOFF when one fills its buffer.
    asks_all: bool,
    /// PFC at one port pauses all others too, for so many quanta at most.
    pauses_all: Option<Quanta>,
    /// The port that filled its buffer first.
    asked: Option<usize>,
    forwards_control: bool,
    /// True: every frame leaves by all ports but its own.
    floods: bool,
    reflects_control: bool,
    /// Field from which the switch takes priorities, rightly or not.
    reads: Trust,
    /// All events before this time have taken place.
    now: Nanos,
    ports: Vec<Port>,
    table: Table,
    /// Octets held of all ports and priorities.
    held: u64,
    /// Faults in the frames that come in, by port.
    impairments: Vec<Impairments>,
    /// PFC not yet acted on: when, on which port.
    deferred: VecDeque<(Nanos, usize, Control)>,
    departures: VecDeque<Departure>,
    drops: BTreeMap<&'static str, u64>,
    counts: Vec<PortCounts>,
}

impl Switch {
    /// A switch with these faults, at time 0.
    pub fn new(config: SwitchConfig, faults: &[Fault]) -> Self {
        Self {
            reaction: Reaction::new(&config, faults),
            reader: Reader::new(faults),
            died: false,
            controls: 0,
            dies: faults.contains(&Fault::DiesOfOddFrame),
            asks_first: faults.contains(&Fault::AsksFirstPort),
            asks_all: faults.contains(&Fault::AsksAllPorts),
            pauses_all: value_of!(faults, Fault::PausesAllPorts).map(|most| Quanta(most.get())),
            asked: None,
            floods: faults.contains(&Fault::Floods),
            forwards_control: faults.contains(&Fault::ForwardsControl),
            reflects_control: faults.contains(&Fault::ReflectsControl),
            reads: reads(config.trust, faults),
            now: 0,
            ports: config
                .macs
                .iter()
                .map(|mac| Port::new(&config, *mac, faults))
                .collect(),
            table: Table::new(config.macs.len()),
            held: 0,
            impairments: vec![Impairments::new(faults); config.macs.len()],
            deferred: VecDeque::new(),
            departures: VecDeque::new(),
            drops: BTreeMap::new(),
            counts: vec![PortCounts::default(); config.macs.len()],
            config: SwitchConfig {
                dscp_to_priority: mapped(&config, faults),
                ..config
            },
        }
    }

    /// The time up to which everything has taken place.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Frames dropped, by reason.
    pub fn drops(&self) -> &BTreeMap<&'static str, u64> {
        &self.drops
    }

    /// XOFF frames sent by all ports, by priority.
    pub fn xoff_sent(&self) -> [u64; Priority::COUNT] {
        let of_ports = |priority: usize| {
            let sent = self
                .ports
                .iter()
                .map(|port| port.upstream.xoff_sent[priority]);
            sent.sum()
        };
        std::array::from_fn(of_ports)
    }

    /// Frames of each port.
    pub fn counts(&self) -> Vec<PortCounts> {
        let ports = self.counts.iter().zip(&self.ports);
        ports
            .map(|(counts, port)| PortCounts {
                held: port.upstream.held,
                pfc_sent: port.upstream.sent,
                ..counts.clone()
            })
            .collect()
    }

    /// A frame has come in whole at `port`, at time `at`. What has happened before that time
    /// happens first; a time that has passed already is taken for the present.
    pub fn ingress(&mut self, port: usize, at: Nanos, frame: Vec<u8>) {
        self.run_before(at);
        self.now = self.now.max(at);
        let Some(layout) = Layout::of(&frame) else {
            self.drop_frame("runt");
            return;
        };
        if let Some(control) = self.reader.parse(&frame) {
            self.control(port, control);
        } else {
            self.died |= self.dies && layout.is_mac_control();
        }
        if layout.is_mac_control() {
            if self.reflects_control {
                self.reflect(port, layout, &frame);
            }
            if !self.forwards_control {
                return;
            }
        }
        if is_reserved(&frame) && !self.forwards_control {
            return;
        }
        self.forward(port, layout, frame);
    }

    /// Takes note of a PAUSE or PFC frame that has come in at `port`.
    fn control(&mut self, port: usize, control: Control) {
        self.counts[port].control(&control);
        if self.died {
            return;
        }
        let full = self.ports[port].is_full(self.now);
        self.controls += 1;
        let delay = self.reaction.delay(full, self.controls);
        self.deferred.push_back((self.now + delay, port, control));
        self.act();
    }

    /// Time at which the next thing happens by itself, if anything does.
    pub fn next_event(&self) -> Option<Nanos> {
        let ports = self.ports.iter();
        let ports = ports.filter_map(|port| port.next_event(self.now));
        let releases = self.impairments.iter().filter_map(Impairments::release_at);
        let deferred = self.deferred.front().map(|(at, ..)| *at);
        ports.chain(releases).chain(deferred).min()
    }

    /// Lets everything take place up to and including `now`.
    pub fn advance(&mut self, now: Nanos) {
        self.run_before(now + 1);
        self.now = self.now.max(now);
    }

    /// The next frame that has left, in the order of departure.
    pub fn pop_departure(&mut self) -> Option<Departure> {
        self.departures.pop_front()
    }

    fn run_before(&mut self, end: Nanos) {
        while let Some(next) = self.next_event().filter(|next| *next < end) {
            self.now = self.now.max(next);
            self.step();
        }
    }

    /// All that happens at `self.now`. PFC first: what takes effect now is known before a frame
    /// starts now.
    fn step(&mut self) {
        let now = self.now;
        self.act();
        if self.asks_all {
            self.ask_beside();
        }
        for port in 0..self.ports.len() {
            if let Some((arrival, frame)) = self.impairments[port].release(now) {
                self.enqueue(port, arrival, frame);
            }
        }
        for port in 0..self.ports.len() {
            if let Some((at, frame)) = self.ports[port].finish(now) {
                self.departures.push_back(Departure { port, at, frame });
            }
            self.ports[port].upstream.refresh(now);
            if let Some(Started {
                priority,
                from,
                octets,
            }) = self.ports[port].start(now)
            {
                self.counts[port].sent[priority.index()] += 1;
                self.held -= octets;
                self.ports[from].upstream.drained(priority, octets);
            }
        }
    }

    /// Acts on the PFC whose time has come.
    fn act(&mut self) {
        let (now, reaction) = (self.now, &self.reaction);
        while let Some((_, port, control)) = self.deferred.pop_front_if(|(at, ..)| *at <= now) {
            reaction.act(&control, now, &mut self.ports[port].pauses);
            if let Some(most) = self.pauses_all {
                let capped = control.capped(most);
                for other in self.table.others(port).iter() {
                    reaction.act(&capped, now, &mut self.ports[other].pauses);
                }
            }
            for priority in reaction.lets_go(&control).iter() {
                self.ports[port].queues.leak(priority, reaction.xon_lets_go);
            }
            let (spread, time) = reaction.spread(&control);
            for other in self.table.others(port).iter() {
                self.ports[other].upstream.hold(spread, now, now + time);
            }
        }
    }

    fn forward(&mut self, port: usize, layout: Layout, frame: Vec<u8>) {
        let now = self.now;
        let priority = layout.priority(&frame, self.reads, &self.config.dscp_to_priority);
        self.counts[port].received[priority.index()] += 1;
        let known = self.table.forward(port, &frame);
        let to = match self.floods {
            true => self.table.others(port),
            false => known,
        };
        let on_any = |is: &dyn Fn(&Pauses) -> bool| to.iter().any(|to| is(&self.ports[to].pauses));
        let arrival = Arrival {
            priority,
            octets: frame.len() as u64,
            lossless: self.config.lossless.contains(priority),
            to,
            paused: on_any(&|pauses| pauses.is_paused(priority, now)),
            in_storm: on_any(&|pauses| pauses.in_storm(now)),
            had_storm: on_any(&|pauses| pauses.had_storm(priority, now)),
            after_xon: on_any(&|pauses| pauses.after_xon(now)),
        };
        if self.impairments[port].loses(&arrival) {
            self.drop_frame("fault");
            return;
        }
        if self.impairments[port].reflects() {
            self.reflect(port, layout, &frame);
        }
        if self.impairments[port].leaks(&arrival) {
            for to in to.iter() {
                self.ports[to].queues.leak(priority, 1);
            }
        }
        let admitted = self.impairments[port].admit(arrival, layout, self.config.trust, frame, now);
        for (arrival, frame) in admitted.into_iter().flatten() {
            self.enqueue(port, arrival, frame);
        }
    }

    /// Sends a copy of a frame back by the port at which it came in.
    fn reflect(&mut self, port: usize, layout: Layout, frame: &[u8]) {
        let priority = layout.priority(frame, self.reads, &self.config.dscp_to_priority);
        self.queue(port, port, priority, frame.to_vec());
    }

    /// Buffers a frame that came in at `port`, once for each port that it leaves by. What a
    /// lossless priority may hold is counted by the port where it came in, which can be paused;
    /// what a lossy one may, by the port where it waits.
    fn enqueue(&mut self, port: usize, arrival: Arrival, frame: Vec<u8>) {
        let Arrival {
            priority, lossless, ..
        } = arrival;
        let length = frame.len() as u64;
        let mut frame = frame;
        let mut ports = arrival.to.iter().peekable();
        while let Some(to) = ports.next() {
            let refused = if self.held + length > self.config.buffer {
                Some("buffer-full")
            } else if lossless {
                let held = self.ports[port].upstream.held[priority.index()] + length;
                let limit = self.config.xoff + self.config.headroom;
                (held > limit).then_some("headroom-overflow")
            } else {
                let waiting = self.ports[to].queues.octets(priority) + length;
                (waiting > self.config.lossy_queue).then_some("lossy-queue-full")
            };
            if let Some(reason) = refused {
                self.counts[to].dropped[priority.index()] += 1;
                self.drop_frame(reason);
                if lossless {
                    self.ports[port].upstream.overflowed(priority, self.now);
                }
                continue;
            }
            let frame = match ports.peek() {
                Some(_) => frame.clone(),
                None => mem::take(&mut frame),
            };
            self.queue(port, to, priority, frame);
            if lossless {
                self.filled(port, priority);
            } else {
                self.ports[port].upstream.lossy(priority);
            }
        }
    }

    /// The buffer of a lossless priority has grown by what came in at `port`.
    fn filled(&mut self, port: usize, priority: Priority) {
        if self.asks_first && self.asked.is_some_and(|first| first != port) {
            return;
        }
        let upstream = &mut self.ports[port].upstream;
        upstream.filled(priority, self.now);
        if upstream.is_congested(priority) {
            self.asked.get_or_insert(port);
        }
    }

    /// Stops what a port stops at all others as well.
    fn ask_beside(&mut self) {
        let (now, until) = (self.now, self.now + BESIDE);
        for port in 0..self.ports.len() {
            let upstream = &self.ports[port].upstream;
            let congested: Vec<_> = Priority::all()
                .filter(|priority| upstream.is_congested(*priority))
                .collect();
            let others = self.ports.iter_mut().enumerate();
            for (_, other) in others.filter(|(at, _)| *at != port) {
                for priority in &congested {
                    let priority = Priorities::only(*priority);
                    other.upstream.hold(priority, now, until);
                }
            }
        }
    }

    fn queue(&mut self, from: usize, to: usize, priority: Priority, frame: Vec<u8>) {
        let octets = frame.len() as u64;
        self.held += octets;
        self.ports[from].upstream.take_in(priority, octets);
        self.ports[to].queues.push(priority, from, frame);
    }

    fn drop_frame(&mut self, reason: &'static str) {
        *self.drops.entry(reason).or_default() += 1;
    }
}
