//! Measures the work outside the packet path with criterion: judging, evidence, reports and the
//! classifier. `cargo bench -p pfc-user --bench host [-- FILTER]`.
//!
//! The group `judge beside pass` has a benchmark `pass`, the baseline for the ratios of the others,
//! and so on.

#[path = "../../tests/bench/mod.rs"]
mod bench;
#[path = "../../../pfc-ebpf/tests/classified/mod.rs"]
mod classified;
#[path = "../common/mod.rs"]
mod common;
#[expect(dead_code, reason = "the tests use all of it")]
#[path = "../../../pfc-ebpf/tests/frames/mod.rs"]
mod frames;

use std::hint::black_box;
use std::time::Duration;

use classified::classify;
use common::Extent;
use criterion::{BatchSize, Criterion, Throughput};
use frames::TestFrame;
use pfc_ebpf::stamp::{LEN, Phase, Stamp};
use pfc_ebpf::wire::mac_control::MacControl;
use validator::report::{self, Folder, json, text};
use validator_core::cases;
use validator_core::evidence::pfc::PfcEvidence;
use validator_core::evidence::{CaseEvidence, Evidence, Repetition};
use validator_core::verdict::{Exit, Verdict};

/// Logged arrivals in the evidence.
const ARRIVALS: usize = 1_000_000;
/// Repetitions that are judged: one for each kind of storm.
const CASES: [(&str, &[u8]); 2] = [
    ("pfc.pause-single-lossless", &[3]),
    ("pfc.global-pause", &[3, 4]),
];

fn main() {
    let extent = Extent::asked();
    let milliseconds = |quick, full| Duration::from_millis(extent.pick(quick, full));
    let mut criterion = Criterion::default()
        .without_plots()
        .sample_size(extent.pick(10, 20))
        .warm_up_time(milliseconds(100, 500))
        .measurement_time(milliseconds(300, 2000))
        .configure_from_args();
    classifying(&mut criterion);
    judging(&mut criterion);
    keeping(&mut criterion);
    criterion.final_summary();
}

/// Evidence of a good switch in virtual time. Each logged arrival is repeated up to the required
/// number; the verdict stays the same.
fn evidence(case: &str, lossless: &[u8]) -> PfcEvidence {
    let mut evidence = bench::run(&bench::plan(case, lossless, None), &[]);
    let records = &mut evidence.arrivals.records;
    let times = ARRIVALS.div_ceil(records.len());
    *records = records
        .iter()
        .flat_map(|record| std::iter::repeat_n(*record, times))
        .take(ARRIVALS)
        .collect();
    evidence
}

/// A run that consists of one such repetition.
fn whole(case: &str, lossless: &[u8]) -> Evidence {
    let repetitions = vec![Repetition::Pfc(Box::new(evidence(case, lossless)))];
    Evidence::of(vec![CaseEvidence::of(case, repetitions)])
}

fn judging(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("judge beside pass");
    group.throughput(Throughput::Elements(ARRIVALS as u64));
    for (case, lossless) in CASES {
        let evidence = whole(case, lossless);
        // Its arrivals are more than its counts.
        let judge = |evidence: &Evidence| cases::judge_case(&evidence.cases[0]);
        let result = judge(&evidence);
        assert_eq!(
            result.verdict,
            Verdict::Pass,
            "{case} is not judged to the end: {result:?}"
        );
        if case == CASES[0].0 {
            let Repetition::Pfc(repetition) = &evidence.cases[0].repetitions[0] else {
                unreachable!("made above")
            };
            group.bench_function("pass", |bencher| {
                bencher.iter(|| {
                    black_box(&repetition.arrivals.records)
                        .iter()
                        .map(|arrival| arrival.time ^ u64::from(arrival.latency))
                        .max()
                })
            });
        }
        group.bench_function(format!("{case}, 10^6 arrivals"), |bencher| {
            bencher.iter(|| judge(black_box(&evidence)))
        });
    }
    group.finish();
}

