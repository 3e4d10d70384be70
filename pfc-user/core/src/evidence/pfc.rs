//! Measurements of a repetition of a PFC case. Times are CLOCK_MONOTONIC nanoseconds, lengths
//! octets without FCS.

mod port;
mod stall;
mod storm;

use pfc_ebpf::abi::account::{Clock, LATENCY_BUCKETS, OffenceKind};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Nanos, Priority, Quanta};
use pfc_ebpf::wire::Malformed;
use pfc_ebpf::wire::mac_control::Deviation;
use serde::{Deserialize, Serialize};

pub use self::port::{Port, Ports};
pub use self::stall::{LeftOut, Stall};
pub use self::storm::{Gap, GapHistogram, StormReport};
pub use super::hooks::HookOutput;
use super::mac::MacReport;
use crate::plan::{Limits, PortName, ProbeBurst, RepetitionPlan};

/// All that one repetition recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PfcEvidence {
    /// The attempted action.
    pub plan: RepetitionPlan,
    /// Number of the attempt at it, from 1.
    pub attempt: u32,
    /// Limits for the judgement.
    pub limits: Limits,
    /// The tester's ports, with what their programs counted beside the flows.
    pub ports: Ports,
    /// The DUT's PFC watchdog: `off` when declared or read so; `None`: unknown. A real DUT's
    /// watchdog voids a storm.
    pub watchdog: Option<String>,
    /// The readings that were to be taken.
    pub instruments: Instruments,
    /// Begin and end of each phase.
    pub phases: Vec<PhaseSpan>,
    /// The waits for the last frames of phases.
    pub waits: Vec<Wait>,
    /// Phases of the plan that did not begin.
    pub not_begun: Vec<Phase>,
    /// The sender's own account.
    pub sender: SenderReport,
    /// The ports' way of counting.
    pub counting: Counting,
    /// Counts of the receiving ports' programs, each flow at the port that it goes to.
    pub received: Vec<FlowReceived>,
    /// Offered and received by window.
    pub windows: Windows,
    /// The storm's own account; `None` when none was sent.
    pub storm: Option<StormReport>,
    /// The probes' own account, one for each attempt.
    pub probes: Vec<ProbeReport>,
    /// Logged arrivals, each flow's at the port that it goes to.
    pub arrivals: Arrivals,
    /// Offending frames of all ports, for the capture; octets in hexadecimal.
    pub offences: Vec<Offence>,
    /// PAUSE/PFC frames counted by the ports' MACs.
    pub mac: Vec<MacReport>,
    /// Losses on the tester's own side, and where a loss would have been counted.
    pub accounting: Vec<DropCounter>,
    /// The simulated DUT's own report.
    pub dut: Option<DutReport>,
    /// Output of hook commands.
    pub hooks: Vec<HookOutput>,
    /// The repetition was cut short.
    pub interrupted: bool,
}

/// The readings that were to be taken in a repetition, noted before its traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruments {
    /// Counters of losses on the tester's own side: place and name.
    pub counters: Vec<(String, String)>,
    /// Counters of each port's MAC: `tx` or `rx`, and their names.
    pub macs: Vec<(String, Vec<String>)>,
    /// True: a simulated DUT, which reports on itself.
    pub device: bool,
}

impl Instruments {
    /// Adds the counters among `read` that came up meanwhile.
    pub fn note(&mut self, read: &[DropCounter]) {
        for DropCounter { place, counter, .. } in read {
            let name = (place.clone(), counter.clone());
            if !self.counters.contains(&name) {
                self.counters.push(name);
            }
        }
    }
}

/// Begin and end of a phase's traffic (for `Drain`: of the wait).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseSpan {
    /// Phase.
    pub phase: Phase,
    /// Start of the data.
    pub from: Nanos,
    /// End of the data.
    pub to: Nanos,
}

/// The wait for the last frames of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Phase.
    pub phase: Phase,
    /// Its begin.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// Its latest end.
    pub deadline: Nanos,
    /// Reason for the end of the wait.
    pub end: WaitEnd,
}

