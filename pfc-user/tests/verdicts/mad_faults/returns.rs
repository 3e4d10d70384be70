//! A DUT that goes away and comes back, another DUT in its place, and a user in a hurry.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ib_mad::mad::{MKey, Method};
use ib_mad::sma::NodeConfig;
use ib_mad::transport::simulated::Fate;
use validator_core::cases::mad::stimulate;
use validator_core::evidence::mad::Purpose;
use validator_core::m_key::Protection;
use validator_core::verdict::{Event, Verdict};

use super::bench::{Bench, KEYS, TABLE, known, outcomes, simulated, switch};

fn with_key() -> NodeConfig {
    NodeConfig {
        m_key: MKey(0xabcd),
        m_key_protect_bits: 2,
        m_key_lease_period: 60,
        ..switch()
    }
}

fn notes(events: &[Event]) -> Vec<&str> {
    fn note(event: &Event) -> Option<&str> {
        match event {
            Event::Note(text) => Some(text),
            _ => None,
        }
    }
    events.iter().filter_map(note).collect()
}

/// A bench whose DUT goes away with the first Get of M_KEY_OTHER, until that is unset.
fn goes_away() -> (Bench, Arc<AtomicBool>) {
    let is_away = Arc::new(AtomicBool::new(false));
    let mut transport = simulated(with_key(), &[]);
    let (away, mut has_been) = (is_away.clone(), false);
    let known = [MKey(0), MKey(0xabcd), super::bench::M_KEY_DUT];
    transport.on_send(Box::new(move |smp| {
        if !has_been && !known.contains(&smp.m_key()) {
            has_been = true;
            away.store(true, Ordering::Relaxed);
        }
        // The tester's own node has no hops.
        match away.load(Ordering::Relaxed) && smp.hops().1 > 0 {
            true => Fate::Lose,
            false => Fate::Pass,
        }
    }));
    let mut bench = Bench::on(Box::new(transport));
    bench.config.m_key_current = MKey(0xabcd);
    (bench, is_away)
}

#[test]
fn a_dut_that_comes_back_is_unlocked_before_the_next_repetition() {
    let (mut bench, is_away) = goes_away();
    let (first, _) = bench.repetition(KEYS, 2, None, None);
    let locked = bench.journal.noted.unwrap();
    assert_eq!(locked.guid, Some(2));
    // Still away: nothing is forgotten.
    let (_, events) = bench.repetition(KEYS, 3, None, None);
    assert!(
        notes(&events)[0].starts_with("NOT put back yet"),
        "{events:?}"
    );
    assert_eq!(bench.journal.noted, Some(locked));
    is_away.store(false, Ordering::Relaxed);
    let (second, events) = bench.repetition(KEYS, 3, None, None);
    assert!(
        notes(&events)[0].starts_with("the DUT is there again"),
        "{events:?}"
    );
    assert_eq!(second.original, first.original);
    let outcomes = outcomes(KEYS, &[second]);
    let good = [Verdict::Pass, Verdict::NotApplicable];
    for outcome in outcomes
        .iter()
        .filter(|outcome| outcome.check != "single-answer")
    {
        assert!(good.contains(&outcome.verdict), "{outcome:?}");
    }
    assert_eq!(bench.journal.noted, None);
}

#[test]
fn a_dut_that_comes_back_is_unlocked_at_the_end_of_the_run() {
    let (mut bench, is_away) = goes_away();
    bench.repetition(KEYS, 2, None, None);
    is_away.store(false, Ordering::Relaxed);
    let events = bench.put_back();
    assert!(
        notes(&events)[0].contains("0x000000000000abcd"),
        "{events:?}"
    );
    assert_eq!(bench.journal.noted, None);
    assert!(bench.put_back().is_empty(), "there is nothing more to do");
    let (evidence, _) = bench.repetition(KEYS, 0, None, None);
    let found = Protection {
        m_key: MKey(0xabcd),
        protect_bits: 2,
        lease_period: 60,
    };
    assert_eq!(evidence.original, Some(found));
}

/// A bench, and the Sets that reach its DUT.
fn counts_sets() -> (Bench, Arc<Mutex<u32>>) {
    let sets = Arc::new(Mutex::new(0));
    let counted = sets.clone();
    let mut transport = simulated(switch(), &[]);
    transport.on_send(Box::new(move |smp| {
        *counted.lock().unwrap() += u32::from(smp.method() == Method::SET);
        Fate::Pass
    }));
    (Bench::on(Box::new(transport)), sets)
}

#[test]
fn a_dut_that_another_tester_reaches_by_another_way_is_not_touched() {
    for case in [KEYS, TABLE] {
        let (mut bench, sets) = counts_sets();
        bench.journal.is_claimed = true;
        let (evidence, _) = bench.repetition(case, 0, None, None);
        let error = evidence.error.as_deref().unwrap();
        assert_eq!(error, "nothing was set on it: process 7 tests node 2");
        assert_eq!(*sets.lock().unwrap(), 0, "{case}");
        assert_eq!((bench.guid, bench.journal.noted), (None, None));
    }
}

#[test]
fn another_node_in_the_dut_s_place_is_not_touched() {
    for case in [KEYS, TABLE] {
        let (mut bench, sets) = counts_sets();
        bench.guid = Some(0x77);
        let (evidence, _) = bench.repetition(case, 0, None, None);
        let error = evidence.error.as_deref().unwrap();
        assert!(error.contains("0x0000000000000077"), "{error}");
        assert_eq!(*sets.lock().unwrap(), 0, "{case}");
        assert_eq!(bench.journal.noted, None);
    }
    // The one that was read first is compared.
    let mut bench = Bench::new(switch(), &[]);
    bench.case(KEYS);
    assert_eq!(bench.guid, Some(2));
}

#[test]
fn a_second_wish_to_stop_leaves_the_rest_to_the_journal() {
    for second in [false, true] {
        let mut bench = Bench::new(with_key(), &[]);
        bench.config.m_key_current = MKey(0xabcd);
        // The first comes before the Get of step 1, the second in the restoration after it.
        let mut asked = 0;
        let mut interrupts = || {
            asked += 1;
            match asked {
                ..=6 => 0,
                9.. if second => 2,
                _ => 1,
            }
        };
        let (evidence, events) = bench.with(None, &mut interrupts, |equipment, plans| {
            stimulate::run(equipment, known(KEYS), &plans(KEYS)[2])
        });
        assert!(evidence.interrupted);
        let waits = notes(&events);
        assert!(
            waits.iter().any(|note| note.contains("another Ctrl-C")),
            "{events:?}"
        );
        let is_back = bench.journal.noted.is_none();
        assert_eq!(is_back, !second, "{events:?}");
        let left = waits
            .iter()
            .any(|note| note.starts_with("left to the next run"));
        assert_eq!(left, second, "{events:?}");
        let restored = |exchange: &validator_core::evidence::mad::Exchange| {
            exchange.purpose == Purpose::Restored
        };
        assert_eq!(evidence.exchanges.iter().any(restored), !second);
    }
}
