//! Answers to a Get with a wrong key: those that match no request, and BUSY.

use ib_mad::attr::{Attribute, PortInfo};

use crate::cases::mad::judge::decoded::{Asked, Stray, View};
use crate::evidence::mad::Purpose;
use crate::verdict::Verdict;

/// Returns an answer to the Get with the wrong key among the packets that match no request: one
/// with its TID, however late, or one with an unknown TID while it was waited for. An answer with
/// the TID of another request to the DUT belongs to that one. An answer with the TID of a request
/// that the DUT never got, to the tester's own port or in an earlier case, may come from any node,
/// and decides nothing.
pub(super) fn stray_answer<'v>(
    view: &'v View<'_>,
    asked: &Asked,
) -> Option<(&'v Stray<'v>, Verdict)> {
    let until = view
        .asked
        .iter()
        .map(|later| later.sent)
        .find(|sent| *sent > asked.sent)
        .unwrap_or(view.e.listened_until);
    let verdict = |stray: &Stray<'_>| {
        let is_port = stray
            .smp
            .as_ref()
            .is_some_and(|smp| smp.method().is_response() && smp.attribute() == PortInfo::ID);
        let may_be = is_port
            && (asked.sent..=until.max(asked.deadline)).contains(&stray.at)
            && !stray.is_judged_elsewhere;
        match stray.of.map(|of| &view.asked[of]) {
            Some(of) if of.sent == asked.sent => Some(Verdict::Fail),
            Some(of) if of.purpose == Purpose::TesterPort && of.answer.is_some() => {
                may_be.then_some(Verdict::Inconclusive)
            }
            Some(_) => None,
            None if stray.of_earlier => may_be.then_some(Verdict::Inconclusive),
            None => may_be.then_some(Verdict::Fail),
        }
    };
    let answers = view
        .strays
        .iter()
        .filter_map(|stray| Some((stray, verdict(stray)?)));
    // BUSY says least.
    answers.min_by_key(|(stray, verdict)| (*verdict != Verdict::Fail, stray.is_busy()))
}

/// True if the only answer to the Get with the wrong key is BUSY: it was discarded (13.4.7), and is
/// neither a violation nor a missing one.
pub(super) fn is_discarded(view: &View<'_>, asked: &Asked) -> bool {
    match &asked.answer {
        Some(_) => asked.is_busy(),
        None => stray_answer(view, asked)
            .is_some_and(|(stray, verdict)| verdict == Verdict::Fail && stray.is_busy()),
    }
}
