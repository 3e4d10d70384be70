//! The testbed brought up: the tester's two ports with their programs, and the device between them.

mod line_rate;
mod link_snapshot;
mod neighbours;
mod self_test;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Nanos, Priority};
use validator_core::evidence::pfc::{DropCounter, PortFacts, PortReceived};
use validator_core::evidence::preflight::{FeatureFact, SelfTest};
use validator_core::nic;
use validator_core::plan::Limits;

use self::line_rate::line_rate;
pub use self::line_rate::planned_line_rate;
pub use self::link_snapshot::LinkWatch;
use super::journal::{Change, Journal};
use crate::config::{self, Dut};
use crate::driver::bpf::{AccountProgram, Sizes, TraceOutput, XdpMode};
use crate::driver::kernel::link::mac::{self, Alive, MacLog};
use crate::driver::kernel::link::{self, End, LinkState, create_bridge, create_veth};
use crate::driver::kernel::netns::Namespace;
use crate::driver::kernel::packet::{self, PacketError, PacketSocket};
use crate::driver::kernel::process::Child;
use crate::driver::kernel::promiscuous::Promiscuous;
use crate::driver::neighbour::Responder;
use crate::driver::storm::PATIENCE;
use crate::error_text::in_words;

/// Width of the windows in which arrivals are counted.
pub const WINDOW: Nanos = 10_000_000;
/// MTU of the links that the tool makes: room for the largest test frame; XDP on veth takes no more
/// than one page.
const MTU: u32 = 3400;
/// Ethernet addresses of the links that the tool makes: locally administered.
const TX_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];
const RX_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x02];
const DUT_MACS: [[u8; 6]; 2] = [[0x02, 0, 0, 0, 1, 0x01], [0x02, 0, 0, 0, 1, 0x02]];
/// EtherType for local experiments 1.
const LOCAL_EXPERIMENTAL: u16 = 0x88b5;
const DUT_PORTS: [&str; 2] = ["p0", "p1"];
/// A link is back within this after its port, or the DUT's, was configured.
const CARRIER: Duration = Duration::from_secs(10);

/// A port of the tester.
pub struct TesterPort {
    /// Interface.
    pub interface: String,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its state at the start.
    pub state: LinkState,
    /// The program on it.
    pub account: AccountProgram,
    /// The source of the fact that PAUSE/PFC frames of the DUT reach the program: the self-test, or
    /// the testbed's word.
    pub pfc_visible: Option<String>,
    /// The repetition of this run in which such frames were seen first.
    pub pfc_seen: Option<String>,
    /// The self-test's frames from the other port reached its MAC's counters and not its program.
    pub takes_own_pfc: Option<String>,
    /// The program has counted a frame.
    pub alive: bool,
    /// Result of the self-test: pause frames were sent to the port before anything was measured.
    pub self_test: Option<SelfTest>,
    /// Proof, in this run, that its MAC's counters count.
    pub mac_alive: Alive,
    /// Its offloads while the program is attached; drivers turn some off for it.
    pub features: Vec<FeatureFact>,
    /// Held while the port is used: frames of all addresses come in.
    _promiscuous: Promiscuous,
    /// Settings that are put back when the port is no longer used.
    _changes: Vec<Change>,
}

enum Device {
    Sim { namespace: Namespace },
    Bridge { namespace: Namespace },
    External,
}

/// A testbed, ready to be used.
pub struct Testbed {
    /// The sending port.
    pub tx: TesterPort,
    /// The receiving port; the storm leaves here.
    pub rx: TesterPort,
    /// Figures that verdicts depend on.
    pub limits: Limits,
    /// Windows that the programs count in.
    pub windows: u32,
    /// The last note on a sender that may not reach its rates.
    pub shortage: Option<String>,
    device: Device,
    /// Answer a DUT that asks for the ports' addresses.
    neighbours: Vec<Responder>,
}

/// Counters of lost frames, at one time.
pub struct Counters(Vec<(String, Vec<(String, u64)>)>);

