//! Wholeness of evidence: nothing that was planned is missing, nothing is there twice, and what was
//! counted in two places is the same. Evidence that is not whole allows no verdict, or a verdict
//! could gain by what is missing.
//!
//! The digests find what became of the file. The other rules find what the tester lost or counted
//! twice. None is against somebody who edits evidence and makes its digests anew.

mod fields;
mod frames;
mod mad;
mod pfc;
mod rc;
mod stored;

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde_json::Value;

pub use self::stored::Stored;
use super::digest::Part;
use super::{CaseEvidence, Evidence, Omitted, Planned, Repetition};

/// The reason why evidence is not whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {found}")]
pub struct Defect {
    /// The rule that it breaks.
    pub rule: Rule,
    /// The part, such as `cases[0].repetitions[1].phases`.
    pub part: String,
    /// Description of what is missing, doubled or contradicts another part.
    pub found: String,
}

/// A rule of whole evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Each field is there, and has a value of its kind.
    Fields,
    /// Each part has the digest that was noted.
    Digests,
    /// Cases and repetitions done are those planned, and the rest are listed as left out.
    Plan,
    /// The phases are those of the plan, in order, and none is too short or has no end.
    Phases,
    /// Each counter was read that was to be read, and the simulated DUT reported.
    Instruments,
    /// Each flow has one count a phase, and all of them the frames of the port.
    Flows,
    /// Frames by window are as many as by flow, and none arrives before it was offered.
    Windows,
    /// Latencies by length are as many as frames.
    Latencies,
    /// The log of arrivals has each of them.
    Arrivals,
    /// The frames of a port are as many as those of all kinds.
    Ports,
    /// The log of PAUSE and PFC frames has each of them.
    Control,
    /// Gaps of the storm are as many as its frames.
    Storm,
    /// The probes are those of the plan.
    Probes,
    /// The last frames of each phase were waited for.
    Waits,
    /// The requests of a MAD case are there without a gap, each once.
    Requests,
    /// Times and counts are such as can be measured, and packets are what they are said to be: the
    /// rule of [`cases::consistent`](crate::cases::consistent).
    Consistency,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{self:?}").to_lowercase())
    }
}

type Checked = Result<(), Defect>;

/// A part of evidence, and the rule that it is checked by.
struct Place(Rule, String);

impl Place {
    /// Fails with `found` unless `holds`.
    fn ensure(&self, holds: bool, found: impl FnOnce() -> String) -> Checked {
        match holds {
            true => Ok(()),
            false => self.fail(found()),
        }
    }

    fn fail(&self, found: String) -> Checked {
        Err(self.0.broken_at(&self.1, found))
    }
}

impl Rule {
    fn at(self, part: impl Into<String>) -> Place {
        Place(self, part.into())
    }

    fn broken_at(self, part: &str, found: impl Into<String>) -> Defect {
        Defect {
            rule: self,
            part: part.into(),
            found: found.into(),
        }
    }
}

/// Reads evidence as it is stored, but for its digests, and checks all but these.
pub fn without_digests(stored: &Value) -> Result<Evidence, Defect> {
    let stored = Stored::read(stored)
        .map_err(|error| Rule::Fields.broken_at("evidence", error.to_string()))?;
    stored.whole_but_for_digests()
}

/// Each part that was found has the digest that was noted for it, and no other was noted.
fn check_digests(noted: &[Part], found: &[Part]) -> Checked {
    let broken = |part: &str, found: &str| Err(Rule::Digests.broken_at(part, found));
    let mut left = HashMap::new();
    for Part { part, sha256 } in noted {
        if left.insert(part.as_str(), sha256).is_some() {
            return broken(part, "has several digests");
        }
    }
    for Part { part, sha256 } in found {
        match left.remove(part.as_str()) {
            None => return broken(part, "has no digest"),
            Some(noted) if noted != sha256 => {
                return broken(part, &format!("has the digest {sha256}, expected {noted}"));
            }
            Some(_) => {}
        }
    }
    let mut noted = noted.iter().map(|noted| noted.part.as_str());
    match noted.find(|part| left.contains_key(part)) {
        Some(part) => broken(part, "is missing, but has a digest"),
        None => Ok(()),
    }
}

