//! Faults in the frames themselves, and in which frames the simulated switch takes for which
//! priority's, in virtual time: exactly these checks fail.

use crate::verdicts::faults::{NOT_PAUSED, all_fail_exactly, in_all};

/// Every such fault, and the checks that fail for it.
pub(super) const EXPECTED: &[(&str, &[&str])] = &[
    ("maps-own-dscp-alone", NOT_PAUSED),
    ("maps-low-dscps-alone", NOT_PAUSED),
    ("duplicates-late", in_all!("no-duplicate")),
    ("swaps-words", in_all!("no-corruption")),
    ("zeroes-tail", in_all!("no-corruption")),
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
            "independent no-corruption",
            "timer no-corruption",
            "independent own-time",
            "timer replaced",
            "oversubscription delivered",
            "oversubscription no-corruption",
            "victim background",
            "victim delivered",
            "victim isolation",
            "victim no-corruption",
            "victim victim",
            "invalid alive",
            "invalid no-corruption",
        ],
    ),
    ("appends", in_all!("no-resize")),
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
    ("sends-pause", in_all!("no-pause")),
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
            "independent no-resize",
            "timer no-resize",
            "independent own-time",
            "timer replaced",
            "oversubscription delivered",
            "oversubscription no-resize",
            "victim background",
            "victim delivered",
            "victim isolation",
            "victim no-resize",
            "victim victim",
            "invalid alive",
            "invalid no-resize",
        ],
    ),
];

#[test]
fn each_fault_fails_exactly_its_checks() {
    all_fail_exactly(EXPECTED);
}
