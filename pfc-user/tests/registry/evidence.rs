//! Fields that a PFC repetition measured, and their readers: each field has a check, a
//! precondition, a rule of whole evidence or a place where it is shown, or a reason why nobody
//! needs it.
//!
//! The rule that times and counts are such as can be measured (`consistency`) reads nearly all and
//! counts here for none.

use std::collections::BTreeSet;
use std::path::Path;

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Priority;
use pfc_ebpf::wire::Malformed;
use pfc_ebpf::wire::mac_control::Deviation;
use serde_json::{Value, json};
use validator_core::cases;
use validator_core::evidence::mac::{Frames, MacCounter, MacReport, Reading, Source, Subject};
use validator_core::evidence::pfc::{
    Arrival, Arrivals, ClassReceived, ControlReceived, Departure, DropCounter, DutReport, FlowSent,
    Gap, GapHistogram, LeftOut, PortReceived, SenderReport, Stall, StormReport, Windows, Withheld,
    WithheldLeftOut,
};
use validator_core::evidence::whole::Rule;
use validator_core::plan::PortName;

use crate::bench::accounting::none_received;

use self::Reader::{Checks, Nobody, Preconditions, Shown, Whole};

/// Reader of a field.
enum Reader {
    /// Checks of PFC cases, by their ids.
    Checks(&'static [&'static str]),
    /// Preconditions of such checks, by their names.
    Preconditions(&'static [&'static str]),
    /// A rule of whole evidence: it compares the field with another count.
    Whole(Rule),
    /// A figure or a part of a report: the source file, and the words in it that read the field.
    Shown(&'static str, &'static str),
    /// Nobody, for this reason.
    Nobody(&'static str),
}

const FIGURES: &str = "core/src/cases/pfc/judge/figures.rs";
const WITNESS: &str = "core/src/cases/pfc/judge/mac.rs";
const TIMELINE: &str = "core/src/report/html/timeline.rs";
const REPETITION: &str = "core/src/report/html/repetition.rs";

/// Frames that are to arrive: the checks that compare them with those that left.
const DELIVERY: Reader = Checks(&[
    "background",
    "isolation",
    "delivered",
    "resume",
    "test-traffic",
    "no-loss",
    "ignored",
    "only-enabled",
    "response",
]);
/// Times in which tester or simulated DUT stood still.
const STALLS: Reader = Checks(&[
    "background",
    "no-dip",
    "no-delay",
    "lets-go",
    "throughput",
    "response",
    "xon",
    "resumes",
]);
/// Records of single arrivals.
const RECORDS: Reader = Checks(&["paused", "lets-go", "response", "xon", "resumes"]);
/// Counts by window.
const WINDOWS: Reader = Checks(&["no-dip", "no-delay", "background"]);
/// A part of the name of a count.
const KEY: Reader = Nobody("it says what the counts beside it are of");
/// Frames of other senders.
const FOREIGN: Reader = Shown(FIGURES, "port.counts.foreign()");
/// Report of the simulated DUT on itself.
const SELF_REPORT: Reader = Nobody(
    "a check judges the simulated DUT by its frames, like any device; this is for whoever looks \
     for the fault of a model",
);
/// The rx port is at the end that the storm comes from.
const RX_CONTROL: Reader = Nobody("the DUT's pauses for the test traffic come in at the tx port");
/// The last time of a class.
const LAST_QUANTA: Reader = Nobody("any time above 0 pauses; the logged frames have each time");
/// Frames that name no class.
const EMPTY: Reader = Nobody("a PFC frame that names no priority asks for nothing");
/// Frames by priority, as the port's program sorts them.
const BY_PRIORITY: Reader = Nobody("flows and windows have the test frames, by flow and priority");
/// Frames that the capture lacks.
const OFFENCES_LOST: Reader =
    Nobody("the capture holds examples; the counts beside it have all such frames");

