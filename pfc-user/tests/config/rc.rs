//! Testbeds with a table `[rc]`, and the queue pairs of plans, as they are read. Their mistakes are
//! in `errors`.

use std::fs;
use std::path::Path;

use validator::config::{self, Config, ConfigError, PlanChoice, PlannedCase, RcDut};
use validator_core::plan::rc::RcParameters;

const PLAN: &str = "name = \"p\"\n[[case]]\nid = \"rc.c09-142-01\"\n";

/// Loads a testbed with these lines in its table `[rc]`.
fn load(lines: &str, plan: &str) -> Result<Config, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("t.toml"), format!("name = \"t\"\n[rc]\n{lines}\n")).unwrap();
    fs::write(path("p.toml"), plan).unwrap();
    let choice = PlanChoice::Plan(path("p.toml").display().to_string());
    let loaded = config::load(&path("t.toml"), &choice, &[]);
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
        config::load(&of_repository(name), &PlanChoice::Plan(plan.into()), &[]).unwrap()
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
