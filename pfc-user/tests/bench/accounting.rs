//! The counts of the kernel program, made in a simple way: whole sets of sequence numbers instead
//! of windows and bitmaps.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::{LATENCY_BUCKETS, OffenceKind, PauseState, SEEN_WINDOW};
use pfc_ebpf::stamp::{LEN, Phase, Stamp, UDP_PORT};
use pfc_ebpf::units::{LineRate, Priority, Quanta};
use pfc_ebpf::wire::Malformed;
use pfc_ebpf::wire::mac_control::Deviation;
use validator_core::evidence::pfc::{
    Arrival, ClassReceived, ControlReceived, FlowReceived, Offence, PortReceived,
};
use validator_core::plan::{Nanos, PortName, RepetitionPlan};

const STAMP_AT: usize = 14 + 20 + 8;
/// Offending frames that are kept.
const ROOM: usize = 64;
/// Octets of the longest filling: a jumbo frame's, in whole steps of eight.
const LONGEST: usize = 9216;

/// One port.
pub struct Accounting {
    epoch: Nanos,
    window: Nanos,
    line_rate: LineRate,
    storm_mac: [u8; 6],
    priorities: Vec<Priority>,
    /// Phases in which the arrivals of each flow are logged.
    logged: Vec<Vec<Phase>>,
    trust: Trust,
    marks: Vec<u8>,
    /// Lengths without the tag.
    lengths: Vec<usize>,
    flows: BTreeMap<(u16, Phase), FlowReceived>,
    /// By flow, the sequence numbers that came.
    seen: Vec<Vec<bool>>,
    next: Vec<u64>,
    windows: Vec<[u32; 8]>,
    arrivals: Vec<Arrival>,
    port: PortReceived,
    offences: Vec<(Nanos, OffenceKind, usize)>,
    /// Sum of the latencies of each flow's frames.
    latencies: BTreeMap<(u16, Phase), u64>,
    pauses: [PauseState; 8],
}

/// A ones-complement sum of all words, not folded (RFC 1071). Every frame of every fault is summed:
/// four words are added at a time, in a loop that is quick without inlined closures too.
fn sum(octets: &[u8]) -> u64 {
    let (fours, rest) = octets.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let pairs = |four: [u8; 8]| {
        let four = u64::from_be_bytes(four);
        (four >> 32) + (four & u64::from(u32::MAX))
    };
    let mut total = pairs(last);
    for four in fours {
        total += pairs(*four);
    }
    total
}

fn udp_checksum_is_right(frame: &[u8]) -> bool {
    let length = frame.len() as u64 - 34;
    let mut total = sum(&frame[26..34]) + 17 + length + sum(&frame[34..]);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total == 0xffff
}

/// The octets that every test frame has behind its stamp. Multiplies by adding, octet by octet, so
/// that it does not rest on the tester's own way.
fn filling() -> [u8; LONGEST] {
    const STEP: [u8; 8] = [0x15, 0x7c, 0x4a, 0x7f, 0xb9, 0x79, 0x37, 0x9e];
    let mut octets = [0; LONGEST];
    let mut last = [0u8; 8];
    for eight in octets.chunks_mut(8) {
        let mut carry = 0;
        for (octet, step) in last.iter_mut().zip(STEP) {
            let sum = u16::from(*octet) + u16::from(step) + carry;
            (*octet, carry) = (sum as u8, sum >> 8);
        }
        eight.copy_from_slice(&last);
    }
    octets
}

/// True if the octets behind the stamp are what was sent.
fn filling_is_right(frame: &[u8]) -> bool {
    static FILLING: LazyLock<[u8; LONGEST]> = LazyLock::new(filling);
    FILLING.starts_with(&frame[STAMP_AT + LEN..])
}

impl Accounting {
    pub fn new(
        plan: &RepetitionPlan,
        trust: Trust,
        line_rate: LineRate,
        epoch: Nanos,
        window: Nanos,
        storm_mac: [u8; 6],
    ) -> Self {
        Self {
            epoch,
            window,
            line_rate,
            storm_mac,
            priorities: plan.flows.iter().map(|flow| flow.priority).collect(),
            logged: vec![Vec::new(); plan.flows.len()],
            trust,
            marks: plan
                .flows
                .iter()
                .map(|flow| match trust {
                    Trust::Dscp => flow.dscp.get(),
                    Trust::Pcp => flow.priority.get(),
                })
                .collect(),
            lengths: plan
                .flows
                .iter()
                .map(|flow| flow.untagged_length())
                .collect(),
            flows: BTreeMap::new(),
            seen: vec![Vec::new(); plan.flows.len()],
            next: vec![0; plan.flows.len()],
            windows: vec![[0; 8]; super::WINDOWS],
            arrivals: Vec::new(),
            port: PortReceived::default(),
            offences: Vec::new(),
            latencies: BTreeMap::new(),
            pauses: Default::default(),
        }
    }

    pub fn epoch(&self) -> Nanos {
        self.epoch
    }

    /// State by the last PFC frame of each priority.
    pub fn pauses(&self) -> &[PauseState; 8] {
        &self.pauses
    }