/// The fields, each with readers of it, though not always all. `[]` stands for each element of a
/// list.
const FIELDS: &[(&str, &[Reader])] = &[
    ("received[].flow", &[KEY]),
    ("received[].phase", &[KEY]),
    (
        "received[].frames",
        &[DELIVERY, Preconditions(&["baseline"]), Whole(Rule::Flows)],
    ),
    ("received[].octets", &[Checks(&["no-resize"])]),
    ("received[].duplicate", &[Checks(&["no-duplicate"])]),
    ("received[].reordered", &[Checks(&["no-reorder"])]),
    (
        "received[].beyond_window",
        &[
            Checks(&["no-duplicate", "no-reorder"]),
            Preconditions(&["honoured"]),
        ],
    ),
    (
        "received[].verified",
        &[Checks(&["no-corruption", "no-resize"])],
    ),
    ("received[].corrupt", &[Checks(&["no-corruption"])]),
    ("received[].altered", &[Checks(&["no-corruption"])]),
    ("received[].resized", &[Checks(&["no-resize"])]),
    ("received[].remarked", &[Checks(&["no-remark"])]),
    ("received[].untagged", &[Checks(&["no-remark"])]),
    ("received[].first", &[Checks(&["paused", "lets-go"])]),
    ("received[].last", &[DELIVERY, Checks(&["throughput"])]),
    (
        "received[].latency_max",
        &[Checks(&["no-delay", "paused", "background"])],
    ),
    (
        "received[].latency_mean",
        &[Nobody(
            "a mean hides what the greatest and the distribution show; `no-delay` takes its own \
             from the windows",
        )],
    ),
    (
        "received[].latency",
        &[Checks(&["no-dip"]), Whole(Rule::Latencies)],
    ),
    // The tx port sends the test traffic; the DUT's PFC arrives there.
    ("ports.tx.counts.frames", &[Whole(Rule::Ports)]),
    (
        "ports.tx.counts.test_frames",
        &[Checks(&["no-reflection"]), Whole(Rule::Ports)],
    ),
    (
        "ports.tx.counts.misdelivered",
        &[Nobody(
            "no flow goes to a sending port: `test_frames` are all that came",
        )],
    ),
    (
        "ports.tx.counts.foreign_run",
        &[FOREIGN, Whole(Rule::Ports)],
    ),
    ("ports.tx.counts.other", &[FOREIGN, Whole(Rule::Ports)]),
    ("ports.tx.counts.by_priority", &[BY_PRIORITY]),
    ("ports.tx.counts.pause.xoff", &[Checks(&["no-pause"])]),
    (
        "ports.tx.counts.pause.xon",
        &[Shown(FIGURES, "pause.xon"), Whole(Rule::Control)],
    ),
    ("ports.tx.counts.pause.last_quanta", &[LAST_QUANTA]),
    (
        "ports.tx.counts.pfc_frames",
        &[Preconditions(&["pfc-visible"]), Whole(Rule::Control)],
    ),
    ("ports.tx.counts.pfc_empty", &[EMPTY]),
    (
        "ports.tx.counts.pfc[].xoff",
        &[Checks(&["no-pfc-on-lossy"])],
    ),
    ("ports.tx.counts.pfc[].xon", &[Shown(FIGURES, "class.xon")]),
    ("ports.tx.counts.pfc[].last_quanta", &[LAST_QUANTA]),
    (
        "ports.tx.counts.own_control",
        &[Checks(&["no-mac-control-forwarded", "no-pfc-on-lossy"])],
    ),
    ("ports.tx.counts.malformed", &[FOREIGN, Whole(Rule::Ports)]),
    // Only as what `malformed` has beside frames of other senders.
    ("ports.tx.counts.damaged", &[FOREIGN]),
    ("ports.tx.counts.deviations", &[Checks(&["well-formed"])]),
    (
        "ports.tx.counts.controls[].time",
        &[Shown(TIMELINE, "control.time")],
    ),
    (
        "ports.tx.counts.controls[].opcode",
        &[Nobody(
            "what a frame asks for is in its vector and times; PAUSE and PFC are counted apart",
        )],
    ),
    (
        "ports.tx.counts.controls[].vector",
        &[Shown(TIMELINE, "control.vector")],
    ),
    (
        "ports.tx.counts.controls[].quanta",
        &[Shown(TIMELINE, "control.quanta")],
    ),
    ("ports.tx.counts.controls_lost", &[Whole(Rule::Control)]),
    ("ports.tx.counts.offences_lost", &[OFFENCES_LOST]),
    // The rx port receives the test traffic and sends the storm.
    ("ports.rx.counts.frames", &[Whole(Rule::Ports)]),
    (
        "ports.rx.counts.test_frames",
        &[Whole(Rule::Flows), Whole(Rule::Ports)],
    ),
    (
        "ports.rx.counts.misdelivered",
        &[Checks(&["no-reflection"]), Whole(Rule::Flows)],
    ),
    (
        "ports.rx.counts.foreign_run",
        &[FOREIGN, Whole(Rule::Ports)],
    ),
    ("ports.rx.counts.other", &[FOREIGN, Whole(Rule::Ports)]),
    ("ports.rx.counts.by_priority", &[BY_PRIORITY]),
    ("ports.rx.counts.pause.xoff", &[Checks(&["no-pause"])]),
    ("ports.rx.counts.pause.xon", &[Whole(Rule::Control)]),
    ("ports.rx.counts.pause.last_quanta", &[LAST_QUANTA]),
    ("ports.rx.counts.pfc_frames", &[Whole(Rule::Control)]),
    ("ports.rx.counts.pfc_empty", &[EMPTY]),
    (
        "ports.rx.counts.pfc[].xoff",
        &[Checks(&["no-pfc-on-lossy"])],
    ),
    ("ports.rx.counts.pfc[].xon", &[RX_CONTROL]),
    ("ports.rx.counts.pfc[].last_quanta", &[LAST_QUANTA]),
    (
        "ports.rx.counts.own_control",
        &[Checks(&["no-mac-control-forwarded"]), Whole(Rule::Ports)],
    ),
    ("ports.rx.counts.malformed", &[FOREIGN, Whole(Rule::Ports)]),
    (
        "ports.rx.counts.damaged",
        &[Checks(&["no-corruption", "no-resize"])],
    ),
    ("ports.rx.counts.deviations", &[Checks(&["well-formed"])]),
    ("ports.rx.counts.controls[].time", &[RX_CONTROL]),
    ("ports.rx.counts.controls[].opcode", &[RX_CONTROL]),
    ("ports.rx.counts.controls[].vector", &[RX_CONTROL]),
    ("ports.rx.counts.controls[].quanta", &[RX_CONTROL]),
    ("ports.rx.counts.controls_lost", &[Whole(Rule::Control)]),
    ("ports.rx.counts.offences_lost", &[OFFENCES_LOST]),
    (
        "sender.method",
        &[Nobody(
            "whichever way the frames left, `rate` judges whether they left in time",
        )],
    ),
    (
        "sender.honours_pfc",
        &[Nobody(
            "`honoured` weighs what left after each XOFF, and whether any could be seen",
        )],
    ),
    ("sender.flows[].flow", &[KEY]),
    ("sender.flows[].phase", &[KEY]),
    (
        "sender.flows[].frames",
        &[DELIVERY, Preconditions(&["rate"])],
    ),
    ("sender.flows[].first", &[Preconditions(&["honoured"])]),
    (
        "sender.flows[].last",
        &[DELIVERY, Preconditions(&["honoured"])],
    ),
    ("sender.withheld[].port", &[KEY]),
    ("sender.withheld[].priority", &[KEY]),
    ("sender.withheld[].phase", &[KEY]),
    (
        "sender.withheld[].from",
        &[Checks(&["background", "throughput"])],
    ),
    (
        "sender.withheld[].to",
        &[
            Checks(&["background", "throughput"]),
            Preconditions(&["rate"]),
        ],
    ),
    ("sender.withheld_left_out[].port", &[KEY]),
    ("sender.withheld_left_out[].priority", &[KEY]),
    ("sender.withheld_left_out[].phase", &[KEY]),
    (
        "sender.withheld_left_out[].count",
        &[Preconditions(&["honoured"])],
    ),
    (
        "sender.withheld_left_out[].total",
        &[Checks(&["background", "throughput"])],
    ),
    (
        "sender.withheld_left_out[].from",
        &[Preconditions(&["rate"])],
    ),
    ("sender.withheld_left_out[].to", &[Preconditions(&["rate"])]),
    ("sender.after_xoff", &[Preconditions(&["honoured"])]),
    ("sender.stalls[].from", &[STALLS]),
    ("sender.stalls[].to", &[STALLS]),
    ("sender.stalls_left_out.count", &[Checks(&["no-dip"])]),
    ("sender.stalls_left_out.total", &[STALLS]),
    ("sender.stalls_left_out.from", &[STALLS]),
    ("sender.stalls_left_out.to", &[STALLS]),
    ("sender.errors", &[Preconditions(&["rate"])]),
    (
        "sender.waits",
        &[Checks(&["no-dip"]), Shown(FIGURES, "e.sender.waits")],
    ),
    (
        "sender.max_burst",
        &[
            Checks(&["throughput", "no-dip", "no-delay"]),
            Preconditions(&["rate"]),
        ],
    ),
    ("windows.epoch", &[WINDOWS]),
    ("windows.width", &[WINDOWS]),
    (
        "windows.offered",
        &[Checks(&["no-dip", "no-delay"]), Whole(Rule::Windows)],
    ),
    ("windows.received", &[WINDOWS, Whole(Rule::Windows)]),
    ("storm.method", &[Shown(FIGURES, "storm.method")]),
    (
        "storm.frames",
        &[
            Checks(&["no-mac-control-forwarded"]),
            Preconditions(&["storm-continuity"]),
            Whole(Rule::Storm),
        ],
    ),
    ("storm.errors", &[Shown(FIGURES, "storm.errors")]),
    (
        "storm.first.before",
        &[Shown(TIMELINE, "storm.first.before")],
    ),
    (
        "storm.first.after",
        &[Checks(&["paused"]), Preconditions(&["storm-continuity"])],
    ),
    (
        "storm.last.before",
        &[
            Checks(&["paused", "background"]),
            Preconditions(&["storm-continuity"]),
        ],
    ),
    ("storm.last.after", &[Checks(&["lets-go"])]),
    ("storm.max_gap", &[Preconditions(&["storm-continuity"])]),
    (
        "storm.gaps[].from",
        &[Checks(&["paused"]), Preconditions(&["storm-continuity"])],
    ),
    (
        "storm.gaps[].to",
        &[Checks(&["paused"]), Preconditions(&["storm-continuity"])],
    ),
    (
        "storm.gaps_left_out.count",
        &[Preconditions(&["storm-continuity"])],
    ),
    (
        "storm.gaps_left_out.total",
        &[Nobody(
            "a pause may have run out in each of these gaps, however long they are together",
        )],
    ),
    (
        "storm.gaps_left_out.from",
        &[Checks(&["paused"]), Preconditions(&["storm-continuity"])],
    ),
    (
        "storm.gaps_left_out.to",
        &[Checks(&["paused"]), Preconditions(&["storm-continuity"])],
    ),
    (
        "storm.histogram",
        &[Shown(FIGURES, "storm.histogram"), Whole(Rule::Storm)],
    ),
    ("storm.stalls[].from", &[STALLS]),
    ("storm.stalls[].to", &[STALLS]),
    ("storm.stalls_left_out.count", &[Checks(&["no-dip"])]),
    ("storm.stalls_left_out.total", &[STALLS]),
    ("storm.stalls_left_out.from", &[STALLS]),
    ("storm.stalls_left_out.to", &[STALLS]),
    (
        "arrivals.records",
        &[
            RECORDS,
            Preconditions(&["storm-arrival"]),
            Whole(Rule::Arrivals),
        ],
    ),
    (
        "arrivals.lost",
        &[
            Checks(&["response", "xon", "resumes"]),
            Preconditions(&["storm-arrival"]),
            Whole(Rule::Arrivals),
        ],
    ),
    ("mac[].port", &[Preconditions(&["pfc-visible"])]),
    ("mac[].interface", &[Shown(WITNESS, "mac.interface")]),
    ("mac[].driver", &[Shown(WITNESS, "mac.driver")]),
    ("mac[].lag", &[Preconditions(&["pfc-visible"])]),
    ("mac[].enabled", &[Preconditions(&["pfc-visible"])]),
    (
        "mac[].readings[].before",
        &[Nobody(
            "it names a reading; only the first and the last are compared",
        )],
    ),
    ("mac[].readings[].time", &[Preconditions(&["pfc-visible"])]),
    (
        "mac[].counters[].name",
        &[Shown(WITNESS, "counter.name"), Whole(Rule::Instruments)],
    ),
    (
        "mac[].counters[].source",
        &[Preconditions(&["pfc-visible"])],
    ),
    (
        "mac[].counters[].subject",
        &[Checks(&[
            "no-pfc-on-lossy",
            "no-pause",
            "no-mac-control-forwarded",
        ])],
    ),
    (
        "mac[].counters[].frames",
        &[Checks(&[
            "no-pfc-on-lossy",
            "no-pause",
            "no-mac-control-forwarded",
        ])],
    ),
    ("mac[].counters[].array", &[Preconditions(&["pfc-visible"])]),
    ("mac[].counters[].alive", &[Preconditions(&["pfc-visible"])]),
    (
        "mac[].counters[].values",
        &[
            Checks(&["no-pfc-on-lossy", "no-pause", "no-mac-control-forwarded"]),
            Whole(Rule::Instruments),
        ],
    ),
    ("mac[].error", &[Preconditions(&["pfc-visible"])]),
    (
        "accounting[].place",
        &[Shown(REPETITION, "counter.place"), Whole(Rule::Instruments)],
    ),
    (
        "accounting[].counter",
        &[
            Shown(REPETITION, "counter.counter"),
            Whole(Rule::Instruments),
        ],
    ),
    ("accounting[].rise", &[Preconditions(&["accounting"])]),
    ("dut.received", &[SELF_REPORT]),
    ("dut.sent", &[SELF_REPORT]),
    ("dut.model_drops", &[SELF_REPORT]),
    ("dut.overruns", &[Preconditions(&["accounting"])]),
    ("dut.send_errors", &[Preconditions(&["accounting"])]),
    ("dut.stalls[].from", &[STALLS, Preconditions(&["honoured"])]),
    ("dut.stalls[].to", &[STALLS, Preconditions(&["honoured"])]),
    (
        "dut.max_lateness",
        &[Checks(&["paused", "throughput", "no-dip"])],
    ),
    ("dut.xoff_sent", &[SELF_REPORT]),
    ("dut.faults", &[SELF_REPORT]),
];

