//! Requests and answers that were lost, or late through no fault of the DUT.

use ib_mad::mad::{Lid, MKey};
use ib_mad::sma::NodeConfig;
use ib_mad::smp::Smp;
use validator_core::evidence::mad::{MadEvidence, Packet, Purpose, Stray};
use validator_core::evidence::pfc::Stall;
use validator_core::verdict::Verdict;

use super::bench::{Bench, KEYS, M_KEY_DUT, Outcome, TIMED, TIMES, outcomes, simulated, switch};
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
    let is = |exchange: &validator_core::evidence::mad::Exchange| exchange.purpose == purpose;
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

/// Asserts that the zeros after wrong keys are undecided, beside so many losses of other requests.
fn assert_others_lost(repetitions: &[MadEvidence], lost: &str) {
    let outcomes = outcomes(KEYS, repetitions);
    let zeros = |outcome: &&Outcome| {
        outcome.check == "one-violation" && outcome.verdict == Verdict::Inconclusive
    };
    let zeros = outcomes.iter().find(zeros).expect("undecided");
    let lost = format!("{lost} other requests were lost");
    assert!(zeros.reason.contains(&lost), "{zeros:?}");
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
    assert_others_lost(&[evidence], "0 of 82");
    let mut evidence = good;
    evidence.exchanges[own].answer = None;
    assert_others_lost(&[evidence], "1 of 82");
}

#[test]
fn what_was_asked_before_the_dut_s_times_were_known_is_not_lost() {
    let mut evidence = three_zeros();
    let at = index(&evidence, Purpose::DutPort);
    let mut first = evidence.exchanges[at].clone();
    first.answer = None;
    first.request.0[12] ^= 0x80;
    evidence.exchanges.insert(at, first);
    assert_others_lost(&[evidence], "0 of 82");
}

#[test]
fn losses_are_those_of_all_repetitions_of_the_case() {
    let zeros = three_zeros();
    let mut other = Bench::new(switch(), &[]).repetition(KEYS, 3, None, None).0;
    let two = [zeros.clone(), other.clone()];
    assert_others_lost(&two, "0 of 152");
    let own = index(&other, Purpose::OwnKey);
    other.exchanges[own].answer = None;
    for two in [[zeros.clone(), other.clone()], [other, zeros]] {
        assert_others_lost(&two, "1 of 152");
    }
}

