//! Evidence that is changed: of the corpus, made of it by a disturbance of the tester, and recorded
//! from real frames.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use lzma_rust2::XzReader;
use pfc_ebpf::stamp::Phase;
use serde::Deserialize;
use serde_json::{Value, json};
use validator::evidence::pfc::{DropCounter, DutReport, FlowReceived, PfcEvidence, Stall};
use validator::evidence::{CaseEvidence, Host, Invocation, Repetition, SCHEMA, Testbed, numbers};
use validator::plan::{FlowPlan, Nanos, Role};

use crate::bench;

const MS: Nanos = 1_000_000;

/// A device whose evidence is changed.
pub struct Device {
    pub family: &'static str,
    pub case: &'static str,
    pub name: &'static str,
    source: Source,
}

enum Source {
    /// The corpus has it; the name is that of a fault.
    Corpus,
    /// A good one of the corpus, and what the tester then did.
    Disturbed(fn(&mut PfcEvidence)),
    /// A run in virtual time.
    Run(fn() -> PfcEvidence),
    /// A run on real frames, as `validator run` wrote it.
    Recorded(&'static str),
}

const fn corpus(family: &'static str, case: &'static str, name: &'static str) -> Device {
    Device {
        family,
        case,
        name,
        source: Source::Corpus,
    }
}

const fn disturbed(
    case: &'static str,
    name: &'static str,
    disturb: fn(&mut PfcEvidence),
) -> Device {
    Device {
        family: "pfc",
        case,
        name,
        source: Source::Disturbed(disturb),
    }
}

pub const DEVICES: [Device; 27] = [
    corpus("pfc", "pfc.pause-single-lossless", "ignores-pfc"),
    corpus("pfc", "pfc.pause-single-lossless", "forwards-control"),
    corpus("pfc", "pfc.pause-multi-lossless", "loses-held"),
    corpus("pfc", "pfc.pause-lossy", "dips"),
    corpus("pfc", "pfc.pause-lossy", "xoff-for-lossy"),
    corpus("pfc", "pfc.global-pause", "duplicates"),
    corpus("pfc", "pfc.global-pause", "throttles"),
    disturbed("pfc.pause-lossy", "stalls of the sender", |e| {
        e.sender.stalls = long_stalls(e);
        e.sender.stalls_noted = e.sender.stalls.iter().copied().collect();
    }),
    disturbed("pfc.pause-lossy", "stalls of the storm's sender", |e| {
        let stalls = long_stalls(e);
        let storm = e.storm.as_mut().unwrap();
        storm.stalls_noted = stalls.iter().copied().collect();
        storm.stalls = stalls;
    }),
    disturbed("pfc.pause-lossy", "stalls of the simulated DUT", |e| {
        let stalls = long_stalls(e);
        let dut = dut(e);
        dut.stalls_noted = stalls.iter().copied().collect();
        dut.stalls = stalls;
    }),
    disturbed("pfc.pause-lossy", DIP_AT_THE_END, dip_at_the_end),
    disturbed("pfc.pause-single-lossless", "drops", |e| {
        e.accounting[0].rise = 5;
        e.accounting.push(DropCounter {
            place: "nic".into(),
            counter: "missed".into(),
            rise: 0,
        });
        e.instruments.note(&e.accounting);
    }),
    disturbed(
        "pfc.pause-multi-lossless",
        "drops of the simulated DUT",
        |e| {
            dut(e).overruns = 5;
        },
    ),
    disturbed("pfc.pause-single-lossless", "refused frames", |e| {
        e.sender.errors = 5;
    }),
    disturbed("pfc.pause-single-lossless", "long bursts", |e| {
        e.sender.max_burst = 40 * MS;
    }),
    disturbed("pfc.pause-single-lossless", "blind", |e| {
        e.ports.tx.pfc_visible = None;
        e.tx_port = Default::default();
    }),
    Device {
        family: "pfc",
        case: "pfc.pause-lossy",
        name: "gap",
        source: Source::Run(|| {
            let mut plan = bench::plan("pfc.pause-lossy", &[3], None);
            plan.flows.iter_mut().for_each(|flow| flow.length = 3400);
            bench::run_stalling(&plan, 12, 60 * MS)
        }),
    },
    Device {
        family: "pfc",
        case: "pfc.pause-lossy",
        name: "xoff-for-lossy on real frames",
        source: Source::Recorded("real-frames.json.xz"),
    },
    corpus("mad", "mad.c14-024-10-01", "lft-one-block=500"),
    corpus("mad", "mad.c14-016-get", "answers-wrong-key"),
    corpus("mad", "mad.c14-016-get", "keeps-key"),
    corpus("mad", "mad.c14-016-get", "twice"),
    corpus("mad", "mad.c14-016-get", "silent=port-info"),
    corpus("rc", "rc.c09-142-01", "one-retry-less"),
    corpus("rc", "rc.c09-142-01", "stays-in-rts"),
    corpus("rc", "rc.c09-142-01", "two-completions"),
    corpus("rc", "rc.c09-142-01", "no-neighbour"),
];

/// A device with a dip in the last window that lies in the storm phase whole.
pub const DIP_AT_THE_END: &str = "a dip at the end";

/// The devices of which each node is changed in the long tests: one a family.
pub const WHOLE: [(&str, &str); 3] = [
    ("pfc.pause-lossy", "dips"),
    ("mad.c14-016-get", "keeps-key"),
    ("rc.c09-142-01", "one-retry-less"),
];

/// Three stalls of the storm phase, for which `no-dip` watches too little of it. Without any of
/// them it would watch enough.
fn long_stalls(e: &PfcEvidence) -> Vec<Stall> {
    let span = e.span(Phase::Storm).unwrap();
    let middle = span.from.midpoint(span.to);
    let stall = |from| Stall {
        from,
        to: from + 6 * MS,
    };
    [span.from, middle, span.to - 6 * MS].map(stall).into()
}

/// Half of the background frames of that window come in the next one.
fn dip_at_the_end(e: &mut PfcEvidence) {
    let end = e.span(Phase::Storm).unwrap().to;
    let next = ((end - e.windows.epoch) / e.windows.width) as usize;
    let is_background = |flow: &&FlowPlan| flow.role == Role::Background;
    let flow = e.plan.flows.iter().find(is_background).unwrap();
    let (id, priority) = (flow.id, flow.priority.index());
    let late = e.windows.received[next - 1][priority] / 2;
    e.windows.received[next - 1][priority] -= late;
    e.windows.received[next][priority] += late;
    let is_it = |flow: &&mut FlowReceived| (flow.flow, flow.phase) == (id, Phase::Storm);
    let received = e.received.iter_mut().find(is_it).unwrap();
    received.window_sum += u64::from(late);
}

fn dut(e: &mut PfcEvidence) -> &mut DutReport {
    let dut = e.dut.as_mut().unwrap();
    // As of any process.
    dut.max_lateness = 100_000;
    dut
}

impl Device {
    /// Its evidence, as it is stored but for the digests.
    pub fn evidence(&self) -> Value {
        let run = match self.source {
            Source::Corpus => self.of_corpus(self.name),
            Source::Disturbed(disturb) => {
                let mut good = self.of_corpus("good");
                for repetition in &mut good.repetitions {
                    let Repetition::Pfc(evidence) = repetition else {
                        panic!("evidence of another family");
                    };
                    disturb(evidence);
                }
                good
            }
            Source::Run(run) => {
                let repetition = Repetition::Pfc(Box::new(run()));
                CaseEvidence::of(self.case, vec![repetition])
            }
            Source::Recorded(file) => return recorded(file),
        };
        json!({
            "schema": SCHEMA,
            "version": "1.2.3",
            "started": 1_800_000_000,
            "seconds": 1.5,
            "host": Host::default(),
            "testbed": Testbed::default(),
            "invocation": Invocation::default(),
            "preflight": null,
            "hooks": [],
            "planned": [self.case],
            "cases": [run],
            "interrupted": false,
        })
    }

