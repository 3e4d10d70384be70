//! No verdict without proof: what may have another cause than the DUT's fault fails nothing, and
//! what is not shown passes nothing.

use std::sync::{Arc, Mutex};

use ib_mad::mad::{AttributeId, Lid, MKey, Method};
use ib_mad::sma::NodeConfig;
use ib_mad::transport::simulated::Fate;
use serde_json::Value;
use validator_core::evidence::mad::{MadEvidence, Purpose};
use validator_core::m_key::Protection;
use validator_core::verdict::Verdict;

use super::bench::{
    Bench, KEYS, M_KEY_DUT, Outcome, TABLE, each_case, known, outcomes, simulated, switch,
};

fn of<'o>(outcomes: &'o [Outcome], check: &str) -> &'o Outcome {
    outcomes
        .iter()
        .find(|outcome| outcome.check == check)
        .unwrap()
}

fn one(evidence: &MadEvidence, check: &str) -> Outcome {
    let case = if check.starts_with("set-") || check.starts_with("get-") {
        TABLE
    } else {
        KEYS
    };
    outcomes(case, std::slice::from_ref(evidence))
        .into_iter()
        .find(|outcome| outcome.check == check)
        .unwrap()
}

fn count(evidence: &MadEvidence, purpose: Purpose) -> usize {
    evidence
        .exchanges
        .iter()
        .filter(|exchange| exchange.purpose == purpose)
        .count()
}

fn quiet() -> NodeConfig {
    NodeConfig {
        master_sm_lid: Lid(0),
        ..switch()
    }
}

#[test]
fn the_answer_to_the_set_of_a_key_may_hide_it() {
    let (mut evidence, _) = Bench::new(switch(), &[]).repetition(KEYS, 1, None, None);
    let set = evidence
        .exchanges
        .iter_mut()
        .find(|exchange| exchange.purpose == Purpose::KeySet)
        .unwrap();
    set.answer.as_mut().unwrap().octets.0[64..72].fill(0);
    assert_eq!(one(&evidence, "key-set").verdict, Verdict::Pass);
    // The Get after it is what counts.
    evidence
        .exchanges
        .retain(|exchange| exchange.purpose != Purpose::KeyShown);
    assert_eq!(one(&evidence, "key-set").verdict, Verdict::Inconclusive);
}

#[test]
fn busy_twice_and_lost_once_is_not_silence() {
    let (good, _) = Bench::new(switch(), &[]).repetition(KEYS, 0, None, None);
    let index = good
        .exchanges
        .iter()
        .position(|exchange| exchange.purpose == Purpose::OwnKey)
        .unwrap();
    for (busy, verdict) in [
        (2, Verdict::Inconclusive),
        (1, Verdict::Inconclusive),
        (0, Verdict::Fail),
    ] {
        let mut evidence = good.clone();
        let mut tries = vec![good.exchanges[index].clone(); 3];
        for (number, exchange) in tries.iter_mut().enumerate() {
            exchange.request.0[15] = 0xf0 + number as u8;
            let answer = exchange.answer.as_mut().unwrap();
            (answer.octets.0[15], answer.octets.0[5]) = (0xf0 + number as u8, 1);
            exchange.answer = exchange.answer.take().filter(|_| number < busy);
        }
        evidence.exchanges.splice(index..=index, tries);
        let outcome = one(&evidence, "own-key-answered");
        assert_eq!(outcome.verdict, verdict, "{busy} BUSY: {outcome:?}");
    }
}

#[test]
fn a_slow_dut_is_not_silent() {
    for late in ["late=250", "late=1000", "late=9000", "late=30000"] {
        let (mut evidence, _) =
            Bench::new(quiet(), &[late.parse().unwrap()]).repetition(KEYS, 0, None, None);
        // Linux' umad drops answers that come too late.
        evidence.strays.clear();
        let outcome = one(&evidence, "port-state");
        assert_eq!(
            outcome.verdict,
            Verdict::Inconclusive,
            "{late}: {outcome:?}"
        );
        if late != "late=30000" {
            assert!(
                outcome.reason.contains("a longer `timeout`"),
                "{late}: {outcome:?}"
            );
        }
    }
    // Silence that was not waited for long enough.
    let (mut evidence, _) =
        Bench::new(quiet(), &["silent=port-info".parse().unwrap()]).repetition(KEYS, 0, None, None);
    assert_eq!(one(&evidence, "port-state").verdict, Verdict::Fail);
    let last = evidence
        .exchanges
        .iter_mut()
        .rfind(|exchange| exchange.purpose == Purpose::DutPort)
        .unwrap();
    last.deadline = last.sent + 1_000_000_000;
    assert_eq!(one(&evidence, "port-state").verdict, Verdict::Inconclusive);
}

