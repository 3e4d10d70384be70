//! `run --trace`: lines about frames beside the results, and none without it.

use std::fs;

use crate::run::lab::{Lab, cases_of, of_repository};
use crate::run::outcome::Outcome;

#[test]
fn root_trace_log_has_the_frames_of_both_ports_and_is_not_there_unasked() {
    const NAME: &str = "root_trace_log_has_the_frames_of_both_ports_and_is_not_there_unasked";
    let Some(lab) = Lab::new(NAME) else {
        return;
    };
    let plan = lab.file("plan.toml", &cases_of(&["single"]));
    let testbed = of_repository("configs/testbeds/sim.toml");
    let arguments = format!("--testbed {testbed} --plan {plan}");
    let log = lab.out().join("trace.log");

    let plain = lab.finish(&arguments);
    assert!(!log.exists(), "{}", plain.stdout);
    let results = || {
        let entries = fs::read_dir(lab.out()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let earlier = results();

    // One that is refused when the programs are attached already.
    let refused = lab.start(&format!(
        "{arguments} --trace --set testbed.hooks.prepare=\"false\""
    ));
    let refused = Outcome::of(refused.wait_with_output().unwrap());
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!(results(), earlier);

    let traced = lab.start(&format!("{arguments} --trace"));
    let traced = Outcome::of(traced.wait_with_output().unwrap());
    let lines =
        fs::read_to_string(log).unwrap_or_else(|error| panic!("{error}: {}", traced.stdout));
    let is_there = |port: &str, what: &str, verdict: &str| {
        lines
            .lines()
            .any(|line| line.starts_with(&format!("{port}: {what}")) && line.ends_with(verdict))
    };
    assert!(is_there("rx", "test frame: run ", ": drop"), "{lines}");
    // The DUT's, and in the self-test the peer's.
    assert!(is_there("tx", "PFC: vector 0x", ": drop"), "{lines}");
}
