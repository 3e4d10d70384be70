//! A repetition by a transport: requests one at a time, and the evidence that they make.

mod forwarding_table;
pub(super) use forwarding_table::BLOCKS;
mod m_key_get;
mod session;
pub(super) use session::TRIES;

use anyhow::Result;
use ib_mad::requester::Requester;
use ib_mad::transport::Transport;
use session::{Session, Stop};

use crate::case::Event;
use crate::config::MadTestbed;
use crate::driver::bringup::mad::KeyJournal;
use crate::evidence::mad::MadEvidence;
use crate::plan::mad::{MadPlan, MadStimulus};

/// Everything that a repetition needs beside its plan.
pub struct Live<'l> {
    /// The testbed's file.
    pub config: &'l MadTestbed,
    /// What sends and receives.
    pub requester: &'l mut Requester<Box<dyn Transport>>,
    /// What packets are sent by, for people.
    pub transport: String,
    /// Whether the user wishes to stop; asked before each request.
    pub interrupted: &'l mut dyn FnMut() -> bool,
    /// Where events go.
    pub events: &'l mut dyn FnMut(Event),
    /// `None` where nothing outlives the run: the DUT is simulated.
    pub journal: Option<&'l mut dyn KeyJournal>,
}

/// Runs one repetition; the evidence says whether it was interrupted, and whether something but the DUT failed. Whatever happens,
/// the DUT's M_Key is restored as well as it goes.
pub fn run(live: &mut Live<'_>, plan: &MadPlan) -> Result<MadEvidence> {
    let mut session = Session::new(live, plan);
    let done = match plan.stimulus {
        MadStimulus::LinearForwardingTable => forwarding_table::run(&mut session),
        MadStimulus::MKeyGet(bits) => m_key_get::run(&mut session, bits),
    };
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
