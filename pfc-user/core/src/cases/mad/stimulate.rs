//! A repetition by a transport: requests one at a time, and the evidence that they make.

use ib_mad::mad::MKey;

use super::MadCase;
use super::equipment::Equipment;
use super::session::{Session, Stop};
use crate::cases::mad::timing::MOST_WAIT;
use crate::evidence::mad::MadEvidence;
use crate::m_key::unlock::Unlock;
use crate::plan::mad::MadPlan;
use crate::verdict::Event;

/// Runs one repetition of `case`. The evidence says if it was interrupted, and if something but the
/// DUT failed. Whatever happens, the DUT's M_Key is restored as far as possible.
pub fn run(equipment: &mut Equipment<'_>, case: &MadCase, plan: &MadPlan) -> MadEvidence {
    put_back(equipment, MKey(plan.m_key_dut));
    let mut session = Session::new(equipment, plan);
    let done = (case.stimulate)(&mut session);
    match done.and_then(|()| session.listen_for_more()) {
        Ok(()) => {}
        Err(Stop::Interrupted) => session.done.interrupted = true,
        Err(Stop::Failed(error) | Stop::NotSent(error)) => {
            session.done.error = Some(format!("{error:#}"));
        }
    }
    session.evidence()
}

/// Puts back what an earlier repetition could not: the DUT may be there again. To be called at the
/// end of a run too.
pub fn put_back(equipment: &mut Equipment<'_>, m_key_dut: MKey) {
    let Some(journal) = &mut equipment.journal else {
        return;
    };
    let Some(noted) = journal.pending() else {
        return;
    };
    let wait = noted.answer_time.min(MOST_WAIT);
    let unlock = Unlock {
        route: equipment.route.clone(),
        found: noted.found,
        guid: noted.guid,
        m_key_dut,
        wait_ms: wait.as_nanos().div_ceil(1_000_000) as u64,
    };
    let done = unlock.by(equipment.requester);
    let found = noted.found;
    (equipment.events)(Event::Note(match done.and_then(|()| journal.forget()) {
        Ok(()) => format!("the DUT is there again, and has {found} as it was found"),
        Err(error) => format!("NOT put back yet: {found}: {error:#}"),
    }));
}
