//! Preflight rules on recorded facts: a port of each known driver, as its users find it and as it
//! should be.
//!
//! lane: computing

use validator::report;
use validator_core::evidence::Testbed;
use validator_core::evidence::preflight::*;
use validator_core::evidence::xdp::{XdpFeatures, XdpMode};
use validator_core::nic::Feature;
use validator_core::preflight::{Item, State, judge, kernel, worst};

use crate::snapshot;

const MLX5: &str = "mlx5_core";

/// A port of a NIC of 10 Gbit/s with nothing wrong with it but what its driver does.
fn port(role: Role, driver: &str) -> Port {
    let bus = format!("0000:03:00.{}", role as u8);
    let features = [
        "rx-gro",
        "rx-lro",
        "rx-gro-hw",
        "rx-vlan-hw-parse",
        "rx-all",
    ];
    let feature = |name: &str| FeatureFact {
        name: name.into(),
        on: name == "rx-vlan-hw-parse",
        fixed: false,
    };
    Port {
        role,
        wanted: Wanted {
            xdp: XdpMode::Auto,
            line_rate: None,
            tagged: false,
            max_response: None,
        },
        facts: Facts {
            interface: "eth1".into(),
            driver: Driver {
                name: driver.into(),
                version: "6.18.0".into(),
                firmware: "1.2".into(),
                bus,
            },
            up: true,
            carrier: true,
            speed: Some(10_000_000_000),
            mtu: 1500,
            queues: Some(Queues { rx: 4, tx: 4 }),
            xdp_features: Some(XdpFeatures(XdpFeatures::BASIC | XdpFeatures::REDIRECT)),
            features: features.map(feature).into(),
            pause: Some(Pause::default()),
            mac_counters: vec!["a_counter".into()],
            ..Facts::default()
        },
        self_test: SelfTest::Done {
            own_wire: false,
            xdp_mode: "driver".into(),
            sent: 8,
            seen: 0,
            mac: Vec::new(),
            waits: 0,
        },
        pfc_visible: None,
    }
}

fn items(port: &Port) -> Vec<Item> {
    judge(&of(vec![port.clone()])).remove(0)
}

fn of(ports: Vec<Port>) -> Preflight {
    Preflight {
        ports,
        ..Preflight::default()
    }
}

fn set(port: &mut Port, feature: Feature, on: bool, fixed: bool) {
    let name = feature.kernel_name().unwrap();
    let fact = port
        .facts
        .features
        .iter_mut()
        .find(|fact| fact.name == name)
        .unwrap();
    (fact.on, fact.fixed) = (on, fixed);
}

fn pfc(enabled: u8) -> Option<Pfc> {
    Some(Pfc {
        capacity: 8,
        enabled,
        ..Pfc::default()
    })
}

const PROBLEM: State = State::Problem;
const UNKNOWN: State = State::Unknown;

/// Ports and what is said of them, for a snapshot.
#[derive(Default)]
struct Table(String);

impl Table {
    /// Adds what is not `ok` of a port, with what to type; or that all is.
    fn shortfalls(&mut self, title: &str, port: &Port) {
        self.add(
            title,
            items(port).iter().filter(|item| item.state != State::Ok),
        );
    }

    /// Adds one item of a port.
    fn item(&mut self, what: &str, title: &str, port: &Port) {
        self.add(title, items(port).iter().filter(|item| item.what == what));
    }

    fn add<'i>(&mut self, title: &str, items: impl Iterator<Item = &'i Item>) {
        let before = self.0.len();
        for item in items {
            let state = format!("{:?}", item.state).to_lowercase();
            self.0 += &format!("    {state}  {}: {}\n", item.what, item.found);
            for (word, text) in [("expected", &item.expected), ("->", &item.mend)] {
                if !text.is_empty() {
                    self.0 += &format!("        {word} {text}\n");
                }
            }
            if let Some(fix) = item.fix {
                let word = if fix.on { "on" } else { "off" };
                self.0 += &format!("        --fix sets {} {word}\n", fix.feature.name());
            }
        }
        if self.0.len() == before {
            self.0 += "    ok\n";
        }
        self.0.insert_str(before, &format!("{title}\n"));
        self.0.push('\n');
    }

    fn check(&self, name: &str) {
        snapshot::check(&format!("preflight/{name}.txt"), &self.0);
    }
}

