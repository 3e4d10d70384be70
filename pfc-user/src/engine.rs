//! Ports that send and count flows: [`validator_core::engine`] on real interfaces.
//!
//! Each port has the XDP program `flow`, which counts what arrives, a thread that sends data, one
//! that sends pause frames, and one that reads whole frames and talks ARP and ND. What the threads
//! say of themselves is read without waiting for them.

mod check;
mod counted;
mod fast;
mod pause_in;
mod port;
mod presence;
mod published;
mod rates;
mod reader;
mod sender;
mod snapshot;
mod starts;
mod update;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pfc_ebpf::abi::flow::OWN_SOURCES;
use pfc_ebpf::flow_stamp::Form;
use validator_core::engine::neighbour::Host;
use validator_core::engine::packet::Template;
use validator_core::engine::plan::{Flow, FlowIndex, Interface, Length, Plan, PortIndex};
use validator_core::engine::snapshot::{Count, Neighbour, Snapshot, Transmit};
use validator_core::engine::{Captured, Change, Engine, Order, Problem, Warning};

use self::port::LivePort;
use self::published::FlowState;
use self::rates::Samples;
use self::sender::{Command, Died, PortSender, SENDERS, SenderFlow};
use self::starts::Starts;
use crate::config::Sender;
use crate::driver::bpf::XdpMode;
use crate::driver::bpf::flow::{Expected, Place};
use crate::driver::kernel::clock;
use crate::driver::kernel::netns::Namespace;

/// Settings of an engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Mode in which the program is attached.
    pub xdp: XdpMode,
    /// Sender of flows that want more than a thread sends. [`Sender::LiveFrames`] chooses the
    /// kernel also where it does not tell whether a port takes its frames.
    pub sender: Sender,
}

/// An engine on interfaces of this machine. Dropping it puts them back as they were.
pub struct LiveEngine {
    options: Options,
    /// Namespace of ports whose plan names none.
    namespace: Namespace,
    plan: Plan,
    /// In the plan's order.
    ports: Vec<LivePort>,
    flows: Vec<LiveFlow>,
    starts: Starts,
    samples: Samples,
    /// A flow of the plan sends pause frames from an address of zeros.
    nobodys_pauses: bool,
}

/// A flow of the plan.
struct LiveFlow {
    /// Its sender, by its place among those of all ports.
    sender: usize,
    /// Its place among the flows of that sender.
    local: usize,
    /// Stamp values of the starts that count: the present one, last, and those before it that the
    /// flow was resumed from.
    places: Vec<Place>,
    /// Count of what left in the starts before the present one.
    before: Count,
    /// Count of those among them that no port counts.
    before_uncounted: Count,
    state: Arc<FlowState>,
    /// Early ends that a warning was given of.
    too_long_warned: u64,
}

impl LiveFlow {
    /// Count of its frames that left and that no port counts.
    fn uncounted(&self) -> Count {
        self.before_uncounted + self.state.uncounted.read()
    }
}

impl From<Died> for Problem {
    fn from(error: Died) -> Self {
        Self::Machine(error.to_string())
    }
}

/// Returns the error as a problem of the machine.
fn machine(error: impl std::fmt::Display) -> Problem {
    Problem::Machine(format!("{error:#}"))
}

impl LiveEngine {
    /// Returns an engine without ports yet. Ports without a named namespace are those of the
    /// calling thread's.
    ///
    /// # Errors
    ///
    /// The thread's namespace cannot be determined.
    pub fn new(options: Options) -> Result<Self, Problem> {
        Ok(Self {
            options,
            namespace: Namespace::current().map_err(machine)?,
            plan: Plan::default(),
            ports: Vec::new(),
            flows: Vec::new(),
            starts: Starts::new(),
            samples: Samples::default(),
            nobodys_pauses: false,
        })
    }

