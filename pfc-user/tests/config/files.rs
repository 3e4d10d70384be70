//! The testbeds and plans that the tool brings along, and what becomes of them.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::Parser;
use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{LineRate, Priority, Quanta};
use validator::cli::Cli;
use validator::config::{
    self, BUILT_IN_PLANS, Config, Destination, Dut, MadTransport, PfcParameters, PfcTestbed,
    PlanChoice, PlannedCase, PlannedRepetition, Port, Sender, Switched, XdpMode,
};
use validator::dut::switch::config::Scheduler;
use validator_core::plan::Durations;

const CASES: [&str; 23] = [
    "pfc.pause-single-lossless",
    "pfc.pause-multi-lossless",
    "pfc.pause-lossy",
    "pfc.global-pause",
    "mad.c14-024-10-01",
    "mad.c14-016-get",
    "rc.c09-142-01",
    "pfc.enable-vector",
    "mad.c13-013",
    "mad.c13-014-01",
    "pfc.class-map",
    "pfc.sizes",
    "pfc.zero-time",
    "pfc.independent-times",
    "pfc.timer-reload",
    "pfc.pause-time",
    "pfc.response-time",
    "pfc.invalid-frames",
    "pfc.source-address",
    "pfc.generation",
    "pfc.no-congestion",
    "pfc.oversubscription",
    "pfc.victim",
];
const MS: u64 = 1_000_000;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../configs")
        .join(name)
}

