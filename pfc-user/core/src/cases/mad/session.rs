//! One repetition under way: requests that are repeated and recorded, and the DUT's first answers.
//! Works on any transport, so that the cases also run on a simulated one.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use ib_mad::attr::{Attribute, PortInfo};
use ib_mad::mad::{AttributeId, MKey, Method, Tid};
use ib_mad::requester::{self, Outcome, StrayKind};
use ib_mad::smp::{Path, Route, Smp};
use ib_mad::transport::{ReceiveError, Time};

use super::equipment::Equipment;
use super::journal::KeyJournal;
use crate::cases::mad::timing::{self, MOST_WAIT};
use crate::evidence::mad::{Exchange, MOST_STRAYS, MadEvidence, Octets, Packet, Purpose, Stray};
use crate::evidence::pfc::Stall;
use crate::plan::Nanos;
use crate::plan::mad::MadPlan;
use crate::verdict::Event;

/// Most times that a request is sent until it is answered: VL15 may lose a packet, and a DUT may be
/// busy.
pub(super) const TRIES: usize = 3;

/// Reason why a repetition ended early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The user wished it.
    Interrupted,
    /// The tester or its surroundings failed.
    Failed(anyhow::Error),
    /// Not even one packet went out.
    NotSent(anyhow::Error),
}

impl From<ReceiveError> for Stop {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Interrupted => Self::Interrupted,
            other => Self::Failed(other.into()),
        }
    }
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// The answer to a request; `None` where none came.
pub(super) type Answer = Result<Option<Smp>, Stop>;

/// One repetition under way.
pub(super) struct Session<'s, 'l> {
    equipment: &'s mut Equipment<'l>,
    /// The evidence so far.
    pub(super) done: MadEvidence,
    pub(super) attempt: u32,
    /// Longest wait for an answer.
    pub(super) wait: Duration,
    /// Longest time of an answer, by the DUT's own times, once they are known, and the testbed's.
    pub(super) answer_time: Duration,
    /// The rest is done even if the user wishes to stop.
    pub(super) uninterrupted: bool,
    /// The user knows what a stop waits for.
    announced_stop: bool,
    /// A Set has left the tester, answered or not.
    pub(super) has_set: bool,
    /// Numbers of recorded strays: of those that answer nothing, and of those that may answer.
    recorded: [usize; 2],
}

impl<'s, 'l> Session<'s, 'l> {
    pub(super) fn new(equipment: &'s mut Equipment<'l>, plan: &MadPlan) -> Self {
        let wait = Duration::from_nanos(plan.timeout);
        let transport = equipment.requester.transport();
        let done = MadEvidence {
            plan: plan.clone(),
            transport: equipment.transport.clone(),
            shows_unmatched: transport.shows_unmatched(),
            keeps_tids: transport.keeps_tids(),
            exchanges: Vec::new(),
            strays: Vec::new(),
            strays_left_out: 0,
            traps_left_out: 0,
            stalls: Vec::new(),
            listened_until: 0,
            interrupted: false,
            original: None,
            error: None,
        };
        Self {
            equipment,
            done,
            attempt: 1,
            wait,
            answer_time: wait,
            uninterrupted: false,
            announced_stop: false,
            has_set: false,
            recorded: [0; 2],
        }
    }

    /// Key that the DUT has before the run, by the testbed.
    pub(super) fn current(&self) -> MKey {
        MKey(self.done.plan.m_key_current)
    }

    /// The least time to wait for an answer.
    fn least_wait(&self) -> Duration {
        Duration::from_nanos(self.done.plan.timeout)
    }

    /// How often the user has wished to stop. The first time ends everything but what is
    /// [uninterrupted](Self::uninterrupted), the second time that too.
    fn go_on(&mut self) -> Result<u32, Stop> {
        let wishes = (self.equipment.interrupted)();
        if wishes >= if self.uninterrupted { 2 } else { 1 } {
            return Err(Stop::Interrupted);
        }
        if wishes > 0 && !self.announced_stop {
            self.announced_stop = true;
            self.note(format!(
                "stopping: the DUT's M_Key is put back first, each answer is waited for {:.1?} at \
                 most; another Ctrl-C leaves it to the next run",
                self.wait
            ));
        }
        Ok(wishes)
    }

