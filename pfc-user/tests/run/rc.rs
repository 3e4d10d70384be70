//! The RC case on real frames: the simulated requester behind a veth, and the XDP program as its
//! silent responder.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::lab::{Lab, of_repository};
use crate::outcome::{Outcome, Report};

/// A time-out of 134 ms, which only a simulated DUT follows exactly. A stall of the machine up to a
/// twentieth of it leaves the verdict certain.
const QUICK: &str =
    "name = \"quick\"\n[[case]]\nid = \"rc.c09-142-01\"\nqueue_pairs = [{ timeout = 15 }]\n";

fn run(lab: &Lab, plan: &str, more: &str) -> (Outcome, Value) {
    let plan = lab.file("plan.toml", plan);
    let testbed = of_repository("configs/testbeds/sim.toml");
    let ended = lab.run(&format!(
        "run --testbed {testbed} --plan {plan} --out {}{more}",
        lab.out().display()
    ));
    let case = Report::read(&lab.out()).0["cases"][0].clone();
    (ended, case)
}

fn checks(case: &Value, verdict: &str) -> BTreeSet<String> {
    let all = case["checks"].as_array().unwrap().iter();
    all.filter(|check| check["verdict"] == verdict)
        .map(|check| check["check"].as_str().unwrap().to_owned())
        .collect()
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn root_a_good_requester_passes_and_every_step_is_reported() {
    let Some(lab) = Lab::new("root_a_good_requester_passes_and_every_step_is_reported") else {
        return;
    };
    let plan = "name = \"all\"\n[[case]]\nid = \"rc.c09-142-01\"\nqueue_pairs = [\n\
                { timeout = 16 }, { timeout = 16, retry_count = 0 }, \
                { timeout = 16, retry_count = 7, path_mtu = 256 }, \
                { timeout = 16, path_mtu = 4096 },\n]\n";
    let (ended, case) = run(&lab, plan, "");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(case["verdict"], "pass");
    for repetition in [
        "retry 2, time-out 16, PMTU 1024",
        "retry 7, time-out 16, PMTU 256",
        "retry 2, time-out 16, PMTU 4096",
    ] {
        let steps = case["steps"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|step| step["repetition"] == repetition);
        let steps: Vec<_> = steps
            .map(|step| {
                (
                    step["step"].as_str().unwrap().to_owned(),
                    step["verdict"].clone(),
                )
            })
            .collect();
        for number in 1..=13 {
            let of = |step: &&(String, Value)| {
                step.0 == number.to_string() || step.0.starts_with(&format!("{number}."))
            };
            let found: Vec<_> = steps.iter().filter(of).collect();
            assert!(
                !found.is_empty() && found.iter().all(|(_, verdict)| verdict == "pass"),
                "step {number}: {steps:?}"
            );
        }
    }
    for assertion in case["assertions"].as_array().unwrap() {
        assert!(
            assertion["verdict"] == "pass"
                && !assertion["comparisons"].as_array().unwrap().is_empty(),
            "{assertion}"
        );
    }
    lab.assert_nothing_is_left();
    let again = lab.run(&format!("judge {} --format json", lab.out().display()));
    assert_eq!(
        (again.code, &again.report().0["cases"][0]),
        (Some(0), &case)
    );
}

#[test]
fn root_faults_are_found_on_real_frames() {
    let Some(lab) = Lab::new("root_faults_are_found_on_real_frames") else {
        return;
    };
    for (fault, expected) in [
        ("bad-icrc", set(["same-request"])),
        ("two-completions", set(["one-completion"])),
        ("stays-in-rts", set(["qp-error"])),
        ("ignores-answer", set(["path-alive"])),
    ] {
        let (ended, case) = run(
            &lab,
            QUICK,
            &format!(" --set testbed.rc.faults=[\"{fault}\"]"),
        );
        assert_eq!(
            (ended.code, checks(&case, "fail")),
            (Some(1), expected),
            "{fault}: {ended:?}"
        );
    }
    let (ended, case) = run(&lab, QUICK, " --set testbed.rc.faults=[\"one-retry-less\"]");
    assert!(
        ended.code == Some(1) && checks(&case, "fail").contains("requests"),
        "{ended:?}"
    );
    lab.assert_nothing_is_left();
}

#[test]
fn root_a_neighbour_that_does_not_resolve_is_inconclusive() {
    let Some(lab) = Lab::new("root_a_neighbour_that_does_not_resolve_is_inconclusive") else {
        return;
    };
    let (ended, case) = run(&lab, QUICK, " --set testbed.rc.faults=[\"no-neighbour\"]");
    assert_eq!(
        (ended.code, &case["verdict"]),
        (Some(3), &"inconclusive".into()),
        "{ended:?}"
    );
    assert!(
        checks(&case, "fail").is_empty() && checks(&case, "pass").is_subset(&set(["qualifier"])),
        "{ended:?}"
    );
    lab.assert_nothing_is_left();
}

#[test]
fn root_an_agent_that_cannot_be_used_is_named() {
    let Some(mut lab) = Lab::new("root_an_agent_that_cannot_be_used_is_named") else {
        return;
    };
    let namespace = lab.namespace("rc");
    let testbed = |agent: &str| {
        format!(
            "name = \"t\"\n[rc]\ndut = \"agent\"\nagent = \"{agent}\"\naddress = \"198.18.16.1\"\n\
             apm = false\n\
             port = {{ interface = \"lo\", namespace = \"{namespace}\" }}\n"
        )
    };
    let nobody = lab.file("nobody.toml", &testbed("127.0.0.1:9"));
    crate::lab::ip(&format!("-n {namespace} link set dev lo up"));
    let ended = lab.run(&format!("run --testbed {nobody} --plan rc"));
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(2), ""),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains("127.0.0.1:9") && ended.stderr.contains("agent"),
        "{}",
        ended.stderr
    );

    let mut agent = lab.command(
        "ip",
        &format!("netns exec {namespace} {}", crate::lab::PROGRAM),
    );
    agent.args(
        "dut requester --interface lo --address 198.18.16.2 --peer-mac 02:00:00:00:00:01 --listen \
         127.0.0.1:0 --token-env"
            .split(' '),
    );
    let mut agent = agent
        .env("VALIDATOR_TOKEN", "right")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(agent.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .trim()
        .strip_prefix("ready: ")
        .expect("the line `ready`")
        .to_owned();
    lab.keep(agent);
    let there = lab.file("there.toml", &testbed(&address));
    for token in [None, Some("wrong")] {
        let mut run = lab.validator(&format!("run --testbed {there} --plan rc"));
        match token {
            Some(token) => run.env("VALIDATOR_TOKEN", token),
            None => run.env_remove("VALIDATOR_TOKEN"),
        };
        let ended = Outcome::of(run.output().unwrap());
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(2), ""),
            "{ended:?}"
        );
        assert!(
            ended.stderr.contains("agent") && ended.stderr.contains("token"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn root_ctrl_c_ends_the_rc_case_at_once() {
    let Some(lab) = Lab::new("root_ctrl_c_ends_the_rc_case_at_once") else {
        return;
    };
    let plan = lab.file(
        "plan.toml",
        "name = \"slow\"\n[[case]]\nid = \"rc.c09-142-01\"\n\
         queue_pairs = [{ timeout = 22, retry_count = 7 }]\n",
    );
    let run = lab.start(&format!(
        "--testbed {} --plan {plan}",
        of_repository("configs/testbeds/sim.toml")
    ));
    // Sixteen seconds pass before the first retry: the run is waiting once the simulated DUT
    // exists.
    crate::lab::wait_until("a simulated requester", || {
        lab.processes()
            .iter()
            .any(|(_, command)| command.contains(" dut requester "))
    });
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(run.id() as i32),
        nix::sys::signal::Signal::SIGINT,
    )
    .unwrap();
    let ended = Outcome::of(run.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{ended:?}");
    lab.assert_nothing_is_left();
}
