//! The cases of the InfiniBand test specification that a MAD tester runs.

mod c13_013;
mod c13_014_01;
mod c14_016_get;
mod c14_024_10_01;
pub mod equipment;
pub mod journal;
mod judge;
pub mod planning;
pub mod session;
pub mod stimulate;
pub mod timing;

use judge::Mad;
use judge::consistency;
use judge::contact::LINK_IS_UP;
use judge::decoded::View;
use planning::PortContext;
use session::{Session, Stop};

use super::finding::Finding;
use super::judge::{Row, Table, needs};
use super::steps::Found;
use super::value::Value;
use crate::evidence::mad::MadEvidence;
use crate::plan::mad::MadPlan;
use crate::verdict::{Case, CheckResult, DocumentAssertion, Judged};

/// The document of all cases.
const DOCUMENT: &str = "InfiniBand Test Specification 1.0.38";

/// A case of this family.
pub struct MadCase {
    /// Its description.
    pub case: Case,
    /// Its repetitions.
    pub plan: fn(&PortContext) -> Vec<MadPlan>,
    /// The settings of the DUT that a repetition changes for its time, for people.
    pub changes: fn(&MadPlan) -> Option<String>,
    /// True if it tries wrong M_Keys.
    pub(super) tries_wrong_keys: bool,
    /// Sends the requests of a repetition.
    stimulate: fn(&mut Session<'_, '_>) -> Result<(), Stop>,
    /// Its checks.
    table: Table<Mad>,
    /// The outcome of a numbered step of the document.
    step: fn(&str, &View<'_>, &[CheckResult]) -> Found,
    /// The resolution of a check of its own that passed.
    resolution: fn(&str, &View<'_>) -> Option<Value>,
}

/// All of them.
pub static CASES: [MadCase; 4] = [
    c14_024_10_01::CASE,
    c14_016_get::CASE,
    c13_013::CASE,
    c13_014_01::CASE,
];

/// Fails where the evidence of the repetition of that index makes no sense, so that no check is
/// judged.
pub(super) fn consistent(all: &[&MadEvidence], index: usize) -> Result<(), String> {
    consistency::view(all, index).map(drop)
}

/// An assertion of the document, for the repetitions of these names, or all, that `checks` decide.
const fn assertion(
    id: &'static str,
    repetitions: &'static [&'static str],
    checks: &'static [&'static str],
) -> DocumentAssertion {
    DocumentAssertion {
        id,
        repetitions,
        checks,
    }
}

/// A row that needs both ends of the link to be up.
const fn row(
    id: &'static str,
    step: &'static str,
    passes_when: &'static str,
    depends_on: &'static [&'static str],
    fault: &'static str,
    judge: fn(&View<'_>) -> Finding,
) -> Row<Mad> {
    Row {
        needs: needs![LINK_IS_UP],
        depends_on,
        ..Row::<Mad>::new(id, step, passes_when, fault, judge)
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
        judge::repetition(self, all, index)
    }

    /// Ids of the rows that are judged.
    #[cfg(test)]
    pub(super) fn judged(&self) -> Vec<&'static str> {
        self.table.rows.iter().map(|row| row.id).collect()
    }
}
