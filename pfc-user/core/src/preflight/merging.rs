//! Offloads that merge frames before the program sees them.

use super::{Item, State, command, feature, in_driver, named, ok, to_set, unknown};
use crate::evidence::preflight::{Port, SelfTest};
use crate::nic::{self, Feature};

pub(super) fn merging(port: &Port) -> Item {
    let facts = &port.facts;
    let on = |which| matches!(feature(facts, which), Some((true, _)));
    for hardware in Feature::MERGING {
        if on(hardware) && merges_with_program(port, hardware) {
            let why = "the device merges frames before the program sees them";
            return to_set(facts, hardware, false, why);
        }
    }
    let item = merging_in_stack(port, on(Feature::Gro));
    let hardware = Feature::MERGING.into_iter().filter(|which| on(*which));
    let off: Vec<_> = hardware.map(Feature::name).collect();
    if off.is_empty() || item.state != State::Ok {
        return item;
    }
    let off = off.join(", ");
    ok(format!("{off}: on, and off while the program is attached"))
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
    let facts = &port.facts;
    match (gro, in_driver(port)) {
        (true, Some(false)) => {
            let why = "a program in the stack (skb) sees merged frames";
            to_set(facts, Feature::Gro, false, why)
        }
        (true, None) => {
            let found = "gro is on, and it is not known whether it comes before the program";
            let mend = command(facts, "ethtool -K", "gro off");
            unknown(found, "off", mend).fixed_by(Feature::Gro, false)
        }
        (true, Some(true)) => ok("gro is on, behind a program in the driver; lro is off"),
        (false, _) => ok("off"),
    }
}
