//! PAUSE and PFC frames at a port: its own use of them, whether those that come in are seen, and
//! whether those of the tester leave.

use super::{CABLE, Item, command, feature, ok, problem, to_set, unknown};
use crate::evidence::preflight::{Facts, Port, Preflight, Role, SelfTest};
use crate::nic::{self, Feature, Receives};

pub(super) fn flow_control(port: &Port) -> Item {
    let Some(pause) = port.facts.pause else {
        return ok("the driver has none");
    };
    let word = |on| if on { "on" } else { "off" };
    let mut found = format!("rx {}, tx {}", word(pause.receives), word(pause.sends));
    for (what, count) in [
        ("received", pause.frames.received),
        ("sent", pause.frames.sent),
    ] {
        found.extend(count.map(|count| format!(", {count} {what}")));
    }
    if port.role == Role::Rc || !(pause.receives || pause.sends) {
        return ok(found);
    }
    let options = if pause.autonegotiated {
        "autoneg off rx off tx off"
    } else {
        "rx off tx off"
    };
    problem(
        found,
        "rx off, tx off: the port itself must neither obey nor send pause frames",
        command(&port.facts, "ethtool -A", options),
    )
}

pub(super) fn pfc(port: &Port) -> Item {
    let facts = &port.facts;
    let Some(pfc) = facts.pfc else {
        return ok("the driver has none, or does not tell");
    };
    let priorities: Vec<String> = (0..8)
        .filter(|class| pfc.enabled >> class & 1 != 0)
        .map(|class| class.to_string())
        .collect();
    let sum = |counts: [u64; 8]| counts.into_iter().fold(0, u64::saturating_add);
    let (received, sent) = (sum(pfc.indications), sum(pfc.requests));
    let on = if priorities.is_empty() {
        "off".to_owned()
    } else {
        format!("on for {}", priorities.join(", "))
    };
    let found = format!("{on}; {received} received, {sent} sent");
    let counts_with_pfc_alone = nic::of(&facts.driver.name).counts_with_pfc_alone;
    let set = |options| command(facts, "dcb pfc set dev", options);
    match port.role {
        Role::Tx if counts_with_pfc_alone && pfc.enabled != 0xff && !seen_by_program(port) => {
            unknown(
                found,
                "on for all: only then does this driver count PFC, which its MAC keeps from the \
                 program",
                set("prio-pfc all:on"),
            )
        }
        Role::Tx if counts_with_pfc_alone => ok(found),
        Role::Tx | Role::Rx if pfc.enabled != 0 => problem(
            found,
            "off: the port itself must neither obey nor send PFC",
            set("prio-pfc all:off"),
        ),
        _ => ok(found),
    }
}

pub(super) fn seen_by_program(port: &Port) -> bool {
    matches!(port.self_test, SelfTest::Done { sent, seen, .. } if seen == sent)
}

pub(super) fn received(port: &Port) -> Item {
    match (by_self_test(&port.self_test), &port.pfc_visible) {
        (Ok(item), _) => item,
        (Err(_), Some(source)) => ok(source),
        (Err(why_not), None) => by_driver(port.role, &port.facts, &why_not),
    }
}

/// The mending of a link in software on which a DUT's PFC was not shown to arrive.
const DECLARE: &str = "declare `facts.direct = true` if the other end of the veth is the DUT's own";

/// Advice that spares the cable the next time.
const KEEP: &str = "say `facts.pfc_visible = true` in the testbed, and it is known with a DUT \
                    between too";

/// The mending of a port that may pass pause frames on: the cable shows it once for all.
const CABLE_ONCE: &str = "cable the ports tx and rx together, without a DUT, and run `validator \
                          check` again: its self-test then shows it, and `facts.pfc_visible = \
                          true` in the testbed keeps it";