    /// Makes what the senders need of the flows, and hands it to them. Those before end.
    fn install(&mut self) -> Result<(), Problem> {
        self.starts.forget(&self.ports);
        self.samples = Samples::default();
        let mut by_sender: Vec<Vec<SenderFlow>> = self.senders().map(|_| Vec::new()).collect();
        self.flows.clear();
        for flow in &self.plan.flows {
            let sender = SENDERS * flow.from.0 + sender::place(flow);
            let of_sender = &mut by_sender[sender];
            let state = Arc::new(FlowState::default());
            self.flows.push(LiveFlow {
                sender,
                local: of_sender.len(),
                places: Vec::new(),
                before: Count::default(),
                before_uncounted: Count::default(),
                state: state.clone(),
                too_long_warned: 0,
            });
            of_sender.push(SenderFlow {
                pace: flow.pace(self.ports[flow.from.0].line_rate),
                queue: (!flow.packet.is_pause()).then_some(flow.queue),
                template: Template::new(&flow.packet, &[], flow.metrics.stamp),
                one_length: matches!(flow.length, Length::Fixed(_)),
                state,
            });
        }
        let mut by_sender = by_sender.into_iter();
        let mut installed = Ok(());
        for (port, plan) in self.ports.iter().zip(&self.plan.ports) {
            for (sender, flows) in port.senders.iter().zip(by_sender.by_ref()) {
                let of_sender = sender.order(Command::Install {
                    flows,
                    obeys: plan.obeys,
                    line_rate: port.line_rate,
                });
                // A sender that has died leaves no other with flows that are not counted.
                installed = installed.and(of_sender.map_err(Problem::from));
            }
        }
        installed
    }

    /// Has the ports tell the plan's own pause frames from those of others, by their sources.
    fn know_own(&mut self, sources: &BTreeSet<u64>) -> Result<(), Problem> {
        for port in &mut self.ports {
            port.program.set_own(sources).map_err(machine)?;
        }
        Ok(())
    }

    /// Has the ports answer for the plan's interfaces, and ask for their next hops.
    fn set_interfaces(&self) -> Result<(), Problem> {
        for (place, port) in self.ports.iter().enumerate() {
            let of_port = |interface: &&Interface| interface.port.0 == place;
            let hosts = self.plan.interfaces.iter().filter(of_port).map(Host::new);
            let interfaces = reader::Order::Interfaces(hosts.collect());
            port.reader.order(interfaces).map_err(machine)?;
        }
        Ok(())
    }

    /// The next hops' MAC addresses, by interface of the plan.
    fn macs(&self) -> Vec<Option<[u8; 6]>> {
        let mut by_port: Vec<_> = self
            .ports
            .iter()
            .map(|port| port.reader.macs().into_iter())
            .collect();
        let interfaces = self.plan.interfaces.iter();
        interfaces
            .map(|interface| by_port[interface.port.0].next().flatten())
            .collect()
    }

    /// The senders of all ports, in the ports' order.
    fn senders(&self) -> impl Iterator<Item = &PortSender> {
        self.ports.iter().flat_map(|port| &port.senders)
    }

    /// The flows of each sender, by their places there, that are among these.
    fn by_sender(&self, flows: &[FlowIndex]) -> Vec<Vec<usize>> {
        let mut by_sender: Vec<Vec<usize>> = self.senders().map(|_| Vec::new()).collect();
        for flow in flows {
            let live = &self.flows[flow.0];
            by_sender[live.sender].push(live.local);
        }
        by_sender
    }

    /// Gives each sender its order, and waits until all have carried it out.
    fn order(
        &self,
        flows: &[FlowIndex],
        command: impl Fn(Vec<usize>) -> Command,
    ) -> Result<(), Problem> {
        self.give(self.by_sender(flows), command)
    }

    /// Like `order`, with what each sender needs to know of its flows.
    fn give<F>(
        &self,
        by_sender: Vec<Vec<F>>,
        command: impl Fn(Vec<F>) -> Command,
    ) -> Result<(), Problem> {
        let asked = self.senders().zip(by_sender);
        let asked = asked.filter(|(_, flows)| !flows.is_empty());
        let given: Vec<_> = asked
            .map(|(sender, flows)| sender.give(command(flows)))
            .collect();
        // A sender that has died keeps no other from its order.
        let mut carried_out = Ok(());
        for given in given {
            let done = given.and_then(|done| done.recv().map_err(|_| Died));
            carried_out = carried_out.and(done.map_err(Problem::from));
        }
        carried_out
    }

    /// Refuses flows that the plan does not have.
    fn known(&self, flows: impl IntoIterator<Item = FlowIndex>) -> Result<(), Vec<Problem>> {
        let count = self.plan.flows.len();
        let unknown = flows.into_iter().filter(|flow| flow.0 >= count);
        none(unknown.map(|flow| {
            Problem::Order(format!("there is no flow {}: the plan has {count}", flow.0))
        }))
    }

    /// The port, whose interface is still there.
    fn present(&mut self, port: PortIndex) -> Result<&mut LivePort, Problem> {
        let live = Self::among(&mut self.ports, port)?;
        live.present(&self.plan.ports[port.0].name)?;
        Ok(live)
    }

    fn port(&mut self, port: PortIndex) -> Result<&mut LivePort, Problem> {
        Self::among(&mut self.ports, port)
    }

