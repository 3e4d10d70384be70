//! C14_024_10_01, step by step.

use ib_mad::attr::{Attribute, NodeInfo, NodeType, SwitchInfo};
use ib_mad::mad::{AttributeId, Method};

use crate::cases::mad::session::{Session, Stop};
use crate::evidence::mad::Purpose;
use crate::m_key;

/// Attribute modifiers of LinearForwardingTable: 48 K LIDs in blocks of 64.
pub(super) const BLOCKS: u32 = 768;

pub(super) fn run(session: &mut Session<'_, '_>) -> Result<(), Stop> {
    let Some(port) = session.contact()? else {
        return Ok(());
    };
    let current = session.current();
    session.announce("NodeInfo and SwitchInfo");
    match info::<NodeInfo>(session, Purpose::NodeInfo)? {
        Some(node) if node.node_type() == NodeType::Switch => {
            session.is_same_node(Some(node.node_guid()))?;
        }
        _ => return Ok(()),
    }
    match info::<SwitchInfo>(session, Purpose::SwitchInfo)? {
        Some(switch) if switch.linear_fdb_cap() == 0 => {}
        _ => return Ok(()),
    }
    if m_key::is_another(&port, current) {
        // Each Set would be a violation, and none would be answered.
        return Ok(());
    }
    let is_hidden = m_key::may_be_another(&port, current);
    if is_hidden && port.m_key_lease_period() != 0 {
        // One Set with a wrong key would start the timer that ends the protection.
        return Ok(());
    }
    session.announce("Set of blocks 0 to 767");
    if !blocks(session, Purpose::SetBlock, Method::SET, is_hidden)? && is_hidden {
        return Ok(());
    }
    session.announce("Get of blocks 0 to 767");
    blocks(session, Purpose::GetBlock, Method::GET, false).map(drop)
}

fn info<A: Attribute>(session: &mut Session<'_, '_>, purpose: Purpose) -> Result<Option<A>, Stop> {
    let answer = session.get(purpose, A::ID, session.current())?;
    if answer.is_none() {
        session.is_alive(AttributeId::PORT_INFO)?;
    }
    Ok(answer.and_then(|answer| answer.granted()))
}

/// True if all are answered. Ends with the first block that is not: hundreds of time-outs would say
/// no more. Where the DUT `may_refuse` the key, the first is sent once; its answer shows that the
/// key is good.
fn blocks(
    session: &mut Session<'_, '_>,
    purpose: Purpose,
    method: Method,
    may_refuse: bool,
) -> Result<bool, Stop> {
    let key = session.current();
    for block in 0..BLOCKS {
        let mut request = session.request(method, AttributeId::LINEAR_FORWARDING_TABLE, block);
        if method == Method::SET {
            // No entry leads to a port: nothing is forwarded where it should not be, even if the
            // DUT stores it. Not 0, so that the Gets show it if it does.
            request.data_mut().fill(0xff);
        }
        let answer = match may_refuse && block == 0 {
            true => session.ask_warily(purpose, &request, key)?,
            false => session.ask(purpose, &request, key)?,
        };
        if answer.is_none() {
            session.is_alive(AttributeId::PORT_INFO)?;
            return Ok(false);
        }
    }
    Ok(true)
}
