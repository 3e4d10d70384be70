//! Answers of a node to what arrives.

use std::time::Duration;

use super::fault::{Fault, Part};
use super::node::Sma;
use super::notice;
use super::reply::Reply;
use super::switch::block;
use crate::attr::PortState;
use crate::mad::{
    AttributeId, CLASS_SUBN_DIRECTED, CLASS_SUBN_LID, LENGTH, Lid, Method, Status, Tid, Time,
};
use crate::smp::{Route, Smp};

/// Time from a request to its response: the shortest that RespTimeValue can promise.
const PROMPT: Duration = Duration::from_nanos(4096);
/// Octets of a truncated response.
const TRUNCATED: usize = 200;

/// First octet of MKEY in the notice of trap 256.
const KEY_IN_NOTICE: usize = 24;
/// First of the last octets of an SMP, in which a key has room. They are reserved, or the end of a
/// return path that is shorter.
const RESERVED: usize = LENGTH - 8;

/// A packet that a node sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Delay after the packet that caused it.
    pub after: Duration,
    /// Destination, if LID-routed.
    pub to: Lid,
    /// Octets; fewer than a MAD's if a fault truncates them.
    pub octets: Vec<u8>,
}

impl Sma {
    /// Handles `smp`, addressed to this node, from `from`, received at external port `port` at
    /// `now`. Returns the packets that the node sends in return.
    pub fn receive(&mut self, now: Time, port: u8, from: Lid, smp: &Smp) -> Vec<Outgoing> {
        let method = smp.method();
        let class = smp.octets()[1];
        if method.is_response()
            || method == Method::TRAP
            || smp.is_returning()
            || !matches!(class, CLASS_SUBN_LID | CLASS_SUBN_DIRECTED)
        {
            return Vec::new();
        }
        self.requests += 1;
        if self.faults.iter().any(
            |fault| matches!(fault, Fault::Drops(nth) if self.requests.is_multiple_of(nth.get())),
        ) {
            return Vec::new();
        }
        let busy = self
            .faults
            .iter()
            .any(|fault| matches!(fault, Fault::Busy(first) if self.requests <= *first))
            || self.discards(now, smp);
        let mut outgoing = Vec::new();
        let before = self.violations;
        let reply = if busy {
            (method != Method::TRAP_REPRESS).then(|| Reply(Status::BUSY, *smp.data()))
        } else {
            self.handle(now, port, from, smp, &mut outgoing)
        };
        if let Some(reply) = reply {
            self.respond(from, smp, reply, &mut outgoing);
            if let Some(by) = self.lateness().filter(|_| self.violations > before)
                && let Some(response) = outgoing.last_mut()
            {
                response.after += by;
            }
        }
        outgoing
    }

    /// True if `smp` is a Get with a wrong M_Key that is answered BUSY.
    fn discards(&mut self, now: Time, smp: &Smp) -> bool {
        self.protection.expire(now);
        let is_refused = smp.method() == Method::GET
            && self.protection.bits >= 2
            && !self.protection.is_valid(smp.m_key());
        let counts = self.has(Fault::CountsBusy);
        let is_first = |fault: &Fault| matches!(fault, Fault::BusyWrongKey(n) if self.busy < *n);
        if !is_refused || !counts && !self.faults.iter().any(is_first) {
            return false;
        }
        self.busy += 1;
        if counts {
            self.protection.count(1);
        }
        true
    }

    /// Weight of the next violation: 1 without faults.
    fn weight(&self) -> u16 {
        let skips = self.has(Fault::CountsEverySecond) && self.violations.is_multiple_of(2)
            || self.has(Fault::CountsEveryThird) && !(self.violations + 1).is_multiple_of(3);
        match skips || self.has(Fault::NoViolations) || self.has(Fault::CountsOwnKey) {
            true => 0,
            false => 1 + u16::from(self.has(Fault::CountsTwice)),
        }
    }

