//! Requests and answers that were lost, or late through no fault of the DUT.

use ib_mad::mad::{Lid, Method};
use ib_mad::sma::NodeConfig;
use ib_mad::smp::Smp;
use validator::case::Verdict;
use validator::evidence::mad::{MadEvidence, Packet, Purpose, Stray};
use validator::evidence::pfc::Stall;

use super::bench::{Bench, KEYS, M_KEY_DUT, outcomes, simulated, switch};
use super::recovery::{LosesAnswers, loses_wrong_keys};

const MILLISECOND: u64 = 1_000_000;

fn verdict(repetitions: &[MadEvidence], name: &str, check: &str) -> Verdict {
    let outcomes = outcomes(KEYS, repetitions);
    let mut of = outcomes
        .iter()
        .filter(|outcome| outcome.name == name && outcome.check == check);
    of.next().unwrap().verdict
}

fn index(evidence: &MadEvidence, purpose: Purpose) -> usize {
    let is = |exchange: &validator::evidence::mad::Exchange| exchange.purpose == purpose;
    evidence.exchanges.iter().position(is).unwrap()
}

/// Makes the answer to the exchange of that index come `after` the end of its wait.
fn delay(evidence: &mut MadEvidence, index: usize, after: u64) {
    let exchange = &mut evidence.exchanges[index];
    let answer = exchange.answer.take().unwrap();
    evidence.strays.push(Stray {
        packet: Packet {
            at: exchange.deadline + after,
            ..answer
        },
        of_earlier: false,
    });
}

/// Protect bits 2 of a DUT whose Gets with the first kind of wrong key were lost, all three.
fn three_zeros() -> MadEvidence {
    loses_wrong_keys(3).repetition(KEYS, 2, None, None).0
}

#[test]
fn what_is_late_is_not_lost() {
    let good = three_zeros();
    let mut evidence = good.clone();
    let own = index(&evidence, Purpose::OwnKey);
    delay(&mut evidence, own, MILLISECOND);
    assert_eq!(
        verdict(&[evidence], "bits-2", "one-violation"),
        Verdict::Fail
    );
    let mut evidence = good;
    evidence.exchanges[own].answer = None;
    assert_eq!(
        verdict(&[evidence], "bits-2", "one-violation"),
        Verdict::Inconclusive
    );
}

#[test]
fn what_was_asked_before_the_dut_s_times_were_known_is_not_lost() {
    let mut evidence = three_zeros();
    let at = index(&evidence, Purpose::DutPort);
    let mut first = evidence.exchanges[at].clone();
    first.answer = None;
    first.request.0[12] ^= 0x80;
    evidence.exchanges.insert(at, first);
    assert_eq!(
        verdict(&[evidence], "bits-2", "one-violation"),
        Verdict::Fail
    );
}

#[test]
fn a_loss_in_another_repetition_of_the_case_makes_three_zeros_undecided() {
    let zeros = three_zeros();
    let mut other = Bench::new(switch(), &[]).repetition(KEYS, 3, None, None).0;
    let two = [zeros.clone(), other.clone()];
    assert_eq!(verdict(&two, "bits-2", "one-violation"), Verdict::Fail);
    let own = index(&other, Purpose::OwnKey);
    other.exchanges[own].answer = None;
    for two in [[zeros.clone(), other.clone()], [other, zeros]] {
        assert_eq!(
            verdict(&two, "bits-2", "one-violation"),
            Verdict::Inconclusive
        );
    }
}

#[test]
fn a_wrong_key_that_was_counted_at_the_second_try_was_lost_at_the_first() {
    // Three of the first kind, and one of the second.
    let (evidence, _) = loses_wrong_keys(4).repetition(KEYS, 2, None, None);
    assert_eq!(
        verdict(&[evidence], "bits-2", "one-violation"),
        Verdict::Inconclusive
    );
}

#[test]
fn violations_that_were_not_read_do_not_pass() {
    let (good, _) = Bench::new(switch(), &[]).repetition(KEYS, 2, None, None);
    assert_eq!(
        verdict(std::slice::from_ref(&good), "bits-2", "one-violation"),
        Verdict::Pass
    );
    for attempt in [1, 4, 7, 10] {
        let of = |exchange: &validator::evidence::mad::Exchange| {
            exchange.purpose == Purpose::DutKey && exchange.attempt == attempt
        };
        let mut evidence = good.clone();
        let at = evidence.exchanges.iter().position(of).unwrap();
        evidence.exchanges[at].answer = None;
        assert_eq!(
            verdict(&[evidence], "bits-2", "one-violation"),
            Verdict::Inconclusive,
            "attempt {attempt}"
        );
        // Nor does a kind of wrong key that was not tried at all.
        let mut evidence = good.clone();
        evidence
            .exchanges
            .retain(|exchange| (exchange.attempt != attempt) || attempt == 1);
        if attempt > 1 {
            for check in ["no-answer", "one-violation", "dut-key-answered"] {
                let repetitions = std::slice::from_ref(&evidence);
                assert_eq!(
                    verdict(repetitions, "bits-2", check),
                    Verdict::Inconclusive,
                    "{check} without attempt {attempt}"
                );
            }
        }
    }
}

