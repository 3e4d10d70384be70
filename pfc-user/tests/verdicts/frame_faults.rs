//! Faults in the frames themselves, and in which frames the simulated switch takes for which
//! priority's, in virtual time: exactly these checks fail.

use crate::verdicts::faults::{NOT_PAUSED, all_fail_exactly};

/// Every such fault, and the checks that fail for it.
pub(super) const EXPECTED: &[(&str, &[&str])] = &[
    ("maps-own-dscp-alone", NOT_PAUSED),
    ("maps-low-dscps-alone", NOT_PAUSED),
    // Two cases have longer frames here than in a plan.
    (
        "leaks-for-long",
        &["map: *", "paused: sizes", "response: response"],
    ),
    ("loses-short", &["background delivered: sizes"]),
    ("misplaces-dscp", &["map: *", "no-delay: global"]),
    ("misplaces-dscp=11", &["map: *"]),
    ("duplicates-late", &["no-duplicate: *"]),
    ("swaps-words", &["no-corruption: *"]),
    ("zeroes-tail", &["no-corruption: *"]),
    // A frame to another port is no frame of the flow: it is lost, too.
    (
        "changes-port",
        &[
            "no-corruption background delivered test-traffic no-loss only-enabled map: *",
            "own-time replaced victim alive not-late: *",
            "response: response",
            "isolation: multi victim",
            "ignored: enable zero",
        ],
    ),
    ("appends", &["no-resize: *"]),
    // Cases 1 and 2 probe after the storm. Only in case 2 a priority beside the lossy ones goes on,
    // so that the first probe shows it.
    (
        "lossy-obeys-first",
        &["response: multi", "no-delay: lossy global enable"],
    ),
    // The line has room for what the storm holds; a full one, as in the baseline, has none.
    (
        "throttles-lossy-in-storm",
        &[
            "test-traffic only-enabled: *",
            "background: single multi",
            "no-delay: single multi lossy enable",
            "no-dip: single multi lossy enable",
        ],
    ),
    // A tenth is missing: in case 1 the last frame does not come so late that `background` sees it.
    (
        "throttles-lossy-in-storm=90",
        &[
            "test-traffic only-enabled: *",
            "no-delay: single multi lossy enable",
            "no-dip: single multi lossy enable",
            "background: multi",
        ],
    ),
    (
        "delays-lossy-in-storm",
        &[
            "no-delay: single multi lossy global enable",
            "response: multi",
            "no-dip: lossy enable",
        ],
    ),
    // No other storm has an XON in it; the probes of three cases have.
    (
        "delays-lossy-after-xon",
        &[
            "resumes: *",
            "response: single multi",
            "no-delay: zero",
            "no-dip: zero",
        ],
    ),
    ("sends-pause", &["no-pause silent: *"]),
    // A frame whose end is missing is lost.
    (
        "cuts",
        &[
            "no-resize background delivered test-traffic no-loss only-enabled map: *",
            "own-time replaced victim alive not-late: *",
            "response: response",
            "isolation: multi victim",
            "ignored: enable zero",
        ],
    ),
];

#[test]
fn each_fault_fails_exactly_its_checks() {
    all_fail_exactly(EXPECTED);
}
