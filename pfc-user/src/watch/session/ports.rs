//! The ports that are watched.

use std::fmt;
use std::io::Write;

use anyhow::{Result, bail};
use pfc_ebpf::abi::watch::Sketch;
use pfc_ebpf::units::{LineRate, Nanos};

use super::output::{Output, Shown};
use crate::driver::bpf::watch::{Direction, Flow, Point, Reading, Settings, Watch};
use crate::driver::bpf::{TraceOutput, XdpError, XdpMode};
use crate::driver::kernel::clock;
use crate::driver::kernel::link::{self, Feature, LinkError, LinkEvent, LinkState};
use crate::driver::kernel::netns::Namespace;
use crate::nic;
use crate::watch::args::{AttachArg, TrustArg, WatchArgs};
use crate::watch::pcapng::Capture;
use crate::watch::prometheus::Labelled;

/// Flows of test frames that are told apart when loss is judged.
const FLOWS: u32 = 1024;

/// A port and the way it is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortName {
    /// Interface.
    pub interface: String,
    /// Place where frames are counted: `xdp driver`, `xdp skb`, `tcx ingress`, `tcx egress`, or on
    /// kernels without tcx `tc ingress`, `tc egress`.
    pub place: &'static str,
    /// The source of priorities and pause times, for people.
    pub how: String,
}

impl PortName {
    /// Counts outgoing frames.
    fn is_egress(&self) -> bool {
        self.place.ends_with(" egress")
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.interface, self.place)
    }
}

/// A port with its program.
pub struct Port {
    /// Its name.
    pub name: PortName,
    watch: Watch,
    first: Reading,
    last: Reading,
    index: u32,
    /// The interface's name now.
    named: String,
    carrier: bool,
    mtu: u32,
    gone: bool,
    /// The change of its link that makes missing frames inexplicable, if there was one.
    pub disturbed: Option<String>,
    /// Priorities are told by tags that the NIC may take out before the frames are counted.
    pub tags_hidden: bool,
}

impl Port {
    /// Its counts since it was attached.
    pub fn read(&self) -> Result<Reading> {
        Ok(self.watch.read()?)
    }

    /// All frames that it has sorted.
    pub fn sketch(&self) -> Result<Box<Sketch>> {
        Ok(Box::new(self.watch.sketch()?))
    }

    /// Test frames that it has counted.
    pub fn flows(&self) -> Result<Vec<Flow>> {
        Ok(self.watch.flows()?)
    }

    /// It was removed.
    pub fn gone(&self) -> bool {
        self.gone
    }

    /// It has another name than it was asked for by.
    pub fn renamed(&self) -> bool {
        self.named != self.name.interface
    }
}

/// All ports.
pub struct Ports {
    ports: Vec<Port>,
    begin: Nanos,
}

impl Ports {
    /// Attaches to the ports that are asked for. The receiving port of a pair comes before the
    /// sending one, so that it sees all that was counted there.
    pub fn attach(args: &WatchArgs, output: &mut Output) -> Result<Self> {
        let namespace = Namespace::current()?;
        let mut ports = Self {
            ports: Vec::new(),
            begin: clock::now(),
        };
        let mut interfaces = args.interfaces.clone();
        interfaces.extend(
            args.loss
                .as_ref()
                .map(|pair| pair.rx.clone())
                .filter(|rx| !args.interfaces.contains(rx)),
        );
        let mut wanted: Vec<_> = interfaces
            .into_iter()
            .map(|interface| (interface, None))
            .collect();
        wanted.extend(
            args.loss
                .as_ref()
                .map(|pair| (pair.tx.clone(), Some(Direction::Egress))),
        );
        for (interface, direction) in wanted {
            if direction.is_none()
                && ports
                    .ports
                    .iter()
                    .any(|port| port.name.interface == interface)
            {
                bail!("{interface} is named twice; each interface is to be named once");
            }
            let state = link::state(&namespace, &interface)?;
            if !state.ethernet {
                bail!(
                    "{interface} carries packets without Ethernet headers (as tun, WireGuard and \
                     IPoIB do), which cannot be read here; watch the Ethernet port below it"
                );
            }
            let port = Self::attach_one(args, &interface, direction, &state, output)?;
            ports.ports.push(port);
        }
        ports.begin = clock::now();
        Ok(ports)
    }

