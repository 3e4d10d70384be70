//! A repetition on the testbed's transport.

use anyhow::Result;

use crate::case::Event;
use crate::cases::mad::MadCase;
use crate::cases::mad::planning::PortContext;
use crate::cases::mad::stimulate::{self, Equipment};
use crate::config::{MadTestbed, MadTransport};
use crate::driver::bringup::mad::{MachineJournal, MadPort};
use crate::driver::kernel::interrupt::Interrupt;
use crate::evidence::mad::MadEvidence;
use crate::plan::mad::MadPlan;

impl From<&MadTestbed> for PortContext {
    fn from(testbed: &MadTestbed) -> Self {
        Self {
            route: testbed.route.clone(),
            m_key_current: testbed.m_key_current,
            m_key_dut: testbed.m_key_dut,
            m_key_other: testbed.m_key_other,
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
}

impl<'c> Live<'c> {
    /// Opens the testbed's transport. Sends nothing to the DUT.
    pub fn open(config: &'c MadTestbed) -> Result<Self> {
        Ok(Self {
            config,
            port: MadPort::open(config)?,
            journal: MachineJournal::new(config),
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
        let requester = &mut self.port.requester;
        requester.transport().set_wake(Some(interrupt.wake()?));
        let mut equipment = Equipment {
            route: &self.config.route,
            requester,
            transport: self.port.transport.clone(),
            interrupted: &mut || interrupt.seen(),
            events,
            journal: Some(&mut self.journal),
        };
        stimulate::run(&mut equipment, case, plan)
    }
}