#[test]
fn two_lost_answers_to_the_set_of_a_key_are_not_the_dut_s_fault() {
    let dut = NodeConfig {
        master_sm_lid: Lid(0),
        m_key: ib_mad::mad::MKey(0xabcd),
        ..switch()
    };
    let mut sets = 0;
    let lost = Box::new(move |smp: &Smp| {
        // An answer to a Set is one of PortInfo that shows what was set.
        let is_set = smp.method() == Method::GET_RESP && smp.tid().0 >= 5 && smp.tid().0 <= 6;
        sets += u32::from(is_set);
        is_set && sets <= 2
    });
    let mut bench = Bench::on(Box::new(LosesAnswers {
        inner: simulated(dut.clone(), &[]),
        lost,
    }));
    bench.config.m_key_current = dut.m_key;
    let (evidence, _) = bench.repetition(KEYS, 3, None, None);
    let tries: Vec<_> = evidence
        .exchanges
        .iter()
        .filter(|exchange| exchange.purpose == Purpose::KeySet && exchange.attempt == 1)
        .collect();
    assert_eq!(tries.len(), 3, "{:?}", evidence.exchanges);
    assert!(tries.iter().all(|exchange| exchange.answer.is_none()));
    let repetitions = [evidence];
    assert_eq!(
        verdict(&repetitions, "bits-3", "key-set"),
        Verdict::Inconclusive
    );
    for outcome in outcomes(KEYS, &repetitions) {
        assert_ne!(outcome.verdict, Verdict::Fail, "{outcome:?}");
    }
    // A DUT that has not done it fails.
    let mut evidence = repetitions.into_iter().next().unwrap();
    let shown = index(&evidence, Purpose::KeyShown);
    evidence.exchanges[shown].answer.as_mut().unwrap().octets.0[64..72].fill(7);
    assert_eq!(verdict(&[evidence], "bits-3", "key-set"), Verdict::Fail);
    assert_ne!(M_KEY_DUT.0, 0x0707_0707_0707_0707);
}

#[test]
fn a_stall_excuses_an_answer_that_it_delayed_and_no_other() {
    let (mut evidence, _) = Bench::new(switch(), &[]).repetition(KEYS, 0, None, None);
    let own = index(&evidence, Purpose::OwnKey);
    delay(&mut evidence, own, 50 * MILLISECOND);
    let (sent, deadline) = {
        let exchange = &evidence.exchanges[own];
        (exchange.sent, exchange.deadline)
    };
    let of = |stalls: &[(u64, u64)]| {
        let mut evidence = evidence.clone();
        let stalls = stalls.iter().map(|&(from, to)| Stall { from, to });
        evidence.stalls = stalls.collect();
        verdict(&[evidence], "bits-0", "single-answer")
    };
    assert_eq!(of(&[]), Verdict::Fail);
    // The DUT, or the whole machine, stood still for as long as the answer is late.
    assert_eq!(
        of(&[(sent + MILLISECOND, sent + 60 * MILLISECOND)]),
        Verdict::Inconclusive
    );
    assert_eq!(
        of(&[(deadline - MILLISECOND, deadline + 50 * MILLISECOND)]),
        Verdict::Inconclusive
    );
    // Too short, and at another time.
    assert_eq!(of(&[(sent, sent + 49 * MILLISECOND)]), Verdict::Fail);
    assert_eq!(of(&[(0, sent)]), Verdict::Fail);
    // A later repetition may tell of it.
    let (mut later, _) = Bench::new(switch(), &[]).repetition(KEYS, 1, None, None);
    later.stalls = vec![Stall {
        from: sent,
        to: deadline + 50 * MILLISECOND,
    }];
    assert_eq!(
        verdict(&[evidence.clone(), later], "bits-0", "single-answer"),
        Verdict::Inconclusive
    );
    // A wrong key must not be answered, however late.
    let (mut evidence, _) = Bench::new(switch(), &["answers-wrong-key-late=250".parse().unwrap()])
        .repetition(KEYS, 2, None, None);
    let to = evidence.listened_until;
    evidence.stalls = vec![Stall { from: 0, to }];
    assert_eq!(verdict(&[evidence], "bits-2", "no-answer"), Verdict::Fail);
}

#[test]
fn stalls_that_the_simulated_dut_tells_of_are_in_the_evidence() {
    let mut bench = Bench::new(switch(), &[]);
    let told = Stall { from: 3, to: 9 };
    bench.stalls = vec![told];
    let (evidence, _) = bench.repetition(KEYS, 0, None, None);
    assert_eq!(evidence.stalls, [told]);
}
