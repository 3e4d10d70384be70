//! The cases with further ports: what is not shown at one of them fails no device.

use pfc_ebpf::abi::account::LATENCY_BUCKETS;
use pfc_ebpf::stamp::Phase;
use validator_core::evidence::pfc::{ControlReceived, FlowReceived, PfcEvidence, Port};
use validator_core::plan::{PortName, Role};
use validator_core::verdict::Verdict;

use crate::bench;

const CASE: &str = "pfc.oversubscription";
const VICTIM: &str = "pfc.victim";

fn evidence(lossless: &[u8], faults: &[&str]) -> PfcEvidence {
    run(CASE, lossless, None, faults)
}

fn run(case: &str, lossless: &[u8], storm: Option<&[u8]>, faults: &[&str]) -> PfcEvidence {
    let faults: Vec<_> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    bench::run(&bench::plan(case, lossless, storm), &faults)
}

/// Ids of the checks of the case with two sending ports that are so.
fn checks(e: &PfcEvidence, verdict: Verdict) -> Vec<String> {
    checks_of(CASE, e, verdict)
}

fn checks_of(case: &str, e: &PfcEvidence, verdict: Verdict) -> Vec<String> {
    let checks = bench::case(case).judge(e).checks.into_iter();
    let found = checks.filter(|check| check.verdict == verdict);
    found.map(|check| check.check.to_string()).collect()
}

fn second(e: &mut PfcEvidence) -> &mut Port {
    e.ports.more.get_mut(&PortName::new("tx2".into())).unwrap()
}

/// No PFC reaches the port's program, and it was not shown that any would.
fn deafen(port: &mut Port) {
    port.pfc_visible = None;
    port.counts.pfc_frames = 0;
    port.counts.pfc = Default::default();
    port.counts.controls.clear();
}

const OF_PFC: [&str; 4] = ["asks-each", "asks-no-other", "no-pfc-on-lossy", "no-pause"];

#[test]
fn a_sending_port_that_is_not_shown_to_see_pfc_decides_nothing() {
    let mut deaf = evidence(&[3, 4], &[]);
    deafen(second(&mut deaf));
    assert_eq!(checks(&deaf, Verdict::Fail), [""; 0]);
    assert_eq!(checks(&deaf, Verdict::Inconclusive), OF_PFC);
    // The tester did not obey what it did not see: what is lost then is no fault of the DUT.
    let mut lost = evidence(&[3, 4], &["drops=3:50"]);
    assert_eq!(checks(&lost, Verdict::Fail), ["delivered"]);
    deafen(second(&mut lost));
    assert_eq!(checks(&lost, Verdict::Fail), [""; 0]);
    let mut none = evidence(&[3, 4], &["no-upstream-pfc"]);
    assert_eq!(checks(&none, Verdict::Fail), ["delivered", "asks-each"]);
    deafen(second(&mut none));
    deafen(&mut none.ports.tx);
    assert_eq!(checks(&none, Verdict::Fail), [""; 0]);
}

#[test]
fn where_the_rx_port_sees_no_pfc_and_both_send_each_priority_nobody_else_could_be_asked() {
    let mut e = evidence(&[3], &["asks-all-ports"]);
    assert_eq!(checks(&e, Verdict::Fail), ["asks-no-other"]);
    deafen(&mut e.ports.rx);
    assert_eq!(checks(&e, Verdict::Fail), [""; 0]);
    assert_eq!(checks(&e, Verdict::NotApplicable), ["asks-no-other"]);
}

#[test]
fn a_port_that_is_not_asked_fails_after_eight_times_of_the_other() {
    let mut e = evidence(&[3], &["asks-first-port"]);
    assert_eq!(checks(&e, Verdict::Fail), ["asks-each"]);
    let asked = [&e.ports.tx, second(&mut e.clone())].map(|port| port.counts.pfc[3].xoff);
    assert!(
        asked.iter().filter(|xoff| **xoff == 0).count() == 1,
        "{asked:?}"
    );
    for port in [&mut e.ports.tx]
        .into_iter()
        .chain(e.ports.more.values_mut())
    {
        // An XOFF and an XON each.
        port.counts.controls.truncate(14);
    }
    assert_eq!(checks(&e, Verdict::Fail), [""; 0]);
    assert_eq!(checks(&e, Verdict::Inconclusive), ["asks-each"]);
}

