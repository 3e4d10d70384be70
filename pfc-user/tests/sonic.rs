//! The hooks for a SONiC switch, with a stand-in for ssh that answers as three releases do:
//! `sonic/README.md` says where its texts are from.
//!
//! lane: waiting

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;
use validator::config::{self, PlanChoice};
use validator_core::evidence::hooks::{HookOutput, changes};
use validator_core::plan::Nanos;

use crate::common;

/// Branches of sonic-utilities whose answers are recorded.
const RELEASES: [&str; 3] = ["202305", "202411", "202511"];
/// Commands, and the file that has the answer of each of those releases.
const RECORDED: [(&str, [&str; 3]); 5] = [
    (
        "pfcwd show config",
        [
            "202305/pfcwd-show-config",
            "202305/pfcwd-show-config",
            "202511/pfcwd-show-config",
        ],
    ),
    ("show pfc counters", ["202305/show-pfc-counters"; 3]),
    (
        "show queue counters Ethernet8",
        [
            "202305/show-queue-counters",
            "202411/show-queue-counters",
            "202411/show-queue-counters",
        ],
    ),
    (
        "show pfc priority Ethernet0",
        ["202411/show-pfc-priority"; 3],
    ),
    (
        "show pfc priority Ethernet1234",
        ["202411/show-pfc-priority-unknown"; 3],
    ),
];

/// Seconds that a command may take: on a switch each is a program in Python that reads databases.
const COMMAND: u64 = 3;

/// A switch as it is in what is recorded: its ports have PFC for 3 and 4, and the watchdog.
struct Switch {
    folder: TempDir,
}

