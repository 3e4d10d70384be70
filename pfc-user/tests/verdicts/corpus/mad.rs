//! Evidence of the MAD cases.

use ib_mad::mad::MKey;
use ib_mad::sma::NodeConfig;
use ib_mad::sma::fault::Fault;
use validator_core::evidence::mad::MadEvidence;
use validator_core::evidence::{CaseEvidence, Repetition};

use super::{Disturbance, OnDevice, case};
use crate::verdicts::mad_faults::bench::{Bench, KEYS, TABLE, TIMED, TIMES, adapter, switch};

/// Faults with the values that make a difference.
const VALUES: [(&str, &[&str]); 9] = [
    (
        "header",
        &[
            "class-version",
            "direction",
            "tid",
            "tid-zero",
            "tid-swapped",
            "modifier",
            "path",
        ],
    ),
    ("answers-wrong-key-late", &["250", "700"]),
    ("ignores-key-bit", &["1", "58"]),
    ("lft-status", &["0", "3"]),
    ("lft-one-block", &["0", "500", "767"]),
    (
        "silent",
        &[
            "node-info",
            "switch-info",
            "port-info",
            "linear-forwarding-table",
        ],
    ),
    ("late", &["1000", "2000", "6000"]),
    ("drops", &["1", "3", "50"]),
    ("busy", &["1", "2", "1000"]),
];

/// Devices whose evidence is also judged after each disturbance.
pub const DISTURBED: [&str; 4] = ["good", "keeps-key", "ignores-key-set", "silent=switch-info"];

pub const DISTURBANCES: [Disturbance; 5] = [
    ("interrupted", |recorded| of(recorded).interrupted = true),
    ("failed", |recorded| {
        let e = of(recorded);
        e.error = Some("the transport went away".into());
        e.exchanges.truncate(6);
    }),
    ("short", |recorded| of(recorded).exchanges.truncate(9)),
    ("unseen", |recorded| of(recorded).shows_unmatched = false),
    ("contradicts", |recorded| {
        let exchanges = &mut of(recorded).exchanges;
        let other = 3.min(exchanges.len() - 1);
        exchanges.swap(0, other);
    }),
];

fn of(recorded: &mut Repetition) -> &mut MadEvidence {
    match recorded {
        Repetition::Mad(evidence) => evidence,
        other => panic!("evidence of another family: {other:?}"),
    }
}

pub fn faults() -> Vec<&'static str> {
    Fault::CATALOGUE.iter().map(|entry| entry.name).collect()
}

fn run(id: &str, dut: NodeConfig, faults: &[Fault]) -> CaseEvidence {
    let mut bench = Bench::new(dut.clone(), faults);
    bench.config.m_key_current = dut.m_key;
    let recorded = bench.case(id);
    let repetitions = recorded.into_iter().map(Box::new).map(Repetition::Mad);
    case(id, repetitions.collect())
}

/// Names of all faults, those with values once for each.
fn with_values() -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in faults() {
        match VALUES.iter().find(|(known, _)| *known == name) {
            Some((_, values)) => all.extend(values.iter().map(|value| format!("{name}={value}"))),
            None => all.push(name.into()),
        }
    }
    all
}

pub fn record() -> Vec<OnDevice> {
    let with_key = NodeConfig {
        m_key: MKey(0x0123_4567_89ab_cdef),
        m_key_protect_bits: 1,
        m_key_lease_period: 60,
        ..switch()
    };
    let unconfigured = NodeConfig {
        lid: ib_mad::mad::Lid(0),
        ..switch()
    };
    let down = NodeConfig {
        port_state: 1,
        ..switch()
    };
    let mut all = Vec::new();
    for id in [TABLE, KEYS, TIMES, TIMED] {
        let good = run(id, switch(), &[]);
        all.push(("good".into(), good));
        for (name, dut) in [("adapter", adapter()), ("down", down.clone())] {
            all.push((name.into(), run(id, dut, &[])));
        }
        for name in with_values() {
            let dut = match name.as_str() {
                "one-key" => with_key.clone(),
                "refuses-lid-0" => unconfigured.clone(),
                _ => switch(),
            };
            let evidence = run(id, dut, &[name.parse().unwrap()]);
            all.push((name, evidence));
        }
    }
    all
}
