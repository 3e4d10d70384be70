//! A Set that is repeated, after the request or its answer was lost, carries the key in force: one
//! with another key is a violation of the tester's own making.

use std::sync::{Arc, Mutex};

use ib_mad::attr::PortInfo;
use ib_mad::mad::{Lid, MKey, Method, Tid};
use ib_mad::sma::NodeConfig;
use ib_mad::smp::Smp;
use ib_mad::transport::simulated::Fate;
use validator_core::evidence::mad::{Exchange, MadEvidence, Purpose};
use validator_core::verdict::Verdict;

use super::bench::{Bench, KEYS, outcomes, simulated, switch};
use super::recovery::LosesAnswers;

/// The DUT's key before the run.
const FOUND: MKey = MKey(0x0123_4567_89ab_cdef);

/// Packet of a Set that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    Request,
    Answer,
}

/// The Sets of a repetition.
struct Sets {
    /// How many of the next are lost.
    to_lose: usize,
    /// TIDs of the Sets whose answers are lost.
    unanswered: Vec<Tid>,
    /// The key that the DUT has.
    in_force: MKey,
    /// Keys of Sets that it refuses.
    refused: Vec<MKey>,
}

impl Sets {
    /// Takes note of a Set, and decides its fate.
    fn send(&mut self, smp: &Smp, lost: Lost) -> Fate {
        if ![MKey(0), smp.m_key()].contains(&self.in_force) {
            self.refused.push(smp.m_key());
        }
        let is_lost = self.to_lose > 0;
        self.to_lose -= usize::from(is_lost);
        if is_lost && lost == Lost::Request {
            return Fate::Lose;
        }
        if is_lost {
            self.unanswered.push(smp.tid());
        }
        self.in_force = smp.decode::<PortInfo>().unwrap().m_key();
        Fate::Pass
    }
}

/// A repetition on a DUT with a key at protect bits `before`, where `count` Sets are lost at first;
/// and the keys of the Sets that the DUT refuses.
fn repetition(before: u8, subcase: usize, lost: Lost, count: usize) -> (MadEvidence, Vec<MKey>) {
    let dut = NodeConfig {
        master_sm_lid: Lid(0),
        m_key: FOUND,
        m_key_protect_bits: before,
        m_key_lease_period: 300,
        ..switch()
    };
    let sets = Arc::new(Mutex::new(Sets {
        to_lose: count,
        unanswered: Vec::new(),
        in_force: FOUND,
        refused: Vec::new(),
    }));
    let mut inner = simulated(dut, &[]);
    let sent = sets.clone();
    inner.on_send(Box::new(move |smp| match smp.method() {
        Method::SET => sent.lock().unwrap().send(smp, lost),
        _ => Fate::Pass,
    }));
    let sent = sets.clone();
    let lost = move |smp: &Smp| sent.lock().unwrap().unanswered.contains(&smp.tid());
    let mut bench = Bench::on(Box::new(LosesAnswers {
        inner,
        lost: Box::new(lost),
    }));
    bench.config.m_key_current = FOUND;
    let (evidence, _) = bench.repetition(KEYS, subcase, None, None);
    let refused = std::mem::take(&mut sets.lock().unwrap().refused);
    (evidence, refused)
}

#[test]
fn a_set_that_was_lost_is_repeated_with_the_key_in_force() {
    for before in 0..=3 {
        for subcase in 0..=3 {
            for (lost, count) in [
                (Lost::Request, 1),
                (Lost::Request, 2),
                (Lost::Answer, 1),
                (Lost::Answer, 2),
            ] {
                let (evidence, refused) = repetition(before, subcase, lost, count);
                let what = format!("bits {before}, subcase {subcase}, {lost:?} {count} times");
                assert!(refused.is_empty(), "{what}: {refused:?}");
                let is_first = |exchange: &&Exchange| {
                    (exchange.purpose, exchange.attempt) == (Purpose::KeySet, 1)
                };
                let tries = evidence.exchanges.iter().filter(is_first).count();
                assert_eq!(tries, 1 + count, "{what}");
                for outcome in outcomes(KEYS, &[evidence]) {
                    let passes = matches!(outcome.verdict, Verdict::Pass | Verdict::NotApplicable);
                    assert!(passes, "{what}: {outcome:?}");
                }
            }
        }
    }
}
