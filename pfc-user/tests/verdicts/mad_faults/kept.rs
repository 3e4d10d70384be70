//! Answers to a wrong key that come late, over a transport that drops what answers no request that
//! it keeps, and answers that say that the DUT is busy.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use ib_mad::mad::{Lid, MKey, Status};
use ib_mad::smp::Smp;
use ib_mad::transport::simulated::Simulated;
use ib_mad::transport::{Overslept, ReceiveError, Received, SendError, Time, Transport};
use validator_core::evidence::mad::{MadEvidence, Packet, Purpose, Stray};
use validator_core::evidence::pfc::Stall;
use validator_core::verdict::Verdict;

use super::bench::{Bench, KEYS, M_KEY_DUT, TIMEOUT, known, simulated};
use super::strays::{quiet, verdict};

/// Drops responses as Linux' umad does: those that match no request that it still keeps.
struct Keeps {
    inner: Simulated,
    /// Until when, by the low half of the TID.
    kept: HashMap<u32, Time>,
}

impl Keeps {
    fn bench(faults: &[&str]) -> Bench {
        let faults: Vec<_> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        Bench::on(Box::new(Self {
            inner: simulated(quiet(), &faults),
            kept: HashMap::new(),
        }))
    }
}

impl Transport for Keeps {
    fn name(&self) -> String {
        "like umad".into()
    }
    fn now(&self) -> Time {
        self.inner.now()
    }
    fn send(&mut self, smp: &Smp, to: Lid, keep: Duration) -> Result<(), SendError> {
        self.kept.insert(smp.tid().0 as u32, self.now() + keep);
        self.inner.send(smp, to, keep)
    }
    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError> {
        while let Some(received) = self.inner.receive(deadline)? {
            let smp = Smp::parse(&received.octets).unwrap();
            let tid = smp.tid().0 as u32;
            // Each response ends the keeping.
            if !smp.method().is_response()
                || self
                    .kept
                    .remove(&tid)
                    .is_some_and(|until| received.at <= until)
            {
                return Ok(Some(received));
            }
        }
        Ok(None)
    }
    fn shows_unmatched(&self) -> bool {
        false
    }
    fn set_wake(&mut self, wake: Option<OwnedFd>) {
        self.inner.set_wake(wake);
    }
}

fn seen(evidence: &MadEvidence) -> String {
    let figures = known(KEYS).judge(evidence).figures;
    let is_it = |name: &str| name == "answers to a wrong key seen";
    let figure = figures.into_iter().find(|figure| is_it(&figure.name));
    figure.unwrap().value
}

#[test]
fn an_answer_to_the_wrong_key_is_seen_after_its_time_too() {
    for bits in [2, 3] {
        let name = format!("bits-{bits}");
        let (good, _) = Keeps::bench(&[]).repetition(KEYS, bits, None, None);
        assert_eq!(verdict(&[good], &name, "no-answer"), Verdict::Pass);
        // Within the 200 ms of a wait, after it, and long after it while the case goes on.
        for late in [100, 250, 550] {
            let fault = format!("answers-wrong-key-late={late}");
            let (evidence, _) = Keeps::bench(&[&fault]).repetition(KEYS, bits, None, None);
            let found = verdict(&[evidence], &name, "no-answer");
            assert_eq!(found, Verdict::Fail, "{late} ms");
        }
    }
}

#[test]
fn the_report_says_until_when_an_answer_could_be_seen() {
    let (mut evidence, _) = Keeps::bench(&[]).repetition(KEYS, 2, None, None);
    let is = |one: &&validator_core::evidence::mad::Exchange| one.purpose == Purpose::OtherKey;
    let last = evidence.exchanges.iter().rfind(is).unwrap();
    let kept = Duration::from_nanos(last.kept - last.sent);
    assert_eq!(kept, Duration::from_secs(10));
    // The case ends before: its last wait is one more time-out.
    let shown = seen(&evidence);
    assert!(shown.starts_with("until 400."), "{shown}");
    evidence.listened_until += 60_000_000_000;
    assert_eq!(seen(&evidence), "until 10000.000 ms after");
}

/// A DUT that says BUSY to the first `count` Gets with a wrong key; it looks at the key or not.
struct Busy {
    inner: Simulated,
    count: usize,
    looks: bool,
    late: Duration,
    answers: Vec<Received>,
}

