//! The speed of a port, and a line rate that the testbed says in its place.

use pfc_ebpf::units::LineRate;

use super::{Item, command, ok, problem, unknown};
use crate::cases::pfc::feasibility::pauses_too_short;
use crate::evidence::preflight::{Facts, Port, Preflight, Role};
use crate::nic;

fn own_speed(facts: &Facts) -> Option<u64> {
    nic::own_speed(facts.kind.as_deref(), facts.speed)
}

/// The reason why a testbed's line rate cannot be used on a port of that speed; `None` if it can.
pub fn wrong_line_rate(interface: &str, speed: Option<u64>, rate: LineRate) -> Option<String> {
    let speed = speed.filter(|speed| rate.bits_per_second() != *speed)?;
    let word = if rate.bits_per_second() > speed {
        "above"
    } else {
        "below"
    };
    Some(format!(
        "line_rate {rate} is {word} the speed of {interface}, {} Mbit/s; without line_rate the \
         link's speed is taken, and limits.load says which share of it to send",
        speed / 1_000_000
    ))
}

/// The item where a port has no speed that means something.
fn speed_by_testbed(port: &Port, found: String) -> Item {
    match port.wanted.line_rate {
        Some(rate) => ok(format!("{found}; {} by the testbed", in_mbits(rate))),
        None if port.role == Role::Rc => ok(found),
        None => problem(
            found,
            "one by the testbed",
            "set line_rate under [ports] in the testbed",
        ),
    }
}

fn in_mbits(speed: u64) -> String {
    format!("{} Mbit/s", speed / 1_000_000)
}

pub(super) fn speed(port: &Port, preflight: &Preflight) -> Item {
    let facts = &port.facts;
    if let Some(kind) = &facts.kind {
        return speed_by_testbed(port, format!("a {kind} has none of its own"));
    }
    let Some(speed) = own_speed(facts) else {
        if facts.carrier {
            return speed_by_testbed(port, "the driver does not tell".to_owned());
        }
        return unknown(
            "not known without carrier",
            "the speed of the other port",
            "plug in the cable, or see `ethtool`",
        );
    };
    let asked = port.wanted.line_rate.map(LineRate::from_bits_per_second);
    if let Some(Ok(asked)) = asked
        && let Some(wrong) = wrong_line_rate(&facts.interface, Some(speed), asked)
    {
        let mend = "take line_rate out of [ports] in the testbed";
        return problem(wrong, "none by the testbed, or this one", mend);
    }
    let others = preflight.ports.iter();
    let others = others.filter(|other| other.role.is_of_pfc() && port.role.is_of_pfc());
    let mut speeds = others.filter_map(|other| own_speed(&other.facts));
    let found = in_mbits(speed);
    let Some(other) = speeds.find(|other| *other != speed) else {
        return ok(found);
    };
    let expected = format!("that of the other port, {}", in_mbits(other));
    let option = format!("speed {}", other / 1_000_000);
    problem(found, expected, command(facts, "ethtool -s", option))
}

/// The item of a port that is too fast for its limits; `None` where it is not.
pub(super) fn pause_time(port: &Port) -> Option<Item> {
    let rate = port.wanted.line_rate.or_else(|| own_speed(&port.facts))?;
    let rate = LineRate::from_bits_per_second(rate).ok()?;
    let max_response = port.wanted.max_response?;
    let found = pauses_too_short(rate, max_response)?;
    let expected = "at least twice limits.max_response";
    Some(problem(found.reason, expected, found.remedy))
}