fn keeping(criterion: &mut Criterion) {
    let (case, lossless) = CASES[0];
    let mut evidence = whole(case, lossless);
    let results = vec![cases::judge_case(&evidence.cases[0])];
    // Evidence of an interrupted repetition is read though its arrivals are more than its counts.
    evidence.interrupted = true;
    for repetition in &mut evidence.cases[0].repetitions {
        if let Repetition::Pfc(recorded) = repetition {
            recorded.interrupted = true;
        }
    }
    let octets = serde_json::to_vec(&evidence).expect("evidence can be written");
    let folder = tempfile::tempdir().expect("a folder");
    report::write_evidence(&mut Folder::make(folder.path()).unwrap(), &evidence).expect("a file");
    assert_eq!(
        report::read_evidence(folder.path()).expect("evidence"),
        evidence
    );

    let mut group = criterion.benchmark_group("evidence of 10^6 arrivals beside copy");
    group.throughput(Throughput::Bytes(octets.len() as u64));
    group.bench_function("copy", |bencher| {
        bencher.iter_batched(
            || (),
            |()| black_box(&octets).clone(),
            BatchSize::PerIteration,
        )
    });
    group.bench_function("write", |bencher| {
        bencher.iter(|| {
            let mut out = Vec::with_capacity(octets.len());
            serde_json::to_writer(&mut out, black_box(&evidence)).expect("evidence can be written");
            out
        })
    });
    group.bench_function("read_evidence", |bencher| {
        bencher.iter(|| report::read_evidence(folder.path()).expect("evidence"))
    });
    group.finish();
    let mut group = criterion.benchmark_group("report");
    group.bench_function("report.json", |bencher| {
        bencher.iter(|| {
            let mut out = Vec::new();
            json::write(&mut out, black_box(&evidence), &results, Exit::Passed)
                .expect("a report can be written");
            out
        })
    });
    group.bench_function("text", |bencher| {
        bencher.iter(|| text::summary(black_box(&evidence), &results, Exit::Passed, false))
    });
    group.finish();
}

fn classifying(criterion: &mut Criterion) {
    let stamp = Stamp {
        run: 7,
        flow: 3,
        phase: Phase::Storm,
        sequence: 5,
        time: 9,
    };
    let plain = TestFrame::new(stamp);
    let tagged = TestFrame {
        tags: vec![(0x8100, 3 << 13)],
        ..plain.clone()
    };
    let long = TestFrame {
        payload: LEN + 1500 - 64,
        ..plain.clone()
    };
    let v6 = TestFrame {
        v6: true,
        ..plain.clone()
    };
    let mut damaged = plain.octets();
    damaged[44] ^= 1;
    let other = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 0x08, 0x06], &[0; 46]].concat();
    let source = [2, 0, 0, 0, 0, 9];
    let kinds = [
        ("test, 64 octets", plain.octets()),
        ("test, tagged", tagged.octets()),
        ("test, IPv6", v6.octets()),
        ("test, 1500 octets", long.octets()),
        ("test, damaged stamp", damaged),
        (
            "PFC, 8 classes",
            MacControl::Pfc {
                vector: 0xff,
                quanta: [0xffff; 8],
            }
            .emit(source)
            .to_vec(),
        ),
        (
            "PAUSE",
            MacControl::Pause { quanta: 0xffff }.emit(source).to_vec(),
        ),
        ("other (ARP)", other),
    ];
    let mut group = criterion.benchmark_group("classify beside copy of 64 octets");
    let frame = plain.octets();
    let mut out = [0; 64];
    group.bench_function("copy of 64 octets", |bencher| {
        bencher.iter(|| {
            out.copy_from_slice(black_box(&frame));
            black_box(&mut out);
        })
    });
    for (kind, frame) in &kinds {
        group.bench_function(*kind, |bencher| {
            bencher.iter(|| classify(black_box(frame.as_slice())))
        });
    }
    group.finish();
}