    fn among(ports: &mut [LivePort], port: PortIndex) -> Result<&mut LivePort, Problem> {
        let count = ports.len();
        ports.get_mut(port.0).ok_or_else(|| {
            Problem::Order(format!("there is no port {}: the plan has {count}", port.0))
        })
    }
}

impl Engine for LiveEngine {
    fn configure(&mut self, plan: Plan) -> Result<Vec<Warning>, Vec<Problem>> {
        let wrong = check::plan(&plan);
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let ports = self.take_ports(&plan)?;
        // The ports are the new plan's from here on.
        let before = std::mem::replace(&mut self.plan, plan);
        let (own, mut warnings) = own_sources(&self.plan);
        if let Err((step, problem)) = self.put_in_force(&own, &before) {
            self.plan = before;
            let mut problems = vec![problem];
            problems.extend(self.put_back(ports));
            problems.extend(self.go_back(step));
            return Err(problems);
        }
        // Ports that are no longer in use are let go of.
        drop(ports);
        self.nobodys_pauses = own.contains(&0);
        for port in &mut self.ports {
            // Another plan may come from another client, which has had no warning yet.
            (port.slow_warned, port.forgotten_warned) = (false, false);
            if let Err(problem) = port.count_anew() {
                warnings.push(Warning(format!("{}: {problem}", port.interface)));
            }
        }
        warnings.extend(self.links_up());
        warnings.extend(self.too_long_to_arrive());
        warnings.extend(self.kept_pauses());
        warnings.extend(self.undecided_pauses());
        warnings.extend(self.other_speeds());
        warnings.extend(self.beyond_line(&self.plan.flows));
        warnings.extend(self.fasten());
        Ok(warnings)
    }

    fn transmit(&mut self, flows: &[FlowIndex], order: Order) -> Result<(), Vec<Problem>> {
        self.known(flows.iter().copied())?;
        if matches!(order, Order::Start | Order::Resume) {
            self.all_present(flows)?;
        }
        let carried_out = match order {
            Order::Start => {
                let hops = self.next_hops(flows)?;
                self.start(flows, &hops, false)
            }
            Order::Stop => self.order(flows, Command::Stop),
            Order::Pause => self.order(flows, Command::Pause),
            Order::Resume => return self.resume(flows),
        };
        carried_out.map_err(|problem| vec![problem])
    }

    fn update(&mut self, changes: &[(FlowIndex, Change)]) -> Result<Vec<Warning>, Vec<Problem>> {
        self.known(changes.iter().map(|(flow, _)| *flow))?;
        self.change(changes)
    }

    fn link(&mut self, port: PortIndex, up: bool) -> Result<(), Problem> {
        self.present(port)?.set_link(up)
    }

    fn capture(&mut self, ports: &[PortIndex], on: bool) -> Result<(), Problem> {
        for port in ports {
            let captures = self.plan.ports.get(port.0);
            let captures = captures.map(|port| port.captures.clone());
            let live = if on {
                self.present(*port)
            } else {
                self.port(*port)
            };
            live?.capture(on, captures.unwrap_or_default())?;
        }
        Ok(())
    }

    fn captured(&mut self, port: PortIndex) -> Result<Option<Captured>, Problem> {
        self.port(port)?.captured()
    }

    fn neighbours(&mut self) -> Vec<Neighbour> {
        let macs = self.macs();
        let interfaces = self.plan.interfaces.iter().zip(macs).enumerate();
        interfaces
            .map(|(interface, (planned, mac))| Neighbour {
                interface,
                address: planned.gateway,
                mac,
            })
            .collect()
    }

    fn snapshot(&mut self) -> Result<Snapshot, Problem> {
        self.take_snapshot()
    }

    fn sample(&mut self) {
        if self.samples.moves(clock::now()) || self.is_sending() {
            // A client that asks for a snapshot gets the error.
            let _ = self.take_snapshot();
        }
    }

    fn notices(&mut self) -> Vec<Warning> {
        let mut notices = Vec::new();
        for (live, planned) in self.ports.iter_mut().zip(&self.plan.ports) {
            notices.extend(live.falls_behind(&planned.name));
            notices.extend(live.stalled(&planned.name));
        }
        for (live, planned) in self.flows.iter_mut().zip(&self.plan.flows) {
            let ends = live.state.too_long.load(Ordering::Relaxed);
            if std::mem::replace(&mut live.too_long_warned, ends) != ends {
                let interface = &self.ports[planned.from.0].interface;
                notices.push(Warning(format!(
                    "flow \"{}\" ended early: {interface} no longer takes its frames; its MTU was \
                     lowered while the flow was sent",
                    planned.name
                )));
            }
        }
        notices
    }
}

