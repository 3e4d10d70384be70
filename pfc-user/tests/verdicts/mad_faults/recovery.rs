//! Requests that are repeated, keys that are restored, and those that are left to a later run.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use ib_mad::attr::PortInfo;
use ib_mad::mad::{AttributeId, Lid, MKey, Method};
use ib_mad::requester::{Outcome, Requester};
use ib_mad::sma::NodeConfig;
use ib_mad::smp::{Route, Smp};
use ib_mad::transport::simulated::{Fate, Simulated};
use ib_mad::transport::{ReceiveError, Received, SendError, Time, Transport};
use validator::driver::bringup::mad::{KeyJournal, Noted};
use validator_core::evidence::mad::{MadEvidence, Purpose};
use validator_core::m_key::Protection;
use validator_core::verdict::{Event, Verdict};

use super::bench::{Bench, KEYS, M_KEY_DUT, TABLE, each_case, outcomes, result, simulated, switch};
use super::missing::broken;

const FOUND: Protection = Protection {
    m_key: MKey(0x0123_4567_89ab_cdef),
    protect_bits: 2,
    lease_period: 300,
};

fn with_key() -> NodeConfig {
    let Protection {
        m_key,
        protect_bits,
        lease_period,
    } = FOUND;
    NodeConfig {
        m_key,
        m_key_protect_bits: protect_bits,
        m_key_lease_period: lease_period,
        ..switch()
    }
}

/// Protection of the DUT, as a Get with the key shows it.
fn shown(requester: &mut Requester<dyn Transport>, key: MKey) -> Protection {
    let route = Route::Directed("0,1".parse().unwrap());
    let mut request = Smp::request(Method::GET, AttributeId::PORT_INFO, 0, &route);
    request.set_m_key(key);
    match requester
        .exchange(request, &route, Duration::from_secs(1))
        .unwrap()
        .outcome
    {
        Outcome::Answered { smp, .. } => Protection::of(&smp.decode::<PortInfo>().unwrap()),
        other => panic!("{other:?}"),
    }
}

/// All but the subjects that a subcase has not.
fn all_pass(case: &str, repetitions: &[MadEvidence]) {
    for outcome in outcomes(case, repetitions) {
        assert!(
            matches!(outcome.verdict, Verdict::Pass | Verdict::NotApplicable),
            "{outcome:?}"
        );
    }
}

fn of(evidence: &MadEvidence, purpose: Purpose) -> usize {
    evidence
        .exchanges
        .iter()
        .filter(|exchange| exchange.purpose == purpose)
        .count()
}

#[test]
fn what_is_busy_or_lost_is_asked_again_and_recorded() {
    for (fault, times) in [("busy=1", 1), ("busy=2", 2)] {
        let mut bench = Bench::new(switch(), &[fault.parse().unwrap()]);
        let repetitions = bench.case(KEYS);
        all_pass(KEYS, &repetitions);
        assert_eq!(of(&repetitions[0], Purpose::DutPort), 1 + times, "{fault}");
        let figures = result(KEYS, &repetitions).figures;
        let requests = figures
            .iter()
            .find(|figure| figure.name == "requests")
            .unwrap();
        assert!(
            requests.value.contains(&format!("{times} answered BUSY")),
            "{requests:?}"
        );
    }
    for fault in ["drops=10", "drops=8", "drops=5"] {
        for outcome in each_case(&switch(), MKey(0), &[fault.parse().unwrap()]) {
            // A wrong key that is lost, and one that is not counted, look alike.
            let is_open = outcome.check == "one-violation"
                && outcome.verdict == Verdict::Inconclusive
                && outcome.reason.contains("explains that");
            let passes = matches!(outcome.verdict, Verdict::Pass | Verdict::NotApplicable);
            assert!(passes || is_open, "{fault}: {outcome:?}");
        }
    }
    for fault in ["busy-wrong-key", "busy-wrong-key=2"] {
        all_pass(
            KEYS,
            &Bench::new(switch(), &[fault.parse().unwrap()]).case(KEYS),
        );
    }
    let repetitions = Bench::new(switch(), &["drops=10".parse().unwrap()]).case(TABLE);
    assert_eq!(
        repetitions[0]
            .exchanges
            .iter()
            .filter(|exchange| exchange.answer.is_none())
            .count(),
        171
    );
}

/// A DUT whose requests with M_KEY_OTHER are lost, so many of them.
pub fn loses_wrong_keys(mut count: u32) -> Bench {
    let mut transport = simulated(switch(), &[]);
    transport.on_send(Box::new(move |smp| {
        if [MKey(0), M_KEY_DUT].contains(&smp.m_key()) || count == 0 {
            return Fate::Pass;
        }
        count -= 1;
        Fate::Lose
    }));
    Bench::on(Box::new(transport))
}