fn passive() -> SelfTest {
    SelfTest::NotDone {
        reason: "it was not asked for".into(),
    }
}

/// A self-test with `seen` of its eight frames at the program, and the rise of one of the MAC's
/// counters.
fn done(xdp_mode: &str, seen: u64, mac: Option<u64>) -> SelfTest {
    SelfTest::Done {
        own_wire: false,
        xdp_mode: xdp_mode.into(),
        sent: 8,
        seen,
        mac: mac
            .map(|rise| ("rx_prio0_pause".into(), rise))
            .into_iter()
            .collect(),
        waits: 0,
    }
}

#[test]
fn pause_frames_by_driver() {
    const DRIVERS: [&str; 15] = [
        "ixgbe",
        "igc",
        "igb",
        "e1000e",
        "e1000",
        "i40e",
        "ice",
        MLX5,
        "bnxt_en",
        "mlx4_en",
        "virtio_net",
        "vmxnet3",
        "ena",
        "veth",
        "unheard-of",
    ];
    let mut table = Table::default();
    for role in [Role::Tx, Role::Rx] {
        for driver in DRIVERS {
            table.shortfalls(&format!("{} {driver}", role.word()), &port(role, driver));
        }
    }
    let mut igc = port(Role::Tx, "igc");
    set(&mut igc, Feature::RxAll, true, false);
    table.shortfalls("tx igc, rx-all on", &igc);
    set(&mut igc, Feature::RxAll, false, true);
    table.shortfalls("tx igc, rx-all held off by the driver", &igc);
    table.check("pause_frames");
}

#[test]
fn pause_frames_by_what_the_self_test_saw() {
    let mut table = Table::default();
    for driver in ["ixgbe", "igc", MLX5, "unheard-of"] {
        for (seen, mac) in [(8, None), (3, None), (0, Some(8))] {
            let mut port = port(Role::Tx, driver);
            port.self_test = done("driver", seen, mac);
            let by_mac = mac.map_or(String::new(), |rise| format!(", the MAC counted {rise}"));
            table.shortfalls(&format!("tx {driver}, {seen} of 8 seen{by_mac}"), &port);
        }
    }
    let mut port = port(Role::Tx, MLX5);
    port.self_test = done("driver", 0, Some(8));
    table.item("pause frames in", "tx mlx5_core, the MAC counted 8", &port);
    let mut igc = self::port(Role::Tx, "igc");
    igc.self_test = done("driver", 8, None);
    table.item("pause frames in", "tx igc, 8 of 8 seen", &igc);
    if let SelfTest::Done { waits, .. } = &mut igc.self_test {
        *waits = 3;
    }
    table.item("queues", "tx igc, a full ring", &igc);
    let mut veth = self::port(Role::Tx, "veth");
    veth.self_test = SelfTest::Done {
        own_wire: true,
        xdp_mode: "driver".into(),
        sent: 8,
        seen: 7,
        mac: Vec::new(),
        waits: 0,
    };
    table.shortfalls("tx veth on a wire of the tester's own, 7 of 8 seen", &veth);
    table.check("self_test");
}

#[test]
fn pause_frames_at_a_veth_are_seen_where_the_testbed_says_so() {
    let received = |port: &Port| {
        let mut items = items(port).into_iter();
        items.find(|item| item.what == "pause frames in").unwrap()
    };
    let mut port = port(Role::Tx, "veth");
    let item = received(&port);
    assert_eq!(
        item.state, UNKNOWN,
        "a bridge may be at the other end: {item:?}"
    );
    assert!(item.mend.contains("facts.direct = true"), "{item:?}");
    port.pfc_visible = Some("declared".into());
    let item = received(&port);
    assert_eq!((item.state, item.found.as_str()), (State::Ok, "declared"));
}

