//! The checks of C14_016_Get. Where the whole was done more than once, each time counts.

use ib_mad::attr::{Attribute, PortInfo};
use ib_mad::mad::MKey;

use super::contact::{answered, is_good, ms};
use super::finding::Finding;
use super::view::{Asked, Asking, View};
use crate::case::Verdict;
use crate::driver::mad::m_key::Protection;
use crate::driver::mad::timing::MOST_WAIT;
use crate::evidence::mad::Purpose;
use crate::plan::mad::MadStimulus;

/// So often it is all done while the violations stay 0.
const ATTEMPTS: usize = 3;

pub(super) fn bits(view: &View<'_>) -> u8 {
    match view.e.plan.stimulus {
        MadStimulus::MKeyGet(bits) => bits,
        MadStimulus::LinearForwardingTable => 0,
    }
}

/// Judges each asking of `purpose` whose answer is PortInfo with status 0.
fn each(view: &View<'_>, purpose: Purpose, mut judge: impl FnMut(&mut Finding, &Asking<'_>, PortInfo)) -> Finding {
    let askings = view.askings(purpose);
    let mut finding = Finding::new();
    for asking in &askings {
        if let Some(port) = asking.last().port() {
            judge(&mut finding, asking, port);
        }
    }
    if finding.assertions.is_empty() { Finding::not_reached("not reached") } else { finding }
}

/// Judges that each asking of `purpose` was answered, with status 0.
fn all_answered(view: &View<'_>, purpose: Purpose) -> Finding {
    let askings = view.askings(purpose);
    let mut finding = Finding::new();
    for asking in &askings {
        if let Some(answer) = answered(view, &mut finding, asking) {
            is_good(&mut finding, asking, answer);
        }
    }
    if askings.is_empty() { Finding::not_reached("not reached") } else { finding }
}

fn merge(finding: &mut Finding, other: Finding) {
    if Verdict::of_parts([finding.verdict, other.verdict]) != finding.verdict {
        finding.verdict = other.verdict;
        finding.reason = other.reason;
    }
    finding.assertions.extend(other.assertions);
}

pub(super) fn key_set(view: &View<'_>) -> Finding {
    let mut finding = all_answered(view, Purpose::KeySet);
    if finding.assertions.is_empty() {
        return finding;
    }
    let bits = bits(view);
    let shows = |finding: &mut Finding, by: &str, port: PortInfo| {
        finding.equal(format!("M_Key that {by} shows"), view.dut_key(), port.m_key());
        finding.equal(format!("M_KeyProtectBits that {by} shows"), bits, port.m_key_protect_bits());
    };
    let of_set = each(view, Purpose::KeySet, |finding, _, port| shows(finding, "the answer to the Set", port));
    if finding.verdict == Verdict::Pass {
        merge(&mut finding, of_set);
    }
    for asking in view.askings(Purpose::KeyShown) {
        match asking.last().port() {
            Some(port) => shows(&mut finding, "a Get with M_KEY_DUT", port),
            // That Get is step 1 once more, whose check judges it.
            None => finding.undecided("Get(PortInfo) with M_KEY_DUT after the Set", "M_KEY_DUT", "no PortInfo"),
        }
    }
    finding
}

pub(super) fn own_key_answered(view: &View<'_>) -> Finding {
    all_answered(view, Purpose::OwnKey)
}

pub(super) fn own_key_value(view: &View<'_>) -> Finding {
    each(view, Purpose::OwnKey, |finding, _, port| finding.equal("M_Key", view.dut_key(), port.m_key()))
}

const ANSWERS: &str = "a subcase of protect bits 0 and 1";
const IS_SILENT: &str = "a subcase of protect bits 2 and 3";

pub(super) fn other_key_answered(view: &View<'_>) -> Finding {
    match bits(view) {
        0 | 1 => all_answered(view, Purpose::OtherKey),
        _ => Finding::not_applicable(ANSWERS),
    }
}

pub(super) fn other_key_value(view: &View<'_>) -> Finding {
    let expected = match bits(view) {
        0 => view.dut_key(),
        1 => MKey(0),
        _ => return Finding::not_applicable(ANSWERS),
    };
    each(view, Purpose::OtherKey, |finding, _, port| finding.equal("M_Key", expected, port.m_key()))
}

pub(super) fn no_violation(view: &View<'_>) -> Finding {
    if bits(view) >= 2 {
        return Finding::not_applicable(ANSWERS);
    }
    each(view, Purpose::OtherKey, |finding, asking, port| {
        if let Some(left) = not_cleared(view, asking.last()) {
            return finding.undecided("M_KeyViolations", 0, left);
        }
        finding.equal("M_KeyViolations", 0, port.m_key_violations());
    })
}

/// What was left of the violations by the Set that was to clear them; nothing can be counted from there.
fn not_cleared(view: &View<'_>, asked: &Asked) -> Option<String> {
    let askings = view.askings(Purpose::KeySet);
    let set = askings.iter().find(|asking| asking.last().attempt == asked.attempt)?;
    let left = set.last().port()?.m_key_violations();
    (left != 0).then(|| format!("{left} already when a Set had cleared them"))
}

