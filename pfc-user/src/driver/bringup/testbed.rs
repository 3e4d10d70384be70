//! The testbed brought up: the tester's ports with their programs, and the device between them.

mod line_rate;
mod link_snapshot;
mod neighbours;
mod self_test;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{LineRate, Nanos, Priority};
use validator_core::evidence::pfc::{DropCounter, Port, PortReceived};
use validator_core::evidence::preflight::{FeatureFact, SelfTest};
use validator_core::nic;
use validator_core::plan::{Limits, PortName, PortRole};

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
/// EtherType for local experiments 1.
const LOCAL_EXPERIMENTAL: u16 = 0x88b5;
/// A link is back within this after its port, or the DUT's, was configured.
const CARRIER: Duration = Duration::from_secs(10);

/// A port of the tester.
pub struct TesterPort {
    /// Its name in the testbed.
    pub name: PortName,
    /// Its part.
    pub role: PortRole,
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
    /// Further ports.
    pub more: Vec<TesterPort>,
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
    /// tx, rx, and the further ones.
    found: Vec<Found>,
    trace: Option<TraceOutput>,
}

/// The port of a device of ours that the tester's port of that place is cabled to.
fn dut_port(place: usize) -> String {
    format!("p{place}")
}

impl Ports {
    /// Makes or finds them.
    pub fn lay(config: &config::PfcTestbed) -> Result<Self> {
        let (device, found) = match &config.dut {
            Dut::External { .. } => (Device::External, find_all(config)?),
            own => {
                let (tester, dut) = (Namespace::new()?, Namespace::new()?);
                let mut found = Vec::new();
                for (place, (name, role)) in names(config).enumerate() {
                    let interface = name.to_string();
                    // Locally administered addresses.
                    let [near, far] = [0, 1].map(|end| [0x02, 0, 0, 0, end, 1 + place as u8]);
                    let peer = dut_port(place);
                    let near = End::new(&tester, &interface, near);
                    create_veth(near, End::new(&dut, &peer, far), MTU)?;
                    found.push(Found::new(name, role, tester.try_clone()?)?);
                }
                let device = match own {
                    Dut::Sim { .. } => Device::Sim { namespace: dut },
                    _ => Device::Bridge { namespace: dut },
                };
                (device, found)
            }
        };
        Ok(Self {
            device,
            found,
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

    /// Part, interface and place of each: tx, rx, and the further ones.
    pub fn all(&self) -> impl Iterator<Item = (PortRole, &str, &Namespace)> {
        let found = self.found.iter();
        found.map(|port| (port.role, port.interface.as_str(), &port.namespace))
    }

    /// Attaches the programs and shows that they see PAUSE/PFC frames, as far as that can be shown.
    /// An error when the ports cannot be used.
    pub fn open(self, config: &config::PfcTestbed, sizes: Sizes) -> Result<Testbed> {
        let Self {
            device,
            found,
            trace,
        } = self;
        found.iter().try_for_each(Found::usable)?;
        let line_rate = line_rate(config.ports.line_rate, &found)?;
        let changes: Vec<_> = found
            .iter()
            .map(Found::without_merging)
            .collect::<Result<_>>()?;
        let accounts = attach_all(&found, config.ports.xdp, sizes, trace.as_ref())?;
        let mut ports = Vec::new();
        for ((port, account), changes) in found.into_iter().zip(accounts).zip(changes) {
            ports.push(port.open(config, account, changes)?);
        }
        // Some drivers reset the port for a program, and for an offload; and where two are cabled
        // together, what resets one takes the carrier of both.
        ports.iter().try_for_each(TesterPort::wait_for_carrier)?;
        for port in &mut ports {
            port.features = link::features(&port.namespace, &port.interface)?;
        }
        if let Device::Sim { namespace } | Device::Bridge { namespace } = &device {
            for (place, port) in ports.iter_mut().enumerate() {
                self_test::own_wire(port, namespace, &dut_port(place), line_rate)?;
            }
        }
        if let Device::Bridge { namespace } = &device {
            let peers: Vec<String> = (0..ports.len()).map(dut_port).collect();
            let peers: Vec<&str> = peers.iter().map(String::as_str).collect();
            create_bridge(namespace, "bridge", &peers)?;
        }
        let mut ports = ports.into_iter();
        let (Some(mut tx), Some(mut rx)) = (ports.next(), ports.next()) else {
            bail!("a testbed has the ports tx and rx");
        };
        let mut more: Vec<TesterPort> = ports.collect();
        if matches!(device, Device::External) {
            self_test::between(&mut tx, &mut rx, line_rate)?;
            for port in &mut more {
                self_test_beside(port, &mut rx, line_rate)?;
            }
        }
        let neighbours = match &device {
            Device::External => neighbours::answer(&config.addresses, &tx, &rx)?,
            // Neither asks.
            Device::Sim { .. } | Device::Bridge { .. } => Vec::new(),
        };
        Ok(Testbed {
            tx,
            rx,
            more,
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
        let line_rate = self.limits.line_rate.bits_per_second().to_string();
        let (lossless, map) = (list(lossless), list(&config.qos.dscp_map));
        let ports: Vec<String> = (0..self.ports().count()).map(dut_port).collect();
        let ports = ports.iter().flat_map(|port| ["--port", port]);
        let settings = [
            "--line-rate",
            &line_rate,
            "--lossless",
            &lossless,
            "--trust",
            trust,
            "--dscp-map",
            &map,
            "--scheduler",
            scheduler.word(),
        ];
        let device: Vec<&str> = ["switch"]
            .into_iter()
            .chain(ports)
            .chain(settings)
            .collect();
        let ready = |line: &str| line.contains("ready").then_some(());
        let (child, ()) = super::start_dut(Some(namespace), &device, faults, args, "ready", ready)?;
        Ok(Some(child))
    }

    /// The ports: tx, rx, and the further ones.
    pub fn ports(&self) -> impl Iterator<Item = &TesterPort> {
        [&self.tx, &self.rx].into_iter().chain(&self.more)
    }

    /// The ports: tx, rx, and the further ones.
    pub fn ports_mut(&mut self) -> impl Iterator<Item = &mut TesterPort> {
        [&mut self.tx, &mut self.rx]
            .into_iter()
            .chain(&mut self.more)
    }

    /// The sending ports.
    pub fn senders(&self) -> impl Iterator<Item = &TesterPort> {
        self.ports().filter(|port| port.role == PortRole::Tx)
    }

    /// The sending ports.
    pub fn senders_mut(&mut self) -> impl Iterator<Item = &mut TesterPort> {
        self.ports_mut().filter(|port| port.role == PortRole::Tx)
    }

    /// The receiving ports.
    pub fn receivers(&self) -> impl Iterator<Item = &TesterPort> {
        self.ports().filter(|port| port.role == PortRole::Rx)
    }

    /// Waits until all links are up, for example after the DUT was configured.
    pub fn wait_for_carrier(&self) -> Result<()> {
        self.ports().try_for_each(TesterPort::wait_for_carrier)
    }

    /// Does the self-test again where it did not show that PAUSE/PFC frames reach a sending port's
    /// program, for example after the DUT was configured.
    pub fn self_test_again(&mut self) -> Result<()> {
        if !matches!(self.device, Device::External) {
            return Ok(());
        }
        let Self { tx, rx, more, .. } = self;
        let line_rate = self.limits.line_rate;
        if tx.pfc_visible.is_none() {
            self_test::between(tx, rx, line_rate)?;
        }
        let is_unseen =
            |port: &&mut TesterPort| port.role == PortRole::Tx && port.pfc_visible.is_none();
        for port in more.iter_mut().filter(is_unseen) {
            self_test_beside(port, rx, line_rate)?;
        }
        Ok(())
    }

    /// Sends a frame from each port to another, so that a DUT that bridges learns all addresses:
    /// the rx port sends nothing else that is learned from. The frames are of the EtherType for
    /// local experiments (IEEE 802). Returns how often each port had no room.
    pub fn introduce(&self) -> Result<Vec<u64>> {
        let [tx, mut rx] = introduce(&self.tx, &self.rx)?;
        let mut waits = vec![tx];
        for port in &self.more {
            let [own, again] = introduce(port, &self.rx)?;
            rx += again;
            waits.push(own);
        }
        waits.insert(1, rx);
        Ok(waits)
    }

    /// Number of times so far that the ports had no room for an answer to a neighbour.
    pub fn neighbour_waits(&self) -> u64 {
        self.neighbours.iter().map(Responder::waits).sum()
    }

    /// Counters of lost frames of all ports, of their other ends where these are ours, and of the
    /// kernel between.
    pub fn counters(&self) -> Result<Counters> {
        let mut counters = Vec::new();
        for port in self.ports() {
            let mut of_port = link::statistics(&port.namespace, &port.interface)?;
            if let Some(own) = port.own_drops() {
                of_port.retain(|(name, _)| name != own);
            }
            counters.push((format!("{} port {}", port.name, port.interface), of_port));
        }
        if let Device::Sim { namespace } | Device::Bridge { namespace } = &self.device {
            for port in (0..self.ports().count()).map(dut_port) {
                let of_end = link::statistics(namespace, &port)?;
                counters.push((format!("DUT's end {port}"), of_end));
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

    fn wait_for_carrier(&self) -> Result<()> {
        link::wait_for_carrier(&self.namespace, &self.interface, CARRIER)?;
        Ok(())
    }

    /// Notes that its program saw PFC frames of the DUT, if it counted some in that repetition.
    /// PAUSE frames show nothing: a MAC that obeys PFC may pass them on.
    pub fn note_pfc(&mut self, counts: &PortReceived, repetition: &str) {
        let seen = counts.pfc_frames;
        if seen > 0 && self.pfc_seen.is_none() {
            let source = format!("{seen} PFC frames of the DUT seen in \"{repetition}\"");
            self.pfc_seen = Some(source);
        }
    }

    /// A log of its MAC's counters.
    pub fn mac_log(&self) -> Result<MacLog> {
        let name = &self.name.to_string();
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
    pub fn facts(&self) -> Result<Port> {
        let now = link::state(&self.namespace, &self.interface)?;
        Ok(Port {
            role: self.role,
            interface: self.interface.clone(),
            driver: self.state.driver.clone(),
            carrier: now.carrier,
            disturbed: None,
            speed: nic::own_speed(now.kind.as_deref(), now.speed),
            xdp: self.account.mode().into(),
            pfc_visible: self.pfc_visible.clone().or(self.pfc_seen.clone()),
            takes_own_pfc: self.takes_own_pfc.clone(),
            alive: self.alive,
            counts: PortReceived::default(),
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

/// The self-test of a further port. What that with the tx port showed of the rx port stays.
fn self_test_beside(port: &mut TesterPort, rx: &mut TesterPort, line_rate: LineRate) -> Result<()> {
    let (shown, taken) = (rx.self_test.take(), rx.takes_own_pfc.take());
    self_test::between(port, rx, line_rate)?;
    rx.self_test = shown.or(rx.self_test.take());
    rx.takes_own_pfc = taken.or(rx.takes_own_pfc.take());
    Ok(())
}

/// Names of the ports and their parts: tx, rx, and the further ones.
fn names(config: &config::PfcTestbed) -> impl Iterator<Item = (PortName, PortRole)> {
    let more = config.ports.more.iter();
    let more = more.map(|(name, port)| (name.clone(), port.role));
    let first = [(PortName::TX, PortRole::Tx), (PortName::RX, PortRole::Rx)];
    first.into_iter().chain(more)
}

struct Found {
    name: PortName,
    role: PortRole,
    interface: String,
    namespace: Namespace,
    state: LinkState,
}

/// The ports of an external DUT, if they can be used; none for a device of ours.
fn find_all(config: &config::PfcTestbed) -> Result<Vec<Found>> {
    let Dut::External { tx, rx, .. } = &config.dut else {
        return Ok(Vec::new());
    };
    let more = config.ports.more.values();
    let more = more.filter_map(|port| port.interface.as_ref());
    // The end of another run, or a setting that a user has just made, may have reset the ports.
    let deadline = Instant::now() + CARRIER;
    let (mut found, mut errors) = (Vec::<Found>::new(), Vec::<String>::new());
    for ((name, role), port) in names(config).zip([tx, rx].into_iter().chain(more)) {
        match find(name, role, port, deadline) {
            Ok(port) => found.push(port),
            // All at once: each would cost a run of its own.
            Err(error) if !errors.contains(&in_words(&error)) => errors.push(in_words(&error)),
            Err(_) => {}
        }
    }
    if !errors.is_empty() {
        bail!("{}", errors.join("\n"));
    }
    for (place, port) in found.iter().enumerate() {
        for before in &found[..place] {
            // A namespace may be named, or be the one that the tool is started in.
            if before.state.index == port.state.index
                && before.namespace.inode()? == port.namespace.inode()?
            {
                bail!(
                    "{} in {} is both {} and {}; they must be different ports",
                    port.interface,
                    port.namespace,
                    before.name,
                    port.name
                );
            }
        }
    }
    Ok(found)
}

fn find(name: PortName, role: PortRole, port: &config::Port, deadline: Instant) -> Result<Found> {
    let namespace = Namespace::open(port.namespace.as_deref())?;
    let left = deadline.saturating_duration_since(Instant::now());
    let state = link::settled_state(&namespace, &port.interface, left)?;
    Ok(Found {
        name,
        role,
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
    /// A port that the tool made; its interface has its name.
    fn new(name: PortName, role: PortRole, namespace: Namespace) -> Result<Self> {
        let interface = name.to_string();
        let state = link::state(&namespace, &interface)?;
        Ok(Self {
            name,
            role,
            interface,
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
            ..
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
            name,
            role,
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
            name,
            role,
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

/// Loads and attaches the programs of all ports. Side by side, for the verifier takes half a
/// second for each.
fn attach_all(
    ports: &[Found],
    mode: XdpMode,
    sizes: Sizes,
    trace: Option<&TraceOutput>,
) -> Result<Vec<AccountProgram>> {
    let attach = |port: &Found| -> Result<AccountProgram> {
        Ok(port.namespace.run(|| match trace {
            Some(output) => AccountProgram::attach_traced(&port.interface, mode, sizes, output),
            None => AccountProgram::attach(&port.interface, mode, sizes),
        })??)
    };
    thread::scope(|scope| {
        let attaching: Vec<_> = ports
            .iter()
            .map(|port| scope.spawn(|| attach(port)))
            .collect();
        let attached = attaching.into_iter().map(|thread| {
            let attached = thread.join();
            attached.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        attached.collect()
    })
}
