//! Attaching to the ports that are asked for.

use anyhow::{Result, bail};
use pfc_ebpf::units::LineRate;
use validator_core::nic;

use super::super::output::Output;
use super::{Port, PortName, without_carrier};
use crate::driver::bpf::watch::{Direction, Point, Settings, Watch};
use crate::driver::bpf::{TraceOutput, XdpError, XdpMode};
use crate::driver::kernel::link::{self, Feature, LinkState, Links};
use crate::driver::kernel::netns::Namespace;
use crate::output;
use crate::watch::args::{AttachArg, TrustArg, WatchArgs};

/// Flows of test frames that are told apart when loss is judged.
const FLOWS: u32 = 1024;

/// A port that is asked for.
pub struct Wanted {
    interface: String,
    /// At tc; `None`: where `--attach` says.
    direction: Option<Direction>,
    /// The interface as it was found last.
    pub state: LinkState,
    /// Settings of its program.
    pub settings: Settings,
}

/// Attaches to all ports. The receiving port of a pair comes before the sending one, so that it
/// sees all that was counted there.
pub fn all(args: &WatchArgs, output: &mut Output) -> Result<Vec<Port>> {
    let wanted = wanted(args)?;
    let mut watches = if args.trace {
        wanted.iter().map(traced).collect::<Result<_, _>>()?
    } else {
        let settings: Vec<_> = wanted.iter().map(|port| port.settings).collect();
        Watch::of_ports(&settings)?
    };
    wanted.iter().for_each(|port| port.warn_of_resets(args));
    // The sending port of a pair is named last.
    let receiving = wanted.partition_point(|port| port.direction.is_none());
    let (before, after) = wanted.split_at(receiving);
    let (watches_before, watches_after) = watches.split_at_mut(receiving);
    for (wanted, watches) in [(before, watches_before), (after, watches_after)] {
        let places = wanted.iter();
        let places: Vec<_> = places
            .map(|port| (port.interface.as_str(), port.point(args)))
            .collect();
        let attached = Watch::attach_all(watches, &places)?;
        for ((port, watch), attached) in wanted.iter().zip(watches).zip(attached) {
            attach_behind(args, port, watch, attached, output)?;
        }
    }
    let ports = wanted.into_iter().zip(watches);
    ports.map(|(port, watch)| one(args, port, watch)).collect()
}

/// The ports that are asked for, as they are now.
fn wanted(args: &WatchArgs) -> Result<Vec<Wanted>> {
    let namespace = Namespace::current()?;
    let pair = args.loss.as_ref();
    let mut names: Vec<(&String, Option<Direction>)> = Vec::new();
    for interface in args.interfaces.iter() {
        if names.iter().any(|(name, _)| *name == interface) {
            bail!("{interface} is named twice; each interface is to be named once");
        }
        names.push((interface, None));
    }
    if let Some(pair) = pair {
        if !args.interfaces.contains(&pair.rx) {
            names.push((&pair.rx, None));
        }
        names.push((&pair.tx, Some(Direction::Egress)));
    }
    let interfaces: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
    let states = Links::read(&namespace)?.states(&namespace, &interfaces)?;
    names
        .into_iter()
        .zip(states)
        .map(|((interface, direction), state)| {
            check(interface, &state)?;
            let of_pair = direction.is_some() || pair.is_some_and(|pair| pair.rx == *interface);
            Ok(Wanted {
                interface: interface.clone(),
                direction,
                settings: settings(args, direction, of_pair, &state),
                state,
            })
        })
        .collect()
}

/// Refuses an interface whose packets cannot be read here.
fn check(interface: &str, state: &LinkState) -> Result<()> {
    if !state.ethernet {
        bail!(
            "{interface} carries packets without Ethernet headers (as tun, WireGuard and IPoIB \
             do), which cannot be read here; watch the Ethernet port below it"
        );
    }
    Ok(())
}

/// The speed that the driver reports.
pub fn reported(state: &LinkState) -> Option<LineRate> {
    let rate = LineRate::from_bits_per_second;
    state.speed.and_then(|speed| rate(speed).ok())
}

