//! Test Case #1 - PFC PAUSE with single lossless priority.

use super::{PfcCase, checks, planning};
use crate::case::Case;

/// The case.
pub(super) const SINGLE_LOSSLESS: PfcCase = PfcCase {
    case: Case {
        id: "pfc.pause-single-lossless",
        title: "Test Case #1 - PFC PAUSE with single lossless priority",
        requirement: "The DUT stops one lossless priority, and no other, while PFC pauses it, and loses none of its frames.",
        document: super::DOCUMENT,
        steps: super::LOSSLESS_STEPS,
        assertions: &[],
        checks: checks::LOSSLESS_STORM,
    },
    plan: planning::lossless_storm,
};
