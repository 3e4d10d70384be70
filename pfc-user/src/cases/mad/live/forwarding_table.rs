//! C14_024_10_01, step by step.

use ib_mad::attr::{Attribute, NodeInfo, NodeType, SwitchInfo};
use ib_mad::mad::{AttributeId, MKey, Method, Status};

use super::session::{Session, Stop, TRIES};
use crate::driver::mad::m_key;
use crate::evidence::mad::Purpose;

/// Attribute modifiers of LinearForwardingTable: 48 K LIDs in blocks of 64.
pub(in crate::cases::mad) const BLOCKS: u32 = 768;

pub(super) fn run(session: &mut Session<'_, '_>) -> Result<(), Stop> {
    let Some(contact) = session.contact()? else {
        return Ok(());
    };
    let current = MKey(session.plan.m_key_current);
    session.announce("NodeInfo and SwitchInfo");
    match info::<NodeInfo>(session, Purpose::NodeInfo, current)? {
        Some(node) if node.node_type() == NodeType::Switch => {}
        _ => return Ok(()),
    }
    match info::<SwitchInfo>(session, Purpose::SwitchInfo, current)? {
        Some(switch) if switch.linear_fdb_cap() == 0 => {}
        _ => return Ok(()),
    }
    if m_key::is_another(&contact.port, current) {
        // Each Set would be a violation, and none would be answered.
        return Ok(());
    }
    session.announce("Set of blocks 0 to 767");
    blocks(session, Purpose::SetBlock, Method::SET, current)?;
    session.announce("Get of blocks 0 to 767");
    blocks(session, Purpose::GetBlock, Method::GET, current)
}

fn info<A: Attribute>(session: &mut Session<'_, '_>, purpose: Purpose, key: MKey) -> Result<Option<A>, Stop> {
    let request = session.request(Method::GET, A::ID, 0);
    let Some(answer) = session.ask(purpose, &request, [key; TRIES])? else {
        session.is_alive(AttributeId::PORT_INFO, key)?;
        return Ok(None);
    };
    Ok((answer.status() == Status::OK).then(|| answer.decode().ok()).flatten())
}

/// Ends with the first block that is not answered: hundreds of time-outs would say no more.
fn blocks(session: &mut Session<'_, '_>, purpose: Purpose, method: Method, key: MKey) -> Result<(), Stop> {
    for block in 0..BLOCKS {
        let mut request = session.request(method, AttributeId::LINEAR_FORWARDING_TABLE, block);
        if method == Method::SET {
            // No entry leads to a port: nothing is forwarded where it should not be, even if the DUT stores it. Not 0, so that
            // the Gets show it if it does.
            request.data_mut().fill(0xff);
        }
        if session.ask(purpose, &request, [key; TRIES])?.is_none() {
            return session.is_alive(AttributeId::PORT_INFO, key);
        }
    }
    Ok(())
}
