//! The RC case on real frames: the simulated requester behind a veth, and the XDP program as its
//! silent responder.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::thread;

use serde_json::Value;
use validator::driver::kernel::netns::Namespace;

use crate::run::lab::{Lab, of_repository};
use crate::run::outcome::{Outcome, Report};

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

/// Asserts that a run with that token ends at once and names the agent in these words, and that
/// `check` says the same, with a program on the port and without.
fn assert_no_way(lab: &Lab, testbed: &str, token: Option<&str>, words: &str) {
    let ask = |command: &str| {
        let mut asked = lab.validator(&format!("{command} --testbed {testbed} --plan rc"));
        match token {
            Some(token) => asked.env("VALIDATOR_TOKEN", token),
            None => asked.env_remove("VALIDATOR_TOKEN"),
        };
        Outcome::of(asked.output().unwrap())
    };
    let ended = ask("run");
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(2), ""),
        "{ended:?}"
    );
    let last = ended.stderr.lines().last();
    let error = last.and_then(|line| line.strip_prefix("validator: "));
    let error = error.unwrap_or_else(|| panic!("{ended:?}"));
    assert!(error.contains("agent") && error.contains(words), "{error}");
    for check in ["check --format json", "check --format json --passive"] {
        let checked = ask(check);
        let found: Value = serde_json::from_str(&checked.stdout).unwrap();
        assert_eq!(checked.code, Some(1), "{checked:?}");
        assert_eq!(found["ways"][0]["error"], error, "{found:#}");
    }
}

#[test]
fn root_an_agent_that_cannot_be_used_is_named_by_run_and_check() {
    let test = "root_an_agent_that_cannot_be_used_is_named_by_run_and_check";
    let Some(mut lab) = Lab::new(test) else {
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
    crate::run::lab::ip(&format!("-n {namespace} link set dev lo up"));
    assert_no_way(&lab, &nobody, None, "127.0.0.1:9");

    let mut agent = lab.command(
        "ip",
        &format!("netns exec {namespace} {}", crate::run::lab::PROGRAM),
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
        assert_no_way(&lab, &there, token, "token");
    }
    let mut check = lab.validator(&format!(
        "check --testbed {there} --plan rc --format json --passive"
    ));
    let checked = Outcome::of(check.env("VALIDATOR_TOKEN", "right").output().unwrap());
    let found: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(found["ways"][0]["error"], Value::Null, "{found:#}");

    // The answer to a READ of 1024 octets over IPv4 has a packet of 1072.
    let ask = |command: &str| {
        let mut asked = lab.validator(&format!("{command} --testbed {there} --plan rc"));
        Outcome::of(asked.env("VALIDATOR_TOKEN", "right").output().unwrap())
    };
    for (mtu, refused) in [(1072, 0), (1071, 1)] {
        crate::run::lab::ip(&format!("-n {namespace} link set dev lo mtu {mtu}"));
        let checked = ask("check --format json --passive");
        let found: Value = serde_json::from_str(&checked.stdout).unwrap();
        assert_eq!(
            found["plan"].as_array().unwrap().len(),
            refused,
            "{found:#}"
        );
    }
    let ended = ask("run");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let expected = "expected packets of up to 1072 octets to fit the rc port lo, found an MTU of \
                    1071";
    assert!(ended.stderr.contains(expected), "{ended:?}");
}

/// An agent of another release, and one whose host has no adapter.
#[test]
fn root_an_agent_of_no_use_is_named_by_run_and_check() {
    let Some(mut lab) = Lab::new("root_an_agent_of_no_use_is_named_by_run_and_check") else {
        return;
    };
    let namespace = lab.namespace("rc");
    crate::run::lab::ip(&format!("-n {namespace} link set dev lo up"));
    let here = Namespace::named(&namespace).unwrap();
    let listener = here
        .run(|| TcpListener::bind("127.0.0.1:0"))
        .unwrap()
        .unwrap();
    let testbed = lab.file(
        "testbed.toml",
        &format!(
            "name = \"t\"\n[rc]\ndut = \"agent\"\nagent = \"{}\"\n\
             address = \"198.18.16.1\"\napm = false\n\
             port = {{ interface = \"lo\", namespace = \"{namespace}\" }}\n",
            listener.local_addr().unwrap()
        ),
    );
    for (answer, words) in [
        (
            concat!(
                r#"{"answer":"welcome","version":2,"device":{"name":"a0","#,
                r#""backend":"verbs","apm":false,"active_mtu":1024}}"#,
            ),
            "is it a validator agent of this release?",
        ),
        (
            r#"{"answer":"failed","kind":"no-device","message":"there is no RDMA device"}"#,
            "there is no RDMA device",
        ),
    ] {
        // A connection each of `run` and of both checks. Not awaited: one that does not come would
        // hide what came in its place.
        let listener = listener.try_clone().unwrap();
        thread::spawn(move || (0..3).for_each(|_| greet(&listener, answer)));
        assert_no_way(&lab, &testbed, None, words);
    }
}

/// Takes a connection, and answers its first request with that message.
fn greet(listener: &TcpListener, answer: &str) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut request = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut request).unwrap();
    stream
        .write_all(&(answer.len() as u32).to_be_bytes())
        .unwrap();
    stream.write_all(answer.as_bytes()).unwrap();
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
    crate::run::lab::wait_until("a simulated requester", || {
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
