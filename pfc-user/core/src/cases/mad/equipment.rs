//! Equipment of a run.

use ib_mad::requester::Requester;
use ib_mad::smp::Route;
use ib_mad::transport::Transport;

use super::journal::KeyJournal;
use crate::evidence::pfc::Stall;
use crate::verdict::Event;

/// Everything that a repetition needs beside its plan.
pub struct Equipment<'l> {
    /// Way to the DUT.
    pub route: &'l Route,
    /// Sends and receives.
    pub requester: &'l mut Requester<dyn Transport>,
    /// Name of the transport, for people.
    pub transport: String,
    /// How often the user has wished to stop; asked before each request.
    pub interrupted: &'l mut dyn FnMut() -> u32,
    /// Where events go.
    pub events: &'l mut dyn FnMut(Event),
    /// `None` where nothing outlives the run: the DUT is simulated.
    pub journal: Option<&'l mut dyn KeyJournal>,
    /// The DUT's NodeGUID, once it was read in the run.
    pub guid: &'l mut Option<u64>,
    /// Times at which the simulated DUT stood still since the last call, by the transport's clock.
    pub stalls: &'l mut dyn FnMut() -> Vec<Stall>,
}
