//! `validator check` on veths: its findings, its changes and their undoing, and its exit codes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use validator::driver::bpf::{AccountProgram, Sizes, XdpMode};
use validator::driver::kernel::link::{self, Feature, XdpFeatures, xdp_features};
use validator::driver::kernel::netns::Namespace;
use validator::report;

use crate::run::external::External;
use crate::run::lab::{Lab, PROGRAM, ip, of_repository};
use crate::run::outcome::Outcome;

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
}

/// Returns the item called `what` of the port with that role.
fn item<'v>(found: &'v Value, role: &str, what: &str) -> &'v Value {
    let port = found["ports"]
        .as_array()
        .unwrap()
        .iter()
        .find(|port| port["role"] == role)
        .unwrap();
    port["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["what"] == what)
        .unwrap()
}

fn facts<'v>(found: &'v Value, role: &str) -> &'v Value {
    &found["ports"]
        .as_array()
        .unwrap()
        .iter()
        .find(|port| port["role"] == role)
        .unwrap()["facts"]
}

/// Names and states of the items that are not `ok`.
fn shortfalls(found: &Value) -> Vec<String> {
    let ports = found["ports"].as_array().unwrap().iter();
    let items = ports.flat_map(|port| {
        port["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(move |item| (port, item))
    });
    let bad = items.filter(|(_, item)| item["state"] != "ok");
    bad.map(|(port, item)| {
        format!("{} {} {}", port["role"], item["what"], item["state"]).replace('"', "")
    })
    .collect()
}

/// Entries of the journal.
fn entries(setting: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(crate::common::journal())
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    all.filter(|path| path.to_str().unwrap().contains(setting))
        .collect()
}

#[test]
fn root_a_veth_shows_pfc_of_the_device_where_the_testbed_says_that_it_is_direct() {
    let test = "root_a_veth_shows_pfc_of_the_device_where_the_testbed_says_that_it_is_direct";
    let Some(mut lab) = Lab::new(test) else {
        return;
    };
    let external = External::new(&mut lab);
    external.start_dut(&mut lab, "--lossless 3");
    let direct = external.testbed("[3]", "");
    for (text, code, expected) in [
        (direct, 0, vec![]),
        (
            external.undeclared("[3]"),
            3,
            vec!["tx pause frames in unknown"],
        ),
    ] {
        let testbed = lab.file("testbed.toml", &text);
        let checked = lab.run(&format!("check --testbed {testbed} --format json"));
        let found = shortfalls(&json(&checked));
        assert_eq!(
            (checked.code, found),
            (Some(code), expected.iter().map(|s| s.to_string()).collect())
        );
    }
}

#[test]
fn root_check_finds_what_the_ports_are() {
    let Some(mut lab) = Lab::new("root_check_finds_what_the_ports_are") else {
        return;
    };
    let external = External::new(&mut lab);
    external.start_dut(&mut lab, "--lossless 3");
    let (tester, testbed) = (
        &external.tester,
        lab.file("testbed.toml", &external.testbed("[3]", "")),
    );
    ip(&format!("-n {tester} link set dev rx mtu 1400"));
    let checked = lab.run(&format!("check --testbed {testbed} --format json"));
    let found = json(&checked);
    assert_eq!(
        (checked.code, shortfalls(&found)),
        (Some(0), Vec::new()),
        "{found:#}"
    );
    assert_eq!(
        (&found["schema"], &found["state"], &found["exit_code"]),
        (&1.into(), &"ok".into(), &0.into())
    );
    assert_eq!(found["testbed"]["name"], "external");
    let rx = facts(&found, "rx");
    for (fact, value) in [
        ("interface", Value::from("rx")),
        ("namespace", tester.as_str().into()),
        ("kind", "veth".into()),
        ("up", true.into()),
        ("carrier", true.into()),
        ("mtu", 1400.into()),
        ("promiscuous", false.into()),
        ("xdp_attached", Value::Null),
        ("pause", Value::Null),
        ("pfc", Value::Null),
    ] {
        assert_eq!(rx[fact], value, "{fact}");
    }
    assert_eq!(
        (&rx["driver"]["name"], &rx["queues"]["rx"]),
        (&"veth".into(), &1.into())
    );
    let vlan = rx["features"]
        .as_array()
        .unwrap()
        .iter()
        .find(|feature| feature["name"] == "rx-vlan-hw-parse")
        .unwrap();
    assert_eq!((&vlan["on"], &vlan["fixed"]), (&true.into(), &false.into()));
    // The DUT drops the self-test's frames; the testbed says what they would have shown.
    let text = item(&found, "tx", "pause frames in")["found"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        text.starts_with("a veth whose other end is the DUT's own, declared by facts.direct"),
        "{text}"
    );
    let attached = ip(&format!("-n {tester} -d link show"));
    assert!(!attached.contains("prog/xdp"), "{attached}");
}

#[test]
fn root_ports_that_are_cabled_together_show_that_pause_frames_arrive() {
    let Some(mut lab) =
        Lab::new("root_ports_that_are_cabled_together_show_that_pause_frames_arrive")
    else {
        return;
    };
    let external = External::cabled(&mut lab, "numrxqueues 2 numtxqueues 2 ");
    let testbed = lab.file("testbed.toml", &external.undeclared("[3]"));
    let checked = lab.run(&format!("check --testbed {testbed}"));
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(
        checked
            .stdout
            .contains("8 of 8 of the self-test reached the program"),
        "{}",
        checked.stdout
    );
    assert!(
        checked
            .stdout
            .ends_with("0 problems, 0 unknown (exit code 0)\n"),
        "{}",
        checked.stdout
    );
    let passive = lab.run(&format!("check --testbed {testbed} --passive"));
    assert!(
        passive
            .stdout
            .contains("no self-test: it was not asked for"),
        "{}",
        passive.stdout
    );
    lab.assert_nothing_is_left();
}

#[test]
fn root_xdp_features_are_the_kernels() {
    let Some(mut lab) = Lab::new("root_xdp_features_are_the_kernels") else {
        return;
    };
    let external = External::new(&mut lab);
    let (tester, dut) = (
        Namespace::named(&external.tester).unwrap(),
        Namespace::named(&external.dut).unwrap(),
    );
    let features = || {
        let index = link::state(&tester, "tx").unwrap().index;
        tester.run(|| xdp_features(index)).unwrap().unwrap()
    };
    assert!(
        features().has(XdpFeatures::BASIC | XdpFeatures::REDIRECT)
            && !features().has(XdpFeatures::NDO_XMIT)
    );
    let sizes = Sizes {
        flows: 1,
        windows: 1,
    };
    let program = dut
        .run(|| AccountProgram::attach("p0", XdpMode::Driver, sizes))
        .unwrap()
        .unwrap();
    assert!(
        features().has(XdpFeatures::NDO_XMIT),
        "the other end takes redirected frames: {:?}",
        features().names()
    );
    drop(program);
    let missing = tester.run(|| xdp_features(999_999)).unwrap().unwrap_err();
    assert_eq!(missing.raw_os_error(), Some(libc::ENODEV));
}

#[test]
fn root_what_makes_verdicts_impossible_is_a_problem() {
    let Some(mut lab) = Lab::new("root_what_makes_verdicts_impossible_is_a_problem") else {
        return;
    };
    let external = External::new(&mut lab);
    let (tester, testbed) = (
        external.tester.clone(),
        lab.file("testbed.toml", &external.testbed("[3]", "")),
    );
    let check = |more: &str| lab.run(&format!("check --testbed {testbed} --format json{more}"));
    let problem = |more: &str, role: &str, what: &str, found: &str, mend: &str| {
        let checked = check(more);
        let json = json(&checked);
        assert_eq!(
            (checked.code, &json["state"]),
            (Some(1), &"problem".into()),
            "{json:#}"
        );
        let item = item(&json, role, what);
        assert_eq!(
            (&item["state"], &item["mend"]),
            (&"problem".into(), &mend.into()),
            "{item:#}"
        );
        assert!(item["found"].as_str().unwrap().contains(found), "{item:#}");
    };
    let namespace = Namespace::named(&tester).unwrap();
    let other = namespace
        .run(|| {
            AccountProgram::attach(
                "rx",
                XdpMode::Driver,
                Sizes {
                    flows: 1,
                    windows: 1,
                },
            )
        })
        .unwrap()
        .unwrap();
    problem(
        "",
        "rx",
        "xdp program",
        "`account` (id ",
        &format!("ip netns exec {tester} ip link set dev rx xdp off"),
    );
    drop(other);
    ip(&format!("-n {tester} link set dev tx mtu 500"));
    problem(
        "",
        "tx",
        "mtu",
        "500",
        &format!("ip netns exec {tester} ip link set dev tx mtu 1500"),
    );
    ip(&format!("-n {tester} link set dev tx mtu 1500"));
    ip(&format!("-n {} link set dev p1 down", external.dut));
    problem(
        "",
        "rx",
        "link",
        "up, without carrier",
        "plug in the cable, and set up the port at its other end",
    );
    ip(&format!("-n {tester} link set dev rx down"));
    problem(
        "",
        "rx",
        "link",
        "down",
        &format!("ip netns exec {tester} ip link set dev rx up"),
    );
    let text = fs::read_to_string(&testbed)
        .unwrap()
        .replace("ports.line_rate = \"1G\"\n", "");
    fs::write(&testbed, text).unwrap();
    problem(
        "",
        "tx",
        "speed",
        "a veth has none of its own",
        "set line_rate under [ports] in the testbed",
    );
    let refused = check(" --set testbed.ports.tx.interface=eth9");
    refused.assert_refused(&format!(
        "there is no interface \"eth9\" in network namespace \"{tester}\"; there are: lo, tx, rx"
    ));
    lab.assert_nothing_is_left();
}

#[test]
fn root_a_hook_that_cannot_be_run_is_a_problem_and_none_is_run() {
    let test = "root_a_hook_that_cannot_be_run_is_a_problem_and_none_is_run";
    let Some(mut lab) = Lab::new(test) else {
        return;
    };
    let external = External::new(&mut lab);
    external.start_dut(&mut lab, "--lossless 3");
    let call_log = lab.path("told");
    let script = format!("#!/bin/sh\necho $1 >> {}\n", call_log.display());
    let (hook, plain) = (lab.file("hook", &script), lab.file("plain", &script));
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let none = lab.path("none").display().to_string();
    let check = |hooks: [String; 4], more: &str| {
        let names = ["prepare", "configure", "counters", "restore"];
        let lines = names.iter().zip(hooks);
        let lines: Vec<String> = lines
            .map(|(name, command)| format!("hooks.{name} = \"{command}\"\n"))
            .collect();
        let testbed = lab.file("testbed.toml", &external.testbed("[3]", &lines.concat()));
        lab.run(&format!("check --testbed {testbed}{more}"))
    };
    let wrong = || {
        [
            format!("{hook} prepare"),
            format!("{none} configure"),
            format!("{plain} counters"),
            "validator-no-such-hook".into(),
        ]
    };
    let checked = check(wrong(), " --format json");
    let found = json(&checked);
    assert_eq!(
        (checked.code, &found["state"]),
        (Some(1), &"problem".into()),
        "{found:#}"
    );
    let ways: Vec<(&str, Option<&str>)> = found["ways"]
        .as_array()
        .unwrap()
        .iter()
        .map(|way| (way["table"].as_str().unwrap(), way["error"].as_str()))
        .collect();
    let [configure, counters] = [
        format!(
            "expected a program at {none}, found none (No such file or directory (os error 2)): \
             put it there, or correct hooks.configure"
        ),
        format!(
            "expected a program at {plain}, found a file that cannot be executed: chmod +x {plain}"
        ),
    ];
    let restore = "expected a program validator-no-such-hook in PATH, found none: install it, or \
                   give its path in hooks.restore";
    let expected = [
        ("hooks.prepare", None),
        ("hooks.configure", Some(configure.as_str())),
        ("hooks.counters", Some(counters.as_str())),
        ("hooks.restore", Some(restore)),
    ];
    assert_eq!(ways, expected);
    let text = check(wrong(), "").stdout;
    assert!(
        text.contains(&format!(
            "hooks.counters: {plain} counters\n  problem  program"
        )),
        "{text}"
    );
    assert!(
        text.ends_with("3 problems, 0 unknown (exit code 1)\n"),
        "{text}"
    );

    let right = ["prepare", "configure", "counters", "restore"];
    let checked = check(right.map(|name| format!("A=1 {hook} {name}")), "");
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(!call_log.exists(), "a hook was run");
    lab.end_kept();
    lab.assert_nothing_is_left();
}

#[test]
fn root_a_driver_of_which_nothing_is_known_is_unknown() {
    let Some(mut lab) = Lab::new("root_a_driver_of_which_nothing_is_known_is_unknown") else {
        return;
    };
    let tester = lab.namespace("unknown");
    // Every tester's kernel has bridges, and the tool knows nothing of their driver.
    for port in ["tx", "rx"] {
        ip(&format!("-n {tester} link add name {port} type bridge"));
        ip(&format!(
            "-n {tester} link add name {port}0 type veth peer name {port}1"
        ));
        ip(&format!("-n {tester} link set dev {port}0 master {port}"));
        for link in [format!("{port}0"), format!("{port}1"), port.to_owned()] {
            ip(&format!("-n {tester} link set dev {link} up"));
        }
    }
    let namespace = Namespace::named(&tester).unwrap();
    for port in ["tx", "rx"] {
        link::set_feature(&namespace, port, Feature::Gro, false).unwrap();
    }
    let external = External {
        dut: tester.clone(),
        tester,
    };
    let testbed = lab.file(
        "testbed.toml",
        &external.testbed("[3]", "ports.xdp = \"skb\"\n"),
    );
    let checked = lab.run(&format!("check --testbed {testbed} --format json"));
    let found = json(&checked);
    assert_eq!(
        (checked.code, &found["state"]),
        (Some(3), &"unknown".into()),
        "{found:#}"
    );
    let unknown = [
        "tx driver unknown",
        "tx pause frames in unknown",
        "tx mac counters unknown",
        "rx driver unknown",
        "rx pause frames out unknown",
    ];
    assert_eq!(shortfalls(&found), unknown);
    lab.assert_nothing_is_left();
}

#[test]
fn root_a_fix_is_kept_until_it_is_undone() {
    let Some(mut lab) = Lab::new("root_a_fix_is_kept_until_it_is_undone") else {
        return;
    };
    let external = External::new(&mut lab);
    external.start_dut(&mut lab, "--lossless 3");
    let tester = Namespace::named(&external.tester).unwrap();
    let gro = || link::feature(&tester, "tx", Feature::Gro).unwrap();
    link::set_feature(&tester, "tx", Feature::Gro, true).unwrap();
    let testbed = lab.file("testbed.toml", &external.testbed("[3]", ""));
    let check = |more: &str| lab.run(&format!("check --testbed {testbed} --format json{more}"));
    const SKB: &str = " --set testbed.ports.xdp=\"skb\"";

    let harmless = json(&check(""));
    assert_eq!(
        item(&harmless, "tx", "gro, lro")["found"],
        "gro is on, behind a program in the driver; lro is off"
    );
    let found = json(&check(SKB));
    assert_eq!(shortfalls(&found), ["tx gro, lro problem"], "{found:#}");
    let problem = item(&found, "tx", "gro, lro");
    assert_eq!(
        problem["mend"],
        format!("ip netns exec {} ethtool -K tx gro off", external.tester)
    );
    assert!(
        gro() && entries("-tx-generic-receive-offload").is_empty(),
        "nothing is changed unless asked"
    );

    let fixed = check(&format!("{SKB} --fix"));
    assert_eq!(fixed.code, Some(0), "{fixed:?}");
    assert_eq!(
        fixed.stderr,
        "tx: generic-receive-offload is off until `validator check --undo`\n"
    );
    assert!(!gro() && entries("-tx-generic-receive-offload").len() == 1);
    let again = check(&format!("{SKB} --fix"));
    assert_eq!(
        (
            again.code,
            again.stderr.as_str(),
            entries("-tx-generic-receive-offload").len()
        ),
        (Some(0), "", 1),
        "there is nothing more to fix"
    );

    // A run leaves it and reports it.
    let plan = lab.plan("200ms", &[("pause-lossy", "lossless = [3]")]);
    let run = lab.run(&format!(
        "run --testbed {testbed} --plan {plan} --out {}{SKB}",
        lab.out().display()
    ));
    // The verdicts on the switch are other tests' subject.
    assert!(matches!(run.code, Some(0 | 1 | 3)), "{run:?}");
    assert!(
        run.stderr.contains(
            "tx: generic-receive-offload is off by `validator check --fix`, until `--undo`"
        ),
        "{}",
        run.stderr
    );
    assert!(!gro() && entries("-tx-generic-receive-offload").len() == 1);

    let undone = lab.run("check --undo");
    assert_eq!(
        (undone.code, undone.stdout.as_str()),
        (Some(0), "tx: generic-receive-offload is on again\n")
    );
    assert!(gro() && entries("-tx-generic-receive-offload").is_empty());
    let nothing = lab.run("check --undo");
    assert_eq!(
        (nothing.code, nothing.stdout.as_str()),
        (
            Some(0),
            "nothing that `validator check --fix` or a killed run has changed is left\n"
        )
    );
}

#[test]
fn root_a_run_keeps_what_was_found_before_it() {
    let Some(mut lab) = Lab::new("root_a_run_keeps_what_was_found_before_it") else {
        return;
    };
    let external = External::new(&mut lab);
    external.start_dut(&mut lab, "--lossless 3");
    let tester = Namespace::named(&external.tester).unwrap();
    link::set_feature(&tester, "rx", Feature::Gro, true).unwrap();
    let testbed = lab.file(
        "testbed.toml",
        &external.testbed("[3]", "ports.xdp = \"skb\"\n"),
    );
    let plan = lab.plan("200ms", &[("pause-lossy", "lossless = [3]")]);
    let run = lab.run(&format!(
        "run --testbed {testbed} --plan {plan} --out {}",
        lab.out().display()
    ));
    assert!(matches!(run.code, Some(0 | 1 | 3)), "{run:?}");
    assert!(
        run.stderr
            .contains("preflight: rx: rx in network namespace"),
        "{}",
        run.stderr
    );
    assert!(
        run.stdout
            .contains("\npreflight  rx: rx in network namespace"),
        "{}",
        run.stdout
    );
    let evidence = report::read_evidence(&lab.out()).unwrap();
    let ports = evidence.preflight.unwrap().ports;
    assert_eq!(
        ports
            .iter()
            .map(|port| port.facts.interface.as_str())
            .collect::<Vec<_>>(),
        ["tx", "rx"]
    );
    let written: Value =
        serde_json::from_str(&fs::read_to_string(lab.out().join("report.json")).unwrap()).unwrap();
    let gro = written["preflight"][1]["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["what"] == "gro, lro")
        .unwrap();
    assert_eq!(gro["state"], "problem");
    // The tool's own ports need no entries in the machine's journal.
    let sim = lab.run(&format!(
        "check --testbed {} --format json",
        of_repository("configs/testbeds/sim.toml")
    ));
    assert_eq!((sim.code, shortfalls(&json(&sim))), (Some(0), Vec::new()));
}

#[test]
fn a_dry_run_is_told_to_programs_too() {
    let sim = of_repository("configs/testbeds/sim.toml");
    let arguments =
        format!("run --testbed {sim} --plan smoke --case pfc.pause-lossy --dry-run --format json");
    let output = Command::new(PROGRAM).args(arguments.split(' ')).output();
    let outcome = Outcome::of(output.unwrap());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let planned = json(&outcome);
    assert_eq!(
        (&planned["plan"], &planned["line_rate"]),
        (&"smoke".into(), &1_000_000_000.into())
    );
    let cases = planned["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 1);
    assert_eq!(cases[0]["case"], "pfc.pause-lossy");
    let flows = &cases[0]["repetitions"][0]["flows"];
    assert!(!flows.as_array().unwrap().is_empty(), "{planned:#}");
}

#[test]
fn a_run_without_pfc_cases_calls_no_hook() {
    let folder = tempfile::tempdir().unwrap();
    let testbed = folder.path().join("testbed.toml");
    let text = "name = \"t\"\ndut.kind = \"sim\"\nports.line_rate = \"1G\"\n\
                hooks.prepare = \"true\"\nmad.transport = \"sim\"\n";
    fs::write(&testbed, text).unwrap();
    let hooks = |plan: &str| {
        let arguments = ["run", "--dry-run", "--format", "json", "--plan", plan];
        let mut command = Command::new(PROGRAM);
        command.args(arguments).arg("--testbed").arg(&testbed);
        let planned = json(&Outcome::of(command.output().unwrap()));
        planned["hooks"].as_array().unwrap().len()
    };
    assert_eq!((hooks("smoke"), hooks("mad")), (1, 0));
}

#[test]
fn root_a_journal_of_another_user_is_named() {
    const NOBODY: u32 = 65534;
    let Some(lab) = Lab::new("root_a_journal_of_another_user_is_named") else {
        return;
    };
    // Others may have no access to the build folder.
    let program = lab.path("validator");
    fs::copy(PROGRAM, &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let journal = lab.path("journal");
    fs::create_dir(&journal).unwrap();
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o700)).unwrap();
    let undo = |user: u32| {
        let mut command = lab.command(program.to_str().unwrap(), "check --undo --format json");
        command
            .env("VALIDATOR_JOURNAL", &journal)
            .uid(user)
            .gid(user);
        let outcome = Outcome::of(command.output().unwrap());
        (outcome.code, json(&outcome))
    };
    let nothing = serde_json::json!({ "done": [], "complete": true });
    assert_eq!(undo(0), (Some(0), nothing));
    let (code, found) = undo(NOBODY);
    assert_eq!((code, &found["complete"]), (Some(1), &false.into()));
    let message = found["done"][0].as_str().unwrap();
    let words = format!("journal {}: another user's", journal.display());
    assert!(
        message.starts_with(&words) && message.contains("as root"),
        "{message}"
    );
}
