//! Faults in the frames themselves, and in which frames the simulated switch takes for which
//! priority's, in virtual time: exactly these checks fail.

use crate::faults::{MAPS, all_fail_exactly};

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
        ],
    ),
    ("appends", &ALL.resize),
    // Cases 1 and 2 probe after the storm: no frame is the first in 80 ms.
    ("lossy-obeys-first", &["lossy no-delay", "global no-delay"]),
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
        ],
    ),
];

/// One check in all four cases.
struct InAll {
    duplicate: [&'static str; 4],
    corruption: [&'static str; 4],
    resize: [&'static str; 4],
    pause: [&'static str; 4],
}

const ALL: InAll = InAll {
    duplicate: [
        "single no-duplicate",
        "multi no-duplicate",
        "lossy no-duplicate",
        "global no-duplicate",
    ],
    corruption: [
        "single no-corruption",
        "multi no-corruption",
        "lossy no-corruption",
        "global no-corruption",
    ],
    resize: [
        "single no-resize",
        "multi no-resize",
        "lossy no-resize",
        "global no-resize",
    ],
    pause: [
        "single no-pause",
        "multi no-pause",
        "lossy no-pause",
        "global no-pause",
    ],
};

#[test]
fn each_fault_fails_exactly_its_checks() {
    all_fail_exactly(EXPECTED);
}
