//! The case of the InfiniBand test specification that a silent responder runs.

mod c09_142_01;
mod judge;
pub mod live;
pub mod planning;
pub mod stimulate;
mod transmission;

use crate::case::{Case, Judged};
use crate::evidence::rc::RcEvidence;

/// A case of this family.
pub struct RcCase {
    /// What is known of it before it runs.
    pub case: Case,
}

/// All of them.
pub static CASES: [RcCase; 1] = [RcCase {
    case: c09_142_01::OUTSTANDING_REQUEST_TIMEOUT,
}];

/// Judges one repetition.
pub fn judge(case: &Case, evidence: &RcEvidence) -> Judged {
    judge::repetition(case, evidence)
}
