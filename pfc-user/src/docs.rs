//! Pages of the book that follow from the tables in code. `cargo xtask docs` writes them.
//!
//! Cases come from the table that `validator list` prints and faults from the help of the simulated
//! devices, so that the pages say what the program says.

use anyhow::{Context, Result, bail};
use clap::CommandFactory;
use validator_core::cases;
use validator_core::keys::{Key, Table};
use validator_core::verdict::{Case, Check};

use crate::cli::Cli;
use crate::config::{PLAN, TESTBED};
use crate::output::wrapped;

/// First line of each generated page.
const NOTICE: &str = "<!-- Written by `cargo xtask docs`; edit the tables in code instead. -->\n\n";
const COLUMNS: usize = 100;

/// Each generated page: its file name, and its text in Markdown.
pub fn pages() -> Result<Vec<(&'static str, String)>> {
    Ok(vec![
        ("checks.md", with_short_lines(&checks())),
        ("keys.md", with_short_lines(&keys())),
        ("faults.md", with_short_lines(&faults()?)),
    ])
}

/// Wraps prose and list items at [`COLUMNS`]. Comments, headings and rows of tables stay whole.
fn with_short_lines(page: &str) -> String {
    let mut text = String::new();
    for line in page.lines() {
        if line.starts_with(['<', '#', '|']) {
            text += line;
        } else {
            let indent = if line.starts_with("- ") { 2 } else { 0 };
            text += &wrapped(line, COLUMNS, indent).join("\n");
        }
        text.push('\n');
    }
    text
}

/// Every case with its checks.
fn checks() -> String {
    let mut page = NOTICE.to_owned()
        + "# Every check\n\n\
           `validator list` prints the same. A check with (+) goes beyond its document. *Needs* \
           names the [preconditions](../verdicts.md), *after* the checks without whose pass this \
           one is `skipped`, and *fault* a [fault](faults.md) of the simulated DUT that makes it \
           fail.\n";
    for case in cases::all() {
        page += &format!("\n## {}\n\n", case.id);
        page += &format!("**{}** ({})\n\n", case.title, case.document);
        page += &format!("{}\n\nSteps:\n\n", case.requirement);
        page.extend(case.steps.iter().map(|step| format!("- {step}\n")));
        page += "\n| check | step | passes when | tolerance | needs | after | fault |\n\
                 |---|---|---|---|---|---|---|\n";
        page.extend(case.checks.iter().map(check_row));
        page += &assertions(case);
    }
    page
}

fn check_row(check: &Check) -> String {
    let beyond = if check.extra { " (+)" } else { "" };
    let fault = codes(
        Some(check.fault)
            .filter(|fault| !fault.is_empty())
            .as_slice(),
    );
    format!(
        "| `{}`{beyond} | {} | {} | {} | {} | {} | {fault} |\n",
        check.id,
        cell(&check.steps.join(", ")),
        cell(check.passes_when),
        cell(check.tolerance),
        codes(check.preconditions),
        codes(check.depends_on),
    )
}

/// The assertions of the case's document, where it names any.
fn assertions(case: &Case) -> String {
    if case.assertions.is_empty() {
        return String::new();
    }
    let mut table =
        "\n| assertion of the document | checks that decide it |\n|---|---|\n".to_owned();
    for assertion in case.assertions {
        let checks = match codes(assertion.checks) {
            checks if checks.is_empty() => "no step of the document exercises it".to_owned(),
            checks => checks,
        };
        table += &format!("| `{}` | {checks} |\n", assertion.id);
    }
    table
}

fn keys() -> String {
    let mut page = NOTICE.to_owned()
        + "# Every key of testbeds and plans\n\n\
           A file is TOML. An unknown key is an error, with its place. `--set testbed.KEY=VALUE` \
           and `--set plan.KEY=VALUE` change one value for one run.\n\n\
           | value | written as |\n|---|---|\n\
           | time | text with a unit: `ns`, `us`, `ms`, `s` or `min`, such as `\"300ms\"` |\n\
           | rate | text with a unit of bit/s: `K`, `M`, `G` or `T`, such as `\"25G\"` |\n\
           | octets | a number, or text with a unit: `B`, `KiB`, `MiB` or `GiB` |\n\
           | share | a number above 0 and at most 1 |\n\
           | priority | 0 to 7 |\n\
           | key | text in hexadecimal, such as `\"0x0123456789abcdef\"` |\n\
           | port | a table, such as `{ interface = \"eth1\" }` |\n";
    for (title, tables) in [("Testbed", TESTBED), ("Plan", PLAN)] {
        page += &format!("\n## {title}\n");
        for table in tables {
            page += &key_table(table);
        }
    }
    page
}

