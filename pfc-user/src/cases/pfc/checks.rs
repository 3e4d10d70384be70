//! The checks of the PFC cases: rows of each case's table, said once.

use crate::case::Check;

const WHILE_STORM: &[&str] = &[
    "ports",
    "accounting",
    "baseline",
    "rate",
    "storm-continuity",
];
const LOSSLESS_IN_STORM: &[&str] = &[
    "ports",
    "accounting",
    "baseline",
    "rate",
    "storm-continuity",
    "honoured",
];
const DOES_NOTHING: &[&str] = &[
    "ports",
    "accounting",
    "baseline",
    "rate",
    "storm-continuity",
    "storm-arrival",
];
const LOSES_NOTHING: &[&str] = &[
    "ports",
    "accounting",
    "baseline",
    "rate",
    "storm-continuity",
    "storm-arrival",
    "honoured",
];
const COUNTED: &[&str] = &["ports", "accounting", "baseline"];

pub(super) const PAUSED: Check = Check {
    id: "paused",
    step: "4",
    beyond: false,
    passes_when: "no storm-phase test frame is received between the start of data and (last pause frame's departure + pause time)",
    tolerance: "2 quanta + 100 ppm (802.3 clock tolerance); frames that a gap of the storm let go, up to max_response and the path's latency after it, make it inconclusive",
    preconditions: WHILE_STORM,
    depends_on: &[],
    fault: "ignores-pfc",
};

pub(super) const BACKGROUND: Check = Check {
    id: "background",
    step: "4",
    beyond: false,
    passes_when: "every frame of the lossy priorities is received, those of the storm phase while the storm still runs",
    tolerance: "",
    preconditions: WHILE_STORM,
    depends_on: &[],
    fault: "drops-lossy-in-storm",
};

pub(super) const ISOLATION: Check = Check {
    id: "isolation",
    step: "4",
    beyond: true,
    passes_when: "lossless priorities that are not stormed are not paused: all their frames received, while the storm still runs",
    tolerance: "",
    preconditions: LOSSLESS_IN_STORM,
    depends_on: &[],
    fault: "pauses-other-lossless",
};

pub(super) const DELIVERED: Check = Check {
    id: "delivered",
    step: "5",
    beyond: true,
    passes_when: "after the storm the DUT drains: every test frame that left is received",
    tolerance: "bounded wait of 2 s",
    preconditions: &["ports", "accounting", "baseline", "honoured"],
    depends_on: &[],
    fault: "loses-held",
};

pub(super) const RESUME: Check = Check {
    id: "resume",
    step: "7",
    beyond: false,
    passes_when: "after draining, every resume-phase test frame is received",
    tolerance: "bounded wait of 2 s",
    preconditions: &["ports", "accounting", "baseline", "rate", "honoured"],
    depends_on: &["delivered"],
    fault: "dies-after-pause",
};

pub(super) const RESPONSE: Check = Check {
    id: "response",
    step: "probe",
    beyond: true,
    passes_when: "on running traffic one XOFF: the last frame within max_response, none before its quanta expired, none lost",
    tolerance: "2 quanta + 100 ppm + the measured uncertainty of the departure",
    preconditions: &["ports", "accounting", "probe-latency", "honoured"],
    depends_on: &["resume"],
    fault: "slow-response",
};

pub(super) const XON: Check = Check {
    id: "xon",
    step: "probe",
    beyond: true,
    passes_when: "XOFF, then XON (time 0): traffic resumes within max_response, before the quanta would have expired",
    tolerance: "the measured uncertainty of the departure",
    preconditions: &["ports", "accounting", "probe-latency"],
    depends_on: &["response"],
    fault: "ignores-xon",
};

pub(super) const TEST_TRAFFIC: Check = Check {
    id: "test-traffic",
    step: "4",
    beyond: false,
    passes_when: "storm on the lossy priorities: every frame of theirs is received, those of the storm phase while the storm still runs",
    tolerance: "",
    preconditions: DOES_NOTHING,
    depends_on: &[],
    fault: "lossy-obeys-pfc",
};

pub(super) const BACKGROUND_LOSSLESS: Check = Check {
    id: "background",
    step: "4",
    beyond: false,
    passes_when: "every frame of the lossless priority is received, those of the storm phase while the storm still runs",
    tolerance: "",
    preconditions: LOSES_NOTHING,
    depends_on: &[],
    fault: "pfc-pauses-all",
};