    pub(super) fn announce(&mut self, phase: &'static str) {
        (self.equipment.events)(Event::PhaseBegins { phase });
    }

    pub(super) fn note(&mut self, note: String) {
        (self.equipment.events)(Event::Note(note));
    }

    pub(super) fn journal(&mut self) -> Option<&mut (dyn KeyJournal + 'l)> {
        self.equipment.journal.as_deref_mut()
    }

    /// A request for `attribute` of the DUT.
    pub(super) fn request(&self, method: Method, attribute: AttributeId, modifier: u32) -> Smp {
        Smp::request(method, attribute, modifier, self.equipment.route)
    }

    /// Asks for an attribute without modifier, as [`Self::ask`] does.
    pub(super) fn get(&mut self, purpose: Purpose, attribute: AttributeId, key: MKey) -> Answer {
        let request = self.request(Method::GET, attribute, 0);
        self.ask(purpose, &request, key)
    }

    /// An attribute of the DUT, as [`Self::get`] finds it.
    pub(super) fn read<A: Attribute>(
        &mut self,
        purpose: Purpose,
        key: MKey,
    ) -> Result<Option<A>, Stop> {
        let answer = self.get(purpose, A::ID, key)?;
        Ok(answer.and_then(|answer| answer.granted()))
    }

    /// Asks until there is an answer other than BUSY, [`TRIES`] times at the most.
    pub(super) fn ask(&mut self, purpose: Purpose, request: &Smp, key: MKey) -> Answer {
        self.ask_again(purpose, request, key, |_| Ok(Some(key)))
    }

    /// Asks until there is an answer other than BUSY, [`TRIES`] times at the most. After silence
    /// `next` names the key of the next time, or none to end it there. What is done even if the
    /// user wishes to stop is also done if a packet could not be sent: an error only if none could.
    pub(super) fn ask_again(
        &mut self,
        purpose: Purpose,
        request: &Smp,
        first: MKey,
        mut next: impl FnMut(&mut Self) -> Result<Option<MKey>, Stop>,
    ) -> Answer {
        let mut key = first;
        let mut not_sent = Vec::new();
        for nth in 1..=TRIES {
            match self.once(purpose, request, key) {
                Ok(Some(answer)) if !answer.status().is_busy() => return Ok(Some(answer)),
                // Discarded: what is to be said the next time has not changed.
                Ok(Some(_)) => {}
                Ok(None) if nth == TRIES => {}
                Ok(None) => match next(self)? {
                    Some(next) => key = next,
                    None => break,
                },
                Err(Stop::NotSent(error)) if self.uninterrupted => not_sent.push(error),
                Err(stop) => return Err(stop),
            }
        }
        match not_sent.pop() {
            Some(error) if not_sent.len() + 1 == TRIES => Err(Stop::Failed(error)),
            _ => Ok(None),
        }
    }

    /// Asks until there is an answer other than BUSY or none: where the key may be wrong, each that
    /// is not discarded may be a violation.
    pub(super) fn ask_warily(&mut self, purpose: Purpose, request: &Smp, key: MKey) -> Answer {
        self.ask_again(purpose, request, key, |_| Ok(None))
    }

    /// Asks once; the answer may be BUSY.
    pub(super) fn once(&mut self, purpose: Purpose, request: &Smp, key: MKey) -> Answer {
        self.once_kept(purpose, request, key, Duration::ZERO)
    }

