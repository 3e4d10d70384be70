//! Counts over all phases, interrupted repetitions, and from repetitions to a case and its exit
//! code.

use pfc_ebpf::wire::Malformed;
use validator_core::cases;
use validator_core::evidence::{CaseEvidence, Omitted, Repetition};
use validator_core::verdict::Exit;

use super::*;

#[test]
fn an_interrupted_repetition_is_not_judged() {
    for (case, ..) in REPETITIONS {
        let interrupted = |e: &mut PfcEvidence| {
            e.interrupted = true;
            leak(e, e.span(Phase::Storm).unwrap().from + MS);
        };
        tampered(
            "interrupted",
            case,
            interrupted,
            &all(
                &every_check_with_isolation(case),
                INCONCLUSIVE,
                "the repetition was interrupted",
            ),
        );
    }
}

fn every_check_with_isolation(case: &str) -> Vec<&'static str> {
    bench::case(case)
        .case
        .checks
        .iter()
        .map(|check| check.id)
        .collect()
}

#[test]
fn integrity_counts_fail_and_what_cannot_be_told_is_inconclusive() {
    for (case, ..) in REPETITIONS {
        let first =
            |tamper: fn(&mut FlowReceived)| move |e: &mut PfcEvidence| tamper(&mut e.received[0]);
        tampered(
            "a duplicate",
            case,
            first(|flow| flow.duplicate = 1),
            &[("no-duplicate", FAIL, "found 1")],
        );
        tampered(
            "a late frame",
            case,
            first(|flow| flow.reordered = 1),
            &[("no-reorder", FAIL, "found 1")],
        );
        tampered(
            "a wrong checksum",
            case,
            first(|flow| flow.corrupt = 1),
            &[("no-corruption", FAIL, "found 1")],
        );
        tampered(
            "a re-mark",
            case,
            first(|flow| flow.remarked = 1),
            &[("no-remark", FAIL, "found 1")],
        );
        // It may be what is missing.
        let arrives = match case {
            LOSSY => "test-traffic",
            GLOBAL => "no-loss",
            _ => "delivered",
        };
        let mut beyond = all(&[arrives, "no-duplicate"], INCONCLUSIVE, "too far behind");
        // Late, or a copy of one that is lost: neither is in order.
        beyond.push(("no-reorder", FAIL, "expected 0, found 1"));
        let late = |flow: &mut FlowReceived| {
            flow.frames -= 1;
            flow.beyond_window = 1;
        };
        tampered(
            "a frame that comes beyond the window",
            case,
            first(late),
            &beyond,
        );
        tampered(
            "a frame beyond the window, and none missing",
            case,
            first(|flow| flow.beyond_window = 1),
            &[("no-duplicate", FAIL, "found 1")],
        );
        tampered(
            "an altered payload",
            case,
            first(|flow| flow.altered = 1),
            &[("no-corruption", FAIL, "found 1")],
        );
        tampered(
            "a frame that grew",
            case,
            first(|flow| flow.resized = 1),
            &[("no-resize", FAIL, "found 1")],
        );
        tampered(
            "one octet more than was sent",
            case,
            first(|flow| flow.octets += 1),
            &[("no-resize", FAIL, "octets of")],
        );
        let untagged = first(|flow| (flow.remarked, flow.untagged) = (9, 9));
        tampered(
            "no tags",
            case,
            untagged,
            &[(
                "no-remark",
                INCONCLUSIVE,
                "9: removed by the DUT, or by VLAN offload",
            )],
        );
        let both = first(|flow| (flow.remarked, flow.untagged) = (10, 9));
        tampered(
            "no tags and a re-mark",
            case,
            both,
            &[("no-remark", FAIL, "found 1")],
        );
        for (what, reason) in [
            ("stamp", Malformed::Stamp),
            ("header", Malformed::Ipv4Checksum),
            ("port", Malformed::Headers),
        ] {
            let foreign = |e: &mut PfcEvidence| e.ports.rx.counts.malformed.push((reason, 1));
            tampered(
                &format!("another sender's damaged {what}"),
                case,
                foreign,
                &[],
            );
            let damage = |e: &mut PfcEvidence| {
                foreign(e);
                e.ports.rx.counts.damaged.push((reason, 1));
            };
            tampered(
                &format!("a damaged {what}"),
                case,
                damage,
                &[("no-corruption", FAIL, "found 1")],
            );
        }
        tampered(
            "storm frames at tx",
            case,
            |e| e.ports.tx.counts.own_control = 1,
            &[("no-mac-control-forwarded", FAIL, "found 1")],
        );
        tampered(
            "storm frames at rx",
            case,
            |e| e.ports.rx.counts.own_control = 1,
            &[(
                "no-mac-control-forwarded",
                FAIL,
                "rx port: expected 0, found 1",
            )],
        );
        tampered(
            "test frames at tx",
            case,
            |e| e.ports.tx.counts.test_frames = 1,
            &[("no-reflection", FAIL, "found 1")],
        );
        let mut unseen = good(case);
        (unseen.ports.tx.alive, unseen.ports.tx.pfc_visible) = (false, None);
        unseen.ports.tx.counts = validator_core::evidence::pfc::PortReceived::default();
        let results = results(case, &unseen);
        let reflection = results
            .iter()
            .find(|result| result.check == "no-reflection");
        assert_eq!(reflection.unwrap().verdict, INCONCLUSIVE);
        tampered(
            "XOFF at rx",
            case,
            |e| e.ports.rx.counts.pfc[7].xoff = 2,
            &[("no-pfc-on-lossy", FAIL, "found 2")],
        );
    }
}