    fn handle(
        &mut self,
        now: Time,
        port: u8,
        from: Lid,
        smp: &Smp,
        outgoing: &mut Vec<Outgoing>,
    ) -> Option<Reply> {
        let refused = |status| Some(Reply(status, *smp.data()));
        if smp.octets()[0] != 1 || smp.class_version() != 1 {
            return refused(Status::BAD_VERSION);
        }
        let method = smp.method();
        if !self.protection.check(now, smp, self.weight()) {
            self.violations += 1;
            self.trap(now, from, smp, outgoing);
            if self.has(Fault::DropsProtection) {
                self.protection.bits = 0;
            }
            let answers = self.has(Fault::AnswersWrongKey) || self.lateness().is_some();
            if !(method == Method::GET && answers) {
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
            (AttributeId::NODE_DESCRIPTION, _) if method == Method::GET => {
                Some(self.node_description(smp))
            }
            (AttributeId::NOTICE, _) => Some(self.last_notice(smp)),
            (AttributeId::PORT_INFO, _) => self.port_info(port, smp),
            (AttributeId::P_KEY_TABLE, _) => Some(self.p_key_table(smp)),
            (AttributeId::SWITCH_INFO, Some(switch)) => Some(switch.info(smp)),
            (AttributeId::LINEAR_FORWARDING_TABLE, Some(switch)) => {
                Some(block(&mut switch.linear, smp))
            }
            (AttributeId::RANDOM_FORWARDING_TABLE, Some(switch)) => {
                Some(block(&mut switch.random, smp))
            }
            _ => refused(Status::UNSUPPORTED_METHOD_ATTRIBUTE),
        }
    }

    /// Sends trap 256 to the master SM, if there is one.
    fn trap(&mut self, now: Time, from: Lid, smp: &Smp, outgoing: &mut Vec<Outgoing>) {
        let port = &self.ports[self.managed_port()];
        let info = port.info();
        self.notice = notice::bad_m_key(self.config.kind, port.lid(), from, smp);
        let to = Lid(info.master_sm_lid());
        // Only an Active port sends traps (o14-3.2.1). The next one has to wait for the subnet's
        // time-out (o14-2).
        if to == Lid(0) || port.state() != PortState::Active || now < self.next_trap {
            return;
        }
        self.next_trap = now + Duration::from_nanos(4096 << info.subnet_timeout());
        self.traps = self.traps.wrapping_add(1);
        // The M_Key of a trap is 0 (o14-1).
        let mut trap = Smp::request(Method::TRAP, AttributeId::NOTICE, 0, &Route::Lid(to));
        trap.set_tid(Tid(self.traps.into()));
        trap.encode(&self.notice);
        let key = self.protection.key.0.to_be_bytes();
        if self.has(Fault::KeyInNotice) {
            trap.data_mut()[KEY_IN_NOTICE..][..8].copy_from_slice(&key);
        }
        if self.has(Fault::KeyInHeader) {
            trap.set_m_key(self.protection.key);
        }
        if self.has(Fault::KeyInReserved) {
            trap.octets_mut()[RESERVED..].copy_from_slice(&key);
        }
        outgoing.push(Outgoing {
            after: PROMPT,
            to,
            octets: trap.octets().to_vec(),
        });
    }

    /// Sends the response to `smp`, altered by the faults.
    fn respond(&self, from: Lid, smp: &Smp, reply: Reply, outgoing: &mut Vec<Outgoing>) {
        let Reply(status, data) = reply;
        let mut answer = smp.response(status);
        *answer.data_mut() = data;
        let (mut after, mut length, mut copies) = (PROMPT, LENGTH, 1);
        for fault in &self.faults {
            match *fault {
                Fault::Late(by) => after += by,
                Fault::Twice => copies = 2,
                Fault::Truncated => length = TRUNCATED,
                Fault::Header(part) => spoil_header(part, &mut answer),
                Fault::PortInfoStatus(status)
                    if smp.attribute() == AttributeId::PORT_INFO && smp.method() == Method::GET =>
                {
                    answer.set_status(code(status))
                }
                Fault::KeyInHeader if self.protection.bits == 1 && smp.method() == Method::GET => {
                    answer.set_m_key(self.protection.key)
                }
                Fault::KeyInReserved
                    if self.protection.bits == 1
                        && smp.method() == Method::GET
                        && !self.protection.is_own(smp.m_key()) =>
                {
                    answer.octets_mut()[RESERVED..]
                        .copy_from_slice(&self.protection.key.0.to_be_bytes())
                }
                Fault::OtherTid => answer.set_tid(Tid(smp.tid().0 ^ 0x8000_0000)),
                Fault::Silent(attribute)
                    if attribute.is_none_or(|attribute| attribute == smp.attribute()) =>
                {
                    copies = 0
                }
                _ => {}
            }
        }
        if smp.attribute() == AttributeId::LINEAR_FORWARDING_TABLE {
            self.spoil_table(smp, &mut answer);
        }
        let response = Outgoing {
            after,
            to: from,
            octets: answer.octets()[..length].to_vec(),
        };
        outgoing.extend(std::iter::repeat_n(response, copies));
    }

    /// Applies the faults of LinearForwardingTable.
    fn spoil_table(&self, smp: &Smp, answer: &mut Smp) {
        let get = smp.method() == Method::GET;
        for fault in &self.faults {
            match *fault {
                Fault::LftStatus(status) => answer.set_status(code(status)),
                Fault::LftGetStatus(status) if get => answer.set_status(code(status)),
                Fault::LftSetStatus(status) if !get => answer.set_status(code(status)),
                Fault::LftOneBlock(block) if smp.modifier() == u32::from(block) => {
                    answer.set_status(Status::OK)
                }
                Fault::LftAttribute => {
                    answer.set_attribute(AttributeId::RANDOM_FORWARDING_TABLE, answer.modifier())
                }
                Fault::LftModifier => {
                    answer.set_attribute(answer.attribute(), smp.modifier().wrapping_add(1))
                }
                Fault::LftData if get => answer.data_mut().fill(1),
                _ => {}
            }
        }
    }
}

/// Status with that code.
fn code(code: u8) -> Status {
    Status::from_bits(u16::from(code) << 2)
}

/// Makes `part` of the header of `answer` wrong.
fn spoil_header(part: Part, answer: &mut Smp) {
    match part {
        Part::BaseVersion => answer.octets_mut()[0] = 2,
        Part::Class => answer.octets_mut()[1] ^= CLASS_SUBN_LID ^ CLASS_SUBN_DIRECTED,
        Part::Method => answer.set_method(Method(Method::GET_RESP.0 | Method::SET.0)),
        Part::Attribute => {
            let other = AttributeId(answer.attribute().0 ^ 0x100);
            answer.set_attribute(other, answer.modifier())
        }
        Part::ClassVersion => answer.octets_mut()[2] = 2,
        Part::Direction => answer.set_returning(false),
        Part::Tid => answer.set_tid(Tid(answer.tid().0 ^ 1 << 63)),
        Part::TidZero => answer.set_tid(Tid(answer.tid().0 & 0xffff_ffff)),
        Part::TidSwapped => answer.octets_mut()[8..12].reverse(),
        Part::Modifier if answer.attribute() == AttributeId::PORT_INFO => {
            answer.set_attribute(answer.attribute(), answer.modifier() ^ 2)
        }
        Part::Path if answer.is_directed() => answer.octets_mut()[129] ^= 2,
        Part::Modifier | Part::Path => {}
    }
}
