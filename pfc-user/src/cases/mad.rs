//! The two cases of the InfiniBand test specification that a MAD tester runs.

mod c14_016_get;
mod c14_024_10_01;
mod judge;
pub mod live;
pub mod planning;

use crate::case::{Case, Judged};
use crate::config::MadTestbed;
use crate::evidence::mad::MadEvidence;
use crate::plan::mad::MadPlan;

/// Where the cases come from.
const DOCUMENT: &str = "InfiniBand Test Specification 1.0.38";

/// A case of this family: its table, and its repetitions on a testbed.
pub struct MadCase {
    /// What is known of it before it runs.
    pub case: Case,
    /// Its repetitions.
    pub plan: fn(&MadTestbed) -> Vec<MadPlan>,
}

/// Both.
pub static CASES: [MadCase; 2] = [
    c14_024_10_01::LINEAR_FORWARDING_TABLE,
    c14_016_get::M_KEY_GET,
];

/// Judges one repetition.
pub fn judge(case: &Case, evidence: &MadEvidence) -> Judged {
    judge::repetition(case, evidence)
}
