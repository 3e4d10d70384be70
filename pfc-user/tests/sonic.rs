//! The hooks for a SONiC switch, with a stand-in for ssh that answers as four releases do.
//!
//! lane: waiting

#[path = "common/mod.rs"]
mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;
use validator::evidence::hooks::{HookOutput, changes};

/// Branches of sonic-utilities whose layouts the stand-in knows.
const RELEASES: [&str; 4] = ["202012", "202305", "202411", "202511"];

/// A switch whose two ports have PFC for 3 and 4, and the watchdog on one of them.
struct Switch {
    folder: TempDir,
}

impl Switch {
    fn new(release: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let history = if release == "202511" {
            "enable"
        } else {
            "disable"
        };
        let switch = Self { folder };
        switch.write(&json!({
            "release": release,
            "sudo": true,
            "watchdog": {
                "Ethernet0": ["forward", "600", "601", history],
                "Ethernet8": ["drop", "600", "600", "disable"],
            },
            "lossless": { "Ethernet0": "3,4", "Ethernet4": "3,4", "Ethernet8": "3,4" },
            "buffers": { "0": "ingress_lossy_profile", "3-4": "pg_lossless_100000_5m_profile" },
        }));
        switch
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("switch.json")
    }

    fn write(&self, state: &Value) {
        fs::write(self.path(), state.to_string()).unwrap();
    }

    fn state(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path()).unwrap()).unwrap()
    }

    /// What the configuration of the switch is.
    fn configuration(&self) -> [Value; 2] {
        let state = self.state();
        [state["watchdog"].clone(), state["lossless"].clone()]
    }

    /// The same switch, with one thing changed.
    fn but(self, key: &str, value: Value) -> Self {
        let mut state = self.state();
        state[key] = value;
        self.write(&state);
        self
    }

    /// Commands so far.
    fn log(&self) -> Vec<String> {
        let state = self.state();
        let log = state["log"].as_array().cloned().unwrap_or_default();
        log.iter()
            .map(|line| line.as_str().unwrap().to_owned())
            .collect()
    }

    /// Runs `program` as the tool runs a hook.
    fn run(&self, program: &mut Command, lossless: &str, rx: &str) -> Output {
        let bin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sonic/bin");
        let path = std::env::var("PATH").unwrap_or_default();
        program
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("STAND_IN", self.path())
            .env("VALIDATOR_STATE", self.folder.path())
            .env("VALIDATOR_LOSSLESS", lossless)
            .env("VALIDATOR_TX_PORT", "Ethernet0")
            .env("VALIDATOR_RX_PORT", rx)
            .output()
            .unwrap()
    }

    fn hook(&self, hook: &str, lossless: &str) -> Output {
        let mut command = Command::new(hooks().join(hook));
        self.run(command.arg("admin@switch"), lossless, "Ethernet4")
    }

    /// The output of a hook that must succeed.
    fn succeeds(&self, hook: &str, lossless: &str) -> String {
        let output = self.hook(hook, lossless);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{hook}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn hooks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/hooks/sonic")
}

/// Asserts that a hook ended with status 1 and these words alone.
fn assert_refused(output: &Output, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), said.trim_end()),
        (Some(1), format!("admin@switch: {words}").as_str())
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

#[test]
fn the_watchdog_is_turned_off_and_put_back_on_each_release() {
    for release in RELEASES {
        let switch = Switch::new(release);
        let before = switch.configuration();
        let said: Value = serde_json::from_str(&switch.succeeds("prepare", "3,4")).unwrap();
        assert_eq!(said["watchdog"], "off");
        let [watchdog, lossless] = switch.configuration();
        assert_eq!(
            watchdog.as_object().unwrap().keys().collect::<Vec<_>>(),
            ["Ethernet8"]
        );
        assert_eq!(lossless, before[1]);
        switch.succeeds("restore", "3,4");
        assert_eq!(switch.configuration(), before, "{release}");
        // Once more changes nothing, as after a run that was killed while it put the switch back.
        switch.succeeds("restore", "3,4");
        assert_eq!(switch.configuration(), before, "{release}");
    }
}

#[test]
fn the_lossless_set_follows_the_repetition_and_is_put_back() {
    for release in RELEASES {
        let switch = Switch::new(release);
        let before = switch.configuration();
        for lossless in ["4", "3", "3,4"] {
            switch.succeeds("configure", lossless);
            let [_, found] = switch.configuration();
            assert_eq!(
                (&found["Ethernet0"], &found["Ethernet4"]),
                (&lossless.into(), &lossless.into())
            );
            assert_eq!(found["Ethernet8"], "3,4");
        }
        switch.succeeds("configure", "4");
        switch.succeeds("restore", "4");
        assert_eq!(switch.configuration(), before, "{release}");
    }
}

#[test]
fn a_priority_without_a_lossless_buffer_is_refused_before_anything_is_changed() {
    let switch = Switch::new("202305");
    let before = switch.configuration();
    let refused = switch.hook("configure", "3,5");
    assert_refused(&refused, "Ethernet0 has no lossless buffer for 5");
    assert_eq!(switch.configuration(), before);
}

