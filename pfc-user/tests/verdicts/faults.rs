//! Each fault of the simulated switch, in virtual time: exactly these checks fail, and a switch
//! without faults passes all.

use std::collections::BTreeSet;

use pfc_ebpf::abi::Trust;
use validator::dut::switch::config::{Scheduler, SwitchConfig};
use validator_core::cases::pfc::CASES;
use validator_core::cases::pfc::port::PortContext;
use validator_core::evidence::pfc::PfcEvidence;
use validator_core::fault::switch::Fault;
use validator_core::verdict::{CheckResult, Verdict};

use crate::bench;
use crate::verdicts::frame_faults;

/// Case, lossless priorities, and the storm where it is not on all of them.
pub(super) type Repetition = (&'static str, &'static [u8], Option<&'static [u8]>);

/// The repetitions of a short plan of all cases.
const REPETITIONS: [Repetition; 24] = [
    ("pfc.pause-single-lossless", &[3], None),
    ("pfc.pause-multi-lossless", &[3, 4], None),
    ("pfc.pause-multi-lossless", &[3, 4], Some(&[3])),
    ("pfc.pause-lossy", &[3], None),
    ("pfc.global-pause", &[3, 4], None),
    ("pfc.enable-vector", &[3, 4], Some(&[])),
    ("pfc.enable-vector", &[3, 4], Some(&[3])),
    ("pfc.class-map", &[3, 4], Some(&[3])),
    ("pfc.class-map", &[3, 4], Some(&[5])),
    ("pfc.sizes", &[3, 4], None),
    ("pfc.sizes", &[3, 4], Some(&[0, 1, 2, 5, 6, 7])),
    ("pfc.zero-time", &[3, 4], None),
    ("pfc.independent-times", &[3, 4], None),
    ("pfc.timer-reload", &[3, 4], None),
    ("pfc.pause-time", &[3, 4], None),
    ("pfc.response-time", &[3, 4], None),
    ("pfc.invalid-frames", &[3, 4], None),
    ("pfc.source-address", &[3, 4], None),
    ("pfc.generation", &[3, 4], None),
    ("pfc.no-congestion", &[3, 4], None),
    ("pfc.oversubscription", &[3], None),
    ("pfc.oversubscription", &[3, 4], None),
    ("pfc.victim", &[3], None),
    ("pfc.victim", &[3, 4], Some(&[3])),
];

/// PFC of another form, which MACs read all the same.
const WELL_FORMED: &[&str] = &["well-formed: *"];

/// PFC that no MAC reads: as none, and of another form.
const UNREAD: &[&str] = &["asks-each well-formed in-time: *", DELIVERED_THROUGH_PFC];

/// Cases in which a switch loses frames that sends no PFC.
const DELIVERED_THROUGH_PFC: &str =
    "delivered: single multi enable class sizes generation oversubscription victim";

/// Every fault, and the checks that fail for it: `check check: case case`, with the short names of
/// the cases, or `*` for every case that has the check.
pub(super) const EXPECTED: &[(&str, &[&str])] = &[
    ("ignores-pfc", NOT_PAUSED),
    (
        "ignores-refresh",
        &[
            "paused only-enabled map replaced: *",
            "response: single multi",
            "alive: invalid",
        ],
    ),
    (
        "off-by-one-class",
        &[
            "others: *",
            "paused response only-enabled map own-time replaced alive still-pauses: *",
            "pauses not-early: *",
            "isolation: multi",
            "no-dip: multi lossy enable",
            "background: lossy",
        ],
    ),
    ("leaks", NOT_PAUSED),
    (
        "pfc-pauses-all",
        &[
            "others: *",
            "test-traffic only-enabled map: *",
            "background: single multi lossy",
            "no-delay: single multi lossy global enable",
            "no-dip: single multi lossy enable",
            "isolation: multi",
        ],
    ),
    // An XON for one of two paused priorities ends the other's pause too.
    (
        "pauses-other-lossless",
        &[
            "only-enabled map resumes own-time replaced: *",
            "isolation: multi",
            "response: multi",
            "no-dip: multi enable",
        ],
    ),
    (
        "lossy-obeys-pfc",
        &[
            "test-traffic map own-time: *",
            "others: *",
            "response: single multi",
            "no-dip: lossy",
            "no-delay: lossy",
        ],
    ),
    (
        "obeys-pause",
        &[
            "no-loss throughput: *",
            "no-delay: global",
            "no-dip: global",
        ],
    ),
    (
        "never-resumes",
        &[
            "others: *",
            "lets-go no-loss throughput only-enabled map own-time replaced alive: *",
            "still-pauses pauses not-late in-time releases: *",
            "response: response",
            "delivered: single multi generation victim",
            "resume: sizes",
            "background: lossy",
            "ignored: enable",
        ],
    ),
    // The sum of a storm's pauses is longer than the wait.
    (
        "adds-up-pauses",
        &[
            "lets-go replaced in-time releases: *",
            "delivered: single multi enable class sizes generation victim",
            "alive: invalid",
        ],
    ),
    ("pauses-longer", LONGER),
    ("pauses-longer=10", LONGER),
    ("pauses-longer=3", &["linear: *"]),
    ("resumes-early", NOT_PAUSED),
    ("resumes-early=1", NOT_PAUSED),
    // A switch that counts quanta of 10 Gbit/s.
    ("resumes-early=90", NOT_PAUSED),
    // Longer than the pauses of pfc.response-time.
    (
        "caps-quanta",
        &[
            "paused only-enabled map own-time replaced alive still-pauses pauses: *",
            "not-early: *",
            "response: single multi",
        ],
    ),
    ("caps-quanta=255", NOT_PAUSED),
    ("swaps-quanta", WRONG_TIME),
    ("reads-first-time", LEAVES_IN_PAUSE),
    ("reads-next-time", LEAVES_IN_PAUSE),
    (
        "ignores-vector",
        &[
            "others: *",
            "only-enabled map resumes replaced: *",
            "response: single multi",
            "isolation: multi",
            "no-dip: multi lossy enable",
            "background: lossy",
            "no-delay: lossy",
            "ignored: enable",
        ],
    ),
    (
        "zero-vector-names-all",
        &[
            "response: single multi",
            "ignored: enable",
            "no-dip: enable",
        ],
    ),
    ("reads-high-vector", NOT_PAUSED),
    // In the storm on lossy priorities it takes 4 for 3, and holds that.
    (
        "reverses-vector",
        &[
            "only-enabled map resumes replaced: *",
            "paused: single multi victim",
            "response: single multi",
            "isolation: multi",
            "no-dip: multi lossy enable",
            "no-delay: lossy",
        ],
    ),
    ("any-opcode", &["ignored: invalid", "alive: invalid"]),
    ("any-destination", &["alive: invalid", "ignored: invalid"]),
    ("neighbour-destination", &["ignored: invalid"]),
    ("half-ethertype", &["ignored: invalid"]),
    ("wants-zeroes", &["still-pauses: *"]),
    ("wants-source", &["pauses: *"]),
    ("dies-of-odd-frame", &["alive: invalid"]),
    (
        "lossy-obeys-beside",
        &["own-time: *", "response: single multi"],
    ),
    // It takes two priorities to share one.
    ("shares-timer", &["own-time replaced: *", "response: multi"]),
    ("keeps-longer", &["replaced: *", "response: single multi"]),
    ("misses-first", EACH_RESPONSE),
    ("slow-when-full", WHEN_FULL),
    ("slow-when-full=3", WHEN_FULL),
    ("ignores-xon", PAUSED_ON),
    ("xon-lets-go", PAUSED_ON),
    ("xon-lets-go=20", PAUSED_ON),
    ("slow-again", SLOW_AGAIN),
    ("xon-ends-all", RESPONSE),
    // In no other case an XON finds no pause.
    (
        "zero-pauses-idle",
        &["resumes: *", "ignored: zero", "no-dip: zero"],
    ),
    ("slow-response", OBEYS_LATE),
    ("slow-at-times", &["response: response"]),
    (
        "loses-held",
        &[
            "others: *",
            "no-loss only-enabled map own-time replaced alive not-late in-time: *",
            "response: response",
            "delivered: single multi enable class sizes generation victim",
            "background: lossy",
            "ignored: enable zero",
        ],
    ),
    (
        "dies-after-pause",
        &["resume: single multi sizes generation"],
    ),
    (
        "no-upstream-pfc",
        &["asks-each in-time: *", DELIVERED_THROUGH_PFC],
    ),
    (
        "asks-early",
        &[
            "map others: *",
            "silent resume: *",
            "isolation: multi victim",
            "background: lossy",
            "ignored: enable zero",
        ],
    ),
    ("asks-late", &["in-time: *", DELIVERED_THROUGH_PFC]),
    ("pfc-from-group", WELL_FORMED),
    ("pfc-reserved-vector", WELL_FORMED),
    ("pfc-unclean-padding", WELL_FORMED),
    ("pfc-long", WELL_FORMED),
    ("pfc-tagged", UNREAD),
    ("pfc-to-bridges", UNREAD),
    ("asks-first-port", &["asks-each: *"]),
    ("asks-all-ports", &["asks-no-other: *"]),
    ("floods", &["no-reflection: oversubscription victim"]),
    ("pauses-all-ports", &["victim: *"]),
    // No frame is lost, and all come in time for the end of the storm.
    ("pauses-all-ports=13107", &["victim: *"]),
    // The probe of case 3, before the storm, fills the buffers too.
    (
        "never-releases-upstream",
        &["resume releases: *", "background: lossy"],
    ),
    (
        "xoff-lossless-in-lossy-storm",
        &["others: *", "map: *", "background: lossy"],
    ),
    (
        "xoff-other-lossless",
        &["only-enabled map: *", "isolation: multi victim"],
    ),
    ("xoff-for-lossy", &["no-pfc-on-lossy silent: *"]),
    // 10 ms of a pause for each 1000 frames: no rate that the tester missed.
    (
        "xoff-for-lossy=20000",
        &[
            "others: *",
            "no-pfc-on-lossy silent test-traffic throughput only-enabled map: *",
            "background: single multi victim",
            "ignored: enable zero",
        ],
    ),
    (
        "drops=lossy",
        &[
            "others: *",
            "delivered: congestion",
            "test-traffic no-loss only-enabled map alive: *",
            "background: single multi victim",
            "no-dip: multi global enable zero victim",
            "ignored: enable zero",
        ],
    ),
    (
        "drops-lossy-in-storm",
        &[
            "others: *",
            "test-traffic no-loss only-enabled map alive: *",
            "background: single multi",
            "no-dip: multi enable",
            "ignored: enable zero",
        ],
    ),
    // Traffic that the line does not carry fills the buffers, and an XOFF withholds it.
    (
        "throttles",
        &[
            "throughput only-enabled silent: *",
            "resume: single",
            "no-dip: single multi lossy global enable zero",
            "isolation: multi",
            "background: lossy",
            "no-delay: global",
            "ignored: enable zero",
        ],
    ),
    (
        "dips",
        &[
            "no-dip throughput only-enabled silent: *",
            "isolation: multi victim",
            "background: lossy",
            "no-delay: global",
            "ignored: enable zero",
        ],
    ),
    // On a full line frames wait for what is sent twice.
    ("duplicates", &["no-duplicate: *", "no-delay: global"]),
    // A number that hits no flow's last frame of the storm, which would wait in vain for the next.
    ("reorders", &["no-reorder: *"]),
    ("corrupts", &["no-corruption: *"]),
    ("remarks", &["no-remark: *"]),
    ("forwards-control", &["no-mac-control-forwarded: *"]),
    ("reflects-control", &["no-mac-control-forwarded: *"]),
    ("reflects", &["no-reflection: *"]),
    // Losses that only some of the traffic shows. One frame in 100 is no dip below 0.99.
    // An odd number: frames of two lossless flows take turns.
    (
        "drops=lossless:99",
        &[
            "others: *",
            "delivered no-loss only-enabled map own-time replaced victim alive not-late: *",
            "response: response",
            "isolation: multi victim",
            "background: lossy",
            "ignored: enable zero",
        ],
    ),
];

/// Pauses that no storm shows to be wrong.
const RESPONSE: &[&str] = &["response: single multi"];

/// Pauses of any frame.
const EACH_RESPONSE: &[&str] =
    &["response own-time replaced alive still-pauses pauses not-early: *"];

/// Pauses of another time: some end too soon, and others too late.
const WRONG_TIME: &[&str] = &[
    "own-time replaced alive still-pauses pauses not-early not-late: *",
    "response: single multi",
];

/// Pauses that a slow drain follows.
const SLOW_AGAIN: &[&str] = &[
    "own-time replaced alive still-pauses pauses not-late: *",
    "response: single multi",
];

/// Pauses that begin and end too late.
const OBEYS_LATE: &[&str] = &[
    "lets-go response own-time replaced alive still-pauses pauses not-late: *",
    "not-early: *",
];

/// Pauses on a full link.
const WHEN_FULL: &[&str] = &["response own-time replaced: *"];

/// Frames that leave in a storm.
pub(super) const NOT_PAUSED: &[&str] = &[
    "paused response only-enabled map own-time replaced alive still-pauses: *",
    "pauses not-early: *",
];

/// Lossless priorities are not known as such.
const NOT_LOSSLESS: &[&str] = &[
    "paused response only-enabled map own-time replaced asks-each alive: *",
    "still-pauses pauses not-early: *",
    "delivered: oversubscription",
];

/// Frames that leave in a pause, in cases 1 and 2.
pub(super) const LEAVES_IN_PAUSE: &[&str] =
    &["paused response map own-time replaced alive still-pauses pauses not-early: *"];

/// Pauses that go on after an XON.
const PAUSED_ON: &[&str] = &["xon resumes: *"];

/// Pauses that end too late.
pub(super) const LONGER: &[&str] = &[
    "lets-go own-time replaced alive still-pauses pauses not-late linear: *",
    "response: single multi",
];

/// Traffic is paused by another field than it should be.
const OTHER_FIELD: &[&str] = &[
    "others: *",
    "paused response only-enabled map resumes own-time replaced asks-each alive: *",
    "still-pauses pauses not-early: *",
    "background: single multi",
    "no-dip: single multi enable",
    "no-delay: lossy global enable",
    "delivered: oversubscription",
];

/// Faults in reading the marks: the fields in the frames, and the checks that fail.
const MARKS: &[(&str, Marks, &[&str])] = &[
    ("trusts-dscp", PCP, OTHER_FIELD),
    // In case 4 the low bits of a code point of priority 0 name a lossless one.
    (
        "maps-low-bits",
        DSCP_HIGH_BITS,
        &[
            "paused response only-enabled map own-time replaced asks-each alive: *",
            "still-pauses pauses not-early: *",
            "no-delay: global",
            "delivered: oversubscription",
        ],
    ),
    // Without a tag everything has priority 0.
    ("trusts-pcp", DSCP, NOT_LOSSLESS),
    ("trusts-pcp", DSCP_TAGGED, OTHER_FIELD),
];

/// The field that the switch is to trust, and whether frames are tagged where that is the DSCP.
#[derive(Clone, Copy, Debug)]
struct Marks {
    trust: Trust,
    vlan: bool,
    /// Priority by DSCP.
    map: fn(u8) -> u8,
}

const DSCP: Marks = Marks {
    trust: Trust::Dscp,
    vlan: false,
    map: |dscp| dscp % 8,
};
/// Priorities by the high bits of the DSCP.
const DSCP_HIGH_BITS: Marks = Marks {
    map: |dscp| dscp / 8,
    ..DSCP
};
const DSCP_TAGGED: Marks = Marks { vlan: true, ..DSCP };
const PCP: Marks = Marks {
    trust: Trust::Pcp,
    ..DSCP
};

/// Such lines, as one `case check` for each.
pub(super) fn each(lines: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in lines {
        let (checks, cases) = line.split_once(": ").expect("`check check: case case`");
        for check in checks.split(' ') {
            let having = CASES.iter().filter(|case| case.has_check(check));
            let having: Vec<_> = having.map(|case| short(case.case.id)).collect();
            let named = match cases {
                "*" => having.clone(),
                cases => cases.split(' ').collect(),
            };
            assert!(!named.is_empty(), "no case has {check}");
            for case in named {
                assert!(having.contains(&case), "{case} has no {check}");
                assert!(found.insert(format!("{case} {check}")), "twice: {line}");
            }
        }
    }
    found
}

/// The short name of a case: the first word that only it has.
pub(super) fn short(id: &str) -> &str {
    id.trim_start_matches("pfc.")
        .trim_start_matches("pause-")
        .trim_start_matches("no-")
        .split('-')
        .next()
        .unwrap()
}

/// Runs all repetitions against a switch with these faults; results with the case's short name.
fn run(marks: Marks, faults: &[Fault]) -> Vec<(&'static str, CheckResult)> {
    let port = PortContext {
        trust: marks.trust,
        vlan: marks.vlan,
        dscp_map: bench::dscp_map(marks.map),
        shortest: bench::shortest(marks.trust, marks.vlan),
        ..bench::port()
    };
    let run_one = |(id, lossless, storm): Repetition| {
        let plan = bench::plan_at(&port, id, lossless, storm);
        let evidence = bench::run_trusting(marks.trust, marks.map, &plan, faults);
        bench::case(id)
            .judge(&evidence)
            .checks
            .into_iter()
            .map(move |result| (short(id), result))
            .collect::<Vec<_>>()
    };
    REPETITIONS.into_iter().flat_map(run_one).collect()
}

/// The checks with that verdict, as `case check`.
pub(super) fn with(results: &[(&str, CheckResult)], verdict: Verdict) -> BTreeSet<String> {
    results
        .iter()
        .filter(|(_, result)| result.verdict == verdict)
        .map(|(case, result)| format!("{case} {}", result.check))
        .collect()
}

/// The DUT is a straight cable: the sender must not stop for the storm of its own tester.
#[test]
fn a_forwarded_storm_stops_no_sender_and_is_not_the_switch_s_pfc() {
    let both = ["ignores-pfc", "forwards-control"];
    let results = run(DSCP, &both.map(|fault| fault.parse().unwrap()));
    let mut expected: BTreeSet<String> = EXPECTED
        .iter()
        .filter(|(fault, _)| both.contains(fault))
        .flat_map(|(_, checks)| each(checks))
        .collect();
    // Nothing tells a frame from 00-00-00-00-00-00 from the switch's own.
    assert!(expected.remove("source pauses"));
    assert!(with(&results, Verdict::Inconclusive).contains("source pauses"));
    assert!(expected.contains("single paused") && expected.contains("single response"));
    assert_eq!(with(&results, Verdict::Fail), expected);
}

#[test]
fn a_switch_without_faults_passes_every_check() {
    let all = [DSCP, DSCP_TAGGED, DSCP_HIGH_BITS, PCP].map(|marks| run(marks, &[]));
    for (case, result) in all.into_iter().flatten() {
        let expected = if has_subject(case, &result) {
            Verdict::Pass
        } else {
            Verdict::NotApplicable
        };
        assert_eq!(
            result.verdict, expected,
            "{case} {} [{}]: {}",
            result.check, result.repetition, result.reason
        );
    }
}

/// True if the check of that case, by its short name, says something in that repetition.
fn has_subject(case: &str, result: &CheckResult) -> bool {
    let names_none = result.repetition.ends_with("storm on none");
    let holds_none = result.repetition.ends_with("5") || result.repetition.ends_with("5+6+7");
    match result.check.as_str() {
        // A lossless priority outside the storm.
        "isolation" => result.repetition.contains("storm on"),
        "ignored" => case != "enable" || names_none,
        "only-enabled" => !names_none,
        "paused" | "delivered" | "resume" => !names_none && !holds_none,
        _ => true,
    }
}

/// Every check of the repetition that does not pass, with its reason, where it has a subject.
fn not_passed(repetition: Repetition, scheduler: Scheduler, faults: &[&str]) -> Vec<CheckResult> {
    let (id, lossless, storm) = repetition;
    let faults: Vec<Fault> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    let evidence = bench::run_scheduled(scheduler, &bench::plan(id, lossless, storm), &faults);
    not_good(repetition, &evidence)
}

/// The same of evidence.
fn not_good((id, _, _): Repetition, evidence: &PfcEvidence) -> Vec<CheckResult> {
    let results = bench::case(id).judge(evidence).checks.into_iter();
    let good = |result: &CheckResult| match result.verdict {
        Verdict::NotApplicable => !has_subject(short(id), result),
        verdict => verdict == Verdict::Pass,
    };
    results.filter(|result| !good(result)).collect()
}

/// Sets in which the order tells most: the highest priority, the lowest, and seven of eight.
const ORDERED: [Repetition; 4] = [
    ("pfc.pause-single-lossless", &[7], None),
    ("pfc.pause-single-lossless", &[0], None),
    ("pfc.pause-multi-lossless", &[0, 1, 2, 3, 4, 5, 6], None),
    ("pfc.independent-times", &[1, 3, 4, 6], None),
];

#[test]
fn a_good_switch_passes_with_each_scheduler() {
    for scheduler in Scheduler::ALL {
        // The plan in turn is what a switch without faults passes above.
        let plan = REPETITIONS
            .into_iter()
            .filter(|_| scheduler != Scheduler::RoundRobin);
        for repetition in plan.chain(ORDERED) {
            let found = not_passed(repetition, scheduler, &[]);
            assert!(
                found.is_empty(),
                "{scheduler:?}, {repetition:?}: {found:#?}"
            );
        }
    }
}

/// XON is a switch's choice (IEEE 802.1Q, clause 36): its last XOFF may as well run out.
#[test]
fn a_good_switch_that_never_sends_xon_passes_with_each_scheduler() {
    let strict: fn(&mut SwitchConfig) = |config| {
        config.sends_xon = false;
        config.scheduler = Scheduler::Strict;
    };
    for configure in [strict, |config| config.sends_xon = false] {
        for repetition in REPETITIONS {
            let (id, lossless, storm) = repetition;
            let plan = bench::plan(id, lossless, storm);
            let evidence = bench::run_configured(&plan, &[], configure);
            assert!(
                evidence
                    .ports
                    .tx
                    .counts
                    .pfc
                    .iter()
                    .all(|class| class.xon == 0)
            );
            let found = not_good(repetition, &evidence);
            assert!(found.is_empty(), "{repetition:?}: {found:#?}");
        }
    }
}

#[test]
fn a_pause_a_tenth_longer_fails_with_each_scheduler() {
    for scheduler in Scheduler::ALL {
        for repetition in [REPETITIONS[1], ORDERED[2]] {
            let found = not_passed(repetition, scheduler, &["pauses-longer=10"]);
            let found: Vec<_> = found
                .iter()
                .map(|result| (result.check.as_str(), result.verdict))
                .collect();
            let expected = [
                ("lets-go", Verdict::Fail),
                ("response", Verdict::Fail),
                ("xon", Verdict::Skipped),
            ];
            assert_eq!(found, expected, "{scheduler:?}, {repetition:?}");
        }
    }
}

/// The faults up to this one in the table, and the later ones: one test each, side by side.
const HALF: &str = "dies-after-pause";

fn halves() -> [&'static [(&'static str, &'static [&'static str])]; 2] {
    let half = EXPECTED.iter().position(|(fault, _)| *fault == HALF);
    EXPECTED.split_at(half.unwrap() + 1).into()
}

