//! Evidence that contradicts its plan allows no verdict: each request has to be what its purpose
//! says.

use ib_mad::attr::{Attribute, PortInfo};
use ib_mad::mad::{AttributeId, MKey, Method};

use super::decoded::{Asked, View};
use crate::evidence::mad::{MadEvidence, Purpose};
use crate::m_key::Protection;

/// The view of the repetition of that index among all of the case, if it makes sense.
pub fn view<'e>(all: &[&'e MadEvidence], index: usize) -> Result<View<'e>, String> {
    let view = View::new(all, index)?;
    check(&view)?;
    Ok(view)
}

fn check(view: &View<'_>) -> Result<(), String> {
    let plan = &view.e.plan;
    if plan.m_key_dut == 0 || plan.m_key_other == 0 || plan.m_key_dut == plan.m_key_other {
        return Err("M_KEY_DUT and M_KEY_OTHER are to be neither 0 nor equal".into());
    }
    if let Some(bits @ 4..) = plan.stimulus.protect_bits() {
        return Err(format!("M_KeyProtectBits are 0 to 3, not {bits}"));
    }
    if let Some(bit) = plan.key_bits.iter().find(|bit| **bit > 63) {
        return Err(format!("bits of an M_Key are 0 to 63, not {bit}"));
    }
    for asked in &view.asked {
        request(view, asked).map_err(|wrong| {
            format!(
                "the request {:?} at {} ns {wrong}",
                asked.purpose, asked.sent
            )
        })?;
    }
    for purpose in [Purpose::SetBlock, Purpose::GetBlock] {
        for (block, asking) in view.askings(purpose).iter().enumerate() {
            let modifier = asking.last().request.modifier();
            if modifier as usize != block {
                return Err(format!(
                    "{purpose:?} {block} was expected, found {modifier}"
                ));
            }
        }
    }
    Ok(())
}

fn request(view: &View<'_>, asked: &Asked) -> Result<(), String> {
    use Purpose::*;
    let (method, attribute) = match asked.purpose {
        TesterPort | DutPort | LinkPort | TimedPort | InForce | KeyShown | OwnKey | OtherKey
        | DutKey | ResetShown | Restored => (Method::GET, AttributeId::PORT_INFO),
        NodeInfo => (Method::GET, AttributeId::NODE_INFO),
        SwitchInfo => (Method::GET, AttributeId::SWITCH_INFO),
        SetBlock => (Method::SET, AttributeId::LINEAR_FORWARDING_TABLE),
        GetBlock => (Method::GET, AttributeId::LINEAR_FORWARDING_TABLE),
        KeySet | Reset | Restore => (Method::SET, AttributeId::PORT_INFO),
        Alive => (Method::GET, asked.request.attribute()),
    };
    if (asked.request.method(), asked.request.attribute()) != (method, attribute) {
        return Err(format!("is {}, not {method}({attribute})", asked.name()));
    }
    let modifier_is_free = matches!(asked.purpose, LinkPort | SetBlock | GetBlock);
    if asked.request.modifier() != 0 && !modifier_is_free {
        return Err(format!("has modifier {}, not 0", asked.request.modifier()));
    }
    let plan = &view.e.plan;
    let key = match asked.purpose {
        KeyShown | OwnKey | DutKey | ResetShown => Some(view.dut_key()),
        OtherKey => Some(MKey(plan.wrong_key(asked.attempt))),
        KeySet | InForce | Reset | Restore | Restored => None,
        _ => Some(view.current()),
    };
    if key.is_some_and(|key| key != asked.request.m_key()) {
        return Err(format!("carries M_Key {}", asked.request.m_key()));
    }
    set(view, asked)
}

/// A Set of PortInfo carries what its purpose says.
fn set(view: &View<'_>, asked: &Asked) -> Result<(), String> {
    let wanted = match (asked.purpose, view.e.plan.stimulus.protect_bits()) {
        (Purpose::KeySet, Some(protect_bits)) => Protection {
            m_key: view.dut_key(),
            protect_bits,
            lease_period: 0,
        },
        (Purpose::Reset, _) => Protection::NONE,
        (Purpose::Restore, _) => match view.e.original {
            Some(found) => found,
            None => return Err("restores what was never read".into()),
        },
        _ => return Ok(()),
    };
    let carried = PortInfo::from_data(*asked.request.data());
    if Protection::of(&carried) != wanted || carried.m_key_violations() != 0 {
        return Err(format!(
            "carries {}, violations {}",
            Protection::of(&carried),
            carried.m_key_violations()
        ));
    }
    Ok(())
}