#[test]
fn a_port_that_is_asked_in_the_baseline_alone_is_not_asked_in_the_congestion() {
    let mut e = evidence(&[3], &["asks-first-port"]);
    let begin = e.phases.iter().find(|span| span.phase == Phase::Storm);
    let begin = begin.unwrap().from;
    let xoff = |time| ControlReceived {
        time,
        opcode: 0x0101,
        vector: 1 << 3,
        quanta: [100; 8],
    };
    for (times, expected) in [(begin - 2..begin, 1), (begin - 1..begin + 1, 0)] {
        let mut e = e.clone();
        let ports = [&mut e.ports.tx]
            .into_iter()
            .chain(e.ports.more.values_mut());
        let left_out = ports.map(|port| &mut port.counts);
        for counts in left_out.filter(|counts| counts.pfc[3].xoff == 0) {
            counts.controls.extend(times.clone().map(xoff));
            counts.pfc[3].xoff = 2;
            counts.pfc_frames = 2;
        }
        assert_eq!(checks(&e, Verdict::Fail), ["asks-each"][..expected]);
    }
    // Those that did not fit in the log came later.
    let counts = [&mut e.ports.tx]
        .into_iter()
        .chain(e.ports.more.values_mut());
    for port in counts.filter(|port| port.counts.pfc[3].xoff == 0) {
        port.counts.pfc[3].xoff = 1;
        port.counts.controls_lost = 1;
    }
    assert_eq!(checks(&e, Verdict::Fail), [""; 0]);
}

#[test]
fn a_victim_that_the_switch_asks_to_wait_decides_nothing() {
    let asked = run(VICTIM, &[3, 4], Some(&[3]), &["asks-all-ports"]);
    assert_eq!(checks_of(VICTIM, &asked, Verdict::Fail), [""; 0]);
    assert_eq!(checks_of(VICTIM, &asked, Verdict::Inconclusive), ["victim"]);
}

#[test]
fn a_late_victim_of_a_port_that_is_not_shown_to_see_pfc_decides_nothing() {
    let mut late = run(VICTIM, &[3], None, &["pauses-all-ports"]);
    assert_eq!(checks_of(VICTIM, &late, Verdict::Fail), ["victim"]);
    deafen(second(&mut late));
    assert_eq!(checks_of(VICTIM, &late, Verdict::Fail), [""; 0]);
    assert!(checks_of(VICTIM, &late, Verdict::Inconclusive).contains(&"victim".into()));
    // A good switch needs no such proof.
    let mut good = run(VICTIM, &[3], None, &[]);
    deafen(second(&mut good));
    assert!(checks_of(VICTIM, &good, Verdict::Pass).contains(&"victim".into()));
}

#[test]
fn frames_that_were_late_beside_others_to_that_port_or_in_the_baseline_decide_nothing() {
    let late = run(VICTIM, &[3], None, &["pauses-all-ports=13107"]);
    assert_eq!(checks_of(VICTIM, &late, Verdict::Fail), ["victim"]);
    let of = |e: &mut PfcEvidence, role: Role, phase, change: fn(&mut FlowReceived)| {
        let flows = late.plan.flows.iter().filter(|flow| flow.role == role);
        let flows: Vec<u16> = flows.map(|flow| flow.id).collect();
        let received = e.received.iter_mut();
        let of_role = received.filter(|found| flows.contains(&found.flow) && found.phase == phase);
        of_role.for_each(change);
    };
    // All that no storm names took a quarter of a second or more.
    let mut beside = late.clone();
    of(&mut beside, Role::Background, Phase::Storm, |found| {
        found.latency = [0; LATENCY_BUCKETS];
        found.latency[29] = found.frames as u32;
    });
    assert_eq!(checks_of(VICTIM, &beside, Verdict::Fail), [""; 0]);
    assert_eq!(
        checks_of(VICTIM, &beside, Verdict::Inconclusive),
        ["victim"]
    );
    let mut outlier = late.clone();
    of(&mut outlier, Role::Victim, Phase::Baseline, |found| {
        found.latency_max = 100_000_000;
    });
    assert_eq!(checks_of(VICTIM, &outlier, Verdict::Fail), [""; 0]);
    assert_eq!(
        checks_of(VICTIM, &outlier, Verdict::Inconclusive),
        ["victim"]
    );
}