fn port() -> PortReceived {
    PortReceived {
        frames: 0,
        test_frames: 0,
        misdelivered: 0,
        foreign_run: 0,
        other: 0,
        by_priority: [0; 8],
        pause: ClassReceived::default(),
        pfc_frames: 0,
        pfc_empty: 0,
        pfc: [ClassReceived::default(); 8],
        own_control: 0,
        malformed: vec![(Malformed::Headers, 1)],
        damaged: vec![(Malformed::Headers, 1)],
        deviations: vec![(Deviation::Length, 1)],
        controls: vec![ControlReceived {
            time: 0,
            opcode: 0,
            vector: 0,
            quanta: [0; 8],
        }],
        controls_lost: 0,
        offences_lost: 0,
    }
}

fn sender() -> SenderReport {
    let (priority, phase) = (Priority::from_low_bits(3), Phase::Storm);
    SenderReport {
        method: String::new(),
        honours_pfc: String::new(),
        flows: vec![FlowSent {
            flow: 0,
            phase,
            frames: 0,
            first: 0,
            last: 0,
        }],
        withheld: vec![Withheld {
            port: PortName::TX,
            priority,
            phase,
            from: 0,
            to: 0,
        }],
        withheld_left_out: vec![WithheldLeftOut {
            port: PortName::TX,
            priority,
            phase,
            spans: LeftOut::default(),
        }],
        after_xoff: [0; 8],
        stalls: vec![Stall { from: 0, to: 0 }],
        stalls_left_out: LeftOut::default(),
        errors: 0,
        waits: 0,
        max_burst: 0,
    }
}

