//! Packets that match no request, and TIDs.

use ib_mad::mad::{Lid, Status, Tid};
use ib_mad::sma::NodeConfig;
use ib_mad::smp::Smp;
use validator_core::evidence::mad::{MOST_STRAYS, MadEvidence, Packet, Purpose, Stray};
use validator_core::verdict::Verdict;

use super::bench::{Bench, KEYS, known, outcomes, switch};

pub fn verdict(repetitions: &[MadEvidence], name: &str, check: &str) -> Verdict {
    let outcomes = outcomes(KEYS, repetitions);
    let mut of = outcomes
        .iter()
        .filter(|outcome| outcome.name == name && outcome.check == check);
    of.next().unwrap().verdict
}

pub fn quiet() -> NodeConfig {
    NodeConfig {
        master_sm_lid: Lid(0),
        ..switch()
    }
}

pub fn good(bits: usize) -> MadEvidence {
    Bench::new(quiet(), &[])
        .repetition(KEYS, bits, None, None)
        .0
}

pub fn request(evidence: &MadEvidence, purpose: Purpose) -> (u64, Smp) {
    let is = |exchange: &&validator_core::evidence::mad::Exchange| exchange.purpose == purpose;
    let exchange = evidence.exchanges.iter().find(is).unwrap();
    (exchange.sent, Smp::parse(&exchange.request.0).unwrap())
}

/// `evidence` with a response to M_KEY_OTHER that has that TID, in time.
fn answered_by(evidence: &MadEvidence, tid: Tid, of_earlier: bool) -> MadEvidence {
    let (sent, wrong) = request(evidence, Purpose::OtherKey);
    let mut response = wrong.response(Status::OK);
    response.set_tid(tid);
    let mut evidence = evidence.clone();
    evidence.strays.push(Stray {
        packet: Packet {
            at: sent + 1,
            octets: response.octets().into(),
        },
        of_earlier,
    });
    evidence
}

#[test]
fn an_answer_to_the_wrong_key_with_a_tid_that_the_dut_never_got_does_not_pass() {
    let evidence = good(2);
    let checks = ["no-answer", "single-answer"];
    let verdicts =
        |repetitions: &[MadEvidence], name| checks.map(|check| verdict(repetitions, name, check));
    assert_eq!(
        verdicts(std::slice::from_ref(&evidence), "bits-2"),
        [Verdict::Pass; 2]
    );
    let (_, tester) = request(&evidence, Purpose::TesterPort);
    let by_tester = answered_by(&evidence, tester.tid(), false);
    assert_eq!(verdicts(&[by_tester], "bits-2"), [Verdict::Inconclusive; 2]);
    // An answer to a request of another case.
    let earlier = answered_by(&evidence, Tid(0xdead), true);
    assert_eq!(
        verdicts(std::slice::from_ref(&earlier), "bits-2"),
        [Verdict::Inconclusive; 2]
    );
    // An answer to a request of an earlier repetition of this case, which it fails.
    let mut before = good(1);
    let (_, own) = request(&before, Purpose::OwnKey);
    for exchange in &mut before.exchanges {
        exchange.request.0[12] ^= 0x40;
        if let Some(answer) = &mut exchange.answer {
            answer.octets.0[12] ^= 0x40;
        }
    }
    let mut tid = own.tid();
    tid.0 ^= 0x4000_0000;
    let both = [before, answered_by(&evidence, tid, true)];
    assert_eq!(verdicts(&both, "bits-2"), [Verdict::Pass; 2]);
    assert_eq!(verdict(&both, "bits-1", "single-answer"), Verdict::Fail);
    // An answer to nobody's request.
    let nobody = answered_by(&evidence, Tid(0xdead), false);
    assert_eq!(verdicts(&[nobody], "bits-2"), [Verdict::Fail; 2]);
}

#[test]
fn another_tid_is_wrong_only_where_the_transport_leaves_it_alone() {
    let fault = "header=tid".parse().unwrap();
    let (mut evidence, _) = Bench::new(quiet(), &[fault]).repetition(KEYS, 0, None, None);
    for (keeps, expected) in [(true, Verdict::Fail), (false, Verdict::Pass)] {
        evidence.keeps_tids = keeps;
        let repetitions = std::slice::from_ref(&evidence);
        assert_eq!(verdict(repetitions, "bits-0", "header"), expected);
    }
}

#[test]
fn strays_are_bounded_and_those_left_out_allow_no_pass() {
    let (evidence, _) =
        Bench::new(quiet(), &["twice".parse().unwrap()]).repetition(KEYS, 2, None, None);
    assert_eq!((evidence.strays_left_out, evidence.traps_left_out), (0, 0));
    // Traps that were left out leave open only what they show.
    for (strays, traps, expected) in [
        (1, 0, [Verdict::Inconclusive; 3]),
        (0, 1, [Verdict::Pass, Verdict::Pass, Verdict::Inconclusive]),
    ] {
        let mut evidence = good(2);
        (evidence.strays_left_out, evidence.traps_left_out) = (strays, traps);
        let repetitions = std::slice::from_ref(&evidence);
        let found = ["no-answer", "single-answer", "header"]
            .map(|check| verdict(repetitions, "bits-2", check));
        assert_eq!(found, expected, "{strays}, {traps}");
    }
    // The table has more answers than are kept, each twice.
    let (evidence, _) = Bench::new(quiet(), &["twice".parse().unwrap()]).repetition(
        super::bench::TABLE,
        0,
        None,
        None,
    );
    assert_eq!(evidence.strays.len(), MOST_STRAYS);
    let all = evidence.exchanges.len() - 1;
    let left_out = evidence.strays_left_out as usize;
    assert_eq!(MOST_STRAYS + left_out, all);
}

#[test]
fn what_is_not_judged_of_portinfo_is_reported() {
    let figures = |evidence: &MadEvidence| {
        let figures = known(KEYS).judge(evidence).figures.into_iter();
        let wanted = ["PortInfo changed otherwise", "modifiers of answers"];
        let figures = figures.filter(|figure| wanted.contains(&figure.name.as_str()));
        figures.map(|figure| figure.value).collect::<Vec<_>>()
    };
    let mut evidence = good(0);
    assert_eq!(figures(&evidence), Vec::<String>::new());
    let is =
        |exchange: &validator_core::evidence::mad::Exchange| exchange.purpose == Purpose::Restored;
    let last = evidence.exchanges.iter().rposition(is).unwrap();
    let octets = &mut evidence.exchanges[last].answer.as_mut().unwrap().octets.0;
    // NeighborMTU, and the modifier.
    octets[64 + 36] ^= 0x10;
    octets[23] = 9;
    assert_eq!(
        figures(&evidence),
        ["1, the first 9 to Get(PortInfo)", "octets 36"]
    );
    for outcome in outcomes(KEYS, &[evidence]) {
        assert_ne!(outcome.verdict, Verdict::Fail, "{outcome:?}");
    }
}
