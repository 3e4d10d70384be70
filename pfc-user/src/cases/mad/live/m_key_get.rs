//! C14_016_Get at one value of the protect bits, step by step.

use anyhow::Context as _;
use ib_mad::attr::PortInfo;
use ib_mad::mad::{AttributeId, MKey, Method};
use ib_mad::smp::Smp;

use super::session::{Contact, Session, Stop, TRIES, port_info};
use crate::driver::mad::m_key::{self, Protection};
use crate::driver::mad::timing::MOST_WAIT;
use crate::evidence::mad::Purpose;

/// The whole is done so often while the violations stay 0: the Get with the wrong key may not have reached the DUT.
const ATTEMPTS: u32 = 3;

pub(super) fn run(session: &mut Session<'_, '_>, bits: u8) -> Result<(), Stop> {
    let Some(contact) = session.contact()? else {
        return Ok(());
    };
    let keys = Keys::of(session, &contact);
    if m_key::is_another(&contact.port, keys.at_first) {
        // Neither the key of the testbed nor one that an earlier repetition left: no Set could be taken back.
        return Ok(());
    }
    let mut subcase = Subcase { keys, bits, contact, is_reset: false, is_refused: false };
    if let Some(journal) = session.journal() {
        journal.remember(&subcase.keys.found).context("the DUT's M_Key cannot be written down, so it is not changed")?;
    }
    let done = subcase.attempts(session);
    session.set_uninterrupted(true);
    let restored = subcase.restore(session);
    session.set_uninterrupted(false);
    match (done, restored) {
        (Err(Stop::Failed(error)), Err(Stop::Failed(second))) => {
            Err(Stop::Failed(error.context(format!("the DUT may still have M_Key {}: {second:#}", subcase.keys.dut))))
        }
        (done, restored) => done.and(restored),
    }
}

/// The keys of the plan, and what the DUT had.
#[derive(Clone, Copy)]
struct Keys {
    dut: MKey,
    other: MKey,
    /// With which the first Set is accepted.
    at_first: MKey,
    /// To be restored.
    found: Protection,
}

impl Keys {
    fn of(session: &Session<'_, '_>, contact: &Contact) -> Self {
        let (current, dut) = (MKey(session.plan.m_key_current), MKey(session.plan.m_key_dut));
        Self {
            dut,
            other: MKey(session.plan.m_key_other),
            at_first: if contact.port.m_key() == dut { dut } else { current },
            found: Protection::to_restore(&contact.port, current, dut),
        }
    }
}

struct Subcase {
    keys: Keys,
    bits: u8,
    contact: Contact,
    /// The last attempt reset the DUT.
    is_reset: bool,
    /// No Set was answered, and a Get has shown that none was done.
    is_refused: bool,
}

impl Subcase {
    fn attempts(&mut self, session: &mut Session<'_, '_>) -> Result<(), Stop> {
        for attempt in 1..=ATTEMPTS {
            session.attempt = attempt;
            self.is_reset = false;
            let violations = self.steps(session)?;
            if violations.is_some() {
                self.reset(session)?;
            }
            let again = self.bits >= 2 && violations == Some(0);
            if !again {
                break;
            }
        }
        Ok(())
    }

    /// Initialisation and all steps before the reset; `None` where a step could not be reached, else the violations at last.
    fn steps(&mut self, session: &mut Session<'_, '_>) -> Result<Option<u16>, Stop> {
        let Keys { dut, other, at_first, .. } = self.keys;
        let wanted = Protection { m_key: dut, protect_bits: self.bits, lease_period: 0 };
        // If the first Set was done and its answer lost, only the new key is good.
        let first = if session.attempt == 1 { at_first } else { dut };
        let set = self.set(session, Purpose::KeySet, &wanted, [first, dut, first])?;
        let shown = self.get(session, Purpose::KeyShown, dut)?;
        let shows_ours = |shown: &Smp| port_info(shown).is_none_or(|port| port.m_key() == dut);
        self.is_refused = session.attempt == 1 && set.is_none() && shown.as_ref().is_some_and(|shown| !shows_ours(shown));
        let accepted = set.is_some_and(|answer| port_info(&answer).is_some());
        let differs = |shown: Smp| port_info(&shown).is_none_or(|port| (port.m_key(), port.m_key_protect_bits()) != (dut, self.bits));
        if !accepted || shown.is_some_and(differs) {
            return Ok(None);
        }
        session.announce("M_KEY_DUT");
        if self.get(session, Purpose::OwnKey, dut)?.is_none() {
            return Ok(None);
        }
        session.announce("M_KEY_OTHER");
        if self.bits < 2 {
            return Ok(self.get(session, Purpose::OtherKey, other)?.and_then(|answer| violations(&answer)));
        }
        if self.contact.answer_time > MOST_WAIT {
            return Ok(None);
        }
        // Whatever comes in the next wait is then because of the wrong key.
        session.listen_for_more()?;
        let request = session.request(Method::GET, AttributeId::PORT_INFO, 0);
        // Once: each is a violation.
        session.once(Purpose::OtherKey, &request, other)?;
        Ok(self.get(session, Purpose::DutKey, dut)?.and_then(|answer| violations(&answer)))
    }

    fn get(&self, session: &mut Session<'_, '_>, purpose: Purpose, key: MKey) -> Result<Option<Smp>, Stop> {
        let request = session.request(Method::GET, AttributeId::PORT_INFO, 0);
        session.ask(purpose, &request, [key; TRIES])
    }

    fn set(
        &self,
        session: &mut Session<'_, '_>,
        purpose: Purpose,
        protection: &Protection,
        keys: [MKey; TRIES],
    ) -> Result<Option<Smp>, Stop> {
        let mut request = session.request(Method::SET, AttributeId::PORT_INFO, 0);
        request.encode(&protection.to_set(&self.contact.port));
        session.ask(purpose, &request, keys)
    }

    fn reset(&mut self, session: &mut Session<'_, '_>) -> Result<(), Stop> {
        session.announce("reset");
        let Keys { dut, at_first, .. } = self.keys;
        // After an interruption it is not known whether the DUT has its new key yet. M_Key 0 takes any.
        self.set(session, Purpose::Reset, &Protection::NONE, [dut, at_first, dut])?;
        self.get(session, Purpose::ResetShown, dut)?;
        self.is_reset = true;
        Ok(())
    }

    /// The DUT as it was found.
    fn restore(&mut self, session: &mut Session<'_, '_>) -> Result<(), Stop> {
        if self.is_refused || !session.has_set() {
            // It is as it was; one more Set would be one more violation.
            return forget(session);
        }
        if !self.is_reset {
            self.reset(session)?;
        }
        session.announce("restoring");
        let Keys { dut, found, .. } = self.keys;
        self.set(session, Purpose::Restore, &found, [dut, found.m_key, dut])?;
        let shown = self.get(session, Purpose::Restored, found.m_key)?;
        let is_restored = |port: &PortInfo| Protection::of(port) == found;
        match shown.as_ref().and_then(port_info) {
            Some(port) if is_restored(&port) => return forget(session),
            Some(port) => session.note(format!("the DUT has {}, not {found} as it was found", Protection::of(&port))),
            None => session.note(format!("nothing shows that the DUT has {found} again, as it was found; M_KEY_DUT is {dut}")),
        }
        Ok(())
    }
}

fn forget(session: &mut Session<'_, '_>) -> Result<(), Stop> {
    if let Some(journal) = session.journal() {
        journal.forget()?;
    }
    Ok(())
}

fn violations(answer: &Smp) -> Option<u16> {
    port_info(answer).map(|port| port.m_key_violations())
}
