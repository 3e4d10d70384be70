//! Judges the facts of a port: each item is right or wrong, and names the command that mends it.
//! Pure: stored facts give the same items again. Facts about drivers come from [`crate::nic`].

pub mod kernel;
mod merging;
mod pause;
mod speed;

use std::fmt::Display;
use std::ptr;

use serde::Serialize;

use self::merging::merging;
use self::pause::{counters, flow_control, pfc, received, seen_by_program, sent};
pub use self::speed::wrong_line_rate;
use self::speed::{pause_time, speed};
use crate::evidence::preflight::{Driver, Facts, FeatureFact, Port, Preflight, Role, SelfTest};
use crate::evidence::xdp::{XdpFeatures, XdpMode};
use crate::nic::{self, Feature, Xdp};

/// State of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The item is as it should be.
    Ok,
    /// The item makes verdicts impossible.
    Problem,
    /// The state is not known.
    Unknown,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Item {
    /// Name of the item.
    pub what: &'static str,
    /// Its state.
    pub state: State,
    /// The facts found.
    pub found: String,
    /// The expected state; empty where it is met.
    pub expected: String,
    /// The remedy, where one is known.
    pub mend: String,
    /// The change that `--fix` makes.
    pub fix: Option<Fix>,
}

impl Item {
    /// Gives it its name.
    pub(crate) fn named(self, what: &'static str) -> Self {
        Self { what, ..self }
    }

    fn fixed_by(self, feature: Feature, on: bool) -> Self {
        let fix = Some(Fix { feature, on });
        Self { fix, ..self }
    }
}

/// An offload to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// The offload.
    pub feature: Feature,
    /// True to switch it on.
    pub on: bool,
}

/// Smallest MTU that takes the plan's frames of 1024 octets: without FCS and Ethernet header.
const LEAST_MTU: u32 = 1006;
/// Largest MTU that leaves a frame in one page of 4096 octets. Above it many drivers refuse
/// programs that do not take frames in pieces.
const LARGEST_MTU: u32 = 3498;

/// The items of each port, in the ports' order. The kernel, which they share, is an item of the
/// first that has a program.
pub fn judge(preflight: &Preflight) -> Vec<Vec<Item>> {
    let mut ports: Vec<Vec<Item>> = preflight
        .ports
        .iter()
        .map(|port| items(port, preflight))
        .collect();
    let first = preflight.ports.iter().position(has_program);
    if let Some((first, kernel)) = first.zip(kernel::kernel(preflight)) {
        ports[first].insert(0, kernel.named("kernel"));
    }
    ports
}

/// True of the rx port: it stands before further ports that receive.
fn sends_storm(port: &Port, preflight: &Preflight) -> bool {
    let mut ports = preflight.ports.iter();
    let first = ports.find(|other| other.role == Role::Rx);
    first.is_some_and(|first| ptr::eq(first, port))
}

/// True if a program of the tester is attached to the port in a run.
fn has_program(port: &Port) -> bool {
    port.role != Role::Mad
}

/// The worst of all.
pub fn worst(preflight: &Preflight) -> State {
    let states: Vec<State> = judge(preflight)
        .iter()
        .flatten()
        .map(|item| item.state)
        .collect();
    let no_way = preflight.ways.iter().any(|way| way.error.is_some());
    if no_way || !preflight.unfit.is_empty() {
        return State::Problem;
    }
    [State::Problem, State::Unknown]
        .into_iter()
        .find(|state| states.contains(state))
        .unwrap_or(State::Ok)
}

fn items(port: &Port, preflight: &Preflight) -> Vec<Item> {
    if !has_program(port) {
        // Opening it shows if its driver can be used.
        return vec![ok(in_words(&port.facts.driver)).named("driver")];
    }
    let mut items = vec![
        driver(port).named("driver"),
        link(port).named("link"),
        speed(port, preflight).named("speed"),
        mtu(port).named("mtu"),
        queues(port).named("queues"),
        program(port).named("xdp program"),
        xdp(port).named("xdp features"),
    ];
    items.extend(pause_time(port).map(|item| item.named("pause time")));
    items.extend(vlan(port).map(|item| item.named("vlan offload")));
    items.push(merging(port).named("gro, lro"));
    items.push(flow_control(port).named("802.3x pause"));
    items.push(pfc(port).named("pfc of the port"));
    match port.role {
        Role::Tx => {
            items.push(received(port).named("pause frames in"));
            items.push(counters(port).named("mac counters"));
        }
        Role::Rx if sends_storm(port, preflight) => {
            items.push(sent(port, preflight).named("pause frames out"));
        }
        Role::Rx | Role::Rc | Role::Mad => {}
    }
    items.extend([
        filters(port).named("mac filter"),
        rdma(port).named("rdma device"),
    ]);
    items
}