/// The ports, found or made; nothing is attached to them, and nothing sent.
pub struct Ports {
    device: Device,
    tx: Found,
    rx: Found,
    trace: Option<TraceOutput>,
}

impl Ports {
    /// Makes or finds them.
    pub fn lay(config: &config::PfcTestbed) -> Result<Self> {
        let (device, tx, rx) = match &config.dut {
            Dut::External { tx, rx, .. } => {
                let [tx, rx] = find_both(tx, rx)?;
                (Device::External, tx, rx)
            }
            own => {
                let (tester, dut) = (Namespace::new()?, Namespace::new()?);
                for (name, mac, port) in [("tx", TX_MAC, 0), ("rx", RX_MAC, 1)] {
                    let far = End::new(&dut, DUT_PORTS[port], DUT_MACS[port]);
                    create_veth(End::new(&tester, name, mac), far, MTU)?;
                }
                let tx = Found::new("tx", tester.try_clone()?)?;
                let rx = Found::new("rx", tester)?;
                let device = match own {
                    Dut::Sim { .. } => Device::Sim { namespace: dut },
                    _ => Device::Bridge { namespace: dut },
                };
                (device, tx, rx)
            }
        };
        Ok(Self {
            device,
            tx,
            rx,
            trace: None,
        })
    }

    /// Has the programs of both ports write lines about frames.
    pub fn traced(self, to: Option<&config::TraceTo>) -> Result<Self> {
        let trace = match to {
            None => None,
            Some(config::TraceTo::Terminal) => Some(TraceOutput::terminal()),
            Some(config::TraceTo::File(path)) => Some(
                TraceOutput::file(path).context("--trace: trace.log cannot be made in --out")?,
            ),
        };
        Ok(Self { trace, ..self })
    }

    /// Name and place of both, tx first.
    pub fn both(&self) -> [(&str, &Namespace); 2] {
        [&self.tx, &self.rx].map(|port| (port.interface.as_str(), &port.namespace))
    }

    /// Attaches the programs and shows that they see PAUSE/PFC frames, as far as that can be shown.
    /// An error when the ports cannot be used.
    pub fn open(self, config: &config::PfcTestbed, sizes: Sizes) -> Result<Testbed> {
        let Self {
            device,
            tx,
            rx,
            trace,
        } = self;
        for port in [&tx, &rx] {
            port.usable()?;
        }
        let line_rate = line_rate(
            config.ports.line_rate,
            [&tx, &rx].map(|port| (port.interface.clone(), port.state.clone())),
        )?;
        let changes = [tx.without_merging()?, rx.without_merging()?];
        let [tx_account, rx_account] =
            attach_both([&tx, &rx], config.ports.xdp, sizes, trace.as_ref())?;
        let [tx_changes, rx_changes] = changes;
        let mut tx = tx.open(config, tx_account, tx_changes)?;
        let mut rx = rx.open(config, rx_account, rx_changes)?;
        // Some drivers reset the port for a program, and for an offload; and where the two are
        // cabled together, what resets one takes the carrier of both.
        wait_for_carrier([&tx, &rx])?;
        for port in [&mut tx, &mut rx] {
            port.features = link::features(&port.namespace, &port.interface)?;
        }
        match &device {
            Device::Sim { namespace } | Device::Bridge { namespace } => {
                for (port, peer) in [(&mut tx, DUT_PORTS[0]), (&mut rx, DUT_PORTS[1])] {
                    self_test::own_wire(port, namespace, peer, line_rate)?;
                }
            }
            Device::External => self_test::between(&mut tx, &mut rx, line_rate)?,
        }
        if let Device::Bridge { namespace } = &device {
            create_bridge(namespace, "bridge", &DUT_PORTS)?;
        }
        let neighbours = match &device {
            Device::External => neighbours::answer(&config.addresses, &tx, &rx)?,
            // Neither asks.
            Device::Sim { .. } | Device::Bridge { .. } => Vec::new(),
        };
        Ok(Testbed {
            tx,
            rx,
            neighbours,
            limits: config.limits.at(line_rate),
            windows: sizes.windows,
            shortage: None,
            device,
        })
    }
}

