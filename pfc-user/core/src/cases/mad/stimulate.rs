//! A repetition by a transport: requests one at a time, and the evidence that they make.

use anyhow::Result;
use ib_mad::requester::Requester;
use ib_mad::smp::Route;
use ib_mad::transport::Transport;

use super::MadCase;
use super::session::{KeyJournal, Session, Stop};
use crate::case::Event;
use crate::evidence::mad::MadEvidence;
use crate::plan::mad::MadPlan;

/// Everything that a repetition needs beside its plan.
pub struct Equipment<'l> {
    /// Way to the DUT.
    pub route: &'l Route,
    /// Sends and receives.
    pub requester: &'l mut Requester<Box<dyn Transport>>,
    /// Name of the transport, for people.
    pub transport: String,
    /// True once the user wishes to stop; asked before each request.
    pub interrupted: &'l mut dyn FnMut() -> bool,
    /// Where events go.
    pub events: &'l mut dyn FnMut(Event),
    /// `None` where nothing outlives the run: the DUT is simulated.
    pub journal: Option<&'l mut dyn KeyJournal>,
}

/// Runs one repetition of `case`. The evidence says if it was interrupted, and if something but the
/// DUT failed. Whatever happens, the DUT's M_Key is restored as far as possible.
pub fn run(equipment: &mut Equipment<'_>, case: &MadCase, plan: &MadPlan) -> Result<MadEvidence> {
    let mut session = Session::new(equipment, plan);
    let done = (case.stimulate)(&mut session);
    Ok(match done.and_then(|()| session.listen_for_more()) {
        Ok(()) => session.evidence(None),
        Err(Stop::Interrupted) => {
            session.interrupted = true;
            session.evidence(None)
        }
        Err(Stop::Failed(error) | Stop::NotSent(error)) => {
            session.evidence(Some(format!("{error:#}")))
        }
    })
}
