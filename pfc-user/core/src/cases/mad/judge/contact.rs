//! Initialisation: whether both ends of the link are as the document asks, and whether the DUT
//! takes orders.

use std::time::Duration;

use ib_mad::attr::PortState;
use ib_mad::mad::{MKey, Status};
use ib_mad::smp::Smp;

use super::Mad;
use super::decoded::{Asked, Asking, STOOD_STILL, View};
use crate::cases::finding::{Finding, Judgement, Undecided};
use crate::cases::judge::{Met, Precondition, Row};
use crate::cases::mad::session::TRIES;
use crate::cases::mad::timing::MOST_WAIT;
use crate::cases::remedy;
use crate::cases::value::{self, Value, count, time};
use crate::evidence::mad::Purpose;
use crate::m_key;
use crate::plan::Nanos;
use crate::verdict::{Bound, Verdict};

/// The row of every table.
pub const PORT_STATE: Row<Mad> = Row {
    tolerance: "the DUT's times are not known yet: the last of three tries waits 10 s",
    ..Row::<Mad>::new(
        "port-state",
        &["init 1"],
        "PortInfo:PortState of the tester and of the DUT's port with the link is Initialized, \
         Armed or Active; else inconclusive. A DUT that answers Get(NodeInfo) and not \
         Get(PortInfo), or that with another attribute, fails",
        "silent=port-info",
        port_state,
    )
};

/// Both ends of the link are as the document asks.
pub const LINK_IS_UP: Precondition<Mad> =
    Precondition::<Mad>::by("port-state", Met::<Mad>::By(port_state));

/// No other M_Key than the testbed's makes the DUT refuse Sets.
pub const M_KEY_IS_KNOWN: Precondition<Mad> = Precondition::<Mad>::new(
    "m-key",
    "Set mad.m_key_current of the testbed to the DUT's M_Key, or take its M_Key away.",
    |view| other_m_key(view).map_or(Ok(()), Err),
);

fn port_state(view: &View<'_>) -> Judgement {
    let mut finding = Finding::new();
    if !tester(view, &mut finding) {
        return Ok(finding);
    }
    let asking = view.asking(Purpose::DutPort);
    let asking = asking.ok_or(Undecided::not_reached("the DUT was not asked"))?;
    let what = "the DUT's PortInfo";
    match asking.answer() {
        None if asking.busy() > 0 => {
            finding.undecided_until(remedy::BUSY, what, "an answer", busy(&asking))
        }
        None => unreachable_dut(view, &asking, &mut finding),
        // An answer about another attribute does not show what its data is.
        Some(answer) if answer.attribute() != asking.last().request.attribute() => {
            let (subject, expected) = (asking.last().subject(), "an answer about PortInfo");
            finding.expect_about([subject], what, expected, form(answer), false)
        }
        Some(answer) if asking.last().port().is_none() => {
            finding.undecided(what, "PortInfo with status 0", form(answer))
        }
        Some(_) => {
            let time = view.answer_time().as_nanos() as Nanos;
            match asking.last().took().filter(|took| *took > time) {
                Some(took) => too_late(&mut finding, time, took),
                None => link(view, &mut finding),
            }
        }
    }
    Ok(finding)
}

/// The tester's own port.
fn tester(view: &View<'_>, finding: &mut Finding) -> bool {
    let what = "PortState of the tester";
    let asking = view.asking(Purpose::TesterPort);
    match asking.and_then(|asking| asking.last().port()) {
        None => {
            let found = "no answer from the tester's own node";
            finding.undecided_until(remedy::LINK, what, UP, found)
        }
        Some(port) => state_is_up(finding, what.into(), port.port_state()),
    }
    finding.verdict == Verdict::Pass
}

const UP: &str = "Initialized, Armed or Active";

fn state_is_up(finding: &mut Finding, what: String, state: PortState) {
    let verdict = match state.is_up() {
        true => Verdict::Pass,
        false => Verdict::Inconclusive,
    };
    finding.remedied(remedy::LINK, |finding| {
        finding.compare(what, UP, format!("{state:?}"), verdict)
    });
}

fn link(view: &View<'_>, finding: &mut Finding) {
    let Some(asking) = view.asking(Purpose::LinkPort) else {
        let what = "PortState of the DUT";
        return finding.undecided_until(remedy::NOT_REACHED, what, UP, "not asked");
    };
    let port = asking.last().request.modifier();
    let what = format!("PortState of the DUT's port {port}");
    match (asking.last().port(), asking.answer()) {
        (Some(port), _) => state_is_up(finding, what, port.port_state()),
        (None, Some(answer)) => finding.undecided_until(remedy::LINK, what, UP, form(answer)),
        (None, None) => finding.undecided_until(remedy::LINK, what, UP, "no answer"),
    }
}

/// The DUT has not answered in time, or not at all.
fn unreachable_dut(view: &View<'_>, asking: &Asking<'_>, finding: &mut Finding) {
    let (what, last) = ("the DUT's PortInfo", asking.last());
    let after = |asked: &&Asked| Some(view.answered_at(asked)?.saturating_sub(asked.sent));
    if let Some(after) = asking.all.iter().find_map(after) {
        return too_late(finding, last.waited(), after);
    }
    let none = "none " + times(asking);
    if view.is_alive_after(last) {
        let waited = Duration::from_nanos(last.waited());
        if waited < MOST_WAIT || asking.all.len() < TRIES {
            let longest = time(MOST_WAIT.as_nanos() as Nanos);
            let tries = "an answer, in one of " + count(TRIES as u64, "tries");
            let expected = tries + ", of which the last waits " + longest;
            let found = none + ", the last within " + time(last.waited());
            return finding.undecided(what, expected, found);
        }
        let found = none + ", while NodeInfo was answered";
        return finding.expect_about([last.subject()], what, "an answer", found, false);
    }
    let key = match view.current() {
        MKey(0) => "it is also silent if it has an M_Key and protect bits 2 or 3; `m_key_current` \
                    of the testbed is 0"
            .to_owned(),
        key => {
            format!("it is also silent if its M_Key is not `m_key_current` of the testbed, {key}")
        }
    };
    let route = &view.e.plan.route;
    let found = none + format!(": nothing shows that the DUT can be reached by {route}; {key}");
    finding.undecided_until(remedy::UNREACHABLE, what, "an answer", found);
}

