//! Runs that end early: signals, killed processes, a vanishing interface.

use std::fs;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use pfc_ebpf::stamp::Phase;
use serde_json::Value;
use validator::driver::kernel::link::{self, Feature};
use validator::driver::kernel::netns::Namespace;
use validator::report;
use validator_core::evidence::CaseEvidence;

use crate::run::external::External;
use crate::run::lab::{Lab, PROGRAM, ip, of_repository, plan};
use crate::run::outcome::{Outcome, Report};

const MINUTE: &[(&str, &str)] = &[
    ("pause-single-lossless", "lossless = [3]"),
    ("pause-lossy", "lossless = [3]"),
];

/// Sends these signals to a run whose traffic would last a minute, to its whole process group as a
/// terminal does.
fn interrupted_by(test: &str, signals: &[Signal]) {
    let Some(lab) = Lab::new(test) else { return };
    let plan = lab.plan("1min", MINUTE);
    let run = lab.start(&format!(
        "--testbed {} --plan {plan}",
        of_repository("configs/testbeds/sim.toml")
    ));
    lab.wait_for_data_in_the_storm();
    for signal in signals {
        killpg(Pid::from_raw(run.id() as i32), *signal).unwrap();
    }
    let ended = Outcome::of(run.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("pfc.pause-single-lossless"),
        "what was measured is shown: {}",
        ended.stdout
    );
    lab.assert_nothing_is_left();

    let evidence = report::read_evidence(&lab.out()).unwrap();
    assert!(evidence.interrupted);
    let begins = |case: &CaseEvidence| case.omitted.len() < case.planned.len();
    assert!(evidence.cases.len() > 1 && begins(&evidence.cases[0]));
    assert!(
        !evidence.cases[1..].iter().any(begins),
        "no further case begins"
    );
    let case = &evidence.cases[0];
    assert_eq!(
        (case.case.as_str(), &case.error),
        ("pfc.pause-single-lossless", &None)
    );
    let measured = case.repetitions[0].pfc().unwrap();
    let planned_end = measured.span(Phase::Storm).unwrap().to;
    let storm = measured.storm.as_ref().unwrap();
    assert!(storm.frames >= 3 && storm.last.after < planned_end);
    let stopped: Vec<_> = measured
        .sender
        .flows
        .iter()
        .filter(|flow| flow.phase == Phase::Storm)
        .collect();
    assert!(!stopped.is_empty() && stopped.iter().all(|flow| flow.last < planned_end));
    assert!(measured.dut.is_some(), "the simulated DUT has reported");
    assert!(
        measured
            .received
            .iter()
            .any(|flow| flow.phase == Phase::Baseline && flow.frames > 0)
    );

    let report = Report::read(&lab.out());
    assert_eq!(
        (&report.0["exit_code"], &report.0["interrupted"]),
        (&130.into(), &true.into())
    );
    assert!(lab.out().join("junit.xml").exists());
    let again = lab.run(&format!("judge {} --format json", lab.out().display()));
    assert_eq!((again.code, again.report().0), (Some(130), report.0));
}

#[test]
fn root_sigint_ends_a_run_at_once_and_what_was_measured_is_reported() {
    interrupted_by(
        "root_sigint_ends_a_run_at_once_and_what_was_measured_is_reported",
        &[Signal::SIGINT],
    );
}

#[test]
fn root_a_second_sigint_changes_nothing() {
    interrupted_by(
        "root_a_second_sigint_changes_nothing",
        &[Signal::SIGINT, Signal::SIGINT],
    );
}

#[test]
fn root_sigterm_is_taken_like_sigint() {
    interrupted_by("root_sigterm_is_taken_like_sigint", &[Signal::SIGTERM]);
}

#[test]
fn root_a_killed_run_leaves_nothing_and_the_next_one_works() {
    let Some(lab) = Lab::new("root_a_killed_run_leaves_nothing_and_the_next_one_works") else {
        return;
    };
    let testbed = of_repository("configs/testbeds/sim.toml");
    let long = lab.file("long.toml", &plan("1min", MINUTE));
    let run = lab.start(&format!("--testbed {testbed} --plan {long}"));
    lab.wait_for_data_in_the_storm();
    kill(Pid::from_raw(run.id() as i32), Signal::SIGKILL).unwrap();
    run.wait_with_output().unwrap();
    lab.assert_nothing_is_left();

    let short = lab.file("short.toml", &plan("200ms", &MINUTE[..1]));
    let next = lab.run(&format!(
        "run --testbed {testbed} --plan {short} --format json"
    ));
    assert!(!next.assert_none_fails().outcomes().is_empty());
}

#[test]
fn root_a_killed_dut_is_an_error_of_its_case_alone() {
    a_dut_ends_early(
        "root_a_killed_dut_is_an_error_of_its_case_alone",
        Signal::SIGKILL,
        "signal: 9 (SIGKILL)",
    );
}

#[test]
fn root_a_dut_that_ends_cleanly_before_it_is_asked_is_an_error_too() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        a_dut_ends_early(
            "root_a_dut_that_ends_cleanly_before_it_is_asked_is_an_error_too",
            signal,
            "exit status: 0",
        );
    }
}