fn load(testbed: &Path, plan: &str, sets: &[&str]) -> Config {
    let sets: Vec<_> = sets.iter().map(|set| set.to_string()).collect();
    config::load(testbed, &PlanChoice::Plan(plan.to_owned()), &sets)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn sim(plan: &str, sets: &[&str]) -> Config {
    load(&file("testbeds/sim.toml"), plan, sets)
}

/// The PFC part of a testbed.
fn pfc(config: Config) -> PfcTestbed {
    config.testbed.pfc.expect("a testbed with a table [dut]")
}

/// Parameters of the plan's PFC cases, in their order.
fn parameters(config: &Config) -> Vec<&PfcParameters> {
    config
        .plan
        .cases
        .iter()
        .filter_map(|case| {
            if let PlannedCase::Pfc(_, parameters) = case {
                Some(parameters)
            } else {
                None
            }
        })
        .collect()
}

fn priorities(numbers: &[u8]) -> Vec<Priority> {
    numbers
        .iter()
        .map(|number| Priority::new(*number).unwrap())
        .collect()
}

fn mod_8() -> [Priority; 64] {
    std::array::from_fn(|dscp| Priority::from_low_bits(dscp as u8))
}

/// Cases with the lossless priorities of each repetition, and those stormed where that is a part.
fn repetitions(config: &Config) -> Vec<(&str, Vec<String>)> {
    let join = |set: &[Priority]| set.iter().map(Priority::to_string).collect::<String>();
    let name = |set: &PlannedRepetition| {
        join(&set.lossless)
            + &set
                .storm
                .as_ref()
                .map_or(String::new(), |storm| format!(" storm {}", join(storm)))
    };
    let ids = config.plan.cases.iter().map(|case| case.case().id);
    ids.zip(parameters(config))
        .map(|(id, case)| (id, case.repetitions.iter().map(name).collect()))
        .collect()
}

#[test]
fn the_pfc_plan_has_every_repetition_that_the_test_plan_asks_for() {
    let config = sim("pfc", &[]);
    let each: Vec<_> = (0..8).map(|number| number.to_string()).collect();
    let sets = ["01", "23", "45", "67", "0123456", "34 storm 3"]
        .map(str::to_owned)
        .to_vec();
    let expected = [
        (CASES[0], each.clone()),
        (CASES[1], sets),
        (CASES[2], each),
        (CASES[3], vec!["34".to_owned()]),
    ];
    assert_eq!(repetitions(&config), expected);

    let second = Durations {
        baseline: 300 * MS,
        lead: 1000 * MS,
        traffic: 1000 * MS,
        tail: 200 * MS,
        resume: 1000 * MS,
        drain_max: 2000 * MS,
    };
    let parameters = parameters(&config);
    assert_eq!(parameters[0].durations, second);
    assert_eq!(
        parameters[3].durations,
        Durations {
            traffic: 5000 * MS,
            ..second
        }
    );
    assert!(
        parameters
            .iter()
            .all(|case| case.frame == 1024 && case.storm.quanta == Quanta::MAX)
    );
}

#[test]
fn the_smoke_plan_has_all_four_cases_in_short() {
    let config = sim("smoke", &[]);
    let owned = |names: &[&str]| {
        names
            .iter()
            .map(|name| name.to_string())
            .collect::<Vec<_>>()
    };
    let expected = [
        (CASES[0], owned(&["3", "4"])),
        (CASES[1], owned(&["34", "34 storm 3"])),
        (CASES[2], owned(&["3"])),
        (CASES[3], owned(&["34"])),
    ];
    assert_eq!(repetitions(&config), expected);
    let parameters = parameters(&config);
    let traffic: Vec<_> = parameters
        .iter()
        .map(|case| case.durations.traffic / MS)
        .collect();
    assert_eq!(traffic, [300, 300, 600, 300]);
    assert!(
        parameters
            .iter()
            .all(|case| case.durations.lead == 300 * MS)
    );
    assert_eq!(parameters[1].repetitions[1].storm, Some(priorities(&[3])));
}

#[test]
fn the_default_plan_has_the_cases_of_the_documents() {
    let families = ["pfc", "mad", "rc"]
        .map(|plan| sim(plan, &[]).plan.cases)
        .concat();
    assert_eq!(sim(config::DEFAULT_PLAN, &[]).plan.cases, families);
    let ids: Vec<&str> = families.iter().map(|case| case.case().id).collect();
    assert_eq!(ids, CASES[..7]);
}

#[test]
fn the_further_cases_have_their_sets_and_vectors() {
    let config = sim("pfc-further", &[]);
    let sets = |sets: &[&str]| -> Vec<String> { sets.iter().map(ToString::to_string).collect() };
    assert_eq!(
        repetitions(&config),
        [
            (CASES[7], sets(&["34 storm ", "34 storm 3", "34 storm 4"])),
            (
                CASES[10],
                (0..8).map(|class| format!("34 storm {class}")).collect(),
            ),
            (CASES[11], sets(&["34", "34 storm 012567"])),
            (CASES[12], sets(&["34"])),
            (CASES[13], sets(&["34", "1346"])),
            (CASES[14], sets(&["34"])),
            (CASES[15], sets(&["34"])),
            (CASES[16], sets(&["34"])),
            (CASES[17], sets(&["34"])),
            (CASES[18], sets(&["34"])),
            (CASES[19], sets(&["34"])),
            (CASES[20], sets(&["34"])),
            (CASES[21], sets(&["3", "34"])),
            (CASES[22], sets(&["3", "34 storm 4"])),
        ]
    );
}

#[test]
fn what_a_case_without_a_storm_does_not_use_is_not_set() {
    let choice = PlanChoice::Cases {
        plan: "pfc-further".into(),
        ids: vec!["pfc.timer-reload".into()],
    };
    let sets = [
        "plan.durations.lead=2s",
        "plan.durations.traffic=2s",
        "plan.storm.quanta=0x1fff",
    ];
    for set in sets {
        let loaded = config::load(&file("testbeds/sim.toml"), &choice, &[set.into()]);
        let error = loaded.unwrap_err().to_string();
        assert!(error.contains(": it changes nothing: "), "{set}: {error}");
    }
}

#[test]
fn a_case_of_another_plan_is_refused_with_that_plan() {
    let choice = PlanChoice::Cases {
        plan: "all".to_owned(),
        ids: vec![CASES[7].to_owned()],
    };
    let error = config::load(&file("testbeds/sim.toml"), &choice, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--case pfc.enable-vector: no case of the plan all; `--plan pfc-further` has it"
    );
}

#[test]
fn a_value_counts_for_the_chosen_cases_alone() {
    for (case, taken) in [(CASES[3], true), (CASES[5], false), (CASES[6], false)] {
        let choice = PlanChoice::Cases {
            plan: "all".to_owned(),
            ids: vec![case.to_owned()],
        };
        let sets = ["testbed.dut.faults=[\"leaks=100\"]".to_owned()];
        let loaded = config::load(&file("testbeds/sim.toml"), &choice, &sets);
        assert_eq!(loaded.is_ok(), taken, "{case}: {loaded:?}");
    }
}

#[test]
fn built_in_plans_are_the_files_of_the_same_name() {
    for (name, _) in BUILT_IN_PLANS {
        let path = file(&format!("plans/{name}.toml"));
        assert_eq!(sim(path.to_str().unwrap(), &[]).plan, sim(name, &[]).plan);
        assert_eq!(sim(name, &[]).plan.name, name);
    }
}

#[test]
fn chosen_cases_come_from_their_plan_in_its_order() {
    let chosen = |plan: &str| PlanChoice::Cases {
        plan: plan.to_owned(),
        ids: [CASES[3], CASES[2], CASES[3]].map(str::to_owned).to_vec(),
    };
    let smoke = config::load(&file("testbeds/sim.toml"), &chosen("smoke"), &[]).unwrap();
    let all = sim("smoke", &[]).plan.cases;
    assert_eq!(
        (smoke.plan.name.as_str(), &smoke.plan.cases[..]),
        ("smoke", &all[2..4])
    );
    let choice = chosen("all");
    let config = config::load(&file("testbeds/sim.toml"), &choice, &[]).unwrap();
    assert_eq!(
        config
            .plan
            .cases
            .iter()
            .map(|case| case.case().id)
            .collect::<Vec<_>>(),
        CASES[2..4]
    );
}

#[test]
fn the_simulated_testbed_has_the_defaults() {
    assert_eq!(sim("smoke", &[]).testbed.record().dut, "sim");
    let testbed = pfc(sim("smoke", &[]));
    assert_eq!(
        testbed.dut,
        Dut::Sim {
            faults: vec![],
            args: vec![],
            scheduler: Scheduler::RoundRobin,
        }
    );
    assert_eq!(
        testbed.ports.line_rate.map(LineRate::bits_per_second),
        Some(1_000_000_000)
    );
    assert_eq!(
        (testbed.ports.xdp, testbed.ports.sender),
        (XdpMode::Auto, Sender::Auto)
    );
    assert_eq!(
        (testbed.qos.trust, testbed.qos.dscp_map),
        (Trust::Dscp, mod_8())
    );
    assert_eq!(testbed.qos.lossless, []);
    assert_eq!(testbed.addresses.destination, Destination::RxPort);
    let limits = testbed.limits.at(testbed.ports.line_rate.unwrap());
    assert_eq!(
        (
            limits.max_response,
            limits.headroom,
            limits.max_residence,
            limits.max_burst
        ),
        (MS, 1 << 20, 2000 * MS, 4 * MS)
    );
    assert_eq!((limits.min_throughput, testbed.limits.load), (0.99, 1.0));
}

#[test]
fn the_bridge_testbed_differs_in_the_dut() {
    let testbed = load(&file("testbeds/bridge.toml"), "smoke", &[]).testbed;
    assert_eq!(testbed.record().dut, "bridge");
    let testbed = testbed.pfc.unwrap();
    assert_eq!(testbed.dut, Dut::Bridge);
}

#[test]
fn the_watchdog_is_off_where_the_tool_makes_the_dut_and_else_as_declared() {
    let watchdog = |testbed: &str, sets: &[&str]| {
        let testbed = file(&format!("testbeds/{testbed}.toml"));
        pfc(load(&testbed, "smoke", sets)).facts.watchdog
    };
    let (on, off) = (Some(Switched::On), Some(Switched::Off));
    for made_by_us in ["sim", "bridge"] {
        assert_eq!(watchdog(made_by_us, &[]), off);
        assert_eq!(watchdog(made_by_us, &["testbed.facts.watchdog=on"]), on);
    }
    assert_eq!(watchdog("lab-example", &["testbed.facts={}"]), None);
    assert_eq!(watchdog("lab-example", &["testbed.facts.watchdog=on"]), on);
}

/// An example with its comments as settings: those with a key alone before the equals sign. Lines
/// that begin with `without` are left out.
fn uncommented(example: &str, without: &str) -> Config {
    let text = std::fs::read_to_string(file(&format!("testbeds/{example}.toml"))).unwrap();
    let key = |rest: &&str| {
        rest.split_once(" = ")
            .is_some_and(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
    };
    let lines = text
        .lines()
        .map(|line| line.strip_prefix("# ").filter(key).unwrap_or(line));
    let lines = lines.filter(|line| without.is_empty() || !line.starts_with(without));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("example.toml");
    std::fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
    load(&path, "pfc", &[])
}

#[test]
fn every_example_is_read_also_with_its_comments_as_settings() {
    let mut examples: Vec<_> = std::fs::read_dir(file("testbeds"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_owned())
        .map(|name| name.into_string().unwrap())
        .collect();
    examples.sort();
    assert!(examples.len() >= 7, "{examples:?}");
    for example in examples {
        // Only one of the two destinations of the lab example may be given.
        let without = if example == "lab-example" {
            "destination_mac"
        } else {
            ""
        };
        let name = uncommented(&example, without).testbed.name;
        assert!(example.starts_with(&name), "{example}: {name}");
    }
}

#[test]
fn arguments_that_the_simulated_testbed_proposes_are_taken() {
    let testbed = uncommented("sim", "").testbed;
    let Some(Dut::Sim { args, .. }) = testbed.pfc.map(|pfc| pfc.dut) else {
        panic!("expected a simulated switch")
    };
    assert_eq!(args, ["--xoff", "512KiB", "--headroom", "1MiB"]);
    let ports = ["validator", "dut", "switch", "--port", "a", "--port", "b"];
    let switch = ports.into_iter().chain(args.iter().map(String::as_str));
    Cli::try_parse_from(switch).unwrap_or_else(|error| panic!("{error}"));
    let Some(MadTransport::Sim { args, .. }) = testbed.mad.map(|mad| mad.transport) else {
        panic!("expected a simulated agent")
    };
    assert_eq!(args, ["--node", "ca"]);
    let sma = ["validator", "dut", "sma", "--socket", "x"].into_iter();
    Cli::try_parse_from(sma.chain(args.iter().map(String::as_str)))
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn every_line_of_the_lab_example_is_right_also_those_commented_out() {
    let example = pfc(load(&file("testbeds/lab-example.toml"), "pfc", &[]));
    let port = |interface: &str| Port {
        interface: interface.to_owned(),
        namespace: None,
    };
    assert_eq!(
        example.dut,
        Dut::External {
            tx: port("eth1"),
            rx: port("eth2"),
            names: Default::default(),
        }
    );
    assert_eq!(
        (
            example.ports.line_rate,
            example.facts.watchdog,
            example.hooks.timeout
        ),
        (None, Some(Switched::Off), 60_000 * MS)
    );
    assert_eq!(
        (example.qos.dscp_map[48], example.limits.load),
        (Priority::from_low_bits(6), 0.9998)
    );

    // Only one of the two destinations may be given.
    let full = pfc(uncommented("lab-example", "destination_mac"));
    assert_eq!(
        full.ports.line_rate.map(LineRate::bits_per_second),
        Some(25_000_000_000)
    );
    assert_eq!(
        full.addresses.source_ip,
        "198.18.0.1".parse::<IpAddr>().unwrap()
    );
    assert_eq!(full.addresses.source_mac, Some([2, 0, 0, 0, 0, 1]));
    assert_eq!(
        full.addresses.destination,
        Destination::Gateway([2, 0, 0, 0, 0, 0xfe])
    );
    // Limits that are commented out are the defaults, but for one that has none.
    let mut limits = full.limits;
    assert_eq!(limits.xoff.take(), Some(96 << 10));
    assert_eq!(limits, example.limits);
    assert!(full.hooks.configure.is_some() && full.hooks.counters.is_some());
}

#[test]
fn set_arguments_win_over_the_files_and_are_recorded() {
    let sets = [
        "testbed.dut.faults=[\"leaks=100\"]",
        "testbed.qos.dscp_map=sonic",
        "testbed.facts.watchdog=on",
        "testbed.limits.max_response=3ms",
        "plan.durations.traffic=2s",
        "plan.traffic.frame=512",
        "plan.storm.quanta=0x1fff",
        "plan.storm.interval=1ms",
    ];
    let config = sim("pfc", &sets);
    assert!(
        config
            .testbed
            .toml
            .ends_with("# --set testbed.limits.max_response=3ms\n"),
        "{}",
        config.testbed.toml
    );
    let cases = parameters(&config);
    assert_eq!(
        (cases[0].durations.traffic, cases[0].frame),
        (2000 * MS, 512)
    );
    assert_eq!(
        cases[3].durations.traffic,
        5000 * MS,
        "a case's own value is nearer than the plan's"
    );
    assert_eq!(
        (cases[0].storm.quanta, cases[0].storm.interval),
        (Quanta(0x1fff), Some(MS))
    );
    let testbed = pfc(config);
    assert_eq!(testbed.limits.max_response, 3 * MS);
    assert_eq!(
        testbed.dut,
        Dut::Sim {
            faults: vec!["leaks=100".parse().unwrap()],
            args: vec![],
            scheduler: Scheduler::RoundRobin,
        }
    );
    assert_eq!(
        (testbed.qos.dscp_map[46], testbed.facts.watchdog),
        (Priority::from_low_bits(5), Some(Switched::On))
    );
}

#[test]
fn the_storm_comes_three_times_in_a_pause_unless_said_otherwise() {
    let rate = |bits| LineRate::from_bits_per_second(bits).unwrap();
    let storm = parameters(&sim("smoke", &[]))[0].storm;
    assert_eq!(storm.interval_at(rate(1_000_000_000)), Ok(33_553_920 / 3));
    let storm = parameters(&sim("smoke", &["plan.storm.interval=10ms"]))[0].storm;
    assert_eq!(storm.interval_at(rate(1_000_000_000)), Ok(10 * MS));
    assert_eq!(
        storm
            .interval_at(rate(100_000_000_000))
            .unwrap_err()
            .to_string(),
        "expected an interval below the pause time, which is 335.539us at 100 Gbit/s; found 10ms"
    );
}

#[test]
fn a_third_of_the_pause_of_fast_links_is_taken_and_may_be_asked_for() {
    for (gbits, third) in [(100u64, 111_846), (400, 27_961), (800, 13_980)] {
        let rate = LineRate::from_bits_per_second(gbits * 1_000_000_000).unwrap();
        let line_rate = format!("testbed.ports.line_rate={gbits}G");
        let config = sim("smoke", &[&line_rate]);
        assert_eq!(pfc(sim("smoke", &[&line_rate])).ports.line_rate, Some(rate));
        assert!(
            parameters(&config)
                .iter()
                .all(|case| case.storm.interval_at(rate) == Ok(third))
        );
        let asked = sim(
            "smoke",
            &[&line_rate, &format!("plan.storm.interval={third}ns")],
        );
        assert!(
            parameters(&asked)
                .iter()
                .all(|case| case.storm.interval_at(rate) == Ok(third))
        );
    }
}

#[test]
fn ipv6_and_pcp_testbeds_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.toml");
    let text = "name = \"t\"\ndut.kind = \"external\"\n[ports]\n\
                tx = { interface = \"p\", namespace = \"a\" }\n\
                rx = { interface = \"p\", namespace = \"b\" }\n\
                xdp = \"skb\"\n[qos]\ntrust = \"pcp\"\nlossless = [4, 3]\n\
                [addresses]\nsource_ip = \"fd00::1\"\ndestination_ip = \"fd00::2\"\n\
                source_mac = \"02:00:00:00:00:01\"\ndestination_mac = \"02-00-00-00-00-02\"\n";
    std::fs::write(&path, text).unwrap();
    let testbed = pfc(load(&path, "smoke", &["plan.traffic.frame=84"]));
    assert_eq!(
        (testbed.qos.trust, testbed.ports.xdp, testbed.facts.watchdog),
        (Trust::Pcp, XdpMode::Skb, None)
    );
    assert_eq!(testbed.qos.lossless, priorities(&[3, 4]));
    assert_eq!(testbed.addresses.source_mac, Some([2, 0, 0, 0, 0, 1]));
    assert_eq!(
        testbed.addresses.destination,
        Destination::Mac([2, 0, 0, 0, 0, 2])
    );
}

#[test]
fn the_testbeds_of_the_mad_cases_are_read() {
    let sim = sim("mad", &[]).testbed.mad.unwrap();
    assert_eq!(
        sim.transport,
        MadTransport::Sim {
            faults: vec![],
            args: vec![],
        }
    );
    assert_eq!(
        (
            sim.route.to_string().as_str(),
            sim.m_key_current.0,
            sim.timeout
        ),
        ("path 0,1", 0, 1000 * MS)
    );
    assert!(sim.m_key_dut != sim.m_key_other);

    let ibsim = load(&file("testbeds/ibsim.toml"), "mad", &[]).testbed;
    assert_eq!((ibsim.record().dut.as_str(), &ibsim.pfc), ("ibsim", &None));
    assert_eq!(
        ibsim.mad.unwrap().transport,
        MadTransport::Ibsim {
            socket: "validator".into(),
            host: "Hca1".into()
        }
    );

    let sets = ["testbed.mad.m_key_current=0x00000000000000ff"];
    let hca = load(&file("testbeds/hca-example.toml"), "mad", &sets)
        .testbed
        .mad
        .unwrap();
    assert_eq!(
        hca.transport,
        MadTransport::Umad {
            device: "mlx5_0".into(),
            port: 1,
            sysfs: "/sys".into()
        }
    );
    assert_eq!(
        (hca.m_key_dut, hca.m_key_other, hca.m_key_current.0),
        (sim.m_key_dut, sim.m_key_other, 0xff)
    );
    // Values in the example are the defaults.
    assert_eq!((hca.route, hca.timeout), (sim.route, 200 * MS));
}
