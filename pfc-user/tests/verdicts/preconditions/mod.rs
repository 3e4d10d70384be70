//! Good evidence in which one thing is changed, and the verdict of every check on it: what the
//! tester's own part explains is inconclusive, what it does not explain fails, and what it does not
//! touch passes.

mod accounting;
mod attempts;
mod beside;
mod dips;
mod drain;
mod figures;
mod lateness;
mod mac;
mod ports;
mod probe;
mod resolution;
mod silence;
mod storm;
mod strange;
mod throughput;
mod whole_case;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Priority};
use validator_core::cases::pfc::port::PortContext;
use validator_core::evidence::pfc::*;
use validator_core::fault::switch::Fault;
use validator_core::plan::{Nanos, PortName, Role};
use validator_core::verdict::{CheckResult, Verdict};

use crate::bench;

const MS: Nanos = 1_000_000;
/// At 1 Gbit/s: 65535 quanta of 512 ns, and the tolerance of 2 quanta and 100 ppm, rounded up.
const PAUSE: Nanos = 33_553_920;
const TOLERANCE: Nanos = 1024 + 3355 + 2;

const SINGLE: &str = "pfc.pause-single-lossless";
const MULTI: &str = "pfc.pause-multi-lossless";
const LOSSY: &str = "pfc.pause-lossy";
const GLOBAL: &str = "pfc.global-pause";

/// A case, its lossless priorities, and those stormed.
type Asked = (&'static str, &'static [u8], Option<&'static [u8]>);

/// Tampers with evidence.
type Tamper = fn(&mut PfcEvidence);

/// The repetition of each case: lossless priorities, and those stormed where that is not the case's
/// own choice.
const REPETITIONS: [Asked; 4] = [
    (SINGLE, &[3], None),
    (MULTI, &[3, 4], Some(&[3])),
    (LOSSY, &[3], None),
    (GLOBAL, &[3, 4], None),
];

fn run(case: &str, faults: &[Fault]) -> PfcEvidence {
    let (_, lossless, storm) = REPETITIONS
        .into_iter()
        .find(|(id, ..)| *id == case)
        .unwrap();
    if case == GLOBAL {
        return bench::run(&bench::plan(case, lossless, storm), faults);
    }
    let port = PortContext {
        dscp_map: bench::dscp_map(SINGLY),
        ..bench::port()
    };
    let plan = bench::plan_at(&port, case, lossless, storm);
    bench::run_trusting(Trust::Dscp, SINGLY, &plan, faults)
}

/// A map with one code point for each priority but 7, so that nearly each has one flow.
const SINGLY: fn(u8) -> u8 = |dscp| dscp.min(7);

/// Evidence of a switch without faults; each case is run once.
fn good(case: &str) -> PfcEvidence {
    static GOOD: [OnceLock<PfcEvidence>; 4] = [const { OnceLock::new() }; 4];
    let index = REPETITIONS.iter().position(|(id, ..)| *id == case).unwrap();
    GOOD[index].get_or_init(|| run(case, &[])).clone()
}

fn results(case: &str, evidence: &PfcEvidence) -> Vec<CheckResult> {
    bench::case(case).judge(evidence).checks
}

/// The checks expected not to pass, each with its verdict and words of the reason.
type Expected<'a> = &'a [(&'a str, Verdict, &'a str)];

/// Expects exactly these checks not to pass. `isolation` has no subject where all lossless
/// priorities are stormed.
fn expect(what: &str, case: &str, evidence: &PfcEvidence, expected: Expected) {
    let results = results(case, evidence);
    let flows = &evidence.plan.flows;
    let isolates = flows.iter().any(|flow| flow.role == Role::Isolation);
    let no_subject = |result: &CheckResult| {
        !isolates && (result.check.as_str(), result.verdict) == ("isolation", NOT_APPLICABLE)
    };
    let found: BTreeMap<&str, Verdict> = results
        .iter()
        .filter(|result| result.verdict != Verdict::Pass && !no_subject(result))
        .map(|result| (result.check.as_str(), result.verdict))
        .collect();
    let reasons: Vec<_> = results
        .iter()
        .filter(|result| !result.reason.is_empty())
        .map(|r| format!("{}: {}", r.check, r.reason))
        .collect();
    let wanted: BTreeMap<&str, Verdict> = expected
        .iter()
        .map(|(check, verdict, _)| (*check, *verdict))
        .collect();
    assert_eq!(found, wanted, "{what} in {case}: {reasons:#?}");
    for (check, _, words) in expected {
        let result = results
            .iter()
            .find(|result| result.check == *check)
            .unwrap();
        assert!(
            result.reason.contains(words),
            "{what} in {case}, {check}: {:?} does not say {words:?}",
            result.reason
        );
    }
}

/// Tampers with good evidence of `case` and expects exactly these checks not to pass.
fn tampered(what: &str, case: &str, tamper: impl FnOnce(&mut PfcEvidence), expected: Expected) {
    let mut evidence = good(case);
    tamper(&mut evidence);
    as_long_as_sent(&mut evidence, &good(case));
    expect(what, case, &evidence, expected);
}

/// Frames that were added or taken away are as long as they were sent.
fn as_long_as_sent(e: &mut PfcEvidence, before: &PfcEvidence) {
    for received in &mut e.received {
        let was = before.received(received.flow, received.phase);
        let same = was.is_some_and(|was| was.octets == received.octets);
        let flow = e.plan.flows.iter().find(|flow| flow.id == received.flow);
        if let Some(flow) = flow.filter(|_| same) {
            let was = was.map_or(0, |was| was.frames);
            let more = received.frames.wrapping_sub(was);
            let more = more.wrapping_mul(flow.length as u64);
            received.octets = received.octets.wrapping_add(more);
        }
    }
}

/// Each of `checks` with the same verdict and words.
fn all<'a>(
    checks: &[&'a str],
    verdict: Verdict,
    words: &'a str,
) -> Vec<(&'a str, Verdict, &'a str)> {
    checks
        .iter()
        .map(|check| (*check, verdict, words))
        .collect()
}

/// The checks of a case in which `isolation` has a subject, or is left out.
fn every_check(case: &str) -> Vec<&'static str> {
    let checks = bench::case(case).case.checks.iter().map(|check| check.id);
    checks
        .filter(|check| case == MULTI || *check != "isolation")
        .collect()
}

