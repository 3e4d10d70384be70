//! The MAD tester's port: the testbed's transport opened, and the simulated DUT behind it where
//! that is what the testbed wants.

mod claim;
mod unlock;

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ib_mad::requester::Requester;
use ib_mad::transport::Transport;
use ib_mad::transport::ibsim::IbsimTransport;
use ib_mad::transport::umad::UmadTransport;

pub use crate::cases::mad::journal::{KeyJournal, Noted};
pub use claim::{ClaimEntry, Claimed, Node, Target};
pub use unlock::{KeyEntry, MachineJournal};

use crate::config::{MadTestbed, MadTransport};
use crate::driver::kernel::clock;
use crate::driver::kernel::process::{Child, own_program};
use crate::driver::stall;
use crate::evidence::pfc::Stall;
use crate::plan::Nanos;

/// A simulated DUT is up within this, or something is wrong.
const DUT_START: Duration = Duration::from_secs(10);
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
        let (transport, dut) = match &config.transport {
            MadTransport::Sim { faults, args } => {
                let (dut, socket) = start_dut(faults.iter().map(ToString::to_string), args)?;
                let transport = ibsim(&socket, SIM_HOST)?.keeping_tids();
                (Box::new(transport) as _, Some(dut))
            }
            other => (open(other)?, None),
        };
        Ok(Self::on(transport, dut))
    }

    fn on(transport: Box<dyn Transport>, dut: Option<Child>) -> Self {
        let name = transport.name();
        // The process number tells our requests from those of an earlier run whose answers may
        // still be under way. The upper half shows if a node loses or changes it.
        let upper = RandomState::new().hash_one(clock::now()) << 32;
        let first = upper | u64::from(std::process::id() << 16);
        Self {
            requester: Requester::new(transport, first),
            transport: name,
            dut,
        }
    }
}

/// A simulated DUT that tells of its own stalls.
pub struct Teller<'p> {
    dut: Option<&'p mut Child>,
    /// Time of the transport's clock 0.
    epoch: Nanos,
}

impl MadPort {
    /// The requester, and the DUT beside it.
    pub fn parts(&mut self) -> (&mut Requester<dyn Transport>, Teller<'_>) {
        let now = self.requester.transport().now().as_nanos() as Nanos;
        let teller = Teller {
            dut: self.dut.as_mut(),
            epoch: clock::now().saturating_sub(now),
        };
        (&mut self.requester, teller)
    }
}

impl Teller<'_> {
    /// Times at which the simulated DUT stood still, by the transport's clock, since the last call.
    pub fn stalls(&mut self) -> Vec<Stall> {
        let lines = self.dut.as_mut().and_then(|dut| dut.printed_lines().ok());
        let stalls = lines.unwrap_or_default();
        let stalls = stalls.iter().filter_map(|line| stall::read(line));
        let on_clock = |stall: Stall| Stall {
            from: stall.from.saturating_sub(self.epoch),
            to: stall.to.saturating_sub(self.epoch),
        };
        stalls.map(on_clock).collect()
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
fn start_dut(faults: impl Iterator<Item = String>, args: &[String]) -> Result<(Child, String)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let socket = format!(
        "validator-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let mut command = own_program();
    command.args(["dut", "sma", "--socket", &socket]);
    for fault in faults {
        command.arg("--fault").arg(fault);
    }
    command.args(args);
    let mut child = Child::spawn_here(command).context("the simulated DUT cannot be started")?;
    let line = child
        .read_line(DUT_START)
        .context("the simulated DUT did not get ready")?;
    if !line.starts_with("ready") {
        bail!("the simulated DUT did not get ready: expected its line `ready`, found {line:?}");
    }
    Ok((child, socket))
}