    /// Distinct frames of a phase, of flows for which that holds.
    pub fn received(&self, phase: Phase, is_of: impl Fn(u16) -> bool) -> u64 {
        self.flows
            .iter()
            .filter(|((flow, of), _)| *of == phase && is_of(*flow))
            .map(|(_, flow)| flow.frames)
            .sum()
    }

    pub fn flows(&self) -> Vec<FlowReceived> {
        let with_mean = |(key, flow): (_, &FlowReceived)| FlowReceived {
            latency_mean: self.latencies[key].checked_div(flow.frames).unwrap_or(0),
            ..flow.clone()
        };
        self.flows.iter().map(with_mean).collect()
    }

    /// Offending frames of this port, without their octets.
    pub fn offences(&self, port: &PortName) -> Vec<Offence> {
        let offence = |(time, kind, length): &(Nanos, OffenceKind, usize)| Offence {
            port: port.clone(),
            time: *time,
            kind: *kind,
            length: *length as u16,
            octets: String::new(),
        };
        self.offences.iter().map(offence).collect()
    }

    fn offence(&mut self, time: Nanos, kind: OffenceKind, length: usize) {
        if self.offences.len() < ROOM {
            self.offences.push((time, kind, length));
        } else {
            self.port.offences_lost += 1;
        }
    }

    pub fn windows(&self) -> Vec<[u32; 8]> {
        self.windows.clone()
    }

