//! The plan of a repetition: plain data, made from testbed and plan file before anything is sent.

pub mod form;
pub mod mad;
pub mod rc;

use std::borrow::Cow;
use std::fmt;

use pfc_ebpf::abi::account::Clock;
use pfc_ebpf::stamp::Phase;
pub use pfc_ebpf::units::Nanos;
use pfc_ebpf::units::{Dscp, LineRate, Priority, Quanta};
use pfc_ebpf::wire::ethernet;
use pfc_ebpf::wire::mac_control::MacControl;
use serde::{Deserialize, Serialize};

use self::form::{Effect, Form};

/// Name of a port of the tester, as the testbed has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PortName(Cow<'static, str>);

impl PortName {
    /// The port that sends the data of every case.
    pub const TX: Self = Self(Cow::Borrowed("tx"));
    /// The port that receives it, but for what goes to further ports, and sends the storm.
    pub const RX: Self = Self(Cow::Borrowed("rx"));

    /// A further port of that name.
    pub const fn new(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Part of a port in a testbed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortRole {
    /// It sends data.
    #[default]
    Tx,
    /// It receives data.
    Rx,
}

/// Which traffic item of the test plan a flow belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// "Test data traffic".
    Test,
    /// "Background data traffic".
    Background,
    /// Lossless, of a priority that is not stormed: subject of the check `isolation`.
    Isolation,
    /// Lossless, of a stormed priority, between ports that the storm does not concern: subject of
    /// the check `victim`.
    Victim,
}

/// One flow: a stream of equal frames with a sequence of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowPlan {
    /// Index of the flow in its repetition, and in the stamp.
    pub id: u16,
    /// The port that sends it.
    pub from: PortName,
    /// The port that receives it.
    pub to: PortName,
    /// Traffic item.
    pub role: Role,
    /// Priority that the DUT is expected to put it in.
    pub priority: Priority,
    /// DSCP of its frames.
    pub dscp: Dscp,
    /// PCP of its VLAN tag; `None` sends untagged. Where the frames are tagged, DSCP and PCP point
    /// to different priorities.
    pub pcp: Option<Priority>,
    /// Layer-1 rate in bit/s: frame, FCS, preamble and gap.
    pub rate: u64,
    /// Length of its frames in octets, without FCS.
    pub length: usize,
}

impl FlowPlan {
    /// Length of its frames without the tag.
    pub fn untagged_length(&self) -> usize {
        let tag = self.pcp.map_or(0, |_| ethernet::TAG_LEN);
        self.length.saturating_sub(tag)
    }

    /// Its frames a second, rounded down.
    pub fn frames(&self) -> u64 {
        self.rate / LineRate::frame_bits(self.length)
    }

    /// Length of the packets in its frames, as an MTU counts.
    pub fn packet_length(&self) -> usize {
        self.untagged_length().saturating_sub(ethernet::LEN)
    }
}

/// Frames of a storm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StormKind {
    /// PFC frames (opcode 0x0101) for these priorities.
    Pfc(Vec<Priority>),
    /// PFC frames whose eight times are all that of the storm, with the bits of these priorities
    /// alone in the class-enable vector; of none, if the list is empty.
    Vector(Vec<Priority>),
    /// 802.3x PAUSE frames (opcode 0x0001).
    Pause,
}

impl StormKind {
    /// The priorities that its PFC frames name; `None` for 802.3x.
    pub fn named(&self) -> Option<&[Priority]> {
        match self {
            Self::Pfc(named) | Self::Vector(named) => Some(named),
            Self::Pause => None,
        }
    }
}

/// A persistent stream of pause frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StormPlan {
    /// Frame type.
    pub kind: StormKind,
    /// Pause time in each frame; 0 where each is an XON.
    pub quanta: Quanta,
    /// Time from one frame of a sender to its next; a storm of short pauses has two senders.
    pub interval: Nanos,
}

/// A PFC frame, field by field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PfcFrame {
    /// Its form.
    pub form: Form,
    /// Classes whose bit in the class-enable vector is 1.
    pub classes: Vec<Priority>,
    /// The eight times; those of other classes mean nothing.
    pub times: [Quanta; Priority::COUNT],
}

impl PfcFrame {
    /// A frame that gives these classes these times. The fields of the others have times as well,
    /// none of them `beside`, which a DUT that heeds the vector does not read: "e\[n\] = 0: time(n)
    /// invalid" (IEEE 802.1Qbb).
    pub fn new(named: &[(Priority, Quanta)], beside: Quanta) -> Self {
        let other = |class: usize| Quanta((u32::from(beside.0) * (2 + class as u32) / 16) as u16);
        let mut times = std::array::from_fn(|class| other(class).max(Quanta(1)));
        for (class, time) in named {
            times[class.index()] = *time;
        }
        Self {
            form: Form::Standard,
            classes: named.iter().map(|(class, _)| *class).collect(),
            times,
        }
    }