    /// Asks once. An answer after the wait is seen too, for `keep` after the request was sent.
    pub(super) fn once_kept(
        &mut self,
        purpose: Purpose,
        request: &Smp,
        key: MKey,
        keep: Duration,
    ) -> Answer {
        self.go_on()?;
        let route = match purpose {
            Purpose::TesterPort => &Route::Directed(Path::default()),
            _ => self.equipment.route,
        };
        let mut request = request.clone();
        request.set_m_key(key);
        self.has_set |= request.method() == Method::SET;
        let wait = self.wait;
        let requester = &mut *self.equipment.requester;
        let mut exchange = requester.exchange_kept(request.clone(), route, wait, keep);
        if self.uninterrupted && matches!(exchange, Err(ReceiveError::Interrupted)) {
            let wishes = self.go_on()?;
            let requester = &mut *self.equipment.requester;
            if wishes == 0 {
                // Nobody hears what woke it, and it would end each wait.
                requester.transport().clear_wake();
            }
            exchange = requester.exchange_kept(request, route, wait, keep);
        }
        self.take_strays();
        let requester::Exchange {
            request,
            sent,
            deadline,
            kept,
            outcome,
        } = exchange?;
        let answer = match outcome {
            Outcome::Answered { at, smp } => Some((at, smp)),
            Outcome::TimedOut => None,
            Outcome::NotSent(error) => {
                let error = anyhow!(error).context("a request could not be sent");
                return Err(Stop::NotSent(error));
            }
        };
        self.done.listened_until = nanos(self.equipment.requester.transport().now());
        self.done.exchanges.push(Exchange {
            purpose,
            attempt: self.attempt,
            sent: nanos(sent),
            deadline: nanos(deadline),
            kept: nanos(kept),
            request: request.octets().into(),
            answer: answer.as_ref().map(|(at, smp)| Packet {
                at: nanos(*at),
                octets: smp.octets().into(),
            }),
        });
        Ok(answer.map(|(_, smp)| smp))
    }

    /// Initialisation 1: both ends of the link, and the DUT's times. The DUT's PortInfo, as it was
    /// found; `None` where the initialisation does not hold.
    pub(super) fn contact(&mut self) -> Result<Option<PortInfo>, Stop> {
        let Some(port) = self.first_port()? else {
            return Ok(None);
        };
        Ok(self.link(&port)?.then_some(port))
    }

    /// The DUT's PortInfo, however late; `None` where the tester's own port is down, or the DUT
    /// does not show it.
    pub(super) fn first_port(&mut self) -> Result<Option<PortInfo>, Stop> {
        self.announce("initialisation");
        if !is_up(self.own_port()?) {
            return Ok(None);
        }
        let Some(port) = self.first_answer()? else {
            self.is_alive(AttributeId::NODE_INFO)?;
            return Ok(None);
        };
        Ok(port.granted())
    }

    /// The tester's own PortInfo.
    pub(super) fn own_port(&mut self) -> Answer {
        let own = Route::Directed(Path::default());
        let request = Smp::request(Method::GET, AttributeId::PORT_INFO, 0, &own);
        self.ask(Purpose::TesterPort, &request, self.current())
    }

    /// True if the link to the DUT, whose PortInfo is `port`, is up, and that answer came no later
    /// than the DUT's own times allow. Answers are waited for by these times from now on.
    pub(super) fn link(&mut self, port: &PortInfo) -> Result<bool, Stop> {
        let answer_time = timing::answer_time(port, self.least_wait());
        if self.last_took().is_some_and(|took| took > answer_time) {
            // Nothing else would be answered in time.
            return Ok(false);
        }
        self.wait = answer_time.min(MOST_WAIT);
        self.answer_time = answer_time;
        // Port 0 of a switch has the M_Key, and another port the link.
        let number = port.local_port_number();
        let request = self.request(Method::GET, PortInfo::ID, number.into());
        let link = self.ask(Purpose::LinkPort, &request, self.current())?;
        Ok(is_up(link))
    }

