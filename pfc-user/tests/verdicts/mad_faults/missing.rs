//! Requests that are missing in the evidence, or there twice: it is refused, and nothing gains by
//! what the tester lost.

use ib_mad::attr::PortInfo;
use ib_mad::mad::Method;
use ib_mad::smp::Smp;
use ib_mad::transport::simulated::Fate;
use validator_core::evidence::mad::{Exchange, MadEvidence, Purpose};
use validator_core::evidence::whole::{self, Rule};
use validator_core::evidence::{CaseEvidence, Repetition};
use validator_core::verdict::Verdict;

use super::bench::{Bench, KEYS, result, simulated, switch};

/// The rule that the evidence of a repetition breaks.
pub fn broken(evidence: &MadEvidence) -> Option<Rule> {
    let repetitions = vec![Repetition::Mad(Box::new(evidence.clone()))];
    let case = CaseEvidence::of(KEYS, repetitions);
    let defect = whole::check_case(&case, "case").err()?;
    Some(defect.rule)
}

/// True for a Get(PortInfo) after a wrong key that shows violations 0.
fn shows_none(exchange: &Exchange) -> bool {
    let answer = exchange.answer.as_ref();
    let shown = answer.filter(|_| exchange.purpose == Purpose::DutKey);
    shown.is_some_and(|shown| {
        let shown = Smp::parse(&shown.octets.0).unwrap();
        shown.decode::<PortInfo>().unwrap().m_key_violations() == 0
    })
}

/// `evidence` without these attempts, but with the initialisation.
fn without(evidence: &MadEvidence, attempts: &[u32]) -> MadEvidence {
    use Purpose::{DutPort, LinkPort, NodeInfo, TesterPort};
    let is_of_init =
        |purpose: Purpose| matches!(purpose, TesterPort | DutPort | LinkPort | NodeInfo);
    let mut less = evidence.clone();
    less.exchanges
        .retain(|exchange| is_of_init(exchange.purpose) || !attempts.contains(&exchange.attempt));
    less
}

#[test]
fn attempts_that_are_missing_are_refused() {
    let fault = "counts-every-second".parse().unwrap();
    for bits in [2, 3] {
        let (evidence, _) = Bench::new(switch(), &[fault]).repetition(KEYS, bits, None, None);
        assert_eq!(broken(&evidence), None);
        let verdict = result(KEYS, std::slice::from_ref(&evidence)).verdict;
        assert_eq!(verdict, Verdict::Fail);
        let uncounted = evidence.exchanges.iter().filter(|one| shows_none(one));
        let uncounted: Vec<u32> = uncounted.map(|one| one.attempt).collect();
        // Each kind of wrong key has one, and another attempt after it.
        assert_eq!(uncounted.len(), 11, "{uncounted:?}");
        let less = without(&evidence, &uncounted);
        assert!(!less.exchanges.iter().any(shows_none));
        assert_eq!(broken(&less), Some(Rule::Requests));
        for attempt in uncounted {
            let less = without(&evidence, &[attempt]);
            assert_eq!(broken(&less), Some(Rule::Requests), "attempt {attempt}");
        }
    }
}

#[test]
fn each_request_that_is_missing_or_there_twice_is_refused() {
    let (evidence, _) = Bench::new(switch(), &[]).repetition(KEYS, 2, None, None);
    assert_eq!(broken(&evidence), None);
    let last = evidence.exchanges.last().unwrap().attempt;
    for (index, exchange) in evidence.exchanges.iter().enumerate() {
        let mut changed = evidence.clone();
        changed.exchanges.insert(index, exchange.clone());
        assert_eq!(broken(&changed), Some(Rule::Requests), "{index} twice");
        // Before the first no other shows that it is missing, and in the last attempt the
        // restoration may follow after any: the judge misses their steps.
        if index == 0 || exchange.attempt == last {
            continue;
        }
        let mut changed = evidence.clone();
        changed.exchanges.remove(index);
        assert_eq!(broken(&changed), Some(Rule::Requests), "without {index}");
    }
}

#[test]
fn a_restoration_whose_packets_could_not_be_sent_at_first_is_whole() {
    let mut transport = simulated(switch(), &[]);
    let mut sets = 0;
    // The third Set restores.
    transport.on_send(Box::new(move |smp| {
        sets += usize::from(smp.method() == Method::SET);
        match smp.method() == Method::SET && [3, 4].contains(&sets) {
            true => Fate::Refuse,
            false => Fate::Pass,
        }
    }));
    let (evidence, _) = Bench::on(Box::new(transport)).repetition(KEYS, 0, None, None);
    let restores = |one: &&Exchange| one.purpose == Purpose::Restore;
    assert_eq!(evidence.exchanges.iter().filter(restores).count(), 1);
    assert_eq!((evidence.error.as_deref(), broken(&evidence)), (None, None));
}