pub(super) const NO_DIP: Check = Check {
    id: "no-dip",
    step: "4",
    beyond: true,
    passes_when: "no 100 ms window in which less than 0.99 of what was offered in it arrives",
    tolerance: "0.01 of a window; a stall above 0.5 ms of tester or simulated DUT in it makes it inconclusive",
    preconditions: DOES_NOTHING,
    depends_on: &[],
    fault: "dips",
};

pub(super) const NO_LOSS: Check = Check {
    id: "no-loss",
    step: "5",
    beyond: false,
    passes_when: "802.3x storm, all 64 DSCPs at line rate: every frame is received, those of the storm phase while the storm still runs",
    tolerance: "",
    preconditions: LOSES_NOTHING,
    depends_on: &[],
    fault: "obeys-pause",
};

pub(super) const THROUGHPUT: Check = Check {
    id: "throughput",
    step: "5",
    beyond: false,
    passes_when: "received layer-1 rate >= min_throughput x offered; time withheld by the DUT's XOFF counts as offered",
    tolerance: "min_throughput (testbed, 0.99); lateness of the tester makes it inconclusive, never a pass",
    preconditions: DOES_NOTHING,
    depends_on: &[],
    fault: "throttles",
};

pub(super) const NO_PFC_ON_LOSSY: Check = Check {
    id: "no-pfc-on-lossy",
    step: "Overview",
    beyond: false,
    passes_when: "the DUT sends no XOFF (time > 0) for a lossy priority",
    tolerance: "",
    preconditions: &["ports", "pfc-visible"],
    depends_on: &[],
    fault: "xoff-for-lossy",
};

pub(super) const NO_DUPLICATE: Check = Check {
    id: "no-duplicate",
    step: "-",
    beyond: true,
    passes_when: "no sequence number arrives twice, over all phases",
    tolerance: "window of 1024 frames",
    preconditions: COUNTED,
    depends_on: &[],
    fault: "duplicates",
};

pub(super) const NO_REORDER: Check = Check {
    id: "no-reorder",
    step: "-",
    beyond: true,
    passes_when: "no frame arrives after a later one of its flow (RFC 4737), over all phases",
    tolerance: "window of 1024 frames",
    preconditions: COUNTED,
    depends_on: &[],
    fault: "reorders",
};

pub(super) const NO_CORRUPTION: Check = Check {
    id: "no-corruption",
    step: "-",
    beyond: true,
    passes_when: "every checksum and every stamp is right, over all phases",
    tolerance: "above 3 million frames/s the UDP checksum is that of one frame in 16, evenly spread over each flow; the finding says of how many",
    preconditions: COUNTED,
    depends_on: &[],
    fault: "corrupts",
};

pub(super) const NO_REMARK: Check = Check {
    id: "no-remark",
    step: "-",
    beyond: true,
    passes_when: "the trusted field (DSCP or PCP) arrives as it was sent, over all phases; CE may be set",
    tolerance: "",
    preconditions: COUNTED,
    depends_on: &[],
    fault: "remarks",
};

pub(super) const NO_MAC_CONTROL_FORWARDED: Check = Check {
    id: "no-mac-control-forwarded",
    step: "-",
    beyond: true,
    passes_when: "no PAUSE/PFC frame of the rx port's storm appears at the tx port",
    tolerance: "",
    preconditions: &["ports", "pfc-visible"],
    depends_on: &[],
    fault: "forwards-control",
};

/// The table of cases 1 and 2.
pub(super) const LOSSLESS_STORM: &[Check] = &[
    PAUSED,
    BACKGROUND,
    ISOLATION,
    DELIVERED,
    RESUME,
    RESPONSE,
    XON,
    NO_PFC_ON_LOSSY,
    NO_DUPLICATE,
    NO_REORDER,
    NO_CORRUPTION,
    NO_REMARK,
    NO_MAC_CONTROL_FORWARDED,
];

/// The table of case 3.
pub(super) const LOSSY_STORM: &[Check] = &[
    TEST_TRAFFIC,
    BACKGROUND_LOSSLESS,
    NO_DIP,
    NO_PFC_ON_LOSSY,
    NO_DUPLICATE,
    NO_REORDER,
    NO_CORRUPTION,
    NO_REMARK,
    NO_MAC_CONTROL_FORWARDED,
];

/// The table of case 4.
pub(super) const GLOBAL_PAUSE: &[Check] = &[
    NO_LOSS,
    THROUGHPUT,
    NO_PFC_ON_LOSSY,
    NO_DUPLICATE,
    NO_REORDER,
    NO_CORRUPTION,
    NO_REMARK,
    NO_MAC_CONTROL_FORWARDED,
];
