//! What is said of recorded facts: a port of each known driver, as its users find it and as it should be.
//!
//! lane: computing

use validator::evidence::preflight::*;
use validator::evidence::xdp::{XdpFeatures, XdpMode};
use validator::nic::Feature;
use validator::preflight::{Item, State, judge, worst};
use validator::report;

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
        },
    }
}

fn items(port: &Port) -> Vec<Item> {
    judge(&Preflight {
        ports: vec![port.clone()],
    })
    .remove(0)
}

/// What is not `ok`, and what to type.
fn shortfalls(port: &Port) -> Vec<(&'static str, State, String)> {
    items(port)
        .into_iter()
        .filter(|item| item.state != State::Ok)
        .map(|item| (item.what, item.state, item.mend))
        .collect()
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
const CABLE: &str = "cable the ports tx and rx together, without a DUT, and run `validator check` again: its self-test then shows it";

#[test]
fn what_each_driver_does_with_pause_frames_that_come_in() {
    let rx_all = "ethtool -K eth1 rx-all on";
    for (driver, state, mend) in [
        ("ixgbe", UNKNOWN, CABLE),
        ("igc", PROBLEM, rx_all),
        ("igb", PROBLEM, rx_all),
        ("e1000e", PROBLEM, rx_all),
        ("e1000", PROBLEM, rx_all),
        ("i40e", UNKNOWN, CABLE),
        ("ice", UNKNOWN, CABLE),
        (MLX5, UNKNOWN, CABLE),
        ("bnxt_en", UNKNOWN, CABLE),
        ("mlx4_en", UNKNOWN, CABLE),
    ] {
        assert_eq!(
            shortfalls(&port(Role::Tx, driver)),
            [("pause frames in", state, mend.into())],
            "{driver}"
        );
    }
    assert_eq!(shortfalls(&port(Role::Tx, "veth")), []);
    for driver in ["virtio_net", "vmxnet3", "ena"] {
        let port = port(Role::Tx, driver);
        let expected = [("pause frames in", UNKNOWN, CABLE.into())];
        assert_eq!(shortfalls(&port), expected, "what its host does: {driver}");
    }
    let unheard_of = shortfalls(&port(Role::Tx, "unheard-of"));
    assert_eq!(
        unheard_of,
        [
            ("driver", UNKNOWN, CABLE.into()),
            ("pause frames in", UNKNOWN, CABLE.into())
        ]
    );
    // Said, not guessed: a MAC that keeps them, and one with the switch for it.
    let keeps = items(&port(Role::Tx, "ixgbe"));
    assert!(
        keeps.iter().any(|item| item
            .found
            .ends_with("the MAC of ixgbe keeps them from the program")),
        "{keeps:#?}"
    );
    let mut igc = port(Role::Tx, "igc");
    set(&mut igc, Feature::RxAll, true, false);
    assert_eq!(
        shortfalls(&igc),
        [("pause frames in", UNKNOWN, CABLE.into())]
    );
    set(&mut igc, Feature::RxAll, false, true);
    assert_eq!(
        shortfalls(&igc),
        [(
            "pause frames in",
            PROBLEM,
            "use a port of another NIC".into()
        )]
    );
}

#[test]
fn what_the_self_test_saw_counts_more_than_what_is_known_of_the_driver() {
    let with = |driver: &str, seen, mac: &[(&str, u64)], own_wire| {
        let mut port = port(Role::Tx, driver);
        let mac = mac
            .iter()
            .map(|(name, rise)| (name.to_string(), *rise))
            .collect();
        port.self_test = SelfTest::Done {
            own_wire,
            xdp_mode: "driver".into(),
            sent: 8,
            seen,
            mac,
        };
        port
    };
    for driver in ["ixgbe", "igc", MLX5, "unheard-of"] {
        for port in [
            with(driver, 8, &[], false),
            with(driver, 0, &[("rx_prio0_pause", 8)], false),
        ] {
            let found = shortfalls(&port);
            let only = found.iter().all(|(what, ..)| *what == "driver");
            assert!(only, "{driver}: {found:?}");
        }
        // Nothing is left to be shown by a cable.
        assert_eq!(shortfalls(&with(driver, 8, &[], false)), [], "{driver}");
    }
    let some = shortfalls(&with("unheard-of", 3, &[], false));
    let lost = "look for what loses frames on the way between the ports";
    assert!(some.contains(&("pause frames in", UNKNOWN, lost.into())));
    let by_mac = items(&with(MLX5, 0, &[("rx_prio0_pause", 8)], false));
    assert!(by_mac.iter().any(|item| item.found
        == "8 of the self-test reached the MAC's counters alone: rx_prio0_pause +8"));
    assert_eq!(
        shortfalls(&with("veth", 7, &[], true)),
        [("pause frames in", PROBLEM, String::new())]
    );
}

#[test]
fn what_filters_pause_frames_on_the_way_out_cannot_send_the_storm() {
    let another = "take a port of another NIC as ports.rx; this one can be ports.tx";
    for driver in ["i40e", "ice"] {
        assert_eq!(
            shortfalls(&port(Role::Rx, driver)),
            [("pause frames out", PROBLEM, another.into())],
            "{driver}"
        );
    }
    for driver in ["ixgbe", "igc", "igb", "e1000e", MLX5, "veth", "virtio_net"] {
        assert_eq!(shortfalls(&port(Role::Rx, driver)), [], "{driver}");
    }
}

#[test]
fn pause_frames_that_were_seen_to_leave_need_no_advice() {
    let out = |tx: Port, driver: &str| {
        let ports = vec![tx, port(Role::Rx, driver)];
        let found = judge(&Preflight { ports }).remove(1);
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
fn a_line_rate_stands_in_for_a_speed_and_never_against_one() {
    let speed = |speed: Option<u64>, line_rate: Option<u64>| {
        let mut port = port(Role::Tx, "virtio_net");
        port.facts.speed = speed;
        port.wanted.line_rate = line_rate;
        let found = items(&port);
        let item = found.iter().find(|item| item.what == "speed").unwrap();
        (item.state, item.found.clone())
    };
    let (gigabit, slow) = (Some(1_000_000_000), Some(100_000_000));
    let none = "the driver does not tell";
    assert_eq!(
        speed(None, slow),
        (State::Ok, format!("{none}; 100 Mbit/s by the testbed"))
    );
    assert_eq!(speed(None, None), (PROBLEM, none.into()));
    assert_eq!(speed(gigabit, None).0, State::Ok);
    assert_eq!(speed(gigabit, gigabit).0, State::Ok);
    let advice = "without line_rate the link's speed is taken, and limits.load says which share of it to send";
    for (found, asked, word) in [(gigabit, slow, "below"), (slow, gigabit, "above")] {
        let (rate, other) = match word {
            "below" => ("100 Mbit/s", "1000 Mbit/s"),
            _ => ("1 Gbit/s", "100 Mbit/s"),
        };
        // The words of `run`.
        let words = format!("line_rate {rate} is {word} the speed of eth1, {other}; {advice}");
        assert_eq!(speed(found, asked), (PROBLEM, words));
    }
}

#[test]
fn where_a_driver_runs_programs_is_said_where_the_kernel_does_not() {
    let xdp = |driver: &str, wanted: XdpMode, self_test: SelfTest| {
        let mut port = port(Role::Rx, driver);
        port.wanted.xdp = wanted;
        port.facts.xdp_features = None;
        port.self_test = self_test;
        let found = items(&port);
        let item = found.iter().find(|item| item.what == "xdp features");
        let item = item.unwrap();
        (item.state, item.found.clone())
    };
    let passive = || SelfTest::NotDone {
        reason: "it was not asked for".into(),
    };
    let silent = "the kernel does not tell";
    let native = "vmxnet3 runs programs itself since Linux 6.6";
    let stack = "e1000e leaves programs to the stack (skb)";
    assert_eq!(
        xdp("vmxnet3", XdpMode::Auto, passive()),
        (UNKNOWN, format!("{silent}; {native}"))
    );
    assert_eq!(
        xdp("e1000e", XdpMode::Auto, passive()),
        (UNKNOWN, format!("{silent}; {stack}"))
    );
    assert_eq!(
        xdp("e1000e", XdpMode::Driver, passive()),
        (PROBLEM, format!("{silent}; {stack}"))
    );
    assert_eq!(
        xdp("unheard-of", XdpMode::Auto, passive()),
        (UNKNOWN, silent.into())
    );
    let attached = || SelfTest::Done {
        own_wire: false,
        xdp_mode: "skb".into(),
        sent: 8,
        seen: 8,
        mac: Vec::new(),
    };
    let by = "a program was attached in mode skb";
    assert_eq!(
        xdp("vmxnet3", XdpMode::Auto, attached()),
        (State::Ok, format!("{silent}; {by}; {native}"))
    );
    assert_eq!(
        xdp("vmxnet3", XdpMode::Skb, attached()),
        (State::Ok, format!("{silent}; {by}")),
        "as it was asked for"
    );
    // Generic programs see what GRO merged: known to be so without a kernel that tells.
    let mut e1000 = port(Role::Rx, "e1000");
    e1000.facts.xdp_features = None;
    e1000.self_test = passive();
    set(&mut e1000, Feature::Gro, true, false);
    let gro = ("gro, lro", PROBLEM, "ethtool -K eth1 gro off".into());
    assert!(shortfalls(&e1000).contains(&gro));
}

#[test]
fn offloads_that_merge_frames_before_the_program_are_fixed() {
    let mut port = port(Role::Rx, "ixgbe");
    set(&mut port, Feature::Gro, true, false);
    assert_eq!(shortfalls(&port), [], "behind a program in the driver");
    for (mode, wanted) in [("skb", XdpMode::Auto), ("skb", XdpMode::Skb)] {
        port.self_test = SelfTest::Done {
            own_wire: false,
            xdp_mode: mode.into(),
            sent: 8,
            seen: 8,
            mac: Vec::new(),
        };
        port.wanted.xdp = wanted;
        assert_eq!(
            shortfalls(&port),
            [("gro, lro", PROBLEM, "ethtool -K eth1 gro off".into())]
        );
    }
    port.self_test = SelfTest::NotDone {
        reason: "it was not asked for".into(),
    };
    port.wanted.xdp = XdpMode::Auto;
    assert_eq!(shortfalls(&port), [], "the driver can");
    port.facts.xdp_features = None;
    let unknown: Vec<_> = shortfalls(&port)
        .into_iter()
        .map(|(what, state, _)| (what, state))
        .collect();
    assert_eq!(unknown, [("xdp features", UNKNOWN), ("gro, lro", UNKNOWN)]);
    for (feature, name) in [(Feature::Lro, "lro"), (Feature::GroHardware, "rx-gro-hw")] {
        let mut port = self::port(Role::Rx, "ixgbe");
        set(&mut port, feature, true, false);
        let item = items(&port)
            .into_iter()
            .find(|item| item.state != State::Ok)
            .unwrap();
        assert_eq!(
            (item.mend, item.fix.unwrap().feature),
            (format!("ethtool -K eth1 {name} off"), feature)
        );
        set(&mut port, feature, true, true);
        let item = items(&port)
            .into_iter()
            .find(|item| item.state != State::Ok)
            .unwrap();
        assert_eq!(
            (item.mend.as_str(), item.fix),
            ("use a port of another NIC", None),
            "what the driver holds is not to be fixed"
        );
    }
}

#[test]
fn flow_control_of_the_port_itself_is_a_problem() {
    let mut port = port(Role::Rx, "ixgbe");
    port.facts.namespace = Some("lab".into());
    port.facts.pause = Some(Pause {
        receives: true,
        frames: FrameCounts {
            received: Some(7),
            sent: None,
        },
        ..Pause::default()
    });
    let off = "ip netns exec lab ethtool -A eth1 rx off tx off";
    assert_eq!(shortfalls(&port), [("802.3x pause", PROBLEM, off.into())]);
    assert!(
        items(&port)
            .iter()
            .any(|item| item.found == "rx on, tx off, 7 received")
    );
    port.facts.pause = Some(Pause {
        autonegotiated: true,
        sends: true,
        ..Pause::default()
    });
    assert_eq!(
        shortfalls(&port)[0].2,
        "ip netns exec lab ethtool -A eth1 autoneg off rx off tx off"
    );
    port.facts.pause = None;
    port.facts.pfc = pfc(0b1000);
    assert_eq!(
        shortfalls(&port),
        [(
            "pfc of the port",
            PROBLEM,
            "ip netns exec lab dcb pfc set dev eth1 prio-pfc all:off".into()
        )]
    );
    // Some drivers count PFC only where it is on, and then it is for the port that has to count.
    for (driver, enabled, state) in [
        (MLX5, 0, Some(UNKNOWN)),
        (MLX5, 8, Some(UNKNOWN)),
        (MLX5, 0xff, None),
        ("i40e", 0, None),
        ("i40e", 8, Some(PROBLEM)),
    ] {
        let mut port = self::port(Role::Tx, driver);
        port.facts.pfc = pfc(enabled);
        let found = shortfalls(&port)
            .into_iter()
            .find(|(what, ..)| *what == "pfc of the port")
            .map(|(_, state, _)| state);
        assert_eq!(found, state, "{driver} {enabled}");
    }
}

#[test]
fn links_that_do_not_fit() {
    let two = |speed| {
        let mut rx = port(Role::Rx, "ixgbe");
        rx.facts.speed = speed;
        let found = judge(&Preflight {
            ports: vec![port(Role::Tx, "veth"), rx],
        });
        found[1]
            .iter()
            .find(|item| item.what == "speed")
            .unwrap()
            .clone()
    };
    assert_eq!(two(Some(10_000_000_000)).state, State::Ok);
    let slower = two(Some(1_000_000_000));
    assert_eq!(
        (slower.state, slower.mend.as_str()),
        (PROBLEM, "ethtool -s eth1 speed 10000")
    );
    let silent = two(None);
    let set = "set line_rate under [ports] in the testbed";
    assert_eq!((silent.state, silent.mend.as_str()), (PROBLEM, set));
    let mut jumbo = port(Role::Rx, "ixgbe");
    jumbo.facts.mtu = 9000;
    assert_eq!(
        shortfalls(&jumbo),
        [],
        "a program was attached all the same"
    );
    jumbo.self_test = SelfTest::NotDone {
        reason: "it was not asked for".into(),
    };
    assert_eq!(
        shortfalls(&jumbo),
        [("mtu", UNKNOWN, "ip link set dev eth1 mtu 1500".into())]
    );
    jumbo.self_test = SelfTest::Refused {
        reason: "the MTU is too large for XDP".into(),
    };
    assert!(shortfalls(&jumbo).contains(&("xdp features", PROBLEM, String::new())));
}

#[test]
fn tags_that_the_driver_keeps_are_a_problem_where_the_dut_trusts_them() {
    let mut port = port(Role::Rx, "ixgbe");
    set(&mut port, Feature::RxVlan, true, true);
    assert_eq!(shortfalls(&port), []);
    port.wanted.tagged = true;
    assert_eq!(
        shortfalls(&port),
        [("vlan offload", PROBLEM, "use a port of another NIC".into())]
    );
    set(&mut port, Feature::RxVlan, true, false);
    assert_eq!(shortfalls(&port), [], "the run turns it off");
}

#[test]
fn an_rdma_device_takes_roce_frames_from_the_port_of_the_rc_case_alone() {
    for (role, count) in [(Role::Rx, 0), (Role::Rc, 1)] {
        let mut port = port(role, MLX5);
        port.facts.rdma = vec!["mlx5_0".into()];
        let found = shortfalls(&port);
        assert_eq!(found.len(), count, "{found:?}");
        assert!(found.iter().all(|(what, state, mend)| (*what, *state)
            == ("rdma device", PROBLEM)
            && mend.contains("pci/0000:03:00.")));
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
        let preflight = Preflight { ports };
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