fn a_dut_ends_early(test: &str, signal: Signal, how: &str) {
    let Some(lab) = Lab::new(test) else {
        return;
    };
    let plan = lab.plan("1s", MINUTE);
    let run = lab.start(&format!(
        "--testbed {} --plan {plan} --format json",
        of_repository("configs/testbeds/sim.toml")
    ));
    let dut = lab.wait_for_data_in_the_storm();
    kill(Pid::from_raw(dut), signal).unwrap();
    let ended = Outcome::of(run.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let report = ended.report();
    let case = report.case("pause-single-lossless");
    assert_eq!(case["verdict"], "error");
    assert_eq!(
        case["reason"],
        format!(
            "lossless 3: the simulated DUT ended ({how}) before the repetition did; its messages \
             are above"
        )
    );
    let next = report.case("pause-lossy")["verdict"].as_str().unwrap();
    assert!(
        ["pass", "inconclusive"].contains(&next),
        "the next case has a DUT of its own: {next}"
    );
    assert!(
        report.checks("fail").is_empty(),
        "{}",
        report.reasons("fail")
    );
    lab.assert_nothing_is_left();
}

#[test]
fn root_a_program_whose_file_is_replaced_meanwhile_goes_on() {
    let test = "root_a_program_whose_file_is_replaced_meanwhile_goes_on";
    let Some(lab) = Lab::new(test) else { return };
    let program = lab.path("validator");
    fs::copy(PROGRAM, &program).unwrap();
    let testbed = of_repository("configs/testbeds/sim.toml");
    // The second case starts a switch of its own.
    let plan = lab.plan("200ms", MINUTE);
    let arguments = format!("run --testbed {testbed} --plan {plan} --format json");
    let mut command = lab.command(program.to_str().unwrap(), &arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = command.spawn().unwrap();
    lab.wait_for_data_in_the_storm();
    fs::remove_file(&program).unwrap();
    let ended = Outcome::of(run.wait_with_output().unwrap());
    let report = ended.assert_none_fails();
    assert_eq!(report.case("pause-lossy")["reason"], "");
    lab.assert_nothing_is_left();
}

#[test]
fn root_an_interface_that_vanishes_is_named() {
    let Some(mut lab) = Lab::new("root_an_interface_that_vanishes_is_named") else {
        return;
    };
    let external = External::new(&mut lab);
    external.start_dut(&mut lab, "--lossless 3");
    let testbed = lab.file("testbed.toml", &external.testbed("[3]", ""));
    let plan = lab.plan("2s", &MINUTE[..1]);
    let run = lab.start(&format!("--testbed {testbed} --plan {plan} --format json"));
    lab.wait_for_data_in_the_storm();
    ip(&format!("-n {} link del dev tx", external.tester));
    let ended = Outcome::of(run.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let report = ended.report();
    let reason = report.case("pause-single-lossless")["reason"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        report.case("pause-single-lossless")["verdict"],
        "error",
        "{reason}"
    );
    assert!(
        reason.starts_with("lossless 3: ") && reason.contains("tx"),
        "{reason}"
    );
    println!("{reason}");
    assert!(lab.out().join("report.json").exists());
}

#[test]
fn root_a_setting_that_a_killed_run_changed_is_put_back_by_the_next() {
    let Some(mut lab) =
        Lab::new("root_a_setting_that_a_killed_run_changed_is_put_back_by_the_next")
    else {
        return;
    };
    let external = External::new(&mut lab);
    let namespace = Namespace::named(&external.tester).unwrap();
    let in_frame =
        || ["tx", "rx"].map(|port| !link::feature(&namespace, port, Feature::RxVlan).unwrap());
    assert_eq!(in_frame(), [false, false], "the kernel's default");
    external.start_dut(&mut lab, "--lossless 3 --trust pcp");
    let testbed = lab.file(
        "testbed.toml",
        &external.testbed("[3]", "qos.trust = \"pcp\"\n"),
    );
    let long = lab.file("long.toml", &plan("1min", MINUTE));
    let killed = || {
        let run = lab.start(&format!("--testbed {testbed} --plan {long}"));
        lab.wait_for_data_in_the_storm();
        assert_eq!(in_frame(), [true, true], "XDP has to see the tags");
        kill(Pid::from_raw(run.id() as i32), Signal::SIGKILL).unwrap();
        run.wait_with_output().unwrap();
        assert_eq!(in_frame(), [true, true]);
    };
    killed();

    let short = lab.file("short.toml", &plan("200ms", &MINUTE[..1]));
    let next = lab.run(&format!(
        "run --testbed {testbed} --plan {short} --format json"
    ));
    for port in ["tx", "rx"] {
        assert!(
            next.stderr.contains(&format!(
                "{port}: rx-vlan-offload is on again, as it was before process"
            )),
            "{}",
            next.stderr
        );
    }
    next.assert_measured();
    assert_eq!(in_frame(), [false, false]);
    // Without another run, the user asks for it.
    killed();
    let left = || {
        let passive = format!("check --testbed {testbed} --passive --format json");
        let checked: Value = serde_json::from_str(&lab.run(&passive).stdout).unwrap();
        let lines = checked["left"].as_array().unwrap().iter();
        let of_this = lines.filter(|line| line.to_string().contains("rx-vlan-offload was changed"));
        of_this.count()
    };
    assert!(left() > 0, "check tells what the killed run left");
    let undone = lab.run("check --undo");
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(
        undone.stdout.contains("tx: rx-vlan-offload is on again"),
        "{undone:?}"
    );
    assert_eq!((in_frame(), left()), ([false, false], 0));
}