fn storm() -> StormReport {
    let departure = Departure {
        before: 0,
        after: 0,
    };
    StormReport {
        method: String::new(),
        frames: 0,
        errors: 0,
        first: departure,
        last: departure,
        max_gap: 0,
        gaps: vec![Gap { from: 0, to: 0 }],
        gaps_left_out: LeftOut::default(),
        histogram: GapHistogram(vec![(1, 1)]),
        stalls: vec![Stall { from: 0, to: 0 }],
        stalls_left_out: LeftOut::default(),
    }
}

fn arrivals() -> Arrivals {
    Arrivals {
        records: vec![Arrival {
            time: 0,
            flow: 0,
            phase: Phase::Storm,
            latency: 0,
        }],
        lost: 0,
    }
}

fn windows() -> Windows {
    Windows {
        epoch: 0,
        width: 0,
        offered: vec![[0; 8]],
        received: vec![[0; 8]],
    }
}

fn mac() -> MacReport {
    MacReport {
        port: String::new(),
        interface: String::new(),
        driver: String::new(),
        lag: 0,
        enabled: None,
        readings: vec![Reading {
            before: String::new(),
            time: 0,
        }],
        counters: vec![MacCounter {
            name: String::new(),
            source: Source::Driver,
            subject: Subject::Pause,
            frames: Frames::Xoff,
            array: None,
            alive: None,
            values: Vec::new(),
        }],
        error: None,
    }
}