    pub fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.clone()
    }

    /// Logs arrivals as `plan` says of a probe at this load.
    pub fn log(&mut self, plan: &RepetitionPlan, load: u8) {
        let logged = plan.flows.iter().map(|flow| plan.logged(flow, load));
        self.logged = logged.collect();
    }

    /// The arrivals so far.
    pub fn logged(&self) -> &[Arrival] {
        &self.arrivals
    }

    pub fn port(&self) -> PortReceived {
        self.port.clone()
    }

    pub fn receive(&mut self, time: Nanos, frame: &[u8]) {
        self.port.frames += 1;
        let tagged = [[0x81, 0x00], [0x88, 0xa8]]
            .iter()
            .any(|tag| frame[12..14] == *tag);
        let is_control = |at: usize| frame[at..at + 2] == [0x88, 0x08];
        if is_control(12) || tagged && (is_control(16) || frame[6..12] == self.storm_mac) {
            self.control(time, frame);
        } else if [[0x88, 0xb5], [0x88, 0x09]]
            .iter()
            .any(|other| frame[12..14] == *other)
        {
            // A frame by which the tester makes a port known, or one that is no MAC control.
            self.port.other += 1;
        } else if frame[12..14] == [0x81, 0x00] {
            let untagged = [&frame[..12], &frame[16..]].concat();
            self.test_frame(time, &untagged, Some(frame[14] >> 5), frame.len());
        } else {
            self.test_frame(time, frame, None, frame.len());
        }
    }

    fn control(&mut self, time: Nanos, frame: &[u8]) {
        if frame[6..12] == self.storm_mac {
            self.port.own_control += 1;
            return self.offence(time, OffenceKind::OwnControl, frame.len());
        }
        if frame[12..14] != [0x88, 0x08] {
            return self.damaged(time, Malformed::ControlTagged, frame.len());
        }
        if frame[..6] != [0x01, 0x80, 0xc2, 0, 0, 1] {
            return self.damaged(time, Malformed::ControlDestination, frame.len());
        }
        self.form(time, frame);
        let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let vector = if word(14) == 1 { 0 } else { word(16) };
        let times = if word(14) == 1 { 16 } else { 18 };
        let quanta = |class: usize| match (word(14), class) {
            (1, 1..) => 0,
            _ => word(times + 2 * class),
        };
        self.port.controls.push(ControlReceived {
            time,
            opcode: word(14),
            vector,
            quanta: std::array::from_fn(quanta),
        });
        let count = |class: &mut ClassReceived, quanta: u16| {
            if quanta > 0 {
                class.xoff += 1
            } else {
                class.xon += 1
            }
            class.last_quanta = quanta;
        };
        if word(14) == 1 {
            return count(&mut self.port.pause, word(16));
        }
        self.port.pfc_frames += 1;
        for class in (0..8).filter(|class| frame[17] & 1 << class != 0) {
            let quanta = word(18 + 2 * class);
            count(&mut self.port.pfc[class], quanta);
            let pause = &mut self.pauses[class];
            if quanta > 0 && pause.until <= time {
                pause.since = time;
            }
            if quanta > 0 || pause.until > time {
                pause.until = time + Quanta(quanta).nanos(self.line_rate);
            }
        }
    }

    /// Counts the departures of a PAUSE or PFC frame of the DUT from the standard's form.
    fn form(&mut self, time: Nanos, frame: &[u8]) {
        let is_pfc = frame[15] == 1 && frame[14] == 1;
        let behind = if is_pfc { 34 } else { 18 };
        let padding = &frame[behind..frame.len().clamp(behind, 60)];
        let found = [
            (Deviation::GroupSource, frame[6] & 1 > 0),
            (Deviation::ReservedVector, is_pfc && frame[16] > 0),
            (Deviation::Padding, padding.iter().any(|octet| *octet > 0)),
            (Deviation::Length, frame.len() != 60),
        ];
        let found = found.into_iter().filter(|(_, is_found)| *is_found);
        let found: Vec<_> = found.map(|(deviation, _)| deviation).collect();
        for deviation in &found {
            count(&mut self.port.deviations, *deviation);
        }
        if !found.is_empty() {
            self.offence(time, OffenceKind::Deviation, frame.len());
        }
    }

    /// A test frame that no flow can count, or a frame that is almost PAUSE or PFC.
    fn damaged(&mut self, time: Nanos, reason: Malformed, length: usize) {
        for counts in [&mut self.port.malformed, &mut self.port.damaged] {
            count(counts, reason);
        }
        self.offence(time, OffenceKind::Malformed, length);
    }

    /// A frame whose tag, if any, was taken off; `length` counts it.
    fn test_frame(&mut self, time: Nanos, frame: &[u8], pcp: Option<u8>, length: usize) {
        let says = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        if frame.len() < says {
            return self.damaged(time, Malformed::Ipv4Truncated, length);
        }
        if frame[36..38] != UDP_PORT.to_be_bytes() {
            return self.damaged(time, Malformed::Headers, length);
        }
        let (whole, frame) = (frame, &frame[..says]);
        let stamp = Stamp::parse(frame[STAMP_AT..STAMP_AT + LEN].try_into().unwrap())
            .expect("no fault damages the stamp");
        self.port.test_frames += 1;
        let latency = time - stamp.time;
        let flow = self
            .flows
            .entry((stamp.flow, stamp.phase))
            .or_insert_with(|| none_received(stamp.flow, stamp.phase, time));
        if self.logged[usize::from(stamp.flow)].contains(&stamp.phase) {
            self.arrivals.push(Arrival {
                time,
                flow: stamp.flow,
                phase: stamp.phase,
                latency: latency.min(u64::from(u32::MAX)) as u32,
            });
        }
        let index = usize::from(stamp.flow);
        let mut offences = Vec::new();
        if stamp.sequence + SEEN_WINDOW < self.next[index] {
            flow.beyond_window += 1;
            return self.offence(time, OffenceKind::BeyondWindow, length);
        }
        let (seen, place) = (&mut self.seen[index], stamp.sequence as usize);
        seen.resize(seen.len().max(place + 1), false);
        if !std::mem::replace(&mut seen[place], true) {
            if flow.frames == 0 {
                flow.first = time;
            }
            flow.frames += 1;
            flow.octets += length as u64;
            flow.last = time;
            flow.latency_max = flow.latency_max.max(latency);
            flow.latency[(u64::BITS - latency.leading_zeros()) as usize & 31] += 1;
            *self.latencies.entry((stamp.flow, stamp.phase)).or_default() += latency;
            if stamp.sequence < self.next[index] {
                flow.reordered += 1;
                offences.push(OffenceKind::Reordered);
            }
            self.next[index] = self.next[index].max(stamp.sequence + 1);
            let window = (time - self.epoch) / self.window;
            self.windows[window as usize][self.priorities[index].index()] += 1;
        } else {
            flow.duplicate += 1;
            offences.push(OffenceKind::Duplicate);
        }
        if !udp_checksum_is_right(frame) {
            flow.corrupt += 1;
            offences.push(OffenceKind::Corrupt);
        }
        if !filling_is_right(frame) {
            flow.altered += 1;
            offences.push(OffenceKind::Altered);
        }
        if whole.len() != self.lengths[index] {
            flow.resized += 1;
            offences.push(OffenceKind::Resized);
        }
        let mark = match self.trust {
            Trust::Dscp => Some(frame[15] >> 2),
            Trust::Pcp => pcp,
        };
        if mark != Some(self.marks[index]) {
            flow.remarked += 1;
            flow.untagged += u64::from(mark.is_none());
            offences.push(OffenceKind::Remarked);
        }
        for kind in offences {
            self.offence(time, kind, length);
        }
    }
}

/// Counts one more of a kind.
fn count<T: PartialEq>(counts: &mut Vec<(T, u64)>, kind: T) {
    match counts.iter_mut().find(|(other, _)| *other == kind) {
        Some((_, count)) => *count += 1,
        None => counts.push((kind, 1)),
    }
}

/// The account of a flow of which nothing has come at that time.
pub fn none_received(flow: u16, phase: Phase, time: Nanos) -> FlowReceived {
    FlowReceived {
        flow,
        phase,
        frames: 0,
        octets: 0,
        duplicate: 0,
        reordered: 0,
        beyond_window: 0,
        verified: None,
        corrupt: 0,
        altered: 0,
        resized: 0,
        remarked: 0,
        untagged: 0,
        first: time,
        last: time,
        latency_max: 0,
        latency_mean: 0,
        latency: [0; LATENCY_BUCKETS],
    }
}