/// The time-out of the testbed has to do until the DUT's times are known.
fn too_late(finding: &mut Finding, within: u64, after: u64) {
    let expected = ("an answer " + value::within(within)).is(Bound::AtMost);
    let found = "one after " + time(after) + ": a longer `timeout` of the testbed is needed";
    finding.undecided_until(remedy::TIMEOUT, "the DUT's PortInfo", expected, found);
}

/// Reason why Sets may have been refused for a key that is not the one that the testbed names.
fn other_m_key(view: &View<'_>) -> Option<String> {
    let port = view.port()?;
    let sets_key = view.e.plan.stimulus.protect_bits().is_some();
    if sets_key && port.m_key() == view.dut_key() {
        return None;
    }
    let current = view.current();
    if m_key::is_another(&port, current) {
        return Some(format!(
            "the DUT has M_Key {}, `m_key_current` of the testbed is {current}: no Set was sent",
            port.m_key()
        ));
    }
    // Protection that an earlier repetition could not restore hides no unknown key.
    let is_as_found = view.e.original.is_none() || view.e.original == view.found();
    if !m_key::may_be_another(&port, current) || !is_as_found {
        return None;
    }
    let hides = format!(
        "the DUT has protect bits 1 and may hide another M_Key than `m_key_current` of the \
         testbed, {current}"
    );
    let mut sets = [Purpose::SetBlock, Purpose::KeySet].into_iter();
    let first = sets.find_map(|purpose| view.askings(purpose).into_iter().next());
    match (first, port.m_key_lease_period()) {
        (None, 1..) => Some(format!(
            "{hides}: no Set was sent, as a wrong key would start the timer of its lease"
        )),
        (Some(first), _) if first.answer().is_none() && !view.shows_dut_key() => {
            Some(format!("{hides}: a Set was not answered"))
        }
        _ => None,
    }
}

/// Records whether the last request of `asking` was answered; the answer if it was. Silence counts
/// only if the DUT answered something later, and if it lasted as long as the DUT may take.
pub fn answered<'v>(
    view: &View<'_>,
    finding: &mut Finding,
    asking: &Asking<'v>,
) -> Option<&'v Smp> {
    let (last, what) = (asking.last(), asking.last().name());
    let expected = "an answer";
    if let Some(answer) = asking.answer() {
        return Some(answer);
    }
    let (none, longest) = ("none " + times(asking), view.answer_time());
    let (remedy, found) = if asking.busy() > 0 {
        (remedy::BUSY, busy(asking))
    } else if tries(asking) < TRIES {
        let expected = "an answer in one of " + count(TRIES as u64, "tries");
        finding.undecided(what, expected, none);
        return None;
    } else if longest > MOST_WAIT {
        let none = "none within " + time(last.waited());
        let longest = time(longest.as_nanos() as Nanos);
        let found = none + ", and by its own times it may take " + longest;
        (remedy::OTHER, found)
    } else if let Some(at) = view.excused_answer(asking) {
        (remedy::STALLED, "one at " + time(at) + ", " + STOOD_STILL)
    } else if view.is_alive_after(last) {
        let found = none + ", while other requests were answered";
        finding.expect_about([last.subject()], what, expected, found, false);
        return None;
    } else {
        let found = none + ", and none to anything afterwards";
        (remedy::UNREACHABLE, found)
    };
    finding.undecided_until(remedy, what, expected, found);
    None
}

/// How often the DUT was asked what it had to answer. Where its key is not known, a reset is tried
/// with both, and a good DUT refuses one of them.
fn tries(asking: &Asking<'_>) -> usize {
    let last = asking.last();
    let counts = |asked: &&&Asked| {
        asked.purpose != Purpose::Reset || asked.request.m_key() == last.request.m_key()
    };
    asking.all.iter().filter(counts).count()
}

/// Records whether an answer has status 0 and the attribute that was asked for; true if it has.
pub fn is_good(finding: &mut Finding, asking: &Asking<'_>, answer: &Smp) -> bool {
    let what = asking.last().name();
    let attribute = asking.last().request.attribute();
    let expected = format!("{attribute} with status {}", Status::OK);
    let holds = (answer.attribute(), answer.status()) == (attribute, Status::OK);
    finding.expect_about(
        [asking.last().subject()],
        what,
        expected,
        form(answer),
        holds,
    );
    holds
}

fn busy(asking: &Asking<'_>) -> Value {
    let busy = "BUSY " + counted(asking.busy());
    match asking.all.len() - asking.busy() {
        0 => busy,
        none => busy + ", none " + counted(none),
    }
}

pub fn form(answer: &Smp) -> String {
    format!("{} with status {}", answer.attribute(), answer.status())
}

fn times(asking: &Asking<'_>) -> Value {
    counted(asking.all.len())
}

fn counted(times: usize) -> Value {
    match times {
        1 => "once".into(),
        many => count(many as u64, "times"),
    }
}
