//! A port: an interface with the program that counts, and the threads that send and read.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use pfc_ebpf::units::LineRate;
use validator_core::engine::plan::{Captures, Flow, Plan, Port, PortIndex};
use validator_core::engine::snapshot::PortCounts;
use validator_core::engine::{Captured, Problem};
use validator_core::nic;

use super::published::PortState;
use super::reader::{Order, ReaderThread};
use super::sender::{self, PortSender, SENDERS};
use super::{LiveEngine, Options, machine, presence};
use crate::driver::bpf::flow::FlowProgram;
use crate::driver::bringup::journal::{Change, Journal, JournalError};
use crate::driver::kernel::link::{self, Feature, LinkError, LinkState, Property};
use crate::driver::kernel::netns::{Namespace, NamespaceError};
use crate::driver::kernel::packet::PacketSocket;
use crate::driver::kernel::promiscuous::Promiscuous;

/// Places for starts of flows: a start keeps its own until this many later ones.
pub const PLACES: u32 = 8192;
/// A link is back within this after a program was attached.
const CARRIER: Duration = Duration::from_secs(5);

/// A port in use. Dropping it ends its threads first, then detaches the program.
pub struct LivePort {
    pub(super) senders: [PortSender; SENDERS],
    pub(super) reader: ReaderThread,
    pub(super) program: FlowProgram,
    pub(super) state: Arc<PortState>,
    /// Line rate under the current plan.
    pub(super) line_rate: LineRate,
    /// Last speed that the link reported; a link that is down reports none.
    pub(super) own_rate: Option<LineRate>,
    /// Nothing of the plan needs a speed, and the link has none.
    pub(super) has_no_speed: bool,
    /// Counts when the present ones began.
    pub(super) began: PortCounts,
    /// Forgotten time by then, and whether a warning of more was given.
    pub(super) forgotten_before: u64,
    pub(super) forgotten_warned: bool,
    /// Stalls that a warning was given of, or that an order made.
    pub(super) stalls_warned: u64,
    pub(super) interface: String,
    /// Index of the interface: a new one may bear the name of one that is gone. It may also be the
    /// same after the interface was in another namespace, where sockets do not follow it.
    pub(super) index: u32,
    pub(super) namespace: Namespace,
    /// The MTU that it was found with.
    mtu: u32,
    /// The kernel sends what its thread cannot.
    pub(super) is_fast: bool,
    /// The client was warned that the kernel does not send them.
    pub(super) slow_warned: bool,
    pub(super) capturing: bool,
    /// Frames that the capture's ring had no room for, when the capture began.
    pub(super) missed_before: u64,
    /// The link is down by order; it is put back before the MTU is.
    pub(super) down: Option<Change>,
    /// Another MTU than it had.
    longer: Option<Change>,
    /// Tells whether the link is up.
    pub(super) status: PacketSocket,
    _promiscuous: Promiscuous,
    /// Settings that are put back when the port is no longer used.
    _changes: Vec<Change>,
}

impl LivePort {
    fn open(
        port: &Port,
        need: Option<String>,
        namespace: Namespace,
        options: Options,
    ) -> Result<Self> {
        let interface = port.interface.clone();
        let state = link::state(&namespace, &interface)?;
        if !state.up {
            bail!(presence::down(&interface, &namespace));
        }
        let own_rate = own_rate(&state);
        let line_rate = line_rate(port, own_rate, need, &state)?;
        let changes = quieten(&namespace, &interface)?;
        let (mut program, promiscuous, [data, control, frames, status]) =
            namespace.run(|| -> Result<_> {
                let open = || PacketSocket::open(&interface);
                Ok((
                    FlowProgram::attach(&interface, options.xdp, PLACES)?,
                    Promiscuous::hold(&interface)?,
                    [open()?, open()?, open()?, open()?],
                ))
            })??;
        program.configure(line_rate);
        // Some drivers reset the port for a program. Where the link is down for another reason, it
        // may come up later.
        if state.carrier {
            link::wait_for_carrier(&namespace, &interface, CARRIER)?;
        }
        let published = Arc::new(PortState::default());
        let sockets = [data, control];
        let senders = sender::start(sockets, &program.pauses(), line_rate, &published)
            .context("cannot start the threads that send")?;
        let rings = program.take_rings().context("the program has no rings")?;
        let reader = ReaderThread::start(rings, frames)
            .context("cannot start the thread that reads frames")?;
        Ok(Self {
            senders,
            reader,
            program,
            state: published,
            line_rate,
            own_rate,
            has_no_speed: port.line_rate.or(own_rate).is_none(),
            began: PortCounts::default(),
            forgotten_before: 0,
            forgotten_warned: false,
            stalls_warned: 0,
            interface,
            index: state.index,
            namespace,
            mtu: state.mtu,
            is_fast: false,
            slow_warned: false,
            capturing: false,
            missed_before: 0,
            down: None,
            longer: None,
            status,
            _promiscuous: promiscuous,
            _changes: changes,
        })
    }