    /// The DUT's PortInfo. Its times are not known before, so that the last try waits for as long
    /// as any answer is waited for.
    fn first_answer(&mut self) -> Answer {
        let request = self.request(Method::GET, AttributeId::PORT_INFO, 0);
        let wait = self.wait;
        for attempt in 1..=TRIES {
            if attempt == TRIES {
                self.wait = wait.max(MOST_WAIT);
            }
            let answer = self.once(Purpose::DutPort, &request, self.current());
            self.wait = wait;
            if let Some(answer) = answer?.filter(|answer| !answer.status().is_busy()) {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    /// Time from the last request to its answer.
    fn last_took(&self) -> Option<Duration> {
        let last = self.done.exchanges.last()?;
        let took = last.answer.as_ref()?.at.saturating_sub(last.sent);
        Some(Duration::from_nanos(took))
    }

    /// Asks if the DUT answers at all, after it has not answered something else.
    pub(super) fn is_alive(&mut self, attribute: AttributeId) -> Result<(), Stop> {
        self.get(Purpose::Alive, attribute, self.current())
            .map(drop)
    }

    /// Waits for as long as an answer may take, so that nothing of what was asked before is still
    /// to come.
    pub(super) fn listen_for_more(&mut self) -> Result<(), Stop> {
        let listen = timing::listen_time(self.answer_time, self.least_wait());
        let deadline = self.equipment.requester.transport().now() + listen;
        let heard = self.equipment.requester.listen(deadline);
        self.take_strays();
        heard?;
        self.done.listened_until = nanos(deadline);
        Ok(())
    }

    fn take_strays(&mut self) {
        let mut left_out = self.equipment.requester.take_left_out();
        for requester::Stray { at, kind, octets } in self.equipment.requester.take_strays() {
            let recorded = &mut self.recorded[usize::from(kind.may_answer())];
            if *recorded == MOST_STRAYS {
                left_out.add(kind);
                continue;
            }
            *recorded += 1;
            let of_earlier = match kind {
                StrayKind::Late(tid) | StrayKind::Duplicate(tid) => !self.has_sent(tid),
                StrayKind::Forgotten(_) => true,
                _ => false,
            };
            self.done.strays.push(Stray {
                packet: Packet {
                    at: nanos(at),
                    octets: Octets(octets),
                },
                of_earlier,
            });
        }
        self.done.traps_left_out += left_out.unsolicited;
        self.done.strays_left_out += left_out.others;
    }

    fn has_sent(&self, tid: Tid) -> bool {
        let mut exchanges = self.done.exchanges.iter();
        exchanges.any(|exchange| exchange.request.0[8..16] == tid.0.to_be_bytes())
    }

    /// Compares the DUT's NodeGUID with the one that was read first in the run.
    pub(super) fn is_same_node(&mut self, guid: Option<u64>) -> Result<(), Stop> {
        let known = *self.equipment.guid;
        let route = self.equipment.route;
        match (known, guid) {
            (Some(known), Some(guid)) if known != guid => Err(Stop::Failed(anyhow!(
                "another node answers by {route}: NodeGUID {known:#018x} was read first, now it is \
                 {guid:#018x}; nothing was set on it"
            ))),
            (Some(known), None) => Err(Stop::Failed(anyhow!(
                "the node at {route} does not answer Get(NodeInfo) any more, and nothing shows \
                 that it still is the one with NodeGUID {known:#018x}; nothing was set on it"
            ))),
            (None, Some(guid)) => {
                if let Some(journal) = self.journal() {
                    journal.met(guid).context("nothing was set on it")?;
                }
                *self.equipment.guid = Some(guid);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Times at which the tester or its simulated DUT stood still.
    fn stalls(&mut self) -> Vec<Stall> {
        let overslept = self.equipment.requester.transport().take_overslept();
        let own = overslept.into_iter().map(|wait| Stall {
            from: nanos(wait.due),
            to: nanos(wait.ended),
        });
        let mut stalls: Vec<_> = own.chain((self.equipment.stalls)()).collect();
        stalls.sort_by_key(|stall| stall.from);
        stalls
    }

    pub(super) fn evidence(mut self) -> MadEvidence {
        self.done.stalls = self.stalls();
        self.done
    }
}

/// True if the answer is PortInfo of a port that is up.
fn is_up(answer: Option<Smp>) -> bool {
    answer
        .and_then(|answer| answer.granted())
        .is_some_and(|port: PortInfo| port.port_state().is_up())
}

fn nanos(time: Time) -> Nanos {
    time.as_nanos() as Nanos
}