impl Transport for Busy {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn now(&self) -> Time {
        self.inner.now()
    }
    fn send(&mut self, smp: &Smp, to: Lid, keep: Duration) -> Result<(), SendError> {
        let is_wrong = ![MKey(0), M_KEY_DUT].contains(&smp.m_key()) && smp.hops().1 > 0;
        if !is_wrong || self.count == 0 {
            return self.inner.send(smp, to, keep);
        }
        self.count -= 1;
        self.answers.push(Received {
            at: self.now() + self.late,
            octets: smp.response(Status::BUSY).octets().to_vec(),
        });
        match self.looks {
            true => self.inner.send(smp, to, keep),
            false => Ok(()),
        }
    }
    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError> {
        match self.answers.pop_if(|answer| answer.at <= deadline) {
            Some(answer) => Ok(Some(answer)),
            None => self.inner.receive(deadline),
        }
    }
    fn shows_unmatched(&self) -> bool {
        true
    }
    fn set_wake(&mut self, wake: Option<OwnedFd>) {
        self.inner.set_wake(wake);
    }
}

#[test]
fn busy_to_a_wrong_key_is_the_same_in_time_and_late() {
    for late in [Duration::from_millis(1), TIMEOUT + Duration::from_millis(1)] {
        // Discarded once, and sent again; always; and not discarded at all.
        for (count, looks, expected) in [
            (1, false, [Verdict::Pass; 2]),
            (99, false, [Verdict::Inconclusive; 2]),
            (99, true, [Verdict::Fail; 2]),
        ] {
            let mut bench = Bench::on(Box::new(Busy {
                inner: simulated(quiet(), &[]),
                count,
                looks,
                late,
                answers: Vec::new(),
            }));
            let (evidence, _) = bench.repetition(KEYS, 2, None, None);
            let found = ["no-answer", "one-violation"]
                .map(|check| verdict(std::slice::from_ref(&evidence), "bits-2", check));
            assert_eq!(found, expected, "{count}, {looks}, {late:?}");
        }
    }
}

/// Oversleeps the wait for what does not come, once.
struct Oversleeps {
    inner: Simulated,
    overslept: Vec<Overslept>,
}

impl Transport for Oversleeps {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn now(&self) -> Time {
        self.inner.now()
    }
    fn send(&mut self, smp: &Smp, to: Lid, keep: Duration) -> Result<(), SendError> {
        self.inner.send(smp, to, keep)
    }
    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError> {
        self.inner.receive(deadline)
    }
    fn shows_unmatched(&self) -> bool {
        self.inner.shows_unmatched()
    }
    fn take_overslept(&mut self) -> Vec<Overslept> {
        std::mem::take(&mut self.overslept)
    }
    fn set_wake(&mut self, wake: Option<OwnedFd>) {
        self.inner.set_wake(wake);
    }
}

#[test]
fn a_wait_that_the_tester_overslept_excuses_what_came_late_then() {
    let (good, _) = Bench::new(quiet(), &[]).repetition(KEYS, 0, None, None);
    let own = good
        .exchanges
        .iter()
        .position(|one| one.purpose == Purpose::OwnKey)
        .unwrap();
    let deadline = Duration::from_nanos(good.exchanges[own].deadline);
    let by = Duration::from_millis(60);
    for (overslept, expected) in [
        (None, Verdict::Fail),
        (Some((deadline, deadline + by)), Verdict::Inconclusive),
        (Some((deadline + by, deadline + 2 * by)), Verdict::Fail),
    ] {
        let overslept: Vec<_> = overslept
            .map(|(due, ended)| Overslept { due, ended })
            .into_iter()
            .collect();
        let mut bench = Bench::on(Box::new(Oversleeps {
            inner: simulated(quiet(), &[]),
            overslept: overslept.clone(),
        }));
        let (mut evidence, _) = bench.repetition(KEYS, 0, None, None);
        let stalls = overslept.iter().map(|wait| Stall {
            from: wait.due.as_nanos() as u64,
            to: wait.ended.as_nanos() as u64,
        });
        assert_eq!(evidence.stalls, stalls.collect::<Vec<_>>());
        let answer = evidence.exchanges[own].answer.take().unwrap();
        evidence.strays.push(Stray {
            packet: Packet {
                at: (deadline + by / 2).as_nanos() as u64,
                ..answer
            },
            of_earlier: false,
        });
        let found = verdict(&[evidence], "bits-0", "single-answer");
        assert_eq!(found, expected, "{overslept:?}");
    }
}