    /// A frame that gives all of these classes the same time, which no other has.
    pub fn uniform(named: &[Priority], time: Quanta) -> Self {
        let named: Vec<_> = named.iter().map(|class| (*class, time)).collect();
        Self::new(&named, time)
    }

    /// The same in that form.
    pub fn of(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// True if a device that keeps to the standard heeds it.
    pub fn is_heeded(&self) -> bool {
        self.form.effect() == Effect::Pauses
    }

    /// The time for `priority`; `None` where the frame does not name it, or need not be heeded.
    pub fn time(&self, priority: Priority) -> Option<Quanta> {
        let named = self.valid().contains(&priority);
        named.then_some(self.times[priority.index()])
    }

    /// True if it asks for a pause: else it is an XON for all that it names, or need not be heeded.
    pub fn asks(&self) -> bool {
        let times = self.valid().iter().map(|class| self.times[class.index()]);
        times.max() > Some(Quanta::ZERO)
    }

    /// The classes whose time is valid at a device that keeps to the standard.
    fn valid(&self) -> &[Priority] {
        match self.is_heeded() {
            true => &self.classes,
            false => &[],
        }
    }

    /// The frame as `source` sends it, without FCS.
    pub fn emit(&self, source: [u8; 6]) -> Vec<u8> {
        self.form.shape(self.control().emit(source))
    }

    /// Its content.
    pub fn control(&self) -> MacControl {
        let vector = self
            .classes
            .iter()
            .fold(0, |vector, class| vector | 1 << class.get());
        MacControl::Pfc {
            vector,
            quanta: self.times.map(|time| time.0),
        }
    }
}

/// Intervals that a pause has by default. A storm of XONs has a gap after as many without a frame.
pub const INTERVALS: Nanos = 3;

impl StormPlan {
    /// True if its frames ask for a pause: else each is an XON.
    pub fn asks(&self) -> bool {
        self.quanta > Quanta::ZERO
    }

    /// The longest time from one frame to the next in which the storm goes on: that of its pause,
    /// which XONs do not have.
    pub fn lapse(&self, line_rate: LineRate) -> Nanos {
        if self.asks() {
            self.quanta.nanos(line_rate)
        } else {
            INTERVALS.saturating_mul(self.interval)
        }
    }

    /// The frame that is repeated.
    pub fn control(&self) -> MacControl {
        match &self.kind {
            StormKind::Pfc(priorities) => PfcFrame::uniform(priorities, self.quanta).control(),
            StormKind::Vector(priorities) => PfcFrame {
                form: Form::Standard,
                classes: priorities.clone(),
                times: [self.quanta; Priority::COUNT],
            }
            .control(),
            StormKind::Pause => MacControl::Pause {
                quanta: self.quanta.0,
            },
        }
    }
}

/// Single pause frames on running traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbePlan {
    /// Lossless priorities that are paused.
    pub priorities: Vec<Priority>,
    /// True: how they are obeyed is judged, and each burst repeated until it was measured well.
    pub judged: bool,
    /// The bursts.
    pub bursts: Vec<ProbeBurst>,
}

/// A burst of traffic with pause frames in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeBurst {
    /// Load in percent of the flows' rates.
    pub load: u8,
    /// The frames, in their order.
    pub frames: Vec<ProbeFrame>,
}

/// A pause frame of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeFrame {
    /// When it leaves, after the start of its burst.
    pub after: Nanos,
    /// The frame.
    pub frame: PfcFrame,
}

impl ProbeBurst {
    /// The times that its frames have for `priority`, and when each leaves.
    fn times(&self, priority: Priority) -> impl Iterator<Item = (Nanos, Quanta)> {
        let time = move |one: &ProbeFrame| Some((one.after, one.frame.time(priority)?));
        self.frames.iter().filter_map(time)
    }

    /// The end of its last pause of `priority`, after its start; `None` where it has none.
    pub fn end(&self, priority: Priority, limits: &Limits) -> Option<Nanos> {
        let last = self.times(priority).last();
        last.map(|(after, time)| after + limits.pause_time(time))
    }

    /// True if it has an XON for `priority`, and no pause that this could end.
    pub fn is_idle_xon(&self, priority: Priority) -> bool {
        self.times(priority).next().is_some() && self.longest(&[priority]) == Quanta::ZERO
    }

    /// True if an XON ends its pause of `priority`, and `None` where it has none.
    pub fn ends_by_xon(&self, priority: Priority) -> Option<bool> {
        let (_, first) = self.times(priority).next()?;
        let (_, last) = self.times(priority).last()?;
        (first.0 > 0).then_some(last.0 == 0)
    }

