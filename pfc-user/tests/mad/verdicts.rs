//! Runs on the simulated agent: that all is reported, and one fault of each kind over the socket.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::mad::{Ended, Folder, PROGRAM, SIM, case, checks, set};

#[test]
fn a_good_agent_passes_and_every_step_and_assertion_is_reported() {
    let folder = Folder::new();
    let ended = folder.run(Path::new(SIM), "--plan mad");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = folder.report();
    for id in ["mad.c14-024-10-01", "mad.c14-016-get"] {
        let case = case(&report, id);
        assert_eq!(case["verdict"], "pass");
        assert!(
            checks(case, "fail").is_empty()
                && checks(case, "inconclusive").is_empty()
                && checks(case, "skipped").is_empty()
        );
        for step in case["steps"].as_array().unwrap() {
            assert!(
                step["verdict"] == "pass" && !step["found"].as_str().unwrap().is_empty(),
                "{step}"
            );
        }
    }

    let table = case(&report, "mad.c14-024-10-01");
    let steps: Vec<String> = (1..=16).map(|step| step.to_string()).collect();
    assert_eq!(
        numbers(table, "blocks-0-to-767"),
        ["init 1".to_owned()]
            .into_iter()
            .chain(steps)
            .collect::<Vec<_>>()
    );
    let outcome = |case: &Value, verdict: &str| -> BTreeSet<String> {
        let with = case["assertions"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|assertion| assertion["verdict"] == verdict);
        with.map(|assertion| assertion["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let of = |numbers: [&str; 4]| {
        numbers
            .map(|number| format!("v1c14-024.1.1#{number}"))
            .into_iter()
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(
        outcome(table, "not-exercised"),
        of(["10.01", "10.02", "10.05", "10.06"])
    );
    assert_eq!(
        outcome(table, "pass"),
        set(["v1c13-024#07", "v1c14-024.1.1#10.03", "v1c14-024.1.1#10.04"])
    );

    let keys = case(&report, "mad.c14-016-get");
    let of = [
        "v1c14-016#01.01",
        "v1c14-016#02.01",
        "v1c14-016#03.01",
        "v1c14-016#04.01",
        "v1c14-029#01.01",
        "v1c14-029#01.02",
    ];
    assert_eq!(outcome(keys, "pass"), set(of));
    for assertion in keys["assertions"].as_array().unwrap() {
        let comparisons = assertion["comparisons"].as_array().unwrap();
        assert!(!comparisons.is_empty(), "{assertion}");
        assert!(
            comparisons
                .iter()
                .all(|one| one["expected"].is_string() && one["actual"].is_string())
        );
    }

    let again = Ended::of(
        std::process::Command::new(PROGRAM)
            .args(["judge", "--format", "json"])
            .arg(folder.out())
            .output()
            .unwrap(),
    );
    assert_eq!(
        (
            again.code,
            serde_json::from_str::<Value>(&again.stdout).unwrap()
        ),
        (Some(0), report)
    );
}

#[test]
fn a_good_agent_answers_in_time_and_the_tester_s_own_part_is_told() {
    let folder = Folder::new();
    let ended = folder.run(Path::new(SIM), "--plan mad-siblings");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = folder.report();
    for id in ["mad.c13-013", "mad.c13-014-01"] {
        assert_eq!(case(&report, id)["verdict"], "pass", "{ended:?}");
    }
    let timed = case(&report, "mad.c13-014-01");
    assert_eq!(numbers(timed, "timed"), ["init 1", "1", "2", "3", "4"]);
    let found = |index: usize| timed["steps"][index]["found"].as_str().unwrap();
    assert!(found(1).starts_with("sent 20"), "{}", found(1));
    let own = "the tester's own port answers after";
    assert!(found(4).contains(own), "{}", found(4));
}

/// Numbers of the steps of one repetition, in their order.
fn numbers(case: &Value, repetition: &str) -> Vec<String> {
    let of = case["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|step| step["repetition"] == repetition);
    of.map(|step| step["step"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_channel_adapter_has_no_forwarding_table_to_test() {
    let folder = Folder::new();
    let ended = folder.run(
        Path::new(SIM),
        "--plan mad --set testbed.mad.timeout=200ms --set testbed.mad.args=[\"--node\",\"ca\"]",
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = folder.report();
    assert_eq!(
        case(&report, "mad.c14-024-10-01")["verdict"],
        "not-applicable"
    );
    assert_eq!(case(&report, "mad.c14-016-get")["verdict"], "pass");
}

/// The checks of both cases that fail with this fault, each as `check [repetition]`.
fn failing(fault: &str) -> BTreeSet<String> {
    let folder = Folder::new();
    let ended = folder.run(
        Path::new(SIM),
        &format!(
            "--plan mad --set testbed.mad.timeout=200ms --set testbed.mad.faults=[\"{fault}\"]"
        ),
    );
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let failing = report_failing(&folder.report());
    // The last lines name what failed, and the page that shows it.
    let (_, end) = ended.stdout.split_once("\nverdict: fail ").unwrap();
    let (_, named) = end.split_once("\nfailed: ").unwrap();
    let mut named = named.split_inclusive('\n');
    let first = named.next().unwrap().to_owned();
    let named = first
        + &named
            .take_while(|line| line.starts_with(' '))
            .collect::<String>();
    for check in &failing {
        let name = check.split(' ').next().unwrap();
        assert!(named.contains(name), "{name} in {named}");
    }
    let page = folder.out().join("report.html");
    let last = format!("\nthe page to look at: {}\n", page.display());
    assert!(end.ends_with(&last), "{end}");
    assert!(page.is_file());
    failing
}

fn report_failing(report: &Value) -> BTreeSet<String> {
    ["mad.c14-024-10-01", "mad.c14-016-get"]
        .into_iter()
        .flat_map(|id| checks(case(report, id), "fail"))
        .collect()
}

#[test]
fn faults_are_found_over_the_socket_too() {
    assert_eq!(
        failing("shows-key"),
        set(["other-key-value [protect-bits-1]"])
    );
    assert_eq!(
        failing("lft-one-block=500"),
        set([
            "get-status [blocks-0-to-767]",
            "set-status [blocks-0-to-767]"
        ])
    );
    assert_eq!(
        failing("counts-twice"),
        set([
            "one-violation [protect-bits-2]",
            "one-violation [protect-bits-3]"
        ])
    );
    assert_eq!(
        failing("answers-wrong-key"),
        set(["no-answer [protect-bits-2]", "no-answer [protect-bits-3]"])
    );
    // The simulated agent's socket leaves the upper half of a TID alone.
    assert_eq!(
        failing("header=tid-zero"),
        set([
            "header [blocks-0-to-767]",
            "header [protect-bits-0]",
            "header [protect-bits-1]",
            "header [protect-bits-2]",
            "header [protect-bits-3]"
        ])
    );
}

/// Upper halves of the TIDs that a run sends.
fn upper_halves() -> Vec<String> {
    let folder = Folder::new();
    let ended = folder.run(Path::new(SIM), "--plan mad-siblings --case mad.c13-013");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let evidence = std::fs::read_to_string(folder.out().join("evidence.json")).unwrap();
    let evidence: Value = serde_json::from_str(&evidence).unwrap();
    let exchanges = &evidence["cases"][0]["repetitions"][0]["exchanges"];
    let requests = exchanges.as_array().unwrap().iter();
    // Octets 8 to 11.
    let upper_half = |one: &Value| one["request"].as_str().unwrap()[16..24].to_owned();
    requests.map(upper_half).collect()
}

/// Else a node that writes the same upper half into each answer would not be found.
#[test]
fn upper_halves_of_tids_differ_between_requests_and_between_runs() {
    let (first, second) = (upper_halves(), upper_halves());
    for halves in [&first, &second] {
        let different = BTreeSet::from_iter(halves);
        assert!(
            different.len() == halves.len() && halves.len() > 1,
            "{halves:?}"
        );
    }
    assert_ne!(first, second);
}

#[test]
fn without_a_table_the_cases_are_not_applicable() {
    let folder = Folder::new();
    let bridge = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../configs/testbeds/bridge.toml"
    );
    let ended = folder.run(Path::new(bridge), "--plan mad");
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(
        ended.stdout.contains("the testbed has no table [mad]"),
        "{}",
        ended.stdout
    );
}

#[test]
fn what_cannot_be_reached_is_refused_before_anything_is_sent() {
    let folder = Folder::new();
    for (lines, message) in [
        (
            "transport = \"ibsim\"\nsocket = \"nobody-is-here\"\nhost = \"Hca1\"",
            "nobody-is-here",
        ),
        ("transport = \"umad\"\ndevice = \"mlx5_77\"", "mlx5_77"),
    ] {
        let testbed = folder.file("t.toml", &format!("name = \"t\"\n[mad]\n{lines}\n"));
        let ended = folder.run(&testbed, "--plan mad");
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(2), ""),
            "{ended:?}"
        );
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
    }
}

#[test]
fn a_dry_run_shows_the_steps_and_sends_nothing() {
    let folder = Folder::new();
    let testbed = folder.file(
        "t.toml",
        "name = \"t\\u001b[2J\"\n[mad]\ntransport = \"ibsim\"\n\
         socket = \"nobody-is-here\"\nhost = \"Hca\\u009b1\"\n",
    );
    let ended = folder.run(&testbed, "--plan mad --dry-run");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for text in [
        "mad.c14-016-get [protect-bits-3]",
        "nobody-is-here",
        "M_KeyProtectBits 3",
        "path 0,1",
    ] {
        assert!(ended.stdout.contains(text), "{text} in {}", ended.stdout);
    }
    let steers = |c: char| c != '\n' && c.is_control();
    assert!(!ended.stdout.contains(steers), "{:?}", ended.stdout);
}

/// A run that counted from a fixed beginning would try the same bits each time.
#[test]
fn each_run_draws_the_bits_of_a_key_anew() {
    let folder = Folder::new();
    let bits = |plan: &str| {
        let ended = folder.run(
            Path::new(SIM),
            &format!("--plan {plan} --dry-run --format json"),
        );
        let planned: Value = serde_json::from_str(&ended.stdout).unwrap();
        case(&planned, "mad.c14-016-get")["repetitions"][1]["key_bits"].clone()
    };
    assert_eq!(bits("mad-full").as_array().unwrap().len(), 64);
    let first = bits("mad");
    assert_eq!(first.as_array().unwrap().len(), 8, "{first}");
    // One of eight sets is drawn: 32 draws are all like the first once in 10^28 runs.
    assert!((0..32).any(|_| bits("mad") != first), "{first}");
}
