//! What leaves `silent` of pfc.no-congestion and `response` of pfc.response-time open, and the times
//! that the latter reports.

use pfc_ebpf::units::MILLISECOND as MS;
use validator_core::evidence::pfc::{LeftOut, Stall};

use super::*;

const ASKS_EARLY: &str = "asks-early";

/// Evidence of a case on a switch with that fault, or without one.
fn evidence(case: &str, fault: Option<&str>) -> PfcEvidence {
    let plan = bench::plan_at(&bench::port(), case, &[3, 4], None);
    let faults: Vec<_> = fault.iter().map(|fault| fault.parse().unwrap()).collect();
    bench::run(&plan, &faults)
}

/// The verdict on a check, with its reason.
fn judged(case: &str, check: &str, e: &PfcEvidence) -> (Verdict, String) {
    let checks = bench::case(case).judge(e).checks.into_iter();
    let mut of_it = checks.filter(|result| result.check == check);
    let result = of_it.next().unwrap();
    (result.verdict, result.reason.to_string())
}

fn silent(e: &PfcEvidence) -> (Verdict, String) {
    judged("pfc.no-congestion", "silent", e)
}

#[test]
fn pfc_fails_unless_each_frame_came_when_more_than_the_threshold_may_have_waited() {
    let mut e = evidence("pfc.no-congestion", Some(ASKS_EARLY));
    assert_eq!(silent(&e).0, Verdict::Fail);

    // 512 KiB are 4.19 ms of the line.
    e.sender.max_burst = 5 * MS;
    e.limits.max_burst = 5 * MS;
    let (verdict, why) = silent(&e);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert!(why.contains("up to 625000 octets may have waited"), "{why}");
    // A host may serve a port of any speed in bursts; a wire takes none.
    for (driver, verdict) in [
        ("veth", Verdict::Inconclusive),
        ("virtio_net", Verdict::Inconclusive),
        ("mlx5_core", Verdict::Fail),
    ] {
        for port in [&mut e.ports.tx, &mut e.ports.rx] {
            port.speed = Some(1_000_000_000);
            port.driver = driver.into();
        }
        assert_eq!(silent(&e).0, verdict, "{driver}");
    }

    // A stall says nothing of what came before it.
    let mut e = evidence("pfc.no-congestion", Some(ASKS_EARLY));
    let begin = e.phases[0].from;
    let stall = |from| Stall {
        from,
        to: from + 5 * MS,
    };
    e.sender.stalls = vec![stall(begin + 20 * MS)];
    assert_eq!(silent(&e).0, Verdict::Fail);
    // Those that are not listed may be at any time that they are said to span.
    e.sender.stalls_left_out = LeftOut {
        count: 1,
        total: 5 * MS,
        from: begin,
        to: e.phases[1].to,
    };
    assert_eq!(silent(&e).0, Verdict::Inconclusive);
    e.sender.stalls_left_out = LeftOut::default();
    // One in each phase that does not drain beside traffic of the whole line.
    e.plan.baseline_load = 100;
    let spans = e.phases.iter();
    e.sender.stalls = spans.map(|span| stall(span.from - MS)).collect();
    let (verdict, why) = silent(&e);
    assert_eq!(verdict, Verdict::Inconclusive, "{why}");
}

#[test]
fn silence_passes_whatever_may_have_waited_and_is_not_judged_without_a_threshold() {
    let mut e = evidence("pfc.no-congestion", None);
    e.sender.max_burst = 4 * MS;
    assert_eq!(silent(&e).0, Verdict::Pass);
    e.limits.xoff = None;
    assert_eq!(silent(&e).0, Verdict::NotApplicable);
    let mut e = evidence("pfc.no-congestion", Some(ASKS_EARLY));
    e.limits.xoff = None;
    assert_eq!(silent(&e).0, Verdict::NotApplicable);
}

#[test]
fn an_xon_alone_is_no_silence() {
    let mut e = evidence("pfc.no-congestion", None);
    let counts = &mut e.ports.tx.counts;
    counts.pfc_frames = 1;
    counts.pfc[3].xon = 1;
    // It is not logged when it came: it may have come after the largest burst.
    counts.controls_lost = 1;
    let (verdict, why) = silent(&e);
    assert_eq!(verdict, Verdict::Inconclusive, "{why}");
}

#[test]
fn a_pause_of_traffic_below_its_rate_does_not_count() {
    let id = "pfc.response-time";
    let mut e = evidence(id, None);
    assert_eq!(judged(id, "response", &e).0, Verdict::Pass);
    for flow in &mut e.plan.flows {
        flow.rate *= 2;
    }
    let (verdict, why) = judged(id, "response", &e);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert!(why.contains("fewer than its rate has"), "{why}");
}

#[test]
fn the_time_to_stop_is_reported_as_it_is() {
    let id = "pfc.response-time";
    for (fault, delay) in [(None, 0.0), (Some("slow-response=2"), 2.0)] {
        let figures = bench::case(id).judge(&evidence(id, fault)).figures;
        let figure = figures
            .iter()
            .find(|figure| figure.name == "last frame after an XOFF");
        let numbers = &figure.unwrap().numbers;
        let of = |unit: &str| {
            let numbers = numbers.iter().filter(|number| number.unit == unit);
            numbers.map(|number| number.value).collect::<Vec<_>>()
        };
        // Two priorities, each with a frame every 0.11 ms.
        assert_eq!(of("pauses"), [200.0], "{fault:?}");
        let times = of("ms");
        assert_eq!(times.len(), 4);
        let near = |time: &f64| (delay - 0.12..delay + 0.12).contains(time);
        assert!(times.iter().all(near), "{fault:?}: {times:?}");
        // A quantum is 512 ns at 1 Gbit/s; that of the standard is the last.
        assert_eq!(of("quanta").last(), Some(&2.0));
        let most = of("quanta")[3] * 512e-6;
        assert!((most - times[3]).abs() < 0.001, "{most} and {times:?}");
    }
}
