//! Judges the facts of a port: each item is right or wrong, and names the command that mends it.
//! Pure: stored facts give the same items again. Facts about drivers come from [`crate::nic`].

pub mod kernel;
mod merging;
mod pause;
mod speed;

use serde::Serialize;

use self::merging::merging;
use self::pause::{counters, flow_control, pfc, received, seen_by_program, sent};
pub use self::speed::wrong_line_rate;
use self::speed::{pause_time, speed};
use crate::evidence::preflight::{Driver, Facts, FeatureFact, Port, Preflight, Role, SelfTest};
use crate::evidence::xdp::{XdpFeatures, XdpMode};
use crate::nic::Feature;
use crate::nic::{self, Xdp};

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
    fn fixed_by(self, feature: Feature, on: bool) -> Self {
        Self {
            fix: Some(Fix { feature, on }),
            ..self
        }
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
        ports[first].insert(0, kernel);
    }
    ports
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
        return vec![ok("driver", in_words(&port.facts.driver))];
    }
    let mut items = vec![
        driver(port),
        link(port),
        speed(port, preflight),
        mtu(port),
        queues(port),
        program(port),
        xdp(port),
    ];
    items.extend(pause_time(port));
    items.extend(vlan(port));
    items.extend([merging(port), flow_control(port), pfc(port)]);
    match port.role {
        Role::Tx => items.extend([received(port), counters(port)]),
        Role::Rx => items.push(sent(port, preflight)),
        Role::Rc | Role::Mad => {}
    }
    items.extend([filters(port), rdma(port)]);
    items
}

fn item(
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

pub(crate) fn ok(what: &'static str, found: impl Into<String>) -> Item {
    item(what, State::Ok, found, "", "")
}

pub(crate) fn problem(
    what: &'static str,
    found: impl Into<String>,
    expected: &str,
    mend: impl Into<String>,
) -> Item {
    item(what, State::Problem, found, expected, mend)
}

fn unknown(
    what: &'static str,
    found: impl Into<String>,
    expected: &str,
    mend: impl Into<String>,
) -> Item {
    item(what, State::Unknown, found, expected, mend)
}

/// A command line for where the port is.
pub fn command(facts: &Facts, line: &str) -> String {
    facts.namespace.as_ref().map_or_else(
        || line.to_owned(),
        |namespace| format!("ip netns exec {namespace} {line}"),
    )
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
    let found = format!("{name} is {other}");
    problem(what, found, &format!("{word}: {why}"), mend).fixed_by(feature, on)
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
        Some(_) => return ok("driver", found),
        None if seen_by_program(port) => {
            let found = format!("{found}; nothing is known of it but what the self-test shows");
            return ok("driver", found);
        }
        None => "a driver of which it is known what its MAC does with pause frames",
    };
    unknown("driver", found, expected, CABLE)
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
    let found = match port.facts.queues {
        Some(queues) => format!("{} rx, {} tx", queues.rx, queues.tx),
        None => "the driver does not tell".to_owned(),
    };
    match port.self_test {
        SelfTest::Done { waits, .. } if waits > 0 => ok(
            "queues",
            format!("{found}; no room for a frame of the self-test {waits} times"),
        ),
        _ => ok("queues", found),
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
        // In the stack frames wait longer, and more of them are lost at a rate.
        let known = if xdp_mode == "skb" && port.wanted.xdp != XdpMode::Skb {
            known_mode(&port.facts)
        } else {
            String::new()
        };
        return ok(
            "xdp features",
            format!("{found}; a program was attached in mode {xdp_mode}{known}"),
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
    let (lacks, found) = match port.facts.xdp_features {
        Some(features) => (!features.has(XdpFeatures::BASIC), found),
        None => {
            let lacks = known_xdp(&port.facts) == Xdp::Stack;
            (lacks, found + &known_mode(&port.facts))
        }
    };
    if lacks && port.wanted.xdp == XdpMode::Driver {
        return problem(
            "xdp features",
            found,
            "basic, for ports.xdp = \"driver\"",
            "say ports.xdp = \"auto\" in the testbed: slower, in the stack",
        );
    }
    match port.facts.xdp_features {
        Some(_) if lacks => ok(
            "xdp features",
            format!("{found}: programs run in the stack (skb)"),
        ),
        Some(_) => ok("xdp features", found),
        None => unknown(
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
        (_, Role::Tx | Role::Rx | Role::Mad) => ok(
            WHAT,
            format!("{devices}; the test frames are no RoCE, and it lets them pass"),
        ),
        (_, Role::Rc) => {
            let bus = &port.facts.driver.bus;
            let mend = format!(
                "devlink dev param set pci/{bus} name enable_roce value false cmode driverinit; \
                 devlink dev reload pci/{bus}"
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
