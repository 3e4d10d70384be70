//! One node.

use std::time::Duration;

use super::fault::Fault;
use super::notice;
use super::port::{Invalid, Port};
use super::protection::Protection;
use super::switch::Switch;
use crate::attr::{Attribute, PortInfo};
use crate::mad::{AttributeId, CLASS_SUBN_DIRECTED, CLASS_SUBN_LID, LENGTH, Lid, MKey, Method, Status, Tid};
use crate::smp::{DATA, Route, Smp};
use crate::transport::Time;

/// Time from a request to its answer: the shortest that RespTimeValue can promise.
const PROMPT: Duration = Duration::from_nanos(4096);
/// Octets of an answer that is cut off.
const TRUNCATED: usize = 200;

/// What kind of node it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Channel adapter with one port.
    ChannelAdapter,
    /// Switch with this many external ports.
    Switch(u8),
}

/// A node as it is switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// Kind.
    pub kind: NodeKind,
    /// NodeDescription.
    pub description: String,
    /// NodeGUID; the ports' follow from it.
    pub guid: u64,
    /// LID of its port (of port 0 for a switch).
    pub lid: Lid,
    /// MasterSMLID: where traps go; 0 sends none.
    pub master_sm_lid: Lid,
    /// PortState of port 1, and of port 0 of a switch: 1 Down to 4 Active. All other ports are Down: they have no link.
    pub port_state: u8,
    /// SwitchInfo:LinearFDBCap.
    pub linear_fdb_cap: u16,
    /// SwitchInfo:RandomFDBCap.
    pub random_fdb_cap: u16,
    /// PortInfo:M_Key.
    pub m_key: MKey,
    /// PortInfo:M_KeyProtectBits, 0 to 3.
    pub m_key_protect_bits: u8,
    /// PortInfo:M_KeyLeasePeriod in seconds.
    pub m_key_lease_period: u16,
    /// PortInfo:RespTimeValue: 4.096 us * 2^n.
    pub response_time_value: u8,
    /// PortInfo:SubnetTimeOut: 4.096 us * 2^n.
    pub subnet_timeout: u8,
}

/// A packet that a node sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// How long after what caused it.
    pub after: Duration,
    /// Where to, if LID-routed.
    pub to: Lid,
    /// Octets; fewer than a MAD's where a fault cuts them off.
    pub octets: Vec<u8>,
}

/// The agent of one node.
#[derive(Clone, Debug)]
pub struct Sma {
    config: NodeConfig,
    faults: Vec<Fault>,
    /// By number; port 0 of a channel adapter is never used.
    ports: Vec<Port>,
    protection: Protection,
    switch: Option<Switch>,
    /// Data of the last trap.
    notice: [u8; DATA],
    traps: u32,
    /// No trap goes out before (o14-2).
    next_trap: Time,
    /// Requests that came in so far.
    requests: u64,
    /// The first M_Key that was set and is not 0.
    first_key: Option<MKey>,
}

/// Status and data of a response.
pub(super) struct Reply {
    pub(super) status: Status,
    pub(super) data: [u8; DATA],
}

impl Sma {
    /// A node that has just been switched on.
    pub fn new(config: NodeConfig, faults: Vec<Fault>) -> Self {
        let external = match config.kind {
            NodeKind::ChannelAdapter => 1,
            NodeKind::Switch(ports) => ports,
        };
        let random_cap = if faults.contains(&Fault::NoRandomFdb) { 0 } else { config.random_fdb_cap };
        let switch = matches!(config.kind, NodeKind::Switch(_)).then(|| Switch::new(config.linear_fdb_cap, random_cap));
        let mut node = Self {
            ports: Vec::new(),
            protection: Protection::new(&config),
            switch,
            notice: [0; DATA],
            traps: 0,
            next_trap: Time::ZERO,
            requests: 0,
            first_key: None,
            config,
            faults,
        };
        for number in 0..=external {
            let mut port = Port::new(&node.config, node.is_managed(number));
            // Only port 1 has a link.
            if number > 1 {
                port.set_state(1);
            }
            node.ports.push(port);
        }
        node
    }

