//! Ports that change while a run measures: the run reports it, judges nothing by it, and leaves the
//! host as it was.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use validator::report;
use validator_core::evidence::Repetition;
use validator_core::evidence::pfc::PfcEvidence;

use crate::run::external::External;
use crate::run::lab::{Lab, ip, of_repository};
use crate::run::outcome::{Outcome, set};

/// Far above the largest burst, which is all that a sender makes up for.
const STANDSTILL: Duration = Duration::from_millis(200);

/// Runs on an external device with `disturb` in the middle of its storm. Asserts that no check
/// fails, and that one of `words` is in the reasons of the inconclusive checks, or of the error
/// that ends the run.
fn assert_undecided(test: &str, words: &[&str], disturb: impl FnOnce(&External)) {
    let Some(mut lab) = Lab::new(test) else {
        return;
    };
    let external = External::new(&mut lab);
    external.start_dut(&mut lab, "--lossless 3");
    let testbed = lab.file("testbed.toml", &external.testbed("[3]", ""));
    let plan = lab.plan("1s", &[("pause-single-lossless", "lossless = [3]")]);
    let run = lab.start(&format!("--testbed {testbed} --plan {plan} --format json"));
    let dut = lab.wait_for_data_in_the_storm();
    disturb(&external);
    let ended = Outcome::of(run.wait_with_output().unwrap());
    let report = ended.report();
    let case = report.case("pause-single-lossless");
    let reasons = format!("{}\n{}", case["reason"], report.reasons("inconclusive"));
    assert_eq!(
        (report.checks("fail"), ended.code),
        (set(&[]), Some(3)),
        "{}{reasons}",
        report.reasons("fail")
    );
    assert!(
        words.iter().any(|words| reasons.contains(words)),
        "{reasons}"
    );
    let undecided = report.checks("inconclusive");
    assert!(
        ["paused", "delivered", "resume"]
            .iter()
            .all(|check| undecided.contains(&format!("single {check}"))),
        "{undecided:?}"
    );
    // The device is the test's own; it may have ended because its port is gone.
    let _ = kill(Pid::from_raw(dut), Signal::SIGKILL);
    lab.assert_nothing_is_left();
}

#[test]
fn root_a_run_whose_rx_port_loses_its_carrier_is_undecided() {
    assert_undecided(
        "root_a_run_whose_rx_port_loses_its_carrier_is_undecided",
        &["rx had no carrier", "rx has no carrier any more"],
        |external| {
            ip(&format!("-n {} link set dev p1 down", external.dut));
        },
    );
}

#[test]
fn root_a_run_whose_tx_port_loses_its_carrier_is_undecided() {
    assert_undecided(
        "root_a_run_whose_tx_port_loses_its_carrier_is_undecided",
        &["tx had no carrier", "tx has no carrier any more"],
        |external| {
            ip(&format!("-n {} link set dev p0 down", external.dut));
        },
    );
}

#[test]
fn root_a_run_whose_carrier_comes_back_is_undecided() {
    let words = ["rx lost its carrier for a time"];
    assert_undecided(
        "root_a_run_whose_carrier_comes_back_is_undecided",
        &words,
        |external| {
            ip(&format!("-n {} link set dev p1 down", external.dut));
            ip(&format!("-n {} link set dev p1 up", external.dut));
        },
    );
}

#[test]
fn root_a_run_whose_rx_port_gets_another_mtu_is_undecided() {
    let words = ["rx got an MTU of 600 in place of 1500"];
    assert_undecided(
        "root_a_run_whose_rx_port_gets_another_mtu_is_undecided",
        &words,
        |external| {
            ip(&format!("-n {} link set dev rx mtu 600", external.tester));
        },
    );
}

#[test]
fn root_a_run_whose_mtu_comes_back_is_undecided() {
    let words = ["rx got an MTU of 600 in place of 1500 for a time"];
    assert_undecided(
        "root_a_run_whose_mtu_comes_back_is_undecided",
        &words,
        |external| {
            ip(&format!("-n {} link set dev rx mtu 600", external.tester));
            ip(&format!("-n {} link set dev rx mtu 1500", external.tester));
        },
    );
}

#[test]
fn root_a_run_whose_tx_port_gets_another_mtu_is_undecided() {
    let words = ["tx got an MTU of 600 in place of 1500"];
    assert_undecided(
        "root_a_run_whose_tx_port_gets_another_mtu_is_undecided",
        &words,
        |external| {
            ip(&format!("-n {} link set dev tx mtu 600", external.tester));
        },
    );
}

#[test]
fn root_a_run_whose_rx_port_is_removed_is_undecided() {
    // As written in JSON.
    let words = [r#"no interface \"rx\""#];
    assert_undecided(
        "root_a_run_whose_rx_port_is_removed_is_undecided",
        &words,
        |external| {
            ip(&format!("-n {} link del dev rx", external.tester));
        },
    );
}

/// The tester stands still for longer than any excuse, in the middle of the first attempt.
#[test]
fn root_a_repetition_that_the_tester_disturbed_is_measured_again() {
    let test = "root_a_repetition_that_the_tester_disturbed_is_measured_again";
    let Some(lab) = Lab::new(test) else { return };
    let cases = [("pause-single-lossless", "lossless = [3]")];
    let plan = lab.plan("1s", &cases);
    let sim = of_repository("configs/testbeds/sim.toml");
    let run = lab.start(&format!("--testbed {sim} --plan {plan} --format json"));
    lab.wait_for_data_in_the_storm();
    let tester = Pid::from_raw(run.id() as i32);
    kill(tester, Signal::SIGSTOP).unwrap();
    // So long is the disturbance.
    std::thread::sleep(STANDSTILL);
    kill(tester, Signal::SIGCONT).unwrap();
    let ended = Outcome::of(run.wait_with_output().unwrap());
    let report = ended.report();
    assert_eq!(
        report.checks("fail"),
        set(&[]),
        "{}",
        report.reasons("fail")
    );

    let evidence = report::read_evidence(&lab.out()).unwrap();
    let repetitions = evidence.cases[0].repetitions.iter();
    let attempts: Vec<_> = repetitions.filter_map(Repetition::pfc).collect();
    // By the frames that make the ports known, before anything is measured.
    let first = &attempts[0].ports;
    assert!(first.tx.alive && first.rx.alive, "{first:?}");
    let numbers: Vec<_> = attempts.iter().map(|measured| measured.attempt).collect();
    assert!((2..=3).contains(&numbers.len()), "{numbers:?}");
    assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>());
    let longest = |measured: &PfcEvidence| {
        let stalls = measured.sender.stalls.iter();
        stalls.map(|stall| stall.to - stall.from).max().unwrap_or(0)
    };
    let longest: Vec<u64> = attempts.into_iter().map(longest).collect();
    // A stall begins when the sender meant to wake up, which is later than the stop.
    let standstill = STANDSTILL.as_nanos() as u64 / 2;
    let disturbed: Vec<bool> = longest.iter().map(|stall| *stall >= standstill).collect();
    assert!(disturbed[0], "the first was disturbed: {longest:?}");
    assert!(
        !disturbed[1..].contains(&true),
        "and no later one: {longest:?}"
    );
    let reported = &report.case("pause-single-lossless")["attempts"];
    assert_eq!(reported.as_array().unwrap().len(), numbers.len());
    lab.assert_nothing_is_left();
}
