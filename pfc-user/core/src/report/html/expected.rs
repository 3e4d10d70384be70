//! Faults that a ladder shows in red: what a check failed on, an answer that is late or did not
//! come, and a packet that is missing. Verdicts are the judges'; this only points at the place.

use std::collections::BTreeMap;

use ib_mad::smp::Smp;

use crate::case::{CaseResult, Subject, Verdict};
use crate::evidence::mad::{Exchange, MadEvidence, Purpose, Stray};
use crate::evidence::rc::Completion;
use crate::plan::mad::MadStimulus;

/// Checks that failed on a packet or a completion.
pub struct Failed<'a>(BTreeMap<Subject, Vec<&'a str>>);

impl<'a> Failed<'a> {
    /// Those of a repetition; of all repetitions where `repetition` is `None`.
    pub fn of(result: &'a CaseResult, repetition: Option<&str>) -> Self {
        let mut failed: BTreeMap<Subject, Vec<&str>> = BTreeMap::new();
        let checks = result.checks.iter().filter(|check| {
            let is_of = repetition.is_none_or(|repetition| check.repetition == repetition);
            is_of && check.verdict == Verdict::Fail
        });
        for check in checks {
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

    /// Those that failed on `subject`.
    pub fn on(&self, subject: Subject) -> &[&'a str] {
        self.0.get(&subject).map(Vec::as_slice).unwrap_or_default()
    }
}

/// True if the DUT has to answer that request.
pub fn has_answer(e: &MadEvidence, exchange: &Exchange) -> bool {
    // Protect bits 2 and 3 hide everything from a wrong key (14.2.4.1).
    let is_hidden = matches!(e.plan.stimulus, MadStimulus::MKeyGet(2..));
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

/// Status of the completion that ends a phase of an RC case.
pub const RC_STATUS: [(&str, u32); 3] = [("positive control", 0), ("test", 12), ("flush", 5)];

/// True if a completion of that phase has the status that it should have.
pub fn is_status(phase: &str, completion: &Completion) -> bool {
    let known = RC_STATUS.iter().find(|(known, _)| *known == phase);
    known.is_none_or(|(_, status)| completion.status == *status)
}
