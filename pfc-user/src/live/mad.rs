//! A repetition on the testbed's transport.

use std::hash::{BuildHasher, RandomState};

use anyhow::Result;
use validator_core::cases::mad::MadCase;
use validator_core::cases::mad::equipment::Equipment;
use validator_core::cases::mad::planning::{KeyBits, PortContext};
use validator_core::cases::mad::stimulate;
use validator_core::evidence::mad::MadEvidence;
use validator_core::plan::mad::MadPlan;
use validator_core::verdict::Event;

use crate::config::{MadTestbed, MadTransport};
use crate::driver::bringup::journal::{Claim, Journal};
use crate::driver::bringup::mad::{Claimed, MachineJournal, MadPort, Target};
use crate::driver::kernel::clock;
use crate::driver::kernel::interrupt::Interrupt;

impl From<&MadTestbed> for PortContext {
    fn from(testbed: &MadTestbed) -> Self {
        Self {
            route: testbed.route.clone(),
            m_key_current: testbed.m_key_current,
            m_key_dut: testbed.m_key_dut,
            m_key_other: testbed.m_key_other,
            // Drawn: a run keeps no count for the next one.
            key_bits: KeyBits::Turn(RandomState::new().hash_one(clock::now()) as u8),
            timeout: testbed.timeout,
        }
    }
}

/// The transport to the DUT, for people.
pub fn way(testbed: &MadTestbed) -> String {
    match &testbed.transport {
        MadTransport::Sim { .. } => "the simulated DUT's socket".to_owned(),
        MadTransport::Ibsim { socket, host } => format!("the ibsim socket {socket} as node {host}"),
        MadTransport::Umad { device, port, .. } => format!("umad on {device} port {port}"),
    }
}

/// The opened transport, with the journal of the DUT's key: one a run, so that what was found first
/// is what is put back.
pub struct Live<'c> {
    config: &'c MadTestbed,
    port: MadPort,
    journal: MachineJournal<'c>,
    /// The DUT's NodeGUID, once it was read.
    guid: Option<u64>,
    /// Keeps other testers away from the DUT.
    _claim: Option<Claim>,
}

impl<'c> Live<'c> {
    /// Claims the testbed's DUT and opens the transport to it. Sends nothing to the DUT.
    ///
    /// # Errors
    /// If another process tests that DUT, or the transport cannot be opened.
    pub fn open(config: &'c MadTestbed) -> Result<Self> {
        let claim = Target::of(config).map(Claimed::Way);
        let claim = claim.map(|way| Journal::open().claim(way));
        let claim = claim.transpose()?;
        Ok(Self {
            config,
            port: MadPort::open(config)?,
            journal: MachineJournal::new(config),
            guid: None,
            _claim: claim,
        })
    }

    /// Runs one repetition.
    pub fn run(
        &mut self,
        case: &MadCase,
        plan: &MadPlan,
        interrupt: &mut Interrupt,
        events: &mut dyn FnMut(Event),
    ) -> Result<MadEvidence> {
        self.with_equipment(interrupt, events, |equipment| {
            stimulate::run(equipment, case, plan)
        })
    }

    /// Puts back what no repetition could, unless the user has asked twice to stop. To be called
    /// when the run is over.
    pub fn finish(
        &mut self,
        interrupt: &mut Interrupt,
        events: &mut dyn FnMut(Event),
    ) -> Result<()> {
        if interrupt.count() >= 2 {
            return Ok(());
        }
        let m_key_dut = self.config.m_key_dut;
        self.with_equipment(interrupt, events, |equipment| {
            stimulate::put_back(equipment, m_key_dut)
        })
    }

    fn with_equipment<R>(
        &mut self,
        interrupt: &mut Interrupt,
        events: &mut dyn FnMut(Event),
        run: impl FnOnce(&mut Equipment<'_>) -> R,
    ) -> Result<R> {
        let transport = self.port.transport.clone();
        let (requester, mut stalls) = self.port.parts();
        requester.transport().set_wake(Some(interrupt.wake()?));
        Ok(run(&mut Equipment {
            route: &self.config.route,
            requester,
            transport,
            interrupted: &mut || interrupt.count(),
            events,
            journal: Some(&mut self.journal),
            guid: &mut self.guid,
            stalls: &mut stalls,
        }))
    }
}
