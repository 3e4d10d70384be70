//! No deletion, duplication or swap in evidence improves a verdict.
//!
//! Evidence on which some check failed or was inconclusive is changed node by node: each field and
//! each element is deleted, each element is doubled and swapped with the next one in its array, and
//! each field is swapped with the next one where that has the same kind of value. The first change
//! of each kind is always made, so that the list below is complete; of the others those of the
//! first element of an array, of the one in the middle and of the last, and of what is inside the
//! one in the middle; and of long evidence one in [`STRIDE`] of those, each device's first being
//! another one. The digests are left out, as if they were made anew after each change, so that the
//! other rules of [`whole`] are what refuses the evidence.
//!
//! ```sh
//! # Every change of the evidence whose family, case and device contain this: minutes.
//! VALIDATOR_MUTATE=dips cargo test -p pfc-user --test verdicts mutations
//! # Every element of each array as well: long.
//! VALIDATOR_MUTATE=dips VALIDATOR_MUTATE_ALL=1 cargo test -p pfc-user --test verdicts mutations
//! ```
//!
//! `snapshots/evidence_mutations.txt` says for each kind of node, which is its path without
//! indices, what became of each change: the rules that refused it; `stayed` where no verdict
//! changed; `worse` where one got worse.

mod change;
mod devices;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

use change::{Change, Extent, Step, apply, changes, kind};
use devices::{DEVICES, DIP_AT_THE_END, Device, WHOLE};
use serde_json::Value;
use validator::case::{CaseResult, Exit, Verdict};
use validator::cases;
use validator::evidence::{digest, whole};

use crate::common;
use crate::snapshot;

/// One change in so many is made of evidence that is longer than [`LONG`] octets.
const STRIDE: usize = 12;
const LONG: usize = 100_000;

/// Verdicts by what they are on, and the exit code.
struct Verdicts {
    of: BTreeMap<String, Verdict>,
    exit: Exit,
}

fn verdicts(results: &[CaseResult]) -> Verdicts {
    let mut of = BTreeMap::new();
    for result in results {
        of.insert("the case".into(), result.verdict);
        for check in &result.checks {
            let name = format!("{} [{}]", check.check, check.repetition);
            of.insert(name, check.verdict);
        }
        for assertion in &result.assertions {
            if let Some(verdict) = assertion.verdict {
                of.insert(assertion.id.clone(), verdict);
            }
        }
    }
    let exit = Exit::of(results, false);
    Verdicts { of, exit }
}

/// The better the higher. A check is skipped only where another one failed. An error is better than
/// a failure: it changes the exit code from 1 to 3.
fn rank(verdict: Option<&Verdict>) -> u8 {
    match verdict {
        Some(Verdict::Fail | Verdict::Skipped) => 0,
        Some(Verdict::Inconclusive | Verdict::Error) => 1,
        Some(Verdict::Pass | Verdict::NotApplicable) | None => 2,
    }
}

/// The same for the exit code.
fn rank_of_exit(exit: Exit) -> u8 {
    match exit {
        Exit::Failed => 0,
        Exit::Undecided => 1,
        Exit::Passed | Exit::Usage | Exit::Interrupted => 2,
    }
}

/// The outcome of a change: the rule that refused it, or what became of the verdicts.
fn outcome(changed: &Value, before: &Verdicts) -> Result<String, String> {
    let read = whole::without_digests(changed).and_then(|evidence| {
        cases::consistent(&evidence)?;
        Ok(evidence)
    });
    let evidence = match read {
        Ok(evidence) => evidence,
        Err(defect) => return Ok(defect.rule.to_string()),
    };
    let after = verdicts(&cases::judge(&evidence));
    for (what, verdict) in &before.of {
        let now = after.of.get(what);
        // A check that was skipped may be judged where what it depends on is not judged any more;
        // that one is then named.
        if *verdict != Verdict::Skipped && rank(now) > rank(Some(verdict)) {
            return Err(format!("{what} was {verdict}, and is now {now:?}"));
        }
    }
    if rank_of_exit(after.exit) > rank_of_exit(before.exit) {
        let (before, after) = (before.exit, after.exit);
        return Err(format!(
            "the exit code was {before:?}, and is now {after:?}"
        ));
    }
    let stayed = after.of == before.of;
    Ok(if stayed { "stayed" } else { "worse" }.into())
}

