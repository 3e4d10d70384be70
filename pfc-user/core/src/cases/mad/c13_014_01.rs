//! C13_014_01: the time of an answer, within the DUT's own SubnetTimeOut and RespTimeValue.

use std::time::Duration;

use ib_mad::attr::{Attribute, NodeInfo, PortInfo};

use super::c13_013::{ASK, GETS, each_within, status};
use super::judge::Mad;
use super::judge::contact::PORT_STATE;
use super::judge::decoded::{Asked, STOOD_STILL, View};
use super::judge::header::HEADER;
use super::judge::resolution::wrong;
use super::judge::steps::sent;
use super::judge::strays::SINGLE_ANSWER;
use super::session::{Session, Stop};
use super::{MadCase, assertion, row};
use crate::cases::finding::{Finding, Judgement, Undecided};
use crate::cases::judge::{Row, Table, words};
use crate::cases::mad::timing::{self, MOST_WAIT};
use crate::cases::remedy;
use crate::cases::value::{Value, count, time, within};
use crate::evidence::mad::Purpose;
use crate::plan::Nanos;
use crate::plan::mad::MadStimulus;
use crate::verdict::{Case, DocumentAssertion, Step};

/// The case.
pub(super) const CASE: MadCase = MadCase {
    case: Case {
        id: "mad.c13-014-01",
        title: "Response time of SubnGet(PortInfo) by the DUT's values",
        requirement: "The DUT answers within the times that its PortInfo:SubnetTimeOut and \
            PortInfo:RespTimeValue stand for.",
        document: super::DOCUMENT,
        steps: STEPS,
        assertions: ASSERTIONS,
        checks: &words(&ROWS),
    },
    plan: |port| vec![port.repetition("timed", MadStimulus::TimedPortInfo)],
    stimulate,
    table: Table {
        rows: &ROWS,
        applies: None,
    },
    step: |step, view, _| (step == "1").then(|| sent(view, Purpose::TimedPort)),
    resolution,
};

/// Steps in our own words and numbers.
const STEPS: &[Step] = &[
    ASK[0],
    ASK[1],
    ASK[2],
    Step::new(
        "3",
        "verify: the time between is at most 4.3 s + 2 * 4.096 us * 2^SubnetTimeOut",
    ),
    Step::new(
        "4",
        "verify: the time between is at most 4.096 us * 2^RespTimeValue + 2 * 0.5 s",
    ),
];

/// No step names v1c13-014#01.
const ASSERTIONS: &[DocumentAssertion] = &[
    assertion("v1c13-013.1.1#03", &[], &["in-time"]),
    assertion("v1c13-014#01", &[], &[]),
    assertion("v1c13-015#01", &[], &["resp-time"]),
    assertion("v1c13-016#01", &[], &["resp-time"]),
    assertion("v1c13-016#02", &[], &["resp-time"]),
];

const ROWS: [Row<Mad>; 6] = [
    PORT_STATE,
    row(
        "status",
        &["2"],
        "each Get(PortInfo) is answered with status 0 and PortInfo",
        &["port-state"],
        "port-info-status",
        status,
    ),
    Row {
        tolerance: "inconclusive where the tester or its simulated DUT stood still",
        ..row(
            "in-time",
            &["3"],
            "each answer to Get(PortInfo) came within 4.3 s and twice the time of \
             PortInfo:SubnetTimeOut",
            &["status"],
            "late=6000",
            in_time,
        )
    },
    Row {
        tolerance: "0.5 s each for the way there and the way back, of the document; for the tester \
            itself, the least time of 20 Gets of its own PortInfo; inconclusive where that is \
            above a third of the rest, or the tester or its simulated DUT stood still",
        ..row(
            "resp-time",
            &["4"],
            "the least time of 20 answers to Get(PortInfo) is within that of \
             PortInfo:RespTimeValue, of both ways and of the tester itself",
            &["status"],
            "late=2000",
            resp_time,
        )
    },
    HEADER,
    SINGLE_ANSWER,
];

/// Timed Gets: the least of their times has the least of what delays the tester now and then.
const COUNT: u32 = 20;

/// Time that the greatest RespTimeValue stands for.
const GREATEST: Duration = Duration::from_millis(4300);

/// The way there or back, as the document estimates it. Its formula has this time in the product
/// with 4.096 us, where it would say nothing.
const WAY: Duration = Duration::from_millis(500);

