//! Faults in the frames themselves, and in which frames the simulated switch takes for which
//! priority's, in virtual time: exactly these checks fail.

use crate::verdicts::faults::{MAPS, all_fail_exactly};

/// Every such fault, and the checks that fail for it.
pub(super) const EXPECTED: &[(&str, &[&str])] = &[
    ("maps-own-dscp-alone", MAPS),
    ("maps-low-dscps-alone", MAPS),
    ("duplicates-late", &ALL.duplicate),
    ("swaps-words", &ALL.corruption),
    ("zeroes-tail", &ALL.corruption),
    // A frame to another port is no frame of the flow: it is lost, too.
    (
        "changes-port",
        &[
            "single no-corruption",
            "single background",
            "single delivered",
            "multi no-corruption",
            "multi background",
            "multi delivered",
            "multi isolation",
            "lossy no-corruption",
            "lossy background",
            "lossy test-traffic",
            "global no-corruption",
            "global no-loss",
            "enable delivered",
            "enable ignored",
            "enable no-corruption",
            "enable only-enabled",
            "zero ignored",
            "zero no-corruption",
        ],
    ),
    ("appends", &ALL.resize),
    // Cases 1 and 2 probe after the storm. Only in case 2 a priority beside the lossy ones goes on,
    // so that the first probe shows it.
    (
        "lossy-obeys-first",
        &[
            "multi response",
            "lossy no-delay",
            "global no-delay",
            "enable no-delay",
        ],
    ),
    // The line has room for what the storm holds; a full one, as in the baseline, has none.
    (
        "throttles-lossy-in-storm",
        &[
            "single background",
            "single no-delay",
            "single no-dip",
            "multi background",
            "multi no-delay",
            "multi no-dip",
            "lossy test-traffic",
            "lossy no-delay",
            "lossy no-dip",
            "enable no-delay",
            "enable no-dip",
            "enable only-enabled",
        ],
    ),
    // A tenth is missing: in case 1 the last frame does not come so late that `background` sees it.
    (
        "throttles-lossy-in-storm=90",
        &[
            "single no-delay",
            "single no-dip",
            "multi background",
            "multi no-delay",
            "multi no-dip",
            "lossy test-traffic",
            "lossy no-delay",
            "lossy no-dip",
            "enable no-delay",
            "enable no-dip",
            "enable only-enabled",
        ],
    ),
    (
        "delays-lossy-in-storm",
        &[
            "single no-delay",
            "multi no-delay",
            "multi response",
            "lossy no-delay",
            "lossy no-dip",
            "global no-delay",
            "enable no-delay",
            "enable no-dip",
        ],
    ),
    // No other storm has an XON in it; the probes of three cases have.
    (
        "delays-lossy-after-xon",
        &[
            "single response",
            "multi response",
            "zero no-delay",
            "zero no-dip",
            "zero resumes",
        ],
    ),
    ("sends-pause", &ALL.pause),
    // A frame whose end is missing is lost.
    (
        "cuts",
        &[
            "single no-resize",
            "single background",
            "single delivered",
            "multi no-resize",
            "multi background",
            "multi delivered",
            "multi isolation",
            "lossy no-resize",
            "lossy background",
            "lossy test-traffic",
            "global no-resize",
            "global no-loss",
            "enable delivered",
            "enable ignored",
            "enable no-resize",
            "enable only-enabled",
            "zero ignored",
            "zero no-resize",
        ],
    ),
];

/// One check in all cases.
struct InAll {
    duplicate: [&'static str; 6],
    corruption: [&'static str; 6],
    resize: [&'static str; 6],
    pause: [&'static str; 6],
}

const ALL: InAll = InAll {
    duplicate: [
        "single no-duplicate",
        "multi no-duplicate",
        "lossy no-duplicate",
        "global no-duplicate",
        "enable no-duplicate",
        "zero no-duplicate",
    ],
    corruption: [
        "single no-corruption",
        "multi no-corruption",
        "lossy no-corruption",
        "global no-corruption",
        "enable no-corruption",
        "zero no-corruption",
    ],
    resize: [
        "single no-resize",
        "multi no-resize",
        "lossy no-resize",
        "global no-resize",
        "enable no-resize",
        "zero no-resize",
    ],
    pause: [
        "single no-pause",
        "multi no-pause",
        "lossy no-pause",
        "global no-pause",
        "enable no-pause",
        "zero no-pause",
    ],
};

#[test]
fn each_fault_fails_exactly_its_checks() {
    all_fail_exactly(EXPECTED);
}
