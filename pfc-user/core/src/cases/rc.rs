//! The case of the InfiniBand test specification that a silent responder runs.

mod c09_142_01;
mod judge;
pub mod parameters;
pub mod stimulate;
mod transmission;

use judge::Rc;
use judge::decoded::View;
use stimulate::{Steps, Stop};

use super::judge::{NamedFigure, Table};
use super::steps::{DOCUMENT, Found, assertion};
use super::value::Value;
use crate::evidence::rc::RcEvidence;
use crate::plan::rc::{RcParameters, RcPlan};
use crate::verdict::{Case, CheckResult};

/// A case of this family.
pub struct RcCase {
    /// Its description.
    pub case: Case,
    /// The repetition with these parameters.
    pub plan: fn(&RcParameters) -> RcPlan,
    /// Drives a repetition and fills in its evidence.
    stimulate: fn(&mut Steps<'_>, &mut RcEvidence) -> Result<(), Stop>,
    /// Its checks.
    table: Table<Rc>,
    /// The outcome of a numbered step of the document.
    step: fn(&str, &View<'_>, &[CheckResult]) -> Found,
    /// Figures that are reported and not judged.
    figures: &'static [NamedFigure<Rc>],
    /// The smallest violation that a check would have found.
    resolution: fn(&str, &View<'_>) -> Option<Value>,
}

/// All of them.
pub static CASES: [RcCase; 1] = [c09_142_01::CASE];

/// Fails where the evidence of a repetition makes no sense, so that no check is judged.
pub(super) fn consistent(evidence: &RcEvidence) -> Result<(), String> {
    View::new(evidence).map(drop)
}

impl RcCase {
    /// Ids of the rows that are judged.
    #[cfg(test)]
    pub(super) fn judged(&self) -> Vec<&'static str> {
        self.table.rows.iter().map(|row| row.id).collect()
    }
}