    fn attach_one(
        args: &WatchArgs,
        interface: &str,
        direction: Option<Direction>,
        state: &LinkState,
        output: &mut Output,
    ) -> Result<Port> {
        let reported = state
            .speed
            .and_then(|speed| LineRate::from_bits_per_second(speed).ok());
        let settings = Settings {
            trust: args.trust.into(),
            dscp_map: args.dscp_map.map,
            line_rate: args.line_rate.or(reported),
            capture: args.pcap.is_some() && direction.is_none(),
            flows: if args.loss.is_some() { FLOWS } else { 0 },
        };
        let watch = attach(args, interface, direction, state, &settings, output)?;
        let place = match watch.place() {
            "driver" => "xdp driver",
            "skb" => "xdp skb",
            place => place,
        };
        let name = PortName {
            interface: interface.to_owned(),
            place,
            how: how(args, settings.line_rate),
        };
        let first = watch.read()?;
        let (carrier, mtu) = (state.carrier, state.mtu);
        if !carrier {
            warn(interface, "it has no carrier");
        }
        let disturbed = (!carrier).then(|| without_carrier(interface));
        let tags_hidden = tags_hidden(args, &name)?;
        let index = state.index;
        Ok(Port {
            name,
            watch,
            last: first.clone(),
            first,
            index,
            named: interface.to_owned(),
            carrier,
            mtu,
            gone: false,
            disturbed,
            tags_hidden,
        })
    }

    /// Nanoseconds since it began.
    pub fn elapsed(&self) -> Nanos {
        clock::now() - self.begin
    }

    /// The interfaces, in the order of the ports.
    pub fn names(&self) -> Vec<&str> {
        self.ports
            .iter()
            .map(|port| port.name.interface.as_str())
            .collect()
    }

    /// All ports, and how they are counted.
    pub fn described(&self) -> String {
        let one = |port: &Port| format!("{}: {}", port.name, port.name.how);
        format!(
            "watching {}",
            self.ports.iter().map(one).collect::<Vec<_>>().join("; ")
        )
    }

    /// The port on that interface that counts what comes in, or what goes out.
    pub fn find(&self, interface: &str, egress: bool) -> &Port {
        let is_it =
            |port: &&Port| port.name.interface == interface && port.name.is_egress() == egress;
        self.ports
            .iter()
            .find(is_it)
            .expect("attached at the beginning")
    }

    /// True if no port is left.
    pub fn all_gone(&self) -> bool {
        self.ports.iter().all(|port| port.gone)
    }

