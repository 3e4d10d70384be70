//! The case with two sending ports: what is not shown at one of them fails no device.

use validator_core::evidence::pfc::{PfcEvidence, Port};
use validator_core::plan::PortName;
use validator_core::verdict::Verdict;

use crate::bench;

const CASE: &str = "pfc.oversubscription";

fn evidence(lossless: &[u8], faults: &[&str]) -> PfcEvidence {
    let faults: Vec<_> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    bench::run(&bench::plan(CASE, lossless, None), &faults)
}

/// Ids of the checks that are so.
fn checks(e: &PfcEvidence, verdict: Verdict) -> Vec<String> {
    let checks = bench::case(CASE).judge(e).checks.into_iter();
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
    assert_eq!(checks(&e, Verdict::Error).len(), 11);
}
