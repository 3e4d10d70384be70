//! Stored evidence is judged as it was.
//!
//! `evidence/FAMILY.jsonl.xz` holds, line by line, what a case recorded on a simulated device that
//! is good, and on one with each fault of its catalogue. `FAMILY.txt` holds the verdicts on it, and
//! on some of it after a disturbance: a line for each check, each assertion of the document, and
//! each step that did not pass.
//!
//! A change of the verdicts is shown line by line. Where it is meant, write them anew and look at
//! the difference in git:
//!
//! ```sh
//! VALIDATOR_RECORD=verdicts cargo test -p pfc-user --test rules corpus
//! ```
//!
//! Record the evidence anew, in virtual time, only where its layout has changed for good, or a
//! catalogue has a new fault:
//!
//! ```sh
//! VALIDATOR_RECORD=evidence cargo test -p pfc-user --test rules corpus
//! ```

mod mad;
mod pfc;
mod rc;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::{env, iter};

use lzma_rust2::{XzOptions, XzReader, XzWriter};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use validator_core::cases;
use validator_core::evidence::{CaseEvidence, Omitted, Repetition, whole};
use validator_core::verdict::{CaseResult, StepResult, Verdict};

/// Evidence of a case on one or more simulated devices. Devices whose faults make no difference to
/// the case share a line.
#[derive(Serialize, Deserialize)]
struct Recorded {
    /// The devices: `good`, or the name of a fault.
    devices: Vec<String>,
    evidence: CaseEvidence,
}

/// Evidence of one case, with the name of the device.
type OnDevice = (String, CaseEvidence);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verdicts/corpus")
}

/// Writes what a case recorded; devices with the same evidence share a line.
fn write(path: &Path, all: Vec<OnDevice>) -> io::Result<()> {
    let mut lines: Vec<Recorded> = Vec::new();
    for (device, evidence) in all {
        match lines.iter_mut().find(|line| line.evidence == evidence) {
            Some(line) => line.devices.push(device),
            None => lines.push(Recorded {
                devices: vec![device],
                evidence,
            }),
        }
    }
    let mut file = XzWriter::new(File::create(path)?, XzOptions::with_preset(6))?;
    for line in lines {
        serde_json::to_writer(&mut file, &line)?;
        file.write_all(b"\n")?;
    }
    file.finish()?.sync_all()
}

/// The verdicts on one case, a line each.
fn verdicts(device: &str, result: &CaseResult) -> String {
    let mut text = format!("{} on {device}: {}", result.case, result.verdict);
    if !result.reason.is_empty() {
        write!(text, " ({})", result.reason).unwrap();
    }
    text.push('\n');
    for check in &result.checks {
        let (repetition, id) = (&check.repetition, &check.check);
        let compared = counts(check.assertions.iter().map(|made| made.verdict));
        writeln!(
            text,
            "  [{repetition}] check {id}: {}{compared} {}",
            check.verdict, check.reason
        )
        .unwrap();
    }
    for assertion in &result.assertions {
        let compared = counts(assertion.comparisons.iter().map(|made| made.verdict));
        writeln!(
            text,
            "  assertion {}: {}{compared}",
            assertion.id,
            assertion.outcome()
        )
        .unwrap();
    }
    let passed = |step: &&StepResult| step.verdict == Verdict::Pass;
    for step in result.steps.iter().filter(|step| !passed(step)) {
        let (repetition, number) = (&step.repetition, &step.step);
        writeln!(text, "  [{repetition}] step {number}: {}", step.verdict).unwrap();
    }
    text
}

/// The number of comparisons for each verdict, such as ` (3 pass, 1 fail)`.
fn counts(verdicts: impl Iterator<Item = Verdict>) -> String {
    let verdicts: Vec<Verdict> = verdicts.collect();
    let of = |verdict: Verdict| {
        let count = verdicts.iter().filter(|other| **other == verdict).count();
        (count > 0).then(|| format!("{count} {verdict}"))
    };
    let made = [
        Verdict::Pass,
        Verdict::Fail,
        Verdict::Inconclusive,
        Verdict::NotApplicable,
        Verdict::Error,
        Verdict::Skipped,
    ];
    let counted: Vec<String> = made.into_iter().filter_map(of).collect();
    if counted.is_empty() {
        String::new()
    } else {
        format!(" ({})", counted.join(", "))
    }
}

/// The lines of `found` that `expected` has not, and the other way round, each with its case.
fn differences(expected: &str, found: &str) -> Vec<String> {
    let lines = |text: &str| {
        let mut head = String::new();
        let named = text.lines().map(|line| {
            if line.starts_with(' ') {
                format!("{head}:{line}")
            } else {
                head = line.rsplit_once(": ").map_or(line, |(head, _)| head).into();
                line.to_owned()
            }
        });
        named.collect::<Vec<String>>()
    };
    let mut balance = BTreeMap::<String, isize>::new();
    for (text, each) in [(expected, -1), (found, 1)] {
        for line in lines(text) {
            *balance.entry(line).or_default() += each;
        }
    }
    let different: Vec<String> = balance
        .into_iter()
        .filter(|(_, count)| *count != 0)
        .map(|(line, count)| format!("{} {line}", if count < 0 { '-' } else { '+' }))
        .collect();
    if different.is_empty() && expected != found {
        return vec!["the same lines in another order".into()];
    }
    different
}

/// The lines of a family.
pub fn lines(family: &str) -> impl Iterator<Item = String> {
    let file = File::open(folder().join(format!("evidence/{family}.jsonl.xz"))).unwrap();
    let lines = BufReader::new(XzReader::new(file, false)).lines();
    lines.map(|line| line.unwrap())
}

