//! The ports that are watched.

mod attach;

use std::fmt;

use anyhow::Result;
use pfc_ebpf::abi::watch::Sketch;
use pfc_ebpf::units::{LineRate, Nanos};

use super::output::{Output, Shown};
use crate::config::arguments::DscpMap;
use crate::driver::bpf::watch::{Reading, Watch};
use crate::driver::kernel::clock;
use crate::driver::kernel::link::{self, LinkError, LinkEvent};
use crate::driver::kernel::netns::Namespace;
use crate::error_text;
use crate::watch::args::{Pair, WatchArgs};
use crate::watch::pcapng::Capture;
use crate::watch::prometheus::{Exposed, Present};

/// A port and the way it is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortName {
    /// Interface.
    pub interface: String,
    /// Place where frames are counted: `xdp driver`, `xdp skb`, `tcx ingress`, `tcx egress`, or on
    /// kernels without tcx `tc ingress`, `tc egress`.
    pub place: &'static str,
    /// Priority by DSCP; `None` where the PCP gives it.
    pub map: Option<DscpMap>,
    /// No map was named.
    pub is_default: bool,
    /// Speed that turns quanta into time.
    pub line_rate: Option<LineRate>,
    /// The driver reported the speed.
    pub is_reported: bool,
}

impl PortName {
    /// The field that tells the priority.
    pub const fn trust(&self) -> &'static str {
        if self.map.is_some() { "dscp" } else { "pcp" }
    }

    /// Source of the map; `None` where the PCP gives the priority.
    pub fn map_source(&self) -> Option<&'static str> {
        let source = if self.is_default { "default" } else { "option" };
        self.map.is_some().then_some(source)
    }

    /// The source of priorities and pause times, for people.
    pub fn how(&self) -> String {
        let priority = match &self.map {
            Some(map) => format!("priority by DSCP ({}{})", map.name, self.by_default()),
            None => "priority by PCP".to_owned(),
        };
        match self.rate() {
            Some(rate) => format!("{priority}, {rate}"),
            None => format!("{priority}, line rate unknown: no pause times (--line-rate)"),
        }
    }

    /// Words behind the name of a map that nobody named.
    pub const fn by_default(&self) -> &'static str {
        if self.is_default { " by default" } else { "" }
    }

    /// The line rate and its source, for people.
    pub fn rate(&self) -> Option<String> {
        let rate = self.line_rate?.bits_per_second() as f64 / 1e9;
        let source = if self.is_reported {
            " by the driver"
        } else {
            ""
        };
        Some(format!("{rate} Gbit/s{source}"))
    }

    /// A port as tests have it.
    #[cfg(test)]
    pub fn example() -> Self {
        Self {
            interface: "eth0".to_owned(),
            place: "xdp driver",
            map: Some(DscpMap::sonic()),
            is_default: false,
            line_rate: None,
            is_reported: true,
        }
    }

    /// Returns true if the port counts outgoing frames.
    fn is_egress(&self) -> bool {
        self.place.ends_with(" egress")
    }

    /// Returns true if the port counts what a pair sends, or what it receives.
    fn is_end_of(&self, pair: &Pair) -> bool {
        let end = if self.is_egress() { &pair.tx } else { &pair.rx };
        self.interface == *end
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
    wanted: attach::Wanted,
    /// Its program.
    pub watch: Watch,
    first: Reading,
    last: Reading,
    /// The interface's name now.
    named: String,
    /// The interface was removed.
    pub removed: bool,
    /// The change of its link that makes missing frames inexplicable, if there was one.
    pub disturbed: Option<String>,
    /// Priorities are told by tags that the NIC may take out before the frames are counted.
    pub tags_hidden: bool,
    /// Frames that the reader of the capture did not take.
    left_out: u64,
}

impl Port {
    /// Its counts since it was attached. Frames that the reader of the capture did not take count
    /// as lost records.
    pub fn read(&self) -> Result<Reading> {
        let mut reading = self.watch.read()?;
        reading.counters.controls_lost += self.left_out;
        Ok(reading)
    }

    /// All frames that it has sorted.
    pub fn sketch(&self) -> Result<Box<Sketch>> {
        Ok(Box::new(self.watch.sketch()?))
    }
}

/// All ports.
pub struct Ports {
    ports: Vec<Port>,
    args: WatchArgs,
    begin: Nanos,
}