    /// Its longest time for one of `priorities`.
    pub fn longest(&self, priorities: &[Priority]) -> Quanta {
        let times = priorities.iter().flat_map(|priority| self.times(*priority));
        times.map(|(_, time)| time).max().unwrap_or(Quanta::ZERO)
    }
}

/// How long each part lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durations {
    /// Traffic without a storm, first.
    pub baseline: Nanos,
    /// Storm before the data.
    pub lead: Nanos,
    /// Data during the storm, or without one.
    pub traffic: Nanos,
    /// Storm after the data.
    pub tail: Nanos,
    /// Data after the drain; 0 where the case has no such step.
    pub resume: Nanos,
    /// Longest wait for what the DUT still holds.
    pub drain_max: Nanos,
}

impl Durations {
    /// The same without the phases of a storm.
    pub fn without_storm(self) -> Self {
        Self {
            baseline: self.baseline,
            drain_max: self.drain_max,
            ..Self::default()
        }
    }

    /// The same with traffic in place of a storm.
    pub fn of_traffic(self) -> Self {
        Self {
            traffic: self.traffic,
            resume: self.resume,
            ..self.without_storm()
        }
    }
}

/// Frames a second above which the programs read the clock once for several frames and verify only
/// some. Exact accounting of a frame of 1024 octets costs about 130 ns beside the driver's own 80
/// ns (BENCHMARKS.md), and the comparison of its octets half as much again: that core is full at
/// some 4 million, and must not be.
const EXACT_FRAMES: u64 = 3_000_000;
/// Octets a second above which they verify only some: to sum and compare them costs by the octet.
const EXACT_OCTETS: u64 = 2_500_000_000;
/// The share of frames that is verified then.
const SAMPLE: u64 = 16;

/// Counting of these flows by the programs, by their frames a second: the clock, and N where one
/// frame in N is verified.
pub fn effort(flows: &[FlowPlan]) -> (Clock, u64) {
    let octets = |flow: &FlowPlan| flow.frames() * flow.length as u64;
    if exact_load(flows) < 100 {
        (Clock::Batched, SAMPLE)
    } else if flows.iter().map(octets).sum::<u64>() > EXACT_OCTETS {
        (Clock::Exact, SAMPLE)
    } else {
        (Clock::Exact, 1)
    }
}

/// The highest load, in percent of the rates of these flows, at which the programs read the clock
/// for each frame, so that every arrival can be logged; at least 1.
pub fn exact_load(flows: &[FlowPlan]) -> u8 {
    let frames: u64 = flows.iter().map(FlowPlan::frames).sum();
    (EXACT_FRAMES * 100 / frames.max(1)).clamp(1, 100) as u8
}

/// One repetition of a PFC case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepetitionPlan {
    /// Its name, unique in its case, such as `lossless 3`.
    pub name: String,
    /// Lossless priorities of the DUT.
    pub lossless: Vec<Priority>,
    /// All flows; each runs in every phase.
    pub flows: Vec<FlowPlan>,
    /// Load of baseline and resume, in percent of the flows' rates: less than 100 where these
    /// together are more than the rx port takes.
    pub baseline_load: u8,
    /// The storm; `None` in a repetition that consists of its traffic, or of its probe.
    pub storm: Option<StormPlan>,
    /// The probe, and when: before the storm (does the DUT see our pause frames at all?) or at the
    /// end.
    pub probe: Option<ProbePlan>,
    /// True: the probe comes before the storm.
    pub probe_first: bool,
    /// Times.
    pub durations: Durations,
}

/// Figures of the testbed that a verdict depends on, with the tolerances of the checks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Speed of the ports.
    pub line_rate: LineRate,
    /// Longest time from a pause frame to the last frame, and from XON or expiry to the first.
    pub max_response: Nanos,
    /// Octets per lossless priority that the DUT can take after its own XOFF.
    pub headroom: u64,
    /// Octets of one lossless priority up to which the DUT asks for no pause, where it is declared.
    pub xoff: Option<u64>,
    /// Longest time that a frame may have to wait in the DUT without being dropped.
    pub max_residence: Nanos,
    /// Share of the offered layer-1 rate that has to arrive in case 4.
    pub min_throughput: f64,
    /// The largest burst of the sender, or two frames where those take longer.
    pub max_burst: Nanos,
}

impl Limits {
    /// How long a pause of `quanta` lasts at the line rate.
    pub fn pause_time(&self, quanta: Quanta) -> Nanos {
        quanta.nanos(self.line_rate)
    }

    /// The largest burst of a sender of these flows: at least two frames, or the flows could not be
    /// sent.
    pub fn largest_burst(&self, flows: &[FlowPlan]) -> Nanos {
        let longest = flows.iter().map(|flow| flow.length).max().unwrap_or(0);
        self.max_burst.max(2 * self.line_rate.frame_nanos(longest))
    }