fn flow(e: &PfcEvidence, role: Role) -> u16 {
    e.plan
        .flows
        .iter()
        .find(|flow| flow.role == role)
        .unwrap()
        .id
}

fn flow_of(e: &PfcEvidence, priority: u8) -> u16 {
    e.plan
        .flows
        .iter()
        .find(|flow| flow.priority.get() == priority)
        .unwrap()
        .id
}

fn received(e: &mut PfcEvidence, flow: u16, phase: Phase) -> &mut FlowReceived {
    e.received
        .iter_mut()
        .find(|received| received.flow == flow && received.phase == phase)
        .unwrap()
}

fn sent(e: &mut PfcEvidence, flow: u16, phase: Phase) -> &mut FlowSent {
    e.sender
        .flows
        .iter_mut()
        .find(|sent| sent.flow == flow && sent.phase == phase)
        .unwrap()
}

/// Takes `frames` away from what arrived of the first flow with `role` in `phase`.
fn lose(e: &mut PfcEvidence, role: Role, phase: Phase, frames: u64) {
    let flow = flow(e, role);
    let length = e.plan.flows[usize::from(flow)].length as u64;
    let received = received(e, flow, phase);
    received.frames -= frames;
    received.octets -= frames * length;
}

/// The log has a frame of the stormed priority, sent in `phase`, that arrives at `time`.
fn arrives(e: &mut PfcEvidence, phase: Phase, time: Nanos) {
    let flow = flow(e, Role::Test);
    let records = &mut e.arrivals.records;
    let at = records.partition_point(|arrival| arrival.time <= time);
    records.insert(
        at,
        Arrival {
            time,
            flow,
            phase,
            latency: 1000,
        },
    );
}

/// Probes of cases 1 and 2, by their place: a pause that runs out, and one that an XON ends.
const RUNS_OUT: usize = 0;
const ENDED: usize = 1;

/// The pause frames of a probe as they left, and how long the first one asks for a pause of
/// priority 3.
fn probe(e: &PfcEvidence, number: usize) -> (Vec<Departure>, Nanos) {
    let probe = &e.probes[number];
    let time = probe.burst.frames[0].frame.time(Priority::new(3).unwrap());
    (probe.left.clone(), e.limits.pause_time(time.unwrap()))
}

/// The probes of which an XON ends a pause of priority 3: its departure.
fn xons(e: &PfcEvidence) -> Vec<Departure> {
    let ended =
        |probe: &&ProbeReport| probe.burst.ends_by_xon(Priority::new(3).unwrap()) == Some(true);
    let probes = e.probes.iter().filter(ended);
    probes.map(|probe| *probe.left.last().unwrap()).collect()
}

/// A frame of the stormed priority arrives at `time`.
fn leak(e: &mut PfcEvidence, time: Nanos) {
    let flow = flow(e, Role::Test);
    arrives(e, Phase::Storm, time);
    let received = received(e, flow, Phase::Storm);
    received.first = received.first.min(time);
}

