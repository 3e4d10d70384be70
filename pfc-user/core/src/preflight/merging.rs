//! Offloads that merge frames before the program sees them.

use super::{Item, State, command, feature, in_driver, named, ok, to_set, unknown};
use crate::evidence::preflight::{Port, SelfTest};
use crate::nic;
use crate::nic::Feature;

pub(super) fn merging(port: &Port) -> Item {
    const WHAT: &str = "gro, lro";
    let facts = &port.facts;
    let on = |which| matches!(feature(facts, which), Some((true, _)));
    for hardware in Feature::MERGING {
        if on(hardware) && merges_with_program(port, hardware) {
            return to_set(
                facts,
                WHAT,
                hardware,
                false,
                "the device merges frames before the program sees them",
            );
        }
    }
    let item = merging_in_stack(port, on(Feature::Gro));
    let hardware = Feature::MERGING.into_iter().filter(|which| on(*which));
    let off: Vec<_> = hardware.map(Feature::name).collect();
    if off.is_empty() || item.state != State::Ok {
        return item;
    }
    let off = off.join(", ");
    ok(
        WHAT,
        format!("{off}: on, and off while the program is attached"),
    )
}

/// True if the offload also merges frames while the program is attached.
fn merges_with_program(port: &Port, hardware: Feature) -> bool {
    let facts = &port.facts;
    if let Some(fact) = named(&facts.features_with_program, hardware) {
        return fact.on;
    }
    // A record of before this was looked at: nothing turned it off.
    if matches!(port.self_test, SelfTest::Done { .. }) {
        return true;
    }
    // Not tried: a run turns it off where the driver lets it, and some drivers do it themselves.
    let (_, fixed) = feature(facts, hardware).unwrap_or((true, true));
    let stops = nic::of(&facts.driver.name).stops_merging;
    fixed && !(stops && in_driver(port) == Some(true))
}

fn merging_in_stack(port: &Port, gro: bool) -> Item {
    const WHAT: &str = "gro, lro";
    let facts = &port.facts;
    match (gro, in_driver(port)) {
        (true, Some(false)) => to_set(
            facts,
            WHAT,
            Feature::Gro,
            false,
            "a program in the stack (skb) sees merged frames",
        ),
        (true, None) => {
            let mend = command(facts, &format!("ethtool -K {} gro off", facts.interface));
            unknown(
                WHAT,
                "gro is on, and it is not known whether it comes before the program",
                "off",
                mend,
            )
            .fixed_by(Feature::Gro, false)
        }
        (true, Some(true)) => ok(
            WHAT,
            "gro is on, behind a program in the driver; lro is off",
        ),
        (false, _) => ok(WHAT, "off"),
    }
}