fn settings(
    args: &WatchArgs,
    direction: Option<Direction>,
    of_pair: bool,
    state: &LinkState,
) -> Settings {
    Settings {
        trust: args.trust.into(),
        dscp_map: args.dscp_map().0.map,
        line_rate: args.line_rate.or(reported(state)),
        capture: args.pcap.is_some() && direction.is_none(),
        flows: if of_pair { FLOWS } else { 0 },
    }
}

/// The port with a program of its own, which writes lines about its frames.
fn traced(port: &Wanted) -> Result<Watch, XdpError> {
    let lines = TraceOutput::terminal();
    Watch::traced(&port.settings, &port.interface, &lines)
}

/// The port, of which nothing was shown yet.
fn one(args: &WatchArgs, wanted: Wanted, watch: Watch) -> Result<Port> {
    let (name, tags_hidden) = wanted.described(args, &watch)?;
    let first = watch.read()?;
    let interface = &wanted.interface;
    Ok(Port {
        name,
        watch,
        last: first.clone(),
        first,
        named: interface.clone(),
        removed: false,
        disturbed: (!wanted.state.carrier).then(|| without_carrier(interface)),
        tags_hidden,
        wanted,
        left_out: 0,
    })
}

impl Wanted {
    /// Moves the port to an interface that is there in place of the former.
    pub fn renew(&mut self, args: &WatchArgs, state: LinkState) -> Result<()> {
        check(&self.interface, &state)?;
        self.settings.line_rate = args.line_rate.or(reported(&state));
        self.state = state;
        Ok(())
    }

    /// Attaches to the interface.
    pub fn attach(&self, args: &WatchArgs, watch: &mut Watch, output: &mut Output) -> Result<()> {
        let attached = watch.attach_to(&self.interface, self.point(args));
        attach_behind(args, self, watch, attached, output)
    }

    /// The way in which the attached port is counted, and whether the NIC may hide tags.
    pub fn described(&self, args: &WatchArgs, watch: &Watch) -> Result<(PortName, bool)> {
        let place = match watch.place() {
            "driver" => "xdp driver",
            "skb" => "xdp skb",
            place => place,
        };
        let (map, is_named) = args.dscp_map();
        let name = PortName {
            interface: self.interface.clone(),
            place,
            map: (args.trust == TrustArg::Dscp).then_some(map),
            is_default: !is_named,
            line_rate: self.settings.line_rate,
            is_reported: args.line_rate.is_none(),
        };
        if !self.state.carrier {
            warn(&self.interface, "it has no carrier");
        }
        let tags_hidden = tags_hidden(args, &name)?;
        Ok((name, tags_hidden))
    }

    fn point(&self, args: &WatchArgs) -> Point {
        match (self.direction, args.attach) {
            (Some(direction), _) => Point::tc(direction),
            (None, AttachArg::Auto) => Point::Xdp(XdpMode::Auto),
            (None, AttachArg::Driver) => Point::Xdp(XdpMode::Driver),
            (None, AttachArg::Skb) => Point::Xdp(XdpMode::Skb),
            (None, AttachArg::Tc) => Point::tc(Direction::Ingress),
        }
    }

    fn warn_of_resets(&self, args: &WatchArgs) {
        let driver = &self.state.driver;
        let point = self.point(args);
        if matches!(point, Point::Xdp(XdpMode::Auto | XdpMode::Driver)) && nic::of(driver).resets {
            let message = format!(
                "its driver {driver} may reset its rings as the program comes and goes; \
                 --attach tc avoids that"
            );
            warn(&self.interface, &message);
        }
    }
}

/// Attaches behind another XDP program where there is one and the user leaves the choice.
fn attach_behind(
    args: &WatchArgs,
    port: &Wanted,
    watch: &mut Watch,
    attached: Result<(), XdpError>,
    output: &mut Output,
) -> Result<()> {
    match attached {
        Err(XdpError::Occupied { program, .. }) if args.attach == AttachArg::Auto => {
            let message = format!(
                "has an XDP program already, {program}: counting at tc ingress, behind it. Not \
                 seen: frames that it drops, redirects or sends back, PAUSE and PFC frames where \
                 it takes them, and frames as they were before it changed them"
            );
            output.event(0, &port.interface, "occupied", &message);
            Ok(watch.attach_to(&port.interface, Point::tc(Direction::Ingress))?)
        }
        attached => Ok(attached?),
    }
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

fn warn(interface: &str, message: &str) {
    output::note(format_args!("validator: {interface}: {message}"));
}
