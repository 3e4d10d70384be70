//! Every mistake in a testbed, a plan or a `--set` argument is answered with where it is, what was
//! expected and what was found.
//!
//! `snapshots/config_errors` has the mistakes, each with its answer below it. What an entry leaves
//! out is right: the testbed `sim`, and the plan `single`. `testbed external` adds its lines to
//! that testbed, and `testbed` alone has no others.

use std::fs;
use std::path::Path;

use validator::config::{self, PlanChoice};
use validator_core::cases;

use crate::snapshot;

const SIM: &str = "name = \"t\"\n[dut]\nkind = \"sim\"\n[ports]\nline_rate = \"1G\"\n";
const EXTERNAL: &str = "name = \"t\"\ndut.kind = \"external\"\nqos.dscp_map = \"sonic\"\n\
                        qos.lossless = [3, 4]\nports.tx.interface = \"a\"\n\
                        ports.rx.interface = \"b\"\n";
const SINGLE: &str = "name = \"p\"\n[[case]]\nid = \"pfc.pause-single-lossless\"\n\
                      repetitions = [{ lossless = [3] }]\n";
const INDENT: &str = "    ";

/// The error of loading what an entry says, with the directory taken out of file names.
fn error(entry: &str) -> String {
    let (mut testbed, mut plan, mut sets) = (SIM.to_owned(), SINGLE.to_owned(), Vec::new());
    for (heading, lines) in sections(entry) {
        match heading.split_once(' ').unwrap_or((heading, "")) {
            ("testbed", base) => testbed = self::base(base).to_owned() + &lines,
            ("plan", base) => plan = self::base(base).to_owned() + &lines,
            ("set", set) => sets.push(set.to_owned()),
            _ => panic!("no heading of an entry: {heading}"),
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("t.toml"), &testbed).unwrap();
    fs::write(path("p.toml"), &plan).unwrap();
    let choice = PlanChoice::Plan(path("p.toml").display().to_string());
    config::load(&path("t.toml"), &choice, &sets)
        .expect_err(&format!("accepted:\n{entry}"))
        .to_string()
        .replace(&format!("{}/", dir.path().display()), "")
}

/// Headings with the indented lines below each.
fn sections(entry: &str) -> Vec<(&str, String)> {
    let mut sections: Vec<(&str, String)> = Vec::new();
    for line in entry.lines() {
        match line.strip_prefix(INDENT) {
            None => sections.push((line, String::new())),
            Some(line) => {
                let (_, lines) = sections.last_mut().expect("a heading above");
                lines.push_str(line);
                lines.push('\n');
            }
        }
    }
    sections
}

fn base(name: &str) -> &'static str {
    match name {
        "sim" => SIM,
        "external" => EXTERNAL,
        "single" => SINGLE,
        "" => "",
        _ => panic!("no testbed or plan is called {name}"),
    }
}

/// Holds the answers to all entries of a table against those in its file.
fn check(table: &str) {
    let name = format!("config_errors/{table}.txt");
    let text = fs::read_to_string(snapshot::path(&name)).unwrap();
    let (title, entries) = text.split_once("\n\n").unwrap();
    let mut found = format!("{title}\n");
    for entry in entries.split("\n\n") {
        let (entry, _) = entry
            .split_once("error\n")
            .expect("an entry ends with `error`");
        let error = error(entry).replace('\n', &format!("\n{INDENT}"));
        found += &format!("\n{entry}error\n{INDENT}{error}\n");
    }
    snapshot::check(&name, &found);
}

#[test]
fn syntax_keys_and_types() {
    check("syntax");
}

#[test]
fn testbeds_that_make_no_sense() {
    check("testbeds");
}

#[test]
fn mistakes_that_are_told_together() {
    check("several");
}

#[test]
fn plans_that_make_no_sense() {
    check("plans");
}

#[test]
fn testbeds_and_plans_of_the_mad_cases() {
    check("mad");
}

#[test]
fn testbeds_and_plans_of_the_rc_case() {
    check("rc");
}

#[test]
fn arguments() {
    check("arguments");
}

#[test]
fn files_and_names_that_are_not_there() {
    let load =
        |testbed: &Path, choice| config::load(testbed, &choice, &[]).unwrap_err().to_string();
    let dir = tempfile::tempdir().unwrap();
    let testbed = dir.path().join("t.toml");
    assert_eq!(
        load(&testbed, PlanChoice::Plan("all".to_owned())),
        format!(
            "{}: cannot be read: No such file or directory (os error 2)",
            testbed.display()
        )
    );
    fs::write(&testbed, SIM).unwrap();
    let known: Vec<_> = cases::all().iter().map(|case| case.id).collect();
    assert_eq!(
        load(&testbed, PlanChoice::Plan("smok".to_owned())),
        "--plan smok: neither a file nor a built-in plan (all, mad, mad-full, mad-siblings, pfc, pfc-further, \
         rc, smoke)"
    );
    assert_eq!(
        load(
            &testbed,
            PlanChoice::Cases {
                plan: "all".to_owned(),
                ids: vec!["pfc.pause-lossy".to_owned(), "pfc.lossy".to_owned()]
            }
        ),
        format!(
            "--case pfc.lossy: unknown case; expected one of {}",
            known.join(", ")
        )
    );
}