    /// The defect of a flow whose frames the port does not take, with that MTU of a plan.
    pub(super) fn too_long(&self, flow: &Flow, mtu: Option<u16>) -> Option<String> {
        presence::too_long(flow, &self.interface, self.mtu_in_force(mtu))
    }

    /// The MTU that it has with a plan which asks for that.
    pub(super) fn mtu_in_force(&self, planned: Option<u16>) -> u32 {
        planned.map_or(self.mtu, u32::from)
    }

    /// The line rate of that port of a plan, whatever the plan in force says.
    fn rate_of(&mut self, port: &Port, need: Option<String>) -> Result<LineRate> {
        let state = link::state(&self.namespace, &self.interface)?;
        self.own_rate = own_rate(&state).or(self.own_rate);
        Ok(line_rate(port, self.own_rate, need, &state)?)
    }

    /// Obeys what that port of a plan does, at that line rate.
    fn serve(&mut self, planned: &Port, rate: LineRate) {
        self.line_rate = rate;
        self.has_no_speed = planned.line_rate.or(self.own_rate).is_none();
        self.program.set_holders(&planned.obeys.holders());
        self.program.configure(rate);
    }

    /// True if it is the interface of that port of a plan.
    fn is(&self, port: &Port, namespace: &Namespace) -> Result<bool> {
        Ok(self.interface == port.interface && self.namespace.inode()? == namespace.inode()?)
    }

    /// Looks at the interface again, for a new plan: false if it has to be opened anew, as it was
    /// taken away, or is gone and another has its name.
    fn look_again(&mut self, namespace: &Namespace) -> Result<bool> {
        let state = link::state(namespace, &self.interface)?;
        if state.index != self.index || !self.status.is_bound()? {
            // Changes went with the former interface. Their notes would be taken for the new one's.
            self._changes.clear();
            (self.down, self.longer) = (None, None);
            // An interface takes it along to other namespaces.
            self.program.detach();
            return Ok(false);
        }
        if !state.up && self.down.is_none() {
            bail!(presence::down(&self.interface, namespace));
        }
        if self.longer.is_none() {
            self.mtu = state.mtu;
        }
        Ok(true)
    }

    /// Takes the link up or down; it is as it was found when the port is let go of.
    pub(super) fn set_link(&mut self, up: bool) -> Result<(), Problem> {
        if self.down.is_some() {
            // The user who took it down knows why nothing left.
            self.stalls_warned = self.state.stalls.load(Ordering::Relaxed);
        }
        let (namespace, interface) = (&self.namespace, &self.interface);
        set(namespace, interface, &mut self.down, Property::Up(up))
    }

    /// Sets the MTU that a plan asks for; without one the interface has its own.
    pub(super) fn set_mtu(&mut self, mtu: Option<u16>) -> Result<(), Problem> {
        if mtu.is_none() && self.longer.is_none() {
            return Ok(());
        }
        let property = Property::Mtu(self.mtu_in_force(mtu));
        let (namespace, interface) = (&self.namespace, &self.interface);
        set(namespace, interface, &mut self.longer, property)
    }

    /// Begins to capture with nothing captured yet, or ends it.
    pub(super) fn capture(&mut self, on: bool, captures: Captures) -> Result<(), Problem> {
        if on {
            self.program.capture(false);
            let begin = Order::Begin(captures);
            self.reader.order(begin).map_err(machine)?;
            self.missed_before = self.missed()?;
            self.program.capture(true);
        } else if self.capturing {
            self.program.capture(false);
            self.reader.order(Order::End).map_err(machine)?;
        }
        self.capturing = on;
        Ok(())
    }

    pub(super) fn captured(&mut self) -> Result<Option<Captured>, Problem> {
        let captured = self.reader.captured().map_err(machine)?;
        let missed = self.missed()? - self.missed_before;
        Ok(captured.map(|captured| Captured {
            missed: captured.missed + missed,
            ..captured
        }))
    }

    /// Frames that the capture's ring had no room for.
    fn missed(&self) -> Result<u64, Problem> {
        Ok(self.program.port().map_err(machine)?.missed)
    }
}

/// A port that was found for a plan.
enum Found {
    /// The port at that place among those in use.
    InUse(usize),
    /// A port that was opened for the plan.
    New(Box<LivePort>),
}

