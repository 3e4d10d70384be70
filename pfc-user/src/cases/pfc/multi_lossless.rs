//! Test Case #2 - PFC PAUSE with multiple lossless priorities.

use super::{PfcCase, checks, planning};
use crate::case::Case;

/// The case.
pub(super) const MULTI_LOSSLESS: PfcCase = PfcCase {
    case: Case {
        id: "pfc.pause-multi-lossless",
        title: "Test Case #2 - PFC PAUSE with multiple lossless priorities",
        requirement: "The DUT stops the lossless priorities that PFC pauses, and no other, and loses none of their frames.",
        document: super::DOCUMENT,
        steps: super::LOSSLESS_STEPS,
        assertions: &[],
        checks: checks::LOSSLESS_STORM,
    },
    plan: planning::lossless_storm,
};
