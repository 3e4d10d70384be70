//! The checks of C14_016_Get. Where the whole was done more than once, each time counts.

use ib_mad::attr::PortInfo;
use ib_mad::mad::{MKey, Method, Status};

use super::attempt::{not_cleared, untried};
use crate::cases::finding::{Finding, Judgement, Undecided};
use crate::cases::mad::judge::contact::{answered, form, is_good};
use crate::cases::mad::judge::decoded::{Asking, View};
use crate::cases::mad::judge::resolution::{answers, unanswered, wrong};
use crate::cases::mad::judge::steps::sent;
use crate::cases::remedy;
use crate::cases::steps::{Found, checked};
use crate::cases::value::{Value, count, time};
use crate::evidence::mad::Purpose;
use crate::m_key::Protection;
use crate::verdict::CheckResult;

/// Status code for a field that the DUT does not support.
const CODE: u8 = 7;

/// Judges each asking of `purpose` whose answer is PortInfo with status 0.
fn each(
    view: &View<'_>,
    purpose: Purpose,
    judge: impl Fn(&mut Finding, &Asking<'_>, PortInfo),
) -> Judgement {
    let askings = view.askings(purpose);
    let mut finding = Finding::new();
    for asking in &askings {
        if let Some(port) = asking.last().port() {
            finding.about([asking.last().subject()], |finding| {
                judge(finding, asking, port)
            });
        }
    }
    let mut finding = finding.compared(Undecided::not_reached("not reached"))?;
    untried(view, purpose, &mut finding);
    Ok(finding)
}

/// Judges that each asking of `purpose` was answered, with status 0.
pub(super) fn all_answered(view: &View<'_>, purpose: Purpose) -> Judgement {
    let mut finding = Finding::new();
    for asking in view.askings(purpose) {
        let Some(answer) = answered(view, &mut finding, &asking) else {
            continue;
        };
        let request = &asking.last().request;
        let may_be_done = request.method() == Method::SET && answer.status().code() == CODE;
        if let Some(advice) = without_lid(view).filter(|_| may_be_done) {
            let expected = format!("status {}", Status::OK);
            let found = format!("{}: {advice}", form(answer));
            finding.undecided(asking.last().name(), expected, found);
        } else {
            is_good(&mut finding, &asking, answer);
        }
    }
    let mut finding = finding.compared(Undecided::not_reached("not reached"))?;
    untried(view, purpose, &mut finding);
    Ok(finding)
}

/// Returns why a Set may be answered with code 7 whether or not it was done. What was read is
/// written back, a LID 0 among it, and Linux' qib (`subn_set_portinfo`) answers code 7 to an
/// invalid LID, although it does all else.
fn without_lid(view: &View<'_>) -> Option<String> {
    let port = view
        .port()
        .filter(|port| port.lid() == 0 || port.master_sm_lid() == 0)?;
    let (lid, sm) = (port.lid(), port.master_sm_lid());
    Some(format!(
        "the DUT has LID {lid} and MasterSMLID {sm}, and may refuse a 0 there: let a subnet \
         manager configure the port once"
    ))
}

/// The effect of a Set is judged by the Get after it alone: the Set's own answer shows M_Key 0
/// where it carried the key before it.
pub(super) fn key_set(view: &View<'_>) -> Judgement {
    let mut finding = Finding::from(all_answered(view, Purpose::KeySet));
    let shown = view.askings(Purpose::KeyShown);
    for asking in &shown {
        match asking.last().port() {
            Some(port) => finding.about([asking.last().subject()], |finding| {
                let by = "that a Get with M_KEY_DUT shows";
                finding.equal_words(format!("M_Key {by}"), view.dut_key(), port.m_key());
                let bits = (view.protect_bits(), port.m_key_protect_bits());
                finding.equal(format!("M_KeyProtectBits {by}"), bits.0, bits.1);
            }),
            // That Get is step 1 once more, whose check judges it.
            None => finding.undecided(AFTER_SET, "M_KEY_DUT", "no PortInfo"),
        }
    }
    if shown.len() < view.askings(Purpose::KeySet).len() {
        finding.undecided_until(remedy::NOT_REACHED, AFTER_SET, "M_KEY_DUT", "not reached");
    }
    Ok(finding)
}

const AFTER_SET: &str = "Get(PortInfo) with M_KEY_DUT after the Set";

pub(super) fn own_key_value(view: &View<'_>) -> Judgement {
    each(view, Purpose::OwnKey, |finding, _, port| {
        finding.equal_words("M_Key", view.dut_key(), port.m_key())
    })
}

/// The subcases in which a DUT answers M_KEY_OTHER.
pub(super) fn answers_other_key(view: &View<'_>) -> Result<(), String> {
    match view.protect_bits() {
        0 | 1 => Ok(()),
        _ => Err("a subcase of protect bits 0 and 1".into()),
    }
}

/// The subcases in which a DUT does not answer M_KEY_OTHER.
pub(super) fn refuses_other_key(view: &View<'_>) -> Result<(), String> {
    match view.protect_bits() {
        0 | 1 => Err("a subcase of protect bits 2 and 3".into()),
        _ => Ok(()),
    }
}

pub(super) fn other_key_value(view: &View<'_>) -> Judgement {
    let expected = match view.protect_bits() {
        0 => view.dut_key(),
        _ => MKey(0),
    };
    each(view, Purpose::OtherKey, |finding, _, port| {
        finding.equal_words("M_Key", expected, port.m_key())
    })
}

pub(super) fn no_violation(view: &View<'_>) -> Judgement {
    each(view, Purpose::OtherKey, |finding, asking, port| {
        if let Some(left) = not_cleared(view, asking.last()) {
            return finding.undecided("M_KeyViolations", 0, left);
        }
        finding.equal("M_KeyViolations", 0, port.m_key_violations());
    })
}

/// The Get with M_KEY_DUT just before the one with the wrong key, against which that is counted.
pub(super) fn before_wrong_key(view: &View<'_>) -> Judgement {
    each(view, Purpose::OwnKey, |finding, asking, port| {
        let bits = (view.protect_bits(), port.m_key_protect_bits());
        finding.equal("M_KeyProtectBits before M_KEY_OTHER", bits.0, bits.1);
        let what = "M_KeyViolations before M_KEY_OTHER";
        let violations = port.m_key_violations();
        // A Set that is sent again after its answer was lost may carry a key that is wrong by then.
        match view.port_in(Purpose::KeySet, asking.last().attempt) {
            None if violations != 0 => {
                let found = Value::from(violations) + ", after a Set that was not answered";
                finding.undecided(what, 0, found)
            }
            _ => finding.equal(what, 0, violations),
        }
    })
}

/// The protection is as it was set, after a violation too.
pub(super) fn dut_key_value(view: &View<'_>) -> Judgement {
    each(view, Purpose::DutKey, |finding, _, port| {
        let bits = (view.protect_bits(), port.m_key_protect_bits());
        finding.equal_words("M_Key after M_KEY_OTHER", view.dut_key(), port.m_key());
        finding.equal("M_KeyProtectBits after M_KEY_OTHER", bits.0, bits.1);
    })
}

pub(super) fn reset(view: &View<'_>) -> Judgement {
    let mut finding = Finding::from(all_answered(view, Purpose::Reset));
    let shown = view.askings(Purpose::ResetShown);
    if shown.len() < view.askings(Purpose::Reset).len() {
        let what = "Get(PortInfo) after the reset";
        finding.undecided_until(remedy::NOT_REACHED, what, "M_Key 0", "not reached");
    }
    for asking in &shown {
        let Some(answer) = answered(view, &mut finding, asking) else {
            continue;
        };
        is_good(&mut finding, asking, answer);
        let Some(port) = asking.last().port() else {
            continue;
        };
        let (bits, violations) = (port.m_key_protect_bits(), port.m_key_violations());
        finding.about([asking.last().subject()], |finding| {
            finding.equal_words("M_Key after the reset", MKey(0), port.m_key());
            finding.equal("M_KeyProtectBits after the reset", 0, bits);
            finding.equal("M_KeyViolations after the reset", 0, violations);
        });
    }
    Ok(finding)
}

pub(super) fn restored(view: &View<'_>) -> Judgement {
    let (Some(original), Some(asking)) = (view.e.original, view.asking(Purpose::Restored)) else {
        let mut asked = view.asked.iter();
        return Err(
            match asked.any(|asked| asked.request.method() == Method::SET) {
                true => "it was not shown by a Get".into(),
                false => "no Set was sent, so that nothing was to be restored".into(),
            },
        );
    };
    let mut finding = Finding::new();
    let what = "what a Get shows at the end";
    match asking.last().port() {
        Some(port) => finding.about([asking.last().subject()], |finding| {
            finding.equal_words(what, original, Protection::of(&port))
        }),
        None => finding.undecided(what, original.to_string(), "no PortInfo in answer"),
    }
    Ok(finding)
}

/// Name of a component of PortInfo, and its value.
type Component = (&'static str, fn(&PortInfo) -> u64);

/// The components of PortInfo that a Set of the M_Key writes back.
const WRITTEN_BACK: [Component; 6] = [
    ("LID", |port| port.lid().into()),
    ("MasterSMLID", |port| port.master_sm_lid().into()),
    ("LMC", |port| port.lmc().into()),
    ("MasterSMSL", |port| port.master_sm_sl().into()),
    ("CapabilityMask", |port| port.capability_mask().into()),
    ("GidPrefix", PortInfo::gid_prefix),
];

/// The Sets of the M_Key leave the other components as they were found.
pub(super) fn nothing_else_changed(view: &View<'_>) -> Judgement {
    let found = view.port().ok_or(Undecided::not_reached("not reached"))?;
    let gets = [Purpose::KeyShown, Purpose::ResetShown, Purpose::Restored];
    let ports = gets.into_iter().flat_map(|purpose| view.askings(purpose));
    let ports = ports.filter_map(|asking| Some((asking.last(), asking.last().port()?)));
    let ports: Vec<_> = ports.collect();
    if ports.is_empty() {
        return Err(Undecided::not_reached("not reached"));
    }
    let mut finding = Finding::new();
    for (name, value) in WRITTEN_BACK {
        let expected = value(&found);
        let others = ports
            .iter()
            .map(|(asked, port)| (asked.subject(), value(port)));
        let others = others.filter(|(_, shown)| *shown != expected);
        let (subjects, others): (Vec<_>, Vec<_>) = others.unzip();
        let shown = others.first().copied().unwrap_or(expected);
        finding.expect_about(
            subjects,
            format!("{name} after a Set of the M_Key"),
            format!("{expected:#x}"),
            format!("{shown:#x}"),
            shown == expected,
        );
    }
    Ok(finding)
}

/// The outcome of a step of the document. Those whose number stands for several things, by the
/// protect bits, name their checks here.
pub(super) fn step(step: &str, view: &View<'_>, checks: &[CheckResult]) -> Option<Found> {
    Some(match (step, view.protect_bits()) {
        ("init 2" | "init 3", _) => checked(checks, &["key-set"]),
        ("1.1", _) => sent(view, Purpose::OwnKey),
        ("1.4", _) => sent(view, Purpose::OtherKey),
        ("2", 0 | 1) => checked(checks, &["other-key-answered"]),
        ("3", 0 | 1) => checked(checks, &["other-key-value", "no-violation"]),
        ("4", 0 | 1) | ("6", _) => checked(checks, &["reset"]),
        ("2", _) => checked(checks, &["before-wrong-key", "no-answer"]),
        ("3", _) => sent(view, Purpose::DutKey),
        ("4", _) => checked(checks, &["dut-key-answered"]),
        ("again", _) => sent(view, Purpose::OtherKey),
        ("end", _) => checked(checks, &["restored"]),
        _ => return None,
    })
}

/// The resolution of a check that passed.
pub(super) fn resolution(check: &str, view: &View<'_>) -> Option<Value> {
    use Purpose::*;
    match check {
        "key-set" => wrong(view, &[KeySet, KeyShown]),
        "own-key-answered" => unanswered(view, OwnKey),
        "other-key-answered" => unanswered(view, OtherKey),
        "dut-key-answered" => unanswered(view, DutKey),
        "own-key-value" => wrong(view, &[OwnKey]),
        "other-key-value" => wrong(view, &[OtherKey]),
        "dut-key-value" => wrong(view, &[DutKey]),
        "no-violation" => counted(view, OtherKey),
        "before-wrong-key" => counted(view, OwnKey),
        "one-violation" => counted(view, DutKey),
        "no-answer" => late(view),
        "reset" => wrong(view, &[Reset, ResetShown]),
        "restored" => Some("1 bit of M_Key, protect bits and lease".into()),
        "nothing-else-changed" => wrong(view, &[KeyShown, ResetShown, Restored]),
        _ => None,
    }
}

fn counted(view: &View<'_>, purpose: Purpose) -> Option<Value> {
    let answers = answers(view, purpose);
    let found = count(1, "") + " violation more or fewer in 1 answer of ";
    (answers > 0).then(|| found + count(answers, ""))
}

/// One answer to a wrong key, and until when it could have come.
fn late(view: &View<'_>) -> Option<Value> {
    let askings = view.askings(Purpose::OtherKey);
    let asked: Vec<_> = askings.iter().flat_map(|asking| &asking.all).collect();
    let least = asked.iter().map(|asked| view.seen_for(asked)).min()?;
    let found = "1 answer to " + count(asked.len() as u64, "requests");
    Some(found + ", up to " + time(least) + " after each")
}