#[test]
fn violations_that_were_not_read_do_not_pass() {
    let (good, _) = Bench::new(switch(), &[]).repetition(KEYS, 2, None, None);
    assert_eq!(
        verdict(std::slice::from_ref(&good), "bits-2", "one-violation"),
        Verdict::Pass
    );
    for attempt in [1, 4, 7, 10] {
        let of = |exchange: &validator_core::evidence::mad::Exchange| {
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

/// A DUT with a key of its own at protect bits 1. The answers to the first so many Sets are lost.
fn loses_answers_to_sets(count: u64) -> MadEvidence {
    let dut = NodeConfig {
        master_sm_lid: Lid(0),
        m_key: MKey(0xabcd),
        m_key_protect_bits: 1,
        ..switch()
    };
    // After four others: the key in force is read before each that is repeated.
    let lost = Box::new(move |smp: &Smp| (0..count).any(|nth| smp.tid().0 == 5 + 2 * nth));
    let mut bench = Bench::on(Box::new(LosesAnswers {
        inner: simulated(dut.clone(), &[]),
        lost,
    }));
    bench.config.m_key_current = dut.m_key;
    bench.repetition(KEYS, 3, None, None).0
}

#[test]
fn a_dut_that_never_answers_a_set_fails_and_so_does_one_that_has_not_done_it() {
    let evidence = loses_answers_to_sets(3);
    assert_eq!(verdict(&[evidence], "bits-3", "key-set"), Verdict::Fail);
    let mut evidence = loses_answers_to_sets(2);
    let shown = index(&evidence, Purpose::KeyShown);
    evidence.exchanges[shown].answer.as_mut().unwrap().octets.0[64..72].fill(7);
    assert_eq!(verdict(&[evidence], "bits-3", "key-set"), Verdict::Fail);
    assert_ne!(M_KEY_DUT.0, 0x0707_0707_0707_0707);
}

#[test]
fn a_step_of_an_attempt_that_is_missing_is_noticed() {
    let (good, _) = Bench::new(switch(), &[]).repetition(KEYS, 2, None, None);
    for (purpose, check) in [
        (Purpose::KeySet, "key-set"),
        (Purpose::OwnKey, "own-key-answered"),
        (Purpose::OwnKey, "own-key-value"),
        (Purpose::OwnKey, "before-wrong-key"),
        (Purpose::OtherKey, "no-answer"),
        (Purpose::DutKey, "dut-key-answered"),
        (Purpose::DutKey, "dut-key-value"),
        (Purpose::DutKey, "one-violation"),
        (Purpose::Reset, "reset"),
        (Purpose::ResetShown, "reset"),
    ] {
        for attempt in [1, 7, 31] {
            let mut evidence = good.clone();
            let is_it = |exchange: &validator_core::evidence::mad::Exchange| {
                (exchange.purpose, exchange.attempt) == (purpose, attempt)
            };
            let before = evidence.exchanges.len();
            evidence.exchanges.retain(|exchange| !is_it(exchange));
            assert_eq!(evidence.exchanges.len(), before - 1);
            assert_eq!(
                verdict(&[evidence], "bits-2", check),
                Verdict::Inconclusive,
                "{check} without {purpose:?} of attempt {attempt}"
            );
        }
    }
}

#[test]
fn an_answer_in_time_that_is_later_than_the_dut_says_is_reported() {
    let figure = |faults: &[&str]| {
        let faults: Vec<_> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        let (evidence, _) = Bench::new(switch(), &faults).repetition(KEYS, 1, None, None);
        let judged = super::bench::known(KEYS).judge(&evidence);
        let all_pass = judged
            .checks
            .iter()
            .all(|check| matches!(check.verdict, Verdict::Pass | Verdict::NotApplicable));
        assert!(all_pass, "{:#?}", judged.checks);
        let name = "answers later than RespTimeValue says";
        let mut figures = judged.figures.into_iter();
        figures
            .find(|figure| figure.name == name)
            .map(|figure| figure.value)
    };
    assert_eq!(figure(&[]), None);
    // RespTimeValue 8 is 1.049 ms.
    let late = figure(&["late=20"]).unwrap();
    assert!(late.contains("the slowest after 20.0"), "{late}");
    assert!(late.contains("it says 1.049 ms"), "{late}");
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
    let stall = Stall { from: 3, to: 9 };
    bench.stalls = vec![stall];
    let (evidence, _) = bench.repetition(KEYS, 0, None, None);
    assert_eq!(evidence.stalls, [stall]);
}

/// Verdict of a check of C13_013 on a DUT with that fault, with that time-out, and where the tester
/// stood still for so long, all in milliseconds.
fn of_times(fault: &str, timeout: u64, stood: u64, check: &str) -> Verdict {
    let mut bench = Bench::new(switch(), &[fault.parse().unwrap()]);
    bench.config.timeout = timeout * MILLISECOND;
    let (mut evidence, _) = bench.repetition(TIMES, 0, None, None);
    let from = evidence.exchanges[index(&evidence, Purpose::DutPort)].sent;
    evidence.stalls = vec![Stall {
        from,
        to: from + stood * MILLISECOND,
    }];
    let outcomes = outcomes(TIMES, &[evidence]);
    let mut of = outcomes.iter().filter(|outcome| outcome.check == check);
    of.next().unwrap().verdict
}

#[test]
fn the_times_of_the_document_are_kept_to_the_last_of_them() {
    for (fault, expected) in [
        ("resp-time-value=20", Verdict::Pass),
        ("resp-time-value=21", Verdict::Fail),
    ] {
        assert_eq!(
            of_times(fault, 200, 0, "resp-time-value"),
            expected,
            "{fault}"
        );
    }
    for (fault, expected) in [("late=5299", Verdict::Pass), ("late=5301", Verdict::Fail)] {
        assert_eq!(of_times(fault, 5500, 0, "in-time"), expected, "{fault}");
    }
}

#[test]
fn an_answer_is_not_late_by_what_the_tester_stood_still() {
    for (stood, expected) in [(699, Verdict::Fail), (750, Verdict::Inconclusive)] {
        assert_eq!(
            of_times("late=6000", 6500, stood, "in-time"),
            expected,
            "{stood}"
        );
    }
}

/// Verdict of a check of C13_014_01 on a DUT with those faults, and with that change of the
/// evidence. RespTimeValue and SubnetTimeOut are 1.049 ms, and each answer is waited for 5.5 s.
fn of_timed(faults: &[&str], change: impl Fn(&mut MadEvidence), check: &str) -> Verdict {
    let faults: Vec<_> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    let mut bench = Bench::new(switch(), &faults);
    bench.config.timeout = 5500 * MILLISECOND;
    let (mut evidence, _) = bench.repetition(TIMED, 0, None, None);
    change(&mut evidence);
    let outcomes = outcomes(TIMED, &[evidence]);
    let mut of = outcomes.iter().filter(|outcome| outcome.check == check);
    of.next().unwrap().verdict
}

#[test]
fn the_dut_s_own_times_are_kept_to_the_last_of_them() {
    use Verdict::{Fail, Pass};
    for (late, value, in_time, resp_time) in [
        ("late=1001", "resp-time-value=8", Pass, Pass),
        ("late=1002", "resp-time-value=8", Pass, Fail),
        ("late=4302", "resp-time-value=8", Pass, Fail),
        ("late=4303", "resp-time-value=8", Fail, Fail),
        ("late=5294", "resp-time-value=20", Fail, Pass),
        ("late=5295", "resp-time-value=20", Fail, Fail),
    ] {
        let of = |check| of_timed(&[late, value], |_| (), check);
        assert_eq!(
            (of("in-time"), of("resp-time")),
            (in_time, resp_time),
            "{late}, {value}"
        );
    }
}

/// Makes the answer to the exchange of that index come after so much.
fn answered_after(evidence: &mut MadEvidence, index: usize, took: u64) {
    let exchange = &mut evidence.exchanges[index];
    let at = exchange.sent + took;
    exchange.answer.as_mut().unwrap().at = at;
}

#[test]
fn the_least_time_of_20_is_judged() {
    fn of(change: fn(&mut MadEvidence)) -> Verdict {
        of_timed(&["late=2000"], change, "resp-time")
    }
    assert_eq!(of(|_| ()), Verdict::Fail);
    let one_in_time = of(|evidence| {
        let first = index(evidence, Purpose::TimedPort);
        answered_after(evidence, first, MILLISECOND);
    });
    assert_eq!(one_in_time, Verdict::Pass);
    let without_last = |evidence: &mut MadEvidence| {
        let last = evidence.exchanges.pop().unwrap();
        assert_eq!(last.purpose, Purpose::TimedPort);
    };
    assert_eq!(of(without_last), Verdict::Inconclusive);
    let in_time = of_timed(&[], without_last, "in-time");
    assert_eq!(in_time, Verdict::Inconclusive);
    // An answer that says BUSY is none, however early.
    let busy = of(|evidence| {
        let first = index(evidence, Purpose::TimedPort);
        answered_after(evidence, first, MILLISECOND);
        let answer = evidence.exchanges[first].answer.as_mut().unwrap();
        answer.octets.0[5] = 1;
    });
    assert_eq!(busy, Verdict::Inconclusive);
}

#[test]
fn the_tester_s_own_part_is_allowed_for_up_to_a_third_of_the_rest() {
    let of = |fault: &str, own: u64| {
        let change = |evidence: &mut MadEvidence| {
            for index in 0..evidence.exchanges.len() {
                if evidence.exchanges[index].purpose == Purpose::TesterPort {
                    answered_after(evidence, index, own * MILLISECOND);
                }
            }
        };
        of_timed(&[fault], change, "resp-time")
    };
    assert_eq!(of("late=1300", 300), Verdict::Pass);
    assert_eq!(of("late=1302", 300), Verdict::Fail);
    assert_eq!(of("late=1", 333), Verdict::Pass);
    assert_eq!(of("late=1", 334), Verdict::Inconclusive);
    assert_eq!(of("late=2000", 334), Verdict::Inconclusive);
    // Its least time counts, as the DUT's does.
    let one = |evidence: &mut MadEvidence| {
        let first = index(evidence, Purpose::TesterPort);
        answered_after(evidence, first, 400 * MILLISECOND);
    };
    assert_eq!(of_timed(&["late=1001"], one, "resp-time"), Verdict::Pass);
    assert_eq!(of_timed(&["late=1002"], one, "resp-time"), Verdict::Fail);
}

#[test]
fn a_least_time_that_a_stall_explains_is_not_judged() {
    for (stood, expected) in [(998, Verdict::Fail), (999, Verdict::Inconclusive)] {
        let change = |evidence: &mut MadEvidence| {
            let from = evidence.exchanges[index(evidence, Purpose::TimedPort)].sent;
            evidence.stalls = vec![Stall {
                from,
                to: from + stood * MILLISECOND,
            }];
        };
        let found = of_timed(&["late=2000"], change, "resp-time");
        assert_eq!(found, expected, "{stood}");
    }
}