/// The end of a wait for the last frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitEnd {
    /// All frames that left had arrived.
    AllArrived,
    /// Some had not, but nothing had moved for longer than the longest pause and `max_residence`.
    Quiet,
    /// Some had not by the deadline.
    Deadline,
}

/// The senders' own account, of all ports together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SenderReport {
    /// The sender, and the reason for the choice: `live frames, 1 core`, `sendmmsg (...)`.
    pub method: String,
    /// The way PFC from the DUT is honoured: `software (XDP)`, or the reason why it is not.
    pub honours_pfc: String,
    /// Frames that left, by flow and phase; only those with frames.
    pub flows: Vec<FlowSent>,
    /// Spans in which a priority was held back by the DUT's XOFF.
    pub withheld: Vec<Withheld>,
    /// Further such spans.
    pub withheld_left_out: Vec<WithheldLeftOut>,
    /// Largest number of octets that left at a port after one XOFF of the DUT took effect, by
    /// priority.
    pub after_xoff: [u64; 8],
    /// Spans above 0.5 ms in which the sender should have sent and did not run.
    pub stalls: Vec<Stall>,
    /// Further such spans.
    pub stalls_left_out: LeftOut,
    /// Frames that the kernel refused and that never left.
    pub errors: u64,
    /// Times that the port had no room for a test frame or a single pause frame, which left later.
    pub waits: u64,
    /// Largest burst: most octets of layer 1 that left at once beyond the target rate, as time at
    /// line rate.
    pub max_burst: Nanos,
}

/// Frames of one flow that left in one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSent {
    /// Flow.
    pub flow: u16,
    /// Phase.
    pub phase: Phase,
    /// Frames.
    pub frames: u64,
    /// Stamp of the first.
    pub first: Nanos,
    /// Stamp of the last.
    pub last: Nanos,
}

/// A span in which a priority was held back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withheld {
    /// The sending port.
    pub port: PortName,
    /// Priority.
    pub priority: Priority,
    /// Phase.
    pub phase: Phase,
    /// First time at which the sender held back.
    pub from: Nanos,
    /// Last.
    pub to: Nanos,
}

/// Spans of a priority and phase for which [`SenderReport::withheld`] had no room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithheldLeftOut {
    /// The sending port.
    pub port: PortName,
    /// Priority.
    pub priority: Priority,
    /// Phase.
    pub phase: Phase,
    /// The spans.
    #[serde(flatten)]
    pub spans: LeftOut,
}

/// The ports' way of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counting {
    /// The source of arrival times. Logged arrivals, PAUSE and PFC: always exact.
    pub clock: Clock,
    /// Number of frames of which one had its length, UDP checksum and filling verified.
    pub verify_every: u64,
    /// The receiving ports had one receive queue each, so that no other CPU counted at the same
    /// time.
    pub exclusive: bool,
}

impl Default for Counting {
    fn default() -> Self {
        Self {
            clock: Clock::Exact,
            verify_every: 1,
            exclusive: false,
        }
    }
}

/// Arrivals of one flow in one phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReceived {
    /// Flow.
    pub flow: u16,
    /// Phase in the stamp.
    pub phase: Phase,
    /// Distinct frames.
    pub frames: u64,
    /// Octets of those.
    pub octets: u64,
    /// Frames seen before.
    pub duplicate: u64,
    /// Distinct frames after a later one.
    pub reordered: u64,
    /// Frames too far behind to distinguish late from duplicate.
    pub beyond_window: u64,
    /// Frames of which length, UDP checksum and filling were verified; `None`: all.
    pub verified: Option<u64>,
    /// Verified frames with a wrong checksum.
    pub corrupt: u64,
    /// Verified frames whose octets behind the stamp are not what was sent.
    pub altered: u64,
    /// Verified frames longer or shorter than was sent, tags left out.
    pub resized: u64,
    /// Frames with another DSCP or PCP.
    pub remarked: u64,
    /// Re-marked frames without a tag.
    pub untagged: u64,
    /// Arrival of the first.
    pub first: Nanos,
    /// Arrival of the last.
    pub last: Nanos,
    /// Largest latency.
    pub latency_max: Nanos,
    /// Mean latency.
    pub latency_mean: Nanos,
    /// Latencies by significant bits of their nanoseconds.
    pub latency: [u32; LATENCY_BUCKETS],
}

