//! The documented keys of testbeds and plans are those that the readers take, with the defaults
//! that they have.

use std::collections::BTreeSet;
use std::fs;

use validator::config::{self, Config, ConfigError, PLAN, PlanChoice, TESTBED};
use validator_core::keys::Table;

const SIM: &str = "\
    name = \"t\"\n\
    [dut]\nkind = \"sim\"\n\
    [ports]\nline_rate = \"1G\"\n\
    [mad]\ntransport = \"sim\"\n\
    [rc]\ndut = \"sim\"\n";
const EXTERNAL: &str = "\
    name = \"t\"\n\
    [dut]\nkind = \"external\"\n\
    [ports]\ntx = { interface = \"a\" }\nrx = { interface = \"b\" }\n\
    [qos]\ndscp_map = \"sonic\"\nlossless = [3, 4]\n\
    [hooks]\ncounters = \"true\"\n\
    [mad]\ntransport = \"umad\"\ndevice = \"mlx5_0\"\n\
    [rc]\ndut = \"agent\"\nagent = \"192.0.2.2:1\"\nport = { interface = \"c\" }\naddress = \
    \"192.0.2.1\"\n";
/// Cases that use every key: a value that no case uses changes nothing.
const CASES: &str = "\
    name = \"p\"\n\
    [[case]]\nid = \"pfc.pause-single-lossless\"\nrepetitions = [{ lossless = [3] }]\n\
    [[case]]\nid = \"pfc.global-pause\"\nrepetitions = [{ lossless = [3] }]\n\
    [[case]]\nid = \"mad.c14-016-get\"\n\
    [[case]]\nid = \"rc.c09-142-01\"\nqueue_pairs = [{ QUEUE_PAIR }]\n";

fn load(testbed: &str, plan: &str, sets: &[String]) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("t.toml"), testbed).unwrap();
    fs::write(path("p.toml"), plan).unwrap();
    let choice = PlanChoice::Plan(path("p.toml").display().to_string());
    let mut config = config::load(&path("t.toml"), &choice, sets)?;
    // The record of the file and of the settings differs in any case.
    config.testbed.toml.clear();
    Ok(config)
}

fn plan(queue_pair: &str) -> String {
    CASES.replace("QUEUE_PAIR", queue_pair)
}

/// The keys that a reader would have taken in place of an unknown one.
fn taken(error: &ConfigError) -> BTreeSet<String> {
    let message = error.to_string();
    let (_, expected) = message
        .split_once("unknown field `zzz`, expected ")
        .unwrap_or_else(|| panic!("another error: {message}"));
    let words = expected.split('`').skip(1).step_by(2);
    words.map(str::to_owned).collect()
}

/// The last parts of a table's documented keys.
fn documented(table: &Table) -> BTreeSet<String> {
    let last = |path: &str| path.rsplit('.').next().unwrap().to_owned();
    table.keys.iter().map(|key| last(key.path)).collect()
}

fn table<'t>(tables: &'t [Table], name: &str) -> &'t Table {
    tables.iter().find(|table| table.name == name).unwrap()
}

#[test]
fn every_key_that_is_read_is_documented_and_no_other() {
    let with_tables = |tables: &[Table]| {
        let names = tables
            .iter()
            .map(|table| table.name.trim_matches(['[', ']']));
        let names = names.filter(|name| !name.is_empty() && !name.contains('.'));
        let mut keys = documented(table(tables, ""));
        keys.extend(names.map(str::to_owned));
        keys
    };
    let in_testbed = |path: &str| {
        let set = format!("testbed.{path}=1");
        taken(&load(EXTERNAL, &plan(""), &[set]).unwrap_err())
    };
    let in_plan = |text: &str| taken(&load(EXTERNAL, text, &[]).unwrap_err());

    assert_eq!(in_testbed("zzz"), with_tables(TESTBED));
    for name in [
        "dut",
        "ports",
        "qos",
        "addresses",
        "limits",
        "facts",
        "hooks",
        "mad",
        "rc",
    ] {
        let found = in_testbed(&format!("{name}.zzz"));
        assert_eq!(found, documented(table(TESTBED, name)), "{name}");
    }
    for port in ["ports.tx", "ports.rx", "rc.port"] {
        let found = in_testbed(&format!("{port}.zzz"));
        assert_eq!(
            found,
            documented(table(TESTBED, "ports.tx, ports.rx, rc.port"))
        );
    }
    let further = in_testbed("ports.tx2.zzz");
    assert_eq!(further, documented(table(TESTBED, "ports.NAME")));
    let cases = plan("");
    assert_eq!(in_plan(&format!("zzz = 1\n{cases}")), with_tables(PLAN));
    for name in ["durations", "traffic", "storm"] {
        let found = in_plan(&format!("{cases}[{name}]\nzzz = 1\n"));
        assert_eq!(found, documented(table(PLAN, name)), "{name}");
        if name != "traffic" {
            let case = cases.replacen(
                "repetitions",
                &format!("{name} = {{ zzz = 1 }}\nrepetitions"),
                1,
            );
            assert_eq!(
                in_plan(&case),
                documented(table(PLAN, name)),
                "a case's {name}"
            );
        }
    }
    let case = in_plan(&format!("{cases}zzz = 1\n"));
    assert_eq!(case, documented(table(PLAN, "[case]")));
    let repetition = in_plan(&cases.replace("lossless = [3]", "zzz = 1"));
    assert_eq!(repetition, documented(table(PLAN, "case.repetitions")));
    let queue_pair = in_plan(&plan("zzz = 1"));
    assert_eq!(queue_pair, documented(table(PLAN, "case.queue_pairs")));
}

#[test]
fn a_documented_default_is_the_one_that_is_taken() {
    for (file, tables) in [("testbed", TESTBED), ("plan", PLAN)] {
        let keys = tables.iter().flat_map(|table| table.keys);
        for key in keys.filter(|key| key.has_plain_default() && key.path.contains('.')) {
            let set = format!("{file}.{}={}", key.path, key.default);
            let alike = |testbed: &&str| {
                let with = load(testbed, &plan(""), std::slice::from_ref(&set));
                with.is_err_and(|error| error.to_string().contains(": it changes nothing: "))
            };
            assert!([SIM, EXTERNAL].iter().any(alike), "{set} changes something");
        }
    }
    for key in table(PLAN, "case.queue_pairs").keys {
        let pair = format!("{} = {}", key.path, key.default);
        let with = load(SIM, &plan(&pair), &[]).unwrap();
        let without = load(SIM, &plan(""), &[]).unwrap();
        assert_eq!(with.plan.cases, without.plan.cases, "{pair}");
    }
}
