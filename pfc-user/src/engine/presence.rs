//! Interfaces that others delete, take down or change while a plan is in force.

use nix::errno::Errno;
use pfc_ebpf::units::LineRate;
use validator_core::engine::packet::Protocol;
use validator_core::engine::plan::{Flow, FlowIndex, PortIndex};
use validator_core::engine::{Problem, Warning};

use super::port::LivePort;
use super::{LiveEngine, machine, none};
use crate::driver::kernel::link::{self, LinkError, LinkState};
use crate::driver::kernel::netns::Namespace;

/// Octets of an Ethernet header, and of a tag, which a port sends beyond its MTU.
const ETHERNET: u32 = 14;
const TAG: u32 = 4;

/// Says that an interface is down, so that no frame is sent by it.
pub fn down(interface: &str, namespace: &Namespace) -> String {
    format!("{interface} in {namespace} is down; set it up with `ip link set dev {interface} up`")
}

/// The defect of a flow whose frames an interface with that MTU does not take.
pub fn too_long(flow: &Flow, interface: &str, mtu: u32) -> Option<String> {
    let (_, longest) = flow.length.bounds();
    let mut headers = flow.packet.headers.iter();
    let is_tagged = headers
        .nth(1)
        .is_some_and(|header| header.protocol == Protocol::Vlan);
    let room = mtu + ETHERNET + if is_tagged { TAG } else { 0 } + LineRate::FCS as u32;
    (longest > room).then(|| {
        format!(
            "flow \"{}\": frames of {longest} octets are too long for {interface}, which takes \
             {room} with an MTU of {mtu}; raise it, or send shorter frames",
            flow.name
        )
    })
}

impl LiveEngine {
    /// Refuses flows whose ports are not what they were when the plan was put in force.
    pub(super) fn all_present(&self, flows: &[FlowIndex]) -> Result<(), Vec<Problem>> {
        let mut states: Vec<Option<LinkState>> = Vec::new();
        let mut problems = Vec::new();
        for (place, port) in self.ports.iter().enumerate() {
            let uses = |flow: &FlowIndex| {
                let flow = &self.plan.flows[flow.0];
                flow.from.0 == place || flow.to.iter().any(|to| to.0 == place)
            };
            states.push(None);
            if !flows.iter().any(uses) {
                continue;
            }
            match port.sends(&self.plan.ports[place].name) {
                Ok(state) => states[place] = Some(state),
                Err(problem) => problems.push(problem),
            }
        }
        none(problems.into_iter())?;
        let changed = |flow: &FlowIndex| {
            let flow = &self.plan.flows[flow.0];
            let ends = [flow.from].into_iter().chain(flow.to.iter().copied());
            ends.filter_map(|port| {
                let (live, state) = (&self.ports[port.0], states[port.0].as_ref()?);
                if state.mtu == live.mtu_in_force(self.plan.ports[port.0].mtu) {
                    return None;
                }
                too_long(flow, &live.interface, state.mtu)
            })
            .next()
        };
        none(flows.iter().filter_map(changed).map(Problem::Order))
    }

    /// Flows whose frames arrive at ports that may not take them.
    pub(super) fn too_long_to_arrive(&self) -> Vec<Warning> {
        let arrives = |flow: &Flow, to: &PortIndex| {
            let (live, mtu) = (&self.ports[to.0], self.plan.ports[to.0].mtu);
            let why = too_long(flow, &live.interface, live.mtu_in_force(mtu))?;
            Some(Warning(format!(
                "{why}: they may be lost where they arrive"
            )))
        };
        let flows = self.plan.flows.iter();
        flows
            .flat_map(|flow| flow.to.iter().filter_map(|to| arrives(flow, to)))
            .collect()
    }

    /// Links that an order of the plan before took down are up again.
    pub(super) fn links_up(&mut self) -> Vec<Warning> {
        let ports = self.ports.iter_mut().zip(&self.plan.ports);
        let down = ports.filter(|(live, _)| live.down.is_some());
        down.filter_map(|(live, planned)| {
            let problem = live.set_link(true).err()?;
            Some(Warning(format!(
                "port \"{}\": its link stays down: {problem}",
                planned.name
            )))
        })
        .collect()
    }
}

impl LivePort {
    /// The interface as it is now; `name` is the port's. An error where it is not the one that the
    /// plan in force took.
    pub(super) fn present(&self, name: &str) -> Result<LinkState, Problem> {
        let interface = &self.interface;
        match link::state(&self.namespace, interface) {
            Ok(state) if state.index == self.index => {
                if self.status.is_bound().map_err(machine)? {
                    return Ok(state);
                }
                Err(Problem::Order(format!(
                    "port \"{name}\": {interface} was taken away and is back since the \
                     configuration was sent; send it again"
                )))
            }
            Ok(_) => Err(Problem::Order(format!(
                "port \"{name}\": {interface} was deleted and made anew since the configuration \
                 was sent; send it again"
            ))),
            Err(LinkError::Unknown { .. }) => Err(Problem::Order(format!(
                "port \"{name}\": {interface} is gone since the configuration was sent; make it \
                 again, then send the configuration again"
            ))),
            Err(error) => Err(machine(error)),
        }
    }

    /// Like `present`, for a port that is to send or to receive.
    fn sends(&self, name: &str) -> Result<LinkState, Problem> {
        let state = self.present(name)?;
        if state.up || self.down.is_some() {
            return Ok(state);
        }
        let why = down(&self.interface, &self.namespace);
        Err(Problem::Order(format!("port \"{name}\": {why}")))
    }

    /// True if the link is up: not that of another interface which has the name now.
    pub(super) fn is_up(&self) -> Result<bool, Problem> {
        if !self.status.is_bound().map_err(machine)? {
            return Ok(false);
        }
        match self.status.has_carrier() {
            // The interface has another name, or went this moment.
            Err(Errno::ENODEV) => Ok(false),
            carrier => carrier.map_err(machine),
        }
    }
}