impl Switch {
    fn new(release: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let first = if release == "202511" {
            ["drop", "600", "600", "enable"]
        } else {
            ["forward", "102", "101", "disable"]
        };
        let other = ["drop", "600", "600", "disable"];
        let switch = Self { folder };
        switch.write(&json!({
            "release": release,
            "sudo": true,
            "watchdog": { "Ethernet0": first, "Ethernet4": other, "Ethernet8": other },
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

    /// Configuration of the switch.
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
        let bin = stand_in().join("bin");
        let path = std::env::var("PATH").unwrap_or_default();
        program
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("STAND_IN", self.path())
            .env("VALIDATOR_STATE", self.folder.path())
            .env("VALIDATOR_LOSSLESS", lossless)
            .env("VALIDATOR_PORTS", format!("Ethernet0,{rx}"))
            .output()
            .unwrap()
    }

    fn hook(&self, hook: &str, lossless: &str) -> Output {
        let mut command = Command::new(hooks().join(hook));
        command.arg("admin@switch");
        if let Some(asic) = self.state()["asic"].as_str() {
            command.args(["-n", asic]);
        }
        self.run(&mut command, lossless, "Ethernet4")
    }

    /// The output of a hook that must succeed.
    fn succeeds(&self, hook: &str, lossless: &str) -> String {
        let output = self.hook(hook, lossless);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{hook}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn stand_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sonic")
}

fn hooks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/hooks/sonic")
}

/// Asserts that the stand-in answers `command` with the text of `file`.
fn assert_answers(switch: &Switch, command: &str, file: &str) {
    let mut ssh = Command::new(stand_in().join("bin/ssh"));
    let output = switch.run(ssh.args(["admin@switch", command]), "", "");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        fs::read_to_string(stand_in().join("answers").join(file)).unwrap(),
        "{}: {command}",
        switch.state()["release"]
    );
}

/// Asserts that a hook ended with status 1 and these words alone.
fn assert_refused(output: &Output, words: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), stderr.trim_end()),
        (Some(1), format!("admin@switch: {words}").as_str())
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

#[test]
fn the_stand_in_answers_with_what_is_recorded() {
    for (index, release) in RELEASES.into_iter().enumerate() {
        for (command, files) in RECORDED {
            assert_answers(&Switch::new(release), command, files[index]);
        }
    }
}

#[test]
fn what_is_recorded_of_each_release_is_read() {
    for release in RELEASES {
        let switch = Switch::new(release);
        let read = |hook| -> Value { serde_json::from_str(&switch.succeeds(hook, "3,4")).unwrap() };
        let counts = read("counters");
        let port = json!({
            "pfc rx": {
                "PFC0": 1400, "PFC1": 401, "PFC2": 402, "PFC3": 403,
                "PFC4": 404, "PFC5": 405, "PFC6": 406, "PFC7": 407,
            },
            "pfc tx": {
                "PFC0": 1410, "PFC1": 411, "PFC2": 412, "PFC3": 413,
                "PFC4": 414, "PFC5": 415, "PFC6": 416, "PFC7": 417,
            },
        });
        for way in ["pfc rx", "pfc tx"] {
            assert_eq!(counts["Ethernet4"][way], port[way], "{release}");
        }
        let queues = counts["Ethernet4"]["queue"].as_object().unwrap();
        let packets = |queue: &str| queues[queue]["Counter/pkts"].as_u64();
        let unicast = ["UC0", "UC1", "UC2", "UC3", "UC4", "UC5", "UC6", "UC7"].map(packets);
        let first = if release == "202305" { 19 } else { 0 };
        let expected = [first, 38, 16, 11, 54, 13, 49, 2].map(Some);
        assert_eq!((queues.len(), unicast), (30, expected), "{release}");
        let last = json!({
            "Counter/pkts": 20, "Counter/bytes": 12, "Drop/pkts": 84, "Drop/bytes": 3,
        });
        // N/A is no number.
        assert_eq!((&queues["MC19"], &queues["ALL20"]), (&last, &json!({})));

        let of = |port: &str, action: &str, detection: &str, restoration: &str, history: &str| {
            let mut watchdog = json!({
                "PORT": port,
                "ACTION": action,
                "DETECTION TIME": detection,
                "RESTORATION TIME": restoration,
            });
            if release == "202511" {
                watchdog["HISTORY"] = history.into();
            }
            json!({ "watchdog": watchdog, "lossless": [3, 4] })
        };
        let first = match release {
            "202511" => of("Ethernet0", "drop", "600", "600", "enable"),
            _ => of("Ethernet0", "forward", "102", "101", ""),
        };
        let second = of("Ethernet4", "drop", "600", "600", "disable");
        let before = json!({ "Ethernet0": first, "Ethernet4": second });
        assert_eq!(read("prepare")["before"], before, "{release}");
    }
}

#[test]
fn the_watchdog_is_turned_off_and_put_back_on_each_release() {
    for release in RELEASES {
        let both = Switch::new(release);
        let mut watchdog = both.state()["watchdog"].clone();
        watchdog.as_object_mut().unwrap().remove("Ethernet4");
        // It may be off for a port.
        let one = Switch::new(release).but("watchdog", watchdog);
        for switch in [both, one] {
            let before = switch.configuration();
            let printed: Value = serde_json::from_str(&switch.succeeds("prepare", "3,4")).unwrap();
            assert_eq!(printed["watchdog"], "off");
            let [watchdog, lossless] = switch.configuration();
            assert_eq!(
                watchdog.as_object().unwrap().keys().collect::<Vec<_>>(),
                ["Ethernet8"]
            );
            assert_eq!(lossless, before[1]);
            switch.succeeds("restore", "3,4");
            assert_eq!(switch.configuration(), before, "{release}");
            // Once more changes nothing, as after a run that was killed while it put the switch
            // back.
            switch.succeeds("restore", "3,4");
            assert_eq!(switch.configuration(), before, "{release}");
        }
    }
}

#[test]
fn a_watchdog_that_no_port_has_is_neither_stopped_nor_started() {
    for release in RELEASES {
        let switch = Switch::new(release).but("watchdog", json!({}));
        let before = switch.configuration();
        let printed: Value = serde_json::from_str(&switch.succeeds("prepare", "3,4")).unwrap();
        assert_eq!(printed["watchdog"], "off", "{release}");
        switch.succeeds("restore", "3,4");
        assert_eq!(switch.configuration(), before, "{release}");
        let mut log = switch.log();
        log.retain(|command| command.contains("pfcwd"));
        assert_eq!(log, ["pfcwd show config"], "{release}");
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
        let found: Vec<String> = changes(&[before, after])
            .iter()
            .map(|counter| format!("{} {}", counter.counter, counter.change()))
            .collect();
        let both = ["Ethernet0", "Ethernet4"].map(|port| format!("{port} pfc rx PFC3 +1000"));
        assert_eq!(found, both, "{release}");
    }
}

#[test]
fn what_cannot_be_is_told_with_what_to_do_and_nothing_is_changed() {
    let no_sudo = "`sudo -n pfcwd stop Ethernet0 Ethernet4` needs sudo without a password: sudo: a \
                   password is required";
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

/// `hooks.timeout` of a testbed with this text.
fn timeout_of(testbed: &str) -> Nanos {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("testbed.toml");
    fs::write(&path, testbed).unwrap();
    let plan = PlanChoice::Plan("pfc".to_owned());
    let config = config::load(&path, &plan, &[]).unwrap();
    config.testbed.pfc.unwrap().hooks.timeout
}

#[test]
fn the_time_out_that_is_shipped_is_longer_than_the_commands_of_each_hook() {
    let switch = Switch::new("202511");
    let mut most = 0;
    for (hook, lossless) in [
        ("prepare", "3,4"),
        ("counters", "3,4"),
        ("configure", "4"),
        // Both priorities of both ports change.
        ("configure", "3"),
        ("restore", "3"),
    ] {
        let before = switch.log().len();
        switch.succeeds(hook, lossless);
        most = most.max(switch.log().len() - before);
    }
    let text = fs::read_to_string(hooks().join("sonic.py")).unwrap();
    let mut lines = text.lines();
    let answer = lines.find_map(|line| line.strip_prefix("ANSWER = "));
    // A command that does not end is told by the hook itself.
    let longest = (most as u64 - 1) * COMMAND + answer.unwrap().parse::<u64>().unwrap();

    let path = hooks().join("../../testbeds/lab-example.toml");
    let example = fs::read_to_string(path).unwrap();
    let (before, after) = example.split_once("\ntimeout = ").unwrap();
    let (_, after) = after.split_once('\n').unwrap();
    for (of, testbed) in [
        ("the example", &example),
        ("the default", &format!("{before}\n{after}")),
    ] {
        let shipped = timeout_of(testbed) / 1_000_000_000;
        assert!(
            shipped >= longest,
            "{of}: {shipped} s for {most} commands, which may take {longest} s"
        );
    }
}

/// A switch of several ASICs, whose ports here are those of the first.
fn of_several_asics(release: &str) -> Switch {
    Switch::new(release).but("asic", "asic0".into())
}

#[test]
fn on_a_switch_of_several_asics_the_one_of_the_ports_is_named() {
    for release in ["202411", "202511"] {
        let switch = of_several_asics(release);
        let before = switch.configuration();
        switch.succeeds("prepare", "3,4");
        switch.succeeds("counters", "3,4");
        switch.succeeds("configure", "4");
        let [watchdog, lossless] = switch.configuration();
        assert_eq!(
            (&watchdog["Ethernet0"], &lossless["Ethernet0"]),
            (&Value::Null, &"4".into())
        );
        switch.succeeds("restore", "4");
        assert_eq!(switch.configuration(), before, "{release}");
        let log = switch.log();
        for command in [
            "show pfc counters -n asic0",
            "show queue counters Ethernet4 -n asic0",
            "show pfc priority Ethernet0 -n asic0",
            "sonic-db-cli -n asic0 CONFIG_DB KEYS 'BUFFER_PG|Ethernet0|*'",
            "sudo -n config interface -n asic0 pfc priority Ethernet0 3 off -n asic0",
            "sudo -n config interface -n asic0 pfc priority Ethernet0 3 on -n asic0",
            "pfcwd show config -n asic0",
        ] {
            assert!(
                log.iter().any(|found| found == command),
                "{command}: {log:#?}"
            );
        }
    }
}

#[test]
fn on_a_switch_of_several_asics_the_stand_in_answers_with_what_is_recorded() {
    for release in ["202411", "202511"] {
        for (port, file) in [
            ("Ethernet0", "show-pfc-priority-asic0"),
            ("Ethernet1234", "show-pfc-priority-asic0-unknown"),
        ] {
            let command = format!("show pfc priority {port} -n asic0");
            let file = format!("202411/{file}");
            assert_answers(&of_several_asics(release), &command, &file);
        }
    }
}

#[test]
fn an_asic_is_refused_where_the_release_has_no_pfc_by_asic() {
    let switch = of_several_asics("202305");
    let before = switch.configuration();
    let words = "`show pfc priority Ethernet0 -n asic0` takes no -n here: PFC by ASIC needs \
                 release 202405 or newer";
    for hook in ["prepare", "configure"] {
        assert_refused(&switch.hook(hook, "3,4"), words);
    }
    assert_eq!(switch.configuration(), before);
}
