//! C14_016_Get at one value of the protect bits, step by step.

use anyhow::{Context as _, anyhow};
use ib_mad::attr::{Attribute, NodeInfo, PortInfo};
use ib_mad::mad::{AttributeId, MKey, Method};
use ib_mad::smp::Smp;

use crate::cases::mad::journal::Noted;
use crate::cases::mad::session::{Answer, Session, Stop};
use crate::cases::mad::timing::MOST_WAIT;
use crate::evidence::mad::Purpose;
use crate::m_key::{self, Protection};
use crate::plan::mad::ATTEMPTS;

pub(super) fn run(session: &mut Session<'_, '_>) -> Result<(), Stop> {
    let Some(bits) = session.done.plan.stimulus.protect_bits() else {
        return Err(Stop::Failed(anyhow!("the plan names no protect bits")));
    };
    let Some(port) = session.contact()? else {
        return Ok(());
    };
    let (current, dut) = (session.current(), MKey(session.done.plan.m_key_dut));
    let first_key = match port.m_key() == dut {
        true => dut,
        false => current,
    };
    if m_key::is_another(&port, first_key) {
        // Neither the key of the testbed nor one that an earlier repetition left: no Set could be
        // taken back.
        return Ok(());
    }
    let found = Protection::to_restore(&port, current, dut);
    let node: Option<NodeInfo> = session.read(Purpose::NodeInfo, current)?;
    let guid = node.map(|node| node.node_guid());
    session.is_same_node(guid)?;
    let answer_time = session.answer_time;
    let original = match session.journal() {
        Some(journal) => {
            let noted = Noted {
                found,
                guid,
                answer_time,
            };
            let remembered = journal.remember(&noted);
            remembered.context("the DUT's M_Key cannot be written down, so it is not changed")?
        }
        None => found,
    };
    session.done.original = Some(original);
    // Protection that an earlier repetition could not restore hides no unknown key.
    let is_hidden = original == found && m_key::may_be_another(&port, first_key);
    if is_hidden && found.lease_period != 0 {
        // One Set with a wrong key would start the timer that ends the protection.
        return forget(session);
    }
    let mut subcase = Subcase {
        dut,
        first_key,
        bits,
        port,
        found,
        original,
        is_hidden,
        is_reset: false,
        has_no_key: false,
        is_refused: false,
        has_dut_key: false,
    };
    let done = subcase.attempts(session);
    session.uninterrupted = true;
    let restored = subcase.restore(session);
    session.uninterrupted = false;
    let unrestored = match restored {
        Ok(()) => return done,
        Err(Stop::Interrupted) => {
            session.note(format!(
                "left to the next run: the DUT may still have M_Key {dut}"
            ));
            return done.and(Err(Stop::Interrupted));
        }
        Err(Stop::Failed(error) | Stop::NotSent(error)) => {
            error.context(format!("the DUT may still have M_Key {dut}"))
        }
    };
    Err(Stop::Failed(match done {
        Ok(()) => unrestored,
        Err(Stop::Interrupted) => {
            session.done.interrupted = true;
            unrestored
        }
        Err(Stop::Failed(error) | Stop::NotSent(error)) => anyhow!("{error:#}; {unrestored:#}"),
    }))
}

struct Subcase {
    /// M_KEY_DUT.
    dut: MKey,
    /// Key with which the first Set is accepted.
    first_key: MKey,
    bits: u8,
    /// PortInfo as it was found.
    port: PortInfo,
    /// The DUT's present protection, as far as it can be seen.
    found: Protection,
    /// Protection to be restored.
    original: Protection,
    /// The DUT may have another key than is known.
    is_hidden: bool,
    /// The last attempt reset the DUT.
    is_reset: bool,
    /// A Get has shown that it has no key since.
    has_no_key: bool,
    /// No Set was answered, and a Get has shown that none was done.
    is_refused: bool,
    /// A Get has shown M_KEY_DUT.
    has_dut_key: bool,
}

