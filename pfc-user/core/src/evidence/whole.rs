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

/// Fails with `found` in `part` unless `holds`.
fn ensure(holds: bool, rule: Rule, part: &str, found: impl FnOnce() -> String) -> Checked {
    if holds {
        return Ok(());
    }
    Err(Defect {
        rule,
        part: part.into(),
        found: found(),
    })
}

/// Reads evidence as it is stored, but for its digests, and checks all but these.
pub fn without_digests(stored: &Value) -> Result<Evidence, Defect> {
    let stored = Stored::read(stored).map_err(|error| Defect {
        rule: Rule::Fields,
        part: "evidence".into(),
        found: error.to_string(),
    })?;
    stored.whole_but_for_digests()
}

/// Each part that was found has the digest that was noted for it, and no other was noted.
fn check_digests(noted: &[Part], found: &[Part]) -> Checked {
    let mut left = HashMap::new();
    for Part { part, sha256 } in noted {
        let before = left.insert(part.as_str(), sha256);
        ensure(before.is_none(), Rule::Digests, part, || {
            "has several digests".into()
        })?;
    }
    for Part { part, sha256 } in found {
        let noted = left.remove(part.as_str());
        ensure(noted == Some(sha256), Rule::Digests, part, || match noted {
            None => "has no digest".into(),
            Some(noted) => format!("has the digest {sha256}, expected {noted}"),
        })?;
    }
    let missing = noted
        .iter()
        .find(|noted| left.contains_key(noted.part.as_str()));
    missing.map_or(Ok(()), |Part { part, .. }| {
        ensure(false, Rule::Digests, part, || {
            "is missing, but has a digest".into()
        })
    })
}

/// Checks all but the digests.
pub fn check(evidence: &Evidence) -> Checked {
    let done: Vec<&str> = evidence
        .cases
        .iter()
        .map(|case| case.case.as_str())
        .collect();
    ensure(evidence.planned == done, Rule::Plan, "cases", || {
        let (planned, done) = (evidence.planned.join(", "), done.join(", "));
        format!("planned were {planned}; found {done}")
    })?;
    for (index, case) in evidence.cases.iter().enumerate() {
        let at = format!("cases[{index}]");
        let ended = case.repetitions.iter().find(|done| done.is_interrupted());
        ensure(
            evidence.interrupted || ended.is_none(),
            Rule::Plan,
            &at,
            || {
                let name = ended.map_or("", Repetition::name);
                format!("`{name}` was interrupted, and the run was not")
            },
        )?;
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
    let mut done = case.repetitions.iter().peekable();
    let mut omitted: HashMap<&str, Vec<&Omitted>> = HashMap::new();
    for left_out in &case.omitted {
        omitted.entry(&left_out.name).or_default().push(left_out);
    }
    let mut names = HashSet::new();
    for planned in &case.planned {
        let name = planned.name();
        ensure(names.insert(name), Rule::Plan, at, || {
            format!("`{name}` is planned twice")
        })?;
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
        ensure(whole, Rule::Plan, at, || {
            match (attempts.as_slice(), left_out.len()) {
                ([], 0) => format!("`{name}` was planned, and is missing or out of order"),
                ([_], 0) => format!("`{name}` was not done as it was planned"),
                ([_, ..], 0) => format!("the attempts at `{name}` are not numbered from 1"),
                _ => format!("`{name}` is there several times, or was left out against the plan"),
            }
        })?;
    }
    follows_fixed_set(case, at)?;
    let listed = case.repetitions.len() as u64;
    ensure(listed == case.attempts, Rule::Plan, at, || {
        format!("{listed} attempts are there, {} were made", case.attempts)
    })?;
    let rest = done.next();
    ensure(rest.is_none(), Rule::Plan, at, || {
        let name = rest.map_or("", Repetition::name);
        format!("`{name}` is there twice, out of order, or was not planned")
    })?;
    let is_planned = |left_out: &&Omitted| names.contains(left_out.name.as_str());
    let stray = case.omitted.iter().find(|left_out| !is_planned(left_out));
    ensure(stray.is_none(), Rule::Plan, at, || {
        let name = stray.map_or("", |left_out| &left_out.name);
        format!("`{name}` was left out, and was not planned")
    })
}

/// Where the DUT's lossless set is fixed, every repetition is one of this set, and what is said to
/// be not done was not planned.
fn follows_fixed_set(case: &CaseEvidence, at: &str) -> Checked {
    let Some(set) = &case.fixed_set else {
        return Ok(());
    };
    let fits = |planned: &&Planned| match planned {
        Planned::Pfc { plan, .. } => plan.lossless == set.lossless,
        Planned::Omitted { .. } => true,
        Planned::Mad { .. } | Planned::Rc { .. } => false,
    };
    let stranger = case
        .planned
        .iter()
        .find(|planned| !fits(planned) || set.not_done.iter().any(|name| name == planned.name()));
    ensure(stranger.is_none(), Rule::Plan, at, || {
        let name = stranger.map_or("", |planned| planned.name());
        format!("`{name}` is planned, and does not fit the DUT's fixed set")
    })
}