#[test]
fn each_fault_of_the_first_half_fails_exactly_its_checks() {
    all_fail_exactly(halves()[0]);
}

#[test]
fn each_fault_of_the_second_half_fails_exactly_its_checks() {
    all_fail_exactly(halves()[1]);
}

#[test]
fn a_switch_that_reads_the_wrong_mark_fails() {
    let wrong: Vec<_> = MARKS
        .iter()
        .filter_map(|(fault, marks, expected)| wrong_failures(fault, *marks, expected))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_switch_that_reads_the_wrong_mark_is_good_where_that_is_the_right_one() {
    for (fault, marks) in [
        ("trusts-dscp", DSCP_TAGGED),
        ("trusts-pcp", PCP),
        ("maps-low-bits", DSCP),
    ] {
        fails_exactly(fault, marks, &[]);
    }
}

/// Expects that of each of these faults, and tells of all that differ.
pub(super) fn all_fail_exactly(faults: &[(&str, &[&str])]) {
    let wrong: Vec<_> = faults
        .iter()
        .filter_map(|(fault, expected)| wrong_failures(fault, DSCP, expected))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn fails_exactly(fault: &str, marks: Marks, expected: &[&str]) {
    assert_eq!(wrong_failures(fault, marks, expected), None);
}

/// The checks that fail for this fault, with their reasons, where they are not those.
fn wrong_failures(fault: &str, marks: Marks, expected: &[&str]) -> Option<String> {
    let results = run(marks, &[fault.parse().unwrap()]);
    let expected = each(expected);
    let reasons: Vec<_> = results
        .iter()
        .filter(|(_, result)| result.verdict == Verdict::Fail)
        .map(|(_, result)| &result.reason)
        .collect();
    let failed = with(&results, Verdict::Fail);
    if failed != expected {
        let (more, less) = (failed.difference(&expected), expected.difference(&failed));
        let (more, less): (Vec<_>, Vec<_>) = (more.collect(), less.collect());
        return Some(format!(
            "{fault}, {marks:?}: {more:?} fail too, {less:?} do not; {reasons:#?}"
        ));
    }
    // Only checks that depend on a failed check are skipped.
    for (case, result) in results
        .iter()
        .filter(|(_, result)| result.verdict == Verdict::Skipped)
    {
        let case = CASES
            .iter()
            .find(|other| short(other.case.id) == *case)
            .unwrap();
        let check = case
            .case
            .checks
            .iter()
            .find(|check| check.id == result.check)
            .unwrap();
        let failed = |on: &&str| {
            results.iter().any(|(_, other)| {
                other.repetition == result.repetition
                    && other.check == **on
                    && matches!(other.verdict, Verdict::Fail | Verdict::Skipped)
            })
        };
        assert!(
            check.depends_on.iter().any(failed),
            "{fault}: {} {}",
            case.case.id,
            result.check
        );
    }
    None
}

#[test]
fn every_fault_is_expected_to_fail_something() {
    for entry in Fault::CATALOGUE {
        let marks = MARKS.iter().map(|(fault, _, checks)| (fault, checks));
        let mut all = EXPECTED
            .iter()
            .chain(frame_faults::EXPECTED)
            .map(|(fault, checks)| (fault, checks))
            .chain(marks);
        let fails = all.any(|(fault, checks)| {
            fault.split('=').next() == Some(entry.name) && !checks.is_empty()
        });
        assert!(fails, "{}", entry.name);
    }
}

#[test]
fn the_fault_that_a_table_names_fails_that_check() {
    for case in &CASES {
        for check in case.case.checks {
            let fails = format!("{} {}", short(case.case.id), check.id);
            // With one lossless priority, which is stormed, there is nothing to isolate; case 2 has
            // the subject.
            if fails == "single isolation" {
                continue;
            }
            let named = EXPECTED
                .iter()
                .chain(frame_faults::EXPECTED)
                .filter(|(fault, _)| fault.split('=').next() == Some(check.fault));
            assert!(
                named
                    .map(|(_, checks)| each(checks))
                    .any(|checks| checks.contains(&fails)),
                "{fails} by {}",
                check.fault
            );
        }
    }
}
