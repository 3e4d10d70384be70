//! The DUT's M_Key put back after something kept a repetition, or a whole run, from doing so.

use std::time::Duration;

use anyhow::{Result, bail};
use ib_mad::attr::{Attribute, NodeInfo, PortInfo};
use ib_mad::mad::{AttributeId, MKey, Method};
use ib_mad::requester::{Outcome, Requester};
use ib_mad::smp::{Route, Smp};
use ib_mad::transport::Transport;
use serde::{Deserialize, Serialize};

use super::{Protection, is_another, may_be_another};

/// Requests are lost on the way now and then (VL15).
const ATTEMPTS: u32 = 3;

/// Least time that a later run waits for an answer. Entries of earlier versions of the journal,
/// which do not say how long the DUT may take, have this.
pub const PATIENCE: Duration = Duration::from_secs(1);

fn patience() -> u64 {
    PATIENCE.as_millis() as u64
}

/// All that is needed to unlock a DUT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unlock {
    /// Way to the DUT.
    pub route: Route,
    /// The protection that it had.
    pub found: Protection,
    /// Its NodeGUID; `None` where it was not read, and in entries of earlier versions.
    #[serde(default)]
    pub guid: Option<u64>,
    /// M_KEY_DUT, which it may have now.
    pub m_key_dut: MKey,
    /// Longest wait for an answer, in milliseconds.
    #[serde(default = "patience")]
    pub wait_ms: u64,
}

impl Unlock {
    /// Puts key, bits and lease back, and reads them again. An error if the DUT cannot be reached,
    /// has another key by now, or is another node.
    pub fn by(&self, requester: &mut Requester<dyn Transport>) -> Result<()> {
        // The DUT's own first: if nothing was changed yet, the other is a violation. A DUT without
        // a key takes any.
        let keys = [
            Some(self.found.m_key).filter(|key| *key != MKey(0)),
            Some(self.m_key_dut),
        ];
        for key in keys.into_iter().flatten() {
            // At M_KeyProtectBits 2 and 3 a wrong key gets no answer; at 0 it is shown the right
            // one, and at 1 it is shown 0.
            let Some(info) = self.get::<PortInfo>(requester, key)? else {
                continue;
            };
            let is_last = key == self.m_key_dut;
            if is_another(&info, key) || !is_last && may_be_another(&info, key) {
                continue;
            }
            self.is_same_node(requester, key)?;
            // Trying keys may have raised the violations; the Set clears them.
            let is_as_found = Protection::of(&info) == self.found && info.m_key_violations() == 0;
            if is_as_found || self.set(requester, key, &info)? {
                return Ok(());
            }
        }
        bail!("it takes neither its own key nor that of the test")
    }

    /// An error where another node answers than the one that was tested.
    fn is_same_node(&self, requester: &mut Requester<dyn Transport>, key: MKey) -> Result<()> {
        let Some(expected) = self.guid else {
            return Ok(());
        };
        match self.get::<NodeInfo>(requester, key)? {
            Some(node) if node.node_guid() == expected => Ok(()),
            Some(node) => bail!(
                "another node answers there: NodeGUID {expected:#018x} was tested, {:#018x} is \
                 there",
                node.node_guid()
            ),
            None => bail!("it does not answer Get(NodeInfo), so it may be another node"),
        }
    }

    /// Sets what was before. Returns true if the DUT shows it afterwards.
    fn set(
        &self,
        requester: &mut Requester<dyn Transport>,
        key: MKey,
        read: &PortInfo,
    ) -> Result<bool> {
        let mut request = Smp::request(Method::SET, AttributeId::PORT_INFO, 0, &self.route);
        request.set_m_key(key);
        request.encode(&self.found.to_set(read));
        self.exchange(requester, &request)?;
        // A DUT without a key takes any, and hides that of the test, if it still has that, only
        // from others.
        let key = if self.found.m_key == MKey(0) {
            self.m_key_dut
        } else {
            self.found.m_key
        };
        Ok(self
            .get::<PortInfo>(requester, key)?
            .is_some_and(|info| Protection::of(&info) == self.found))
    }

    fn get<A: Attribute>(
        &self,
        requester: &mut Requester<dyn Transport>,
        key: MKey,
    ) -> Result<Option<A>> {
        let mut request = Smp::request(Method::GET, A::ID, 0, &self.route);
        request.set_m_key(key);
        // Anything else says as little as silence, and the next key may be the right one.
        Ok(self
            .exchange(requester, &request)?
            .and_then(|answer| answer.granted()))
    }

    fn exchange(
        &self,
        requester: &mut Requester<dyn Transport>,
        request: &Smp,
    ) -> Result<Option<Smp>> {
        let wait = Duration::from_millis(self.wait_ms);
        let mut not_sent = None;
        let mut sent = false;
        for _ in 0..ATTEMPTS {
            let exchange = requester.exchange(request.clone(), &self.route, wait)?;
            match exchange.outcome {
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
