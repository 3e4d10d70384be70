//! No deletion, duplication or swap in evidence improves a verdict.
//!
//! Evidence of the corpus on which some check failed or was inconclusive is changed node by node:
//! each field and each element is deleted, each element is doubled and swapped with the next one in
//! its array, and each field is swapped with the next one that has the same kind of value. Of an
//! array the first element, the one in the middle and the last are changed, and what is inside the
//! one in the middle. Of long evidence one change in [`STRIDE`] is made, each device's first being
//! another one. The digests are made anew after each change, so that the rules of [`whole`] are what
//! refuses the evidence.
//!
//! ```sh
//! # Every change of the evidence whose family, case and device contain this: minutes.
//! VALIDATOR_MUTATE=dips cargo test -p pfc-user --test verdicts mutations
//! # Every element of each array as well: hours.
//! VALIDATOR_MUTATE=dips VALIDATOR_MUTATE_ALL=1 cargo test -p pfc-user --test verdicts mutations
//! ```
//!
//! `snapshots/evidence_mutations.txt` says for each kind of node, which is its path without
//! indices, what became of each change: the rules that refused it; `stayed` where no verdict
//! changed; `worse` where one got worse.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::{env, thread};

use lzma_rust2::XzReader;
use serde_json::{Value, json};
use validator::case::{CaseResult, Verdict};
use validator::cases;
use validator::evidence::{SCHEMA, digest, whole};

use crate::snapshot;

/// Devices whose evidence is changed: the family, a case, and the fault.
const DEVICES: [(&str, &str, &str); 16] = [
    ("pfc", "pfc.pause-single-lossless", "ignores-pfc"),
    ("pfc", "pfc.pause-single-lossless", "forwards-control"),
    ("pfc", "pfc.pause-multi-lossless", "loses-held"),
    ("pfc", "pfc.pause-lossy", "dips"),
    ("pfc", "pfc.pause-lossy", "xoff-for-lossy"),
    ("pfc", "pfc.global-pause", "duplicates"),
    ("pfc", "pfc.global-pause", "throttles"),
    ("mad", "mad.c14-024-10-01", "lft-one-block=500"),
    ("mad", "mad.c14-016-get", "answers-wrong-key"),
    ("mad", "mad.c14-016-get", "keeps-key"),
    ("mad", "mad.c14-016-get", "twice"),
    ("mad", "mad.c14-016-get", "silent=port-info"),
    ("rc", "rc.c09-142-01", "one-retry-less"),
    ("rc", "rc.c09-142-01", "stays-in-rts"),
    ("rc", "rc.c09-142-01", "two-completions"),
    ("rc", "rc.c09-142-01", "no-neighbour"),
];

/// One change in so many is made of evidence that is longer than [`LONG`] octets.
const STRIDE: usize = 6;
const LONG: usize = 100_000;

/// A change of a node.
#[derive(Clone, Copy, Debug)]
enum Change {
    Delete,
    Double,
    /// With the next element of its array.
    SwapNext,
    /// With the next field of the same kind of value.
    SwapField,
}

impl Change {
    fn word(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Double => "double",
            Self::SwapNext | Self::SwapField => "swap",
        }
    }
}

/// A step on the way to a node.
#[derive(Clone, Debug)]
enum Step {
    Field(String),
    Element(usize),
}

/// The path without its indices.
fn kind(path: &[Step]) -> String {
    let mut kind = String::new();
    for step in path {
        match step {
            Step::Field(name) => write!(kind, ".{name}").unwrap(),
            Step::Element(_) => kind.push_str("[]"),
        }
    }
    kind.strip_prefix('.').unwrap_or(&kind).to_owned()
}

/// The elements of an array of that length which are changed.
fn sample(length: usize) -> BTreeSet<usize> {
    if env::var_os("VALIDATOR_MUTATE_ALL").is_some() {
        return (0..length).collect();
    }
    [0, length / 2, length.wrapping_sub(1)]
        .into_iter()
        .filter(|index| *index < length)
        .collect()
}

/// The elements of an array of that length inside which nodes are changed.
fn inside(length: usize) -> std::ops::Range<usize> {
    if env::var_os("VALIDATOR_MUTATE_ALL").is_some() {
        return 0..length;
    }
    length / 2..length.min(length / 2 + 1)
}