#[test]
fn counters_are_json_whose_changes_are_reported() {
    for release in RELEASES {
        let switch = Switch::new(release);
        let output = |when: &str| HookOutput {
            hook: "counters".into(),
            when: when.into(),
            command: String::new(),
            status: 0,
            stdout: switch.succeeds("counters", "3,4"),
            stderr: String::new(),
        };
        let before = output("before");
        // `show` then begins with the time at which they were cleared.
        switch.succeeds("clear", "3,4");
        let after = output("after");
        let found: Vec<String> = changes(&[before.clone(), after])
            .iter()
            .map(|counter| format!("{} {}", counter.counter, counter.change()))
            .collect();
        let both = ["Ethernet0", "Ethernet4"].map(|port| format!("{port} pfc rx PFC3 +1000"));
        assert_eq!(found, both, "{release}");
        let counts: Value = serde_json::from_str(&before.stdout).unwrap();
        let port = &counts["Ethernet4"];
        // Above 1,000 they have a comma; N/A is no number.
        assert_eq!(
            (&port["pfc rx"]["PFC0"], &port["pfc tx"]["PFC7"]),
            (&1400.into(), &208.into())
        );
        let queue = json!({ "Counter/pkts": 70000, "Counter/bytes": 7, "Drop/pkts": 0 });
        assert_eq!(port["queue"]["UC7"], queue);
    }
}

#[test]
fn what_cannot_be_is_told_with_what_to_do_and_nothing_is_changed() {
    let no_sudo = "`sudo -n pfcwd stop Ethernet0` needs sudo without a password: sudo: a password \
                   is required";
    let cases: [(&str, Value, &str); 5] = [
        ("sudo", false.into(), no_sudo),
        (
            "unreachable",
            true.into(),
            "ssh cannot reach it: ssh: connect to host admin@switch port 22: Connection timed out",
        ),
        (
            "absent",
            json!(["pfcwd"]),
            "its image has no `pfcwd`: bash: line 1: pfcwd: command not found",
        ),
        (
            "big_red_switch",
            true.into(),
            "BIG_RED_SWITCH is on: `sudo pfcwd big_red_switch disable` turns it off",
        ),
        (
            "lossless",
            json!({ "Ethernet0": "3", "Ethernet4": "3,4" }),
            "Ethernet0 has lossless priorities 3, expected 3,4 (qos.lossless of the testbed)",
        ),
    ];
    for (key, value, words) in cases {
        let switch = Switch::new("202411").but(key, value);
        let before = switch.configuration();
        assert_refused(&switch.hook("prepare", "3,4"), words);
        assert_eq!(switch.configuration(), before, "{key}");
    }
}

#[test]
fn an_unknown_port_is_named() {
    let words = "it has no port Ethernet1234 with a QoS map (dut.ports of the testbed): Cannot \
                 find interface Ethernet1234";
    let switch = Switch::new("202511");
    let mut prepare = Command::new(hooks().join("prepare"));
    let refused = switch.run(prepare.arg("admin@switch"), "3,4", "Ethernet1234");
    assert_refused(&refused, words);
    let mut counters = Command::new(hooks().join("counters"));
    let refused = switch.run(counters.arg("admin@switch"), "3,4", "Ethernet1234");
    assert_refused(
        &refused,
        "`show pfc counters` has no port Ethernet1234 (dut.ports)",
    );
    let refused = switch.run(
        Command::new(hooks().join("prepare")).arg("admin@switch"),
        "3,4",
        "",
    );
    let words = "name its ports in the testbed: dut.ports = { tx = \"Ethernet0\", ... }";
    assert_refused(&refused, words);
}

#[test]
fn a_command_that_does_not_end_is_given_up() {
    let switch = Switch::new("202411").but("slow", "pfcwd".into());
    let script = "import sys; sys.argv = ['prepare', 'admin@switch']; import sonic; \
                  sonic.ANSWER = 1; sonic.main(sonic.note)";
    let mut python = Command::new(common::PYTHON);
    python.args(["-B", "-c", script]).env("PYTHONPATH", hooks());
    let refused = switch.run(&mut python, "3,4", "Ethernet4");
    assert_refused(&refused, "`pfcwd show config` did not end within 1 s");
}

#[test]
fn on_a_switch_of_several_asics_the_one_of_the_ports_is_named() {
    let switch = Switch::new("202411");
    for hook in ["counters", "configure", "prepare"] {
        let mut command = Command::new(hooks().join(hook));
        command.args(["admin@switch", "-n", "asic0"]);
        let lossless = if hook == "configure" { "4" } else { "3,4" };
        let output = switch.run(&mut command, lossless, "Ethernet4");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{hook}: {said}");
    }
    let log = switch.log();
    for command in [
        "show pfc counters -n asic0",
        "show queue counters Ethernet4 -n asic0",
        "sonic-db-cli -n asic0 CONFIG_DB KEYS 'BUFFER_PG|Ethernet0|*'",
        "sudo -n config interface pfc priority Ethernet0 3 off -n asic0",
        "pfcwd show config -n asic0",
    ] {
        assert!(
            log.iter().any(|found| found == command),
            "{command}: {log:#?}"
        );
    }
}