#[test]
fn violations_0_through_a_lost_request_are_tried_again() {
    for (lost, attempts, verdict) in [
        (0, 1, Verdict::Pass),
        (1, 2, Verdict::Inconclusive),
        (2, 3, Verdict::Inconclusive),
        (3, 3, Verdict::Inconclusive),
    ] {
        let mut bench = loses_wrong_keys(lost);
        let (evidence, _) = bench.repetition(KEYS, 2, None, None);
        assert_eq!(
            (
                of(&evidence, Purpose::OtherKey),
                of(&evidence, Purpose::DutKey)
            ),
            (attempts + 10, attempts + 10),
            "the first kind of key is tried again, and ten others once"
        );
        for outcome in outcomes(KEYS, std::slice::from_ref(&evidence)) {
            let expected = match outcome.check.as_str() {
                "one-violation" => verdict,
                // Silence is what a request that is lost gets.
                "no-answer" if lost == 3 => Verdict::Inconclusive,
                "other-key-answered" | "other-key-value" | "no-violation" => Verdict::NotApplicable,
                _ => Verdict::Pass,
            };
            assert_eq!(outcome.verdict, expected, "{lost} lost: {outcome:?}");
        }
        assert_eq!(shown(&mut bench.requester, MKey(0)), Protection::NONE);
    }
}

#[test]
fn a_reset_is_tried_with_keys_that_a_good_dut_accepts() {
    // Two of the three resets are lost.
    let mut transport = simulated(with_key(), &[]);
    let mut sets = 0;
    transport.on_send(Box::new(move |smp| {
        sets += usize::from(smp.method() == Method::SET);
        match smp.method() == Method::SET && [2, 3].contains(&sets) {
            true => Fate::Lose,
            false => Fate::Pass,
        }
    }));
    let mut bench = Bench::on(Box::new(transport));
    bench.config.m_key_current = FOUND.m_key;
    let (evidence, _) = bench.repetition(KEYS, 2, None, None);
    let resets = evidence
        .exchanges
        .iter()
        .filter(|exchange| exchange.purpose == Purpose::Reset)
        .map(|exchange| Smp::parse(&exchange.request.0).unwrap().m_key());
    assert_eq!(resets.collect::<Vec<_>>(), [M_KEY_DUT; 2 + 11]);
    all_pass(KEYS, &[evidence]);
}

/// Loses answers that `lost` picks.
pub struct LosesAnswers {
    pub inner: Simulated,
    pub lost: Box<dyn FnMut(&Smp) -> bool>,
}

impl Transport for LosesAnswers {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn now(&self) -> Time {
        self.inner.now()
    }
    fn send(&mut self, smp: &Smp, to: Lid, wait: Duration) -> Result<(), SendError> {
        self.inner.send(smp, to, wait)
    }
    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError> {
        loop {
            match self.inner.receive(deadline)? {
                Some(received)
                    if Smp::parse(&received.octets).is_ok_and(|smp| (self.lost)(&smp)) => {}
                other => return Ok(other),
            }
        }
    }
    fn shows_unmatched(&self) -> bool {
        true
    }
    fn set_wake(&mut self, wake: Option<std::os::fd::OwnedFd>) {
        self.inner.set_wake(wake);
    }
}

#[test]
fn a_set_whose_answer_is_lost_is_not_lost() {
    // Each answer of a subcase in turn, those to Sets among them.
    for dut in [switch(), with_key()].map(|dut| NodeConfig {
        master_sm_lid: Lid(0),
        ..dut
    }) {
        for victim in 0..11 {
            let mut count = 0;
            let lost = Box::new(move |_: &Smp| {
                count += 1;
                count == victim + 1
            });
            let mut bench = Bench::on(Box::new(LosesAnswers {
                inner: simulated(dut.clone(), &[]),
                lost,
            }));
            bench.config.m_key_current = dut.m_key;
            let (evidence, _) = bench.repetition(KEYS, 3, None, None);
            let unanswered = evidence
                .exchanges
                .iter()
                .filter(|exchange| exchange.answer.is_none())
                .count();
            assert!(unanswered >= 2, "{victim}: {unanswered}");
            all_pass(KEYS, &[evidence]);
            assert_eq!(shown(&mut bench.requester, dut.m_key).m_key, dut.m_key);
        }
    }
}

#[test]
fn key_bits_and_lease_are_as_they_were_after_each_subcase() {
    let mut bench = Bench::new(with_key(), &[]);
    bench.config.m_key_current = FOUND.m_key;
    for subcase in 0..4 {
        let (evidence, _) = bench.repetition(KEYS, subcase, None, None);
        all_pass(KEYS, &[evidence]);
        assert_eq!(shown(&mut bench.requester, FOUND.m_key), FOUND);
    }
}