/// The devices and the evidence of a line.
pub fn parse(line: &str) -> (Vec<String>, CaseEvidence) {
    let Recorded { devices, evidence } = serde_json::from_str(line).unwrap();
    (devices, evidence)
}

/// Evidence that `validator run` wrote, without its digests.
pub fn real_frames() -> Value {
    let file = File::open(folder().join("evidence/real-frames.json.xz")).unwrap();
    serde_json::from_reader(XzReader::new(file, false)).unwrap()
}

/// Evidence of `case` on the device of that name.
pub fn recorded(family: &str, case: &str, device: &str) -> CaseEvidence {
    let case_key = format!("\"evidence\":{{\"case\":\"{case}\"");
    let of_case = lines(family).filter(|line| line.contains(&case_key));
    let mut of_case = of_case.map(|line| parse(&line));
    let found = of_case.find(|(devices, _)| devices.iter().any(|name| name == device));
    found.unwrap_or_else(|| panic!("no {case} on {device}")).1
}

/// Judges the stored evidence of a family, after recording it where that is asked for.
fn judge(family: &str, record: fn() -> Vec<OnDevice>, disturb: &[&str], by: &[Disturbance]) {
    let asked = env::var("VALIDATOR_RECORD").unwrap_or_default();
    if asked == "evidence" {
        let path = folder().join(format!("evidence/{family}.jsonl.xz"));
        write(&path, record()).unwrap();
    }
    let mut found = String::new();
    for line in lines(family) {
        let (devices, evidence) = parse(&line);
        if let Err(defect) = whole::check_case(&evidence, "case") {
            panic!("the evidence on {devices:?} is not whole: {defect}");
        }
        let result = cases::judge_case(&evidence);
        found.push_str(&verdicts(&devices.join(", "), &result));
        let disturb = devices.iter().find(|name| disturb.contains(&name.as_str()));
        for (disturbance, evidence) in disturb.map_or(Vec::new(), |_| disturbed(&evidence, by)) {
            let device = format!("{}+{disturbance}", devices[0]);
            found.push_str(&verdicts(&device, &cases::judge_case(&evidence)));
        }
    }
    let expected = folder().join(format!("{family}.txt"));
    if ["evidence", "verdicts"].contains(&asked.as_str()) {
        fs::write(&expected, &found).unwrap();
    }
    let expected = fs::read_to_string(&expected).unwrap();
    let different = differences(&expected, &found);
    assert!(
        expected == found,
        "{} lines of {family}.txt differ (- as it was, + as it is):\n{}",
        different.len(),
        different.join("\n")
    );
}

/// Names of the devices of which there is evidence for `case`.
fn devices(family: &str, case: &str) -> Vec<String> {
    let text = fs::read_to_string(folder().join(format!("{family}.txt"))).unwrap();
    let on = format!("{case} on ");
    let of_case = text.lines().filter_map(|line| line.strip_prefix(&on));
    of_case
        .flat_map(|line| line.split(": ").next().unwrap_or_default().split(", "))
        .map(str::to_owned)
        .collect()
}

/// Evidence of a whole case.
fn case(id: &str, repetitions: Vec<Repetition>) -> CaseEvidence {
    CaseEvidence::of(id, repetitions)
}

/// A disturbance of the tester, and what it does to the evidence of a repetition.
type Disturbance = (&'static str, fn(&mut Repetition));

/// The case after each disturbance of its repetitions, and with one that was not done.
fn disturbed(case: &CaseEvidence, disturbances: &[Disturbance]) -> Vec<OnDevice> {
    let with = |(name, disturb): &Disturbance| {
        let mut case = case.clone();
        case.repetitions.iter_mut().for_each(disturb);
        (name.to_string(), case)
    };
    let omitted = |not_applicable| Omitted {
        name: "one more".into(),
        reason: "it was left out".into(),
        not_applicable,
    };
    let without = |name: &str, not_applicable, error: Option<&str>| {
        let case = CaseEvidence {
            omitted: vec![omitted(not_applicable)],
            error: error.map(str::to_owned),
            ..case.clone()
        };
        (name.to_owned(), case)
    };
    let incomplete = [
        without("omitted", false, None),
        without("inapplicable", true, None),
        without("ended", false, Some("the link went away")),
    ];
    disturbances.iter().map(with).chain(incomplete).collect()
}

#[test]
fn pfc_evidence_is_judged_as_it_was() {
    judge("pfc", pfc::record, &pfc::DISTURBED, &pfc::DISTURBANCES);
}

#[test]
fn mad_evidence_is_judged_as_it_was() {
    judge("mad", mad::record, &mad::DISTURBED, &mad::DISTURBANCES);
}

#[test]
fn rc_evidence_is_judged_as_it_was() {
    judge("rc", rc::record, &rc::DISTURBED, &rc::DISTURBANCES);
}

#[test]
fn there_is_evidence_of_each_fault_in_each_case() {
    for case in cases::all() {
        let (family, _) = case.id.split_once('.').unwrap();
        let faults = match family {
            "pfc" => pfc::faults(case),
            "mad" => mad::faults(),
            "rc" => rc::faults(),
            other => panic!("no evidence of the family {other} was recorded"),
        };
        let devices = devices(family, case.id);
        for fault in iter::once("good").chain(faults) {
            assert!(
                devices
                    .iter()
                    .any(|device| device.split('=').next() == Some(fault)),
                "{} has no evidence of a device with the fault {fault}",
                case.id
            );
        }
    }
}