impl Found {
    /// Its place among the ports in use, if it is one.
    fn place(&self) -> Option<usize> {
        match self {
            Self::InUse(place) => Some(*place),
            Self::New(_) => None,
        }
    }

    /// The port, where these are in use.
    fn live<'a>(&'a mut self, ports: &'a mut [LivePort]) -> &'a mut LivePort {
        match self {
            Self::InUse(place) => &mut ports[*place],
            Self::New(port) => port,
        }
    }
}

/// The ports of the plan before.
pub struct Before {
    /// Ports that are no longer in use, in that plan's order.
    ports: Vec<Option<LivePort>>,
    /// The line rates of all, in that order.
    rates: Vec<LineRate>,
    /// Place in that plan of each port that is in use now.
    places: Vec<Option<usize>>,
}

/// Sets a property of a link that may have been changed already.
fn set(
    namespace: &Namespace,
    interface: &str,
    change: &mut Option<Change>,
    property: Property,
) -> Result<(), Problem> {
    match change {
        Some(made) if made.was() == Some(property) => {
            made.undo().map_err(machine)?;
            *change = None;
        }
        Some(made) => made.set(property).map_err(machine)?,
        None => {
            let changed = Journal::open().change_link(namespace, interface, property);
            *change = changed.map_err(machine)?;
        }
    }
    Ok(())
}

/// Turns off what merges frames below the program, and what takes tags out of them.
fn quieten(namespace: &Namespace, interface: &str) -> Result<Vec<Change>> {
    let journal = Journal::open();
    let mut changes = journal.without_merging(namespace, interface)?;
    match journal.change(namespace, interface, Feature::RxVlan, false) {
        // Where the driver does not let go of it, captures lack the tag.
        Err(JournalError::Link(LinkError::Fixed { .. } | LinkError::System { .. })) => {}
        change => changes.extend(change?),
    }
    Ok(changes)
}

/// The link's own speed, if it has one that means something.
fn own_rate(state: &LinkState) -> Option<LineRate> {
    let speed = nic::own_speed(state.kind.as_deref(), state.speed)?;
    LineRate::from_bits_per_second(speed).ok()
}

/// The line rate of a port: the plan's word, or the link's own speed. Where neither has one and
/// nothing has a `need` for it, a line that holds nothing up.
fn line_rate(
    port: &Port,
    own: Option<LineRate>,
    need: Option<String>,
    state: &LinkState,
) -> Result<LineRate, NoSpeed> {
    match (port.line_rate.or(own), need) {
        (Some(rate), _) => Ok(rate),
        (None, None) => Ok(LineRate::FASTEST),
        (None, Some(need)) => Err(NoSpeed {
            interface: port.interface.clone(),
            driver: state.driver.clone(),
            need,
        }),
    }
}

/// A port of the plan lacks a line rate that its interface cannot tell.
#[derive(Debug, thiserror::Error)]
#[error(
    "{interface} ({driver}) has no speed that means something, and {need}: set `layer1.speed` in \
     the configuration, or `line_rate` of the port in the testbed file"
)]
struct NoSpeed {
    interface: String,
    driver: String,
    /// Reason why the plan needs a speed.
    need: String,
}

/// A port of the plan is not there: the plan's fault where it names what does not exist.
fn not_found(port: &Port, error: &anyhow::Error) -> Problem {
    let text = format!("port \"{}\": {error:#}", port.name);
    let namespace = error.downcast_ref::<NamespaceError>();
    let link = error.downcast_ref::<LinkError>();
    let of_plan = matches!(namespace, Some(NamespaceError::Unknown { .. }))
        || matches!(link, Some(LinkError::Unknown { .. }))
        || error.is::<NoSpeed>();
    if of_plan {
        Problem::Order(text)
    } else {
        Problem::Machine(text)
    }
}