impl Ports {
    /// Attaches to the ports that are asked for.
    pub fn attach(args: &WatchArgs, output: &mut Output) -> Result<Self> {
        Ok(Self {
            ports: attach::all(args, output)?,
            args: args.clone(),
            begin: clock::now(),
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
        let one = |port: &Port| format!("{}: {}", port.name, port.name.how());
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
        self.ports.iter().all(|port| port.removed)
    }

    /// True if a port of the pair is gone or has another name, so that no window can open.
    pub fn pair_is_incomplete(&self) -> bool {
        self.args.loss.as_ref().is_some_and(|pair| {
            let pair = [self.find(&pair.tx, true), self.find(&pair.rx, false)];
            let mut ports = pair.into_iter();
            ports.any(|port| port.removed || port.named != port.name.interface)
        })
    }

    /// Takes note of what became of a link.
    pub fn note(&mut self, event: LinkEvent, output: &mut Output) -> Result<()> {
        let elapsed = self.elapsed();
        match event {
            LinkEvent::Gone { index } => {
                self.of(index)
                    .for_each(|port| port.note_gone(elapsed, output));
            }
            LinkEvent::State {
                index,
                name,
                carrier,
                mtu,
            } => {
                self.of(index).try_for_each(|port| {
                    port.note_name(&name, elapsed, output);
                    port.note_state(carrier, mtu, elapsed, output)
                })?;
                self.count_again(&name, output);
            }
            LinkEvent::Missed => self.look_again(output)?,
        }
        Ok(())
    }

    /// Looks at every link, where the kernel had more to tell than it could.
    fn look_again(&mut self, output: &mut Output) -> Result<()> {
        let (elapsed, namespace) = (self.elapsed(), Namespace::current()?);
        for port in self.ports.iter_mut().filter(|port| !port.removed) {
            let Some(name) = link::name_at(&namespace, port.wanted.state.index)? else {
                port.note_gone(elapsed, output);
                continue;
            };
            port.note_name(&name, elapsed, output);
            match link::state(&namespace, &name) {
                Ok(state) => port.note_state(state.carrier, state.mtu, elapsed, output)?,
                // Its own event follows.
                Err(LinkError::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let names = self.ports.iter().filter(|port| port.removed);
        let names: Vec<_> = names.map(|port| port.name.interface.clone()).collect();
        for name in names {
            self.count_again(&name, output);
        }
        Ok(())
    }

    /// Counts an interface of that name on for the ports whose own is gone.
    fn count_again(&mut self, name: &str, output: &mut Output) {
        let elapsed = self.elapsed();
        let removed = |port: &&mut Port| port.removed && port.name.interface == name;
        for port in self.ports.iter_mut().filter(removed) {
            let (event, message) = match port.attach_again(&self.args, output) {
                Ok(()) => (
                    "counted-again",
                    format!("an interface of that name is there: {}", port.name.how()),
                ),
                // The interface is gone again, or not of Ethernet.
                Err(error) => ("not-counted", error_text::in_words(&error)),
            };
            output.event(elapsed, name, event, &message);
        }
    }

    fn of(&mut self, index: u32) -> impl Iterator<Item = &mut Port> {
        self.ports
            .iter_mut()
            .filter(move |port| port.wanted.state.index == index && !port.removed)
    }

    /// Shows what came since the last time.
    pub fn show(&mut self, output: &mut Output) -> Result<()> {
        let elapsed = self.elapsed();
        let mut before = Vec::new();
        for port in self.ports.iter_mut().filter(|port| !port.removed) {
            let now = port.read()?;
            before.push(std::mem::replace(&mut port.last, now));
        }
        let ports = self.ports.iter().filter(|port| !port.removed);
        let shown = ports.zip(&before).map(|(port, before)| Shown {
            port: &port.name,
            before,
            now: &port.last,
        });
        output.interval(elapsed, &shown.collect::<Vec<_>>());
        Ok(())
    }

    /// Shows all that was counted, those that are gone too.
    pub fn show_last(&mut self, output: &mut Output) -> Result<()> {
        for port in &mut self.ports {
            port.last = port.read()?;
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
        output.last(self.elapsed(), &shown);
        Ok(())
    }

    /// The present state of all, for Prometheus.
    pub fn exposed(&self) -> Result<Vec<Exposed>> {
        let exposed = |port: &Port| {
            let direction = if port.name.is_egress() {
                "transmit"
            } else {
                "receive"
            };
            let mut labels = vec![
                ("interface", port.name.interface.clone()),
                ("direction", direction.to_owned()),
            ];
            let mut pair = self.args.loss.iter();
            let pair = pair.find(|pair| port.name.is_end_of(pair));
            labels.extend(pair.map(|pair| ("pair", pair.to_string())));
            let present = || {
                Ok::<_, anyhow::Error>(Present {
                    name: port.name.clone(),
                    carrier: port.wanted.state.carrier,
                    reading: port.read()?,
                })
            };
            Ok(Exposed {
                labels,
                present: (!port.removed).then(present).transpose()?,
            })
        };
        self.ports.iter().map(exposed).collect()
    }

    /// Frames that the reader of the capture did not take.
    pub fn left_out(&self) -> u64 {
        self.ports.iter().map(|port| port.left_out).sum()
    }

    /// Moves what was recorded of PAUSE and PFC frames to the capture.
    pub fn drain(&mut self, capture: Option<&mut Capture>) -> Result<()> {
        let Some(capture) = capture else {
            return Ok(());
        };
        for (place, port) in self.ports.iter_mut().enumerate() {
            port.left_out += capture.write(place, &port.watch.controls()?)?;
        }
        Ok(())
    }
}

impl Port {
    fn note_gone(&mut self, elapsed: Nanos, output: &mut Output) {
        self.removed = true;
        let interface = &self.name.interface;
        self.disturbed = Some(format!("{interface} was removed"));
        let message = "the interface is gone; what it counted until then stays, and one of its \
                       name is counted on";
        output.event(elapsed, interface, "removed", message);
    }

    /// Attaches to the interface of its name that is there now.
    fn attach_again(&mut self, args: &WatchArgs, output: &mut Output) -> Result<()> {
        let state = link::state(&Namespace::current()?, &self.name.interface)?;
        self.wanted.renew(args, state)?;
        self.watch.set_line_rate(self.wanted.settings.line_rate)?;
        self.wanted.attach(args, &mut self.watch, output)?;
        let (name, tags_hidden) = self.wanted.described(args, &self.watch)?;
        (self.named, self.removed) = (name.interface.clone(), false);
        (self.name, self.tags_hidden) = (name, tags_hidden);
        Ok(())
    }

    /// Takes note of the interface's name. It keeps the one that it was asked for by, so that its
    /// counts go on under one label.
    fn note_name(&mut self, name: &str, elapsed: Nanos, output: &mut Output) {
        if name == self.named {
            return;
        }
        let interface = &self.name.interface;
        let message = format!("the interface is called {name} now; its counts go on");
        output.event(elapsed, interface, "renamed", &message);
        self.disturbed
            .get_or_insert_with(|| format!("{interface} was renamed to {name}"));
        name.clone_into(&mut self.named);
    }

    fn note_state(
        &mut self,
        carrier: bool,
        mtu: u32,
        elapsed: Nanos,
        output: &mut Output,
    ) -> Result<()> {
        let state = &mut self.wanted.state;
        let had_carrier = std::mem::replace(&mut state.carrier, carrier);
        let before = std::mem::replace(&mut state.mtu, mtu);
        if carrier != had_carrier {
            let (event, message) = if carrier {
                ("carrier-up", "carrier is back")
            } else {
                ("carrier-lost", "carrier lost")
            };
            output.event(elapsed, &self.name.interface, event, message);
        }
        if mtu != before {
            output.event(
                elapsed,
                &self.name.interface,
                "mtu",
                &format!("MTU changed from {before} to {mtu}"),
            );
        }
        let interface = &self.name.interface;
        if !carrier {
            self.disturbed = Some(without_carrier(interface));
        } else if mtu != before {
            self.disturbed.get_or_insert_with(|| {
                format!("{interface} got an MTU of {mtu} in place of {before}")
            });
        }
        if carrier && !had_carrier && self.name.is_reported {
            self.note_speed(elapsed, output)?;
        }
        Ok(())
    }

    /// Takes note of the speed of a link that came up: a NIC knows none before, and the other end
    /// may ask for another one.
    fn note_speed(&mut self, elapsed: Nanos, output: &mut Output) -> Result<()> {
        let line_rate = match link::state(&Namespace::current()?, &self.named) {
            Ok(state) => attach::reported(&state),
            // Its own event follows.
            Err(LinkError::Unknown { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if line_rate == self.name.line_rate {
            return Ok(());
        }
        self.watch.set_line_rate(line_rate)?;
        self.name.line_rate = line_rate;
        output.event(elapsed, &self.name.interface, "line-rate", &self.name.how());
        Ok(())
    }
}

/// The reason given for a port that had no carrier.
pub fn without_carrier(interface: &str) -> String {
    format!("{interface} had no carrier for a time")
}
