//! The DUT's M_Key put back after a run that was killed while the DUT had another.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};
use ib_mad::attr::PortInfo;
use ib_mad::mad::{AttributeId, MKey, Method, Status};
use ib_mad::requester::{Outcome, Requester};
use ib_mad::smp::{Route, Smp};
use ib_mad::transport::Transport;
use serde::{Deserialize, Serialize};

use super::m_key::{self, Protection};
use super::timing::MOST_WAIT;
use crate::config::{MadTestbed, MadTransport};
use crate::driver::journal::{Journal, KeyNote};

/// An answer is waited for so long at the least. Entries of earlier versions, which do not say how long the DUT may take, have this.
const PATIENCE: Duration = Duration::from_secs(1);
/// Requests are lost on the way now and then (VL15).
const ATTEMPTS: u32 = 3;

/// Where it is written down how the DUT's M_Key was, so that a later run can restore it when this one is killed.
pub trait KeyJournal {
    /// Called before the first Set of a repetition, with what the DUT has and how long its answers may take. What is to be restored:
    /// `found` of the first call since the last [`KeyJournal::forget`], as later ones may see what a repetition could not put back.
    fn remember(&mut self, found: &Protection, answer_time: Duration) -> Result<Protection>;
    /// Called when a Get has shown that all is as it was found.
    fn forget(&mut self) -> Result<()>;
}

/// The machine's journal, for all repetitions of a run.
pub struct MachineJournal<'c> {
    config: &'c MadTestbed,
    original: Option<Protection>,
    note: Option<KeyNote>,
}

impl<'c> MachineJournal<'c> {
    /// For the DUT of that testbed.
    pub fn new(config: &'c MadTestbed) -> Self {
        Self { config, original: None, note: None }
    }
}

impl KeyJournal for MachineJournal<'_> {
    fn remember(&mut self, found: &Protection, answer_time: Duration) -> Result<Protection> {
        if let Some(original) = self.original {
            return Ok(original);
        }
        // A simulated DUT ends with the run.
        if !matches!(self.config.transport, MadTransport::Sim { .. }) {
            let MadTestbed { transport, route, m_key_dut, .. } = self.config;
            let wait_ms = answer_time.clamp(PATIENCE, MOST_WAIT).as_millis() as u64;
            let entry = KeyEntry { transport: transport.clone(), route: route.clone(), found: *found, m_key_dut: *m_key_dut, wait_ms };
            self.note = Some(Journal::open().note_key(entry)?);
        }
        self.original = Some(*found);
        Ok(*found)
    }

    fn forget(&mut self) -> Result<()> {
        self.original = None;
        Ok(self.note.take().map_or(Ok(()), KeyNote::restored)?)
    }
}

/// All that a later run needs to unlock a DUT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyEntry {
    transport: MadTransport,
    route: Route,
    found: Protection,
    m_key_dut: MKey,
    /// How long an answer is waited for.
    #[serde(default = "patience")]
    wait_ms: u64,
}

fn patience() -> u64 {
    PATIENCE.as_millis() as u64
}

impl KeyEntry {
    /// A name for a file: one DUT has one.
    pub fn file_name(&self) -> String {
        let text = format!("{}-{}", self.transport.place(), self.route);
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        format!("m-key-{}", words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-"))
    }

    /// Puts key, bits and lease back, and reads them again. An error if the DUT cannot be reached, or has another key by now.
    pub fn undo(&self) -> Result<()> {
        let mut requester = Requester::new(super::open(&self.transport)?, std::process::id() << 16);
        // The DUT's own first: if nothing was changed yet, the other is a violation. A DUT without a key takes any.
        let keys = [Some(self.found.m_key).filter(|key| *key != MKey(0)), Some(self.m_key_dut)];
        for key in keys.into_iter().flatten() {
            // At M_KeyProtectBits 2 and 3 a wrong key gets no answer; at 0 it is shown the right one, and at 1 it is shown 0.
            let Some(info) = self.get(&mut requester, key)? else { continue };
            let is_last = key == self.m_key_dut;
            if m_key::is_another(&info, key) || !is_last && m_key::may_be_another(&info, key) {
                continue;
            }
            // Trying keys may have raised the violations; the Set clears them.
            let is_as_found = Protection::of(&info) == self.found && info.m_key_violations() == 0;
            if is_as_found || self.set(&mut requester, key, &info)? {
                return Ok(());
            }
        }
        bail!("it takes neither its own key nor that of the test")
    }

    /// Sets what was before; whether the DUT shows it afterwards.
    fn set(&self, requester: &mut Requester<Box<dyn Transport>>, key: MKey, read: &PortInfo) -> Result<bool> {
        let mut request = Smp::request(Method::SET, AttributeId::PORT_INFO, 0, &self.route);
        request.set_m_key(key);
        request.encode(&self.found.to_set(read));
        self.exchange(requester, &request)?;
        Ok(self.get(requester, self.found.m_key)?.is_some_and(|info| Protection::of(&info) == self.found))
    }

    fn get(&self, requester: &mut Requester<Box<dyn Transport>>, key: MKey) -> Result<Option<PortInfo>> {
        let mut request = Smp::request(Method::GET, AttributeId::PORT_INFO, 0, &self.route);
        request.set_m_key(key);
        match self.exchange(requester, &request)? {
            // Anything else says as little as silence, and the next key may be the right one.
            Some(answer) if answer.status() == Status::OK => Ok(answer.decode().ok()),
            _ => Ok(None),
        }
    }

    fn exchange(&self, requester: &mut Requester<Box<dyn Transport>>, request: &Smp) -> Result<Option<Smp>> {
        let mut not_sent = None;
        let mut sent = false;
        for _ in 0..ATTEMPTS {
            match requester.exchange(request.clone(), &self.route, Duration::from_millis(self.wait_ms))?.outcome {
                Outcome::Answered { smp, .. } if !smp.status().is_busy() => return Ok(Some(smp)),
                Outcome::Answered { .. } | Outcome::TimedOut => sent = true,
                Outcome::NotSent(error) => not_sent = Some(error),
            }
        }
        match not_sent {
            Some(error) if !sent => Err(error.into()),
            _ => Ok(None),
        }
    }
}

impl fmt::Display for KeyEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the node at {} of {}: {}", self.route, self.transport.place(), self.found)
    }
}
