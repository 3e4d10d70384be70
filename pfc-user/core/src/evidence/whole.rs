//! Wholeness of evidence: nothing that was planned is missing, nothing is there twice, and what was
//! counted in two places is the same. Evidence that is not whole allows no verdict, or a verdict
//! could gain by what is missing.
//!
//! The digests find what became of the file. The other rules find what the tester lost or counted
//! twice. None is against somebody who edits evidence and makes its digests anew.

mod fields;
mod frames;
mod pfc;
mod rc;

use std::fmt;

use serde::Deserialize as _;
use serde_json::Value;

use super::digest::{self, Part};
use super::numbers;
use super::{CaseEvidence, Evidence, Planned, Repetition};

/// The reason why evidence is not whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {found}")]
pub struct Defect {
    /// The rule that it breaks.
    pub rule: Rule,
    /// The part, such as `cases[0].repetitions[1].phases`.
    pub part: String,
    /// What is missing, doubled or contradicts another part.
    pub found: String,
}

/// A rule of whole evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Each field is there, and has a value of its kind.
    Fields,
    /// Each part has the digest that was noted.
    Digests,
    /// What was done is what was planned, and the rest is listed as left out.
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

/// Reads evidence as it is stored: with digests, and [portable numbers](numbers).
pub fn read(mut stored: Value) -> Result<Evidence, Defect> {
    let sealed = take_digests(&mut stored);
    numbers::from_portable(&mut stored);
    let evidence = parse(&stored)?;
    sealed?;
    examine(&stored, &evidence)?;
    Ok(evidence)
}

/// Reads evidence without digests and with numbers as they are, and checks all but the digests.
pub fn without_digests(stored: &Value) -> Result<Evidence, Defect> {
    let evidence = parse(stored)?;
    examine(stored, &evidence)?;
    Ok(evidence)
}

fn parse(stored: &Value) -> Result<Evidence, Defect> {
    Evidence::deserialize(stored).map_err(|error| malformed("evidence", error))
}

fn examine(stored: &Value, evidence: &Evidence) -> Checked {
    fields::check(stored, evidence)?;
    check(evidence)
}

/// Takes the digests away, and checks them.
fn take_digests(stored: &mut Value) -> Checked {
    let digests = stored
        .as_object_mut()
        .and_then(|fields| fields.remove(digest::KEY));
    let digests: Vec<Part> = serde_json::from_value(digests.unwrap_or_default())
        .map_err(|error| malformed(digest::KEY, error))?;
    check_digests(&digests, &digest::of(stored))
}

fn malformed(part: &str, error: serde_json::Error) -> Defect {
    Defect {
        rule: Rule::Fields,
        part: part.into(),
        found: error.to_string(),
    }
}

fn check_digests(noted: &[Part], found: &[Part]) -> Checked {
    for part in found {
        let of_part: Vec<&Part> = noted
            .iter()
            .filter(|other| other.part == part.part)
            .collect();
        ensure(
            of_part == [part],
            Rule::Digests,
            &part.part,
            || match of_part.as_slice() {
                [] => "has no digest".into(),
                [other] => format!("has the digest {}, expected {}", part.sha256, other.sha256),
                _ => "has several digests".into(),
            },
        )?;
    }
    for Part { part, .. } in noted {
        let there = found.iter().any(|other| other.part == *part);
        ensure(there, Rule::Digests, part, || {
            "is missing, but has a digest".into()
        })?;
    }
    Ok(())
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
            // Its judge knows which steps are missing.
            Repetition::Mad(_) => {}
            Repetition::Rc(evidence) => rc::check(evidence, &at)?,
        }
    }
    Ok(())
}

/// Each planned repetition was done as planned, in the plan's order, or is listed as left out.
fn accounted_for(case: &CaseEvidence, at: &str) -> Checked {
    let mut done = case.repetitions.iter().peekable();
    for (index, planned) in case.planned.iter().enumerate() {
        let name = planned.name();
        let twice = case.planned[..index]
            .iter()
            .any(|other| other.name() == name);
        ensure(!twice, Rule::Plan, at, || {
            format!("`{name}` is planned twice")
        })?;
        let mut attempts = Vec::new();
        while let Some(attempt) = done.next_if(|done| done.name() == name) {
            attempts.push(attempt);
        }
        let left_out: Vec<_> = case
            .omitted
            .iter()
            .filter(|left| left.name == name)
            .collect();
        let numbered = |(number, done): (u32, &&Repetition)| {
            done.attempt() == number && done.planned() == *planned
        };
        let whole = match (planned, attempts.as_slice(), left_out.as_slice()) {
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
    let unplanned = |name: &str| case.planned.iter().all(|planned| planned.name() != name);
    let stray = case
        .omitted
        .iter()
        .find(|left_out| unplanned(&left_out.name));
    ensure(stray.is_none(), Rule::Plan, at, || {
        let name = stray.map_or("", |left_out| &left_out.name);
        format!("`{name}` was left out, and was not planned")
    })
}

/// Where the DUT's lossless set is fixed, every repetition is one of this set, and what is said to be
/// not done was not planned.
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