#[test]
fn a_dut_that_no_subnet_manager_has_configured_is_named() {
    for dut in [
        NodeConfig {
            lid: Lid(0),
            ..switch()
        },
        NodeConfig {
            master_sm_lid: Lid(0),
            ..switch()
        },
    ] {
        let outcomes = each_case(&dut, MKey(0), &["refuses-lid-0".parse().unwrap()]);
        assert!(
            outcomes
                .iter()
                .all(|outcome| outcome.verdict != Verdict::Fail),
            "{outcomes:#?}"
        );
        for check in ["key-set", "reset"] {
            for outcome in outcomes.iter().filter(|outcome| outcome.check == check) {
                assert_eq!(outcome.verdict, Verdict::Inconclusive, "{outcome:?}");
                assert!(
                    outcome
                        .reason
                        .contains("let a subnet manager configure the port once"),
                    "{outcome:?}"
                );
            }
        }
        assert_eq!(of(&outcomes, "restored").verdict, Verdict::Pass);
    }
}

#[test]
fn silence_passes_only_where_the_request_is_known_to_have_arrived() {
    // Trap 256 shows it too.
    let no_violations = "no-violations".parse().unwrap();
    for (dut, verdict) in [(switch(), Verdict::Pass), (quiet(), Verdict::Inconclusive)] {
        let (evidence, _) = Bench::new(dut, &[no_violations]).repetition(KEYS, 2, None, None);
        let outcome = one(&evidence, "no-answer");
        assert_eq!(outcome.verdict, verdict, "{outcome:?}");
        assert_eq!(one(&evidence, "one-violation").verdict, Verdict::Fail);
    }
}

#[test]
fn the_key_before_the_run_is_what_is_restored_in_every_subcase() {
    let original = Protection {
        m_key: MKey(0xabc),
        protect_bits: 1,
        lease_period: 60,
    };
    let dut = NodeConfig {
        m_key: original.m_key,
        m_key_protect_bits: 1,
        m_key_lease_period: 60,
        ..switch()
    };
    let mut bench = Bench::new(dut, &["one-key".parse().unwrap()]);
    bench.config.m_key_current = original.m_key;
    for subcase in 0..4 {
        let (evidence, _) = bench.repetition(KEYS, subcase, None, None);
        assert_eq!(evidence.original, Some(original));
        assert_eq!(
            one(&evidence, "restored").verdict,
            Verdict::Fail,
            "subcase {subcase}"
        );
        assert_eq!(
            bench.journal.original(),
            Some(original),
            "the entry stays after subcase {subcase}"
        );
    }
    // A subcase that ends before its first Set forgets nothing either.
    let (evidence, _) = bench.repetition(KEYS, 0, None, Some(3));
    assert!(evidence.interrupted && count(&evidence, Purpose::KeySet) == 0);
    assert_eq!(bench.journal.original(), Some(original));
}

#[test]
fn a_key_that_may_be_wrong_is_tried_once() {
    let hidden = NodeConfig {
        m_key: MKey(5),
        m_key_protect_bits: 1,
        ..quiet()
    };
    for (lease, sets) in [(0, 1), (60, 0)] {
        let dut = NodeConfig {
            m_key_lease_period: lease,
            ..hidden.clone()
        };
        for (case, index, purpose, check) in [
            (KEYS, 1, Purpose::KeySet, "key-set"),
            (KEYS, 3, Purpose::KeySet, "key-set"),
            (TABLE, 0, Purpose::SetBlock, "set-status"),
        ] {
            let mut bench = Bench::new(dut.clone(), &[]);
            let (evidence, _) = bench.repetition(case, index, None, None);
            let all_sets = [purpose, Purpose::Reset, Purpose::Restore]
                .map(|purpose| count(&evidence, purpose));
            assert_eq!(all_sets, [sets, 0, 0], "lease {lease}, {check}");
            let outcome = one(&evidence, check);
            assert_eq!(outcome.verdict, Verdict::Inconclusive, "{outcome:?}");
            assert!(outcome.reason.contains("m_key_current"), "{outcome:?}");
            assert_eq!(outcome.reason.contains("lease"), lease != 0, "{outcome:?}");
            assert_eq!(bench.journal.original(), None, "nothing was changed");
        }
    }
    // No key is hidden there: all is done.
    let (evidence, _) = Bench::new(
        NodeConfig {
            m_key: MKey(0),
            ..hidden
        },
        &[],
    )
    .repetition(KEYS, 2, None, None);
    assert!(
        outcomes(KEYS, &[evidence])
            .iter()
            .all(|outcome| matches!(outcome.verdict, Verdict::Pass | Verdict::NotApplicable))
    );
}

