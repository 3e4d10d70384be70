//! Faults that a ladder shows in red: an answer that is wrong at sight, one that did not come, and
//! a packet that is missing. Verdicts are the judges'; this only points at the place.

use ib_mad::mad::Status;
use ib_mad::smp::Smp;

use crate::cases::mad::FORWARDING_TABLE_STATUS;
use crate::evidence::mad::{Exchange, MadEvidence, Purpose, Stray};
use crate::evidence::rc::Completion;
use crate::plan::mad::MadStimulus;

/// True if the DUT has to answer that request.
pub fn has_answer(e: &MadEvidence, exchange: &Exchange) -> bool {
    // Protect bits 2 and 3 hide everything from a wrong key (14.2.4.1).
    let is_hidden = matches!(e.plan.stimulus, MadStimulus::MKeyGet(2..));
    !(is_hidden && exchange.purpose == Purpose::OtherKey)
}

/// True if the exchange went as it should, as far as its packets show.
pub fn is_right(e: &MadEvidence, exchange: &Exchange) -> bool {
    let Some(answer) = &exchange.answer else {
        return !has_answer(e, exchange);
    };
    let Ok(smp) = Smp::parse(&answer.octets.0) else {
        return false;
    };
    let status = smp.status();
    let has_status = match exchange.purpose {
        _ if status.is_busy() => true,
        Purpose::SetBlock | Purpose::GetBlock => status.code() == FORWARDING_TABLE_STATUS,
        Purpose::OwnKey | Purpose::OtherKey | Purpose::DutKey => status == Status::OK,
        _ => true,
    };
    has_answer(e, exchange) && has_status && answer.at <= exchange.deadline
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