impl LiveEngine {
    /// Takes the ports of a plan; those that are in use already are kept. Those that are in use no
    /// longer are let go of with what this returns.
    pub(super) fn take_ports(&mut self, plan: &Plan) -> Result<Before, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut found: Vec<Found> = Vec::new();
        for (place, port) in plan.ports.iter().enumerate() {
            match self.find(port, plan.needs_line_rate(PortIndex(place))) {
                // One namespace may have two names.
                Ok(Found::InUse(place)) if found.iter().any(|port| port.place() == Some(place)) => {
                    problems.push(Problem::Order(format!(
                        "port \"{}\": {} is another port's already",
                        port.name, port.interface
                    )));
                }
                Ok(port) => found.push(port),
                Err(error) => problems.push(not_found(port, &error)),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut rates = Vec::with_capacity(plan.ports.len());
        for (place, (port, found)) in plan.ports.iter().zip(&mut found).enumerate() {
            let live = found.live(&mut self.ports);
            match live.rate_of(port, plan.needs_line_rate(PortIndex(place))) {
                Ok(rate) => rates.push(rate),
                Err(error) => problems.push(not_found(port, &error)),
            }
        }
        for flow in &plan.flows {
            let live = found[flow.from.0].live(&mut self.ports);
            let mtu = plan.ports[flow.from.0].mtu;
            problems.extend(live.too_long(flow, mtu).map(Problem::Order));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        self.set_mtus(&mut found, plan)?;
        let mut before = Before {
            rates: self.ports.iter().map(|port| port.line_rate).collect(),
            ports: self.ports.drain(..).map(Some).collect(),
            places: Vec::new(),
        };
        for ((found, rate), planned) in found.into_iter().zip(rates).zip(&plan.ports) {
            before.places.push(found.place());
            let mut port = match found {
                Found::InUse(place) => before.ports[place]
                    .take()
                    .expect("each place was found once"),
                Found::New(port) => *port,
            };
            port.serve(planned, rate);
            self.ports.push(port);
        }
        Ok(before)
    }

    /// Goes back to the ports that were in use before some were taken, as the plan has them that is
    /// in force again.
    pub(super) fn put_back(&mut self, mut before: Before) -> Vec<Problem> {
        for (port, place) in self.ports.drain(..).zip(before.places) {
            if let Some(place) = place {
                before.ports[place] = Some(port);
            }
        }
        self.ports = before.ports.into_iter().flatten().collect();
        let planned = self.plan.ports.iter().zip(before.rates);
        let mut problems = Vec::new();
        for (port, (planned, rate)) in self.ports.iter_mut().zip(planned) {
            port.serve(planned, rate);
            problems.extend(port.set_mtu(planned.mtu).err());
        }
        problems
    }

    /// Sets the MTUs that a plan asks for at the ports that were found for it: the last that the
    /// machine may refuse. Those of the plan in force come back where it does.
    fn set_mtus(&mut self, found: &mut [Found], plan: &Plan) -> Result<(), Vec<Problem>> {
        for (port, planned) in plan.ports.iter().enumerate() {
            let live = found[port].live(&mut self.ports);
            let Err(problem) = live.set_mtu(planned.mtu) else {
                continue;
            };
            let mut problems = vec![problem];
            for place in found[..=port].iter().filter_map(Found::place) {
                let before = self.plan.ports[place].mtu;
                problems.extend(self.ports[place].set_mtu(before).err());
            }
            return Err(problems);
        }
        Ok(())
    }

    /// The place of a port that is in use already, or a port newly opened: also where a new
    /// interface has the name of one that is gone.
    fn find(&mut self, port: &Port, need: Option<String>) -> Result<Found> {
        let namespace = match &port.namespace {
            Some(name) => Namespace::named(name)?,
            None => self.namespace.try_clone()?,
        };
        for (place, live) in self.ports.iter_mut().enumerate() {
            if !live.is(port, &namespace)? {
                continue;
            }
            if live.look_again(&namespace)? {
                return Ok(Found::InUse(place));
            }
        }
        let port = LivePort::open(port, need, namespace, self.options)?;
        Ok(Found::New(Box::new(port)))
    }
}

#[cfg(test)]
mod tests {
    use validator_core::engine::plan::Obeys;

    use super::*;

    #[test]
    fn a_link_without_a_speed_is_refused_where_one_is_needed_and_told_what_says_one() {
        let port = Port {
            name: "p1".into(),
            interface: "veth1".into(),
            namespace: None,
            line_rate: None,
            mtu: None,
            obeys: Obeys::Nothing,
            captures: Captures::default(),
        };
        let state = LinkState {
            index: 1,
            driver: "veth".into(),
            kind: Some("veth".into()),
            ethernet: true,
            mac: [2; 6],
            mtu: 1500,
            up: true,
            carrier: true,
            // A veth says so whatever it is.
            speed: Some(10_000_000_000),
        };
        let rate = |port: &Port, need| line_rate(port, own_rate(&state), need, &state);
        let need = Some("flow \"f\" sends pauses".to_owned());
        let refusal = rate(&port, need.clone()).unwrap_err().to_string();
        let expected = "veth1 (veth) has no speed that means something, and flow \"f\" sends \
                        pauses: set `layer1.speed` in the configuration, or `line_rate` of the \
                        port in the testbed file";
        assert_eq!(refusal, expected);
        assert_eq!(rate(&port, None).unwrap(), LineRate::FASTEST);
        let one = LineRate::from_bits_per_second(1_000_000_000).unwrap();
        let line_rate = Some(one);
        assert_eq!(rate(&Port { line_rate, ..port }, need).unwrap(), one);
    }
}