/// Outcomes by kind of node and change.
type Outcomes = BTreeMap<(String, &'static str), BTreeSet<String>>;

/// Changes that were made, and what became of them.
#[derive(Default)]
struct Made {
    outcomes: Outcomes,
    /// Verdicts that improved.
    improved: Vec<String>,
}

impl Made {
    fn note(&mut self, device: &Device, path: &[Step], change: &Change, found: Outcome) {
        let Device {
            family, case, name, ..
        } = device;
        match found {
            Ok(outcome) => {
                let node = (format!("{family} {}", kind(path)), change.word());
                self.outcomes.entry(node).or_default().insert(outcome);
            }
            Err(how) => self
                .improved
                .push(format!("{case} on {name}: {change:?} {path:?}: {how}")),
        }
    }
}

type Outcome = Result<String, String>;

/// A path to a node, and its change.
type Planned = (Vec<Step>, Change);

/// Makes the changes of the evidence of a device that `planned` says, on all CPUs.
fn mutate(device: &Device, planned: impl Fn(&Value) -> Vec<Planned>, made: &Mutex<Made>) {
    let (case, name) = (device.case, device.name);
    let evidence = device.evidence();
    let mut sealed = evidence.clone();
    sealed["digests"] = serde_json::to_value(digest::of(&evidence)).unwrap();
    let read = whole::read(sealed);
    let read = read.unwrap_or_else(|defect| panic!("{case} on {name}: {defect}"));
    let before = verdicts(&cases::judge(&read));
    let decided = [Verdict::Fail, Verdict::Inconclusive];
    let verdict = before.of["the case"];
    assert!(decided.contains(&verdict), "{case} on {name}: {verdict}");
    let all = planned(&evidence);
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((path, change)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut changed = evidence.clone();
            apply(&mut changed, path, change);
            let found = outcome(&changed, &before);
            made.lock().unwrap().note(device, path, change, found);
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
}

/// Fails with the verdicts that improved; else the outcomes.
fn none_improved(made: Mutex<Made>) -> Outcomes {
    let Made { outcomes, improved } = made.into_inner().unwrap();
    let (many, which) = (improved.len(), improved.join("\n"));
    assert!(improved.is_empty(), "{many} improved:\n{which}");
    outcomes
}

#[test]
fn no_change_of_a_node_improves_a_verdict() {
    let made = Mutex::default();
    let only = env::var("VALIDATOR_MUTATE").unwrap_or_default();
    let every = !only.is_empty();
    for (number, device) in DEVICES.iter().enumerate() {
        let Device {
            family, case, name, ..
        } = device;
        if !format!("{family} {case} {name}").contains(&only) {
            continue;
        }
        let planned = |evidence: &Value| {
            let is_long = evidence.to_string().len() > LONG;
            let extent = match env::var_os("VALIDATOR_MUTATE_ALL") {
                Some(_) => Extent::Every,
                None => Extent::Sample {
                    stride: if is_long && !every { STRIDE } else { 1 },
                    offset: number,
                },
            };
            changes(evidence, extent)
        };
        mutate(device, planned, &made);
    }
    let outcomes = none_improved(made);
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

#[test]
fn windows_that_change_places_are_refused() {
    let device = DEVICES.iter().find(|device| device.name == DIP_AT_THE_END);
    let is_swap = |(path, change): &Planned| {
        matches!(change, Change::SwapNext)
            && [".windows.offered[]", ".windows.received[]"]
                .iter()
                .any(|list| kind(path).ends_with(list))
    };
    let swaps = |evidence: &Value| {
        let all = changes(evidence, Extent::Every).into_iter();
        all.filter(is_swap).collect()
    };
    let made = Mutex::default();
    mutate(device.unwrap(), swaps, &made);
    let outcomes = none_improved(made);
    assert_eq!(outcomes.len(), 2, "{outcomes:?}");
    for found in outcomes.values() {
        assert_eq!(
            *found,
            BTreeSet::from(["windows".to_owned()]),
            "{outcomes:?}"
        );
    }
}

#[test]
fn no_change_of_any_node_improves_a_verdict() {
    if !common::need_full("no_change_of_any_node_improves_a_verdict") {
        return;
    }
    let made = Mutex::default();
    for (case, name) in WHOLE {
        let is_it = |device: &&Device| (device.case, device.name) == (case, name);
        let device = DEVICES.iter().find(is_it).unwrap();
        mutate(device, |evidence| changes(evidence, Extent::Every), &made);
    }
    none_improved(made);
}
