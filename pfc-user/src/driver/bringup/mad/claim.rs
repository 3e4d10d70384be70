//! One tester at a time: a run that is under way claims its DUT in the journal.

use std::fmt;

use ib_mad::smp::Route;
use serde::{Deserialize, Serialize};

use crate::config::{MadTestbed, MadTransport};

/// A DUT: the transport and the way to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    pub(super) transport: MadTransport,
    pub(super) route: Route,
}

impl Target {
    /// The DUT of that testbed; `None` for a simulated one, which nobody else can reach.
    pub fn of(config: &MadTestbed) -> Option<Self> {
        (!matches!(config.transport, MadTransport::Sim { .. })).then(|| Self {
            transport: config.transport.clone(),
            route: config.route.clone(),
        })
    }

    /// A name for a file: one DUT has one.
    pub fn file_name(&self) -> String {
        let text = format!("{}-{}", self.transport.place(), self.route);
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join("-")
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the node at {} of {}",
            self.route,
            self.transport.place()
        )
    }
}

/// The journal's entry of a run that is under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimEntry {
    /// The DUT.
    pub claimed: Target,
}