fn stimulate(session: &mut Session<'_, '_>) -> Result<(), Stop> {
    let Some(port) = session.first_port()? else {
        return Ok(());
    };
    if !session.link(&port)? {
        // An answer later than the DUT's own times is what is to be timed.
        session.wait = MOST_WAIT;
    }
    session.announce("timed Gets");
    for nth in 1..=COUNT {
        session.attempt = nth;
        session.own_port()?;
        let timed = session.get(Purpose::TimedPort, PortInfo::ID, session.current())?;
        if timed.is_none() {
            return session.is_alive(NodeInfo::ID);
        }
    }
    Ok(())
}

const NOT_READ: Undecided = Undecided::not_reached("PortInfo was not read");

fn in_time(view: &View<'_>) -> Judgement {
    let port = view.port().ok_or(NOT_READ)?;
    let longest = GREATEST + 2 * timing::way_time(&port);
    let mut finding = Finding::from(each_within(view, longest));
    let timed = view.askings(Purpose::TimedPort).len();
    if timed < COUNT as usize {
        finding.undecided("timed Gets", COUNT, timed);
    }
    Ok(finding)
}

/// Times that the timed Gets show.
struct Times<'v> {
    /// Gets that were answered, each with the time of its answer; BUSY is none.
    answered: Vec<(&'v Asked, Nanos)>,
    /// The least time of an answer.
    least: Nanos,
    /// The least time of an answer of the tester's own port.
    own: Nanos,
    /// The longest time for the DUT and both ways.
    longest: Nanos,
}

impl<'v> Times<'v> {
    fn of(view: &'v View<'_>) -> Result<Self, Undecided> {
        let port = view.port().ok_or(NOT_READ)?;
        let of_purpose = move |purpose: Purpose| {
            let asked = view.asked.iter();
            asked.filter(move |asked| asked.purpose == purpose)
        };
        let answered: Vec<_> = of_purpose(Purpose::TimedPort)
            .filter(|asked| !asked.is_busy())
            .filter_map(|asked| Some((asked, view.answered_at(asked)?)))
            .collect();
        let took = answered
            .iter()
            .map(|(asked, at)| at.saturating_sub(asked.sent));
        let own = of_purpose(Purpose::TesterPort).filter_map(Asked::took);
        Ok(Self {
            least: took.min().ok_or("no timed Get was answered")?,
            own: own.min().ok_or("the tester's own port was not timed")?,
            longest: longest(&port),
            answered,
        })
    }

    /// True if a stall explains that an answer came no earlier.
    fn is_excused(&self, view: &View<'_>) -> bool {
        let latest = self.longest + self.own;
        let is_it = |(asked, at): &(&Asked, Nanos)| view.stalls.excuse(asked.sent, *at, latest);
        self.answered.iter().any(is_it)
    }
}

fn longest(port: &PortInfo) -> Nanos {
    (timing::response_time(port) + 2 * WAY).as_nanos() as Nanos
}

fn resp_time(view: &View<'_>) -> Judgement {
    let times = Times::of(view)?;
    let mut finding = Finding::new();
    let what = format!("least time of {} answers", times.answered.len());
    let expected = within(times.longest + times.own);
    let own = "; the tester's own port answers after " + time(times.own);
    let found = time(times.least) + own;
    let holds = times.least <= times.longest + times.own;
    if times.own > times.longest / 3 {
        let found = found + ", which is above a third of the rest";
        finding.undecided(what, expected, found);
    } else if !holds && times.answered.len() < COUNT as usize {
        finding.undecided(what, expected + ", of " + COUNT, found);
    } else if !holds && times.is_excused(view) {
        let found = found + ", " + STOOD_STILL;
        finding.undecided_until(remedy::STALLED, what, expected, found);
    } else {
        // An answer that late may itself be why the state of the link was not asked for.
        let subjects = times.answered.iter().map(|(of, _)| of.subject());
        finding.about(subjects, |finding| {
            finding.prove(what, expected, found, holds, true)
        });
    }
    Ok(finding)
}

/// The resolution of a check that passed.
fn resolution(check: &str, view: &View<'_>) -> Option<Value> {
    match check {
        "port-state" => None,
        "resp-time" => {
            let times = Times::of(view).ok()?;
            let later = (times.longest + times.own).saturating_sub(times.least);
            let answers = count(times.answered.len() as u64, "answers");
            Some(answers + ", each " + time(later) + " later")
        }
        _ => wrong(view, &GETS),
    }
}
