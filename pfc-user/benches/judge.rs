//! Measures `validator judge` as a process: its time and the most memory it held, on evidence in
//! few large repetitions and in many small ones. `cargo bench -p pfc-user --bench judge`.
//!
//! The peer of its time is a pass over the JSON text that keeps nothing, in the same rounds; the
//! peer of its memory is the file.

#[path = "../tests/bench/mod.rs"]
mod bench;
mod common;

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use common::{Extent, Report, Spread};
use serde::de::IgnoredAny;
use validator::report::{self, Folder};
use validator_core::evidence::pfc::PfcEvidence;
use validator_core::evidence::{CaseEvidence, Evidence, Repetition};

const REPORT: Report = Report("judge");
const CASE: &str = "pfc.pause-single-lossless";
const MB: f64 = 1e6;

fn main() {
    let recorded = bench::run(&bench::plan(CASE, &[3], None), &[]);
    judge("large repetitions", &recorded, 150.0);
    let small = PfcEvidence {
        interrupted: true,
        arrivals: Default::default(),
        windows: Default::default(),
        ..recorded
    };
    judge("small repetitions", &small, 150.0);
}

/// Judges `size` MB of evidence, which repeats one repetition.
fn judge(name: &str, repetition: &PfcEvidence, size: f64) {
    let length = serde_json::to_vec(repetition).expect("JSON").len() as f64;
    let count = (size * MB / length) as usize;
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), repetition, count);
    let file = folder.path().join(report::EVIDENCE);
    let octets = fs::metadata(&file).expect("the evidence").len() as f64;
    println!("{:.0} MB in {count} {name}", octets / MB);

    let (mut passes, mut times, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..Extent::asked().pick(3, 10) {
        let begin = Instant::now();
        let text = fs::read_to_string(&file).expect("the evidence");
        serde_json::from_str::<IgnoredAny>(&text).expect("JSON");
        drop(text);
        passes.push(begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        sizes.push(peak(folder.path()) / octets);
        times.push(begin.elapsed().as_secs_f64());
    }
    row(&format!("time, {name}"), "s", &times, Some(&passes));
    row(&format!("memory, {name}"), "x the file", &sizes, None);
}

fn write(folder: &Path, repetition: &PfcEvidence, count: usize) {
    let numbered = (0..count).map(|number| {
        let mut repetition = repetition.clone();
        repetition.plan.name = format!("{} of {number}", repetition.plan.name);
        Repetition::Pfc(Box::new(repetition))
    });
    let evidence = Evidence {
        interrupted: repetition.interrupted,
        ..Evidence::of(vec![CaseEvidence::of(CASE, numbered.collect())])
    };
    let mut folder = Folder::make(folder).expect("a folder");
    report::write_evidence(&mut folder, &evidence).expect("a file");
}

/// Makes the most memory that this process held what it holds now: a child begins with its figure.
fn forget_peak() {
    // SAFETY: it touches only memory that nobody has allocated.
    unsafe { libc::malloc_trim(0) };
    fs::write("/proc/self/clear_refs", "5").expect("a process may reset its own peak");
}

/// The most memory in octets that `validator judge` held.
fn peak(folder: &Path) -> f64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_validator"));
    command.arg("judge").arg(folder);
    forget_peak();
    #[expect(clippy::zombie_processes, reason = "wait4 reaps it")]
    let child = command.stdout(Stdio::null()).spawn().expect("the program");
    // SAFETY: a struct of integers may be zero.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    // SAFETY: both are valid for writes.
    let waited = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    assert_eq!(waited, child.id() as i32);
    let status = ExitStatus::from_raw(status);
    assert!(status.code().is_some_and(|code| code != 2), "{status}");
    usage.ru_maxrss as f64 * 1024.0
}

fn row(name: &str, unit: &str, values: &[f64], beside: Option<&[f64]>) {
    let Spread { median, min, max } = Spread::of(values);
    print!("  {name:<32} {median:>6.2} {unit} ({min:.2} to {max:.2})");
    match beside {
        Some(passes) => {
            println!(", {:.1} x a pass", Spread::of_ratios(values, passes).median);
            REPORT.beside(name, unit, values, "pass", passes);
        }
        None => {
            println!();
            REPORT.figure(name, unit, values);
        }
    }
}