/// The first frame of the stormed priority after the storm comes later by so much.
fn goes_later(e: &mut PfcEvidence, by: Nanos) {
    let test = flow(e, Role::Test);
    for arrival in &mut e.arrivals.records {
        if arrival.flow == test && arrival.phase == Phase::Storm {
            arrival.time += by;
        }
    }
    e.arrivals.records.sort_by_key(|arrival| arrival.time);
    let received = received(e, test, Phase::Storm);
    received.first += by;
    received.last += by;
}

fn at(before: Nanos, after: Nanos) -> Departure {
    Departure { before, after }
}

fn lost_by_tester(e: &mut PfcEvidence, rise: u64) {
    e.accounting.push(DropCounter {
        place: "rx port eth2".into(),
        counter: "rx_missed_errors".into(),
        rise,
    });
}

fn dut(e: &mut PfcEvidence) -> &mut DutReport {
    e.dut.as_mut().unwrap()
}

/// Checks of frames that the DUT sends to the tx port.
const OF_THE_DUTS_PFC: [&str; 3] = ["no-pfc-on-lossy", "no-pause", "no-mac-control-forwarded"];

const INCONCLUSIVE: Verdict = Verdict::Inconclusive;
const FAIL: Verdict = Verdict::Fail;
const SKIPPED: Verdict = Verdict::Skipped;
const NOT_APPLICABLE: Verdict = Verdict::NotApplicable;

/// Checks of `case` that rest on a storm without a gap, and in cases 3 and 4 on one that arrives.
fn on_the_storm(case: &str) -> &'static [&'static str] {
    match case {
        SINGLE => &["paused", "background", "no-dip", "no-delay", "lets-go"],
        MULTI => &[
            "paused",
            "background",
            "isolation",
            "no-dip",
            "no-delay",
            "lets-go",
        ],
        LOSSY => &["test-traffic", "background", "no-dip", "no-delay"],
        _ => &["no-loss", "throughput", "no-dip", "no-delay"],
    }
}

/// No PAUSE/PFC frame was ever seen at the tx port.
fn blind(e: &mut PfcEvidence) {
    e.ports.tx.pfc_visible = None;
    e.ports.tx.counts.pfc_frames = 0;
    e.ports.tx.counts.pfc = Default::default();
}

/// Failure that a leak brings with it.
const AFTER_PAUSED: (&str, Verdict, &str) = ("lets-go", SKIPPED, "");

/// Failures that a loss of held frames brings with it.
const AFTER_DELIVERED: [(&str, Verdict, &str); 3] = [
    ("resume", SKIPPED, ""),
    ("response", SKIPPED, ""),
    ("xon", SKIPPED, ""),
];

/// A gap of the storm during the data, and the times between which a frame may have been let go by
/// it.
fn with_gap(e: &mut PfcEvidence) -> (Nanos, Nanos) {
    let before = e.span(Phase::Storm).unwrap().from + 50 * MS;
    let after = before + PAUSE + 5 * MS;
    let gap = Gap {
        from: before,
        to: after + 900,
    };
    let storm = e.storm.as_mut().unwrap();
    storm.gaps.push(gap);
    storm.max_gap = gap.length();
    let test = flow(e, Role::Test);
    let path = received(e, test, Phase::Baseline).latency_max;
    (
        before + PAUSE - TOLERANCE,
        after + 900 + e.limits.max_response + path,
    )
}

/// Holds `priority` back for `span` of the storm phase, with as many frames less of each of its
/// flows.
fn withhold(e: &mut PfcEvidence, priority: u8, span: Nanos) {
    let data = e.span(Phase::Storm).unwrap();
    let priority = Priority::new(priority).unwrap();
    e.sender.withheld.push(Withheld {
        port: PortName::TX,
        priority,
        phase: Phase::Storm,
        from: data.from,
        to: data.from + span,
    });
    for flow in e
        .plan
        .flows
        .clone()
        .iter()
        .filter(|flow| flow.priority == priority)
    {
        let sent = sent(e, flow.id, Phase::Storm);
        sent.frames -= sent.frames * span / (data.to - data.from);
        let frames = sent.frames;
        let arrived = received(e, flow.id, Phase::Storm);
        arrived.octets -= (arrived.frames - frames) * flow.length as u64;
        arrived.frames = frames;
    }
}

#[test]
fn good_evidence_passes_every_check() {
    for (case, ..) in REPETITIONS {
        tampered("nothing", case, |_| {}, &[]);
    }
}

#[test]
fn the_same_evidence_read_from_a_file_gives_the_same_results() {
    for (case, ..) in REPETITIONS {
        let mut evidence = good(case);
        lose(&mut evidence, Role::Test, Phase::Storm, 3);
        lost_by_tester(&mut evidence, 2);
        let read: PfcEvidence =
            serde_json::from_str(&serde_json::to_string(&evidence).unwrap()).unwrap();
        assert_eq!(read, evidence);
        assert_eq!(
            bench::case(case).judge(&read),
            bench::case(case).judge(&evidence)
        );
    }
}
