//! C13_013: PortInfo:RespTimeValue, and the time of an answer, within the limits of the document.

use std::time::Duration;

use super::judge::Mad;
use super::judge::contact::{PORT_STATE, answered, is_good};
use super::judge::decoded::{Asked, Asking, STOOD_STILL, View};
use super::judge::header::HEADER;
use super::judge::resolution::wrong;
use super::judge::steps::{sent, valued};
use super::judge::strays::SINGLE_ANSWER;
use super::{MadCase, assertion, row};
use crate::cases::finding::{Finding, Judgement, Undecided};
use crate::cases::judge::{Row, Table, words};
use crate::cases::remedy;
use crate::cases::value::{self, count, time};
use crate::evidence::mad::Purpose;
use crate::plan::Nanos;
use crate::plan::mad::MadStimulus;
use crate::verdict::{Bound, Case, DocumentAssertion, Step};

/// The case.
pub(super) const CASE: MadCase = MadCase {
    case: Case {
        id: "mad.c13-013",
        title: "Response time of SubnGet(PortInfo)",
        requirement: "PortInfo:RespTimeValue is at most 20, and the DUT answers within the 4.3 s that \
            20 stands for.",
        document: super::DOCUMENT,
        steps: STEPS,
        assertions: ASSERTIONS,
        checks: &words(&ROWS),
    },
    plan: |port| vec![port.repetition("port-info", MadStimulus::PortInfo)],
    // The Get that finds out the DUT's times is the one of the document.
    stimulate: |session| session.contact().map(drop),
    table: Table {
        rows: &ROWS,
        applies: None,
    },
    step: |step, view, checks| match step {
        "1" => Some(sent(view, Purpose::DutPort)),
        "3" => Some(valued(checks, "resp-time-value", view.port(), |port| {
            format!("RespTimeValue = {}", port.response_time_value())
        })),
        _ => None,
    },
    resolution: |check, view| match check {
        "port-state" => None,
        _ => wrong(view, &[Purpose::DutPort]),
    },
};

/// First steps of the cases on the time of an answer, in our own words and numbers.
pub(super) const ASK: [Step; 3] = [
    Step::new(
        "init 1",
        "PortInfo:PortState is Initialized, Armed or Active for both MADTester and DUT",
    ),
    Step::new("1", "SendMad (SubnGet(PortInfo)), and take the time"),
    Step::new(
        "2",
        "SMP_DATA = ReceiveMad (SubnGetResp(PortInfo)), and take the time; Status == 0",
    ),
];

const STEPS: &[Step] = &[
    ASK[0],
    ASK[1],
    ASK[2],
    Step::new("3", "verify: PortInfo:RespTimeValue <= 20"),
    Step::new("4", "verify: the time between is at most 4.3 s + 2 * 0.5 s"),
];

/// Each assertion rests on all checks of the document: its text does not divide them.
const ASSERTIONS: &[DocumentAssertion] = &[
    assertion("v1c13-013.1.1#01", &[], CHECKS),
    assertion("v1c13-013.1.1#02", &[], CHECKS),
];
const CHECKS: &[&str] = &["status", "resp-time-value", "in-time"];

const ROWS: [Row<Mad>; 6] = [
    PORT_STATE,
    row(
        "status",
        &["2"],
        "Get(PortInfo) is answered with status 0 and PortInfo",
        &["port-state"],
        "port-info-status",
        status,
    ),
    row(
        "resp-time-value",
        &["3"],
        "PortInfo:RespTimeValue is 20 at most",
        &["status"],
        "resp-time-value",
        resp_time_value,
    ),
    Row {
        tolerance: "0.5 s each for the way there and the way back, of the document; inconclusive \
            where the tester or its simulated DUT stood still",
        ..row(
            "in-time",
            &["4"],
            "each answer to Get(PortInfo) came within 5.3 s; a request that was not answered may \
             be lost, and the last of three tries waits 10 s",
            &["port-state"],
            "late=6000",
            |view| each_within(view, LONGEST),
        )
    },
    HEADER,
    SINGLE_ANSWER,
];

/// The greatest RespTimeValue: 4.096 us * 2^20 are 4.3 s.
const GREATEST: u8 = 20;

/// The longest time of an answer: 4.3 s, and 0.5 s each way.
const LONGEST: Duration = Duration::from_millis(4300 + 2 * 500);

/// Gets of the DUT's PortInfo whose answers are judged.
pub(super) const GETS: [Purpose; 2] = [Purpose::DutPort, Purpose::TimedPort];

fn gets<'v>(view: &'v View<'_>) -> impl Iterator<Item = Asking<'v>> {
    GETS.into_iter()
        .flat_map(move |purpose| view.askings(purpose))
}

pub(super) fn status(view: &View<'_>) -> Judgement {
    let mut finding = Finding::new();
    for asking in gets(view) {
        if let Some(answer) = answered(view, &mut finding, &asking) {
            // The answer came by the link, whose state a refusal does not show.
            let is_refused = !is_good(&mut finding, &asking, answer);
            finding.certain |= is_refused;
        }
    }
    finding.compared(Undecided::not_reached("the DUT was not asked"))
}

fn resp_time_value(view: &View<'_>) -> Judgement {
    let read = view.port().zip(view.asking(Purpose::DutPort));
    let (port, read) = read.ok_or(Undecided::not_reached("PortInfo was not read"))?;
    let mut finding = Finding::new();
    let expected = (count(GREATEST.into(), "") + " at most").is(Bound::AtMost);
    let found = port.response_time_value();
    let (subject, holds) = (read.last().subject(), found <= GREATEST);
    finding.expect_about([subject], "RespTimeValue", expected, found, holds);
    Ok(finding)
}

/// Judges how long each answer took.
pub(super) fn each_within(view: &View<'_>, longest: Duration) -> Judgement {
    let mut finding = Finding::new();
    let longest = longest.as_nanos() as Nanos;
    for asked in gets(view).flat_map(|asking| asking.all) {
        if let Some(at) = view.answered_at(asked) {
            within(view, &mut finding, asked, at, longest);
        }
    }
    let mut none = Undecided::from("no answer to Get(PortInfo) came");
    none.remedy = remedy::UNREACHABLE;
    finding.compared(none)
}

/// Records how long the answer to `asked` took that came at `at`.
fn within(view: &View<'_>, finding: &mut Finding, asked: &Asked, at: Nanos, longest: Nanos) {
    let took = at.saturating_sub(asked.sent);
    let (expected, found) = (value::within(longest), "after " + time(took));
    let what = format!("answer to {}", asked.name());
    if took > longest && view.stalls.excuse(asked.sent, at, longest) {
        let found = found + ", " + STOOD_STILL;
        finding.undecided_until(remedy::STALLED, what, expected, found);
    } else {
        // An answer that late is itself why the state of the link was not asked for.
        finding.about([asked.subject()], |finding| {
            finding.prove(what, expected, found, took <= longest, true)
        });
    }
}
