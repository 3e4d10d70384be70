//! Faults in the frames themselves, and in which frames the simulated switch takes for which
//! priority's, in virtual time: exactly these checks fail.

use validator_core::verdict::Verdict;

use crate::bench;
use crate::verdicts::faults::{NOT_PAUSED, all_fail_exactly};

/// `delivered`, but in pfc.class-map, whose stormed flows have too few frames for one in 1000.
const DELIVERED_BUT_OF_FEW: &str =
    "delivered: single multi enable sizes generation congestion oversubscription victim";

/// Every such fault, and the checks that fail for it.
pub(super) const EXPECTED: &[(&str, &[&str])] = &[
    ("maps-own-dscp-alone", NOT_PAUSED),
    ("maps-low-dscps-alone", NOT_PAUSED),
    // Two cases have longer frames here than in a plan.
    (
        "leaks-for-long",
        &["map: *", "paused: sizes", "response: response"],
    ),
    ("loses-short", &["others: *", "delivered: sizes"]),
    ("misplaces-dscp", &["map: *", "no-delay: global"]),
    ("misplaces-dscp=11", &["map: *"]),
    ("duplicates-late", &["no-duplicate: *"]),
    ("swaps-words", &["no-corruption: *"]),
    ("zeroes-tail", &["no-corruption: *"]),
    // A frame to another port is no frame of the flow: it is lost, too.
    (
        "changes-port",
        &[
            DELIVERED_BUT_OF_FEW,
            "no-corruption background others test-traffic no-loss only-enabled map: *",
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
            "test-traffic only-enabled map: *",
            "background: single multi",
            "no-delay: single multi lossy enable",
            "no-dip: single multi lossy enable",
        ],
    ),
    // A tenth is missing: in case 1 the last frame does not come so late that `background` sees it.
    (
        "throttles-lossy-in-storm=90",
        &[
            "test-traffic only-enabled map: *",
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
            DELIVERED_BUT_OF_FEW,
            "no-resize background others test-traffic no-loss only-enabled map: *",
            "own-time replaced victim alive not-late: *",
            "response: response",
            "isolation: multi victim",
            "ignored: enable zero",
        ],
    ),
];

#[test]
fn a_finding_names_the_size_where_frames_have_several() {
    let plan = bench::plan("pfc.sizes", &[3, 4], None);
    let evidence = bench::run(&plan, &["loses-short".parse().unwrap()]);
    let checks = bench::case("pfc.sizes").judge(&evidence).checks;
    let delivered = checks.iter().find(|check| check.check == "delivered");
    let failed: Vec<_> = delivered
        .unwrap()
        .assertions
        .iter()
        .filter(|assertion| assertion.verdict == Verdict::Fail)
        .map(|assertion| assertion.what.rsplit_once(", ").unwrap().1.to_owned())
        .collect();
    for size in [60, 61, 123, 124] {
        let named = failed
            .iter()
            .filter(|what| what.starts_with(&format!("{size} octets)")));
        assert_eq!(named.count(), 2, "{size}: {failed:?}");
    }
    assert_eq!(failed.len(), 8, "{failed:?}");
}

#[test]
fn each_fault_fails_exactly_its_checks() {
    all_fail_exactly(EXPECTED);
}
