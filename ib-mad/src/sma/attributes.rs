//! How a node answers Get and Set of the attributes that every node has.

use super::config::NodeKind;
use super::fault::Fault;
use super::node::Sma;
use super::reply::{Reply, without_modifier};
use crate::attr::{Attribute, FieldError, NodeInfo, NodeType, Notice, PortInfo};
use crate::mad::{MKey, Method, Status};
use crate::smp::{DATA, Smp};
use crate::value_of;

impl Sma {
    pub(super) fn node_info(&self, ingress: u8, smp: &Smp) -> Reply {
        let info = self
            .build_node_info(ingress)
            .expect("each value fits its field");
        Reply(without_modifier(smp), *info.data())
    }

    fn build_node_info(&self, ingress: u8) -> Result<NodeInfo, FieldError> {
        let guid = self.config.guid;
        let (kind, port_guid) = match self.config.kind {
            NodeKind::ChannelAdapter => (NodeType::ChannelAdapter, guid.wrapping_add(1)),
            NodeKind::Switch(_) => (NodeType::Switch, guid),
        };
        let mut info = NodeInfo::default();
        info.set_base_version(1)?;
        info.set_class_version(1)?;
        info.set_node_type(kind)?;
        info.set_num_ports(self.external_ports())?;
        info.set_system_image_guid(guid)?;
        info.set_node_guid(guid)?;
        info.set_port_guid(port_guid)?;
        info.set_partition_cap(1)?;
        info.set_local_port_number(ingress)?;
        Ok(info)
    }

    pub(super) fn node_description(&self, smp: &Smp) -> Reply {
        let mut data = [0; DATA];
        let text = self.config.description.as_bytes();
        // A longer description is cut at the end of a character.
        let length = self.config.description.floor_char_boundary(DATA);
        data[..length].copy_from_slice(&text[..length]);
        Reply(without_modifier(smp), data)
    }

    /// Returns the notice of the last trap; a Set clears it (13.4.10).
    pub(super) fn last_notice(&mut self, smp: &Smp) -> Reply {
        if smp.method() == Method::SET {
            self.notice = Notice::default();
        }
        Reply(Status::OK, *self.notice.data())
    }

    /// Returns one entry: the default partition, to which every port belongs. It cannot be changed.
    /// Subnet managers read it.
    pub(super) fn p_key_table(&self, smp: &Smp) -> Reply {
        let mut data = [0; DATA];
        data[..2].copy_from_slice(&[0xff, 0xff]);
        // The upper half of the modifier is the port, the lower half the block of 32 entries.
        let (port, block) = (smp.modifier() >> 16, smp.modifier() & 0xffff);
        let is_there = block == 0 && port <= self.external_ports().into();
        if !is_there || smp.method() == Method::SET && *smp.data() != data {
            return Reply::INVALID;
        }
        Reply(Status::OK, data)
    }

    /// Answers Get and Set of PortInfo; `None` if a fault suppresses the response.
    pub(super) fn port_info(&mut self, ingress: u8, smp: &Smp) -> Option<Reply> {
        let Some(number) = self.port_number(ingress, smp.modifier()) else {
            return Some(Reply::INVALID);
        };
        let managed = number == self.managed_port();
        let get = smp.method() == Method::GET;
        let right_key =
            get && self.protection.key != MKey(0) && self.protection.is_own(smp.m_key());
        if get && self.refuses(smp.m_key()) {
            return None;
        }
        if right_key && self.has(Fault::CountsGoodKey) {
            self.protection.count(1);
        }
        let counts_own = self.has(Fault::CountsOwnKey) && self.protection.bits >= 2;
        if right_key && counts_own && self.protection.violations == 0 {
            self.protection.count(1);
        }
        let mut status = Status::OK;
        if !get {
            let wanted = PortInfo::from_data(*smp.data());
            match self.ports[number].set(&wanted) {
                Err(_) => status = Status::INVALID_FIELD,
                Ok(()) if managed => {
                    self.set_protection(&wanted);
                    if let Some(component) = value_of!(self.faults, Fault::Changes) {
                        self.ports[number].change(component);
                    }
                }
                Ok(()) => {}
            }
            if managed
                && self.has(Fault::RefusesLid0)
                && (wanted.lid() == 0 || wanted.master_sm_lid() == 0)
            {
                status = Status::INVALID_FIELD;
            }
        }
        let shown = if get && self.hides_key(smp.m_key()) {
            MKey(0)
        } else {
            self.protection.key
        };
        let shown = match self.has(Fault::ShowsOtherKey) && self.protection.violations > 0 {
            true => MKey(shown.0 ^ 1),
            false => shown,
        };
        let info = self
            .build_port_info(number, ingress, shown)
            .expect("each value fits its field");
        if right_key && self.has(Fault::ForgetsKey) {
            self.protection.key = MKey(0);
        }
        Some(Reply(status, *info.data()))
    }

    /// Returns the index of the port that a modifier of PortInfo names.
    fn port_number(&self, ingress: u8, modifier: u32) -> Option<usize> {
        let number = match (modifier, self.config.kind) {
            (0, NodeKind::ChannelAdapter) => ingress.into(),
            (number, _) => usize::try_from(number).ok()?,
        };
        (self.managed_port()..self.ports.len())
            .contains(&number)
            .then_some(number)
    }

    /// M_Key, protect bits, lease and violations of a switch belong to port 0 (14.2.4); its other
    /// ports show none.
    fn build_port_info(
        &self,
        number: usize,
        ingress: u8,
        shown: MKey,
    ) -> Result<PortInfo, FieldError> {
        let mut info = self.ports[number].info();
        info.set_local_port_number(ingress)?;
        for fault in &self.faults {
            if let Fault::RespTimeValue(value) = fault {
                info.set_response_time_value(*value)?;
            }
        }
        if number == self.managed_port() {
            info.set_m_key(shown)?;
            info.set_m_key_lease_period(self.protection.lease_period)?;
            info.set_m_key_protect_bits(self.protection.bits)?;
            let violations = match self.has(Fault::ShowsOneViolation) {
                true => 1,
                false => self.protection.violations,
            };
            info.set_m_key_violations(violations)?;
        }
        Ok(info)
    }

    /// True if a fault suppresses the response to a Get with `key` that the node should answer.
    fn refuses(&self, key: MKey) -> bool {
        let protection = &self.protection;
        if protection.key == MKey(0) {
            return false;
        }
        match (protection.is_own(key), protection.bits) {
            (true, 2..) => {
                self.has(Fault::RefusesItsKey)
                    || protection.violations > 0 && self.has(Fault::LocksOut)
            }
            (false, 0 | 1) => self.has(Fault::RefusesOtherKey),
            _ => false,
        }
    }

    /// True if the response to a Get with `key` hides the M_Key.
    fn hides_key(&self, key: MKey) -> bool {
        let hides = match self.protection.bits {
            0 => self.has(Fault::HidesKey),
            1 => !self.has(Fault::ShowsKey),
            _ => false,
        };
        hides && !self.protection.is_own(key)
    }

    fn set_protection(&mut self, wanted: &PortInfo) {
        let key = wanted.m_key();
        let kept = if self.has(Fault::IgnoresKeySet) {
            true
        } else if key == MKey(0) {
            self.has(Fault::KeepsKey)
        } else {
            *self.first_key.get_or_insert(key) != key && self.has(Fault::OneKey)
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
}