    /// Takes note of what became of a link.
    pub fn note(&mut self, event: LinkEvent, output: &mut Output) -> Result<()> {
        let elapsed = self.elapsed();
        match event {
            LinkEvent::Gone { index } => {
                self.of(index)
                    .try_for_each(|port| port.note_gone(elapsed, output))?;
            }
            LinkEvent::State {
                index,
                name,
                carrier,
                mtu,
            } => {
                self.of(index).try_for_each(|port| {
                    port.note_name(&name, elapsed, output)?;
                    port.note_state(carrier, mtu, elapsed, output)
                })?;
            }
            LinkEvent::Missed => {
                let namespace = Namespace::current()?;
                for port in self.ports.iter_mut().filter(|port| !port.gone) {
                    let Some(name) = link::name_at(&namespace, port.index)? else {
                        port.note_gone(elapsed, output)?;
                        continue;
                    };
                    port.note_name(&name, elapsed, output)?;
                    match link::state(&namespace, &name) {
                        Ok(state) => port.note_state(state.carrier, state.mtu, elapsed, output)?,
                        // Its own event follows.
                        Err(LinkError::Unknown { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        Ok(())
    }

    fn of(&mut self, index: u32) -> impl Iterator<Item = &mut Port> {
        self.ports
            .iter_mut()
            .filter(move |port| port.index == index && !port.gone)
    }

    /// Shows what came since the last time.
    pub fn show(&mut self, output: &mut Output) -> Result<()> {
        let elapsed = self.elapsed();
        let mut readings = Vec::new();
        for port in self.ports.iter_mut().filter(|port| !port.gone) {
            let now = port.watch.read()?;
            let before = std::mem::replace(&mut port.last, now.clone());
            readings.push((port.name.clone(), before, now));
        }
        let shown: Vec<_> = readings
            .iter()
            .map(|(port, before, now)| Shown { port, before, now })
            .collect();
        Ok(output.interval(elapsed, &shown)?)
    }

    /// Shows all that was counted, those that are gone too.
    pub fn show_last(&mut self, output: &mut Output) -> Result<()> {
        for port in &mut self.ports {
            port.last = port.watch.read()?;
        }
        let shown: Vec<_> = self
            .ports
            .iter()
            .map(|port| Shown {
                port: &port.name,
                before: &port.first,
                now: &port.last,
            })
            .collect();
        Ok(output.last(self.elapsed(), &shown)?)
    }

    /// The present readings, labelled for Prometheus.
    pub fn labelled(&self) -> Result<Vec<Labelled>> {
        let labelled = |port: &Port| {
            let direction = if port.name.is_egress() {
                "transmit"
            } else {
                "receive"
            };
            let labels = vec![
                ("interface", port.name.interface.clone()),
                ("direction", direction.to_owned()),
            ];
            Ok(Labelled {
                labels,
                reading: port.watch.read()?,
            })
        };
        self.ports.iter().map(labelled).collect()
    }

    /// Moves what was recorded of PAUSE and PFC frames to the capture.
    pub fn drain<W: Write>(&mut self, capture: Option<&mut Capture<W>>) -> Result<()> {
        let Some(capture) = capture else {
            return Ok(());
        };
        for (place, port) in self.ports.iter_mut().enumerate() {
            capture.write(place, &port.watch.controls()?)?;
        }
        Ok(())
    }
}

impl Port {
    fn note_gone(&mut self, elapsed: Nanos, output: &mut Output) -> Result<()> {
        self.gone = true;
        Ok(output.event(
            elapsed,
            &self.name.interface,
            "removed",
            "the interface is gone; what it counted until then stays",
        )?)
    }

    /// Takes note of the interface's name. It keeps the one that it was asked for by, so that its
    /// counts go on under one label.
    fn note_name(&mut self, name: &str, elapsed: Nanos, output: &mut Output) -> Result<()> {
        if name == self.named {
            return Ok(());
        }
        let interface = &self.name.interface;
        let message = format!("the interface is called {name} now; its counts go on");
        output.event(elapsed, interface, "renamed", &message)?;
        self.disturbed
            .get_or_insert_with(|| format!("{interface} was renamed to {name}"));
        name.clone_into(&mut self.named);
        Ok(())
    }

    fn note_state(
        &mut self,
        carrier: bool,
        mtu: u32,
        elapsed: Nanos,
        output: &mut Output,
    ) -> Result<()> {
        if carrier != self.carrier {
            let (event, message) = if carrier {
                ("carrier-up", "carrier is back")
            } else {
                ("carrier-lost", "carrier lost")
            };
            output.event(elapsed, &self.name.interface, event, message)?;
        }
        if mtu != self.mtu {
            output.event(
                elapsed,
                &self.name.interface,
                "mtu",
                &format!("MTU changed from {} to {mtu}", self.mtu),
            )?;
        }
        let interface = &self.name.interface;
        if !carrier {
            self.disturbed = Some(without_carrier(interface));
        } else if mtu != self.mtu && self.disturbed.is_none() {
            self.disturbed = Some(format!(
                "{interface} got an MTU of {mtu} in place of {}",
                self.mtu
            ));
        }
        (self.carrier, self.mtu) = (carrier, mtu);
        Ok(())
    }
}

/// Loads the program and attaches it; behind another XDP program where there is one and the user
/// leaves the choice.
fn attach(
    args: &WatchArgs,
    interface: &str,
    direction: Option<Direction>,
    state: &LinkState,
    settings: &Settings,
    output: &mut Output,
) -> Result<Watch> {
    let point = match (direction, args.attach) {
        (Some(direction), _) => Point::tc(direction),
        (None, AttachArg::Auto) => Point::Xdp(XdpMode::Auto),
        (None, AttachArg::Driver) => Point::Xdp(XdpMode::Driver),
        (None, AttachArg::Skb) => Point::Xdp(XdpMode::Skb),
        (None, AttachArg::Tc) => Point::tc(Direction::Ingress),
    };
    let driver = &state.driver;
    if matches!(point, Point::Xdp(XdpMode::Auto | XdpMode::Driver)) && nic::resets(driver) {
        warn(
            interface,
            &format!(
                "its driver {driver} may reset its rings as the program comes and goes; \
                 --attach tc avoids that"
            ),
        );
    }
    let trace = args.trace.then(TraceOutput::terminal);
    let attach = |point| match &trace {
        Some(output) => Watch::attach_traced(interface, point, settings, output),
        None => Watch::attach(interface, point, settings),
    };
    Ok(match attach(point) {
        Err(XdpError::Occupied { program, .. }) if args.attach == AttachArg::Auto => {
            let message = format!(
                "has an XDP program already, {program}: counting at tc ingress, behind it. Not \
                 seen: frames that it drops, redirects or sends back, PAUSE and PFC frames where \
                 it takes them, and frames as they were before it changed them"
            );
            output.event(0, interface, "occupied", &message)?;
            attach(Point::tc(Direction::Ingress))?
        }
        watch => watch?,
    })
}

/// True if the NIC may take out the tags by which priorities are told, before the frames are
/// counted. At tcx such a tag stands beside the frame.
fn tags_hidden(args: &WatchArgs, name: &PortName) -> Result<bool> {
    let interface = &name.interface;
    let hidden = args.trust == TrustArg::Pcp
        && name.place.starts_with("xdp")
        && link::feature(&Namespace::current()?, interface, Feature::RxVlan)?;
    if hidden {
        let message = format!(
            "rx-vlan-offload is on: a NIC takes tags, and priorities with them, out before XDP \
             counts; `ethtool -K {interface} rxvlan off`, or --attach tc"
        );
        warn(interface, &message);
    }
    Ok(hidden)
}

fn how(args: &WatchArgs, line_rate: Option<LineRate>) -> String {
    let priority = match args.trust {
        TrustArg::Dscp => format!("priority by DSCP ({})", args.dscp_map.name),
        TrustArg::Pcp => "priority by PCP".to_owned(),
    };
    match (line_rate, args.line_rate) {
        (Some(rate), Some(_)) => {
            format!("{priority}, {} Gbit/s", rate.bits_per_second() as f64 / 1e9)
        }
        (Some(rate), None) => format!(
            "{priority}, {} Gbit/s as the driver reports",
            rate.bits_per_second() as f64 / 1e9
        ),
        (None, _) => format!("{priority}, line rate unknown: no pause times (--line-rate)"),
    }
}

/// The reason given for a port that had no carrier.
pub fn without_carrier(interface: &str) -> String {
    format!("{interface} had no carrier for a time")
}

fn warn(interface: &str, message: &str) {
    eprintln!("validator: {interface}: {message}");
}