/// An item without a name, which [`Item::named`] gives it where the items of a port are listed.
fn item(
    state: State,
    found: impl Into<String>,
    expected: impl Into<String>,
    mend: impl Into<String>,
) -> Item {
    Item {
        what: "",
        state,
        found: found.into(),
        expected: expected.into(),
        mend: mend.into(),
        fix: None,
    }
}

pub(crate) fn ok(found: impl Into<String>) -> Item {
    item(State::Ok, found, "", "")
}

pub(crate) fn problem(
    found: impl Into<String>,
    expected: impl Into<String>,
    mend: impl Into<String>,
) -> Item {
    item(State::Problem, found, expected, mend)
}

fn unknown(found: impl Into<String>, expected: &str, mend: impl Into<String>) -> Item {
    item(State::Unknown, found, expected, mend)
}

/// A command line for where the port is: a tool with the options before the interface, and those
/// after it.
pub fn command(facts: &Facts, tool: &str, options: impl Display) -> String {
    let line = format!("{tool} {} {options}", facts.interface);
    match &facts.namespace {
        Some(namespace) => format!("ip netns exec {namespace} {line}"),
        None => line,
    }
}

/// Returns whether an offload is on and whether the driver fixes it; `None` where the kernel does
/// not report it.
fn feature(facts: &Facts, feature: Feature) -> Option<(bool, bool)> {
    let fact = named(&facts.features, feature)?;
    Some((fact.on, fact.fixed))
}

/// The state of an offload in a list.
fn named(features: &[FeatureFact], feature: Feature) -> Option<&FeatureFact> {
    let mut features = features.iter();
    features.find(|fact| Some(fact.name.as_str()) == feature.kernel_name())
}

/// The item of an offload that has to be set.
fn to_set(facts: &Facts, feature: Feature, on: bool, why: &str) -> Item {
    let (word, other) = if on { ("on", "off") } else { ("off", "on") };
    let found = format!("{} is {other}", feature.name());
    let expected = format!("{word}: {why}");
    if self::feature(facts, feature).is_none_or(|(_, fixed)| fixed) {
        let found = format!("{found}, and the driver holds it");
        return problem(found, expected, "use a port of another NIC");
    }
    let option = format!("{} {word}", feature.ethtool_name());
    problem(found, expected, command(facts, "ethtool -K", option)).fixed_by(feature, on)
}

/// The mending of what a cable between the ports shows.
const CABLE: &str = "cable the ports tx and rx together, without a DUT, and run `validator check` \
                     again: its self-test then shows it";

/// A driver with version, firmware and place.
fn in_words(driver: &Driver) -> String {
    if driver.name.is_empty() {
        return "the kernel names none".to_owned();
    }
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
    found
}

fn driver(port: &Port) -> Item {
    let driver = &port.facts.driver;
    let found = in_words(driver);
    let expected = match nic::find(&driver.name) {
        _ if driver.name.is_empty() => "a driver of which something is known",
        Some(_) => return ok(found),
        None if seen_by_program(port) => {
            return ok(format!(
                "{found}; nothing is known of it but what the self-test shows"
            ));
        }
        None => "a driver of which it is known what its MAC does with pause frames",
    };
    unknown(found, expected, CABLE)
}

fn link(port: &Port) -> Item {
    let facts = &port.facts;
    if !facts.up {
        return problem("down", "up", command(facts, "ip link set dev", "up"));
    }
    if !facts.carrier {
        let mend = "plug in the cable, and set up the port at its other end";
        return problem("up, without carrier", "carrier", mend);
    }
    ok("up, with carrier")
}

fn mtu(port: &Port) -> Item {
    let mtu = port.facts.mtu;
    let found = mtu.to_string();
    let set = || command(&port.facts, "ip link set dev", "mtu 1500");
    if mtu < LEAST_MTU {
        return problem(found, "at least 1006, for frames of 1024 octets", set());
    }
    // A program that is attached, or was by the self-test, shows that the driver takes it.
    let attached = matches!(port.self_test, SelfTest::Done { .. });
    if mtu > LARGEST_MTU && port.role != Role::Rc && !attached {
        let expected = "at most 3498: above it many drivers refuse XDP programs";
        return unknown(found, expected, set());
    }
    ok(found)
}

fn queues(port: &Port) -> Item {
    let found = match port.facts.queues {
        Some(queues) => format!("{} rx, {} tx", queues.rx, queues.tx),
        None => "the driver does not tell".to_owned(),
    };
    ok(match port.self_test {
        SelfTest::Done { waits, .. } if waits > 0 => {
            format!("{found}; no room for a frame of the self-test {waits} times")
        }
        _ => found,
    })
}