#[test]
fn speeds_and_lengths() {
    let mut table = Table::default();
    let (gigabit, slow) = (Some(1_000_000_000), Some(100_000_000));
    for (speed, line_rate) in [
        (None, slow),
        (None, None),
        (gigabit, None),
        (gigabit, gigabit),
        (gigabit, slow),
        (slow, gigabit),
    ] {
        let mut port = port(Role::Tx, "virtio_net");
        (port.facts.speed, port.wanted.line_rate) = (speed, line_rate);
        let title = format!("speed {speed:?}, line_rate of the testbed {line_rate:?}");
        table.item("speed", &title, &port);
    }
    for speed in [Some(10_000_000_000), gigabit, None] {
        let mut rx = port(Role::Rx, "ixgbe");
        rx.facts.speed = speed;
        let ports = vec![port(Role::Tx, "veth"), rx];
        let found = judge(&of(ports)).remove(1);
        let title = format!("speed {speed:?}, that of the other port is 10 Gbit/s");
        table.add(&title, found.iter().filter(|item| item.what == "speed"));
    }
    let mut jumbo = port(Role::Rx, "ixgbe");
    jumbo.facts.mtu = 9000;
    table.shortfalls("MTU 9000, a program was attached", &jumbo);
    jumbo.self_test = passive();
    table.shortfalls("MTU 9000, no self-test", &jumbo);
    jumbo.self_test = SelfTest::Refused {
        reason: "the MTU is too large for XDP".into(),
    };
    table.shortfalls("MTU 9000, no program could be attached", &jumbo);
    table.check("links");
}

#[test]
fn where_programs_run() {
    let mut table = Table::default();
    for (driver, wanted, self_test, title) in [
        ("vmxnet3", XdpMode::Auto, passive(), "no self-test"),
        ("e1000e", XdpMode::Auto, passive(), "no self-test"),
        ("e1000e", XdpMode::Driver, passive(), "no self-test"),
        ("unheard-of", XdpMode::Auto, passive(), "no self-test"),
        (
            "vmxnet3",
            XdpMode::Auto,
            done("skb", 8, None),
            "attached as skb",
        ),
        (
            "vmxnet3",
            XdpMode::Skb,
            done("skb", 8, None),
            "attached as skb",
        ),
    ] {
        let mut port = port(Role::Rx, driver);
        port.wanted.xdp = wanted;
        port.facts.xdp_features = None;
        port.self_test = self_test;
        let title = format!("{driver}, xdp = {wanted:?}, the kernel tells no features, {title}");
        table.item("xdp features", &title, &port);
    }
    table.check("programs");
}

#[test]
fn kernels() {
    let mut table = Table::default();
    for kernel in [
        "5.10.0-32-amd64",
        "6.1.0-56-amd64",
        "6.3.0",
        "6.6-rc1",
        "6.12.117+deb12-amd64",
        "7.3.0",
        "of my own",
    ] {
        let preflight = Preflight {
            kernel: Some(kernel.into()),
            ports: vec![port(Role::Tx, "veth"), port(Role::Rx, "veth")],
            ..Preflight::default()
        };
        let judged = judge(&preflight);
        table.add(
            kernel,
            judged.iter().flatten().filter(|item| item.what == "kernel"),
        );
    }
    table.check("kernels");
}

#[test]
fn offloads() {
    let mut table = Table::default();
    let mut port = port(Role::Rx, "ixgbe");
    set(&mut port, Feature::Gro, true, false);
    table.shortfalls("gro on, a program in the driver", &port);
    for wanted in [XdpMode::Auto, XdpMode::Skb] {
        port.self_test = done("skb", 8, None);
        port.wanted.xdp = wanted;
        table.shortfalls(&format!("gro on, attached as skb, xdp = {wanted:?}"), &port);
    }
    port.self_test = passive();
    port.wanted.xdp = XdpMode::Auto;
    table.shortfalls("gro on, no self-test, the driver takes programs", &port);
    port.facts.xdp_features = None;
    table.shortfalls("gro on, no self-test, the kernel tells no features", &port);
    port.facts.driver.name = "e1000".into();
    table.shortfalls("gro on, as before, a driver that takes none", &port);
    for feature in [Feature::Lro, Feature::GroHardware] {
        let name = feature.name();
        let mut port = self::port(Role::Rx, "ixgbe");
        set(&mut port, feature, true, false);
        table.shortfalls(&format!("{name} on"), &port);
        set(&mut port, feature, true, true);
        table.shortfalls(&format!("{name} held on by the driver"), &port);
    }
    let mut port = self::port(Role::Rx, "ixgbe");
    for (tagged, fixed) in [(false, true), (true, true), (true, false)] {
        port.wanted.tagged = tagged;
        set(&mut port, Feature::RxVlan, true, fixed);
        let held = if fixed { "held on by the driver" } else { "on" };
        let tags = if tagged {
            "test frames are tagged"
        } else {
            "no tags"
        };
        table.shortfalls(&format!("rxvlan {held}, {tags}"), &port);
    }
    table.check("offloads");
}