    /// The run of its case on the device of that name.
    fn of_corpus(&self, device: &str) -> CaseEvidence {
        /// A line of the corpus.
        #[derive(Deserialize)]
        struct Line {
            devices: Vec<String>,
            evidence: CaseEvidence,
        }

        let file = folder().join(format!("{}.jsonl.xz", self.family));
        let file = XzReader::new(File::open(file).unwrap(), false);
        let case_key = format!("\"evidence\":{{\"case\":\"{}\"", self.case);
        let found = BufReader::new(file).lines().find_map(|line| {
            let line = line.unwrap();
            if !line.contains(&case_key) || !line.contains(&format!("\"{device}\"")) {
                return None;
            }
            let line: Line = serde_json::from_str(&line).unwrap();
            line.devices
                .iter()
                .any(|name| name == device)
                .then_some(line.evidence)
        });
        found.unwrap_or_else(|| panic!("no {} on {device} in the corpus", self.case))
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verdicts/corpus/evidence")
}

/// A file of evidence, without its digests, and with numbers as they are.
fn recorded(file: &str) -> Value {
    let file = File::open(folder().join(file)).unwrap();
    let mut evidence: Value = serde_json::from_reader(XzReader::new(file, false)).unwrap();
    evidence.as_object_mut().unwrap().remove("digests");
    numbers::from_portable(&mut evidence);
    evidence
}