fn program(port: &Port) -> Item {
    let Some(program) = &port.facts.xdp_attached else {
        return ok("none attached");
    };
    let found = format!("{program} is attached, and is not replaced");
    let mend = command(&port.facts, "ip link set dev", "xdp off");
    problem(found, "none", mend)
}

/// True if frames come to the program before anything merges them; `None` where that is not known.
fn in_driver(port: &Port) -> Option<bool> {
    match (&port.self_test, port.wanted.xdp, port.facts.xdp_features) {
        (SelfTest::Done { xdp_mode, .. }, ..) => Some(xdp_mode == "driver"),
        (_, XdpMode::Skb, _) => Some(false),
        (_, XdpMode::Driver, _) => Some(true),
        (.., Some(features)) => Some(features.has(XdpFeatures::BASIC)),
        // A driver that has never had XDP lacks it also on a kernel that does not report features.
        (.., None) => (known_xdp(&port.facts) == Xdp::Stack).then_some(false),
    }
}

fn known_xdp(facts: &Facts) -> Xdp {
    nic::of(&facts.driver.name).xdp
}

/// Place where the driver runs programs, in words; empty where that is not known.
fn known_mode(facts: &Facts) -> String {
    let driver = &facts.driver.name;
    match known_xdp(facts) {
        Xdp::Driver {
            since: (major, minor),
        } => format!("; {driver} runs programs itself since Linux {major}.{minor}"),
        Xdp::Stack => format!("; {driver} leaves programs to the stack (skb)"),
        Xdp::Unknown => String::new(),
    }
}

fn xdp(port: &Port) -> Item {
    let features = port.facts.xdp_features;
    let found = match features.map(|features| features.names().join(", ")) {
        None => "the kernel does not tell".to_owned(),
        Some(names) if names.is_empty() => "none".to_owned(),
        Some(names) => names,
    };
    match &port.self_test {
        SelfTest::Done { xdp_mode, .. } => {
            // In the stack frames wait longer, and more of them are lost at a rate.
            let known = if xdp_mode == "skb" && port.wanted.xdp != XdpMode::Skb {
                known_mode(&port.facts)
            } else {
                String::new()
            };
            let attached = format!("a program was attached in mode {xdp_mode}{known}");
            return ok(format!("{found}; {attached}"));
        }
        SelfTest::Refused { reason } => {
            let found = format!("{found}; a program could not be attached: {reason}");
            return problem(found, "a program can be attached", "");
        }
        SelfTest::NotDone { .. } => {}
    }
    let (in_stack, found) = match features {
        Some(features) => (!features.has(XdpFeatures::BASIC), found),
        None => {
            let in_stack = known_xdp(&port.facts) == Xdp::Stack;
            (in_stack, found + &known_mode(&port.facts))
        }
    };
    if in_stack && port.wanted.xdp == XdpMode::Driver {
        let mend = "say ports.xdp = \"auto\" in the testbed: slower, in the stack";
        return problem(found, "basic, for ports.xdp = \"driver\"", mend);
    }
    match features {
        Some(_) if in_stack => ok(format!("{found}: programs run in the stack (skb)")),
        Some(_) => ok(found),
        None => unknown(
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
    let facts = &port.facts;
    Some(match feature(facts, Feature::RxVlan) {
        Some((true, true)) => {
            let why = "XDP has to see the priority tag";
            to_set(facts, Feature::RxVlan, false, why)
        }
        Some((true, false)) => ok("on; a run turns it off, and on again at its end"),
        Some((false, _)) => ok("off"),
        None => ok("the kernel does not tell"),
    })
}

fn filters(port: &Port) -> Item {
    // Drivers of virtual functions, which their host may not allow it.
    const VIRTUAL: [&str; 3] = ["iavf", "igbvf", "ixgbevf"];
    let facts = &port.facts;
    if facts.promiscuous {
        return ok("open: promiscuous");
    }
    if VIRTUAL.contains(&facts.driver.name.as_str()) {
        return unknown(
            "closed; a run holds the port promiscuous, which a virtual function may not be allowed",
            "open",
            "on the host of the device: ip link set dev PF vf N trust on",
        );
    }
    ok("closed; a run holds the port promiscuous")
}

fn rdma(port: &Port) -> Item {
    if port.facts.rdma.is_empty() {
        return ok("none on the port");
    }
    let devices = port.facts.rdma.join(", ");
    if port.role != Role::Rc {
        return ok(format!(
            "{devices}; the test frames are no RoCE, and it lets them pass"
        ));
    }
    let bus = &port.facts.driver.bus;
    problem(
        format!("{devices} takes RoCE frames away before XDP"),
        "none on the port",
        format!(
            "devlink dev param set pci/{bus} name enable_roce value false cmode driverinit; \
             devlink dev reload pci/{bus}"
        ),
    )
}
