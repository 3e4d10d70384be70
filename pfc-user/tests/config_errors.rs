//! Every mistake in a testbed, a plan or a `--set` argument is answered with where it is, what was expected and what was found.
//!
//! lane: computing

use std::fs;
use std::path::Path;

use validator::config::{self, PlanChoice};

const CASES: [&str; 4] = [
    "pfc.pause-single-lossless",
    "pfc.pause-multi-lossless",
    "pfc.pause-lossy",
    "pfc.global-pause",
];
/// Every case that the built-in plans name.
const KNOWN: [&str; 7] = [
    CASES[0],
    CASES[1],
    CASES[2],
    CASES[3],
    "mad.c14-024-10-01",
    "mad.c14-016-get",
    "rc.c09-142-01",
];
const SIM: &str = "name = \"t\"\n[dut]\nkind = \"sim\"\n[ports]\nline_rate = \"1G\"\n";
const EXTERNAL: &str = "name = \"t\"\ndut.kind = \"external\"\nqos.dscp_map = \"sonic\"\nqos.lossless = [3, 4]\nports.tx.interface = \"a\"\nports.rx.interface = \"b\"\n";
const PLAN: &str = "name = \"p\"\n[[case]]\nid = \"pfc.pause-single-lossless\"\nrepetitions = [{ lossless = [3] }]\n";

/// The error of loading these texts, with the directory taken out of file names.
fn error(testbed: &str, plan: &str, sets: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("t.toml"), testbed).unwrap();
    fs::write(path("p.toml"), plan).unwrap();
    let sets: Vec<_> = sets.iter().map(|set| set.to_string()).collect();
    let choice = PlanChoice::Plan(path("p.toml").display().to_string());
    let error = config::load(&path("t.toml"), &choice, &sets, &KNOWN)
        .expect_err(&format!("accepted:\n{testbed}\n{plan}\n{sets:?}"));
    error
        .to_string()
        .replace(&format!("{}/", dir.path().display()), "")
}

