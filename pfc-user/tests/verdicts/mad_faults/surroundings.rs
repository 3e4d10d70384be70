//! Surroundings that allow no verdict, that make the document not apply, or that are only reported.

use ib_mad::attr::{BadMKey, Notice, PortInfo};
use ib_mad::mad::{AttributeId, Lid, MKey, Method};
use ib_mad::sma::NodeConfig;
use ib_mad::smp::{Route, Smp};
use validator_core::evidence::mad::{MadEvidence, Octets, Packet, Purpose, Stray};
use validator_core::verdict::{CaseResult, Verdict};

use super::bench::{Bench, KEYS, M_KEY_DUT, Outcome, TABLE, each_case, outcomes, result, switch};

fn all_inconclusive(outcomes: &[Outcome], reason: &str) {
    for outcome in outcomes.iter().filter(|outcome| {
        outcome.check != "single-answer" && outcome.verdict != Verdict::NotApplicable
    }) {
        assert!(
            outcome.verdict == Verdict::Inconclusive && outcome.reason.contains(reason),
            "{outcome:?}"
        );
    }
}

#[test]
fn a_link_that_is_down_is_inconclusive() {
    let outcomes = each_case(
        &NodeConfig {
            port_state: 1,
            ..switch()
        },
        MKey(0),
        &[],
    );
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| outcome.verdict == Verdict::Inconclusive)
            .count(),
        outcomes.len() - 16
    );
    all_inconclusive(
        &outcomes,
        "PortState of the tester: expected Initialized, Armed or Active, found Down",
    );
}

#[test]
fn initialized_and_armed_will_do() {
    for port_state in [2, 3] {
        for outcome in each_case(
            &NodeConfig {
                port_state,
                ..switch()
            },
            MKey(0),
            &[],
        ) {
            assert!(
                matches!(outcome.verdict, Verdict::Pass | Verdict::NotApplicable),
                "{outcome:?}"
            );
        }
    }
}

#[test]
fn a_linear_forwarding_table_makes_it_not_applicable() {
    let repetitions = Bench::new(
        NodeConfig {
            linear_fdb_cap: 1024,
            ..switch()
        },
        &[],
    )
    .case(TABLE);
    let result = result(TABLE, &repetitions);
    assert_eq!(result.verdict, Verdict::NotApplicable);
    assert!(
        result
            .checks
            .iter()
            .all(|check| check.reason.contains("LinearFDBCap is 1024"))
    );
    assert_eq!(step(&result, "7").verdict, Verdict::NotApplicable);
    assert!(
        repetitions[0]
            .exchanges
            .iter()
            .all(|exchange| exchange.purpose != Purpose::SetBlock),
        "nothing was written"
    );
}

fn step<'r>(result: &'r CaseResult, number: &str) -> &'r validator_core::verdict::StepResult {
    result
        .steps
        .iter()
        .find(|step| step.step == number)
        .unwrap()
}

#[test]
fn every_step_is_told_with_what_was_found() {
    let table = result(TABLE, &Bench::new(switch(), &[]).case(TABLE));
    let numbers: Vec<_> = table.steps.iter().map(|step| step.step.clone()).collect();
    let expected: Vec<_> = ["init 1".to_owned()]
        .into_iter()
        .chain((1..=16).map(|number| number.to_string()))
        .collect();
    assert_eq!(numbers, expected);
    for (number, found) in [
        ("2", "NumPorts = 4"),
        ("5", "LinearFDBCap = 0"),
        ("6", "RandomFDBCap = 1024"),
        ("10", "sent 768"),
        ("16", "768 blocks"),
    ] {
        assert!(
            step(&table, number).found.contains(found),
            "{:?}",
            step(&table, number)
        );
    }
    let not_exercised: Vec<_> = table
        .assertions
        .iter()
        .filter(|assertion| assertion.verdict.is_none())
        .map(|assertion| &assertion.id[..])
        .collect();
    assert_eq!(
        not_exercised,
        [
            "v1c14-024.1.1#10.01",
            "v1c14-024.1.1#10.02",
            "v1c14-024.1.1#10.05",
            "v1c14-024.1.1#10.06"
        ]
    );

    let keys = result(KEYS, &Bench::new(switch(), &[]).case(KEYS));
    for (subcase, last) in [(0, "4"), (1, "4"), (2, "6"), (3, "6")] {
        let name = format!("protect-bits-{subcase}");
        let numbers: Vec<_> = keys
            .steps
            .iter()
            .filter(|step| step.repetition == name)
            .map(|step| step.step.as_str())
            .collect();
        let first = [
            "init 1", "init 2", "init 3", "1.1", "1.2", "1.3", "1.4", "2", "3", "4",
        ];
        let more: &[&str] = match (last, subcase) {
            ("6", _) => &["5", "6", "again", "end"],
            (_, 1) => &["again", "end"],
            _ => &["end"],
        };
        assert_eq!(numbers, [&first[..], more].concat());
    }
    for step in table.steps.iter().chain(&keys.steps) {
        assert!(
            step.verdict == Verdict::Pass && !step.found.is_empty(),
            "{step:?}"
        );
    }
    assert!(
        keys.assertions
            .iter()
            .all(|assertion| assertion.verdict == Some(Verdict::Pass)
                && !assertion.comparisons.is_empty())
    );
}

