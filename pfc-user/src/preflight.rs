//! From the facts of a port to what is right with it, what is not, and what to type to mend it. Pure: stored facts give the same
//! again. What is known of a driver comes from [`crate::nic`].

use serde::Serialize;

use pfc_ebpf::units::LineRate;

use crate::driver::link::{Feature, XdpFeatures};
use crate::evidence::preflight::{Facts, Port, Preflight, Role, SelfTest};
use crate::nic::{self, Receives};

/// What is said of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Ok,
    /// It makes verdicts impossible.
    Problem,
    /// It cannot be told.
    Unknown,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Item {
    /// What.
    pub what: &'static str,
    /// What is said of it.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What it should be; empty where it is so.
    pub expected: String,
    /// What to type or do, where that is known.
    pub mend: String,
    /// What `--fix` does about it.
    pub fix: Option<Fix>,
}

/// An offload to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// Which.
    pub feature: Feature,
    /// Whether it is to be on.
    pub on: bool,
}

/// Smallest MTU that takes the plan's frames of 1024 octets: without FCS and Ethernet header.
const LEAST_MTU: u32 = 1006;
/// Above it many drivers refuse programs that do not take frames in pieces: what is left of a page of 4096 octets.
const LARGEST_MTU: u32 = 3498;

/// The items of each port, in the ports' order.
pub fn judge(preflight: &Preflight) -> Vec<Vec<Item>> {
    preflight
        .ports
        .iter()
        .map(|port| items(port, preflight))
        .collect()
}

/// The worst of all.
pub fn worst(preflight: &Preflight) -> State {
    let states: Vec<State> = judge(preflight)
        .iter()
        .flatten()
        .map(|item| item.state)
        .collect();
    [State::Problem, State::Unknown]
        .into_iter()
        .find(|state| states.contains(state))
        .unwrap_or(State::Ok)
}

fn items(port: &Port, preflight: &Preflight) -> Vec<Item> {
    let mut items = vec![
        driver(port),
        link(port),
        speed(port, preflight),
        mtu(port),
        queues(port),
        program(port),
        xdp(port),
    ];
    items.extend(vlan(port));
    items.extend([merging(port), flow_control(port), pfc(port)]);
    match port.role {
        Role::Tx => items.extend([received(port), counters(port)]),
        Role::Rx => items.push(sent(port, preflight)),
        Role::Rc => {}
    }
    items.extend([filters(port), rdma(port)]);
    items
}

fn ok(what: &'static str, found: impl Into<String>) -> Item {
    Item {
        what,
        state: State::Ok,
        found: found.into(),
        expected: String::new(),
        mend: String::new(),
        fix: None,
    }
}

fn not_ok(
    what: &'static str,
    state: State,
    found: impl Into<String>,
    expected: &str,
    mend: impl Into<String>,
) -> Item {
    Item {
        what,
        state,
        found: found.into(),
        expected: expected.into(),
        mend: mend.into(),
        fix: None,
    }
}

fn problem(
    what: &'static str,
    found: impl Into<String>,
    expected: &str,
    mend: impl Into<String>,
) -> Item {
    not_ok(what, State::Problem, found, expected, mend)
}

fn unknown(
    what: &'static str,
    found: impl Into<String>,
    expected: &str,
    mend: impl Into<String>,
) -> Item {
    not_ok(what, State::Unknown, found, expected, mend)
}

/// A command line for where the port is.
fn command(facts: &Facts, line: &str) -> String {
    facts.namespace.as_ref().map_or_else(
        || line.to_owned(),
        |namespace| format!("ip netns exec {namespace} {line}"),
    )
}

/// State of an offload; `None` where the kernel does not tell. And whether the driver holds it.
fn feature(facts: &Facts, feature: Feature) -> Option<(bool, bool)> {
    let fact = facts
        .features
        .iter()
        .find(|fact| Some(fact.name.as_str()) == feature.kernel_name())?;
    Some((fact.on, fact.fixed))
}