#[test]
fn an_interruption_anywhere_leaves_the_dut_as_it_was() {
    for (dut, key) in [(switch(), MKey(0)), (with_key(), FOUND.m_key)] {
        let found = Protection {
            m_key: key,
            protect_bits: dut.m_key_protect_bits,
            lease_period: dut.m_key_lease_period,
        };
        let mut whole = 0;
        for stop in 0.. {
            let mut bench = Bench::new(dut.clone(), &[]);
            bench.config.m_key_current = key;
            let (evidence, _) = bench.repetition(KEYS, 2, None, Some(stop));
            assert_eq!(
                shown(&mut bench.requester, key),
                found,
                "stopped before request {stop}"
            );
            if !evidence.interrupted {
                all_pass(KEYS, &[evidence]);
                break;
            }
            whole += 1;
            let was_changed = of(&evidence, Purpose::KeySet) > 0;
            for outcome in outcomes(KEYS, &[evidence]) {
                let expected = match outcome.check.as_str() {
                    "restored" if was_changed => Verdict::Pass,
                    "other-key-answered" | "other-key-value" | "no-violation" => {
                        Verdict::NotApplicable
                    }
                    _ => Verdict::Inconclusive,
                };
                assert_eq!(outcome.verdict, expected, "{stop}: {outcome:?}");
            }
        }
        assert!(whole > 6, "{whole}");
    }
}

/// Notes to the journal, between the requests.
#[derive(Clone, Default)]
struct JournalLog(Rc<RefCell<Vec<String>>>);

impl KeyJournal for JournalLog {
    fn met(&mut self, guid: u64) -> anyhow::Result<()> {
        self.0.borrow_mut().push(format!("met {guid}"));
        Ok(())
    }
    fn remember(&mut self, noted: &Noted) -> anyhow::Result<Protection> {
        self.0
            .borrow_mut()
            .push(format!("remember {}", noted.found));
        Ok(noted.found)
    }
    fn pending(&self) -> Option<Noted> {
        None
    }
    fn forget(&mut self) -> anyhow::Result<()> {
        self.0.borrow_mut().push("forget".into());
        Ok(())
    }
}

/// A transport that logs Sets.
struct LogsSets {
    inner: Simulated,
    log: JournalLog,
}

impl Transport for LogsSets {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn now(&self) -> Time {
        self.inner.now()
    }
    fn send(&mut self, smp: &Smp, to: Lid, wait: Duration) -> Result<(), SendError> {
        if smp.method() == Method::SET {
            self.log.0.borrow_mut().push("set".into());
        }
        self.inner.send(smp, to, wait)
    }
    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError> {
        self.inner.receive(deadline)
    }
    fn shows_unmatched(&self) -> bool {
        false
    }
    fn set_wake(&mut self, wake: Option<std::os::fd::OwnedFd>) {
        self.inner.set_wake(wake);
    }
}

#[test]
fn the_key_is_written_down_before_the_first_set_and_forgotten_when_it_is_back() {
    let logged = |dut: NodeConfig, faults: &[&str], current: MKey| {
        let mut log = JournalLog::default();
        let faults: Vec<_> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        let transport = LogsSets {
            inner: simulated(dut, &faults),
            log: log.clone(),
        };
        let mut bench = Bench::on(Box::new(transport));
        bench.config.m_key_current = current;
        let (_, events) = bench.repetition(KEYS, 3, Some(&mut log), None);
        let notes: Vec<_> = events
            .into_iter()
            .filter(|event| matches!(event, Event::Note(_)))
            .collect();
        (log.0.take(), notes)
    };
    let (list, notes) = logged(with_key(), &[], FOUND.m_key);
    assert_eq!(
        list,
        [
            &["met 2", &*format!("remember {FOUND}")][..],
            &["set"; 2 * 11 + 1][..],
            &["forget"]
        ]
        .concat()
    );
    assert!(notes.is_empty(), "{notes:?}");

    // The key is not back: the note stays, and the user is told.
    let (list, notes) = logged(with_key(), &["one-key"], FOUND.m_key);
    assert_eq!(list.last().unwrap(), "set");
    assert_eq!(notes.len(), 1, "{notes:?}");

    // The DUT has another key than the testbed says: nothing is set.
    let (list, _) = logged(
        NodeConfig {
            m_key_protect_bits: 0,
            ..with_key()
        },
        &[],
        MKey(7),
    );
    assert_eq!(list, Vec::<String>::new());
}