impl Testbed {
    /// Starts the simulated DUT with these lossless priorities; `None` where the device is not ours
    /// to start.
    pub fn start_device(
        &self,
        config: &config::PfcTestbed,
        lossless: &[Priority],
    ) -> Result<Option<Child>> {
        let Device::Sim { namespace } = &self.device else {
            return Ok(None);
        };
        let Dut::Sim {
            faults,
            args,
            scheduler,
        } = &config.dut
        else {
            return Ok(None);
        };
        let list = |priorities: &[Priority]| {
            let numbers: Vec<String> = priorities.iter().map(Priority::to_string).collect();
            numbers.join(",")
        };
        let trust = match config.qos.trust {
            Trust::Pcp => "pcp",
            Trust::Dscp => "dscp",
        };
        let device = [
            "switch",
            "--port",
            DUT_PORTS[0],
            "--port",
            DUT_PORTS[1],
            "--line-rate",
            &self.limits.line_rate.bits_per_second().to_string(),
            "--lossless",
            &list(lossless),
            "--trust",
            trust,
            "--dscp-map",
            &list(&config.qos.dscp_map),
            "--scheduler",
            scheduler.word(),
        ];
        let ready = |line: &str| line.contains("ready").then_some(());
        let (child, ()) = super::start_dut(Some(namespace), &device, faults, args, "ready", ready)?;
        Ok(Some(child))
    }

    /// Waits until both links are up, for example after the DUT was configured.
    pub fn wait_for_carrier(&self) -> Result<()> {
        wait_for_carrier([&self.tx, &self.rx])
    }

    /// Does the self-test again where it did not show that PAUSE/PFC frames reach the tx port's
    /// program, for example after the DUT was configured.
    pub fn self_test_again(&mut self) -> Result<()> {
        if self.tx.pfc_visible.is_some() || !matches!(self.device, Device::External) {
            return Ok(());
        }
        self_test::between(&mut self.tx, &mut self.rx, self.limits.line_rate)
    }

    /// Notes that the tx port's program saw PFC frames of the DUT, if `received` in that repetition
    /// has some. PAUSE frames show nothing: a MAC that obeys PFC may pass them on.
    pub fn note_pfc(&mut self, received: &PortReceived, repetition: &str) {
        let seen = received.pfc_frames;
        if seen > 0 && self.tx.pfc_seen.is_none() {
            let source = format!("{seen} PFC frames of the DUT seen in \"{repetition}\"");
            self.tx.pfc_seen = Some(source);
        }
    }

    /// Sends a frame from each port to the other, so that a DUT that bridges learns both addresses:
    /// the rx port sends nothing else that is learned from. The frames are of the EtherType for
    /// local experiments (IEEE 802). Returns how often the tx port and the rx port had no room.
    pub fn introduce(&self) -> Result<[u64; 2]> {
        introduce(&self.tx, &self.rx)
    }

    /// Number of times so far that the ports had no room for an answer to a neighbour.
    pub fn neighbour_waits(&self) -> u64 {
        self.neighbours.iter().map(Responder::waits).sum()
    }

    /// Counters of lost frames of both ports, of their other ends where these are ours, and of the
    /// kernel between.
    pub fn counters(&self) -> Result<Counters> {
        let mut counters = Vec::new();
        for (name, port) in [("tx", &self.tx), ("rx", &self.rx)] {
            let mut of_port = link::statistics(&port.namespace, &port.interface)?;
            if let Some(own) = port.own_drops() {
                of_port.retain(|(name, _)| name != own);
            }
            counters.push((format!("{name} port {}", port.interface), of_port));
        }
        if let Device::Sim { namespace } | Device::Bridge { namespace } = &self.device {
            for port in DUT_PORTS {
                counters.push((
                    format!("DUT's end {port}"),
                    link::statistics(namespace, port)?,
                ));
            }
        }
        counters.push((
            "kernel".into(),
            vec![("softnet dropped".into(), link::softnet_dropped()?)],
        ));
        Ok(Counters(counters))
    }
}