/// Checks all but the digests.
pub fn check(evidence: &Evidence) -> Checked {
    let cases = &evidence.cases;
    let done: Vec<&str> = cases.iter().map(|case| case.case.as_str()).collect();
    let whole = evidence.planned == done;
    Rule::Plan.at("cases").ensure(whole, || {
        let (planned, done) = (evidence.planned.join(", "), done.join(", "));
        format!("planned were {planned}; found {done}")
    })?;
    for (index, case) in cases.iter().enumerate() {
        let at = format!("cases[{index}]");
        let ended = case.repetitions.iter().find(|done| done.is_interrupted());
        if let (Some(ended), false) = (ended, evidence.interrupted) {
            let found = format!("`{}` was interrupted, and the run was not", ended.name());
            return Err(Rule::Plan.broken_at(&at, found));
        }
        check_case(case, &at)?;
    }
    Ok(())
}

/// Checks one case; `at` is its path in the evidence.
pub fn check_case(case: &CaseEvidence, at: &str) -> Checked {
    accounted_for(case, at)?;
    for (index, repetition) in case.repetitions.iter().enumerate() {
        let at = format!(
            "{at}.repetitions[{index}] ({}, {})",
            case.case,
            repetition.name()
        );
        match repetition {
            Repetition::Pfc(evidence) => pfc::check(evidence, &at)?,
            Repetition::Mad(evidence) => mad::check(evidence, &at)?,
            Repetition::Rc(evidence) => rc::check(evidence, &at)?,
        }
    }
    Ok(())
}

/// Each planned repetition was done as planned, in the plan's order, or is listed as left out.
fn accounted_for(case: &CaseEvidence, at: &str) -> Checked {
    let at = Rule::Plan.at(at);
    let mut done = case.repetitions.iter().peekable();
    let mut omitted: HashMap<&str, Vec<&Omitted>> = HashMap::new();
    for left_out in &case.omitted {
        omitted.entry(&left_out.name).or_default().push(left_out);
    }
    let mut names = HashSet::new();
    for planned in &case.planned {
        let name = planned.name();
        at.ensure(names.insert(name), || format!("`{name}` is planned twice"))?;
        let mut attempts = Vec::new();
        while let Some(attempt) = done.next_if(|done| done.name() == name) {
            attempts.push(attempt);
        }
        let left_out = omitted.get(name).map_or(&[][..], Vec::as_slice);
        let numbered = |(number, done): (u32, &&Repetition)| {
            done.attempt() == number && done.planned() == *planned
        };
        let whole = match (planned, attempts.as_slice(), left_out) {
            (Planned::Omitted { omitted }, [], [left_out]) => *left_out == omitted,
            (_, [_, ..], []) => (1..).zip(&attempts).all(numbered),
            (_, [], [left_out]) => !left_out.not_applicable,
            _ => false,
        };
        at.ensure(whole, || match (attempts.as_slice(), left_out.len()) {
            ([], 0) => format!("`{name}` was planned, and is missing or out of order"),
            ([_], 0) => format!("`{name}` was not done as it was planned"),
            ([_, ..], 0) => format!("the attempts at `{name}` are not numbered from 1"),
            _ => format!("`{name}` is there several times, or was left out against the plan"),
        })?;
    }
    if let Some(name) = outside_fixed_set(case) {
        let found = format!("`{name}` is planned, and does not fit the DUT's fixed set");
        return at.fail(found);
    }
    let listed = case.repetitions.len() as u64;
    at.ensure(listed == case.attempts, || {
        format!("{listed} attempts are there, {} were made", case.attempts)
    })?;
    if let Some(rest) = done.next() {
        let name = rest.name();
        let found = format!("`{name}` is there twice, out of order, or was not planned");
        return at.fail(found);
    }
    let mut left_out = case.omitted.iter().map(|left_out| left_out.name.as_str());
    match left_out.find(|name| !names.contains(name)) {
        Some(name) => at.fail(format!("`{name}` was left out, and was not planned")),
        None => Ok(()),
    }
}

/// Returns the first planned repetition that needs another lossless set than the DUT's fixed one,
/// or that is said to be not done; `None` where there is none, or the set is not fixed.
fn outside_fixed_set(case: &CaseEvidence) -> Option<&str> {
    let set = case.fixed_set.as_ref()?;
    let fits = |planned: &&Planned| match planned {
        Planned::Pfc { plan, .. } => plan.lossless == set.lossless,
        Planned::Omitted { .. } => true,
        Planned::Mad { .. } | Planned::Rc { .. } => false,
    };
    let mut planned = case.planned.iter();
    let stranger = planned
        .find(|planned| !fits(planned) || set.not_done.iter().any(|name| name == planned.name()));
    stranger.map(Planned::name)
}
