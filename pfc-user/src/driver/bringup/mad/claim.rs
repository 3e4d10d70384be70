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
    /// The DUT of that testbed; `None` for a simulated one, which no other process can reach.
    pub fn of(config: &MadTestbed) -> Option<Self> {
        (!matches!(config.transport, MadTransport::Sim { .. })).then(|| Self {
            transport: config.transport.clone(),
            route: config.route.clone(),
        })
    }

    /// A name for a file: one DUT has one.
    pub fn file_name(&self) -> String {
        words(&format!("{}-{}", self.transport.place(), self.route))
    }
}

/// The words of `text` with nothing between them that a file's name cannot have.
fn words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("-")
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

/// A DUT by its NodeGUID, whatever way leads to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The fabric: GUIDs of real ones are unique, and those of simulated ones are not.
    fabric: String,
    guid: u64,
}

impl Node {
    /// The node of that GUID in the fabric of that transport; `None` for a simulated one, which no
    /// other process can reach.
    pub fn of(transport: &MadTransport, guid: u64) -> Option<Self> {
        let fabric = match transport {
            MadTransport::Sim { .. } => return None,
            MadTransport::Ibsim { socket, .. } => format!("ibsim {socket}"),
            MadTransport::Umad { .. } => "InfiniBand".to_owned(),
        };
        Some(Self { fabric, guid })
    }
}

/// DUT that a tester keeps others away from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Claimed {
    /// A DUT by the way to it, before anything is sent.
    Way(Target),
    /// A DUT by its GUID, before anything is set.
    Node(Node),
}

impl Claimed {
    /// A name for a file: one DUT has one.
    pub fn file_name(&self) -> String {
        match self {
            Self::Way(target) => target.file_name(),
            Self::Node(node) => words(&format!("{}-{:016x}", node.fabric, node.guid)),
        }
    }
}

impl fmt::Display for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Way(target) => target.fmt(f),
            Self::Node(Node { fabric, guid }) => {
                write!(f, "the node with NodeGUID {guid:#018x} of {fabric}")
            }
        }
    }
}
