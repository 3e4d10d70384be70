//! More packets than are kept: a flood of traps takes no answer's place, and each packet that was
//! left out is counted.

use std::collections::VecDeque;
use std::iter::repeat_n;
use std::os::fd::OwnedFd;
use std::time::Duration;

use ib_mad::mad::{AttributeId, Lid, MKey, Method, Status};
use ib_mad::smp::{Route, Smp};
use ib_mad::transport::simulated::Simulated;
use ib_mad::transport::{ReceiveError, Received, SendError, Time, Transport};
use validator_core::evidence::mad::{MOST_STRAYS, MadEvidence};
use validator_core::verdict::Verdict;

use super::bench::{Bench, KEYS, M_KEY_DUT, simulated};
use super::strays::{quiet, verdict};

/// More packets than a repetition keeps, and more than the requester keeps for it.
const FLOODS: [usize; 2] = [1500, 5000];

/// Once the time of the first Get with a wrong key is over, so many traps come, and then so many
/// answers to that Get.
struct Floods {
    inner: Simulated,
    traps: usize,
    answers: usize,
    /// The last Get with a wrong key, until the next request.
    wrong: Option<Smp>,
    flood: VecDeque<Smp>,
}

impl Transport for Floods {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn now(&self) -> Time {
        self.inner.now()
    }
    fn send(&mut self, smp: &Smp, to: Lid, keep: Duration) -> Result<(), SendError> {
        if let Some(wrong) = self.wrong.take() {
            let trap = Smp::request(Method::TRAP, AttributeId::NOTICE, 0, &Route::Lid(Lid(1)));
            self.flood.extend(repeat_n(trap, self.traps));
            let answer = wrong.response(Status::OK);
            self.flood.extend(repeat_n(answer, self.answers));
            (self.traps, self.answers) = (0, 0);
        }
        let is_wrong = ![MKey(0), M_KEY_DUT].contains(&smp.m_key());
        self.wrong = is_wrong.then(|| smp.clone());
        self.inner.send(smp, to, keep)
    }
    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError> {
        let Some(smp) = self.flood.pop_front() else {
            return self.inner.receive(deadline);
        };
        Ok(Some(Received {
            at: self.now(),
            octets: smp.octets().to_vec(),
        }))
    }
    fn shows_unmatched(&self) -> bool {
        self.inner.shows_unmatched()
    }
    fn set_wake(&mut self, wake: Option<OwnedFd>) {
        self.inner.set_wake(wake);
    }
}

fn flooded(traps: usize, answers: usize) -> MadEvidence {
    let mut bench = Bench::on(Box::new(Floods {
        inner: simulated(quiet(), &[]),
        traps,
        answers,
        wrong: None,
        flood: VecDeque::new(),
    }));
    bench.repetition(KEYS, 2, None, None).0
}

/// Counts of packets left out of a flood: traps, and what may answer.
fn left_out(evidence: &MadEvidence) -> (usize, usize) {
    let [traps, others] =
        [evidence.traps_left_out, evidence.strays_left_out].map(|count| count as usize);
    (traps, others)
}

#[test]
fn a_flood_of_traps_leaves_open_only_what_they_show() {
    for traps in FLOODS {
        let evidence = flooded(traps, 0);
        assert_eq!(evidence.strays.len(), MOST_STRAYS);
        assert_eq!(left_out(&evidence), (traps - MOST_STRAYS, 0));
        let found = ["no-answer", "single-answer", "header"]
            .map(|check| verdict(std::slice::from_ref(&evidence), "bits-2", check));
        let expected = [Verdict::Pass, Verdict::Pass, Verdict::Inconclusive];
        assert_eq!(found, expected, "{traps}");
    }
}

#[test]
fn an_answer_to_a_wrong_key_after_a_flood_of_traps_fails() {
    for traps in FLOODS {
        let evidence = flooded(traps, 1);
        assert_eq!(evidence.strays.len(), MOST_STRAYS + 1);
        assert_eq!(left_out(&evidence), (traps - MOST_STRAYS, 0));
        let found = verdict(&[evidence], "bits-2", "no-answer");
        assert_eq!(found, Verdict::Fail, "{traps}");
    }
}

#[test]
fn a_flood_of_answers_is_counted_beside_one_of_traps() {
    for (traps, answers) in FLOODS.map(|traps| (traps, traps - 300)) {
        let evidence = flooded(traps, answers);
        assert_eq!(evidence.strays.len(), 2 * MOST_STRAYS);
        let expected = (traps - MOST_STRAYS, answers - MOST_STRAYS);
        assert_eq!(left_out(&evidence), expected);
        let found = verdict(&[evidence], "bits-2", "no-answer");
        assert_eq!(found, Verdict::Fail, "{traps}, {answers}");
    }
}