#[test]
fn stored_evidence_gives_the_same_results_again() {
    for fault in [None, Some("lft-one-block"), Some("drops")] {
        let faults: Vec<_> = fault.iter().map(|fault| fault.parse().unwrap()).collect();
        let repetitions = Bench::new(switch(), &faults).case(TABLE);
        let again: Vec<MadEvidence> =
            serde_json::from_str(&serde_json::to_string(&repetitions).unwrap()).unwrap();
        assert_eq!(
            (result(TABLE, &again), again),
            (result(TABLE, &repetitions), repetitions),
            "{fault:?}"
        );
    }
}

#[test]
fn steps_that_were_not_reached_say_so() {
    let result = result(
        TABLE,
        &Bench::new(switch(), &["silent=switch-info".parse().unwrap()]).case(TABLE),
    );
    for (number, verdict) in [
        ("3", Verdict::Pass),
        ("4", Verdict::Fail),
        ("7", Verdict::Skipped),
        ("10", Verdict::Skipped),
        ("16", Verdict::Skipped),
    ] {
        assert_eq!(
            step(&result, number).verdict,
            verdict,
            "{:?}",
            step(&result, number)
        );
    }
}

#[test]
fn a_time_out_above_10_s_is_not_waited_for() {
    // 4.096 us * 2 * 2^21 is 17 s.
    let repetitions = Bench::new(
        NodeConfig {
            subnet_timeout: 21,
            ..switch()
        },
        &[],
    )
    .case(KEYS);
    for outcome in outcomes(KEYS, &repetitions) {
        let silent = ["bits-2", "bits-3"].contains(&outcome.name.as_str());
        let expected = match outcome.check.as_str() {
            "before-wrong-key" if silent => Verdict::Pass,
            "no-answer" | "dut-key-answered" | "dut-key-value" | "one-violation" if silent => {
                Verdict::Inconclusive
            }
            "before-wrong-key" | "no-answer" | "dut-key-answered" | "dut-key-value"
            | "one-violation" => Verdict::NotApplicable,
            "other-key-answered" | "other-key-value" | "no-violation" if silent => {
                Verdict::NotApplicable
            }
            _ => Verdict::Pass,
        };
        assert_eq!(outcome.verdict, expected, "{outcome:?}");
        if outcome.check == "no-answer" && silent {
            assert!(outcome.reason.contains("RespTimeValue"), "{outcome:?}");
        }
    }
    assert!(repetitions.iter().skip(2).all(|evidence| {
        evidence
            .exchanges
            .iter()
            .all(|exchange| exchange.purpose != Purpose::OtherKey)
    }));
}

#[test]
fn a_wrong_key_in_the_testbed_is_not_the_dut_s_fault() {
    for bits in 0..=3 {
        let dut = NodeConfig {
            m_key: MKey(5),
            m_key_protect_bits: bits,
            ..switch()
        };
        for current in [MKey(0), MKey(6)] {
            let outcomes = each_case(&dut, current, &[]);
            let fails: Vec<_> = outcomes
                .iter()
                .filter(|outcome| outcome.verdict == Verdict::Fail)
                .collect();
            assert!(fails.is_empty(), "bits {bits}: {fails:#?}");
            for check in ["key-set", "set-status"] {
                let outcome = outcomes
                    .iter()
                    .find(|outcome| outcome.check == check)
                    .unwrap();
                assert_eq!(
                    outcome.verdict,
                    Verdict::Inconclusive,
                    "bits {bits}: {outcome:?}"
                );
                assert!(
                    outcome.reason.contains("m_key_current"),
                    "bits {bits}: {outcome:?}"
                );
            }
        }
    }
}

fn quiet(case: &str, index: usize) -> MadEvidence {
    Bench::new(
        NodeConfig {
            master_sm_lid: Lid(0),
            ..switch()
        },
        &[],
    )
    .repetition(case, index, None, None)
    .0
}

fn verdict_with(evidence: &MadEvidence, check: &str) -> Verdict {
    outcomes(KEYS, std::slice::from_ref(evidence))
        .into_iter()
        .find(|outcome| outcome.check == check)
        .unwrap()
        .verdict
}

