//! The MAD tester's port: the testbed's transport opened, and the simulated DUT behind it where
//! that is what the testbed wants.

mod claim;
mod unlock;

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use ib_mad::requester::Requester;
use ib_mad::sma::fault::Fault;
use ib_mad::transport::Transport;
use ib_mad::transport::ibsim::IbsimTransport;
use ib_mad::transport::umad::UmadTransport;

pub use claim::{Claimed, Node, Target};
pub use unlock::{KeyEntry, MachineJournal};
pub use validator_core::cases::mad::journal::{KeyJournal, Noted};

use validator_core::evidence::pfc::Stall;
use validator_core::plan::Nanos;

use crate::config::{MadTestbed, MadTransport};
use crate::driver::kernel::clock;
use crate::driver::kernel::process::Child;

/// A server of ibsim's protocol takes a client within this.
const CONNECT: Duration = Duration::from_secs(5);
/// The tester's node in the simulated fabric.
const SIM_HOST: &str = "Hca1";

/// The port, ready for requests.
pub struct MadPort {
    /// Sends requests and awaits their answers.
    pub requester: Requester<dyn Transport>,
    /// Name of the transport, for people.
    pub transport: String,
    /// Held while it is used: the simulated DUT ends with it.
    dut: Option<Child>,
}

impl MadPort {
    /// Opens the testbed's transport. Sends nothing to the DUT.
    pub fn open(config: &MadTestbed) -> Result<Self> {
        let (transport, dut): (Box<dyn Transport>, _) = match &config.transport {
            MadTransport::Sim { faults, args } => {
                let (dut, socket) = start_dut(faults, args)?;
                let transport = ibsim(&socket, SIM_HOST)?.keeping_tids();
                (Box::new(transport), Some(dut))
            }
            other => (open(other)?, None),
        };
        let name = transport.name();
        // The process number tells our requests from those of an earlier run whose answers may
        // still be under way. The upper half shows if a node loses or changes it.
        let upper = RandomState::new().hash_one(clock::now()) << 32;
        let first = upper | u64::from(std::process::id() << 16);
        Ok(Self {
            requester: Requester::new(transport, first),
            transport: name,
            dut,
        })
    }

    /// The requester, and beside it the times at which a simulated DUT stood still, by the
    /// transport's clock, since the last call.
    pub fn parts(&mut self) -> (&mut Requester<dyn Transport>, impl FnMut() -> Vec<Stall>) {
        let now = self.requester.transport().now().as_nanos() as Nanos;
        // Time of the transport's clock 0.
        let epoch = clock::now().saturating_sub(now);
        let on_clock = move |stall: Stall| Stall {
            from: stall.from.saturating_sub(epoch),
            to: stall.to.saturating_sub(epoch),
        };
        let dut = &mut self.dut;
        let stalls = move || {
            let stalls = dut.as_mut().map(super::stalls).unwrap_or_default();
            stalls.into_iter().map(on_clock).collect()
        };
        (&mut self.requester, stalls)
    }
}

/// A transport to a DUT that is there already.
fn open(transport: &MadTransport) -> Result<Box<dyn Transport>> {
    match transport {
        MadTransport::Sim { .. } => bail!("a simulated DUT ends with the run that started it"),
        MadTransport::Ibsim { socket, host } => Ok(Box::new(ibsim(socket, host)?)),
        MadTransport::Umad {
            device,
            port,
            sysfs,
        } => Ok(Box::new(UmadTransport::open(device, *port, sysfs)?)),
    }
}

fn ibsim(socket: &str, host: &str) -> Result<IbsimTransport> {
    Ok(IbsimTransport::connect(socket, host, CONNECT)?)
}

/// Starts `validator dut sma`; its socket's name.
fn start_dut(faults: &[Fault], args: &[String]) -> Result<(Child, String)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let socket = format!(
        "validator-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let device = ["sma", "--socket", &socket];
    let ready = |line: &str| line.starts_with("ready").then_some(());
    let (child, ()) = super::start_dut(None, &device, faults, args, "ready", ready)?;
    Ok((child, socket))
}