pub(super) fn no_answer(view: &View<'_>) -> Finding {
    if bits(view) < 2 {
        return Finding::not_applicable(IS_SILENT);
    }
    let time = view.answer_time();
    if time > MOST_WAIT {
        let reason = format!("by RespTimeValue and SubnetTimeOut an answer may take {time:?}; more than {MOST_WAIT:?} is not waited");
        return Finding::not_reached(reason);
    }
    let mut finding = Finding::new();
    for asking in view.askings(Purpose::OtherKey) {
        for asked in asking.all {
            silence(view, asked, &mut finding);
        }
    }
    if finding.assertions.is_empty() { Finding::not_reached("not reached") } else { finding }
}

/// Whether nothing answered the Get with the wrong key.
fn silence(view: &View<'_>, asked: &Asked, finding: &mut Finding) {
    let waited = asked.deadline - asked.sent;
    let hidden = if view.e.shows_unmatched { "" } else { "; those with another TID could not be seen" };
    let (what, expected) = ("SubnGetResp(PortInfo) to M_KEY_OTHER", format!("none within {}", ms(waited)));
    if let Some((at, answer)) = &asked.answer {
        let found = format!("one after {}, status {}", ms(at - asked.sent), answer.status());
        let verdict = if answer.status().is_busy() { Verdict::Inconclusive } else { Verdict::Fail };
        return finding.compare(what, expected, found, verdict);
    }
    // What had been asked before was answered by then, or never will be: the tester had listened for that.
    let until = view.asked.iter().map(|later| later.sent).find(|sent| *sent > asked.sent).unwrap_or(view.e.listened_until);
    let response = view.strays.iter().find(|stray| {
        let is_ours = stray.of.is_some_and(|of| view.asked[of].sent == asked.sent);
        let in_time = (asked.sent..=until.max(asked.deadline)).contains(&stray.at);
        let is_port = stray.smp.as_ref().is_some_and(|smp| smp.method().is_response() && smp.attribute() == PortInfo::ID);
        is_ours || in_time && is_port && stray.of.is_none_or(|of| view.asked[of].sent <= asked.sent)
    });
    if let Some(stray) = response {
        let tid = stray.smp.as_ref().map_or_else(|| "cut off".into(), |smp| format!("TID {}", smp.tid()));
        let found = format!("one after {}, {tid}", ms(stray.at - asked.sent));
        return finding.expect(what, expected, found, false);
    }
    if u128::from(waited) < view.answer_time().as_nanos() {
        return finding.undecided(what, format!("none within {:?}", view.answer_time()), format!("none within {}", ms(waited)));
    }
    if !view.is_alive_after(asked) {
        return finding.undecided(what, expected, "none, and none to anything afterwards");
    }
    finding.expect(what, expected, format!("none{hidden}"), true);
}

pub(super) fn dut_key_answered(view: &View<'_>) -> Finding {
    if bits(view) < 2 {
        return Finding::not_applicable(IS_SILENT);
    }
    all_answered(view, Purpose::DutKey)
}

pub(super) fn one_violation(view: &View<'_>) -> Finding {
    if bits(view) < 2 {
        return Finding::not_applicable(IS_SILENT);
    }
    let count = view.askings(Purpose::DutKey).len();
    let mut attempt = 0;
    each(view, Purpose::DutKey, |finding, asking, port| {
        attempt += 1;
        let what = format!("M_KeyViolations, attempt {attempt}");
        let violations = port.m_key_violations();
        if let Some(left) = not_cleared(view, asking.last()) {
            return finding.undecided(what, 1, left);
        }
        match violations {
            // The request may have been lost on its way, and it was all done again.
            0 if attempt < count => finding.compare(what, 1, "0: done again", Verdict::Pass),
            0 if attempt < ATTEMPTS => finding.undecided(what, 1, "0, and not done again"),
            _ => finding.equal(what, 1, violations),
        }
    })
}

pub(super) fn reset(view: &View<'_>) -> Finding {
    let mut finding = all_answered(view, Purpose::Reset);
    if finding.assertions.is_empty() {
        return finding;
    }
    for asking in view.askings(Purpose::ResetShown) {
        let Some(answer) = answered(view, &mut finding, &asking) else {
            continue;
        };
        is_good(&mut finding, &asking, answer);
        if let Some(port) = asking.last().port() {
            finding.equal("M_Key after the reset", MKey(0), port.m_key());
            finding.equal("M_KeyProtectBits after the reset", 0, port.m_key_protect_bits());
            finding.equal("M_KeyViolations after the reset", 0, port.m_key_violations());
        }
    }
    finding
}

pub(super) fn restored(view: &View<'_>) -> Finding {
    let (Some(found), Some(asking)) = (view.found(), view.asking(Purpose::Restored)) else {
        return match view.asking(Purpose::KeySet) {
            None => Finding::not_reached("no Set was sent, so that nothing was to be restored"),
            Some(_) => Finding::not_reached("it was not shown by a Get"),
        };
    };
    let mut finding = Finding::new();
    match asking.last().port() {
        Some(port) => finding.equal("what a Get shows at the end", found, Protection::of(&port)),
        None => finding.undecided("what a Get shows at the end", found, "no PortInfo in answer"),
    }
    finding
}