#[test]
fn what_a_transport_cannot_show_is_said() {
    let transport = LogsSets {
        inner: simulated(switch(), &["twice".parse().unwrap()]),
        log: JournalLog::default(),
    };
    let repetitions = Bench::on(Box::new(transport)).case(KEYS);
    let result = result(KEYS, &repetitions);
    assert!(
        result
            .figures
            .iter()
            .any(|figure| figure.name == "not visible")
    );
    let silence = result
        .checks
        .iter()
        .find(|check| check.check == "no-answer" && check.verdict == Verdict::Pass)
        .unwrap();
    assert!(
        silence
            .assertions
            .iter()
            .any(|assertion| assertion.actual.contains("could not be seen")),
        "{silence:?}"
    );

    let mut evidence = Bench::on(Box::new(LogsSets {
        inner: simulated(switch(), &[]),
        log: JournalLog::default(),
    }))
    .case(KEYS);
    for outcome in outcomes(KEYS, &evidence.split_off(0)) {
        if outcome.check == "single-answer" {
            assert_eq!(outcome.verdict, Verdict::NotApplicable, "{outcome:?}");
        }
    }
}

#[test]
fn a_refused_packet_is_an_error_and_not_a_time_out() {
    let mut transport = simulated(with_key(), &[]);
    let mut sent = 0;
    transport.on_send(Box::new(move |_| {
        sent += 1;
        if sent == 7 { Fate::Refuse } else { Fate::Pass }
    }));
    let mut bench = Bench::on(Box::new(transport));
    bench.config.m_key_current = FOUND.m_key;
    let (evidence, _) = bench.repetition(KEYS, 2, None, None);
    assert!(
        evidence
            .error
            .as_ref()
            .is_some_and(|error| error.contains("refused")),
        "{:?}",
        evidence.error
    );
    // Checks that were decided before stay, and those that were not name the error.
    let outcomes = outcomes(KEYS, &[evidence]);
    let of = |check: &str| {
        outcomes
            .iter()
            .find(|outcome| outcome.check == check)
            .unwrap()
    };
    assert_eq!(
        ["port-state", "key-set", "restored"].map(|check| of(check).verdict),
        [Verdict::Pass; 3],
        "{outcomes:#?}"
    );
    for check in ["own-key-answered", "no-answer", "one-violation"] {
        assert!(
            of(check).verdict == Verdict::Inconclusive && of(check).reason.contains("refused"),
            "{:?}",
            of(check)
        );
    }
    assert_eq!(shown(&mut bench.requester, FOUND.m_key), FOUND);
}

/// A transport whose waits end, from one of them on, because the user wishes to stop.
struct Woken {
    inner: Simulated,
    waits: usize,
    is_heard: bool,
}

impl Transport for Woken {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn now(&self) -> Time {
        self.inner.now()
    }
    fn send(&mut self, smp: &Smp, to: Lid, wait: Duration) -> Result<(), SendError> {
        self.inner.send(smp, to, wait)
    }
    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError> {
        if self.waits == 0 && !self.is_heard {
            return Err(ReceiveError::Interrupted);
        }
        self.waits = self.waits.saturating_sub(1);
        self.inner.receive(deadline)
    }
    fn shows_unmatched(&self) -> bool {
        true
    }
    fn set_wake(&mut self, wake: Option<std::os::fd::OwnedFd>) {
        self.is_heard = wake.is_none();
    }
}

#[test]
fn a_wait_that_is_interrupted_leaves_the_dut_as_it_was() {
    let dut = NodeConfig {
        master_sm_lid: Lid(0),
        ..with_key()
    };
    // Answers up to the silence after the wrong key, and that silence; what is restored is not cut
    // short.
    for waits in 4..17 {
        let mut bench = Bench::on(Box::new(Woken {
            inner: simulated(dut.clone(), &[]),
            waits,
            is_heard: false,
        }));
        bench.config.m_key_current = FOUND.m_key;
        let (evidence, _) = bench.repetition(KEYS, 3, None, None);
        bench.requester.transport().set_wake(None);
        assert_eq!(
            shown(&mut bench.requester, FOUND.m_key),
            FOUND,
            "interrupted in wait {waits}"
        );
        let was_set = of(&evidence, Purpose::Restored) > 0;
        assert_eq!(broken(&evidence), None, "interrupted in wait {waits}");
        let outcomes = outcomes(KEYS, &[evidence]);
        let restored = outcomes
            .iter()
            .find(|outcome| outcome.check == "restored")
            .unwrap();
        assert!(
            was_set && restored.verdict == Verdict::Pass,
            "interrupted in wait {waits}: {restored:?}"
        );
    }
}
