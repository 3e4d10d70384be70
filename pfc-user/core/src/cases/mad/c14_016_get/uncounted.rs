//! Wrong keys that were not counted: the request was lost, or the DUT forgot to count it. The loss
//! of other requests distinguishes the two.

use super::answer::is_discarded;
use super::attempt::not_cleared;
use crate::cases::mad::judge::decoded::{Asked, View};
use crate::cases::mad::judge::likelihood::{ENOUGH, Loss, UNLIKELY, at_least};
use crate::cases::value::{Value, count, number, scientific};
use crate::evidence::mad::Purpose;
use crate::verdict::Verdict;

/// Wrong keys of the whole case at protect bits 2 and 3, and the loss of its other requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uncounted {
    /// Gets with a wrong key after which the violations were read, and had been 0 before.
    tried: u64,
    /// Gets among them after which the violations were still 0.
    zeros: u64,
    loss: Loss,
}

impl Uncounted {
    pub(super) fn of(view: &View<'_>) -> Self {
        let mut all = Self::default();
        for view in view.all() {
            let Loss { asked, lost } = view.loss();
            all.loss.asked += asked;
            all.loss.lost += lost;
            if view.protect_bits() < 2 {
                continue;
            }
            let askings = view.askings(Purpose::OtherKey);
            let counted = askings.iter().map(|asking| asking.last());
            for count in counted.filter_map(|asked| violations(&view, asked)) {
                all.tried += 1;
                all.zeros += u64::from(count == 0);
            }
        }
        all
    }

    /// Returns the meaning of a zero in words, and its verdict.
    pub(super) fn judge(&self) -> (Value, Verdict) {
        let Self { tried, zeros, loss } = *self;
        let Loss { asked, lost } = loss;
        let others = count(lost, "") + " of " + asked + " other requests were lost";
        let Some(bound) = loss.upper_bound() else {
            let found = "the request may be lost; " + others + ", and fewer than " + ENOUGH;
            return (found + " say nothing of it", Verdict::Inconclusive);
        };
        let likelihood = at_least(zeros, tried, bound);
        let uncounted =
            count(zeros, "") + " of " + tried + " wrong keys of the case were not counted";
        let found = uncounted
            + "; "
            + others
            + ", so that loss is below "
            + number(100.0 * bound, 2, "%")
            + ", and explains that with probability "
            + scientific(likelihood);
        match likelihood < UNLIKELY {
            true => (found, Verdict::Fail),
            false => (found, Verdict::Inconclusive),
        }
    }
}

/// The violations after a Get with a wrong key that was not discarded; `None` where nothing can be
/// counted.
fn violations(view: &View<'_>, asked: &Asked) -> Option<u16> {
    let read = |purpose| view.port_in(purpose, asked.attempt);
    let after = read(Purpose::DutKey)?;
    let was_clear = read(Purpose::OwnKey).is_none_or(|port| port.m_key_violations() == 0);
    let counts = was_clear && not_cleared(view, asked).is_none() && !is_discarded(view, asked);
    counts.then(|| after.m_key_violations())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_ruled_out_from_a_hundred_other_requests_on() {
        let judged = |asked| {
            let uncounted = Uncounted {
                tried: 8,
                zeros: 8,
                loss: Loss { asked, lost: 0 },
            };
            uncounted.judge()
        };
        let (found, verdict) = judged(99);
        let found = found.into_text();
        assert_eq!(verdict, Verdict::Inconclusive, "{found}");
        let few = "0 of 99 other requests were lost, and fewer than 100 say nothing of it";
        assert!(found.contains(few), "{found}");
        let (found, verdict) = judged(100);
        let found = found.into_text();
        assert_eq!(verdict, Verdict::Fail, "{found}");
        let enough = "0 of 100 other requests were lost, so that loss is below 4.50 %";
        assert!(found.contains(enough), "{found}");
    }
}