fn accounting() -> DropCounter {
    DropCounter {
        place: String::new(),
        counter: String::new(),
        rise: 0,
    }
}

fn dut() -> DutReport {
    DutReport {
        received: vec![0; 2],
        sent: vec![0; 2],
        model_drops: Vec::new(),
        overruns: 0,
        send_errors: 0,
        stalls: vec![Stall { from: 0, to: 0 }],
        max_lateness: 0,
        xoff_sent: [0; 8],
        faults: Vec::new(),
    }
}

/// The measured parts of evidence under their names there; no list of structures is empty.
fn measured() -> Value {
    json!({
        "received": [none_received(0, Phase::Storm, 0)],
        "ports": { "tx": { "counts": port() }, "rx": { "counts": port() } },
        "sender": sender(),
        "windows": windows(),
        "storm": storm(),
        "arrivals": arrivals(),
        "mac": [mac()],
        "accounting": [accounting()],
        "dut": dut(),
    })
}

/// Adds the names of all fields below `value`, which is at `path`.
fn collect(value: &Value, path: &str, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                collect(field, &format!("{path}{dot}{name}"), names);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for item in items {
                collect(item, &format!("{path}[]"), names);
            }
        }
        _ => {
            names.insert(path.to_owned());
        }
    }
}

#[test]
fn each_measured_field_has_a_reader_or_a_reason_why_nobody_reads_it() {
    let mut found = BTreeSet::new();
    collect(&measured(), "", &mut found);
    let named: BTreeSet<String> = FIELDS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(named.len(), FIELDS.len(), "a field stands twice");
    let unread: Vec<_> = found.difference(&named).collect();
    assert!(unread.is_empty(), "fields without an entry: {unread:?}");
    let gone: Vec<_> = named.difference(&found).collect();
    assert!(gone.is_empty(), "entries without a field: {gone:?}");
}