/// The kind of a value: numbers with numbers, lists with lists.
fn alike(one: &Value, other: &Value) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other) && one != other
}

/// All changes of `value` and of what is in it; `path` leads there.
fn changes(value: &Value, path: &mut Vec<Step>, all: &mut Vec<(Vec<Step>, Change)>) {
    let mut add = |path: &[Step], change| all.push((path.to_vec(), change));
    match value {
        Value::Object(fields) => {
            let names: Vec<&String> = fields.keys().collect();
            for (index, name) in names.iter().enumerate() {
                path.push(Step::Field(name.to_string()));
                add(path, Change::Delete);
                let next = names.get(index + 1);
                if next.is_some_and(|next| alike(&fields[*name], &fields[*next])) {
                    add(path, Change::SwapField);
                }
                path.pop();
            }
            for (name, value) in fields {
                path.push(Step::Field(name.clone()));
                changes(value, path, all);
                path.pop();
            }
        }
        Value::Array(items) => {
            for index in sample(items.len()) {
                path.push(Step::Element(index));
                add(path, Change::Delete);
                add(path, Change::Double);
                if items
                    .get(index + 1)
                    .is_some_and(|next| *next != items[index])
                {
                    add(path, Change::SwapNext);
                }
                path.pop();
            }
            for index in inside(items.len()) {
                path.push(Step::Element(index));
                changes(&items[index], path, all);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Changes the node at `path`.
fn apply(value: &mut Value, path: &[Step], change: Change) {
    let (last, way) = path.split_last().unwrap();
    let mut parent = value;
    for step in way {
        parent = match step {
            Step::Field(name) => &mut parent[name.as_str()],
            Step::Element(index) => &mut parent[*index],
        };
    }
    match (last, change, parent) {
        (Step::Field(name), Change::Delete, Value::Object(fields)) => drop(fields.remove(name)),
        (Step::Field(name), Change::SwapField, Value::Object(fields)) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            let at = names.iter().position(|other| other == name).unwrap();
            let one = fields[name].clone();
            let other = std::mem::replace(&mut fields[&names[at + 1]], one);
            fields[name] = other;
        }
        (Step::Element(index), Change::Delete, Value::Array(items)) => drop(items.remove(*index)),
        (Step::Element(index), Change::Double, Value::Array(items)) => {
            items.insert(*index, items[*index].clone());
        }
        (Step::Element(index), Change::SwapNext, Value::Array(items)) => {
            items.swap(*index, index + 1);
        }
        other => panic!("no such change: {other:?}"),
    }
}

/// Notes the digests of `evidence` in it, as its writer does.
fn seal(evidence: &mut Value) {
    let digests = serde_json::to_value(digest::of(evidence)).unwrap();
    evidence["digests"] = digests;
}

/// Verdicts by what they are on.
type Verdicts = BTreeMap<String, Verdict>;

fn verdicts(results: &[CaseResult]) -> Verdicts {
    let mut all = Verdicts::new();
    for result in results {
        all.insert("the case".into(), result.verdict);
        for check in &result.checks {
            all.insert(
                format!("{} [{}]", check.check, check.repetition),
                check.verdict,
            );
        }
        for assertion in &result.assertions {
            if let Some(verdict) = assertion.verdict {
                all.insert(assertion.id.clone(), verdict);
            }
        }
    }
    all
}

/// The better the higher. A check is skipped only where another one failed, and an error is no
/// verdict.
fn rank(verdict: Option<&Verdict>) -> u8 {
    match verdict {
        Some(Verdict::Fail | Verdict::Skipped | Verdict::Error) => 0,
        Some(Verdict::Inconclusive) => 1,
        Some(Verdict::Pass | Verdict::NotApplicable) | None => 2,
    }
}

/// The outcome of a change: the rule that refused it, or what became of the verdicts.
fn outcome(changed: Value, before: &Verdicts) -> Result<String, String> {
    let evidence = match whole::read(changed) {
        Ok(evidence) => evidence,
        Err(defect) => return Ok(defect.rule.to_string()),
    };
    let after = verdicts(&cases::judge(&evidence));
    for (what, verdict) in before {
        // A check that was skipped may be judged where what it depends on is not judged any more;
        // that one is then named.
        if *verdict != Verdict::Skipped && rank(after.get(what)) > rank(Some(verdict)) {
            return Err(format!(
                "{what} was {verdict}, and is now {:?}",
                after.get(what)
            ));
        }
    }
    Ok(if after == *before { "stayed" } else { "worse" }.into())
}

/// A run of one case on one device, as it is stored.
fn stored(family: &str, case: &str, device: &str) -> Value {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verdicts/corpus/evidence");
    let file = File::open(corpus.join(format!("{family}.jsonl.xz"))).unwrap();
    let lines = BufReader::new(XzReader::new(file, false)).lines();
    let case_key = format!("\"evidence\":{{\"case\":\"{case}\"");
    let mut lines = lines
        .map(Result::unwrap)
        .filter(|line| line.contains(&case_key));
    let is_it = |line: &Value| line["devices"].as_array().unwrap().contains(&json!(device));
    let recorded = lines.find_map(|line| {
        let line: Value = serde_json::from_str(&line).unwrap();
        is_it(&line).then_some(line)
    });
    let recorded = recorded.unwrap_or_else(|| panic!("no {case} on {device} in the corpus"));
    json!({
        "schema": SCHEMA,
        "version": "1.2.3",
        "started": 1_800_000_000,
        "seconds": 1.5,
        "host": {"kernel": "6.18.0", "machine": "x86_64", "cpus": 2, "clock": 1},
        "testbed": {"name": "sim", "dut": "sim", "toml": ""},
        "preflight": null,
        "planned": [case],
        "cases": [recorded["evidence"]],
        "interrupted": false,
    })
}

/// Outcomes by kind of node and change.
type Outcomes = BTreeMap<(String, &'static str), BTreeSet<String>>;

/// Changes the evidence of one device node by node; the outcomes, and the verdicts that improved.
fn mutate(number: usize, every: bool) -> (Outcomes, Vec<String>) {
    let (family, case, device) = DEVICES[number];
    let mut evidence = stored(family, case, device);
    let mut all = Vec::new();
    changes(&evidence, &mut Vec::new(), &mut all);
    seal(&mut evidence);
    let read = whole::read(evidence.clone());
    let read = read.unwrap_or_else(|defect| panic!("{case} on {device}: {defect}"));
    let before = verdicts(&cases::judge(&read));
    let decided = [Verdict::Fail, Verdict::Inconclusive];
    assert!(
        decided.contains(&before["the case"]),
        "{case} on {device} passes"
    );
    let (mut outcomes, mut improved) = (Outcomes::new(), Vec::new());
    let is_long = evidence.to_string().len() > LONG;
    let stride = if is_long && !every { STRIDE } else { 1 };
    for (path, change) in all.into_iter().skip(number % stride).step_by(stride) {
        let mut changed = evidence.clone();
        apply(&mut changed, &path, change);
        seal(&mut changed);
        let kind = format!("{family} {}", kind(&path));
        match outcome(changed, &before) {
            Ok(outcome) => drop(
                outcomes
                    .entry((kind, change.word()))
                    .or_default()
                    .insert(outcome),
            ),
            Err(how) => improved.push(format!("{case} on {device}: {change:?} {path:?}: {how}")),
        }
    }
    (outcomes, improved)
}

#[test]
fn no_change_of_a_node_improves_a_verdict() {
    let (mut outcomes, mut improved) = (Outcomes::new(), Vec::new());
    let only = env::var("VALIDATOR_MUTATE").unwrap_or_default();
    let is_chosen = |number: &usize| {
        let (family, case, device) = DEVICES[*number];
        format!("{family} {case} {device}").contains(&only)
    };
    let every = !only.is_empty();
    thread::scope(|scope| {
        let each = (0..DEVICES.len()).filter(is_chosen);
        let each = each.map(|number| scope.spawn(move || mutate(number, every)));
        for one in each.collect::<Vec<_>>() {
            let (some, better) = one.join().unwrap();
            improved.extend(better);
            for (node, found) in some {
                outcomes.entry(node).or_default().extend(found);
            }
        }
    });
    assert!(
        improved.is_empty(),
        "{} improved:\n{}",
        improved.len(),
        improved.join("\n")
    );
    if every {
        return;
    }
    let line = |((node, change), found): (&(String, &str), &BTreeSet<String>)| {
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        format!("{node} {change}: {}\n", found.join(", "))
    };
    let list: String = outcomes.iter().map(line).collect();
    snapshot::check("evidence_mutations.txt", &list);
}
