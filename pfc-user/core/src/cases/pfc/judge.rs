//! From evidence to checks: pure, so that stored evidence gives the same verdict again.

pub(super) mod asking;
pub(super) mod consistency;
pub(super) mod delivery;
pub(super) mod dip;
mod excuse;
mod figures;
pub(super) mod generation;
pub(super) mod integrity;
pub(super) mod latency;
pub(super) mod lets_go;
mod mac;
pub(super) mod preconditions;
pub(super) mod probe;
mod stalls;
pub(super) mod throughput;
pub(super) mod victim;
mod withheld;

use super::{PfcCase, resolution};
use crate::cases::finding::Finding;
use crate::cases::judge::Family;
use crate::evidence::pfc::PfcEvidence;
use crate::verdict::Judged;

/// The family, for the engine.
pub(super) struct Pfc;

impl Family for Pfc {
    type View<'e> = PfcEvidence;
    type Outcome = Finding;

    fn is_interrupted(view: &PfcEvidence) -> bool {
        view.interrupted
    }
}

impl PfcCase {
    /// Judges one repetition. Its steps are the phases of the repetition, and not listed one by
    /// one.
    pub fn judge(&self, e: &PfcEvidence) -> Judged {
        let consistent = consistency::check(e);
        let view = consistent.as_ref().map(|()| e).map_err(String::as_str);
        let checks = self.table.judge(&e.plan.name, view);
        let figures = match view {
            Ok(e) => [figures::of(e), resolution::figures(&checks, e)].concat(),
            Err(_) => Vec::new(),
        };
        Judged {
            checks,
            figures,
            ..Judged::default()
        }
    }

    /// Ids of the checks that the repetition left open, and that measuring again may decide.
    pub(in crate::cases) fn open(&self, e: &PfcEvidence) -> Vec<&'static str> {
        match consistency::check(e) {
            Ok(()) => self.table.judge_attempt(&e.plan.name, Ok(e)).1,
            Err(_) => Vec::new(),
        }
    }
}