impl FlowReceived {
    /// Frames that came in, distinct or not.
    pub fn all(&self) -> u64 {
        self.frames + self.duplicate + self.beyond_window
    }
}

/// Frames by window and priority. Windows tile time from `epoch`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// Start of window 0.
    pub epoch: Nanos,
    /// Width.
    pub width: Nanos,
    /// Frames by the window of their stamp, as the senders counted.
    pub offered: Vec<[u32; 8]>,
    /// Frames by the window of their arrival, as the programs of all receiving ports counted.
    pub received: Vec<[u32; 8]>,
}

/// Time of a frame's departure: begin and return of the system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// Before the send.
    pub before: Nanos,
    /// After it.
    pub after: Nanos,
}

/// One burst of the probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// The burst, as it was planned and made.
    pub burst: ProbeBurst,
    /// When its frames left.
    pub left: Vec<Departure>,
}

impl ProbeReport {
    /// Time before its first frame left; 0 if none did.
    pub fn begin(&self) -> Nanos {
        self.left.first().map_or(0, |left| left.before)
    }

    /// True if one of its frames asks for a pause of `priority`.
    pub fn pauses(&self, priority: Priority) -> bool {
        self.burst.longest(&[priority]) > Quanta::ZERO
    }
}

/// Logged arrivals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrivals {
    /// Records in the order of their arrival.
    pub records: Vec<Arrival>,
    /// Arrivals after the last record that did not fit.
    pub lost: u64,
}

/// One logged arrival; in the file an array, since there are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Nanos, u16, Phase, u32)", into = "(Nanos, u16, Phase, u32)")]
pub struct Arrival {
    /// Time.
    pub time: Nanos,
    /// Flow.
    pub flow: u16,
    /// Phase in the stamp.
    pub phase: Phase,
    /// One-way latency.
    pub latency: u32,
}

impl From<(Nanos, u16, Phase, u32)> for Arrival {
    fn from((time, flow, phase, latency): (Nanos, u16, Phase, u32)) -> Self {
        Self {
            time,
            flow,
            phase,
            latency,
        }
    }
}

impl From<Arrival> for (Nanos, u16, Phase, u32) {
    fn from(arrival: Arrival) -> Self {
        (arrival.time, arrival.flow, arrival.phase, arrival.latency)
    }
}

/// Counts of a port's program beside the flows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortReceived {
    /// All frames.
    pub frames: u64,
    /// Test frames of this run.
    pub test_frames: u64,
    /// Those of flows that go to another port, at a receiving port.
    pub misdelivered: u64,
    /// Test frames of another run.
    pub foreign_run: u64,
    /// Frames that are neither test frames nor MAC control.
    pub other: u64,
    /// Test frames by DSCP are in the flows; all IP frames by priority.
    pub by_priority: [u64; 8],
    /// 802.3x PAUSE frames.
    pub pause: ClassReceived,
    /// PFC frames.
    pub pfc_frames: u64,
    /// PFC frames with a zero vector.
    pub pfc_empty: u64,
    /// PFC by priority.
    pub pfc: [ClassReceived; 8],
    /// PAUSE/PFC frames of the tester's own storm.
    pub own_control: u64,
    /// Frames that could not be read.
    pub malformed: Vec<(Malformed, u64)>,
    /// Malformed MAC control frames and damaged test frames; the other malformed frames are
    /// foreign.
    pub damaged: Vec<(Malformed, u64)>,
    /// PAUSE/PFC frames that depart from the standard's form; they are counted as such as well.
    pub deviations: Vec<(Deviation, u64)>,
    /// The PAUSE/PFC frames themselves, in order.
    pub controls: Vec<ControlReceived>,
    /// PAUSE/PFC frames that did not fit in `controls`.
    pub controls_lost: u64,
    /// Offending frames that did not fit.
    pub offences_lost: u64,
}