#[test]
fn readers_of_measured_fields_are_there() {
    let of_pfc = || {
        let all = cases::all().into_iter();
        let of_pfc = all.filter(|case| case.id.starts_with("pfc."));
        of_pfc.flat_map(|case| case.checks)
    };
    let checks: BTreeSet<&str> = of_pfc().map(|check| check.id).collect();
    let preconditions: BTreeSet<&str> = of_pfc()
        .flat_map(|check| check.preconditions.iter().copied())
        .collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (field, readers) in FIELDS {
        assert!(!readers.is_empty(), "{field} has neither reader nor reason");
        for reader in *readers {
            match reader {
                Checks(ids) => {
                    assert!(!ids.is_empty(), "{field}");
                    for id in *ids {
                        assert!(checks.contains(id), "{field}: no check is called {id}");
                    }
                }
                Preconditions(names) => {
                    assert!(!names.is_empty(), "{field}");
                    for name in *names {
                        let known = preconditions.contains(name);
                        assert!(known, "{field}: no precondition is called {name}");
                    }
                }
                // The compiler knows which rules there are; the user knows them by this page.
                Whole(rule) => {
                    let page = root.join("../docs/formats.md");
                    let page = std::fs::read_to_string(page).unwrap();
                    let row = format!("| `{rule}` |");
                    assert!(page.contains(&row), "{field}: no rule is called {rule}");
                }
                Shown(file, words) => {
                    let source = std::fs::read_to_string(root.join(file)).unwrap();
                    assert!(source.contains(words), "{field}: {file} has no {words}");
                }
                Nobody(reason) => {
                    assert!(!reason.is_empty(), "{field}");
                    let alone = readers.len() == 1;
                    assert!(alone, "{field} has readers and a reason why there are none");
                }
            }
        }
    }
}
