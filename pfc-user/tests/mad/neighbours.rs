//! A run beside another on the same DUT, and one whose machine stands still.

use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::common;
use crate::mad::fabric::Fabric;
use crate::mad::interrupt::{DUT, KEYS, assert_as_before, start};
use crate::mad::{Ended, Folder, PROGRAM, case, checks};

#[test]
fn a_second_run_on_the_same_dut_is_refused_before_anything_is_sent() {
    let name = "a_second_run_on_the_same_dut_is_refused_before_anything_is_sent";
    if !common::need_tool(name, "smpquery") {
        return;
    }
    let (folder, fabric) = (Folder::new(), Fabric::own(DUT));
    let first = start(&folder, &fabric);
    let testbed = folder.file("second.toml", &fabric.testbed(KEYS));
    // The journal says so, and where it is another user's, the socket does.
    for journal in [folder.journal(), folder.0.path().join("other")] {
        let out = folder.0.path().join("second");
        let mut second = Command::new(PROGRAM);
        second.args(["run", "--case", "mad.c14-016-get", "--testbed"]);
        second.arg(&testbed).arg("--out").arg(&out);
        second
            .stdin(Stdio::null())
            .env("VALIDATOR_JOURNAL", journal);
        let ended = Ended::of(second.output().unwrap());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let expected = format!("process {} tests the node at path 0,1", first.id());
        assert!(ended.stderr.contains(&expected), "{ended:?}");
        assert!(!out.join("evidence.json").exists(), "{ended:?}");
    }
    kill(Pid::from_raw(first.id() as i32), Signal::SIGINT).unwrap();
    let ended = Ended::of(first.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_as_before(&fabric, folder.0.path());
    // A Get of the second one would have been a violation.
    let report = folder.report();
    let failing = checks(case(&report, "mad.c14-016-get"), "fail");
    assert!(failing.is_empty(), "{failing:?}");
}

#[test]
fn a_tester_that_stood_still_says_so_and_blames_nobody() {
    let name = "a_tester_that_stood_still_says_so_and_blames_nobody";
    if !common::need_tool(name, "smpquery") {
        return;
    }
    const STILL: Duration = Duration::from_millis(2500);
    let (folder, fabric) = (Folder::new(), Fabric::own(DUT));
    let run = start(&folder, &fabric);
    let pid = Pid::from_raw(run.id() as i32);
    // Nearly all of the time it waits, and a wait is 2.2 s. Two: one may fall between waits.
    for _ in 0..2 {
        kill(pid, Signal::SIGSTOP).unwrap();
        std::thread::sleep(STILL);
        kill(pid, Signal::SIGCONT).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    let ended = Ended::of(run.wait_with_output().unwrap());
    let report = folder.report();
    let failing = checks(case(&report, "mad.c14-016-get"), "fail");
    assert!(failing.is_empty(), "{failing:?}, {ended:?}");
    assert_as_before(&fabric, folder.0.path());
    let evidence = std::fs::read(folder.out().join("evidence.json")).unwrap();
    let evidence: Value = serde_json::from_slice(&evidence).unwrap();
    let repetitions = evidence["cases"][0]["repetitions"].as_array().unwrap();
    let stalls = repetitions
        .iter()
        .flat_map(|repetition| repetition["stalls"].as_array().unwrap());
    let longest = stalls
        .map(|stall| stall["to"].as_u64().unwrap() - stall["from"].as_u64().unwrap())
        .max();
    // From the end of the wait to the end of standing still.
    assert!(longest >= Some(200_000_000), "{longest:?}");
}