/// The item of an offload that has to be set.
fn to_set(facts: &Facts, what: &'static str, feature: Feature, on: bool, why: &str) -> Item {
    let (name, word) = (feature.name(), if on { "on" } else { "off" });
    let other = if on { "off" } else { "on" };
    let (_, fixed) = self::feature(facts, feature).unwrap_or((!on, true));
    if fixed {
        return problem(
            what,
            format!("{name} is {other}, and the driver holds it"),
            &format!("{word}: {why}"),
            "use a port of another NIC",
        );
    }
    let mend = command(
        facts,
        &format!(
            "ethtool -K {} {} {word}",
            facts.interface,
            feature.ethtool_name()
        ),
    );
    Item {
        fix: Some(Fix { feature, on }),
        ..problem(
            what,
            format!("{name} is {other}"),
            &format!("{word}: {why}"),
            mend,
        )
    }
}

const CABLE: &str = "cable the ports tx and rx together, without a DUT, and run `validator check` again: its self-test then shows it";

fn driver(port: &Port) -> Item {
    let driver = &port.facts.driver;
    let mut found = driver.name.clone();
    for (what, value) in [
        ("version", &driver.version),
        ("firmware", &driver.firmware),
        ("at", &driver.bus),
    ] {
        if !value.trim().is_empty() && value != "N/A" {
            found += &format!(", {what} {value}");
        }
    }
    if driver.name.is_empty() {
        return unknown(
            "driver",
            "the kernel names none",
            "a driver of which something is known",
            CABLE,
        );
    }
    match nic::find(&driver.name) {
        Some(_) => ok("driver", found),
        None if seen_by_program(port) => ok(
            "driver",
            format!("{found}; nothing is known of it but what the self-test shows"),
        ),
        None => unknown(
            "driver",
            found,
            "a driver of which it is known what its MAC does with pause frames",
            CABLE,
        ),
    }
}

fn link(port: &Port) -> Item {
    let Facts {
        interface,
        up,
        carrier,
        ..
    } = &port.facts;
    if !up {
        return problem(
            "link",
            "down",
            "up",
            command(&port.facts, &format!("ip link set dev {interface} up")),
        );
    }
    if !carrier {
        return problem(
            "link",
            "up, without carrier",
            "carrier",
            "plug in the cable, and set up the port at its other end",
        );
    }
    ok("link", "up, with carrier")
}

/// The speed that means something: of a software link none does.
fn real_speed(facts: &Facts) -> Option<u64> {
    facts.speed.filter(|_| facts.kind.is_none())
}

/// Why a line rate that a testbed says cannot be taken on a port of that speed, where it knows one.
pub fn wrong_line_rate(interface: &str, speed: Option<u64>, rate: LineRate) -> Option<String> {
    let speed = speed.filter(|speed| rate.bits_per_second() != *speed)?;
    let word = if rate.bits_per_second() > speed {
        "above"
    } else {
        "below"
    };
    Some(format!(
        "line_rate {rate} is {word} the speed of {interface}, {} Mbit/s; without line_rate the link's speed is taken, and limits.load says which share of it to send",
        speed / 1_000_000
    ))
}

/// The item where a port has no speed that means something.
fn speed_by_testbed(port: &Port, found: &str) -> Item {
    match port.wanted.line_rate {
        Some(rate) => ok(
            "speed",
            format!("{found}; {} Mbit/s by the testbed", rate / 1_000_000),
        ),
        None if port.role == Role::Rc => ok("speed", found),
        None => problem(
            "speed",
            found,
            "one by the testbed",
            "set line_rate under [ports] in the testbed",
        ),
    }
}