/// Result of the self-test, or the reason why it has none.
fn by_self_test(self_test: &SelfTest) -> Result<Item, String> {
    let (own_wire, sent, seen, mac) = match self_test {
        SelfTest::Done {
            own_wire,
            sent,
            seen,
            mac,
            ..
        } => (*own_wire, *sent, *seen, mac),
        SelfTest::NotDone { reason } | SelfTest::Refused { reason } => {
            return Err(format!("no self-test: {reason}"));
        }
    };
    let reached = format!("{seen} of {sent} of the self-test reached the program");
    if seen >= sent && own_wire {
        return Ok(ok(reached));
    }
    if seen >= sent {
        return Ok(ok(format!("{reached}; {KEEP}")));
    }
    if own_wire {
        let expected = "all of them: the wire is the tester's own";
        return Ok(problem(reached, expected, ""));
    }
    if !mac.is_empty() {
        let counters = mac.iter().map(|(name, rise)| format!("{name} +{rise}"));
        let counters = counters.collect::<Vec<_>>().join(", ");
        return Ok(ok(format!(
            "{sent} of the self-test reached the MAC's counters alone: {counters}"
        )));
    }
    if seen == 0 {
        return Err(format!(
            "none of {sent} of the self-test came: a DUT between the ports rightly eats them"
        ));
    }
    Ok(unknown(
        reached,
        "all of them, or none where a DUT between the ports eats them",
        "look for what loses frames on the way between the ports",
    ))
}

/// The item by the table of drivers, where no self-test decides.
fn by_driver(role: Role, facts: &Facts, why_not: &str) -> Item {
    let driver = &facts.driver.name;
    let rx_all = matches!(feature(facts, Feature::RxAll), Some((true, _)));
    let mut expected = "they reach the program, or at least the MAC's counters";
    let mut mend = CABLE_ONCE;
    let known = match nic::of(driver).receives {
        Receives::WithRxAll if !rx_all => {
            let why = "else its MAC keeps pause frames for itself";
            return to_set(facts, Feature::RxAll, true, why);
        }
        Receives::PassesOn if role != Role::Tx => {
            return ok(format!("{why_not}; {driver} passes them on"));
        }
        Receives::WithRxAll => "rx-all is on, which passes them on".to_owned(),
        Receives::PassesOn => {
            mend = DECLARE;
            format!("{driver} passes on what its other end sends, where a bridge may keep them")
        }
        Receives::Keeps => {
            expected = "the MAC's counters count them; they decide what they can";
            mend = CABLE;
            format!("the MAC of {driver} keeps them from the program")
        }
        Receives::ByHost => format!(
            "{driver} passes on what its host hands over, whose bridge or MAC may keep them"
        ),
        Receives::Unknown => "most MACs keep them from the program".to_owned(),
    };
    unknown(format!("{why_not}; {known}"), expected, mend)
}

/// True if frames of the self-test left the rx port: they came to the tx port's program, which
/// knows them by their source. A MAC's counter may have risen by frames of a DUT.
fn left(preflight: &Preflight) -> bool {
    let came = |port: &Port| match &port.self_test {
        // On a wire of the tester's own the other end sends, and not this port.
        SelfTest::Done {
            own_wire: false,
            seen,
            ..
        } => *seen > 0,
        _ => false,
    };
    let mut tx = preflight.ports.iter().filter(|port| port.role == Role::Tx);
    tx.any(came)
}

pub(super) fn sent(port: &Port, preflight: &Preflight) -> Item {
    const EXPECTED: &str = "they leave: the storm is sent here";
    let driver = &port.facts.driver.name;
    if left(preflight) {
        return ok("those of the self-test reached the tx port");
    }
    match nic::find(driver) {
        Some(nic) if !nic.sends => problem(
            format!("a filter of {driver} drops pause frames that software sends"),
            EXPECTED,
            "take a port of another NIC as ports.rx; this one can be ports.tx",
        ),
        Some(_) => ok(format!("{driver} is not known to filter them")),
        None => unknown("not known", EXPECTED, CABLE),
    }
}

pub(super) fn counters(port: &Port) -> Item {
    let receives = nic::of(&port.facts.driver.name).receives;
    match port.facts.mac_counters.as_slice() {
        [] if seen_by_program(port) => {
            ok("none, and none is needed: the program sees pause frames")
        }
        [] if matches!(receives, Receives::PassesOn | Receives::ByHost) => {
            ok("none: there is no MAC")
        }
        [] => unknown("none known", "some that count PAUSE and PFC", CABLE),
        names @ [first, ..] => ok(format!("{}, such as {first}", names.len())),
    }
}
