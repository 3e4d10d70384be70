//! The checks of what the DUT says itself: completions, and the state of its queue pair.

use super::requests::{
    NO_TEST, STOOD_STILL, between, bounds, may_be_late, or_nothing, test, within,
};
use crate::agent::protocol::State;
use crate::cases::finding::{Finding, Judgement, Undecided};
use crate::cases::rc::judge::decoded::View;
use crate::cases::rc::judge::state;
use crate::cases::rc::stimulate::{FLUSHED, LONGEST, READ};
use crate::cases::remedy;
use crate::cases::value::{Value, time};
use crate::evidence::rc::Completion;
use crate::verdict::{Subject, Verdict};

/// `ibv_wc_status`.
const WR_FLUSH_ERR: u32 = 5;
const RETRY_EXC_ERR: u32 = 12;

/// The completion, for drawings.
fn subject(completion: &&Completion) -> Subject {
    Subject::Completion(completion.time)
}

pub(super) fn one_completion(view: &View<'_>) -> Judgement {
    let (test, t_tr) = test(view)?;
    let completions = view.completions();
    let mut finding = Finding::new();
    let what = "completions";
    match completions.first() {
        Some(_) => {
            let surplus = completions.iter().skip(1).map(subject);
            finding.about(surplus, |finding| finding.equal(what, 1, completions.len()))
        }
        None if test
            .last()
            .is_some_and(|last| view.stalls.excuse(last, test.phase.until, LONGEST * t_tr)) =>
        {
            let found = format!("none, {STOOD_STILL}");
            finding.undecided_until(remedy::STALLED, what, 1, found)
        }
        None => {
            let found = "none within " + time(test.waited());
            finding.expect(what, 1, found, false)
        }
    }
    for completion in &completions {
        if completion.work_request != READ {
            let (what, found) = ("work request of the completion", completion.work_request);
            finding.expect_about([subject(completion)], what, READ, found, false);
        }
    }
    if let (Some(first), Some(last)) = (completions.first(), test.last()) {
        let (shortest, longest) = bounds(t_tr);
        let (since, took) = (
            first.since.saturating_sub(last),
            first.time.saturating_sub(last),
        );
        let found = time(took);
        let mut remedy = remedy::OTHER;
        let (found, verdict) = if may_be_late(view, test.transmissions.len() - 1, took, shortest) {
            remedy = remedy::LATE;
            let found = found + ": the transmission may have come in late";
            (found, Verdict::Inconclusive)
        } else if took > longest && view.stalls.excuse(last, first.time, longest) {
            remedy = remedy::STALLED;
            (found + ", " + STOOD_STILL, Verdict::Inconclusive)
        } else {
            match within(since, took, (shortest, longest)) {
                Verdict::Inconclusive => (time(since) + " to " + found, Verdict::Inconclusive),
                verdict => (found, verdict),
            }
        };
        finding.about([subject(first)], |finding| {
            let expected = between(shortest, longest);
            finding.remedied(remedy, |finding| {
                finding.compare("from the last transmission to it", expected, found, verdict)
            })
        });
    }
    Ok(finding)
}

pub(super) fn status(view: &View<'_>) -> Judgement {
    view.test.as_ref().ok_or(NO_TEST)?;
    let mut finding = Finding::new();
    for completion in view.completions() {
        finding.about([subject(&completion)], |finding| {
            finding.equal("status", RETRY_EXC_ERR, completion.status)
        });
    }
    or_nothing(finding, "there was no completion: `one-completion` says so")
}

pub(super) fn qp_error(view: &View<'_>) -> Judgement {
    let test = view.test.as_ref().ok_or(NO_TEST)?;
    let found = state(test.phase).ok_or(Undecided::not_reached("its state was not read"))?;
    let mut finding = Finding::new();
    let expected = format!("{:?}", State::Error);
    finding.equal("state of the queue pair", expected, found);
    Ok(finding)
}

pub(super) fn flush(view: &View<'_>) -> Judgement {
    let flush = view.e.flush.as_ref();
    let flush = flush.ok_or("no READ was posted to a queue pair in error")?;
    let mut finding = Finding::new();
    if let Some(refused) = &flush.refused {
        let found = format!("refused: {refused}");
        finding.expect("one more READ", "posted", found, false);
        return Ok(finding);
    }
    let flushed: Vec<_> = flush
        .completions
        .iter()
        .filter(|completion| completion.work_request == FLUSHED)
        .collect();
    let waited = time(flush.until.saturating_sub(flush.posted));
    let surplus = flushed.iter().skip(1).map(subject);
    let found = Value::from(flushed.len()) + " within " + waited;
    let what = "completions of one more READ";
    finding.expect_about(surplus, what, 1, found, flushed.len() == 1);
    for completion in flushed {
        finding.about([subject(&completion)], |finding| {
            finding.equal("its status", WR_FLUSH_ERR, completion.status)
        });
    }
    Ok(finding)
}
