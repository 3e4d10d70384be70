//! The checks of C14_024_10_01.

use ib_mad::attr::{NodeInfo, NodeType, SwitchInfo};
use ib_mad::mad::AttributeId;
use ib_mad::smp::{DATA, Smp};

use super::stimulate::BLOCKS;
use crate::cases::finding::{Finding, Judgement, Undecided};
use crate::cases::mad::judge::contact::{answered, is_good};
use crate::cases::mad::judge::decoded::{Asking, View};
use crate::cases::mad::judge::resolution::{answers, unanswered, wrong};
use crate::cases::mad::judge::steps::{not_reached, sent, valued};
use crate::cases::steps::Found;
use crate::cases::value::{Value, count};
use crate::evidence::mad::Purpose;
use crate::verdict::{Bound, CheckResult, Verdict};

/// Status code for an attribute that the DUT does not support.
const CODE: u8 = 7;

/// The document is about a switch (its notes) without a linear forwarding table (step 7).
pub(super) fn applies(view: &View<'_>) -> Result<(), String> {
    let Some(node) = view.attribute::<NodeInfo>(Purpose::NodeInfo) else {
        return Ok(());
    };
    if node.node_type() != NodeType::Switch {
        return Err(format!(
            "the DUT is no switch: NodeInfo:NodeType is {:?}",
            node.node_type()
        ));
    }
    match switch(view).map(|switch| switch.linear_fdb_cap()) {
        None | Some(0) => Ok(()),
        Some(capacity) => Err(format!(
            "the DUT has a linear forwarding table: LinearFDBCap is {capacity}"
        )),
    }
}

pub(super) fn info(view: &View<'_>, purpose: Purpose) -> Judgement {
    let asking = view
        .asking(purpose)
        .ok_or(Undecided::not_reached("not reached"))?;
    let mut finding = Finding::new();
    if let Some(answer) = answered(view, &mut finding, &asking) {
        is_good(&mut finding, &asking, answer);
    }
    Ok(finding)
}

pub(super) fn random_fdb_cap(view: &View<'_>) -> Judgement {
    let read = switch(view).zip(view.asking(Purpose::SwitchInfo));
    let (switch, read) = read.ok_or(Undecided::not_reached("SwitchInfo was not read"))?;
    let mut finding = Finding::new();
    let (subject, found) = (read.last().subject(), switch.random_fdb_cap());
    let expected = ("more than " + Value::from(0)).is(Bound::Above);
    finding.expect_about([subject], "RandomFDBCap", expected, found, found > 0);
    Ok(finding)
}

pub(super) fn all_answered(view: &View<'_>, purpose: Purpose) -> Judgement {
    let askings = view.askings(purpose);
    let mut finding = Finding::new();
    let mut count = 0;
    for asking in &askings {
        count += u32::from(answered(view, &mut finding, asking).is_some());
    }
    if finding.assertions.is_empty() {
        enough(&mut finding, count);
    }
    Ok(finding)
}

/// Records how many blocks were answered; fewer than all allow no verdict on all.
fn enough(finding: &mut Finding, count: u32) {
    let what = "blocks that were answered";
    match count {
        BLOCKS => finding.equal(what, BLOCKS, count),
        _ => finding.undecided(what, BLOCKS, count),
    }
}

pub(super) fn attribute(view: &View<'_>, purpose: Purpose) -> Judgement {
    let expected = AttributeId::LINEAR_FORWARDING_TABLE;
    let words = expected.to_string();
    each(view, purpose, "AttributeID", words, |_, answer| {
        (answer.attribute() != expected).then(|| answer.attribute().to_string())
    })
}

pub(super) fn modifier(view: &View<'_>, purpose: Purpose) -> Judgement {
    each(
        view,
        purpose,
        "AttributeModifier",
        "as in the request",
        |asking, answer| {
            (answer.modifier() != asking.last().request.modifier()).then(|| answer.modifier())
        },
    )
}

pub(super) fn status(view: &View<'_>, purpose: Purpose) -> Judgement {
    each(
        view,
        purpose,
        "Status",
        format!("code {CODE}"),
        |_, answer| (answer.status().code() != CODE).then(|| answer.status().to_string()),
    )
}

pub(super) fn get_data(view: &View<'_>) -> Judgement {
    each(
        view,
        Purpose::GetBlock,
        "data",
        count(DATA as u64, "octets") + " 0",
        |_, answer| {
            let other = answer.data().iter().position(|octet| *octet != 0)?;
            let found = format!("{:#04x} in octet {other} of ", answer.data()[other]);
            Some(Value::from(found) + DATA)
        },
    )
}

/// Looks at the answer for each block; `wrong` is what is wrong with it.
fn each<W: Into<Value>>(
    view: &View<'_>,
    purpose: Purpose,
    what: &str,
    expected: impl Into<Value>,
    wrong: impl Fn(&Asking<'_>, &Smp) -> Option<W>,
) -> Judgement {
    let mut finding = Finding::new();
    let (mut looked_at, mut offences, mut first) = (0, Vec::new(), None);
    for asking in view.askings(purpose) {
        let Some(answer) = asking.answer() else {
            continue;
        };
        looked_at += 1;
        if let Some(wrong) = wrong(&asking, answer) {
            offences.push(asking.last().subject());
            first.get_or_insert_with(|| {
                wrong.into() + format!(" for block {}", asking.last().request.modifier())
            });
        }
    }
    let blocks = count(looked_at.into(), "blocks");
    match first {
        Some(first) => {
            let found = first + "; wrong for " + offences.len() + " of " + blocks;
            finding.expect_about(offences, what, expected, found, false);
        }
        None => finding.expect(what, expected, "so for " + blocks, true),
    }
    if looked_at < BLOCKS {
        enough(&mut finding, looked_at);
    }
    Ok(finding)
}

/// The outcome of a step of the document that its checks alone do not decide.
pub(super) fn step(step: &str, view: &View<'_>, checks: &[CheckResult]) -> Option<Found> {
    Some(match step {
        "1" => sent(view, Purpose::NodeInfo),
        "2" => valued(
            checks,
            "node-info",
            view.attribute::<NodeInfo>(Purpose::NodeInfo),
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
        "9" | "10" => sent(view, Purpose::SetBlock),
        "13" | "14" => sent(view, Purpose::GetBlock),
        _ => return None,
    })
}

/// The resolution of a check that passed.
pub(super) fn resolution(check: &str, view: &View<'_>) -> Option<Value> {
    use Purpose::{GetBlock, NodeInfo, SetBlock, SwitchInfo};
    match check {
        "node-info" => wrong(view, &[NodeInfo]),
        "switch-info" | "random-fdb-cap" => wrong(view, &[SwitchInfo]),
        "set-answered" => unanswered(view, SetBlock),
        "get-answered" => unanswered(view, GetBlock),
        "set-attribute" | "set-modifier" | "set-status" => wrong(view, &[SetBlock]),
        "get-attribute" | "get-modifier" | "get-status" => wrong(view, &[GetBlock]),
        "get-data" => {
            let octets = count(64 * answers(view, GetBlock), "octets");
            Some(count(1, "bit") + " of " + octets)
        }
        _ => None,
    }
}

fn switch(view: &View<'_>) -> Option<SwitchInfo> {
    view.attribute(Purpose::SwitchInfo)
}
