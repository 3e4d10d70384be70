//! Faults that drawings show: what a check failed on, an answer that is late or did not come, and
//! a packet that is missing. Verdicts are the judges'; this only points at the place.

use std::collections::BTreeMap;

use ib_mad::smp::Smp;
use pfc_ebpf::units::{Nanos, Priority};

use crate::evidence::mad::{Exchange, MadEvidence, Purpose, Stray};
use crate::verdict::{CaseResult, CheckResult, Subject, Verdict};

/// Checks that failed on a packet or a completion.
pub struct Failed<'a>(BTreeMap<Subject, Vec<&'a str>>);

impl<'a> Failed<'a> {
    /// Failures of all repetitions.
    pub fn in_any(result: &'a CaseResult) -> Self {
        Self::of(result.checks.iter())
    }

    /// Failures of a repetition.
    pub fn in_repetition(result: &'a CaseResult, name: &str) -> Self {
        let checks = result.checks.iter();
        Self::of(checks.filter(|check| check.repetition == name))
    }

    /// Failures of an attempt at a repetition.
    pub fn in_attempt(result: &'a CaseResult, name: &str, attempt: u32) -> Self {
        let mut attempts = result.attempts.iter();
        match attempts.find(|made| (made.repetition.as_str(), made.attempt) == (name, attempt)) {
            Some(made) => Self::of(made.checks.iter()),
            None => Self::in_repetition(result, name),
        }
    }

    fn of(checks: impl Iterator<Item = &'a CheckResult>) -> Self {
        let mut failed: BTreeMap<Subject, Vec<&str>> = BTreeMap::new();
        for check in checks.filter(|check| check.verdict == Verdict::Fail) {
            let made = check.assertions.iter();
            let made = made.filter(|made| made.verdict == Verdict::Fail);
            for subject in made.flat_map(|made| &made.about) {
                let of = failed.entry(*subject).or_default();
                if of.last() != Some(&check.check.as_str()) {
                    of.push(&check.check);
                }
            }
        }
        Self(failed)
    }

    /// Checks that failed on `subject`.
    pub fn on(&self, subject: Subject) -> &[&'a str] {
        self.0.get(&subject).map(Vec::as_slice).unwrap_or_default()
    }

    /// Times of the test frames of a priority on which one failed.
    pub fn frames(&self, priority: Priority) -> Vec<Nanos> {
        let of_priority = |subject: &Subject| match subject {
            Subject::Frame(of, time) if *of == priority => Some(*time),
            _ => None,
        };
        self.0.keys().filter_map(of_priority).collect()
    }
}

/// True if the DUT has to answer that request.
pub fn has_answer(e: &MadEvidence, exchange: &Exchange) -> bool {
    // Protect bits 2 and 3 hide everything from a wrong key (14.2.4.1).
    let is_hidden = e.plan.stimulus.protect_bits() >= Some(2);
    !(is_hidden && exchange.purpose == Purpose::OtherKey)
}

/// True if the exchange has an answer, in its time, where it has to have one.
pub fn is_answered(e: &MadEvidence, exchange: &Exchange) -> bool {
    match &exchange.answer {
        None => !has_answer(e, exchange),
        Some(answer) => has_answer(e, exchange) && answer.at <= exchange.deadline,
    }
}

/// True for an answer to a request that was not made. A trap asks for nothing.
pub fn is_wrong(stray: &Stray) -> bool {
    let smp = Smp::parse(&stray.packet.octets.0);
    !stray.of_earlier && smp.map_or(true, |smp| smp.method().is_response())
}
