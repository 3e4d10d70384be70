//! A key that is shown to those who did not send it.

use ib_mad::mad::{AttributeId, Lid, MKey, Method, Status};
use ib_mad::sma::NodeConfig;
use ib_mad::smp::{Route, Smp};
use validator_core::evidence::mad::{Exchange, MadEvidence, Packet, Purpose, Stray};
use validator_core::verdict::Verdict;

use super::bench::{Bench, KEYS, M_KEY_DUT, outcomes, switch};
use super::strays::{good, quiet, request, verdict};

/// The DUT's key before the run, where that matters.
const FOUND: MKey = MKey(0x0123_4567_89ab_cdef);

/// Every place for a key in a packet, from the M_Key of the header on.
const PLACES: std::ops::RangeInclusive<usize> = 24..=248;

fn put(octets: &mut [u8], at: usize) {
    octets[at..at + 8].copy_from_slice(&M_KEY_DUT.0.to_be_bytes());
}

/// The verdict of `header` with the key at `at` in the answer to the exchange of that index.
fn with_answer(evidence: &MadEvidence, name: &str, index: usize, at: usize) -> Verdict {
    let mut evidence = evidence.clone();
    let answer = evidence.exchanges[index].answer.as_mut().unwrap();
    put(&mut answer.octets.0, at);
    verdict(&[evidence], name, "header")
}

/// The verdict of `header` at protect bits 2 with that stray alone.
fn with_stray(evidence: &MadEvidence, at: u64, octets: &[u8; 256], of_earlier: bool) -> Verdict {
    let mut evidence = evidence.clone();
    evidence.strays = vec![Stray {
        packet: Packet {
            at,
            octets: octets.into(),
        },
        of_earlier,
    }];
    verdict(&[evidence], "bits-2", "header")
}

fn index(evidence: &MadEvidence, is: impl Fn(&Exchange) -> bool) -> usize {
    evidence.exchanges.iter().position(is).unwrap()
}

#[test]
fn a_key_with_an_octet_0_is_found_too() {
    for fault in ["key-in-header", "key-in-notice"] {
        let mut bench = Bench::new(switch(), &[fault.parse().unwrap()]);
        bench.config.m_key_dut = MKey(0x1100_3344_0066_7788);
        let repetitions = bench.case(KEYS);
        for bits in ["bits-2", "bits-3"] {
            assert_eq!(
                verdict(&repetitions, bits, "header"),
                Verdict::Fail,
                "{fault}"
            );
        }
    }
}

#[test]
fn what_only_looks_like_a_key_does_not_fail() {
    // The GidPrefix, a LID and a time-out of a good DUT, and what is mostly 0.
    for key in [0xfe80 << 48, 0x0002_0001, 1, 1 << 63] {
        let mut bench = Bench::new(switch(), &[]);
        bench.config.m_key_dut = MKey(key);
        for outcome in outcomes(KEYS, &bench.case(KEYS)) {
            let fails = outcome.verdict == Verdict::Fail;
            assert!(!fails, "{key:#x}: {outcome:?}");
        }
    }
}

#[test]
fn each_octet_of_a_notice_is_looked_at() {
    let evidence = good(2);
    let (sent, _) = request(&evidence, Purpose::OtherKey);
    let route = Route::Lid(Lid(1));
    for at in PLACES {
        let mut trap = Smp::request(Method::TRAP, AttributeId::NOTICE, 0, &route);
        put(trap.octets_mut(), at);
        let found = with_stray(&evidence, sent + 1, trap.octets(), false);
        assert_eq!(found, Verdict::Fail, "{at}");
        // The DUT has another key before, or none.
        assert_eq!(
            with_stray(&evidence, 1, trap.octets(), false),
            Verdict::Pass
        );
    }
}

#[test]
fn each_octet_of_an_answer_to_the_wrong_key_is_looked_at() {
    let evidence = good(1);
    let other = index(&evidence, |one| one.purpose == Purpose::OtherKey);
    // PortInfo:M_Key, at 64, is judged by the step that reads it.
    for at in PLACES.filter(|at| *at != 64) {
        let found = with_answer(&evidence, "bits-1", other, at);
        assert_eq!(found, Verdict::Fail, "{at}");
    }
}

