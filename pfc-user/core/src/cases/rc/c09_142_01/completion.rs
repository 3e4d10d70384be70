//! The checks of what the DUT says itself: completions, and the state of its queue pair.

use super::requests::{STOOD_STILL, bounds, may_be_late, within};
use crate::agent::protocol::State;
use crate::case::{Subject, Verdict};
use crate::cases::finding::Finding;
use crate::cases::rc::judge::decoded::View;
use crate::cases::rc::judge::{no_test, state};
use crate::cases::rc::stimulate::{FLUSHED, LONGEST, READ};
use crate::evidence::rc::Completion;
use crate::quantity::ms;

/// `ibv_wc_status`.
const WR_FLUSH_ERR: u32 = 5;
const RETRY_EXC_ERR: u32 = 12;

/// The completion, for drawings.
fn subject(completion: &&Completion) -> Subject {
    Subject::Completion(completion.time)
}

pub(super) fn one_completion(view: &View<'_>) -> Finding {
    let Some(test) = &view.test else {
        return no_test();
    };
    let Some(t_tr) = test.t_tr() else {
        return no_test();
    };
    let completions = view.completions();
    let mut finding = Finding::new();
    let (what, found) = ("completions", completions.len().to_string());
    match completions.first() {
        Some(_) => {
            let surplus: Vec<_> = completions.iter().skip(1).map(subject).collect();
            finding.about(&surplus, |finding| finding.equal(what, "1".into(), found))
        }
        None if test
            .packets()
            .last()
            .is_some_and(|last| view.is_excused(last.time, test.phase.until, LONGEST * t_tr)) =>
        {
            finding.undecided(what, "1", format!("none, {STOOD_STILL}"))
        }
        None => finding.expect(
            what,
            "1",
            format!(
                "none within {}",
                ms(test.phase.until.saturating_sub(test.phase.posted))
            ),
            false,
        ),
    }
    for completion in &completions {
        if completion.work_request != READ {
            finding.about(&[subject(completion)], |finding| {
                finding.expect(
                    "work request of the completion",
                    READ,
                    completion.work_request,
                    false,
                )
            });
        }
    }
    if let (Some(first), Some(last)) = (completions.first(), test.packets().last()) {
        let bounds = bounds(t_tr);
        let (earliest, latest) = (
            first.since.saturating_sub(last.time),
            first.time.saturating_sub(last.time),
        );
        let late = may_be_late(view, test.transmissions.len() - 1, latest, bounds.0);
        let is_excused = view.is_excused(last.time, first.time, bounds.1);
        let verdict = if late || latest > bounds.1 && is_excused {
            Verdict::Inconclusive
        } else {
            within(earliest, latest, bounds)
        };
        let heard = match verdict {
            Verdict::Inconclusive if late => {
                format!("{}: the transmission may have come in late", ms(latest))
            }
            Verdict::Inconclusive if latest > bounds.1 && is_excused => {
                format!("{}, {STOOD_STILL}", ms(latest))
            }
            Verdict::Inconclusive => format!("{} to {}", ms(earliest), ms(latest)),
            _ => ms(latest),
        };
        finding.about(&[subject(first)], |finding| {
            finding.compare(
                "from the last transmission to it",
                format!("{} to {}", ms(bounds.0), ms(bounds.1)),
                heard,
                verdict,
            )
        });
    }
    finding
}

pub(super) fn status(view: &View<'_>) -> Finding {
    if view.test.is_none() {
        return no_test();
    }
    let mut finding = Finding::new();
    for completion in view.completions() {
        finding.about(&[subject(&completion)], |finding| {
            finding.equal("status", RETRY_EXC_ERR, completion.status)
        });
    }
    if finding.assertions.is_empty() {
        Finding::not_applicable("there was no completion: `one-completion` says so")
    } else {
        finding
    }
}

pub(super) fn qp_error(view: &View<'_>) -> Finding {
    let Some(test) = &view.test else {
        return no_test();
    };
    let Some(found) = state(test.phase) else {
        return Finding::inconclusive("its state was not read");
    };
    let mut finding = Finding::new();
    finding.equal(
        "state of the queue pair",
        format!("{:?}", State::Error),
        found,
    );
    finding
}

pub(super) fn flush(view: &View<'_>) -> Finding {
    let Some(flush) = &view.e.flush else {
        return Finding::inconclusive("no READ was posted to a queue pair in error");
    };
    let mut finding = Finding::new();
    if let Some(refused) = &flush.refused {
        finding.expect(
            "one more READ",
            "posted",
            format!("refused: {refused}"),
            false,
        );
        return finding;
    }
    let flushed: Vec<_> = flush
        .completions
        .iter()
        .filter(|completion| completion.work_request == FLUSHED)
        .collect();
    let waited = ms(flush.until.saturating_sub(flush.posted));
    let surplus: Vec<_> = flushed.iter().skip(1).map(subject).collect();
    finding.about(&surplus, |finding| {
        finding.expect(
            "completions of one more READ",
            1,
            format!("{} within {waited}", flushed.len()),
            flushed.len() == 1,
        )
    });
    for completion in flushed {
        finding.about(&[subject(&completion)], |finding| {
            finding.equal("its status", WR_FLUSH_ERR, completion.status)
        });
    }
    finding
}
