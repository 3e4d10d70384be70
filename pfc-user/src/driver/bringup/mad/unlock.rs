//! The DUT's M_Key put back after a run that was killed while the DUT had another.

use std::fmt;

use anyhow::Result;
use ib_mad::requester::Requester;
use serde::{Deserialize, Serialize};
use validator_core::cases::mad::journal::{KeyJournal, Noted};
use validator_core::cases::mad::timing::MOST_WAIT;
use validator_core::m_key::Protection;
use validator_core::m_key::unlock::{PATIENCE, Unlock};

use super::claim::{Claimed, Node, Target};
use crate::config::{MadTestbed, MadTransport};
use crate::driver::bringup::journal::{Claim, Journal, KeyNote};

/// The machine's journal, for all repetitions of a run.
pub struct MachineJournal<'c> {
    config: &'c MadTestbed,
    noted: Option<Noted>,
    note: Option<KeyNote>,
    /// Keeps testers away that reach the DUT by another way.
    claim: Option<Claim>,
}

impl<'c> MachineJournal<'c> {
    /// Returns the journal for the DUT of that testbed.
    pub fn new(config: &'c MadTestbed) -> Self {
        Self {
            config,
            noted: None,
            note: None,
            claim: None,
        }
    }
}

impl KeyJournal for MachineJournal<'_> {
    fn met(&mut self, guid: u64) -> Result<()> {
        let node = Node::of(&self.config.transport, guid).map(Claimed::Node);
        let claim = node.map(|node| Journal::open().claim(node));
        self.claim = claim.transpose()?;
        Ok(())
    }

    fn remember(&mut self, noted: &Noted) -> Result<Protection> {
        if let Some(noted) = self.noted {
            return Ok(noted.found);
        }
        // A simulated DUT ends with the run.
        if !matches!(self.config.transport, MadTransport::Sim { .. }) {
            let wait = noted.answer_time.clamp(PATIENCE, MOST_WAIT);
            let entry = KeyEntry {
                transport: self.config.transport.clone(),
                unlock: Unlock {
                    route: self.config.route.clone(),
                    found: noted.found,
                    guid: noted.guid,
                    m_key_dut: self.config.m_key_dut,
                    wait_ms: wait.as_millis() as u64,
                },
            };
            self.note = Some(Journal::open().note_key(entry)?);
        }
        self.noted = Some(*noted);
        Ok(noted.found)
    }

    fn pending(&self) -> Option<Noted> {
        self.noted
    }

    fn forget(&mut self) -> Result<()> {
        self.noted = None;
        Ok(self.note.take().map_or(Ok(()), KeyNote::restored)?)
    }
}

/// All that a later run needs to unlock a DUT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyEntry {
    transport: MadTransport,
    #[serde(flatten)]
    unlock: Unlock,
}

impl KeyEntry {
    /// The DUT.
    pub fn target(&self) -> Target {
        Target {
            transport: self.transport.clone(),
            route: self.unlock.route.clone(),
        }
    }

    /// True if the key is that of `claimed`.
    pub fn is_of(&self, claimed: &Claimed) -> bool {
        match claimed {
            Claimed::Way(target) => self.target() == *target,
            Claimed::Node(node) => {
                let guid = self.unlock.guid;
                let own = guid.and_then(|guid| Node::of(&self.transport, guid));
                own.as_ref() == Some(node)
            }
        }
    }

    /// A name for a file: one DUT has one.
    pub fn file_name(&self) -> String {
        format!("m-key-{}", self.target().file_name())
    }

    /// Puts key, bits and lease back, and reads them again. An error if the DUT cannot be reached,
    /// or has another key by now.
    pub fn undo(&self) -> Result<()> {
        self.unlock.by(&mut Requester::new(
            super::open(&self.transport)?,
            u64::from(std::process::id() << 16),
        ))
    }
}