impl Counters {
    /// The rise of each counter until `after`.
    pub fn rises(&self, after: &Self) -> Vec<DropCounter> {
        self.0
            .iter()
            .zip(&after.0)
            .flat_map(|((place, before), (_, after))| link::drop_rises(place, before, after))
            .collect()
    }
}

impl TesterPort {
    /// A counter that says nothing of losses here: the program's drops are in it, and are not known
    /// exactly at the time that it is read.
    fn own_drops(&self) -> Option<&'static str> {
        nic::of(&self.state.driver)
            .own_drops
            .filter(|_| self.account.mode() == "driver")
    }

    /// A log of its MAC's counters; `name` is `tx` or `rx`.
    pub fn mac_log(&self, name: &str) -> Result<MacLog> {
        let (namespace, interface) = (self.namespace.try_clone()?, self.interface.clone());
        let reader = Box::new(move || mac::read(&namespace, &interface));
        Ok(MacLog::begin(
            reader,
            name,
            &self.interface,
            &self.mac_alive,
        ))
    }

    /// Facts for the evidence; carrier is read anew.
    pub fn facts(&self) -> Result<PortFacts> {
        let now = link::state(&self.namespace, &self.interface)?;
        Ok(PortFacts {
            interface: self.interface.clone(),
            driver: self.state.driver.clone(),
            carrier: now.carrier,
            disturbed: None,
            speed: nic::own_speed(now.kind.as_deref(), now.speed),
            xdp: self.account.mode().into(),
            pfc_visible: self.pfc_visible.clone().or(self.pfc_seen.clone()),
            takes_own_pfc: self.takes_own_pfc.clone(),
            alive: self.alive,
        })
    }
}

/// The testbed's word that PAUSE/PFC frames of the DUT reach the program on a port of that driver.
pub fn declared_pfc(config: &config::PfcTestbed, driver: &str) -> Option<String> {
    if config.facts.pfc_visible {
        Some("declared by facts.pfc_visible".into())
    } else if config.facts.direct && driver == "veth" {
        Some("a veth whose other end is the DUT's own, declared by facts.direct".into())
    } else {
        None
    }
}

