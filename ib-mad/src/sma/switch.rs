//! Tables of a switch: SwitchInfo (14.2.5.4), LinearForwardingTable (14.2.5.11) and RandomForwardingTable (14.2.5.12).

use super::node::Reply;
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
    info: [u8; DATA],
    linear: Vec<u8>,
    random: Vec<u8>,
}

impl Switch {
    pub(super) fn new(linear_cap: u16, random_cap: u16) -> Self {
        let mut info = [0; DATA];
        info[0..2].copy_from_slice(&linear_cap.to_be_bytes());
        info[2..4].copy_from_slice(&random_cap.to_be_bytes());
        // DefaultPort and the two default multicast ports: none.
        info[8..11].fill(NO_PORT);
        Self {
            info,
            linear: vec![NO_PORT; usize::from(linear_cap).min(UNICAST_LIDS)],
            random: vec![0; usize::from(random_cap).min(UNICAST_LIDS) * RANDOM_ENTRY],
        }
    }

    pub(super) fn info(&mut self, smp: &Smp) -> Reply {
        if smp.modifier() != 0 {
            return Reply { status: Status::INVALID_FIELD, data: self.info };
        }
        if smp.method() == Method::SET {
            let set = smp.data();
            let top = usize::from(u16::from_be_bytes([set[6], set[7]]));
            if top != 0 && top >= self.linear.len() {
                return Reply { status: Status::INVALID_FIELD, data: self.info };
            }
            // LinearFDBTop, DefaultPort, the two default multicast ports; LifeTimeValue; MulticastFDBTop.
            self.info[6..11].copy_from_slice(&set[6..11]);
            self.info[11] = self.info[11] & 0x07 | set[11] & 0xf8;
            if set[11] & 0x04 != 0 {
                // PortStateChange is cleared by writing it.
                self.info[11] &= !0x04;
            }
            self.info[18..20].copy_from_slice(&set[18..20]);
        }
        Reply { status: Status::OK, data: self.info }
    }

    pub(super) fn linear(&mut self, smp: &Smp) -> Reply {
        block(&mut self.linear, smp)
    }

    pub(super) fn random(&mut self, smp: &Smp) -> Reply {
        block(&mut self.random, smp)
    }
}

/// The block of `table` that the modifier names. There is none beyond the table's capacity, which leaves a table of capacity 0
/// without any: an invalid modifier.
fn block(table: &mut [u8], smp: &Smp) -> Reply {
    let start = usize::try_from(smp.modifier()).ok().and_then(|block| block.checked_mul(DATA));
    let Some(rest) = start.and_then(|start| table.get_mut(start..)).filter(|rest| !rest.is_empty()) else {
        return Reply { status: Status::INVALID_FIELD, data: [0; DATA] };
    };
    let length = rest.len().min(DATA);
    let entries = &mut rest[..length];
    if smp.method() == Method::SET {
        entries.copy_from_slice(&smp.data()[..length]);
    }
    let mut data = [0; DATA];
    data[..length].copy_from_slice(entries);
    Reply { status: Status::OK, data }
}
