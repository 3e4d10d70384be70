//! From evidence to checks: pure, so that stored evidence gives the same verdict again.

pub(super) mod consistency;
pub(super) mod contact;
pub(super) mod decoded;
mod figures;
pub(super) mod header;
mod hidden_key;
pub(super) mod likelihood;
pub(super) mod resolution;
pub(super) mod steps;
pub(super) mod strays;

use decoded::View;

use super::MadCase;
use crate::cases::judge::Family;
use crate::cases::{self, finding::Judgement};
use crate::evidence::mad::MadEvidence;
use crate::verdict::Judged;

/// The family, for the engine.
pub(super) struct Mad;

impl Family for Mad {
    type View<'e> = View<'e>;
    type Outcome = Judgement;

    fn is_interrupted(view: &View<'_>) -> bool {
        view.e.interrupted
    }

    fn failure<'v>(view: &'v View<'_>) -> Option<&'v str> {
        view.e.error.as_deref()
    }
}

impl MadCase {
    /// Judges one repetition by itself.
    pub fn judge(&self, evidence: &MadEvidence) -> Judged {
        self.judge_among(&[evidence], 0)
    }

    /// Judges the repetition of that index among all of the case, in their order. An answer belongs
    /// to the request whose TID it carries, however late it comes, and what one repetition lost may
    /// have been lost in another.
    pub fn judge_among(&self, all: &[&MadEvidence], index: usize) -> Judged {
        let (name, view) = (&all[index].plan.name, consistency::view(all, index));
        let (table, figures) = (&self.table, &figures::FIGURES);
        table.judge_all(name, view, figures, |view, checks| {
            let resolution = |check: &str| resolution::of(self, check, view);
            let resolutions = cases::resolution::figures(checks, resolution);
            (steps::of(self, view, checks), resolutions)
        })
    }
}