#[test]
fn flow_control_and_rdma() {
    let mut table = Table::default();
    let mut port = port(Role::Rx, "ixgbe");
    port.facts.namespace = Some("lab".into());
    let received = FrameCounts {
        received: Some(7),
        sent: None,
    };
    port.facts.pause = Some(Pause {
        receives: true,
        frames: received,
        ..Pause::default()
    });
    table.shortfalls("PAUSE is obeyed, in a namespace", &port);
    port.facts.pause = Some(Pause {
        autonegotiated: true,
        sends: true,
        ..Pause::default()
    });
    table.shortfalls("PAUSE is sent, by negotiation, in a namespace", &port);
    port.facts.pause = None;
    port.facts.pfc = pfc(0b1000);
    table.shortfalls("PFC for priority 3, in a namespace", &port);
    // Some drivers count PFC only where it is on, and then it is for the port that has to count.
    for (driver, enabled) in [(MLX5, 0), (MLX5, 8), (MLX5, 0xff), ("i40e", 0), ("i40e", 8)] {
        let mut port = self::port(Role::Tx, driver);
        port.facts.pfc = pfc(enabled);
        table.item(
            "pfc of the port",
            &format!("tx {driver}, PFC {enabled:#010b}"),
            &port,
        );
    }
    for role in [Role::Rx, Role::Rc] {
        let mut port = self::port(role, MLX5);
        port.facts.rdma = vec!["mlx5_0".into()];
        table.shortfalls(&format!("{} with an RDMA device", role.word()), &port);
    }
    table.check("flow_control");
}

#[test]
fn an_adapter_of_the_mad_cases_is_named_and_nothing_of_frames_is_asked_of_it() {
    // Too old for programs, of which this port has none; and a driver of which nothing is known.
    let with = |ports: Vec<Port>| Preflight {
        kernel: Some("5.10.0".into()),
        ports,
        ..Preflight::default()
    };
    let mut mad = port(Role::Mad, "ib_qib");
    mad.facts.speed = Some(1_000_000_000);
    let alone = with(vec![mad.clone()]);
    let judged = judge(&alone);
    let found: Vec<_> = judged[0]
        .iter()
        .map(|item| (item.what, item.state, item.found.as_str()))
        .collect();
    let named = "ib_qib, version 6.18.0, firmware 1.2, at 0000:03:00.3";
    assert_eq!(found, [("driver", State::Ok, named)]);
    assert_eq!((worst(&alone), kernel::lacks(&alone)), (State::Ok, None));

    let names = |items: &[Item]| -> Vec<_> { items.iter().map(|item| item.what).collect() };
    let judged = judge(&with(vec![mad, port(Role::Tx, "ixgbe")]));
    assert_eq!(names(&judged[0]), ["driver"]);
    assert_eq!(names(&judged[1])[..2], ["kernel", "driver"]);
    let speed = judged[1].iter().find(|item| item.what == "speed");
    assert_eq!(speed.unwrap().state, State::Ok);
}

#[test]
fn pause_frames_that_were_seen_to_leave_need_no_advice() {
    let out = |tx: Port, driver: &str| {
        let ports = vec![tx, port(Role::Rx, driver)];
        let found = judge(&of(ports)).remove(1);
        let item = found.iter().find(|item| item.what == "pause frames out");
        item.unwrap().state
    };
    let mut tx = port(Role::Tx, "igc");
    assert_eq!(out(tx.clone(), "unheard-of"), UNKNOWN);
    assert_eq!(out(tx.clone(), "i40e"), PROBLEM);
    let done = |seen, own_wire| SelfTest::Done {
        own_wire,
        xdp_mode: "driver".into(),
        sent: 8,
        seen,
        mac: vec![("a_counter".into(), 8)],
        waits: 0,
    };
    // A MAC's counter may have risen by frames of a DUT; on an own wire another end sent.
    for shows_nothing in [done(0, false), done(8, true)] {
        tx.self_test = shows_nothing;
        assert_eq!(out(tx.clone(), "i40e"), PROBLEM);
    }
    tx.self_test = done(8, false);
    assert_eq!(out(tx.clone(), "unheard-of"), State::Ok);
    assert_eq!(out(tx, "i40e"), State::Ok, "its filter is off");
}