#[test]
fn a_switch_that_pauses_nothing_says_nothing_of_a_victim() {
    let e = run(VICTIM, &[3], None, &["ignores-pfc"]);
    assert_eq!(checks_of(VICTIM, &e, Verdict::Fail), ["paused"]);
    let open = checks_of(VICTIM, &e, Verdict::Skipped);
    assert_eq!(open, ["victim", "lets-go"]);
}

#[test]
fn a_frame_at_a_receiving_port_that_it_was_not_sent_to_is_no_frame_of_its_flow() {
    let mut e = run(VICTIM, &[3], None, &[]);
    let rx2 = e.ports.more.get_mut(&PortName::new("rx2".into())).unwrap();
    rx2.counts.misdelivered = 1;
    assert_eq!(checks_of(VICTIM, &e, Verdict::Fail), ["no-reflection"]);
}

#[test]
fn a_storm_frame_that_leaves_by_a_further_port_is_forwarded() {
    let mut e = run(VICTIM, &[3], None, &[]);
    let rx2 = e.ports.more.get_mut(&PortName::new("rx2".into())).unwrap();
    rx2.counts.own_control = 1;
    let expected = ["no-mac-control-forwarded"];
    assert_eq!(checks_of(VICTIM, &e, Verdict::Fail), expected);
}

#[test]
fn a_flow_goes_to_a_port_that_is_there() {
    let mut e = run(VICTIM, &[3], None, &[]);
    e.ports.more.remove(&PortName::new("rx2".into()));
    assert_eq!(checks_of(VICTIM, &e, Verdict::Error).len(), 16);
}

#[test]
fn lossy_frames_that_are_lost_and_a_pause_of_lossy_frames_are_no_congestion() {
    // A good switch with so large a buffer that nobody is asked.
    let plan = bench::plan(CASE, &[3, 4], None);
    let vast = |faults: &[_]| bench::run_configured(&plan, faults, |config| config.xoff = 1 << 40);
    let good = vast(&[]);
    assert_eq!(checks(&good, Verdict::Fail), [""; 0]);
    assert_eq!(
        checks(&good, Verdict::Inconclusive),
        ["asks-each", "asks-no-other"]
    );
    let lossy = vast(&["drops=lossy:10".parse().unwrap()]);
    assert_eq!(checks(&lossy, Verdict::Fail), [""; 0]);
    let stray = vast(&["xoff-for-lossy".parse().unwrap()]);
    assert_eq!(checks(&stray, Verdict::Fail), ["no-pfc-on-lossy"]);
    assert_eq!(
        checks(&stray, Verdict::Inconclusive),
        ["asks-each", "asks-no-other"]
    );
    // At a further port alone, also where a MAC is the witness at tx.
    let mut beside = good.clone();
    second(&mut beside).counts.pfc[0].xoff = 5;
    assert_eq!(checks(&beside, Verdict::Fail), ["no-pfc-on-lossy"]);
}

#[test]
fn a_flow_comes_from_a_port_that_is_there() {
    let mut e = evidence(&[3], &[]);
    e.ports.more.clear();
    assert_eq!(checks(&e, Verdict::Error).len(), 12);
}
