//! Evidence of the PFC cases.

use pfc_ebpf::abi::Trust;
use validator_core::cases::pfc::CASES;
use validator_core::cases::pfc::port::PortContext;
use validator_core::evidence::pfc::PfcEvidence;
use validator_core::evidence::{CaseEvidence, Repetition};
use validator_core::fault::switch::Fault;
use validator_core::verdict::Case;

use super::{Disturbance, OnDevice, case};
use crate::bench;

/// Lossless priorities, and the storm where it is not on all of them.
type Asked = (&'static [u8], Option<&'static [u8]>);

/// The repetitions of a short plan of all cases.
const ASKED: [(&str, &[Asked]); 18] = [
    ("pfc.pause-single-lossless", &[(&[3], None)]),
    (
        "pfc.pause-multi-lossless",
        &[(&[3, 4], None), (&[3, 4], Some(&[3]))],
    ),
    ("pfc.pause-lossy", &[(&[3], None)]),
    ("pfc.global-pause", &[(&[3, 4], None)]),
    (
        "pfc.enable-vector",
        &[(&[3, 4], Some(&[])), (&[3, 4], Some(&[3]))],
    ),
    (
        "pfc.class-map",
        &[(&[3, 4], Some(&[3])), (&[3, 4], Some(&[5]))],
    ),
    (
        "pfc.sizes",
        &[(&[3, 4], None), (&[3, 4], Some(&[0, 1, 2, 5, 6, 7]))],
    ),
    ("pfc.zero-time", &[(&[3, 4], None)]),
    ("pfc.independent-times", &[(&[3, 4], None)]),
    ("pfc.timer-reload", &[(&[3, 4], None)]),
    ("pfc.pause-time", &[(&[3, 4], None)]),
    ("pfc.response-time", &[(&[3, 4], None)]),
    ("pfc.invalid-frames", &[(&[3, 4], None)]),
    ("pfc.source-address", &[(&[3, 4], None)]),
    ("pfc.generation", &[(&[3, 4], None)]),
    ("pfc.no-congestion", &[(&[3, 4], None)]),
    ("pfc.oversubscription", &[(&[3, 4], None)]),
    ("pfc.victim", &[(&[3, 4], Some(&[3]))]),
];

/// Bursts of a probe that are kept: all but in pfc.response-time, where the fault `slow-at-times`
/// shows in these.
const BURSTS: usize = 45;

/// Faults with the values that make a difference.
const VALUES: [&str; 2] = ["drops=lossy", "drops=lossless"];

/// Devices whose evidence is also judged after each disturbance.
pub const DISTURBED: [&str; 3] = ["good", "loses-held", "duplicates"];

pub const DISTURBANCES: [Disturbance; 6] = [
    ("interrupted", |recorded| of(recorded).interrupted = true),
    ("lost", |recorded| of(recorded).accounting[0].rise = 5),
    ("no-carrier", |recorded| {
        of(recorded).ports.rx.carrier = false
    }),
    ("watchdog", |recorded| of(recorded).watchdog = None),
    ("unseen", |recorded| {
        let e = of(recorded);
        e.ports.tx.pfc_visible = None;
        e.ports.tx.counts = Default::default();
    }),
    ("contradicts", |recorded| of(recorded).received.truncate(1)),
];

fn of(recorded: &mut Repetition) -> &mut PfcEvidence {
    match recorded {
        Repetition::Pfc(evidence) => evidence,
        other => panic!("evidence of another family: {other:?}"),
    }
}

/// Faults of which evidence is kept: all, in the cases of the test plan; in each further case those
/// that its table names.
pub fn faults(case: &Case) -> Vec<&'static str> {
    let all = Fault::CATALOGUE.iter().map(|entry| entry.name);
    let named = |fault: &&str| case.checks.iter().any(|check| check.fault == *fault);
    let in_test_plan = case.document == CASES[0].case.document;
    all.filter(|fault| in_test_plan || named(fault)).collect()
}

fn run(id: &str, asked: &[Asked], trust: Trust, faults: &[Fault]) -> CaseEvidence {
    let port = PortContext {
        trust,
        shortest: bench::shortest(trust, false),
        ..bench::port()
    };
    let one = |(lossless, storm): &Asked| {
        let mut plan = bench::plan_at(&port, id, lossless, *storm);
        // Few frames make little evidence.
        if id == "pfc.sizes" {
            plan.flows.iter_mut().for_each(|flow| flow.rate /= 4);
        } else {
            plan.flows.iter_mut().for_each(|flow| flow.length = 3400);
        }
        if let Some(probe) = &mut plan.probe {
            probe.bursts.truncate(BURSTS);
        }
        if plan.storm.is_some() {
            plan.durations.traffic = 300_000_000;
        }
        let evidence = bench::run_trusting(trust, |dscp| dscp, &plan, faults);
        Repetition::Pfc(Box::new(evidence))
    };
    case(id, asked.iter().map(one).collect())
}

pub fn record() -> Vec<OnDevice> {
    let mut all = Vec::new();
    for (id, asked) in ASKED {
        let names = faults(&bench::case(id).case);
        let values = VALUES.iter().filter(|_| names.contains(&"drops"));
        let names = names.iter().filter(|name| **name != "drops").chain(values);
        let good = |trust| run(id, asked, trust, &[]);
        all.push(("good".into(), good(Trust::Dscp)));
        all.push(("good by PCP".into(), good(Trust::Pcp)));
        for name in names {
            let trust = match *name {
                "trusts-dscp" => Trust::Pcp,
                _ => Trust::Dscp,
            };
            let evidence = run(id, asked, trust, &[name.parse().unwrap()]);
            all.push((name.to_string(), evidence));
        }
    }
    all
}
