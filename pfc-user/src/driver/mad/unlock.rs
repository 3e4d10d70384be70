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

use super::m_key::Protection;
use crate::config::{MadTestbed, MadTransport};
use crate::driver::journal::{Journal, KeyNote};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Requests are lost on the way now and then (VL15).
const ATTEMPTS: u32 = 3;

/// Where it is written down how the DUT's M_Key was, so that a later run can restore it when this one is killed.
pub trait KeyJournal {
    /// Called before the first Set.
    fn remember(&mut self, found: &Protection) -> Result<()>;
    /// Called when a Get has shown that all is as it was found.
    fn forget(&mut self) -> Result<()>;
}

/// The machine's journal.
pub struct MachineJournal<'c> {
    config: &'c MadTestbed,
    note: Option<KeyNote>,
}

impl<'c> MachineJournal<'c> {
    /// For the DUT of that testbed.
    pub fn new(config: &'c MadTestbed) -> Self {
        Self { config, note: None }
    }
}

impl KeyJournal for MachineJournal<'_> {
    fn remember(&mut self, found: &Protection) -> Result<()> {
        // A simulated DUT ends with the run.
        if self.note.is_none() && !matches!(self.config.transport, MadTransport::Sim { .. }) {
            let MadTestbed { transport, route, m_key_dut, .. } = self.config;
            let entry = KeyEntry { transport: transport.clone(), route: route.clone(), found: *found, m_key_dut: *m_key_dut };
            self.note = Some(Journal::open().note_key(entry)?);
        }
        Ok(())
    }

    fn forget(&mut self) -> Result<()> {
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
        for key in [self.m_key_dut, self.found.m_key, MKey(0)] {
            // At M_KeyProtectBits 2 and 3 a wrong key gets no answer.
            let Some(info) = self.get(&mut requester, key)? else { continue };
            if Protection::of(&info) == self.found || self.set(&mut requester, key, &info)? {
                return Ok(());
            }
        }
        bail!("it answers neither with the key of the test, nor with its own, nor without a key")
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
            Some(answer) if answer.status() == Status::OK => Ok(Some(answer.decode()?)),
            _ => Ok(None),
        }
    }

    fn exchange(&self, requester: &mut Requester<Box<dyn Transport>>, request: &Smp) -> Result<Option<Smp>> {
        for _ in 0..ATTEMPTS {
            match requester.exchange(request.clone(), &self.route, PATIENCE)?.outcome {
                Outcome::Answered { smp, .. } if !smp.status().is_busy() => return Ok(Some(smp)),
                Outcome::Answered { .. } | Outcome::TimedOut => {}
                Outcome::NotSent(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }
}

impl fmt::Display for KeyEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the node at {} of {}: {}", self.route, self.transport.place(), self.found)
    }
}