fn case_evidence(repetitions: Vec<PfcEvidence>) -> CaseEvidence {
    let repetitions = repetitions.into_iter().map(Box::new);
    CaseEvidence::of(SINGLE, repetitions.map(Repetition::Pfc).collect())
}

fn omitted(not_applicable: bool) -> Omitted {
    Omitted {
        name: "lossless 7".into(),
        reason: "no DSCP is mapped to priority 7".into(),
        not_applicable,
    }
}

#[test]
fn what_was_left_out_and_what_went_wrong_shows_in_the_case_and_the_exit_code() {
    let judged = |evidence: &CaseEvidence| {
        let result = cases::judge_case(evidence);
        let exit = Exit::of(std::slice::from_ref(&result), false);
        (result, exit)
    };
    let whole = case_evidence(vec![good(SINGLE)]);
    let (result, exit) = judged(&whole);
    assert_eq!(
        (result.verdict, exit, result.reason.as_str()),
        (Verdict::Pass, Exit::Passed, "")
    );

    let mut part = whole.clone();
    part.omitted = vec![omitted(true)];
    let (result, exit) = judged(&part);
    assert_eq!((result.verdict, exit), (Verdict::Pass, Exit::Passed));
    let left_out: Vec<_> = result
        .checks
        .iter()
        .filter(|check| check.repetition == "lossless 7")
        .collect();
    assert_eq!(left_out.len(), bench::case(SINGLE).case.checks.len());
    assert!(
        left_out
            .iter()
            .all(|check| check.verdict == Verdict::NotApplicable
                && check.reason == "no DSCP is mapped to priority 7")
    );

    part.omitted = vec![omitted(false)];
    let (result, exit) = judged(&part);
    assert_eq!((result.verdict, exit), (INCONCLUSIVE, Exit::Undecided));
    assert_eq!(result.check("paused"), Some(INCONCLUSIVE));

    let (result, exit) = judged(&CaseEvidence {
        repetitions: Vec::new(),
        omitted: vec![omitted(true)],
        ..whole.clone()
    });
    assert_eq!(
        (result.verdict, exit),
        (Verdict::NotApplicable, Exit::Undecided)
    );

    let error = Some("lossless 4: the sender died".to_owned());
    let (result, exit) = judged(&CaseEvidence {
        error: error.clone(),
        ..whole.clone()
    });
    assert_eq!(
        (result.verdict, exit, Some(result.reason)),
        (Verdict::Error, Exit::Undecided, error.clone())
    );
    let mut leaking = good(SINGLE);
    let data = leaking.span(Phase::Storm).unwrap();
    leak(&mut leaking, data.from + MS);
    let (result, exit) = judged(&CaseEvidence {
        error: error.clone(),
        ..case_evidence(vec![good(SINGLE), leaking])
    });
    assert_eq!(
        (result.verdict, exit, Some(&result.reason)),
        (FAIL, Exit::Failed, error.as_ref())
    );
    assert_eq!(Exit::of(&[result], true), Exit::Interrupted);

    let (result, exit) = judged(&CaseEvidence {
        case: "pfc.unheard-of".into(),
        ..whole
    });
    assert_eq!((result.verdict, exit), (Verdict::Error, Exit::Undecided));
    assert!(result.reason.contains("pfc.unheard-of"));
    assert_eq!(Exit::of(&[], false), Exit::Undecided);
}
