//! The state of one node.

use std::time::Duration;

use super::config::{NodeConfig, NodeKind};
use super::fault::Fault;
use super::port::Port;
use super::protection::Protection;
use super::switch::Switch;
use crate::attr::{Notice, PortState};
use crate::mad::{Lid, MKey, Time};
use crate::value_of;

/// The agent of one node.
#[derive(Clone, Debug)]
pub struct Sma {
    pub(super) config: NodeConfig,
    pub(super) faults: Vec<Fault>,
    /// Indexed by port number; port 0 of a channel adapter is unused.
    pub(super) ports: Vec<Port>,
    pub(super) protection: Protection,
    pub(super) switch: Option<Switch>,
    /// Notice of the last trap.
    pub(super) notice: Notice,
    pub(super) traps: u32,
    /// Earliest time of the next trap (o14-2).
    pub(super) next_trap: Time,
    /// Number of requests received so far.
    pub(super) requests: u64,
    /// Number of M_Key violations so far, counted or not.
    pub(super) violations: u64,
    /// Number of Gets with a wrong M_Key that were answered BUSY so far.
    pub(super) busy: u64,
    /// The first nonzero M_Key that was set.
    pub(super) first_key: Option<MKey>,
}

impl Sma {
    /// Makes a node that has just been switched on.
    pub fn new(config: NodeConfig, faults: Vec<Fault>) -> Self {
        let random_cap = if faults.contains(&Fault::NoRandomFdb) {
            0
        } else {
            config.random_fdb_cap
        };
        let switch = matches!(config.kind, NodeKind::Switch(_))
            .then(|| Switch::new(config.linear_fdb_cap, random_cap));
        let mut node = Self {
            ports: Vec::new(),
            protection: Protection::new(&config, &faults),
            switch,
            notice: Notice::default(),
            traps: 0,
            next_trap: Time::ZERO,
            requests: 0,
            violations: 0,
            busy: 0,
            first_key: None,
            config,
            faults,
        };
        for number in 0..=usize::from(node.external_ports()) {
            let mut port = Port::new(&node.config, number == node.managed_port());
            if number > 1 {
                port.set_state(PortState::Down);
            }
            node.ports.push(port);
        }
        node
    }

    /// Returns the configuration at power-on.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Returns the node's current LID.
    pub fn lid(&self) -> Lid {
        self.ports[self.managed_port()].lid()
    }

    /// True if `lid` is one of the node's 2^LMC LIDs.
    pub fn has_lid(&self, lid: Lid) -> bool {
        self.ports[self.managed_port()].has_lid(lid)
    }

    /// PortState of port `number`; `None` if there is no such port.
    pub fn port_state(&self, number: u8) -> Option<PortState> {
        self.ports.get(usize::from(number)).map(Port::state)
    }

    /// Changes the PortState of port `number`, as an event on its link does.
    pub fn set_port_state(&mut self, number: u8, state: PortState) {
        if let Some(port) = self.ports.get_mut(usize::from(number)) {
            port.set_state(state);
        }
    }

    pub(super) fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// How much too late a Get with a wrong M_Key is answered.
    pub(super) fn lateness(&self) -> Option<Duration> {
        value_of!(self.faults, Fault::AnswersWrongKeyLate)
    }

    /// Number of the port that has the LID and the M_Key.
    pub(super) fn managed_port(&self) -> usize {
        usize::from(self.switch.is_none())
    }

    pub(super) fn external_ports(&self) -> u8 {
        match self.config.kind {
            NodeKind::ChannelAdapter => 1,
            NodeKind::Switch(ports) => ports,
        }
    }
}