fn key_table(table: &Table) -> String {
    let mut text = match table.name {
        "" => String::new(),
        name => format!("\n### [{name}]\n"),
    };
    text += &format!(
        "\n{}\n\n| key | value | default | meaning |\n|---|---|---|---|\n",
        table.about
    );
    for key in table.keys {
        let Key {
            path,
            value,
            default,
            meaning,
        } = key;
        let default = if key.has_plain_default() {
            format!("`{default}`")
        } else {
            (*default).to_owned()
        };
        text += &format!("| `{path}` | {value} | {default} | {meaning} |\n");
    }
    text
}

/// Every fault of the three simulated devices, as their help has it.
fn faults() -> Result<String> {
    let mut page = NOTICE.to_owned()
        + "# Every fault\n\n\
           Name faults in the testbed, as `\"NAME\"` or `\"NAME=VALUE\"`. A value may be left \
           out; its default stands in parentheses. See [The simulated \
           devices](../simulated-devices.md).\n";
    for (device, title, key) in [
        ("switch", "The switch", "dut.faults"),
        ("sma", "The subnet management agent", "mad.faults"),
        ("requester", "The requester", "rc.faults"),
    ] {
        page += &format!(
            "\n## {title}\n\nThe testbed's key `{key}`.\n\n| fault | the device | makes fail \
             |\n|---|---|---|\n"
        );
        for row in catalogue(device)? {
            let [name, does, fails] = row.map(|word| cell(&word));
            page += &format!("| `{name}` | {does} | {fails} |\n");
        }
    }
    Ok(page)
}

/// Name, effect and failing check of each fault in the help of `validator dut DEVICE`.
fn catalogue(device: &str) -> Result<Vec<[String; 3]>> {
    let command = Cli::command();
    let help = ["dut", device]
        .iter()
        .try_fold(&command, |command, name| command.find_subcommand(name))
        .and_then(|command| command.get_after_help())
        .with_context(|| format!("no help of `validator dut {device}` has its faults"))?
        .to_string();
    let rows: Vec<_> = help
        .lines()
        .skip(1)
        .filter(|line| !line.trim().is_empty())
        .collect();
    if rows.is_empty() {
        bail!("the help of `validator dut {device}` lists no fault");
    }
    rows.into_iter()
        .map(|line| {
            let (name, rest) = line
                .trim()
                .split_once("  ")
                .with_context(|| format!("expected `name  effect`, found {line:?}"))?;
            let rest = rest.trim();
            let (does, fails) = rest
                .strip_suffix(')')
                .and_then(|rest| rest.rsplit_once(" ("))
                .unwrap_or((rest, ""));
            Ok([name, does, fails].map(str::to_owned))
        })
        .collect()
}

/// The words as code, separated by commas.
fn codes(words: &[&str]) -> String {
    let words = words.iter().map(|word| format!("`{}`", cell(word)));
    words.collect::<Vec<_>>().join(", ")
}

/// Text that ends no cell of a table, and opens no tag or code.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_the_help_are_read_whole() {
        let switch = catalogue("switch").unwrap();
        let row = |name: &str| switch.iter().find(|row| row[0] == name).unwrap().clone();
        assert_eq!(
            row("ignores-pfc")[1..],
            ["sends on whatever PFC says", "paused"]
        );
        let leaks = "sends one frame for every N (100) that arrive for a paused priority";
        assert_eq!(row("leaks[=N]")[1..], [leaks, "paused"]);
        let requester = catalogue("requester").unwrap();
        let last = [
            "apm",
            "says that it supports Automatic Path Migration",
            "none: not applicable",
        ];
        assert!(
            requester.contains(&last.map(str::to_owned)),
            "{requester:?}"
        );
        assert!(catalogue("nothing").is_err());
    }

    #[test]
    fn prose_is_wrapped_and_tables_are_not() {
        let word = "x".repeat(49);
        let row = format!("| {word} {word} {word} |");
        let page =
            format!("# {word} {word} {word}\n\n{word} {word}  {word}\n- {word} {word}\n{row}\n");
        let expected =
            format!("# {word} {word} {word}\n\n{word} {word}\n{word}\n- {word}\n  {word}\n{row}\n");
        assert_eq!(with_short_lines(&page), expected);
    }

    #[test]
    fn a_cell_stays_one() {
        assert_eq!(cell("a | b <c>"), "a \\| b &lt;c>");
    }
}