fn speed(port: &Port, preflight: &Preflight) -> Item {
    let facts = &port.facts;
    if let Some(kind) = &facts.kind {
        return speed_by_testbed(port, &format!("a {kind} has none of its own"));
    }
    let Some(speed) = real_speed(facts) else {
        if facts.carrier {
            return speed_by_testbed(port, "the driver does not tell");
        }
        return unknown(
            "speed",
            "not known without carrier",
            "the speed of the other port",
            "plug in the cable, or see `ethtool`",
        );
    };
    let asked = port.wanted.line_rate.map(LineRate::from_bits_per_second);
    if let Some(Ok(asked)) = asked
        && let Some(wrong) = wrong_line_rate(&facts.interface, Some(speed), asked)
    {
        return problem(
            "speed",
            wrong,
            "none by the testbed, or this one",
            "take line_rate out of [ports] in the testbed",
        );
    }
    let found = format!("{} Mbit/s", speed / 1_000_000);
    let others = preflight
        .ports
        .iter()
        .filter(|other| other.role != Role::Rc && port.role != Role::Rc);
    match others
        .filter_map(|other| real_speed(&other.facts))
        .find(|other| *other != speed)
    {
        Some(other) => {
            let expected = format!("that of the other port, {} Mbit/s", other / 1_000_000);
            problem(
                "speed",
                found,
                &expected,
                command(
                    facts,
                    &format!("ethtool -s {} speed {}", facts.interface, other / 1_000_000),
                ),
            )
        }
        None => ok("speed", found),
    }
}

fn mtu(port: &Port) -> Item {
    let Facts { interface, mtu, .. } = &port.facts;
    let set = |mtu| {
        command(
            &port.facts,
            &format!("ip link set dev {interface} mtu {mtu}"),
        )
    };
    if *mtu < LEAST_MTU {
        return problem(
            "mtu",
            mtu.to_string(),
            "at least 1006, for frames of 1024 octets",
            set(1500),
        );
    }
    // A program that is attached, or was by the self-test, shows that the driver takes it.
    let attached = matches!(port.self_test, SelfTest::Done { .. });
    if *mtu > LARGEST_MTU && port.role != Role::Rc && !attached {
        return unknown(
            "mtu",
            mtu.to_string(),
            "at most 3498: above it many drivers refuse XDP programs",
            set(1500),
        );
    }
    ok("mtu", mtu.to_string())
}

fn queues(port: &Port) -> Item {
    match port.facts.queues {
        Some(queues) => ok("queues", format!("{} rx, {} tx", queues.rx, queues.tx)),
        None => ok("queues", "the driver does not tell"),
    }
}

fn program(port: &Port) -> Item {
    match &port.facts.xdp_attached {
        None => ok("xdp program", "none attached"),
        Some(program) => {
            let mend = command(
                &port.facts,
                &format!("ip link set dev {} xdp off", port.facts.interface),
            );
            problem(
                "xdp program",
                format!("{program} is attached, and is not replaced"),
                "none",
                mend,
            )
        }
    }
}

/// Whether frames come to the program before anything merges them; `None` where that cannot be told.
fn in_driver(port: &Port) -> Option<bool> {
    match (
        &port.self_test,
        port.wanted.xdp.as_str(),
        port.facts.xdp_features,
    ) {
        (SelfTest::Done { xdp_mode, .. }, ..) => Some(xdp_mode == "driver"),
        (_, "skb", _) => Some(false),
        (_, "driver", _) => Some(true),
        (.., features) => features.map(|features| features.has(XdpFeatures::BASIC)),
    }
}