/// Steps that put a plan in force once its ports are taken, in this order.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Step {
    Sources,
    Interfaces,
    Flows,
}

impl LiveEngine {
    /// Puts the plan in force on its ports. Steps that the machine may refuse come before the flows
    /// of the former plan end. The error says how far it went.
    fn put_in_force(&mut self, own: &BTreeSet<u64>, before: &Plan) -> Result<(), (Step, Problem)> {
        let at = |step| move |problem| (step, problem);
        // Sources of the former plan's flows, which are still sent, stay as far as there is room.
        let mut both = own.clone();
        let old = own_sources(before).0;
        let room = (OWN_SOURCES as usize).saturating_sub(own.len());
        both.extend(old.difference(own).take(room));
        self.know_own(&both).map_err(at(Step::Sources))?;
        self.set_interfaces().map_err(at(Step::Interfaces))?;
        // A sender that has died says so before the others take the flows.
        for sender in self.senders() {
            let alive = sender.order(Command::Stop(Vec::new()));
            alive.map_err(|died| (Step::Interfaces, died.into()))?;
        }
        self.install().map_err(at(Step::Flows))?;
        self.know_own(own).map_err(at(Step::Flows))
    }

    /// Puts the plan before in force again, from that step back. Its flows go on where they were
    /// not reached.
    fn go_back(&mut self, from: Step) -> Vec<Problem> {
        let mut problems = Vec::new();
        if from >= Step::Flows {
            problems.extend(self.install().err());
        }
        if from >= Step::Interfaces {
            problems.extend(self.set_interfaces().err());
        }
        let (own, _) = own_sources(&self.plan);
        problems.extend(self.know_own(&own).err());
        problems
    }

    /// The MAC addresses of the next hops that these flows go to, by interface of the plan; the
    /// flows whose next hop has not answered are refused by name.
    fn next_hops(&self, flows: &[FlowIndex]) -> Result<Vec<Option<[u8; 6]>>, Vec<Problem>> {
        let macs = self.macs();
        let silent = flows.iter().filter_map(|flow| {
            let flow = &self.plan.flows[flow.0];
            let hop = flow.next_hops.iter().find(|hop| macs[**hop].is_none())?;
            Some(unresolved(flow, &self.plan.interfaces[*hop]))
        });
        none(silent)?;
        Ok(macs)
    }

    /// Goes on with flows that are paused, and starts those that have ended or never began, whose
    /// counts go on.
    fn resume(&mut self, flows: &[FlowIndex]) -> Result<(), Vec<Problem>> {
        let is_ended = |flow: &&FlowIndex| self.flows[flow.0].state.transmit() == Transmit::Stopped;
        let ended: Vec<FlowIndex> = flows.iter().filter(is_ended).copied().collect();
        let hops = self.next_hops(&ended)?;
        if !self.starts.has_room(ended.len() + self.plan.flows.len()) {
            return Err(vec![Problem::Order(
                "flows were resumed too often after their ends to count on: start them anew".into(),
            )]);
        }
        // Resuming leaves alone a flow that has just ended.
        let resumed = self.order(flows, Command::Resume);
        let resumed = resumed.and_then(|()| self.start(&ended, &hops, true));
        resumed.map_err(|problem| vec![problem])
    }

    fn is_sending(&self) -> bool {
        let mut flows = self.flows.iter();
        flows.any(|flow| flow.state.transmit() == Transmit::Started)
    }

    /// Starts flows from their first frame on, with counts of their own, or with those that they
    /// have `kept`.
    fn start(
        &mut self,
        flows: &[FlowIndex],
        hops: &[Option<[u8; 6]>],
        kept: bool,
    ) -> Result<(), Problem> {
        if flows.is_empty() {
            return Ok(());
        }
        // The kernel may be able to send by now. The warning was given when the flows were
        // configured or changed.
        drop(self.fasten());
        // Running flows end first: what they send later would count nowhere.
        self.order(flows, Command::Stop)?;
        // Rates are counted from here, also where no snapshot was taken before.
        let before = self.take_snapshot()?;
        if !kept {
            self.count_ports_anew(flows, &before)?;
            self.samples.begin(flows);
        }
        let at = clock::now();
        let mut by_sender: Vec<Vec<_>> = self.senders().map(|_| Vec::new()).collect();
        for flow in flows {
            let planned = &self.plan.flows[flow.0];
            let live = &mut self.flows[flow.0];
            if kept {
                live.before += live.state.sent.read();
                live.before_uncounted = live.uncounted();
            } else {
                self.starts.give_back(&self.ports, &live.places);
                live.places.clear();
                (live.before, live.before_uncounted) = Default::default();
            }
            let expected = Expected {
                verify: planned.metrics.stamp.is_some() && planned.packet.is_right_udp(),
                wraps: planned.packet.wraps(),
                short: planned.metrics.stamp == Some(Form::Short),
            };
            let place = self.starts.place(&self.ports, expected);
            live.places.push(place);
            let hops = planned.next_hops.iter().filter_map(|hop| hops[*hop]);
            let hops: Vec<[u8; 6]> = hops.collect();
            let template = (!hops.is_empty())
                .then(|| Box::new(Template::new(&planned.packet, &hops, planned.metrics.stamp)));
            by_sender[live.sender].push((live.local, place, template));
        }
        self.give(by_sender, |flows| Command::Start { flows, at })
    }