    /// What it was switched on with.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Its LID as it is now.
    pub fn lid(&self) -> Lid {
        self.ports[self.managed_port()].lid()
    }

    /// Whether `lid` is one of its LIDs: its port has 2^LMC of them.
    pub fn has_lid(&self, lid: Lid) -> bool {
        self.ports[self.managed_port()].has_lid(lid)
    }

    /// PortState of its port `number`, 1 Down to 4 Active; `None` where it has no such port.
    pub fn port_state(&self, number: u8) -> Option<u8> {
        self.ports.get(usize::from(number)).map(Port::state)
    }

    /// Changes the PortState of its port `number`, as what happens on a link does.
    pub fn set_port_state(&mut self, number: u8, state: u8) {
        if let Some(port) = self.ports.get_mut(usize::from(number)) {
            port.set_state(state);
        }
    }

    /// The node gets `smp`, which is for it, by its external port `port` at `now`, from `from`; what it sends in return.
    pub fn receive(&mut self, now: Time, port: u8, from: Lid, smp: &Smp) -> Vec<Outgoing> {
        let method = smp.method();
        let class = smp.octets()[1];
        if method.is_response() || method == Method::TRAP || smp.is_returning() || !matches!(class, CLASS_SUBN_LID | CLASS_SUBN_DIRECTED) {
            return Vec::new();
        }
        self.requests += 1;
        if self.faults.iter().any(|fault| matches!(fault, Fault::Drops(nth) if self.requests.is_multiple_of(nth.get()))) {
            return Vec::new();
        }
        let busy = self.faults.iter().any(|fault| matches!(fault, Fault::Busy(first) if self.requests <= *first));
        let mut outgoing = Vec::new();
        let reply = if busy {
            (method != Method::TRAP_REPRESS).then(|| Reply { status: Status::BUSY, data: *smp.data() })
        } else {
            self.handle(now, port, from, smp, &mut outgoing)
        };
        if let Some(reply) = reply {
            self.respond(from, smp, reply, &mut outgoing);
        }
        outgoing
    }

    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// Number of the port that has LID and M_Key.
    fn managed_port(&self) -> usize {
        usize::from(self.switch.is_none())
    }

    fn is_managed(&self, number: u8) -> bool {
        usize::from(number) == self.managed_port()
    }

    fn handle(&mut self, now: Time, port: u8, from: Lid, smp: &Smp, outgoing: &mut Vec<Outgoing>) -> Option<Reply> {
        let refused = |status| Some(Reply { status, data: *smp.data() });
        if smp.octets()[0] != 1 || smp.class_version() != 1 {
            return refused(Status::BAD_VERSION);
        }
        let method = smp.method();
        let weight = match () {
            () if self.has(Fault::NoViolations) => 0,
            () if self.has(Fault::CountsTwice) => 2,
            () => 1,
        };
        if !self.protection.check(now, smp, weight) {
            self.trap(now, from, smp, outgoing);
            if !(method == Method::GET && self.has(Fault::AnswersWrongKey)) {
                return None;
            }
        }
        match method {
            Method::TRAP_REPRESS => return None,
            Method::GET | Method::SET => {}
            _ => return refused(Status::UNSUPPORTED_METHOD),
        }
        match (smp.attribute(), &mut self.switch) {
            (AttributeId::NODE_INFO, _) if method == Method::GET => Some(self.node_info(port, smp)),
            (AttributeId::NODE_DESCRIPTION, _) if method == Method::GET => Some(self.node_description(smp)),
            (AttributeId::NOTICE, _) => Some(self.notice(smp)),
            (AttributeId::PORT_INFO, _) => self.port_info(port, smp),
            (AttributeId::SWITCH_INFO, Some(switch)) => Some(switch.info(smp)),
            (AttributeId::LINEAR_FORWARDING_TABLE, Some(switch)) => Some(switch.linear(smp)),
            (AttributeId::RANDOM_FORWARDING_TABLE, Some(switch)) => Some(switch.random(smp)),
            _ => refused(Status::UNSUPPORTED_METHOD_ATTRIBUTE),
        }
    }

