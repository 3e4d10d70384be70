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

pub use c14_016_get::changes;

use judge::Mad;
use judge::consistency;
use judge::contact::{LINK_IS_UP, M_KEY_IS_KNOWN};
use judge::decoded::View;
use planning::PortContext;
use session::{Session, Stop};

use super::finding::Judgement;
use super::judge::{Row, Table, needs};
use super::steps::{DOCUMENT, Found, assertion};
use super::value::Value;
use crate::evidence::mad::MadEvidence;
use crate::plan::mad::MadPlan;
use crate::verdict::{Case, CheckResult};

/// A case of this family.
pub struct MadCase {
    /// Its description.
    pub case: Case,
    /// Its repetitions.
    pub plan: fn(&PortContext) -> Vec<MadPlan>,
    /// Sends the requests of a repetition.
    stimulate: fn(&mut Session<'_, '_>) -> Result<(), Stop>,
    /// Its checks.
    table: Table<Mad>,
    /// The outcome of a numbered step of the document; `None` where the checks that name its number
    /// decide it.
    step: fn(&str, &View<'_>, &[CheckResult]) -> Option<Found>,
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

/// A row that needs both ends of the link to be up.
const fn row(
    id: &'static str,
    steps: &'static [&'static str],
    passes_when: &'static str,
    depends_on: &'static [&'static str],
    fault: &'static str,
    judge: fn(&View<'_>) -> Judgement,
) -> Row<Mad> {
    Row {
        needs: needs![LINK_IS_UP],
        depends_on,
        ..Row::<Mad>::new(id, steps, passes_when, fault, judge)
    }
}

/// A row about what Sets do, which a DUT with another M_Key may refuse.
const fn row_of_set(
    id: &'static str,
    steps: &'static [&'static str],
    passes_when: &'static str,
    depends_on: &'static [&'static str],
    fault: &'static str,
    judge: fn(&View<'_>) -> Judgement,
) -> Row<Mad> {
    Row {
        needs: needs![LINK_IS_UP, M_KEY_IS_KNOWN],
        ..row(id, steps, passes_when, depends_on, fault, judge)
    }
}

impl MadCase {
    /// Ids of the rows that are judged.
    #[cfg(test)]
    pub(super) fn judged(&self) -> Vec<&'static str> {
        self.table.rows.iter().map(|row| row.id).collect()
    }
}
