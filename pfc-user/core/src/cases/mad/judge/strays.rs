//! Packets that answered no request under way.

use std::time::Duration;

use ib_mad::mad::{LENGTH, MadError, Method};
use ib_mad::smp::Smp;

use super::Mad;
use super::decoded::{Asked, STOOD_STILL, Stray, View};
use crate::cases::finding::{Finding, Judgement, Undecided};
use crate::cases::judge::Row;
use crate::cases::mad::timing::{self, MOST_WAIT};
use crate::cases::remedy;
use crate::cases::value::{self, Value, count, time};
use crate::evidence::mad::{MOST_STRAYS, Purpose};
use crate::quantity::ms;
use crate::verdict::Subject;

/// The row of every table.
pub const SINGLE_ANSWER: Row<Mad> = Row {
    extra: true,
    tolerance: "listened at the end for as long as an answer may take; if that is above 10 s, for \
        the testbed's time-out; inconclusive where the tester or its simulated DUT stood still, or \
        more packets came than are kept, but for traps",
    ..Row::<Mad>::new(
        "single-answer",
        &[],
        "no request is answered twice, after its time, with another TID than its own, or by \
         anything but a whole GetResp of its class and of base version 1; no GetResp has a TID \
         that the tester never sent",
        "twice",
        single_answer,
    )
};

/// The tester's own node has answered, and nothing shows who sent another answer.
const OF_TESTER_PORT: &str = "answers with the TID of the request to the tester's own port";

fn single_answer(view: &View<'_>) -> Judgement {
    let last = view.of_dut().next_back();
    let last = last.ok_or(Undecided::not_reached("nothing was asked of the DUT"))?;
    let mut finding = Finding::new();
    for stray in &view.strays {
        finding.about([Subject::Packet(stray.at)], |finding| {
            offence(view, stray, finding)
        });
    }
    if !finding.assertions.is_empty() {
        return Ok(finding);
    }
    if !view.e.shows_unmatched {
        return Ok(Finding::not_applicable(format!(
            "{} drops answers that match no request, so none could be seen",
            view.e.transport
        )));
    }
    let least = Duration::from_nanos(view.e.plan.timeout);
    let enough = u128::from(last.sent) + timing::listen_time(view.answer_time(), least).as_nanos();
    if u128::from(view.e.listened_until) < enough {
        return Err("it was not listened for long enough after the last request".into());
    }
    if let Some(unseen) = unseen(view) {
        return Err(unseen.into_text().into());
    }
    let what = "answers that match no request under way";
    finding.expect(what, "none", "none", true);
    Ok(finding)
}

/// Reason why answers that match no request may be missing in the evidence. A flood of traps is
/// none.
pub fn unseen(view: &View<'_>) -> Option<Value> {
    left_out(view.e.strays_left_out, "packets that match no request")
}

/// Reason why traps may be missing in the evidence.
pub(super) fn unseen_traps(view: &View<'_>) -> Option<Value> {
    left_out(view.e.traps_left_out, "traps and requests of others")
}

fn left_out(left_out: u64, what: &str) -> Option<Value> {
    let found = count(left_out, "") + format!(" {what} came after the first ");
    (left_out > 0).then(|| found + MOST_STRAYS + ", and were not kept")
}

/// Records the offence of a packet that is certainly the DUT's answer to the tester.
fn offence(view: &View<'_>, stray: &Stray<'_>, finding: &mut Finding) {
    let Some(asked) = stray.of.map(|index| &view.asked[index]) else {
        return other_tid(view, stray, finding);
    };
    match asked.purpose {
        Purpose::TesterPort if asked.answer.is_some() => {
            let found = "one more at " + time(stray.at);
            return finding.undecided(OF_TESTER_PORT, "one", found);
        }
        Purpose::TesterPort => return,
        _ if is_refused(view, asked) => return,
        _ => {}
    }
    let what = format!("answer to {} at {}", asked.name(), ms(asked.sent));
    if let Some(found) = no_answer(asked, stray) {
        let class = asked.request.octets()[1];
        let form = format!(
            " of a {} of base version 1 and class {class:#04x}",
            Method::GET_RESP
        );
        let expected = count(LENGTH as u64, "octets") + form;
        return finding.expect(what, expected, found, false);
    }
    let after = "after " + time(stray.at.saturating_sub(asked.sent));
    if asked.answer.is_some() {
        return finding.expect(what, "one", "one more " + after, false);
    }
    let expected = value::within(asked.waited());
    // The DUT's own times were not known yet, or it may take longer than was waited.
    let too_early = asked.sent <= view.port_known_at() || view.answer_time() > MOST_WAIT;
    if too_early {
        finding.undecided(what, expected, after);
    } else if view.is_excused(asked, stray.at) {
        let found = after + ", " + STOOD_STILL;
        finding.undecided_until(remedy::STALLED, what, expected, found);
    } else {
        finding.expect(what, expected, after, false);
    }
}

/// Records a response with a TID of no request.
fn other_tid(view: &View<'_>, stray: &Stray<'_>, finding: &mut Finding) {
    let is_response = |smp: &&Smp| smp.method() == Method::GET_RESP && !stray.is_judged_elsewhere;
    let Some(smp) = stray.smp.as_ref().filter(is_response) else {
        return;
    };
    let (what, found) = (
        format!("{}({})", smp.method(), smp.attribute()),
        format!("TID {}", smp.tid()),
    );
    if stray.of_earlier {
        let found = Value::from(found) + " of an earlier case, at " + time(stray.at);
        return finding.undecided(what, "a TID that the tester sent in this case", found);
    }
    let (what, expected) = match answered_with_other_tid(view, stray) {
        Some(asked) => (asked.name(), format!("TID {}", asked.request.tid())),
        None => (
            format!("{what} at {}", ms(stray.at)),
            "a TID that the tester sent".into(),
        ),
    };
    finding.expect(what, expected, found, false);
}

/// Returns what a response with the TID of `asked` is if it cannot be its answer.
fn no_answer(asked: &Asked, stray: &Stray<'_>) -> Option<Value> {
    match Smp::parse(stray.octets) {
        Ok(smp) if asked.fits(&smp) => None,
        Ok(smp) => {
            let class = smp.octets()[1];
            Some(format!("{} of class {class:#04x}", smp.method()).into())
        }
        Err(MadError::Length(octets)) => Some(count(octets as u64, "octets")),
        Err(MadError::BaseVersion(version)) => Some(format!("base version {version}").into()),
        Err(MadError::Class(class)) => Some(format!("class {class:#04x}").into()),
    }
}

/// True for the request that must not be answered at all: another check judges it.
fn is_refused(view: &View<'_>, asked: &Asked) -> bool {
    asked.purpose == Purpose::OtherKey && view.protect_bits() >= 2
}

/// Returns the request that a response with an unknown TID answers: the response came while that
/// request was waited for, is about the same, and nothing else answered the request. Other
/// responses may be meant for other nodes.
fn answered_with_other_tid<'v>(view: &'v View<'_>, stray: &Stray<'_>) -> Option<&'v Asked> {
    let smp = stray
        .smp
        .as_ref()
        .filter(|smp| smp.method().is_response() && !stray.of_earlier)?;
    let about = |smp: &Smp| (smp.attribute(), smp.modifier(), smp.is_directed());
    view.of_dut().find(|asked| {
        (asked.sent..=asked.deadline).contains(&stray.at)
            && asked.answer.is_none()
            && about(&asked.request) == about(smp)
            && !is_refused(view, asked)
    })
}