    fn node_info(&self, port: u8, smp: &Smp) -> Reply {
        let mut data = [0; DATA];
        let mut put = |at: usize, octets: &[u8]| data[at..at + octets.len()].copy_from_slice(octets);
        let guid = self.config.guid;
        let (kind, port_guid) = match self.config.kind {
            NodeKind::ChannelAdapter => (1, guid.wrapping_add(1)),
            NodeKind::Switch(_) => (2, guid),
        };
        let ports = self.ports.len() as u8 - 1;
        put(0, &[1, 1, kind, ports]);
        put(4, &guid.to_be_bytes());
        put(12, &guid.to_be_bytes());
        put(20, &port_guid.to_be_bytes());
        put(28, &1u16.to_be_bytes());
        put(36, &[port]);
        let status = if smp.modifier() == 0 { Status::OK } else { Status::INVALID_FIELD };
        Reply { status, data }
    }

    fn node_description(&self, smp: &Smp) -> Reply {
        let mut data = [0; DATA];
        let text = self.config.description.as_bytes();
        let length = text.len().min(DATA);
        data[..length].copy_from_slice(&text[..length]);
        let status = if smp.modifier() == 0 { Status::OK } else { Status::INVALID_FIELD };
        Reply { status, data }
    }

    /// A Set takes the notice away (13.4.10).
    fn notice(&mut self, smp: &Smp) -> Reply {
        if smp.method() == Method::SET {
            self.notice = [0; DATA];
        }
        Reply { status: Status::OK, data: self.notice }
    }

    /// Nothing where a fault keeps it silent.
    fn port_info(&mut self, ingress: u8, smp: &Smp) -> Option<Reply> {
        let number = match (smp.modifier(), &self.switch) {
            (0, None) => ingress.into(),
            (number, _) => number,
        };
        let lowest = u32::from(self.switch.is_none());
        let number = u8::try_from(number).ok().filter(|number| (lowest..self.ports.len() as u32).contains(&u32::from(*number)));
        let Some(number) = number else {
            return Some(Reply { status: Status::INVALID_FIELD, data: [0; DATA] });
        };
        let managed = self.is_managed(number);
        let get = smp.method() == Method::GET;
        if get && self.protection.key != MKey(0) && self.protection.key == smp.m_key() {
            if self.protection.bits >= 2 && self.has(Fault::RefusesItsKey) {
                return None;
            }
            if self.has(Fault::CountsGoodKey) {
                self.protection.count(1);
            }
        }
        let mut status = Status::OK;
        if !get {
            let wanted = PortInfo::from_data(*smp.data());
            match self.ports[usize::from(number)].set(&wanted, managed) {
                Err(Invalid) => status = Status::INVALID_FIELD,
                Ok(()) if managed => self.set_protection(&wanted),
                Ok(()) => {}
            }
        }
        let mut data = *self.ports[usize::from(number)].info().data();
        data[28] = ingress;
        if managed {
            let shown = if get && self.hides_key(smp.m_key()) { MKey(0) } else { self.protection.key };
            data[0..8].copy_from_slice(&shown.0.to_be_bytes());
            data[26..28].copy_from_slice(&self.protection.lease_period.to_be_bytes());
            data[34] |= self.protection.bits << 6;
            data[44..46].copy_from_slice(&self.protection.violations.to_be_bytes());
        }
        Some(Reply { status, data })
    }

    /// Whether a Get with `key` is shown no M_Key.
    fn hides_key(&self, key: MKey) -> bool {
        let hides = match self.protection.bits {
            0 => self.has(Fault::HidesKey),
            1 => !self.has(Fault::ShowsKey),
            _ => false,
        };
        hides && self.protection.key != key
    }

