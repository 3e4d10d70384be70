//! Evidence of the RC case.

use validator_core::evidence::rc::RcEvidence;
use validator_core::evidence::{CaseEvidence, Omitted, Planned, Repetition};
use validator_core::fault::requester::Fault;

use super::{Disturbance, OnDevice, case};
use crate::verdicts::rc_faults::bench::{self, Virtual, of_document, plan};

/// Devices whose evidence is also judged after each disturbance.
pub const DISTURBED: [&str; 4] = ["good", "one-retry-less", "stays-in-rts", "apm"];

pub const DISTURBANCES: [Disturbance; 8] = [
    ("interrupted", |recorded| of(recorded).interrupted = true),
    ("interrupted-early", |recorded| {
        let e = of(recorded);
        e.interrupted = true;
        (e.test, e.flush) = (None, None);
    }),
    ("unreachable", |recorded| {
        let e = of(recorded);
        e.unreachable = Some("no neighbour".into());
        (e.control, e.test, e.flush) = (None, None, None);
    }),
    ("unknown", |recorded| {
        let e = of(recorded);
        (e.apm, e.device.apm) = (None, None);
    }),
    ("unrecorded", |recorded| {
        let e = of(recorded);
        if let Some(test) = &mut e.test {
            test.lost = 1;
        }
    }),
    ("lost", |recorded| {
        let e = of(recorded);
        if let Some(test) = &mut e.test {
            test.drops = vec![("rx_dropped".into(), 2)];
        }
    }),
    ("no-packet", |recorded| {
        let e = of(recorded);
        for phase in e.control.iter_mut().chain(&mut e.test) {
            phase.packets.clear();
            phase.answers.clear();
            phase.completions.clear();
        }
    }),
    ("contradicts", |recorded| {
        of(recorded).plan.control_drops = 9
    }),
];

fn of(recorded: &mut Repetition) -> &mut RcEvidence {
    match recorded {
        Repetition::Rc(evidence) => evidence,
        other => panic!("evidence of another family: {other:?}"),
    }
}

pub fn faults() -> Vec<&'static str> {
    Fault::CATALOGUE.iter().map(|entry| entry.name).collect()
}

fn run(faults: &[&str]) -> CaseEvidence {
    let mut recorded = case(bench::case().id, Vec::new());
    for plan in [of_document(), plan(0, 18, 1024), plan(7, 8, 4096)] {
        recorded.planned.push(Planned::Rc { plan: plan.clone() });
        match Virtual::new(faults).try_run(&plan) {
            Ok(evidence) => recorded
                .repetitions
                .push(Repetition::Rc(Box::new(evidence))),
            Err(error) => {
                recorded.omitted.push(Omitted {
                    name: plan.name,
                    reason: "ended by an error".into(),
                    not_applicable: false,
                });
                recorded.error.get_or_insert(error.to_string());
            }
        }
    }
    recorded.attempts = recorded.repetitions.len() as u64;
    recorded
}

pub fn record() -> Vec<OnDevice> {
    let good = run(&[]);
    let mut all = vec![("good".into(), good)];
    for name in faults() {
        let evidence = run(&[name]);
        all.push((name.into(), evidence));
    }
    all
}
