//! Test Case #1 - PFC PAUSE with single lossless priority.

use super::parameters::{Sets, StormChoice};
use super::{PfcCase, checks, planning, unfolding};
use crate::cases::judge::words;
use crate::verdict::Case;

/// The case.
pub(super) const CASE: PfcCase = PfcCase {
    case: Case {
        id: "pfc.pause-single-lossless",
        title: "Test Case #1 - PFC PAUSE with single lossless priority",
        requirement: "The DUT stops one lossless priority, and no other, while PFC pauses it, and \
            loses none of its frames.",
        document: super::DOCUMENT,
        steps: super::LOSSLESS_STEPS,
        assertions: &[],
        checks: &words(&checks::LOSSLESS_STORM),
    },
    // Other lossless priorities of the DUT have no traffic.
    plan: |port, request| {
        planning::lossless_storm(port, request, request.storm.unwrap_or(request.lossless))
    },
    unfold: unfolding::each,
    table: checks::table(&checks::LOSSLESS_STORM),
    sets: Sets {
        lossless: 1..=1,
        why: "the case is about a single lossless priority",
        storm: StormChoice::OfCase,
    },
};
