//! Every mistake in a testbed's table `[rc]`, and in the queue pairs of a plan, is answered before
//! anything is sent.
//!
//! lane: computing

use std::fs;
use std::path::Path;

use validator::config::{self, Config, ConfigError, PlanChoice, PlannedCase, RcDut};
use validator::plan::rc::RcParameters;

const PLAN: &str = "name = \"p\"\n[[case]]\nid = \"rc.c09-142-01\"\n";
const KNOWN: [&str; 7] = [
    "pfc.pause-single-lossless",
    "pfc.pause-multi-lossless",
    "pfc.pause-lossy",
    "pfc.global-pause",
    "mad.c14-024-10-01",
    "mad.c14-016-get",
    "rc.c09-142-01",
];

/// Loads a testbed with these lines in its table `[rc]`.
fn load(lines: &str, plan: &str) -> Result<Config, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("t.toml"), format!("name = \"t\"\n[rc]\n{lines}\n")).unwrap();
    fs::write(path("p.toml"), plan).unwrap();
    let choice = PlanChoice::Plan(path("p.toml").display().to_string());
    let loaded = config::load(&path("t.toml"), &choice, &[], &KNOWN);
    loaded.map_err(|error: ConfigError| {
        error
            .to_string()
            .replace(&format!("{}/", dir.path().display()), "")
    })
}

fn of_repository(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../configs")
        .join(name)
}

#[test]
fn the_testbeds_that_the_tool_brings_along_are_read() {
    let read = |name: &str, plan: &str| {
        config::load(
            &of_repository(name),
            &PlanChoice::Plan(plan.into()),
            &[],
            &KNOWN,
        )
        .unwrap()
    };
    let sim = read("testbeds/sim.toml", "rc").testbed.rc.unwrap();
    assert_eq!(
        (sim.dut, sim.address, sim.apm),
        (
            RcDut::Sim {
                faults: vec![],
                args: vec![]
            },
            "198.18.16.1".parse().unwrap(),
            None
        )
    );
    let example = read("testbeds/agent-example.toml", "rc").testbed;
    assert_eq!(
        (example.record().dut.as_str(), &example.pfc),
        ("agent", &None)
    );
    let RcDut::Agent {
        agent,
        token_file,
        port,
    } = example.rc.unwrap().dut
    else {
        panic!("no agent")
    };
    assert_eq!(
        (agent.as_str(), token_file, port.interface.as_str()),
        ("192.0.2.2:18515", None, "eth1")
    );
}

#[test]
fn without_queue_pairs_a_plan_has_that_of_the_document() {
    let parameters = |plan: &str| match load("dut = \"sim\"", plan).unwrap().plan.cases.remove(0) {
        PlannedCase::Rc(_, queue_pairs) => queue_pairs,
        other => panic!("{other:?}"),
    };
    let document = RcParameters {
        retry_count: 2,
        timeout: 18,
        path_mtu: 1024,
    };
    assert_eq!(parameters(PLAN), [document]);
    let some = format!(
        "{PLAN}queue_pairs = [{{ retry_count = 7, path_mtu = 4096 }}, {{ timeout = 14 }}]\n"
    );
    assert_eq!(
        parameters(&some),
        [
            RcParameters {
                retry_count: 7,
                path_mtu: 4096,
                ..document
            },
            RcParameters {
                timeout: 14,
                ..document
            }
        ]
    );
}

#[test]
fn mistakes_are_named() {
    for (lines, expected) in [
        ("faults = []", "t.toml:2:1: rc: missing field `dut`"),
        (
            "dut = \"verbs\"",
            "t.toml:3:7: rc.dut: unknown variant `verbs`, expected `sim` or `agent`",
        ),
        (
            "dut = \"sim\"\nagent = \"a:1\"",
            "t.toml:4:9: rc.agent: only dut = \"agent\" takes it",
        ),
        (
            "dut = \"agent\"\naddress = \"198.18.0.1\"",
            "t.toml:2:1: rc.agent: missing: say where `validator agent` listens, such as agent = \"10.0.0.2:18515\"",
        ),
        (
            "dut = \"agent\"\nagent = \"a:1\"\naddress = \"198.18.0.1\"",
            "t.toml:2:1: rc.port: missing: say which port the DUT's packets come in by, such as port = { interface = \"eth1\" }",
        ),
        (
            "dut = \"agent\"\nagent = \"a:1\"\nport = { interface = \"eth1\" }",
            "t.toml:2:1: rc.address: missing: say the tester's address on that port, such as address = \"198.18.16.1\"",
        ),
        (
            "dut = \"sim\"\naddress = \"127.0.0.1\"",
            "t.toml:4:11: rc.address: expected the unicast address of the tester's port, found 127.0.0.1",
        ),
    ] {
        assert_eq!(load(lines, PLAN).unwrap_err(), expected, "{lines}");
    }
    let unknown = load("dut = \"sim\"\nfaults = [\"lies\"]", PLAN).unwrap_err();
    assert!(
        unknown.starts_with("t.toml:4:11: rc.faults[0]: no fault is called \"lies\""),
        "{unknown}"
    );
}

#[test]
fn queue_pairs_that_make_no_sense_are_named() {
    for (queue_pairs, expected) in [
        (
            "[]",
            "case[0].queue_pairs: expected at least one, such as { retry_count = 2 }; found none",
        ),
        (
            "[{ retry_count = 8 }]",
            "case[0].queue_pairs[0].retry_count: expected 0 to 7, found 8",
        ),
        (
            "[{ timeout = 0 }]",
            "case[0].queue_pairs[0].timeout: expected 1 to 31: 4.096 us * 2^n (0 would never end), found 0",
        ),
        (
            "[{ path_mtu = 1500 }]",
            "case[0].queue_pairs[0].path_mtu: expected 256, 512, 1024, 2048 or 4096, found 1500",
        ),
        (
            "[{}, { retry_count = 2 }]",
            "case[0].queue_pairs[1]: the same queue pair is listed twice",
        ),
    ] {
        let found = load(
            "dut = \"sim\"",
            &format!("{PLAN}queue_pairs = {queue_pairs}\n"),
        )
        .unwrap_err();
        assert!(
            found.starts_with("p.toml:4:") && found.ends_with(expected),
            "{found}"
        );
    }
    let mad = "name = \"p\"\n[[case]]\nid = \"mad.c14-016-get\"\nqueue_pairs = [{}]\n";
    assert!(
        load("dut = \"sim\"", mad)
            .unwrap_err()
            .ends_with("case[0].queue_pairs: only RC cases take it")
    );
}