fn xdp(port: &Port) -> Item {
    let names = port
        .facts
        .xdp_features
        .map(|features| features.names().join(", "));
    let found = match names.as_deref() {
        None => "the kernel does not tell".to_owned(),
        Some("") => "none".to_owned(),
        Some(names) => names.to_owned(),
    };
    if let SelfTest::Done { xdp_mode, .. } = &port.self_test {
        return ok(
            "xdp features",
            format!("{found}; a program was attached in mode {xdp_mode}"),
        );
    }
    if let SelfTest::Refused { reason } = &port.self_test {
        return problem(
            "xdp features",
            format!("{found}; a program could not be attached: {reason}"),
            "a program can be attached",
            "",
        );
    }
    match (port.facts.xdp_features, port.wanted.xdp.as_str()) {
        (Some(features), "driver") if !features.has(XdpFeatures::BASIC) => problem(
            "xdp features",
            found,
            "basic, for ports.xdp = \"driver\"",
            "say ports.xdp = \"auto\" in the testbed: slower, in the stack",
        ),
        (Some(features), _) if !features.has(XdpFeatures::BASIC) => ok(
            "xdp features",
            format!("{found}: programs run in the stack (skb)"),
        ),
        (Some(_), _) => ok("xdp features", found),
        (None, _) => unknown(
            "xdp features",
            found,
            "basic",
            "run `validator check` as root, with links up: it attaches a program for its self-test",
        ),
    }
}

fn vlan(port: &Port) -> Option<Item> {
    if !port.wanted.tagged {
        return None;
    }
    Some(match feature(&port.facts, Feature::RxVlan) {
        Some((true, true)) => to_set(
            &port.facts,
            "vlan offload",
            Feature::RxVlan,
            false,
            "XDP has to see the priority tag",
        ),
        Some((true, false)) => ok(
            "vlan offload",
            "on; a run turns it off, and on again at its end",
        ),
        Some((false, _)) => ok("vlan offload", "off"),
        None => ok("vlan offload", "the kernel does not tell"),
    })
}

fn merging(port: &Port) -> Item {
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

/// Whether what is on merges frames also while the program is attached.
fn merges_with_program(port: &Port, hardware: Feature) -> bool {
    let facts = &port.facts;
    if let Some(fact) = facts
        .features_with_program
        .iter()
        .find(|fact| Some(fact.name.as_str()) == hardware.kernel_name())
    {
        return fact.on;
    }
    // A record of before this was looked at: nothing turned it off.
    if matches!(port.self_test, SelfTest::Done { .. }) {
        return true;
    }
    // Not tried: a run turns it off where the driver lets it, and some drivers do it themselves.
    let (_, fixed) = feature(facts, hardware).unwrap_or((true, true));
    let stops = nic::find(&facts.driver.name).is_some_and(|nic| nic.stops_merging);
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
            let item = unknown(
                WHAT,
                "gro is on, and it is not known whether it comes before the program",
                "off",
                mend,
            );
            Item {
                fix: Some(Fix {
                    feature: Feature::Gro,
                    on: false,
                }),
                ..item
            }
        }
        (true, Some(true)) => ok(
            WHAT,
            "gro is on, behind a program in the driver; lro is off",
        ),
        (false, _) => ok(WHAT, "off"),
    }
}

fn flow_control(port: &Port) -> Item {
    const WHAT: &str = "802.3x pause";
    let Some(pause) = port.facts.pause else {
        return ok(WHAT, "the driver has none");
    };
    let word = |on| if on { "on" } else { "off" };
    let counted =
        |(what, count): (&str, Option<u64>)| count.map(|count| format!(", {count} {what}"));
    let counts: String = [
        ("received", pause.frames.received),
        ("sent", pause.frames.sent),
    ]
    .into_iter()
    .filter_map(counted)
    .collect();
    let found = format!(
        "rx {}, tx {}{counts}",
        word(pause.receives),
        word(pause.sends)
    );
    if port.role == Role::Rc || !(pause.receives || pause.sends) {
        return ok(WHAT, found);
    }
    let autoneg = if pause.autonegotiated {
        "autoneg off "
    } else {
        ""
    };
    let mend = command(
        &port.facts,
        &format!("ethtool -A {} {autoneg}rx off tx off", port.facts.interface),
    );
    problem(
        WHAT,
        found,
        "rx off, tx off: the port itself must neither obey nor send pause frames",
        mend,
    )
}