    /// Tolerance of a pause's end: 2 quanta and 100 ppm (clock tolerance of IEEE 802.3), rounded
    /// up.
    pub fn pause_tolerance(&self, quanta: Quanta) -> Nanos {
        Quanta(2).nanos(self.line_rate) + self.pause_time(quanta) / 10_000 + 2
    }
}

impl RepetitionPlan {
    /// Bits on the wire of a frame, the mean of all that its flows send at their rates.
    pub fn frame_bits(&self) -> f64 {
        let bits =
            |flow: &FlowPlan| LineRate::frame_bits(flow.length.min(usize::from(u16::MAX))) as f64;
        let one = self.flows.first().map_or(0.0, bits);
        if self.flows.iter().all(|flow| bits(flow) == one) {
            return one;
        }
        let rates = self.flows.iter().map(|flow| flow.rate as f64);
        let frames = self.flows.iter().map(|flow| flow.rate as f64 / bits(flow));
        rates.sum::<f64>() / frames.sum::<f64>().max(f64::MIN_POSITIVE)
    }

    /// Its phases, in their order.
    pub fn phases(&self) -> Vec<Phase> {
        let probed =
            |first| (self.probe.is_some() && self.probe_first == first).then_some(Phase::Probe);
        let has_traffic = self.storm.is_some() || self.durations.traffic > 0;
        let stormed = |phase| has_traffic.then_some(phase);
        let resumed = (self.durations.resume > 0).then_some(Phase::Resume);
        let planned = [
            Some(Phase::Baseline),
            probed(true),
            stormed(Phase::Storm),
            stormed(Phase::Drain),
            resumed,
            probed(false),
        ];
        planned.into_iter().flatten().collect()
    }

    /// Pause time in each frame of its storm; 0 without one.
    pub fn storm_quanta(&self) -> Quanta {
        self.storm
            .as_ref()
            .map_or(Quanta::ZERO, |storm| storm.quanta)
    }

    /// Priorities that its probe pauses.
    pub fn probed(&self) -> &[Priority] {
        self.probe
            .as_ref()
            .map_or(&[], |probe| &probe.priorities[..])
    }

    /// The bursts of its probe.
    pub fn bursts(&self) -> impl Iterator<Item = &ProbeBurst> + Clone {
        self.probe.iter().flat_map(|probe| &probe.bursts)
    }

    /// Phases in which each arrival of `flow` is logged, with a probe at `load` percent of the
    /// rates. A flow that is paused is always logged. In a probe the other flows show the latency,
    /// and for how long the scheduler made one of them wait. Where the log has no room for them,
    /// one alone is logged, for the latency: one that no frame of the probe names, if there is any.
    pub fn logged(&self, flow: &FlowPlan, load: u8) -> Vec<Phase> {
        let probed = |flow: &FlowPlan| self.probed().contains(&flow.priority);
        let others = || self.flows.iter().filter(|flow| !probed(flow));
        let named = |flow: &&FlowPlan| {
            let mut bursts = self.bursts();
            bursts.any(|burst| burst.longest(&[flow.priority]) > Quanta::ZERO)
        };
        let unnamed = others().find(|flow| !named(flow));
        let witness = unnamed.or(others().next()).map(|flow| flow.id);
        let all = load <= exact_load(&self.flows);
        let mut phases = Vec::new();
        if self.holds(flow) {
            phases.push(Phase::Storm);
        }
        if all || probed(flow) || witness == Some(flow.id) {
            phases.push(Phase::Probe);
        }
        phases
    }

    /// Load of a phase that is no probe, in percent of the flows' rates.
    pub fn load(&self, phase: Phase) -> u8 {
        match phase {
            Phase::Baseline | Phase::Resume => self.baseline_load,
            _ => 100,
        }
    }

    /// True if `priority` is lossless.
    pub fn is_lossless(&self, priority: Priority) -> bool {
        self.lossless.contains(&priority)
    }

    /// True if the storm is PFC that asks for pauses of `priority`.
    pub fn is_stormed(&self, priority: Priority) -> bool {
        let asking = self.storm.as_ref().filter(|storm| storm.asks());
        let named = asking.and_then(|storm| storm.kind.named());
        named.is_some_and(|named| named.contains(&priority))
    }

    /// True if the storm has to hold `priority` at the rx port.
    pub fn is_held(&self, priority: Priority) -> bool {
        self.is_lossless(priority) && self.is_stormed(priority)
    }

    /// True if the storm has to hold `flow`: it is the rx port's.
    pub fn holds(&self, flow: &FlowPlan) -> bool {
        flow.to == PortName::RX && self.is_held(flow.priority)
    }
}