fn introduce(one: &TesterPort, other: &TesterPort) -> Result<[u64; 2]> {
    let mut waits = [0; 2];
    for ((from, to), waits) in [(one, other), (other, one)].into_iter().zip(&mut waits) {
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&to.state.mac);
        frame[6..12].copy_from_slice(&from.state.mac);
        frame[12..14].copy_from_slice(&LOCAL_EXPERIMENTAL.to_be_bytes());
        let sent = from.namespace.run(|| {
            let socket = PacketSocket::open(&from.interface)?;
            packet::when_there_is_room(PATIENCE, || socket.send(&frame))
        })?;
        match sent {
            Ok(((), times)) => *waits = times,
            // Its sender tries again, as after a frame that the DUT did not let through.
            Err(PacketError::Refused { .. }) => *waits = 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(waits)
}

fn wait_for_carrier(ports: [&TesterPort; 2]) -> Result<()> {
    for port in ports {
        link::wait_for_carrier(&port.namespace, &port.interface, CARRIER)?;
    }
    Ok(())
}

struct Found {
    interface: String,
    namespace: Namespace,
    state: LinkState,
}

/// The ports of an external DUT, if they can be used.
fn find_both(tx: &config::Port, rx: &config::Port) -> Result<[Found; 2]> {
    // The end of another run, or a setting that a user has just made, may have reset both ports.
    let deadline = Instant::now() + CARRIER;
    let (tx, rx) = match (find(tx, deadline), find(rx, deadline)) {
        (Ok(tx), Ok(rx)) => (tx, rx),
        // Both at once: each would cost a run of its own.
        (Err(tx), Err(rx)) if in_words(&tx) != in_words(&rx) => {
            bail!("{}\n{}", in_words(&tx), in_words(&rx))
        }
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    // A namespace may be named, or be the one that the tool is started in.
    if tx.state.index == rx.state.index && tx.namespace.inode()? == rx.namespace.inode()? {
        bail!(
            "{} in {} is both tx and rx; they must be different ports",
            rx.interface,
            rx.namespace
        );
    }
    Ok([tx, rx])
}

fn find(port: &config::Port, deadline: Instant) -> Result<Found> {
    let namespace = Namespace::open(port.namespace.as_deref())?;
    let left = deadline.saturating_duration_since(Instant::now());
    let state = link::settled_state(&namespace, &port.interface, left)?;
    Ok(Found {
        interface: port.interface.clone(),
        namespace,
        state,
    })
}

/// The arguments by which `ip` works in that namespace.
fn of_ip(namespace: &Namespace) -> String {
    namespace
        .name()
        .map_or(String::new(), |name| format!("-n {name} "))
}

impl Found {
    fn new(interface: &str, namespace: Namespace) -> Result<Self> {
        let state = link::state(&namespace, interface)?;
        Ok(Self {
            interface: interface.to_owned(),
            namespace,
            state,
        })
    }

    /// An error when no frame can pass.
    fn usable(&self) -> Result<()> {
        let Self {
            interface,
            namespace,
            state,
        } = self;
        if !state.up {
            bail!(
                "{interface} in {namespace} is down; set it up with `ip {}link set dev \
                 {interface} up`",
                of_ip(namespace)
            );
        }
        if !state.carrier {
            bail!(
                "{interface} in {namespace} has no carrier: is the cable in, and the other end up?"
            );
        }
        Ok(())
    }

    /// Turns off what merges frames below the program; to be done before that is attached.
    fn without_merging(&self) -> Result<Vec<Change>> {
        Ok(Journal::open().without_merging(&self.namespace, &self.interface)?)
    }

    /// Makes it ready to be used with the program that is attached to it.
    fn open(
        self,
        config: &config::PfcTestbed,
        account: AccountProgram,
        mut changes: Vec<Change>,
    ) -> Result<TesterPort> {
        let Self {
            interface,
            namespace,
            state,
        } = self;
        let _promiscuous = namespace.run(|| Promiscuous::hold(&interface))??;
        if config.qos.trust == Trust::Pcp {
            // XDP sees the tag only where it stays in the frame. Where the driver always takes it
            // out, frames without a tag are seen, and reported as such.
            changes.extend(Journal::open().with_tags(&namespace, &interface)?);
        }
        Ok(TesterPort {
            interface,
            namespace,
            account,
            pfc_visible: declared_pfc(config, &state.driver),
            pfc_seen: None,
            takes_own_pfc: None,
            alive: false,
            state,
            mac_alive: Alive::default(),
            self_test: None,
            features: Vec::new(),
            _promiscuous,
            _changes: changes,
        })
    }
}

/// Loads and attaches the programs of both ports. Side by side, for the verifier takes half a
/// second for each.
fn attach_both(
    ports: [&Found; 2],
    mode: XdpMode,
    sizes: Sizes,
    trace: Option<&TraceOutput>,
) -> Result<[AccountProgram; 2]> {
    let attach = |port: &Found| -> Result<AccountProgram> {
        Ok(port.namespace.run(|| match trace {
            Some(output) => AccountProgram::attach_traced(&port.interface, mode, sizes, output),
            None => AccountProgram::attach(&port.interface, mode, sizes),
        })??)
    };
    let [tx, rx] = ports;
    thread::scope(|scope| {
        let other = scope.spawn(|| attach(rx));
        let tx = attach(tx);
        let rx = other
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok([tx?, rx?])
    })
}
