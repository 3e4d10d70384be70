//! Evidence from which something is missing, or in which it is there twice, is refused, and never
//! makes a case pass.
//!
//! Evidence of failures is changed node by node: of each kind of node, which is its path without
//! indices, the first field is left out, and the first, the middle and the last element of a list
//! are left out or doubled. With the digests as they were written each such change is refused.
//! Without them, as if the tester itself had lost it, the other rules of [`whole`] have to hold.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};
use validator_core::cases;
use validator_core::evidence::whole::{self, Rule, Stored};
use validator_core::evidence::{CaseEvidence, Host, Invocation, SCHEMA, Testbed, digest, numbers};
use validator_core::verdict::{CaseResult, Exit, Verdict};

use crate::verdicts::corpus;

/// Evidence in the corpus on which the case failed: family, case and device. `real` is what
/// `validator run` wrote of a simulated switch on veths.
const DEVICES: [[&str; 3]; 5] = [
    ["real", "pfc.pause-lossy", "xoff-for-lossy"],
    ["pfc", "pfc.pause-lossy", "dips"],
    ["mad", "mad.c14-016-get", "keeps-key"],
    ["mad", "mad.c14-016-get", "silent=port-info"],
    ["rc", "rc.c09-142-01", "one-retry-less"],
];

/// Lists in which each element was planned, or has a counterpart that another part of the tester
/// counted.
const COUNTED: [&str; 16] = [
    "planned[]",
    "cases[]",
    "cases[].planned[]",
    "cases[].repetitions[]",
    "cases[].repetitions[].accounting[]",
    "cases[].repetitions[].arrivals.records[]",
    "cases[].repetitions[].instruments.counters[]",
    "cases[].repetitions[].phases[]",
    "cases[].repetitions[].probes[].left[]",
    "cases[].repetitions[].received[]",
    "cases[].repetitions[].sender.flows[]",
    "cases[].repetitions[].storm.histogram[]",
    "cases[].repetitions[].ports.tx.counts.controls[]",
    "cases[].repetitions[].waits[]",
    "cases[].repetitions[].windows.offered[]",
    "cases[].repetitions[].windows.received[]",
];

/// Parts that are due, and `null` where they did not take place.
const DUE: [&str; 6] = [
    "cases[].repetitions[].storm",
    "cases[].repetitions[].dut",
    "cases[].repetitions[].control",
    "cases[].repetitions[].test",
    "cases[].repetitions[].flush",
    "cases[].repetitions[].test.after",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    LeaveOut,
    Double,
    Null,
}

/// A node by its JSON pointer, its kind, and its change.
type Mutation = (String, String, Change);

fn evidence([family, case, device]: [&str; 3]) -> Value {
    if family == "real" {
        let mut evidence = corpus::real_frames();
        numbers::from_portable(&mut evidence);
        return evidence;
    }
    let recorded: CaseEvidence = corpus::recorded(family, case, device);
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
        "planned": [case],
        "cases": [recorded],
        "interrupted": false,
    })
}

/// Adds the mutations of what is in `value`, to which `path` leads.
fn add(value: &Value, path: &str, kind: &str, seen: &mut HashSet<String>, all: &mut Vec<Mutation>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = format!("{path}/{name}");
                let kind = match kind {
                    "" => name.clone(),
                    kind => format!("{kind}.{name}"),
                };
                if seen.insert(kind.clone()) {
                    all.push((path.clone(), kind.clone(), Change::LeaveOut));
                    if DUE.contains(&kind.as_str()) && !field.is_null() {
                        all.push((path.clone(), kind.clone(), Change::Null));
                    }
                }
                add(field, &path, &kind, seen, all);
            }
        }
        Value::Array(items) => {
            let kind = format!("{kind}[]");
            let is_first = seen.insert(kind.clone());
            let mut sample = vec![0, items.len() / 2, items.len().saturating_sub(1)];
            sample.dedup();
            for (index, item) in items.iter().enumerate() {
                let path = format!("{path}/{index}");
                if is_first && sample.contains(&index) {
                    all.push((path.clone(), kind.clone(), Change::LeaveOut));
                    all.push((path.clone(), kind.clone(), Change::Double));
                }
                add(item, &path, &kind, seen, all);
            }
        }
        _ => {}
    }
}

fn apply(evidence: &Value, path: &str, change: Change) -> Value {
    let mut changed = evidence.clone();
    let (parent, last) = path.rsplit_once('/').unwrap();
    match (changed.pointer_mut(parent).unwrap(), change) {
        (Value::Object(fields), Change::LeaveOut) => drop(fields.remove(last)),
        (Value::Object(fields), Change::Null) => fields[last] = Value::Null,
        (Value::Array(items), Change::LeaveOut) => drop(items.remove(last.parse().unwrap())),
        (Value::Array(items), Change::Double) => {
            let index: usize = last.parse().unwrap();
            items.insert(index, items[index].clone());
        }
        (other, change) => panic!("{change:?} of {path} in {other:?}"),
    }
    changed
}

/// Describes what is wrong with the outcome of a mutation, if anything.
fn wrong(evidence: &Value, digests: &Value, (path, kind, change): &Mutation) -> Option<String> {
    let changed = apply(evidence, path, *change);
    // Some facts before a run are left out where they are not known.
    let is_field =
        *change == Change::LeaveOut && !kind.ends_with("[]") && !kind.starts_with("preflight.");
    let is_due = *change == Change::Null || COUNTED.contains(&kind.as_str());
    let evidence = match whole::without_digests(&changed) {
        Err(defect) if is_field && defect.rule != Rule::Fields => return Some(defect.to_string()),
        Err(_) => return None,
        Ok(_) if is_field || is_due => return Some("it is whole without digests".into()),
        Ok(evidence) => evidence,
    };
    let results = cases::judge(&evidence);
    let passes = |result: &CaseResult| result.verdict == Verdict::Pass;
    if results.iter().any(passes) || Exit::of(&results, false) == Exit::Passed {
        return Some("the case passes".into());
    }
    let mut sealed = changed;
    sealed["digests"] = digests.clone();
    let is_read = Stored::read(&sealed).is_ok_and(|stored| stored.whole().is_ok());
    is_read.then(|| "it is read with the digests of what was written".into())
}

#[test]
fn what_is_missing_or_there_twice_is_refused_and_never_makes_a_case_pass() {
    let mut found = Vec::new();
    for device in DEVICES {
        let evidence = evidence(device);
        let read = whole::without_digests(&evidence).unwrap_or_else(|defect| panic!("{defect}"));
        assert_eq!(cases::judge(&read)[0].verdict, Verdict::Fail, "{device:?}");
        let digests = serde_json::to_value(digest::of(&evidence)).unwrap();
        let mut all = Vec::new();
        add(&evidence, "", "", &mut HashSet::new(), &mut all);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut found = Vec::new();
            while let Some(mutation) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                let wrong = wrong(&evidence, &digests, mutation);
                found.extend(wrong.map(|how| format!("{device:?} {mutation:?}: {how}")));
            }
            found
        };
        let workers = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let of_each = threads.into_iter().map(|thread| thread.join().unwrap());
            found.extend(of_each.flatten());
        });
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
