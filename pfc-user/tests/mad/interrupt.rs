//! A run that ends before its time leaves the DUT as it was, or a later one does.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common;
use crate::mad::fabric::{Fabric, field};
use crate::mad::{Ended, Folder};

const M_KEY_DUT: u64 = 0x1111_2222_3333_4444;
/// The DUT's own key before the run.
const ORIGINAL: u64 = 0xabcd;
pub const KEYS: &str =
    "m_key_dut = \"0x1111222233334444\"\nm_key_other = \"0x5\"\nm_key_current = \"0xabcd\"\n";
pub const DUT: &str = "--m-key 0xabcd --protect-bits 1 --lease 30 --response-time-value 19";

/// Waits until the DUT has the test's key with M_KeyProtectBits 2. The run is then waiting out two
/// seconds of silence.
fn wait_for_the_test_key(fabric: &Fabric, folder: &Path) {
    let begin = Instant::now();
    loop {
        let printed = fabric.port_info(folder, M_KEY_DUT);
        if printed.is_some_and(|printed| {
            field(&printed, "Mkey") == format!("{M_KEY_DUT:#018x}")
                && field(&printed, "ProtectBits") == "2"
        }) {
            return;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "the test's key was not set"
        );
    }
}

pub fn start(folder: &Folder, fabric: &Fabric) -> Child {
    let testbed = folder.file("t.toml", &fabric.testbed(KEYS));
    let mut run = folder.command(&testbed, "--case mad.c14-016-get");
    let run = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_the_test_key(fabric, folder.0.path());
    run
}

pub fn assert_as_before(fabric: &Fabric, folder: &Path) {
    let printed = fabric.port_info(folder, ORIGINAL).unwrap();
    let found = ["Mkey", "ProtectBits", "MkeyLeasePeriod"].map(|name| field(&printed, name));
    assert_eq!(found, ["0x000000000000abcd", "1", "30"]);
}

#[test]
fn ctrl_c_restores_the_dut_and_reports() {
    if !common::need_tool("ctrl_c_restores_the_dut_and_reports", "smpquery") {
        return;
    }
    let (folder, fabric) = (Folder::new(), Fabric::own(DUT));
    assert_as_before(&fabric, folder.0.path());
    let run = start(&folder, &fabric);
    kill(Pid::from_raw(run.id() as i32), Signal::SIGINT).unwrap();
    let ended = Ended::of(run.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.stderr.contains("another Ctrl-C"), "{ended:?}");
    assert_as_before(&fabric, folder.0.path());
    // A repetition that was not begun does not pass for want of a failure.
    let report = folder.report();
    let case = crate::mad::case(&report, "mad.c14-016-get");
    assert_eq!(case["verdict"], "inconclusive");
    assert!(
        crate::mad::checks(case, "inconclusive").contains("no-answer [protect-bits-3]"),
        "{}",
        ended.stdout
    );
    assert!(
        crate::mad::checks(case, "pass").contains("other-key-value [protect-bits-1]"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_second_ctrl_c_leaves_a_silent_dut_to_the_next_run() {
    if !common::need_tool(
        "a_second_ctrl_c_leaves_a_silent_dut_to_the_next_run",
        "smpquery",
    ) {
        return;
    }
    let (folder, fabric) = (Folder::new(), Fabric::own(DUT));
    let mut run = start(&folder, &fabric);
    fabric.signal(Signal::SIGSTOP);
    let pid = Pid::from_raw(run.id() as i32);
    kill(pid, Signal::SIGINT).unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let mut output = String::new();
    let waits = lines.by_ref().map_while(Result::ok).any(|line| {
        output += &line;
        line.contains("another Ctrl-C")
    });
    assert!(waits, "{output}");
    kill(pid, Signal::SIGINT).unwrap();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(run.wait_with_output().unwrap().status.code(), Some(130));
    assert!(
        rest.iter()
            .any(|line| line.contains("left to the next run")),
        "{rest:?}"
    );

    // The DUT is still locked, and its own key is in the journal.
    fabric.signal(Signal::SIGCONT);
    assert_eq!(fabric.port_info(folder.0.path(), ORIGINAL), None);
    let testbed = folder.file("t.toml", &fabric.testbed(KEYS));
    folder.run(&testbed, "--case mad.c14-024-10-01");
    assert_as_before(&fabric, folder.0.path());
}

#[test]
fn after_kill_9_the_next_run_unlocks_the_dut() {
    if !common::need_tool("after_kill_9_the_next_run_unlocks_the_dut", "smpquery") {
        return;
    }
    let (folder, fabric) = (Folder::new(), Fabric::own(DUT));
    let mut run = start(&folder, &fabric);
    run.kill().unwrap();
    run.wait().unwrap();
    // Locked: with its own key it does not answer any more.
    assert_eq!(fabric.port_info(folder.0.path(), ORIGINAL), None);
    let testbed = folder.file("t.toml", &fabric.testbed(KEYS));
    let ended = folder.run(&testbed, "--case mad.c14-024-10-01");
    assert!(
        ended.stderr.contains("M_Key"),
        "the later run says what it put back: {ended:?}"
    );
    assert_as_before(&fabric, folder.0.path());
}
