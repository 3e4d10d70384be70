//! Checks of wrong keys that must not be answered: silence, the proof that they arrived, and
//! violations.

use super::answer::{is_discarded, stray_answer};
use super::attempt::{not_cleared, untried};
use super::uncounted::Uncounted;
use crate::cases::finding::{Finding, Judgement, Undecided};
use crate::cases::mad::judge::decoded::{Asked, Asking, Stray, View};
use crate::cases::mad::judge::strays::unseen;
use crate::cases::mad::timing::MOST_WAIT;
use crate::cases::remedy;
use crate::cases::value::{self, Value, count, time};
use crate::evidence::mad::Purpose;
use crate::plan::Nanos;
use crate::verdict::{Subject, Verdict};

pub(super) fn no_answer(view: &View<'_>) -> Judgement {
    let longest = view.answer_time();
    if longest > MOST_WAIT {
        return Err(format!(
            "by RespTimeValue and SubnetTimeOut an answer may take {longest:?}; more than \
             {MOST_WAIT:?} is not waited"
        )
        .into());
    }
    let mut finding = Finding::new();
    let askings = view.askings(Purpose::OtherKey);
    let asked = || askings.iter().flat_map(|asking| &asking.all);
    for one in asked() {
        // One time is enough: all is done again where nothing shows that the request has arrived.
        let same = |other: &&&Asked| view.difference(other) == view.difference(one);
        let has_arrived = asked()
            .filter(same)
            .any(|other| arrival(view, other).is_some());
        silence(view, one, has_arrived, &mut finding);
    }
    let mut finding = finding.compared(Undecided::not_reached("not reached"))?;
    untried(view, Purpose::OtherKey, &mut finding);
    Ok(finding)
}

/// The proof that the Get with the wrong key reached the DUT: violations counted since the Set, or
/// trap 256 about its key.
fn arrival(view: &View<'_>, asked: &Asked) -> Option<Value> {
    let port = |purpose| view.port_in(purpose, asked.attempt);
    let violations = |purpose| port(purpose).map(|port| port.m_key_violations());
    let before = [Purpose::KeySet, Purpose::OwnKey].map(violations);
    let before = before.into_iter().flatten().max().unwrap_or(0);
    if let Some(after) = violations(Purpose::DutKey).filter(|after| *after > before) {
        return Some("violations " + count(after.into(), ""));
    }
    has_trap(view, asked).then(|| "trap 256".into())
}

/// True if a trap 256 names the key of the Get with the wrong key.
fn has_trap(view: &View<'_>, asked: &Asked) -> bool {
    let mut later = view.asked.iter();
    let next = later.find(|later| later.attempt > asked.attempt);
    let until = next.map_or(Nanos::MAX, |next| next.sent);
    view.strays.iter().any(|stray| {
        let details = stray.notice().and_then(|notice| notice.bad_m_key());
        let is_it = details.is_some_and(|details| details.m_key() == asked.request.m_key());
        is_it && (asked.sent..until).contains(&stray.at)
    })
}

/// True if a trap 256 names the key of the Get with the wrong key, and no earlier request had that
/// key: a trap is sent again until it is repressed.
fn is_named_by_trap(view: &View<'_>, asked: &Asked) -> bool {
    has_trap(view, asked) && !view.was_sent_before(asked)
}

/// Records that nothing answered the Get with the wrong key. Silence proves nothing where that Get
/// has not arrived in any attempt.
fn silence(view: &View<'_>, asked: &Asked, has_arrived: bool, finding: &mut Finding) {
    let difference = view.difference(asked);
    let what = format!("SubnGetResp(PortInfo) to a key that differs {difference}");
    let waited = asked.waited();
    let expected = "none " + value::within(waited);
    if let Some((subject, remedy, (found, verdict))) = any_answer(view, asked, has_arrived) {
        return finding.about([subject], |finding| {
            finding.remedied(remedy, |finding| {
                finding.compare(what, expected, found, verdict)
            })
        });
    }
    let longest = view.answer_time().as_nanos() as Nanos;
    if waited < longest {
        let longer = "none " + value::within(longest);
        return finding.undecided(what, longer, expected);
    }
    if !view.is_alive_after(asked) {
        let found = "none, and none to anything afterwards";
        return finding.undecided_until(remedy::UNREACHABLE, what, expected, found);
    }
    let hidden = match view.e.shows_unmatched {
        true => "",
        false => "; those with another TID could not be seen",
    };
    let found = match arrival(view, asked) {
        Some(by) => Value::from("none") + hidden + "; that it arrived is shown by " + by,
        None if has_arrived => {
            Value::from("none") + hidden + "; it may not have arrived, and was sent again"
        }
        None => {
            let found =
                "none, and neither violations nor trap 256: the request may not have arrived";
            return finding.undecided(what, expected, found);
        }
    };
    match unseen(view) {
        None => finding.expect(what, expected, found, true),
        Some(unseen) => finding.undecided(what, expected, unseen),
    }
}

