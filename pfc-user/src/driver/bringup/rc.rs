//! The RC tester's port: the link to the DUT, the silent responder on it, and the agent that drives
//! the DUT.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use validator_core::evidence::pfc::Stall;
use validator_core::fault::requester::Fault;
use validator_core::nic;
use validator_core::quantity::hex;

use super::journal::{Change, Journal};
use crate::agent::client::Agent;
use crate::config::{Port, RcDut, RcTestbed};
use crate::driver::bpf::responder::Responder;
use crate::driver::kernel::link::{self, End, create_veth};
use crate::driver::kernel::netns::Namespace;
use crate::driver::kernel::packet::PacketSocket;
use crate::driver::kernel::process::Child;

/// Room for a READ response of 4096 octets.
const MTU: u32 = 4500;
/// Ethernet addresses of the link that the tool makes: locally administered.
const TESTER_MAC: [u8; 6] = [0x02, 0, 0, 0, 3, 0x01];
const DUT_MAC: [u8; 6] = [0x02, 0, 0, 0, 3, 0x02];
const TESTER_PORT: &str = "tester";
const DUT_PORT: &str = "rc0";
/// The simulated DUT's address; RFC 2544 sets 198.18.0.0/15 aside.
const DUT_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 16, 2);
/// An agent takes a client, and answers, within this.
const AGENT: Duration = Duration::from_secs(10);
/// A link is back within this after a program was attached.
const CARRIER: Duration = Duration::from_secs(10);
/// File with the token, unless the testbed names a file.
const TOKEN_VARIABLE: &str = "VALIDATOR_TOKEN";

/// The port, ready for READ requests, and the DUT's agent.
pub struct RcPort {
    /// Drives the DUT.
    pub agent: Agent,
    /// Drops and records what comes in.
    pub responder: Responder,
    /// Sends what is answered.
    pub socket: PacketSocket,
    /// The tester's address.
    pub address: IpAddr,
    /// Interface, and how the program is attached, for people.
    pub name: String,
    interface: String,
    namespace: Namespace,
    /// Counter of the port's driver that also counts what the XDP program drops on purpose.
    pub own_drops: Option<&'static str>,
    /// Settings that are put back when the port is no longer used.
    _changes: Vec<Change>,
    /// Held while it is used: the simulated DUT ends with it, and its namespace.
    dut: Option<(Child, Namespace)>,
}

impl RcPort {
    /// Makes or finds the port, attaches the program, and connects to the agent. Sends nothing to
    /// the DUT itself.
    pub fn open(config: &RcTestbed) -> Result<Self> {
        match &config.dut {
            RcDut::Sim { faults, args } => {
                let (tester, dut) = (Namespace::new()?, Namespace::new()?);
                let near = End::new(&tester, TESTER_PORT, TESTER_MAC);
                create_veth(near, End::new(&dut, DUT_PORT, DUT_MAC), MTU)?;
                let (child, address) = start_dut(&dut, faults, args)?;
                // The agent listens on the loopback of its own namespace.
                let agent = dut.run(|| Agent::connect(address.as_str(), None, AGENT))??;
                Self::on(config, agent, TESTER_PORT, tester, Some((child, dut)))
            }
            RcDut::Agent {
                agent,
                token_file,
                port,
            } => {
                let (namespace, agent) = connect(agent, token_file.as_deref(), port)?;
                Self::on(config, agent, &port.interface, namespace, None)
            }
        }
    }

    /// Connects to the agent of a DUT that is there already, and leaves the port alone.
    pub fn reach(config: &RcTestbed) -> Result<()> {
        match &config.dut {
            RcDut::Sim { .. } => Ok(()),
            RcDut::Agent {
                agent,
                token_file,
                port,
            } => connect(agent, token_file.as_deref(), port).map(drop),
        }
    }

    fn on(
        config: &RcTestbed,
        agent: Agent,
        interface: &str,
        namespace: Namespace,
        dut: Option<(Child, Namespace)>,
    ) -> Result<Self> {
        let mut changes = Journal::open().without_merging(&namespace, interface)?;
        let responder = namespace.run(|| Responder::attach(interface, config.xdp))??;
        // Requests are answered with the tag that they came with, and XDP sees it only where it
        // stays in the frame. Where the driver always takes it out, a link without tags works all
        // the same.
        changes.extend(Journal::open().with_tags(&namespace, interface)?);
        // Some drivers reset the port for a program, and for an offload: the last of them.
        link::wait_for_carrier(&namespace, interface, CARRIER)?;
        let socket = namespace.run(|| PacketSocket::open(interface))??;
        let driver = link::state(&namespace, interface)?.driver;
        let own_drops = nic::of(&driver)
            .own_drops
            .filter(|_| responder.mode() == "driver");
        let name = format!("{interface} in {namespace}, XDP {}", responder.mode());
        Ok(Self {
            agent,
            responder,
            socket,
            address: config.address,
            name,
            interface: interface.to_owned(),
            namespace,
            own_drops,
            _changes: changes,
            dut,
        })
    }

    /// Times at which the simulated DUT stood still, since the last call.
    pub fn stalls(&mut self) -> Vec<Stall> {
        let dut = self.dut.as_mut();
        dut.map(|(dut, _)| super::stalls(dut)).unwrap_or_default()
    }

    /// Returns a reader of the port's counters of lost frames.
    pub fn loss_counters(&self) -> Result<impl FnMut() -> Result<Vec<(String, u64)>> + use<>> {
        let (namespace, interface) = (self.namespace.try_clone()?, self.interface.clone());
        Ok(move || {
            let mut counters = link::statistics(&namespace, &interface)?;
            // Frames sent while there was no link are in no counter.
            counters.push((
                "carrier_changes".into(),
                link::carrier_changes(&namespace, &interface)?.into(),
            ));
            Ok(counters)
        })
    }
}

/// Connects to the agent at `address` from the namespace of `port`, which has to be up.
fn connect(address: &str, token_file: Option<&Path>, port: &Port) -> Result<(Namespace, Agent)> {
    let namespace = Namespace::open(port.namespace.as_deref())?;
    let state = link::state(&namespace, &port.interface)?;
    if !state.up {
        bail!(
            "the tester's port {} in {namespace} is down; set it up with `ip link set dev {} up`",
            port.interface,
            port.interface
        );
    }
    let token = match token_file {
        Some(file) => Some(
            fs::read_to_string(file)
                .with_context(|| format!("the token's file {}", file.display()))?,
        ),
        None => std::env::var(TOKEN_VARIABLE).ok(),
    };
    let token = token.as_deref().map(str::trim);
    // Where the port is: with `port.namespace` the control connection is made there too.
    let agent = namespace.run(|| Agent::connect(address, token, AGENT))??;
    Ok((namespace, agent))
}

/// Starts `validator dut requester`; where its agent listens.
fn start_dut(namespace: &Namespace, faults: &[Fault], args: &[String]) -> Result<(Child, String)> {
    let device = [
        "requester",
        "--interface",
        DUT_PORT,
        "--address",
        &DUT_ADDRESS.to_string(),
        "--peer-mac",
        &TESTER_MAC.map(|octet| hex(&[octet])).join(":"),
        "--listen",
        "127.0.0.1:0",
    ];
    let ready = |line: &str| Some(line.strip_prefix("ready: ")?.trim().to_owned());
    super::start_dut(
        Some(namespace),
        &device,
        faults,
        args,
        "ready: ADDRESS",
        ready,
    )
}