impl PortReceived {
    /// Test frames of this run that arrived damaged so that no flow counts them, for this reason.
    pub fn damaged_by(&self, reason: Malformed) -> u64 {
        let counts = self.damaged.iter().filter(|(found, _)| *found == reason);
        counts.map(|(_, count)| count).sum()
    }

    /// PAUSE/PFC frames that depart from the standard's form by this.
    pub fn departing_by(&self, deviation: Deviation) -> u64 {
        let counts = self.deviations.iter();
        let counts = counts.filter(|(found, _)| *found == deviation);
        counts.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Frames of other senders or other runs, but for PAUSE and PFC.
    pub fn foreign(&self) -> u64 {
        let sum = |counts: &[(Malformed, u64)]| counts.iter().map(|(_, count)| count).sum::<u64>();
        self.foreign_run + self.other + sum(&self.malformed).saturating_sub(sum(&self.damaged))
    }
}

/// PAUSE/PFC frames of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassReceived {
    /// Frames with time > 0.
    pub xoff: u64,
    /// Frames with time 0.
    pub xon: u64,
    /// Time of the last one, in quanta.
    pub last_quanta: u16,
}

/// A PAUSE/PFC frame that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlReceived {
    /// Time.
    pub time: Nanos,
    /// 0x0001 or 0x0101.
    pub opcode: u16,
    /// Class-enable vector.
    pub vector: u16,
    /// Times.
    pub quanta: [u16; 8],
}

/// An offending frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offence {
    /// The port that saw it.
    pub port: PortName,
    /// Time.
    pub time: Nanos,
    /// The reason for keeping it.
    pub kind: OffenceKind,
    /// Length of the frame.
    pub length: u16,
    /// First octets in hexadecimal.
    pub octets: String,
}

/// A counter that shows losses on the tester's own side: by how much it rose during the repetition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropCounter {
    /// Place: interface and its end of the wire, or the part of the kernel.
    pub place: String,
    /// The counter's own name.
    pub counter: String,
    /// Amount by which it rose.
    pub rise: u64,
}

/// Self-report of the simulated DUT's process, so that its stalls are not taken for behaviour of
/// the device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DutReport {
    /// Frames in, by port.
    pub received: Vec<u64>,
    /// Frames out, by port.
    pub sent: Vec<u64>,
    /// Frames that the model dropped, by reason: what a real device would count.
    pub model_drops: Vec<(String, u64)>,
    /// Frames lost on the way in or out of the process: not the device's fault.
    pub overruns: u64,
    /// Frames that the kernel refused on the way out.
    pub send_errors: u64,
    /// Spans above 0.5 ms in which the process did not run.
    pub stalls: Vec<Stall>,
    /// Largest lateness of a departure against the model's time.
    pub max_lateness: Nanos,
    /// XOFF frames sent, by priority.
    pub xoff_sent: [u64; 8],
    /// Faults in force.
    pub faults: Vec<String>,
}

impl PfcEvidence {
    /// Frames of `flow` that left in `phase`.
    pub fn sent(&self, flow: u16, phase: Phase) -> Option<&FlowSent> {
        self.sender
            .flows
            .iter()
            .find(|sent| sent.flow == flow && sent.phase == phase)
    }

    /// Arrivals of `flow` in `phase`.
    pub fn received(&self, flow: u16, phase: Phase) -> Option<&FlowReceived> {
        self.received
            .iter()
            .find(|received| received.flow == flow && received.phase == phase)
    }

    /// Begin and end of `phase`.
    pub fn span(&self, phase: Phase) -> Option<PhaseSpan> {
        self.phases.iter().copied().find(|span| span.phase == phase)
    }
}