    /// The counts of ports begin anew with these flows; where other flows have counts at a port,
    /// only those of these flows are taken off.
    fn count_ports_anew(&mut self, flows: &[FlowIndex], before: &Snapshot) -> Result<(), Problem> {
        let counts_on = self.counting_on(flows, before);
        for (place, counts_on) in counts_on.into_iter().enumerate() {
            if !counts_on {
                self.ports[place].count_anew()?;
                continue;
            }
            for flow in flows {
                let (live, planned) = (&self.flows[flow.0], &self.plan.flows[flow.0]);
                if planned.metrics.stamp.is_none() {
                    continue;
                }
                let sent = if planned.from.0 == place {
                    before.flows[flow.0].sent.since(live.uncounted())
                } else {
                    Count::default()
                };
                self.ports[place].take_off(sent, &live.places);
            }
        }
        Ok(())
    }

    /// The ports that count on with a start of these flows, for others have counts there.
    ///
    /// What a flow without a stamp had sent is known, and what of it had arrived is not. So that its
    /// ports go on to agree, both count on where one has to.
    fn counting_on(&self, flows: &[FlowIndex], before: &Snapshot) -> Vec<bool> {
        let ends = |flow: &Flow| -> Vec<usize> {
            let all = [flow.from].into_iter().chain(flow.to.iter().copied());
            all.map(|port| port.0).collect()
        };
        let mut counts_on = vec![false; self.ports.len()];
        let planned = self.plan.flows.iter().zip(&before.flows).enumerate();
        for (index, (flow, counts)) in planned {
            let has = counts.sent.frames + counts.received.frames > 0;
            if !flows.contains(&FlowIndex(index)) && (has || counts.transmit != Transmit::Stopped) {
                ends(flow)
                    .into_iter()
                    .for_each(|port| counts_on[port] = true);
            }
        }
        let started = flows.iter().map(|flow| &self.plan.flows[flow.0]);
        let unstamped: Vec<_> = started
            .filter(|flow| flow.metrics.stamp.is_none())
            .map(ends)
            .collect();
        // A port that is added may be another such flow's.
        for _ in 0..self.ports.len() {
            for ends in &unstamped {
                if ends.iter().any(|port| counts_on[*port]) {
                    ends.iter().for_each(|port| counts_on[*port] = true);
                }
            }
        }
        counts_on
    }
}

/// The source addresses of a plan's own pause frames, as far as there is room for them.
fn own_sources(plan: &Plan) -> (BTreeSet<u64>, Vec<Warning>) {
    let mut sources = BTreeSet::new();
    let mut warnings = Vec::new();
    for flow in &plan.flows {
        let all = flow
            .packet
            .add_control_sources(&mut sources, OWN_SOURCES as usize);
        if !all {
            warnings.push(Warning(format!(
                "flow \"{}\": its frames have more source addresses than the {OWN_SOURCES} that \
                 are known as this tester's own: the others count as a device's",
                flow.name
            )));
        }
    }
    (sources, warnings)
}

/// A flow is to start, and its next hop is not known.
fn unresolved(flow: &Flow, interface: &Interface) -> Problem {
    let gateway = interface.gateway;
    let protocol = if gateway.is_ipv4() { "ARP" } else { "ND" };
    Problem::Order(format!(
        "flow \"{}\" has no destination MAC address yet: {gateway} has not answered the {protocol} \
         requests of \"{}\"; start it once the states of neighbours have its address, or set the \
         flow's own destination",
        flow.name, interface.name
    ))
}

/// All of these problems, or none.
fn none(problems: impl Iterator<Item = Problem>) -> Result<(), Vec<Problem>> {
    let found: Vec<Problem> = problems.collect();
    if found.is_empty() { Ok(()) } else { Err(found) }
}