#[test]
fn each_octet_of_an_answer_to_the_key_that_was_found_is_looked_at() {
    let dut = NodeConfig {
        m_key: FOUND,
        m_key_protect_bits: 1,
        ..quiet()
    };
    let mut bench = Bench::new(dut, &[]);
    bench.config.m_key_current = FOUND;
    let (evidence, _) = bench.repetition(KEYS, 3, None, None);
    let restored = index(&evidence, |one| one.purpose == Purpose::Restored);
    // Octet 98 has the protect bits, which tell if anybody may read it.
    for at in PLACES.filter(|at| !(91..=98).contains(at)) {
        let found = with_answer(&evidence, "bits-3", restored, at);
        assert_eq!(found, Verdict::Fail, "{at}");
    }
    // Anybody may read it at protect bits 0.
    let mut reset = evidence.clone();
    let port = &mut reset.exchanges[restored].answer.as_mut().unwrap().octets.0[64..];
    port[34] &= 0x3f;
    assert_eq!(with_answer(&reset, "bits-3", restored, 64), Verdict::Pass);
    // Nobody has the key of the test from what was answered before it was set.
    let port = index(&evidence, |one| one.purpose == Purpose::LinkPort);
    assert_eq!(with_answer(&evidence, "bits-3", port, 248), Verdict::Pass);
}

#[test]
fn who_sent_the_key_may_see_it_anywhere() {
    let evidence = good(3);
    for purpose in [
        Purpose::KeyShown,
        Purpose::OwnKey,
        Purpose::DutKey,
        Purpose::ResetShown,
    ] {
        let own = index(&evidence, |one| one.purpose == purpose);
        for at in [72, 120, 248] {
            let found = with_answer(&evidence, "bits-3", own, at);
            assert_eq!(found, Verdict::Pass, "{purpose:?}, {at}");
        }
    }
}

#[test]
fn each_octet_of_an_answer_that_nobody_awaits_is_looked_at() {
    let evidence = good(2);
    let (sent, wrong) = request(&evidence, Purpose::OtherKey);
    let (own_at, own) = request(&evidence, Purpose::OwnKey);
    let (_, tester) = request(&evidence, Purpose::TesterPort);
    let mut foreign = wrong.clone();
    foreign.set_tid(ib_mad::mad::Tid(0xdead));
    for at in PLACES.filter(|at| *at != 64) {
        let answer = |request: &Smp| {
            let mut answer = request.response(Status::OK);
            put(answer.octets_mut(), at);
            answer
        };
        let late = u64::MAX / 2;
        for (request, when, of_earlier, expected) in [
            // In time or late, and with a TID of nobody's while the wrong key was waited for.
            (&wrong, sent + 1, false, Verdict::Fail),
            (&wrong, late, false, Verdict::Fail),
            (&foreign, sent + 1, false, Verdict::Fail),
            // It may answer who sent the key.
            (&own, sent + 1, false, Verdict::Pass),
            (&foreign, own_at + 1, false, Verdict::Pass),
            // Nothing shows who sent it.
            (&foreign, sent + 1, true, Verdict::Inconclusive),
            (&tester, sent + 1, false, Verdict::Inconclusive),
        ] {
            let found = with_stray(&evidence, when, answer(request).octets(), of_earlier);
            assert_eq!(found, expected, "{at} of {request:?} at {when}");
        }
    }
}

#[test]
fn the_ports_of_a_path_are_no_key() {
    let mut bench = Bench::new(quiet(), &[]);
    // The path has one hop: its port is 1.
    bench.config.m_key_dut = MKey(0x0001_0000_0000_0000);
    let (evidence, _) = bench.repetition(KEYS, 1, None, None);
    assert_eq!(verdict(&[evidence], "bits-1", "header"), Verdict::Pass);
}