impl fmt::Display for KeyEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the node at {} of {}: {}",
            self.unlock.route,
            self.transport.place(),
            self.unlock.found
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use ib_mad::mad::{Lid, MKey, Method};
    use ib_mad::sma::{Fabric, NodeConfig, NodeKind, Sma};
    use ib_mad::smp::{Route, Smp};
    use ib_mad::transport::Transport;
    use ib_mad::transport::simulated::{Fate, Simulated};

    use super::*;

    const DUT: MKey = MKey(0x1234);

    fn node(lid: u16, protection: Protection) -> NodeConfig {
        NodeConfig {
            kind: NodeKind::ChannelAdapter,
            description: String::new(),
            guid: lid.into(),
            lid: Lid(lid),
            master_sm_lid: Lid(9),
            port_state: 4,
            linear_fdb_cap: 0,
            random_fdb_cap: 0,
            m_key: protection.m_key,
            m_key_protect_bits: protection.protect_bits,
            m_key_lease_period: protection.lease_period,
            response_time_value: 8,
            subnet_timeout: 8,
        }
    }

    /// The entry of a test that found the DUT with `found`, and a fabric in which it left it with
    /// `left`.
    fn left_with(found: Protection, left: Protection) -> (KeyEntry, Simulated) {
        let transport = MadTransport::Ibsim {
            socket: String::new(),
            host: String::new(),
        };
        let route = Route::Directed("0,1".parse().unwrap());
        let entry = KeyEntry {
            transport,
            unlock: Unlock {
                route,
                found,
                guid: None,
                m_key_dut: DUT,
                wait_ms: PATIENCE.as_millis() as u64,
            },
        };
        let tester = Sma::new(node(1, Protection::NONE), Vec::new());
        let fabric = Simulated::new(Fabric {
            tester,
            dut: Sma::new(node(2, left), Vec::new()),
        });
        (entry, fabric)
    }

    /// Requests, in short, to a DUT that was left with `left`, and the DUT's protection afterwards.
    fn undo(found: Protection, left: Protection, refused: usize) -> (Vec<String>, Result<()>) {
        let (entry, mut fabric) = left_with(found, left);
        let sent = Arc::new(Mutex::new(Vec::new()));
        let requests = sent.clone();
        fabric.on_send(Box::new(move |smp| {
            let mut requests = requests.lock().unwrap();
            requests.push(format!("{} {:x}", smp.method(), smp.m_key().0));
            if requests.len() <= refused {
                Fate::Refuse
            } else {
                Fate::Pass
            }
        }));
        let undone = entry.unlock.by(&mut Requester::new(Box::new(fabric), 1));
        let sent = sent.lock().unwrap().clone();
        (sent, undone)
    }

    #[test]
    fn the_key_of_the_test_is_not_tried_on_a_dut_that_has_its_own() {
        let found = Protection {
            m_key: MKey(0xabcd),
            protect_bits: 3,
            lease_period: 60,
        };
        let (sent, undone) = undo(found, found, 0);
        assert_eq!((sent, undone.is_ok()), (vec!["Get abcd".to_owned()], true));
    }

    #[test]
    fn a_key_that_is_hidden_is_asked_for_before_anything_is_set() {
        let test = Protection {
            m_key: DUT,
            protect_bits: 1,
            lease_period: 0,
        };
        // As found, but for the key that a Get without it does not see.
        let (sent, undone) = undo(
            Protection {
                m_key: MKey(0),
                ..test
            },
            test,
            0,
        );
        assert_eq!(
            (sent, undone.is_ok()),
            (
                ["Get 1234", "Set 1234", "Get 1234"]
                    .map(str::to_owned)
                    .to_vec(),
                true
            )
        );
        let (sent, undone) = undo(
            Protection {
                m_key: MKey(0xabcd),
                ..test
            },
            test,
            0,
        );
        assert_eq!(
            (sent, undone.is_ok()),
            (
                ["Get abcd", "Get 1234", "Set 1234", "Get abcd"]
                    .map(str::to_owned)
                    .to_vec(),
                true
            )
        );
    }

    #[test]
    fn what_could_not_be_sent_once_is_sent_again() {
        let found = Protection {
            m_key: MKey(0xabcd),
            protect_bits: 3,
            lease_period: 60,
        };
        assert!(undo(found, found, 2).1.is_ok());
        assert!(undo(found, found, usize::MAX).1.is_err());
    }

    /// Answers requests with one of the keys as another attribute.
    struct Strange(Simulated, MKey);

    impl Transport for Strange {
        fn name(&self) -> String {
            self.0.name()
        }
        fn now(&self) -> ib_mad::transport::Time {
            self.0.now()
        }
        fn send(
            &mut self,
            smp: &Smp,
            to: Lid,
            wait: Duration,
        ) -> Result<(), ib_mad::transport::SendError> {
            self.0.send(smp, to, wait)
        }
        fn receive(
            &mut self,
            deadline: ib_mad::transport::Time,
        ) -> Result<Option<ib_mad::transport::Received>, ib_mad::transport::ReceiveError> {
            let mut received = self.0.receive(deadline)?;
            if let Some(received) = &mut received
                && received.octets[24..32] == self.1.0.to_be_bytes()
            {
                received.octets[17] = 0x11;
            }
            Ok(received)
        }
        fn shows_unmatched(&self) -> bool {
            self.0.shows_unmatched()
        }
        fn set_wake(&mut self, wake: Option<std::os::fd::OwnedFd>) {
            self.0.set_wake(wake);
        }
    }

    #[test]
    fn a_strange_answer_to_one_key_does_not_end_the_search() {
        let left = Protection {
            m_key: DUT,
            protect_bits: 0,
            lease_period: 0,
        };
        let found = Protection {
            m_key: MKey(0xabcd),
            protect_bits: 0,
            lease_period: 60,
        };
        let (entry, fabric) = left_with(found, left);
        let sent = Arc::new(Mutex::new(0));
        let counted = sent.clone();
        let mut strange = Strange(fabric, found.m_key);
        strange.0.on_send(Box::new(move |smp| {
            *counted.lock().unwrap() +=
                usize::from(smp.method() == Method::SET && smp.m_key() == DUT);
            Fate::Pass
        }));
        // The Get at the end is answered strangely too, so that nothing shows that it is done.
        assert!(
            entry
                .unlock
                .by(&mut Requester::new(Box::new(strange), 1))
                .is_err()
        );
        assert_eq!(*sent.lock().unwrap(), 1);
    }
}
