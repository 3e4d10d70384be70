//! Each numbered step of the document, with what was found.

use ib_mad::attr::{NodeInfo, SwitchInfo};

use super::forwarding_table::decoded;
use super::m_key::bits;
use super::view::View;
use crate::case::{Case, CheckResult, StepResult, Verdict};
use crate::cases::steps::{Found, checked, numbered};
use crate::evidence::mad::Purpose;
use crate::plan::mad::MadStimulus;

/// The steps of `case` in the subcase of the evidence.
pub(super) fn of(case: &Case, view: &View<'_>, checks: &[CheckResult]) -> Vec<StepResult> {
    numbered(case.steps)
        .filter_map(|(number, what)| {
            let step = match number.split_once(": ") {
                None => number,
                Some((subcases, step)) => subcases
                    .split(", ")
                    .any(|subcase| subcase == bits(view).to_string())
                    .then_some(step)?,
            };
            let (found, verdict) = match view.e.plan.stimulus {
                MadStimulus::LinearForwardingTable => forwarding_table(step, view, checks),
                MadStimulus::MKeyGet(bits) => m_key_get(step, bits, view, checks),
            };
            Some(StepResult {
                repetition: view.e.plan.name.clone(),
                step: step.into(),
                what: what.into(),
                found,
                verdict,
            })
        })
        .collect()
}

fn forwarding_table(step: &str, view: &View<'_>, checks: &[CheckResult]) -> Found {
    match step {
        "init 1" => checked(checks, &["port-state"]),
        "1" => sent(view, Purpose::NodeInfo),
        "2" => valued(
            checks,
            "node-info",
            decoded::<NodeInfo>(view, Purpose::NodeInfo),
            |node| {
                format!(
                    "NumPorts = {}, NodeType {:?}",
                    node.num_ports(),
                    node.node_type()
                )
            },
        ),
        "3" => sent(view, Purpose::SwitchInfo),
        "4" => valued(checks, "switch-info", switch(view), |_| "SwitchInfo".into()),
        "5" => valued(checks, "switch-info", switch(view), |switch| {
            format!("LinearFDBCap = {}", switch.linear_fdb_cap())
        }),
        "6" => valued(checks, "switch-info", switch(view), |switch| {
            format!("RandomFDBCap = {}", switch.random_fdb_cap())
        }),
        "7" => match switch(view) {
            Some(switch) if switch.linear_fdb_cap() == 0 => {
                ("LinearFDBCap = 0: the test applies".into(), Verdict::Pass)
            }
            Some(switch) => (
                format!("LinearFDBCap = {}: the test is NA", switch.linear_fdb_cap()),
                Verdict::NotApplicable,
            ),
            None => not_reached(),
        },
        "8" => checked(checks, &["random-fdb-cap"]),
        "9" | "10" => sent(view, Purpose::SetBlock),
        "11" => checked(checks, &["set-answered"]),
        "12" => checked(checks, &["set-attribute", "set-modifier", "set-status"]),
        "13" | "14" => sent(view, Purpose::GetBlock),
        "15" => checked(checks, &["get-answered"]),
        "16" => checked(
            checks,
            &["get-attribute", "get-modifier", "get-status", "get-data"],
        ),
        _ => not_reached(),
    }
}

fn m_key_get(step: &str, bits: u8, view: &View<'_>, checks: &[CheckResult]) -> Found {
    match (step, bits) {
        ("init 1", _) => checked(checks, &["port-state"]),
        ("init 2" | "init 3", _) => checked(checks, &["key-set"]),
        ("1.1", _) => sent(view, Purpose::OwnKey),
        ("1.2", _) => checked(checks, &["own-key-answered"]),
        ("1.3", _) => checked(checks, &["own-key-value"]),
        ("1.4", _) => sent(view, Purpose::OtherKey),
        ("2", 0 | 1) => checked(checks, &["other-key-answered"]),
        ("3", 0 | 1) => checked(checks, &["other-key-value", "no-violation"]),
        ("4", 0 | 1) | ("6", _) => checked(checks, &["reset"]),
        ("2", _) => checked(checks, &["no-answer"]),
        ("3", _) => sent(view, Purpose::DutKey),
        ("4", _) => checked(checks, &["dut-key-answered"]),
        ("5", _) => checked(checks, &["one-violation"]),
        ("end", _) => checked(checks, &["restored"]),
        _ => not_reached(),
    }
}

fn switch(view: &View<'_>) -> Option<SwitchInfo> {
    decoded(view, Purpose::SwitchInfo)
}

fn not_reached() -> Found {
    ("not reached".into(), Verdict::Skipped)
}

/// A step that only sends.
fn sent(view: &View<'_>, purpose: Purpose) -> Found {
    let askings = view.askings(purpose);
    let packets: usize = askings.iter().map(|asking| asking.all.len()).sum();
    match askings.len() {
        0 => not_reached(),
        count if count == packets => (format!("sent {count}"), Verdict::Pass),
        count => (
            format!("sent {count}, and {} again", packets - count),
            Verdict::Pass,
        ),
    }
}

/// A step whose value is told wherever it was read, even if the document does not apply to it.
fn valued<A>(
    checks: &[CheckResult],
    check: &str,
    value: Option<A>,
    tell: impl Fn(A) -> String,
) -> Found {
    match value {
        Some(value) => (tell(value), Verdict::Pass),
        None => checked(checks, &[check]),
    }
}