/// An answer to the Get with the wrong key, in time or not, with its remedy and verdict.
fn any_answer(
    view: &View<'_>,
    asked: &Asked,
    has_arrived: bool,
) -> Option<(Subject, &'static str, (Value, Verdict))> {
    let after = |at: Nanos| "one after " + time(at.saturating_sub(asked.sent));
    if let Some((at, answer)) = &asked.answer {
        let (status, after) = (answer.status(), after(*at));
        let judged = match status.is_busy() {
            true => busy(view, asked, has_arrived, after),
            false => (after + format!(", status {status}"), Verdict::Fail),
        };
        return Some((asked.subject(), remedy::BUSY, judged));
    }
    let (stray, verdict) = stray_answer(view, asked)?;
    let (subject, after) = (Subject::Packet(stray.at), after(stray.at));
    let tid = match &stray.smp {
        None => "cut off".into(),
        Some(smp) if verdict == Verdict::Fail && smp.status().is_busy() => {
            let judged = busy(view, asked, has_arrived, after);
            return Some((subject, remedy::BUSY, judged));
        }
        Some(smp) => format!("TID {}", smp.tid()),
    };
    let of_another = match verdict {
        Verdict::Fail => "",
        _ => " of a request that was not the DUT's",
    };
    let found = after + format!(", {tid}{of_another}");
    Some((subject, remedy::OTHER, (found, verdict)))
}

/// Judges an answer BUSY. It says that the Get was discarded (13.4.7), so that its key was not
/// looked at; the Get is sent again then. A Get whose key was counted all the same was answered.
fn busy(view: &View<'_>, asked: &Asked, has_arrived: bool, after: Value) -> (Value, Verdict) {
    let one = after + ", BUSY";
    match arrival(view, asked) {
        Some(by) => (
            one + ", although the Get was not discarded: " + by,
            Verdict::Fail,
        ),
        None if has_arrived => (one + ": discarded, and sent again", Verdict::Pass),
        None => (one, Verdict::Inconclusive),
    }
}

pub(super) fn one_violation(view: &View<'_>) -> Finding {
    let askings = view.askings(Purpose::OtherKey);
    if askings.is_empty() {
        return Finding::from(Err(Undecided::not_reached("not reached")));
    }
    let mut finding = Finding::new();
    let uncounted = Uncounted::of(view);
    for difference in view.e.plan.differences() {
        let same = |asking: &&Asking<'_>| view.difference(asking.last()) == difference;
        let attempts: Vec<_> = askings.iter().filter(same).collect();
        let is_discarded = |asking: &Asking<'_>| is_discarded(view, asking.last());
        let discarded = attempts.iter().filter(|asking| is_discarded(asking));
        let discarded = discarded.count();
        if discarded > 0 && discarded == attempts.len() {
            let what = format!("M_KeyViolations after a key that differs {difference}");
            let found = "the Get was answered BUSY each time";
            finding.undecided_until(remedy::BUSY, what, 1, found);
        }
        for (index, asking) in attempts.iter().enumerate() {
            let what = format!(
                "M_KeyViolations after a key that differs {difference}, attempt {}",
                index + 1
            );
            let read = view.in_attempt(Purpose::DutKey, asking.last().attempt);
            let read = read.map(|read| read.last().subject());
            finding.about(read.as_slice(), |finding| {
                violations(view, asking.last(), what, uncounted.judge(), finding)
            });
        }
    }
    untried(view, Purpose::DutKey, &mut finding);
    finding
}

/// Records the violations after the Get `other` with a wrong key; `zero` is what 0 says.
fn violations(
    view: &View<'_>,
    other: &Asked,
    what: String,
    zero: (Value, Verdict),
    finding: &mut Finding,
) {
    let Some(port) = view.port_in(Purpose::DutKey, other.attempt) else {
        return finding.undecided_until(remedy::NOT_REACHED, what, 1, "not read");
    };
    if let Some(left) = not_cleared(view, other) {
        return finding.undecided(what, 1, left);
    }
    // A Set that was sent again after its answer was lost carried a key that was wrong by then.
    let before = view.port_in(Purpose::OwnKey, other.attempt);
    if let Some(before) = before.filter(|port| port.m_key_violations() != 0) {
        let left = Value::from(before.m_key_violations()) + " already before it";
        return finding.undecided(what, 1, left);
    }
    let is_stray =
        |(stray, verdict): (&Stray<'_>, Verdict)| verdict == Verdict::Fail && !stray.is_busy();
    let is_answered = other.answer().is_some() || stray_answer(view, other).is_some_and(is_stray);
    match port.m_key_violations() {
        violations if is_discarded(view, other) => {
            let what = format!("{what}, which was answered BUSY");
            finding.equal(what, 0, violations)
        }
        0 if is_named_by_trap(view, other) => {
            let found = count(0, "") + ", although trap 256 names the key";
            finding.expect(what, 1, found, false)
        }
        0 if is_answered => {
            let found = count(0, "") + ", although the Get was answered";
            finding.expect(what, 1, found, false)
        }
        0 => finding.remedied(remedy::LOSS, |finding| {
            finding.compare(what, 1, count(0, "") + ": " + zero.0, zero.1)
        }),
        violations => finding.equal(what, 1, violations),
    }
}
