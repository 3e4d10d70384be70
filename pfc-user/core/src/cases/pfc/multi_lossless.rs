//! Test Case #2 - PFC PAUSE with multiple lossless priorities.

use super::parameters::{Sets, StormChoice};
use super::{PfcCase, checks, planning, unfolding};
use crate::cases::judge::words;
use crate::verdict::Case;

/// The case.
pub(super) const CASE: PfcCase = PfcCase {
    case: Case {
        id: "pfc.pause-multi-lossless",
        title: "Test Case #2 - PFC PAUSE with multiple lossless priorities",
        requirement: "The DUT stops the lossless priorities that PFC pauses, and no other, and \
            loses none of their frames.",
        document: super::DOCUMENT,
        steps: super::LOSSLESS_STEPS,
        assertions: &[],
        checks: &words(&checks::LOSSLESS_STORM),
    },
    plan: |port, request| planning::lossless_storm(port, request, request.lossless),
    unfold: unfolding::several,
    table: checks::table(&checks::LOSSLESS_STORM),
    sets: Sets {
        lossless: 2..=7,
        why: "the case is about several lossless priorities beside at least one lossy",
        storm: StormChoice::Some,
    },
};