fn pfc(port: &Port) -> Item {
    const WHAT: &str = "pfc of the port";
    let facts = &port.facts;
    let Some(pfc) = facts.pfc else {
        return ok(WHAT, "the driver has none, or does not tell");
    };
    let priorities: Vec<String> = (0..8)
        .filter(|class| pfc.enabled >> class & 1 != 0)
        .map(|class| class.to_string())
        .collect();
    let (received, sent) = (
        pfc.indications
            .iter()
            .fold(0, |sum: u64, n| sum.saturating_add(*n)),
        pfc.requests
            .iter()
            .fold(0, |sum: u64, n| sum.saturating_add(*n)),
    );
    let on = if priorities.is_empty() {
        "off".to_owned()
    } else {
        format!("on for {}", priorities.join(", "))
    };
    let found = format!("{on}; {received} received, {sent} sent");
    let counts_with_pfc_alone =
        nic::find(&facts.driver.name).is_some_and(|nic| nic.counts_with_pfc_alone);
    let set = |state| {
        command(
            facts,
            &format!("dcb pfc set dev {} prio-pfc all:{state}", facts.interface),
        )
    };
    match port.role {
        Role::Tx if counts_with_pfc_alone && pfc.enabled != 0xff && !seen_by_program(port) => {
            unknown(
                WHAT,
                found,
                "on for all: only then does this driver count PFC, which its MAC keeps from the program",
                set("on"),
            )
        }
        Role::Tx if counts_with_pfc_alone => ok(WHAT, found),
        Role::Tx | Role::Rx if pfc.enabled != 0 => problem(
            WHAT,
            found,
            "off: the port itself must neither obey nor send PFC",
            set("off"),
        ),
        _ => ok(WHAT, found),
    }
}

fn seen_by_program(port: &Port) -> bool {
    matches!(port.self_test, SelfTest::Done { sent, seen, .. } if seen == sent)
}

fn received(port: &Port) -> Item {
    const WHAT: &str = "pause frames in";
    const EXPECTED: &str = "they reach the program, or at least the MAC's counters";
    let facts = &port.facts;
    let receives = nic::find(&facts.driver.name).map_or(Receives::Unknown, |nic| nic.receives);
    let rx_all = matches!(feature(facts, Feature::RxAll), Some((true, _)));
    let why_not = match &port.self_test {
        SelfTest::Done { sent, seen, .. } if seen >= sent => {
            return ok(
                WHAT,
                format!("{seen} of {sent} of the self-test reached the program"),
            );
        }
        SelfTest::Done {
            sent,
            seen,
            own_wire: true,
            ..
        } => {
            return problem(
                WHAT,
                format!("{seen} of {sent} of the self-test reached the program"),
                "all of them: the wire is the tester's own",
                "",
            );
        }
        SelfTest::Done { mac, sent, .. } if !mac.is_empty() => {
            let counters: Vec<_> = mac
                .iter()
                .map(|(name, rise)| format!("{name} +{rise}"))
                .collect();
            return ok(
                WHAT,
                format!(
                    "{sent} of the self-test reached the MAC's counters alone: {}",
                    counters.join(", ")
                ),
            );
        }
        SelfTest::Done { sent, seen: 0, .. } => format!(
            "none of {sent} of the self-test came: a DUT between the ports rightly eats them"
        ),
        SelfTest::Done { sent, seen, .. } => {
            return unknown(
                WHAT,
                format!("{seen} of {sent} of the self-test reached the program"),
                "all of them, or none where a DUT between the ports eats them",
                "look for what loses frames on the way between the ports",
            );
        }
        SelfTest::NotDone { reason } | SelfTest::Refused { reason } => {
            format!("no self-test: {reason}")
        }
    };
    match receives {
        Receives::WithRxAll if !rx_all => to_set(
            facts,
            WHAT,
            Feature::RxAll,
            true,
            "else its MAC keeps pause frames for itself",
        ),
        Receives::WithRxAll => unknown(
            WHAT,
            format!("{why_not}; rx-all is on, which passes them on"),
            EXPECTED,
            CABLE,
        ),
        Receives::PassesOn => ok(
            WHAT,
            format!("{why_not}; {} passes them on", facts.driver.name),
        ),
        Receives::Keeps => {
            let found = format!(
                "{why_not}; the MAC of {} keeps them from the program",
                facts.driver.name
            );
            unknown(
                WHAT,
                found,
                "the MAC's counters count them; they decide what they can",
                CABLE,
            )
        }
        Receives::ByHost => unknown(
            WHAT,
            format!(
                "{why_not}; {} passes on what its host hands over, whose bridge or MAC may keep them",
                facts.driver.name
            ),
            EXPECTED,
            CABLE,
        ),
        Receives::Unknown => unknown(
            WHAT,
            format!("{why_not}; most MACs keep them from the program"),
            EXPECTED,
            CABLE,
        ),
    }
}