fn check(rows: &[(&str, &str, &[&str], &str)]) {
    let wrong: Vec<_> = rows
        .iter()
        .map(|(testbed, plan, sets, expected)| (error(testbed, plan, sets), *expected))
        .filter(|(found, expected)| found != expected)
        .map(|(found, expected)| format!("   found {found}\nexpected {expected}"))
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

#[test]
fn syntax_keys_and_types() {
    let sim = |more: &str| format!("{SIM}{more}");
    check(&[
        (
            "name = \n",
            PLAN,
            &[],
            "t.toml:1:8: string values must be quoted, expected literal string in `name =`",
        ),
        (
            "name = \"t\n",
            PLAN,
            &[],
            "t.toml:1:10: invalid basic string, expected `\"` in `name = \"t`",
        ),
        (
            &sim("line_rate = \"2G\"\n"),
            PLAN,
            &[],
            "t.toml:6:1: duplicate key in `line_rate = \"2G\"`",
        ),
        ("", PLAN, &[], "t.toml:1:1: missing field `name`"),
        (
            "name = \"t\"\n[dut]\nkind = \"router\"\n",
            PLAN,
            &[],
            "t.toml:3:8: dut.kind: unknown variant `router`, expected one of `sim`, `bridge`, `external`",
        ),
        (
            "name = \"t\"\n[dut]\n",
            PLAN,
            &[],
            "t.toml:2:1: dut: missing field `kind`",
        ),
        (
            "name = 3\n",
            PLAN,
            &[],
            "t.toml:1:8: name: invalid type: integer `3`, expected a string",
        ),
        (
            &sim("speed = 3\n"),
            PLAN,
            &[],
            "t.toml:6:1: ports.speed: unknown field `speed`, expected one of `tx`, `rx`, `line_rate`, `xdp`, `sender`",
        ),
        (
            &sim("[limit]\nload = 1.0\n"),
            PLAN,
            &[],
            "t.toml:6:2: limit: unknown field `limit`, expected one of `name`, `dut`, `ports`, `qos`, `addresses`, `limits`, `facts`, `hooks`, `mad`, `rc`",
        ),
        (
            &sim("tx = { interfac = \"eth1\" }\n"),
            PLAN,
            &[],
            "t.toml:6:8: ports.tx.interfac: unknown field `interfac`, expected `interface` or `namespace`",
        ),
        (
            &sim("[ports.tx]\nnamespace = \"n\"\n"),
            PLAN,
            &[],
            "t.toml:6:1: ports.tx: missing field `interface`",
        ),
        (
            &sim("[limits]\nmax_response = 300\n"),
            PLAN,
            &[],
            "t.toml:7:16: limits.max_response: invalid type: integer `300`, expected a time with its unit (ns, us, ms, s, min), such as \"300ms\"",
        ),
        (
            &sim("[limits]\nmax_response = \"1 parsec\"\n"),
            PLAN,
            &[],
            "t.toml:7:16: limits.max_response: invalid value: string \"1 parsec\", expected a time with its unit (ns, us, ms, s, min), such as \"300ms\"",
        ),
        (
            &sim("[limits]\nheadroom = -1\n"),
            PLAN,
            &[],
            "t.toml:7:12: limits.headroom: invalid value: integer `-1`, expected octets as a number, or with their unit (B, KiB, MiB, GiB), such as \"512KiB\"",
        ),
        (
            &sim("[limits]\nheadroom = \"1kb\"\n"),
            PLAN,
            &[],
            "t.toml:7:12: limits.headroom: invalid value: string \"1kb\", expected octets as a number, or with their unit (B, KiB, MiB, GiB), such as \"512KiB\"",
        ),
        (
            &sim("[qos]\nlossless = [3, 8]\n"),
            PLAN,
            &[],
            "t.toml:7:12: qos.lossless: priority must be 0 to 7, found 8",
        ),
        (
            &sim("[qos]\ndscp_map = \"cisco\"\n"),
            PLAN,
            &[],
            "t.toml:7:12: qos.dscp_map: expected \"sonic\", \"dscp-mod-8\", \"dscp-high-bits\", or an array of 64 priorities (0 to 7)",
        ),
        (
            &sim("[qos]\ntrust = \"mac\"\n"),
            PLAN,
            &[],
            "t.toml:7:9: qos.trust: unknown variant `mac`, expected `dscp` or `pcp`",
        ),
        (
            &sim("[facts]\nwatchdog = true\n"),
            PLAN,
            &[],
            "t.toml:7:12: facts.watchdog: expected a string",
        ),
        (
            &sim("[addresses]\nsource_ip = \"198.18.0\"\n"),
            PLAN,
            &[],
            "t.toml:7:13: addresses.source_ip: invalid IP address syntax",
        ),
        (
            &sim("[addresses]\nsource_mac = \"01:00:00:00:00:01\"\n"),
            PLAN,
            &[],
            "t.toml:7:14: addresses.source_mac: invalid value: string \"01:00:00:00:00:01\", expected a unicast MAC address, such as \"02:00:00:00:00:01\"",
        ),
        (
            "name = \"t\"\n[dut]\nkind = \"sim\"\n[ports]\nline_rate = \"1\"\n",
            PLAN,
            &[],
            "t.toml:5:13: ports.line_rate: line rate in bit/s must be 1000000 to 1600000000000, found 1",
        ),
        (
            "name = \"t\"\n[dut]\nkind = \"sim\"\n[ports]\nline_rate = \"2T\"\n",
            PLAN,
            &[],
            "t.toml:5:13: ports.line_rate: line rate in bit/s must be 1000000 to 1600000000000, found 2000000000000",
        ),
        (
            "name = \"t\"\n[dut]\nkind = \"sim\"\n[ports]\nline_rate = 1000000000\n",
            PLAN,
            &[],
            "t.toml:5:13: ports.line_rate: invalid type: integer `1000000000`, expected a rate with its unit (K, M, G, T for bit/s), such as \"25G\"",
        ),
        (
            SIM,
            "name = \"p\"\n[[case]]\nid = \"pfc.global-pause\"\n",
            &[],
            "p.toml:2:1: case[0].repetitions: expected at least one repetition, found none",
        ),
        (
            SIM,
            "name = \"p\"\n[[case]]\nid = \"pfc.pause-lossy\"\nrepetitions = [{ lossless = [3], storms = [3] }]\n",
            &[],
            "p.toml:4:34: case[0].repetitions[0].storms: unknown field `storms`, expected `lossless` or `storm`",
        ),
        (
            SIM,
            "name = \"p\"\n[[case]]\nid = \"pfc.pause-lossy\"\nrepetitions = [{ lossless = [1] }, { lossless = [\"3\"] }]\n",
            &[],
            "p.toml:4:50: case[0].repetitions[1].lossless[0]: invalid type: string \"3\", expected u8",
        ),
        (
            SIM,
            &format!("{PLAN}[storm]\nquanta = 70000\n"),
            &[],
            "p.toml:6:10: storm.quanta: expected 1 to 65535 (time 0 would be an XON), found 70000",
        ),
        (
            SIM,
            "name = \"p\"\n",
            &[],
            "p.toml:1:1: missing field `case`",
        ),
    ]);
}

#[test]
fn testbeds_that_make_no_sense() {
    let sim = |more: &str| format!("{SIM}{more}");
    let external = |more: &str| format!("{EXTERNAL}{more}");
    check(&[
        (
            "name = \"t\"\n[dut]\nkind = \"sim\"\n",
            PLAN,
            &[],
            "t.toml:1:1: ports.line_rate: missing: a veth has no speed of its own; say it, such as line_rate = \"1G\"",
        ),
        (
            "name = \"t\"\n[dut]\nkind = \"bridge\"\n[ports]\nxdp = \"skb\"\n",
            PLAN,
            &[],
            "t.toml:4:1: ports.line_rate: missing: a veth has no speed of its own; say it, such as line_rate = \"1G\"",
        ),
        (
            &sim("tx = { interface = \"eth1\" }\n"),
            PLAN,
            &[],
            "t.toml:6:6: ports.tx: the tool makes its own ports for this kind of DUT; remove it, or set dut.kind = \"external\"",
        ),
        (
            "name = \"t\"\n[dut]\nkind = \"bridge\"\nfaults = [\"leaks=100\"]\n[ports]\nline_rate = \"1G\"\n",
            PLAN,
            &[],
            "t.toml:4:10: dut.faults: only a DUT of kind \"sim\" takes it",
        ),
        (
            "name = \"t\"\n[dut]\nkind = \"sim\"\nfaults = [\"leaks=100\", \"leeks\"]\n[ports]\nline_rate = \"1G\"\n",
            PLAN,
            &[],
            "t.toml:4:24: dut.faults[1]: no fault is called \"leeks\": see `validator dut switch --help` for all of them",
        ),
        (
            SIM,
            PLAN,
            &["testbed.dut.faults=[\"leaks=0\"]"],
            "--set testbed.dut.faults=[\"leaks=0\"]: dut.faults[0]: leaks takes a number of frames above 0, found \"0\"",
        ),
        (
            &external("dut.args = [\"-v\"]\n"),
            PLAN,
            &[],
            "t.toml:7:12: dut.args: only a DUT of kind \"sim\" takes it",
        ),
        (
            "name = \"t\"\ndut.kind = \"external\"\n",
            PLAN,
            &[],
            "t.toml:1:1: qos.dscp_map: missing: say how the DUT maps DSCPs to priorities, such as dscp_map = \"sonic\"",
        ),
        (
            "name = \"t\"\ndut.kind = \"external\"\nqos.dscp_map = \"sonic\"\n",
            PLAN,
            &[],
            "t.toml:1:1: ports.tx: missing: an external DUT needs both ports, such as { interface = \"eth1\" }",
        ),
        (
            "name = \"t\"\ndut.kind = \"external\"\nqos.dscp_map = \"sonic\"\nports.tx.interface = \"a\"\n",
            PLAN,
            &[],
            "t.toml:4:1: ports.rx: missing: an external DUT needs both ports, such as { interface = \"eth1\" }",
        ),
        (
            &external("").replace("\"b\"", "\"a\""),
            PLAN,
            &[],
            "t.toml:6:7: ports.rx: port a is used twice; tx and rx must be different ports",
        ),
        (
            &external("").replace("qos.lossless = [3, 4]\n", ""),
            PLAN,
            &[],
            "t.toml:3:1: qos.lossless: missing: say which priorities are lossless on the DUT, such as lossless = [3, 4]",
        ),
        (
            &external("").replace("[3, 4]", "[3, 4, 3]"),
            PLAN,
            &[],
            "t.toml:4:16: qos.lossless: priority 3 is listed twice",
        ),
        (
            &external("").replace("[3, 4]", "[]"),
            PLAN,
            &[],
            "t.toml:4:16: qos.lossless: expected at least one priority (0 to 7), found none",
        ),
        (
            &sim("[qos]\ndscp_map = [0, 1, 2]\n"),
            PLAN,
            &[],
            "t.toml:7:12: qos.dscp_map: expected 64 priorities, one for each DSCP from 0; found 3",
        ),
        (
            &sim(&format!("[qos]\ndscp_map = {:?}\n", [1; 65])),
            PLAN,
            &[],
            "t.toml:7:12: qos.dscp_map: expected 64 priorities, one for each DSCP from 0; found 65",
        ),
        (
            &sim("[addresses]\nsource_ip = \"fd00::1\"\n"),
            PLAN,
            &[],
            "t.toml:7:13: addresses.source_ip: source fd00::1 and destination 198.18.0.2 must be of one family, IPv4 or IPv6",
        ),
        (
            &sim("[addresses]\nsource_ip = \"fd00::1\"\ndestination_ip = \"10.0.0.2\"\n"),
            PLAN,
            &[],
            "t.toml:8:18: addresses.destination_ip: source fd00::1 and destination 10.0.0.2 must be of one family, IPv4 or IPv6",
        ),
        (
            &sim("[addresses]\nsource_ip = \"198.18.0.2\"\n"),
            PLAN,
            &[],
            "t.toml:6:1: addresses.destination_ip: source and destination must differ, both are 198.18.0.2",
        ),
        (
            &sim("[addresses]\ndestination_ip = \"224.0.0.1\"\n"),
            PLAN,
            &[],
            "t.toml:7:18: addresses.destination_ip: expected the unicast address of a host, found 224.0.0.1",
        ),
        (
            &sim(
                "[addresses]\ndestination_mac = \"02:00:00:00:00:01\"\ngateway_mac = \"02:00:00:00:00:02\"\n",
            ),
            PLAN,
            &[],
            "t.toml:8:15: addresses.gateway_mac: expected either destination_mac (the DUT bridges) or gateway_mac (the DUT routes), found both",
        ),
        (
            &sim("[limits]\nload = 1.01\n"),
            PLAN,
            &[],
            "t.toml:7:8: limits.load: expected a share above 0 and at most 1, found 1.01",
        ),
        (
            &sim("[limits]\nload = 0.0\n"),
            PLAN,
            &[],
            "t.toml:7:8: limits.load: expected a share above 0 and at most 1, found 0",
        ),
        (
            &sim("[limits]\nmin_throughput = 1.5\n"),
            PLAN,
            &[],
            "t.toml:7:18: limits.min_throughput: expected a share above 0 and at most 1, found 1.5",
        ),
        (
            &sim("[limits]\nmax_burst = \"5ms\"\n"),
            PLAN,
            &[],
            "t.toml:7:13: limits.max_burst: expected at most 4ms, found 5ms",
        ),
        (
            &sim("[limits]\nmax_response = \"0ms\"\n"),
            PLAN,
            &[],
            "t.toml:7:16: limits.max_response: expected a time above 0",
        ),
        (
            &sim("[hooks]\ntimeout = \"0s\"\n"),
            PLAN,
            &[],
            "t.toml:7:11: hooks.timeout: expected a time above 0",
        ),
    ]);
}

/// A plan of one case, with one repetition.
fn plan(case: &str, repetition: &str) -> String {
    format!("name = \"p\"\n[[case]]\nid = \"{case}\"\nrepetitions = [{repetition}]\n")
}

#[test]
fn plans_that_make_no_sense() {
    let [single, multi, lossy, global] = CASES;
    let ipv6 = format!("{SIM}[addresses]\nsource_ip = \"fd00::1\"\ndestination_ip = \"fd00::2\"\n");
    check(&[
        (
            SIM,
            "name = \"p\"\ncase = []\n",
            &[],
            "p.toml:2:8: case: expected at least one [[case]], found none",
        ),
        (
            SIM,
            &plan("pfc.nope", "{ lossless = [3] }"),
            &[],
            "p.toml:3:6: case[0].id: unknown case `pfc.nope`; expected one of pfc.pause-single-lossless, pfc.pause-multi-lossless, pfc.pause-lossy, pfc.global-pause, mad.c14-024-10-01, mad.c14-016-get, rc.c09-142-01",
        ),
        (
            SIM,
            &format!("{PLAN}[[case]]\nid = \"{single}\"\nrepetitions = [{{ lossless = [4] }}]\n"),
            &[],
            "p.toml:6:6: case[1].id: case `pfc.pause-single-lossless` is listed twice",
        ),
        (
            SIM,
            &plan(single, ""),
            &[],
            "p.toml:4:15: case[0].repetitions: expected at least one repetition, found none",
        ),
        (
            SIM,
            &plan(
                single,
                "{ lossless = [3] }, { lossless = [4] }, { lossless = [3] }",
            ),
            &[],
            "p.toml:4:56: case[0].repetitions[2]: the same repetition is listed twice",
        ),
        (
            SIM,
            &plan(single, "{ lossless = [] }"),
            &[],
            "p.toml:4:29: case[0].repetitions[0].lossless: expected one lossless priority, found 0: the case is about a single lossless priority",
        ),
        (
            SIM,
            &plan(single, "{ lossless = [3, 4] }"),
            &[],
            "p.toml:4:29: case[0].repetitions[0].lossless: expected one lossless priority, found 2: the case is about a single lossless priority",
        ),
        (
            SIM,
            &plan(single, "{ lossless = [3], storm = [3] }"),
            &[],
            "p.toml:4:42: case[0].repetitions[0].storm: this case says itself what is stormed; only pfc.pause-multi-lossless takes it",
        ),
        (
            SIM,
            &plan(multi, "{ lossless = [3] }"),
            &[],
            "p.toml:4:29: case[0].repetitions[0].lossless: expected 2 to 7 lossless priorities, found 1: the case is about several lossless priorities beside at least one lossy",
        ),
        (
            SIM,
            &plan(multi, "{ lossless = [0, 1, 2, 3, 4, 5, 6, 7] }"),
            &[],
            "p.toml:4:29: case[0].repetitions[0].lossless: expected 2 to 7 lossless priorities, found 8: the case is about several lossless priorities beside at least one lossy",
        ),
        (
            SIM,
            &plan(multi, "{ lossless = [3, 4, 3] }"),
            &[],
            "p.toml:4:29: case[0].repetitions[0].lossless: priority 3 is listed twice",
        ),
        (
            SIM,
            &plan(multi, "{ lossless = [3, 4], storm = [5] }"),
            &[],
            "p.toml:4:45: case[0].repetitions[0].storm: priority 5 is not lossless here; expected a subset of 3,4",
        ),
        (
            SIM,
            &plan(multi, "{ lossless = [3, 4], storm = [] }"),
            &[],
            "p.toml:4:45: case[0].repetitions[0].storm: expected at least one priority (0 to 7), found none",
        ),
        (
            SIM,
            &plan(multi, "{ lossless = [3, 4], storm = [3, 3] }"),
            &[],
            "p.toml:4:45: case[0].repetitions[0].storm: priority 3 is listed twice",
        ),
        (
            SIM,
            &plan(
                multi,
                "{ lossless = [3, 4] }, { lossless = [4, 3], storm = [3, 4] }",
            ),
            &[],
            "p.toml:4:39: case[0].repetitions[1]: the same repetition is listed twice",
        ),
        (
            SIM,
            &plan(lossy, "{ lossless = [0, 1, 2, 3, 4, 5, 6, 7] }"),
            &[],
            "p.toml:4:29: case[0].repetitions[0].lossless: expected 1 to 7 lossless priorities, found 8: the case needs lossy priorities to storm beside lossless ones",
        ),
        (
            SIM,
            &plan(lossy, "{ lossless = [] }"),
            &[],
            "p.toml:4:29: case[0].repetitions[0].lossless: expected 1 to 7 lossless priorities, found 0: the case needs lossy priorities to storm beside lossless ones",
        ),
        (
            SIM,
            &plan(global, "{ lossless = [] }"),
            &[],
            "p.toml:4:29: case[0].repetitions[0].lossless: expected 1 to 8 lossless priorities, found 0: there are eight priorities",
        ),
        (
            SIM,
            &format!("{PLAN}[traffic]\nframe = 70\n"),
            &[],
            "p.toml:6:9: traffic.frame: expected 71 to 3400 octets without FCS for IPv4, found 70",
        ),
        (
            SIM,
            &format!("{PLAN}[traffic]\nframe = 3401\n"),
            &[],
            "p.toml:6:9: traffic.frame: expected 71 to 3400 octets without FCS for IPv4, found 3401",
        ),
        (
            &ipv6,
            &format!("{PLAN}[traffic]\nframe = 90\n"),
            &[],
            "p.toml:6:9: traffic.frame: expected 91 to 3400 octets without FCS for IPv6, found 90",
        ),
        (
            SIM,
            &format!("{PLAN}[durations]\ntraffic = \"0s\"\n"),
            &[],
            "p.toml:6:11: durations.traffic: expected a time above 0",
        ),
        (
            SIM,
            &format!("{PLAN}durations = {{ resume = \"0s\" }}\n"),
            &[],
            "p.toml:5:24: case[0].durations.resume: expected a time above 0",
        ),
        (
            SIM,
            &format!("{PLAN}[storm]\nquanta = 0\n"),
            &[],
            "p.toml:6:10: storm.quanta: expected 1 to 65535 (time 0 would be an XON), found 0",
        ),
        (
            SIM,
            &format!("{PLAN}[storm]\ninterval = \"34ms\"\n"),
            &[],
            "p.toml:6:12: storm.interval: expected an interval below the pause time, which is 33.55392ms at 1 Gbit/s; found 34ms",
        ),
        (
            SIM,
            &format!("{PLAN}storm = {{ quanta = 100, interval = \"51200ns\" }}\n"),
            &[],
            "p.toml:5:36: case[0].storm.interval: expected an interval below the pause time, which is 51.2us at 1 Gbit/s; found 51.2us",
        ),
        (
            SIM,
            &format!("{PLAN}[storm]\ninterval = \"0ms\"\n"),
            &[],
            "p.toml:6:12: storm.interval: expected a time above 0",
        ),
    ]);
}

#[test]
fn arguments() {
    check(&[
        (
            SIM,
            PLAN,
            &["testbed.limits.max_response"],
            "--set testbed.limits.max_response: expected key=value, such as testbed.limits.max_response=2ms",
        ),
        (
            SIM,
            PLAN,
            &["limits.max_response=2ms"],
            "--set limits.max_response=2ms: the key must begin with `testbed.` or `plan.`, such as plan.durations.traffic=2s",
        ),
        (
            SIM,
            PLAN,
            &["testbed=2"],
            "--set testbed=2: the key must begin with `testbed.` or `plan.`, such as plan.durations.traffic=2s",
        ),
        (
            SIM,
            PLAN,
            &["testbed.=2"],
            "--set testbed.=2: expected a key before `=`",
        ),
        (
            SIM,
            PLAN,
            &["testbed.limits.max_respons=2ms"],
            "--set testbed.limits.max_respons=2ms: unknown field `max_respons`, expected one of `max_response`, `headroom`, `max_residence`, `min_throughput`, `load`, `max_burst`",
        ),
        (
            SIM,
            PLAN,
            &["testbed.limit.load=1"],
            "--set testbed.limit.load=1: unknown field `limit`, expected one of `name`, `dut`, `ports`, `qos`, `addresses`, `limits`, `facts`, `hooks`, `mad`, `rc`",
        ),
        (
            SIM,
            PLAN,
            &["testbed.name.x=1"],
            "--set testbed.name.x=1: `name` is no table but of type string",
        ),
        (
            SIM,
            PLAN,
            &["plan.case.0=1"],
            "--set plan.case.0=1: `case` is no table but of type array",
        ),
        (
            SIM,
            PLAN,
            &["plan.durations.lead=2s", "plan.durations.traffic=2"],
            "--set plan.durations.traffic=2: invalid type: integer `2`, expected a time with its unit (ns, us, ms, s, min), such as \"300ms\"",
        ),
        (
            SIM,
            PLAN,
            &["testbed.limits.load=2.0"],
            "--set testbed.limits.load=2.0: limits.load: expected a share above 0 and at most 1, found 2",
        ),
        (
            SIM,
            PLAN,
            &["testbed.ports={ line_rate = \"1G\", xdp = \"fast\" }"],
            "--set testbed.ports={ line_rate = \"1G\", xdp = \"fast\" }: unknown variant `fast`, expected one of `auto`, `driver`, `skb`",
        ),
        (
            SIM,
            PLAN,
            &["plan.traffic.frame=60"],
            "--set plan.traffic.frame=60: traffic.frame: expected 71 to 3400 octets without FCS for IPv4, found 60",
        ),
    ]);
}

#[test]
fn files_and_names_that_are_not_there() {
    let load = |testbed: &Path, choice| {
        config::load(testbed, &choice, &[], &KNOWN)
            .unwrap_err()
            .to_string()
    };
    let dir = tempfile::tempdir().unwrap();
    let testbed = dir.path().join("t.toml");
    let all = PlanChoice::Plan("all".to_owned());
    assert_eq!(
        load(&testbed, all.clone()),
        format!(
            "{}: cannot be read: No such file or directory (os error 2)",
            testbed.display()
        )
    );
    fs::write(&testbed, SIM).unwrap();
    assert_eq!(
        load(&testbed, PlanChoice::Plan("smok".to_owned())),
        "--plan smok: neither a file nor a built-in plan (all, mad, pfc, rc, smoke)"
    );
    assert_eq!(
        load(
            &testbed,
            PlanChoice::Cases(vec!["pfc.pause-lossy".to_owned(), "pfc.lossy".to_owned()])
        ),
        format!(
            "--case pfc.lossy: unknown case; expected one of {}",
            KNOWN.join(", ")
        )
    );
    assert_eq!(
        config::load(&testbed, &all, &[], &["mad.c14-016-get"])
            .unwrap_err()
            .to_string(),
        "built-in plan all:16:6: case[0].id: unknown case `pfc.pause-single-lossless`; expected one of mad.c14-016-get"
    );
}