#[test]
fn what_goes_off_for_a_program_merges_nothing() {
    for (feature, driver) in [
        (Feature::Lro, "vmxnet3"),
        (Feature::GroHardware, "virtio_net"),
    ] {
        let merging = |port: &Port| {
            let found = items(port);
            let item = found.iter().find(|item| item.what == "gro, lro");
            let item = item.unwrap();
            (item.state, item.found.clone())
        };
        let name = feature.name();
        let off = format!("{name}: on, and off while the program is attached");
        let mut port = port(Role::Rx, driver);
        set(&mut port, feature, true, true);
        let with_program = |on| {
            let fact = FeatureFact {
                name: feature.kernel_name().unwrap().into(),
                on,
                fixed: true,
            };
            vec![fact]
        };
        port.facts.features_with_program = with_program(false);
        assert_eq!(merging(&port), (State::Ok, off.clone()), "seen");
        port.facts.features_with_program = with_program(true);
        assert_eq!(merging(&port).0, PROBLEM, "seen, whatever is known");
        // A record in which it was not looked at.
        port.facts.features_with_program.clear();
        assert_eq!(merging(&port).0, PROBLEM);

        port.self_test = SelfTest::NotDone {
            reason: "it was not asked for".into(),
        };
        assert_eq!(merging(&port), (State::Ok, off.clone()), "known");
        port.wanted.xdp = XdpMode::Skb;
        assert_eq!(
            merging(&port).0,
            PROBLEM,
            "for a program in the driver alone"
        );
        set(&mut port, feature, true, false);
        assert_eq!(merging(&port), (State::Ok, off), "a run turns it off");
        port.wanted.xdp = XdpMode::Auto;
        port.facts.driver.name = "ixgbe".into();
        set(&mut port, feature, true, true);
        assert_eq!(merging(&port).0, PROBLEM, "held by a driver that keeps it");
    }
}

#[test]
fn the_worst_decides_the_exit_code() {
    let mut problem = port(Role::Rx, "veth");
    problem.facts.carrier = false;
    let (good, unknown) = (port(Role::Rx, "veth"), port(Role::Tx, "ixgbe"));
    for (ports, state, code) in [
        (vec![], State::Ok, 0),
        (vec![good.clone()], State::Ok, 0),
        (vec![good, unknown.clone()], UNKNOWN, 3),
        (vec![unknown, problem], PROBLEM, 1),
    ] {
        let preflight = of(ports);
        assert_eq!(
            (worst(&preflight), report::preflight::exit(&preflight) as u8),
            (state, code)
        );
        let read: Preflight =
            serde_json::from_str(&serde_json::to_string(&preflight).unwrap()).unwrap();
        assert_eq!(
            judge(&read),
            judge(&preflight),
            "stored facts are judged alike"
        );
    }
}

#[test]
fn names_do_not_steer_the_terminal() {
    const HOSTILE: &str = "e\u{1b}[2J\u{9b}0m\u{7}\u{202e}\nall ok";
    let mut hostile = port(Role::Rx, HOSTILE);
    let facts = &mut hostile.facts;
    facts.interface = HOSTILE.into();
    facts.namespace = Some(HOSTILE.into());
    facts.driver.firmware = HOSTILE.into();
    facts.carrier = false;
    let mut preflight = of(vec![hostile]);
    preflight.unfit = vec![UnfitCase {
        case: HOSTILE.into(),
        reason: HOSTILE.into(),
        remedy: HOSTILE.into(),
    }];
    let testbed = Testbed {
        name: HOSTILE.into(),
        dut: "external".into(),
        toml: String::new(),
        ..Testbed::default()
    };
    let text = report::preflight::text(&testbed, &preflight, false);
    assert!(text.matches("all ok").count() >= 5, "{text}");
    let steers = |c: &char| *c != '\n' && (c.is_control() || *c == '\u{202e}');
    assert_eq!(text.chars().find(steers), None, "{text}");
    assert!(
        !text.lines().any(|line| line.starts_with("all ok")),
        "{text}"
    );
}
