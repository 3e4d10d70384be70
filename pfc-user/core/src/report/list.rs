//! `validator list`: what there is to check, before anything is run.

use serde::Serialize;

use super::layout::paragraph;
use crate::verdict::{Case, Check};

/// Layout version of the JSON form.
pub const SCHEMA: u32 = 1;

const LEGEND: &str = "
needs: preconditions; where one is not met, the check is inconclusive.
depends on: where that check did not pass, this one is skipped.
fault: what makes the check fail on the simulated DUT; `validator dut switch --help` has them all,
and so have `dut sma` and `dut requester`.
";

/// Lists the cases for people.
pub fn text(cases: &[&'static Case]) -> String {
    let mut out = String::new();
    for case in cases {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("{}\n", case.id));
        paragraph(&mut out, "  title        ", case.title);
        paragraph(&mut out, "  requirement  ", case.requirement);
        paragraph(&mut out, "  document     ", case.document);
        out.push_str("  steps\n");
        for step in case.steps {
            paragraph(&mut out, "    - ", &step.to_string());
        }
        if !case.assertions.is_empty() {
            out.push_str("  assertions of the document, with the checks that decide them\n");
        }
        for assertion in case.assertions {
            let checks = if assertion.checks.is_empty() {
                "not exercised by any step".to_owned()
            } else {
                assertion.checks.join(", ")
            };
            paragraph(&mut out, &format!("    - {}: ", assertion.id), &checks);
        }
        out.push_str("  checks (+: beyond the document)\n");
        for row in case.checks {
            check(&mut out, row);
        }
    }
    out.push_str(LEGEND);
    out
}

fn check(out: &mut String, check: &Check) {
    out.push_str(&format!(
        "    {}{}\n",
        check.id,
        if check.extra { " (+)" } else { "" }
    ));
    let lists = [check.steps, check.preconditions, check.depends_on];
    let [steps, preconditions, depends_on] = lists.map(|list| list.join(", "));
    let rows = [
        ("step", steps.as_str()),
        ("passes when", check.passes_when),
        ("tolerance", check.tolerance),
        ("needs", &preconditions),
        ("depends on", &depends_on),
        ("fault", check.fault),
    ];
    for (name, value) in rows.into_iter().filter(|(_, value)| !value.is_empty()) {
        paragraph(out, &format!("      {name:11}  "), value);
    }
}

/// Lists the cases for programs.
pub fn json(cases: &[&'static Case]) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct List<'a> {
        schema: u32,
        cases: &'a [&'static Case],
    }
    serde_json::to_string_pretty(&List {
        schema: SCHEMA,
        cases,
    })
}
