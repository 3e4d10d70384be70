//! Every mistake in a testbed's table `[mad]`, and in a plan of MAD cases, is answered before
//! anything is sent.
//!
//! lane: computing

use std::fs;

use validator::config::{self, PlanChoice};

const PLAN: &str = "name = \"p\"\n[[case]]\nid = \"mad.c14-016-get\"\n";

/// The error of loading a testbed with these lines in its table `[mad]`.
fn error(lines: &str, plan: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("t.toml"), format!("name = \"t\"\n[mad]\n{lines}\n")).unwrap();
    fs::write(path("p.toml"), plan).unwrap();
    let choice = PlanChoice::Plan(path("p.toml").display().to_string());
    let error = config::load(&path("t.toml"), &choice, &[], &["mad.c14-016-get"])
        .expect_err(&format!("accepted: {lines}"));
    error
        .to_string()
        .replace(&format!("{}/", dir.path().display()), "")
}

#[test]
fn mistakes_in_the_table_are_named() {
    let hops = "1,".repeat(63);
    let too_long = format!("transport = \"sim\"\npath = \"0,{hops}1\"");
    for (lines, expected) in [
        (
            "path = \"0,1\"",
            "t.toml:2:1: mad: missing field `transport`",
        ),
        (
            "transport = \"verbs\"",
            "t.toml:3:13: mad.transport: unknown variant `verbs`, expected one of `sim`, `ibsim`, `umad`",
        ),
        (
            "transport = \"ibsim\"",
            "t.toml:2:1: mad.socket: missing: say the server's IBSIM_SOCKNAME, such as socket = \"sim\"",
        ),
        (
            "transport = \"ibsim\"\nsocket = \"s\"",
            "t.toml:2:1: mad.host: missing: say which node of the fabric the tester is, such as host = \"Hca1\"",
        ),
        (
            "transport = \"umad\"",
            "t.toml:2:1: mad.device: missing: say the adapter's name in /sys/class/infiniband, such as device = \"mlx5_0\"",
        ),
        (
            "transport = \"umad\"\ndevice = \"m\"\nport = 0",
            "t.toml:5:8: mad.port: expected a port from 1, found 0",
        ),
        (
            "transport = \"umad\"\ndevice = \"m\"\nfaults = []",
            "t.toml:5:10: mad.faults: only transport = \"sim\" takes it",
        ),
        (
            "transport = \"sim\"\nhost = \"Hca1\"",
            "t.toml:4:8: mad.host: only transport = \"ibsim\" takes it",
        ),
        (
            "transport = \"sim\"\npath = \"0,1\"\nlid = 3",
            "t.toml:5:7: mad.lid: expected either path or lid, found both",
        ),
        (
            "transport = \"sim\"\nlid = 0",
            "t.toml:4:7: mad.lid: expected a unicast LID, 1 to 49151, found 0",
        ),
        (
            "transport = \"sim\"\nlid = 49152",
            "t.toml:4:7: mad.lid: expected a unicast LID, 1 to 49151, found 49152",
        ),
        (
            &too_long,
            "t.toml:4:8: mad.path: expected at most 63 hops, found 64",
        ),
        (
            "transport = \"sim\"\npath = \"0\"",
            "t.toml:4:8: mad.path: the path 0 ends at the tester's own port; expected the way to the DUT, such as 0,1",
        ),
        (
            "transport = \"sim\"\npath = \"1,1\"",
            "t.toml:4:8: mad.path: expected `0` and after it the egress port (1 to 254) of each hop, such as 0,1,3; found \"1,1\"",
        ),
        (
            "transport = \"sim\"\nm_key_dut = \"0x0\"",
            "t.toml:4:13: mad.m_key_dut: expected a key other than 0: with key 0 nothing is protected",
        ),
        (
            "transport = \"sim\"\nm_key_other = \"0x0\"",
            "t.toml:4:15: mad.m_key_other: expected a key other than 0: with key 0 nothing is protected",
        ),
        (
            "transport = \"sim\"\nm_key_dut = \"0x12\"\nm_key_other = \"0x12\"",
            "t.toml:5:15: mad.m_key_other: expected M_KEY_DUT and M_KEY_OTHER to differ, both are 0x0000000000000012",
        ),
        (
            "transport = \"sim\"\nm_key_current = \"12\"",
            "t.toml:4:17: mad.m_key_current: invalid value: string \"12\", expected a key of 64 bits in hexadecimal, such as \"0x0123456789abcdef\"",
        ),
        (
            "transport = \"sim\"\nm_key_dut = \"0x12\"\nm_key_current = \"0x12\"",
            "t.toml:5:17: mad.m_key_current: expected another key than M_KEY_DUT, both are 0x0000000000000012",
        ),
        (
            "transport = \"umad\"\ndevice = \"m\"\nport = 2\npath = \"0,1\"",
            "t.toml:6:8: mad.path: the first hop leaves by the adapter's port, 2; expected 0,2 and what follows, found 0,1",
        ),
        (
            "transport = \"sim\"\ntimeout = \"11s\"",
            "t.toml:4:11: mad.timeout: expected at most 10s, found 11s",
        ),
    ] {
        assert_eq!(error(lines, PLAN), expected, "{lines}");
    }
    let negative = error("transport = \"sim\"\nm_key_dut = -1", PLAN);
    assert!(
        negative.starts_with(
            "t.toml:4:13: mad.m_key_dut: invalid value: integer `-1`, expected a key of 64 bits"
        ),
        "{negative}"
    );
    let unknown = error("transport = \"sim\"\nfaults = [\"lies\"]", PLAN);
    assert!(
        unknown.starts_with("t.toml:4:11: mad.faults[0]: no fault is called \"lies\""),
        "{unknown}"
    );
}

#[test]
fn a_mad_case_takes_no_parameters_of_pfc() {
    for (line, key) in [
        ("repetitions = []", "repetitions"),
        ("durations.lead = \"1s\"", "durations"),
        ("storm.quanta = 3", "storm"),
    ] {
        let found = error("transport = \"sim\"", &format!("{PLAN}{line}\n"));
        assert!(
            found.starts_with("p.toml:4:")
                && found.ends_with(&format!("case[0].{key}: `mad.c14-016-get` takes none")),
            "{found}"
        );
    }
}

#[test]
fn a_testbed_is_for_something() {
    let dir = tempfile::tempdir().unwrap();
    let load = |text: &str| {
        let path = dir.path().join("t.toml");
        fs::write(&path, text).unwrap();
        config::load(
            &path,
            &PlanChoice::Plan("mad".into()),
            &[],
            &["mad.c14-024-10-01", "mad.c14-016-get", "rc.c09-142-01"],
        )
        .unwrap_err()
        .to_string()
    };
    let nothing = load("name = \"t\"\n");
    assert!(
        nothing.ends_with(
            "dut: missing: expected [dut] for the PFC cases, [mad] for the MAD cases, [rc] for the RC cases, or several of them"
        ),
        "{nothing}"
    );
    let half = load("name = \"t\"\n[ports]\nline_rate = \"1G\"\n[mad]\ntransport = \"sim\"\n");
    assert!(
        half.ends_with(
            "ports: it goes with [dut], which is missing: say what the DUT of the PFC cases is"
        ),
        "{half}"
    );
}