#[test]
fn a_response_to_the_wrong_key_fails_whatever_its_tid_and_however_late() {
    let good = quiet(KEYS, 2);
    let wrong = good
        .exchanges
        .iter()
        .find(|exchange| exchange.purpose == Purpose::OtherKey)
        .unwrap();
    let request = Smp::parse(&wrong.request.0).unwrap();
    for tid in [request.tid().0, 0xdead_beef] {
        for at in [wrong.sent, wrong.deadline] {
            let mut response = request.response(ib_mad::mad::Status::OK);
            response.set_tid(ib_mad::mad::Tid(tid));
            let mut evidence = good.clone();
            evidence.strays.push(Stray {
                packet: Packet {
                    at,
                    octets: response.octets().into(),
                },
                of_earlier: false,
            });
            assert_eq!(
                verdict_with(&evidence, "no-answer"),
                Verdict::Fail,
                "TID {tid:#x} at {at}"
            );
        }
    }
    // One with the TID of another request belongs to that.
    let own = good
        .exchanges
        .iter()
        .find(|exchange| exchange.purpose == Purpose::OwnKey)
        .unwrap();
    let mut evidence = good.clone();
    evidence.strays.push(Stray {
        packet: Packet {
            at: wrong.deadline,
            octets: own.answer.as_ref().unwrap().octets.clone(),
        },
        of_earlier: false,
    });
    assert_eq!(
        ["no-answer", "single-answer"].map(|check| verdict_with(&evidence, check)),
        [Verdict::Pass, Verdict::Fail]
    );
    // A shorter wait than the DUT may take proves nothing.
    let mut evidence = good.clone();
    let wrong = evidence
        .exchanges
        .iter_mut()
        .find(|exchange| exchange.purpose == Purpose::OtherKey)
        .unwrap();
    wrong.deadline -= 1;
    assert_eq!(verdict_with(&evidence, "no-answer"), Verdict::Inconclusive);
}

#[test]
fn what_others_send_is_only_reported() {
    let mut evidence = quiet(KEYS, 2);
    let at = evidence.exchanges[5].sent;
    let mut smp = Smp::request(Method::GET, AttributeId::NODE_INFO, 0, &Route::Lid(Lid(1)));
    smp.set_tid(ib_mad::mad::Tid(0xffff));
    let stray = |smp: &Smp| Stray {
        packet: Packet {
            at,
            octets: smp.octets().into(),
        },
        of_earlier: false,
    };
    evidence.strays.push(stray(&smp));
    // A response is addressed to the tester, which has never sent that TID.
    let mut answered = evidence.clone();
    let response = smp.response(ib_mad::mad::Status::OK);
    answered.strays.push(stray(&response));
    assert_eq!(verdict_with(&answered, "single-answer"), Verdict::Fail);
    evidence.strays.push(Stray {
        packet: Packet {
            at,
            octets: Octets(vec![1; 12]),
        },
        of_earlier: false,
    });
    let result = result(KEYS, &[evidence]);
    assert_eq!(result.verdict, Verdict::Pass, "{result:?}");
    let figure = |name: &str| {
        result
            .figures
            .iter()
            .find(|figure| figure.name == name)
            .map(|figure| figure.value.clone())
    };
    assert!(
        figure("SMPs that are not the tester's affair")
            .is_some_and(|value| value.starts_with("1, the first Get(NodeInfo)"))
    );
    assert_eq!(figure("packets that are no SMP"), Some("1".into()));
}

#[test]
fn a_late_answer_to_the_wrong_key_belongs_to_its_own_repetition() {
    for (late, shown) in [
        ("250", ["bits-2", "bits-3"].as_slice()),
        ("450", &["bits-2", "bits-3"]),
        ("4000", &["bits-2"]),
    ] {
        let fault = format!("answers-wrong-key-late={late}").parse().unwrap();
        let repetitions = Bench::new(switch(), &[fault]).case(KEYS);
        let outcomes = outcomes(KEYS, &repetitions);
        let failed: Vec<_> = outcomes
            .iter()
            .filter(|outcome| outcome.verdict == Verdict::Fail)
            .map(|outcome| (outcome.name.as_str(), outcome.check.as_str()))
            .collect();
        let expected: Vec<_> = shown.iter().map(|name| (*name, "no-answer")).collect();
        assert_eq!(failed, expected, "{late} ms: {outcomes:#?}");
        let result = result(KEYS, &repetitions);
        assert!(result.figures.iter().any(|figure| {
            figure.repetition == "protect-bits-3" && figure.name == "answers to a wrong key seen"
        }));
    }
}

