//! Attributes that only a switch has: SwitchInfo (14.2.5.4), LinearForwardingTable (14.2.5.10) and
//! RandomForwardingTable (14.2.5.11).

use super::reply::{Invalid, Reply, without_modifier};
use crate::attr::{Attribute, FieldError, SwitchInfo};
use crate::mad::{Method, Status};
use crate::smp::{DATA, Smp};

/// Unicast LIDs end here (4.1.3).
const UNICAST_LIDS: usize = 0xc000;
/// An entry that forwards to no port.
const NO_PORT: u8 = 0xff;
/// Octets of an entry of the random forwarding table.
const RANDOM_ENTRY: usize = 4;

#[derive(Clone, Debug)]
pub(super) struct Switch {
    info: SwitchInfo,
    pub(super) linear: Vec<u8>,
    pub(super) random: Vec<u8>,
}

impl Switch {
    pub(super) fn new(linear_cap: u16, random_cap: u16) -> Self {
        Self {
            info: defaults(linear_cap, random_cap).expect("each default fits its field"),
            linear: vec![NO_PORT; usize::from(linear_cap).min(UNICAST_LIDS)],
            random: vec![0; usize::from(random_cap).min(UNICAST_LIDS) * RANDOM_ENTRY],
        }
    }

    pub(super) fn info(&mut self, smp: &Smp) -> Reply {
        let mut status = without_modifier(smp);
        if smp.method() == Method::SET && status == Status::OK {
            match self.changed(&SwitchInfo::from_data(*smp.data())) {
                Ok(info) => self.info = info,
                Err(Invalid) => status = Status::INVALID_FIELD,
            }
        }
        Reply(status, *self.info.data())
    }

    /// Returns SwitchInfo with the writable fields of `wanted`.
    fn changed(&self, wanted: &SwitchInfo) -> Result<SwitchInfo, Invalid> {
        let mut info = self.info;
        let top = usize::from(wanted.linear_fdb_top());
        if top != 0 && top >= self.linear.len() {
            return Err(Invalid);
        }
        info.set_linear_fdb_top(wanted.linear_fdb_top())?;
        info.set_default_port(wanted.default_port())?;
        info.set_default_multicast_primary_port(wanted.default_multicast_primary_port())?;
        info.set_default_multicast_not_primary_port(wanted.default_multicast_not_primary_port())?;
        info.set_life_time_value(wanted.life_time_value())?;
        if wanted.port_state_change() {
            // Writing 1 clears it.
            info.set_port_state_change(false)?;
        }
        Ok(info)
    }
}

fn defaults(linear_cap: u16, random_cap: u16) -> Result<SwitchInfo, FieldError> {
    let mut info = SwitchInfo::default();
    info.set_linear_fdb_cap(linear_cap)?;
    info.set_random_fdb_cap(random_cap)?;
    info.set_default_port(NO_PORT)?;
    info.set_default_multicast_primary_port(NO_PORT)?;
    info.set_default_multicast_not_primary_port(NO_PORT)?;
    info.set_lids_per_port(1)?;
    Ok(info)
}

/// Reads or writes the block of `table` that the modifier names. A block beyond the table's
/// capacity is an invalid modifier; a table of capacity 0 has no block at all.
pub(super) fn block(table: &mut [u8], smp: &Smp) -> Reply {
    let start = usize::try_from(smp.modifier())
        .ok()
        .and_then(|block| block.checked_mul(DATA));
    let Some(rest) = start
        .and_then(|start| table.get_mut(start..))
        .filter(|rest| !rest.is_empty())
    else {
        return Reply::INVALID;
    };
    let length = rest.len().min(DATA);
    let entries = &mut rest[..length];
    if smp.method() == Method::SET {
        entries.copy_from_slice(&smp.data()[..length]);
    }
    let mut data = [0; DATA];
    data[..length].copy_from_slice(entries);
    Reply(Status::OK, data)
}