/// A bench whose transport refuses the Sets that `refuses` picks by their number.
fn refuses_sets(refuses: impl Fn(usize) -> bool + Send + 'static) -> (Bench, Arc<Mutex<usize>>) {
    let mut transport = simulated(quiet(), &[]);
    let sets = Arc::new(Mutex::new(0));
    let counted = sets.clone();
    transport.on_send(Box::new(move |smp| {
        if smp.method() != Method::SET {
            return Fate::Pass;
        }
        let mut sets = counted.lock().unwrap();
        *sets += 1;
        if refuses(*sets) {
            Fate::Refuse
        } else {
            Fate::Pass
        }
    }));
    (Bench::on(Box::new(transport)), sets)
}

#[test]
fn a_restoration_that_could_not_be_sent_is_tried_again() {
    // The first Set is M_KEY_DUT's, the second the reset; the third restores, and is sent three
    // times.
    let (mut bench, sets) = refuses_sets(|set| set == 3 || set == 4);
    let (evidence, _) = bench.repetition(KEYS, 0, None, None);
    assert_eq!(
        (*sets.lock().unwrap(), one(&evidence, "restored").verdict),
        (5, Verdict::Pass)
    );
    assert_eq!(
        (evidence.error.as_deref(), bench.journal.original()),
        (None, None)
    );

    // Nothing goes out any more: the key stays, and so does the note.
    let (mut bench, _) = refuses_sets(|set| set > 1);
    let (evidence, _) = bench.repetition(KEYS, 0, None, None);
    let error = evidence.error.as_deref().unwrap();
    assert!(
        error.contains("refused") && error.contains(&M_KEY_DUT.to_string()),
        "{error}"
    );
    assert_eq!(bench.journal.original(), Some(Protection::NONE));
    assert_eq!(one(&evidence, "restored").verdict, Verdict::Fail);
}

#[test]
fn a_set_without_answer_is_not_forgotten_until_a_get_shows_that_it_was_not_done() {
    // No Set is answered or done, so that nothing is to be put back; but only a Get shows that.
    for (loses_gets, remains) in [(false, None), (true, Some(Protection::NONE))] {
        let mut transport = simulated(quiet(), &[]);
        let mut shown = 0;
        transport.on_send(Box::new(move |smp| {
            // The first Get after the three Sets is let through.
            let is_get = smp.attribute() == AttributeId::PORT_INFO
                && smp.method() == Method::GET
                && smp.m_key() == M_KEY_DUT;
            shown += usize::from(is_get);
            match smp.method() == Method::SET || is_get && shown > 1 && loses_gets {
                true => Fate::Lose,
                false => Fate::Pass,
            }
        }));
        let mut bench = Bench::on(Box::new(transport));
        let (evidence, _) = bench.repetition(KEYS, 0, None, None);
        assert_eq!(bench.journal.original(), remains);
        assert!(count(&evidence, Purpose::Restored) > 0);
    }
}

/// Every other value for each number in `value`, one at a time.
fn mutate(whole: &mut Value, path: &mut Vec<String>, judge: &mut dyn FnMut(&Value)) {
    let pointer = path
        .iter()
        .map(|part| format!("/{part}"))
        .collect::<String>();
    let keys: Vec<String> = match whole.pointer(&pointer).unwrap() {
        Value::Object(map) => map.keys().cloned().collect(),
        Value::Array(list) => (0..list.len()).map(|index| index.to_string()).collect(),
        Value::Number(number) => {
            let number = number.as_u64().unwrap();
            for other in [
                0,
                1,
                3,
                255,
                number.saturating_sub(1),
                number + 1,
                number / 2,
                u64::from(u32::MAX),
                u64::MAX,
            ] {
                *whole.pointer_mut(&pointer).unwrap() = other.into();
                judge(whole);
            }
            *whole.pointer_mut(&pointer).unwrap() = number.into();
            return;
        }
        _ => return,
    };
    for key in keys {
        path.push(key);
        mutate(whole, path, judge);
        path.pop();
    }
}

#[test]
fn no_number_in_the_evidence_makes_the_judge_panic() {
    let case = known(KEYS);
    for faults in ["", "late=150", "twice", "silent=port-info"] {
        let faults: Vec<_> = faults
            .split_whitespace()
            .map(|fault| fault.parse().unwrap())
            .collect();
        for subcase in [0, 2] {
            let (evidence, _) = Bench::new(switch(), &faults).repetition(KEYS, subcase, None, None);
            let mut whole = serde_json::to_value(&evidence).unwrap();
            let (mut read, mut contradictions) = (0, 0);
            mutate(&mut whole, &mut Vec::new(), &mut |changed| {
                // Evidence that does not fit is refused when it is read.
                let Ok(changed) = serde_json::from_value::<MadEvidence>(changed.clone()) else {
                    return;
                };
                read += 1;
                let judged = case.judge(&changed);
                contradictions += usize::from(
                    judged
                        .checks
                        .iter()
                        .any(|check| check.verdict == Verdict::Error),
                );
            });
            assert!(read > 100 && contradictions > 0, "{read} {contradictions}");
        }
    }
}