/// Whether frames of the self-test left the rx port: they came to the tx port's program, which knows
/// them by their source. A MAC's counter may have risen by frames of a DUT.
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

fn sent(port: &Port, preflight: &Preflight) -> Item {
    const WHAT: &str = "pause frames out";
    let driver = &port.facts.driver.name;
    if left(preflight) {
        return ok(WHAT, "those of the self-test reached the tx port");
    }
    match nic::find(driver) {
        Some(nic) if !nic.sends => problem(
            WHAT,
            format!("a filter of {driver} drops pause frames that software sends"),
            "they leave: the storm is sent here",
            "take a port of another NIC as ports.rx; this one can be ports.tx",
        ),
        Some(_) => ok(WHAT, format!("{driver} is not known to filter them")),
        None => unknown(
            WHAT,
            "not known",
            "they leave: the storm is sent here",
            CABLE,
        ),
    }
}

fn counters(port: &Port) -> Item {
    const WHAT: &str = "mac counters";
    let names = &port.facts.mac_counters;
    match (names.as_slice(), seen_by_program(port)) {
        ([], true) => ok(
            WHAT,
            "none, and none is needed: the program sees pause frames",
        ),
        ([], false)
            if nic::find(&port.facts.driver.name).is_some_and(|nic| {
                matches!(nic.receives, Receives::PassesOn | Receives::ByHost)
            }) =>
        {
            ok(WHAT, "none: there is no MAC")
        }
        ([], false) => unknown(WHAT, "none known", "some that count PAUSE and PFC", CABLE),
        ([first, ..], _) => ok(WHAT, format!("{}, such as {first}", names.len())),
    }
}

fn filters(port: &Port) -> Item {
    const WHAT: &str = "mac filter";
    // Drivers of virtual functions, which their host may not allow it.
    const VIRTUAL: [&str; 3] = ["iavf", "igbvf", "ixgbevf"];
    let facts = &port.facts;
    if facts.promiscuous {
        return ok(WHAT, "open: promiscuous");
    }
    if VIRTUAL.contains(&facts.driver.name.as_str()) {
        let mend = "on the host of the device: ip link set dev PF vf N trust on";
        return unknown(
            WHAT,
            "closed; a run holds the port promiscuous, which a virtual function may not be allowed",
            "open",
            mend,
        );
    }
    ok(WHAT, "closed; a run holds the port promiscuous")
}

fn rdma(port: &Port) -> Item {
    const WHAT: &str = "rdma device";
    let devices = port.facts.rdma.join(", ");
    match (port.facts.rdma.as_slice(), port.role) {
        ([], _) => ok(WHAT, "none on the port"),
        (_, Role::Tx | Role::Rx) => ok(
            WHAT,
            format!("{devices}; the test frames are no RoCE, and it lets them pass"),
        ),
        (_, Role::Rc) => {
            let bus = &port.facts.driver.bus;
            let mend = format!(
                "devlink dev param set pci/{bus} name enable_roce value false cmode driverinit; devlink dev reload pci/{bus}"
            );
            problem(
                WHAT,
                format!("{devices} takes RoCE frames away before XDP"),
                "none on the port",
                mend,
            )
        }
    }
}