impl Subcase {
    /// Each kind of wrong key in turn, and again where nothing shows that it has arrived.
    fn attempts(&mut self, session: &mut Session<'_, '_>) -> Result<(), Stop> {
        for index in 0..session.done.plan.differences().len() as u32 {
            for nth in 1..=ATTEMPTS {
                session.attempt = index * ATTEMPTS + nth;
                (self.is_reset, self.has_no_key) = (false, false);
                let Some(violations) = self.steps(session)? else {
                    return Ok(());
                };
                self.reset(session)?;
                if self.bits < 2 || violations != 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Initialisation and all steps before the reset; `None` where a step could not be reached,
    /// else the violations at last.
    fn steps(&mut self, session: &mut Session<'_, '_>) -> Result<Option<u16>, Stop> {
        let dut = self.dut;
        let other = MKey(session.done.plan.wrong_key(session.attempt));
        let wanted = self.wanted();
        let (key, before) = match session.attempt {
            1 => (self.first_key, self.at_first()),
            _ => (dut, Protection::NONE),
        };
        let set = if self.is_hidden && session.attempt == 1 {
            let request = self.set_request(session, &wanted);
            session.ask_warily(Purpose::KeySet, &request, key)?
        } else {
            self.set(session, Purpose::KeySet, &wanted, key, before)?
        };
        let shown = session.get(Purpose::KeyShown, PortInfo::ID, dut)?;
        let port: Option<PortInfo> = shown.as_ref().and_then(Smp::granted);
        self.has_dut_key |= port.is_some_and(|port| port.m_key() == dut);
        self.is_refused =
            session.attempt == 1 && set.is_none() && port.is_some_and(|port| port.m_key() != dut);
        let is_done =
            port.is_some_and(|port| (port.m_key(), port.m_key_protect_bits()) == (dut, self.bits));
        // A Set whose answers were lost may have been done.
        if !set.map_or(is_done, |answer| answer.granted::<PortInfo>().is_some()) {
            return Ok(None);
        }
        session.announce("M_KEY_DUT");
        let own: Option<PortInfo> = session.read(Purpose::OwnKey, dut)?;
        if own.is_none_or(|own| own.m_key() != dut) || shown.is_some() && !is_done {
            return Ok(None);
        }
        session.announce("M_KEY_OTHER");
        if self.bits < 2 {
            let port: Option<PortInfo> = session.read(Purpose::OtherKey, other)?;
            return Ok(port.map(|port| port.m_key_violations()));
        }
        if session.answer_time > MOST_WAIT {
            return Ok(None);
        }
        if session.attempt == 1 {
            // Answers to earlier requests have come by then. In later attempts, the wait for an
            // answer to the wrong key before does the same.
            session.listen_for_more()?;
        }
        let request = session.request(Method::GET, AttributeId::PORT_INFO, 0);
        // Once: each is a violation. An answer after its time is seen too.
        session.once_kept(Purpose::OtherKey, &request, other, MOST_WAIT)?;
        let port: Option<PortInfo> = session.read(Purpose::DutKey, dut)?;
        Ok(port.map(|port| port.m_key_violations()))
    }

    /// The protection that the subcase gives the DUT.
    fn wanted(&self) -> Protection {
        Protection {
            m_key: self.dut,
            protect_bits: self.bits,
            lease_period: 0,
        }
    }

    /// The protection that the DUT has before the first Set.
    fn at_first(&self) -> Protection {
        let found = Protection::of(&self.port);
        match found.m_key {
            // The DUT has no key, and takes any.
            MKey(0) if !self.is_hidden => found,
            _ => Protection {
                m_key: self.first_key,
                ..found
            },
        }
    }

    /// Sets `protection` with the key `first`. Without an answer either that or what was `before`
    /// is in force: the key is read before the Set is repeated, as one with a wrong key would be a
    /// violation.
    fn set(
        &self,
        session: &mut Session<'_, '_>,
        purpose: Purpose,
        protection: &Protection,
        first: MKey,
        before: Protection,
    ) -> Answer {
        let request = self.set_request(session, protection);
        session.ask_again(purpose, &request, first, |session| {
            self.key_in_force(session, before, *protection)
        })
    }

    /// The key of the one of two protections that the DUT has; `None` where nothing shows it. A DUT
    /// without a key takes that of the other.
    fn key_in_force(
        &self,
        session: &mut Session<'_, '_>,
        one: Protection,
        other: Protection,
    ) -> Result<Option<MKey>, Stop> {
        match [one.m_key, other.m_key] {
            [MKey(0), key] | [key, MKey(0)] => return Ok(Some(key)),
            [one, other] if one == other => return Ok(Some(one)),
            _ => {}
        }
        // Protect bits 0 and 1 answer any key. Where neither has these, silence may be a violation,
        // which the Set that follows clears.
        let request = session.request(Method::GET, PortInfo::ID, 0);
        let (hidden, shown) = match (one.protect_bits, other.protect_bits) {
            (0 | 1, _) => (one, session.ask(Purpose::InForce, &request, other.m_key)?),
            (_, 0 | 1) => (other, session.ask(Purpose::InForce, &request, one.m_key)?),
            _ => match session.once(Purpose::InForce, &request, one.m_key)? {
                Some(shown) => (other, Some(shown)),
                None => (one, session.ask(Purpose::InForce, &request, other.m_key)?),
            },
        };
        let shown = shown.and_then(|shown| shown.granted::<PortInfo>());
        Ok(match shown.map(|port| port.m_key()) {
            // Hidden from this key.
            Some(MKey(0)) => Some(hidden.m_key),
            shown => shown.filter(|shown| [one.m_key, other.m_key].contains(shown)),
        })
    }

    fn set_request(&self, session: &Session<'_, '_>, protection: &Protection) -> Smp {
        let mut request = session.request(Method::SET, AttributeId::PORT_INFO, 0);
        request.encode(&protection.to_set(&self.port));
        request
    }

    fn reset(&mut self, session: &mut Session<'_, '_>) -> Result<(), Stop> {
        session.announce("reset");
        let dut = self.dut;
        let request = self.set_request(session, &Protection::NONE);
        session.ask_again(Purpose::Reset, &request, dut, |session| {
            match self.has_dut_key {
                true => Ok(Some(dut)),
                // The DUT has not shown yet that it has its new key.
                false => self.key_in_force(session, self.at_first(), self.wanted()),
            }
        })?;
        let shown: Option<PortInfo> = session.read(Purpose::ResetShown, dut)?;
        self.has_no_key = shown.is_some_and(|port| port.m_key() == MKey(0));
        self.is_reset = true;
        Ok(())
    }

    /// Restores the DUT to its state before the run. Each step is tried, even if those before
    /// failed.
    fn restore(&mut self, session: &mut Session<'_, '_>) -> Result<(), Stop> {
        if !session.has_set && self.original == self.found {
            return forget(session);
        }
        // One more Set would be one more violation.
        if self.is_refused && (self.is_restored(session)? || self.is_hidden) {
            return Ok(());
        }
        let reset = if self.is_reset {
            Ok(())
        } else {
            self.reset(session)
        };
        session.announce("restoring");
        let (dut, original) = (self.dut, self.original);
        let before = match self.has_no_key {
            true => Protection::NONE,
            false => self.wanted(),
        };
        let set = self.set(session, Purpose::Restore, &original, dut, before);
        let shown = self.is_restored(session);
        reset.and(set.map(drop)).and(shown.map(drop))
    }

    /// True if a Get shows the protection that is to be restored: the journal forgets it then. Else
    /// the user is told.
    fn is_restored(&self, session: &mut Session<'_, '_>) -> Result<bool, Stop> {
        let (dut, original) = (self.dut, self.original);
        // A DUT without a key takes any, and hides M_KEY_DUT, if it still has that, only from
        // others.
        let key = match original.m_key {
            MKey(0) => dut,
            key => key,
        };
        let shown: Option<PortInfo> = session.read(Purpose::Restored, key)?;
        match shown.map(|port| Protection::of(&port)) {
            Some(now) if now == original => return forget(session).map(|()| true),
            Some(now) => session.note(format!("the DUT has {now}, not {original} as it was found")),
            None => session.note(format!(
                "nothing shows that the DUT has {original} again, as it \
                was found; M_KEY_DUT is {dut}"
            )),
        }
        Ok(false)
    }
}

fn forget(session: &mut Session<'_, '_>) -> Result<(), Stop> {
    if let Some(journal) = session.journal() {
        journal.forget()?;
    }
    Ok(())
}