#[test]
fn violations_before_the_wrong_key_may_come_of_a_set_whose_answer_was_lost() {
    let mut evidence = quiet(KEYS, 2);
    let own = evidence
        .exchanges
        .iter_mut()
        .find(|exchange| exchange.purpose == Purpose::OwnKey)
        .unwrap();
    let octets = &mut own.answer.as_mut().unwrap().octets.0;
    let mut answer = Smp::parse(octets).unwrap();
    let mut port: PortInfo = answer.decode().unwrap();
    port.set_m_key_violations(1).unwrap();
    answer.encode(&port);
    *octets = answer.octets().to_vec();
    assert_eq!(verdict_with(&evidence, "before-wrong-key"), Verdict::Fail);
    let set = evidence
        .exchanges
        .iter_mut()
        .find(|exchange| exchange.purpose == Purpose::KeySet)
        .unwrap();
    set.answer = None;
    assert_eq!(
        verdict_with(&evidence, "before-wrong-key"),
        Verdict::Inconclusive
    );
}

#[test]
fn the_wrong_key_is_another_in_each_attempt() {
    let quiet_dut = NodeConfig {
        master_sm_lid: Lid(0),
        ..switch()
    };
    let mut bench = Bench::new(quiet_dut, &["no-violations".parse().unwrap()]);
    let mut keys = Vec::new();
    for subcase in [2, 3] {
        let (evidence, _) = bench.repetition(KEYS, subcase, None, None);
        let of = |exchange: &&validator_core::evidence::mad::Exchange| {
            exchange.purpose == Purpose::OtherKey
        };
        let asked = evidence.exchanges.iter().filter(of);
        keys.extend(asked.map(|exchange| Smp::parse(&exchange.request.0).unwrap().m_key()));
    }
    assert!(keys.contains(&super::bench::M_KEY_OTHER));
    let distinct: std::collections::BTreeSet<_> = keys.iter().map(|key| key.0).collect();
    // Eight differ in one bit, which is the same each time that the key is tried.
    let each = (3 * (8 + 3), 8 + 3 * 3);
    assert_eq!(
        (keys.len(), distinct.len()),
        (2 * each.0, 2 * each.1),
        "{keys:?}"
    );
    assert!(!keys.contains(&M_KEY_DUT));
}

#[test]
fn trap_256_is_recorded() {
    let mut bench = Bench::new(switch(), &[]);
    let (evidence, _) = bench.repetition(KEYS, 3, None, None);
    let trap = evidence
        .strays
        .iter()
        .find_map(|stray| Smp::parse(&stray.packet.octets.0).ok())
        .unwrap();
    let notice: Notice = trap.decode().unwrap();
    assert_eq!(
        notice.bad_m_key().as_ref().map(BadMKey::m_key),
        Some(MKey(evidence.plan.wrong_key(1)))
    );
    let result = result(KEYS, &[evidence]);
    let figure = result
        .figures
        .iter()
        .find(|figure| figure.name == "trap 256")
        .unwrap();
    assert!(figure.value.starts_with("11, "), "{figure:?}");
}

#[test]
fn evidence_that_contradicts_its_plan_is_an_error() {
    let good = quiet(KEYS, 3);
    let change = |change: &dyn Fn(&mut MadEvidence)| {
        let mut evidence = good.clone();
        change(&mut evidence);
        result(KEYS, &[evidence]).verdict
    };
    assert_eq!(change(&|_| {}), Verdict::Pass);
    assert_eq!(
        change(&|evidence| evidence.plan.m_key_other = M_KEY_DUT.0),
        Verdict::Error
    );
    assert_eq!(
        change(&|evidence| evidence.plan.m_key_other = 1),
        Verdict::Error
    );
    assert_eq!(
        change(&|evidence| evidence.exchanges.swap(3, 4)),
        Verdict::Error
    );
    assert_eq!(
        change(&|evidence| evidence.exchanges[2].request.0[3] = 2),
        Verdict::Error
    );
    assert_eq!(
        change(&|evidence| evidence.exchanges[2].request.0.truncate(64)),
        Verdict::Error
    );
    assert_eq!(
        change(&|evidence| evidence.exchanges[2].answer.as_mut().unwrap().octets.0[15] ^= 1),
        Verdict::Error
    );

    let table = quiet(TABLE, 0);
    let mut fewer = table.clone();
    fewer.exchanges.pop();
    assert_eq!(result(TABLE, &[fewer]).verdict, Verdict::Inconclusive);
    let mut gap = table;
    let block = gap
        .exchanges
        .iter()
        .position(|exchange| exchange.purpose == Purpose::SetBlock)
        .unwrap();
    gap.exchanges.remove(block + 7);
    assert_eq!(result(TABLE, &[gap]).verdict, Verdict::Error);
}