    fn set_protection(&mut self, wanted: &PortInfo) {
        let key = wanted.m_key();
        let kept = match () {
            () if self.has(Fault::IgnoresKeySet) => true,
            () if key == MKey(0) => self.has(Fault::KeepsKey),
            () => *self.first_key.get_or_insert(key) != key && self.has(Fault::OneKey),
        };
        if !kept {
            self.protection.key = key;
        }
        if !self.has(Fault::IgnoresProtectBits) {
            self.protection.bits = wanted.m_key_protect_bits();
        }
        self.protection.lease_period = wanted.m_key_lease_period();
        if wanted.m_key_violations() == 0 && !self.has(Fault::KeepsViolations) {
            self.protection.violations = 0;
        }
    }

    /// Trap 256 to the master SM, if there is one.
    fn trap(&mut self, now: Time, from: Lid, smp: &Smp, outgoing: &mut Vec<Outgoing>) {
        let port = &self.ports[self.managed_port()];
        let info = port.info();
        self.notice = notice::bad_m_key(self.config.kind, port.lid(), from, smp);
        let to = Lid(info.master_sm_lid());
        // Only a port that is Active sends traps (o14-3.2.1), and the next not before the subnet's time-out has passed (o14-2).
        if to == Lid(0) || port.state() != 4 || now < self.next_trap {
            return;
        }
        self.next_trap = now + Duration::from_nanos(4096 << info.subnet_timeout());
        self.traps = self.traps.wrapping_add(1);
        let mut trap = Smp::request(Method::TRAP, AttributeId::NOTICE, 0, &Route::Lid(to));
        trap.set_tid(Tid(self.traps.into()));
        trap.set_m_key(self.protection.key);
        *trap.data_mut() = self.notice;
        outgoing.push(Outgoing { after: PROMPT, to, octets: trap.octets().to_vec() });
    }

    /// Puts the response to `smp` out, with what the faults make of it.
    fn respond(&self, from: Lid, smp: &Smp, reply: Reply, outgoing: &mut Vec<Outgoing>) {
        let mut answer = smp.clone();
        answer.set_method(Method::GET_RESP);
        answer.set_status(reply.status);
        answer.set_returning(smp.is_directed());
        *answer.data_mut() = reply.data;
        let (mut after, mut length, mut copies) = (PROMPT, LENGTH, 1);
        for fault in &self.faults {
            match *fault {
                Fault::Late(by) => after += by,
                Fault::Twice => copies = 2,
                Fault::Truncated => length = TRUNCATED,
                Fault::OtherTid => answer.set_tid(Tid(smp.tid().0 ^ 0x8000_0000)),
                Fault::Silent(attribute) if attribute.is_none_or(|attribute| attribute == smp.attribute()) => copies = 0,
                _ => {}
            }
        }
        if smp.attribute() == AttributeId::LINEAR_FORWARDING_TABLE {
            self.spoil_table(smp, &mut answer);
        }
        let octets = answer.octets()[..length].to_vec();
        outgoing.extend(std::iter::repeat_n(Outgoing { after, to: from, octets }, copies));
    }

    /// Faults of LinearForwardingTable.
    fn spoil_table(&self, smp: &Smp, answer: &mut Smp) {
        let get = smp.method() == Method::GET;
        let code = |code: u8| Status::from_bits(u16::from(code) << 2);
        for fault in &self.faults {
            match *fault {
                Fault::LftStatus(status) => answer.set_status(code(status)),
                Fault::LftGetStatus(status) if get => answer.set_status(code(status)),
                Fault::LftSetStatus(status) if !get => answer.set_status(code(status)),
                Fault::LftOneBlock(block) if smp.modifier() == u32::from(block) => answer.set_status(Status::OK),
                Fault::LftAttribute => answer.set_attribute(AttributeId::RANDOM_FORWARDING_TABLE, answer.modifier()),
                Fault::LftModifier => answer.set_attribute(answer.attribute(), smp.modifier().wrapping_add(1)),
                Fault::LftData if get => answer.data_mut().fill(1),
                _ => {}
            }
        }
    }
}
