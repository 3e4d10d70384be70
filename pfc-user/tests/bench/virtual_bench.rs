//! The bench in virtual time: the sender, the storm and the wire between the ports and a device.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use pfc_ebpf::pacing::{BurstMeter, SECOND};
use pfc_ebpf::stamp::{Phase, Stamp};
use pfc_ebpf::units::{LineRate, Priority};
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::kernel::link::mac::Alive;
use validator::driver::traffic::Burst;
use validator_core::cases::pfc::settle::{self, Settling};
use validator_core::cases::pfc::stimulate::{self, Bench, Stimulus, Stop};
use validator_core::evidence::mac::MacReport;
use validator_core::evidence::pfc::*;
use validator_core::pacing::Sent;
use validator_core::pacing::history::History;
use validator_core::pacing::pacer::{Paced, Pacer};
use validator_core::pacing::storm::gap_ledger::{GapLedger, Latest};
use validator_core::plan::form::Form;
use validator_core::plan::{
    FlowPlan, Limits, Nanos, PfcFrame, PortName, PortRole, RepetitionPlan, StormPlan,
};
use validator_core::test_frame::{Addresses, FrameTemplate};

use super::accounting::Accounting;
use super::{BEGIN, Device, MS, Process, Setup, Stopped, WINDOWS, limits, mac};

const WINDOW: Nanos = 10 * MS;
const TX: usize = 0;
const RX: usize = 1;
const STORM_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Runs the repetition against that device.
pub(super) fn run_device(
    plan: &RepetitionPlan,
    device: Box<dyn Device>,
    setup: Setup,
    macs: Option<(mac::Driver, &mut Alive)>,
) -> PfcEvidence {
    let trust = setup.trust;
    let limits = &setup.limits.cloned().unwrap_or_else(limits);
    let (driver, alive) = macs.unzip();
    let mut unused = Alive::default();
    let alive = alive.unwrap_or(&mut unused);
    let now = BEGIN;
    let account = || Accounting::new(plan, trust, limits.line_rate, now, WINDOW, STORM_MAC);
    let senders: Vec<Sender> = further(plan, |flow| &flow.from, PortName::TX)
        .into_iter()
        .enumerate()
        .map(|(place, name)| Sender::new(name, place, plan, account(), now))
        .collect();
    let receivers: Vec<Receiver> = further(plan, |flow| &flow.to, PortName::RX)
        .into_iter()
        .enumerate()
        .map(|(place, name)| Receiver {
            name,
            port: if place == 0 {
                RX
            } else {
                senders.len() + place
            },
            account: account(),
        })
        .collect();
    let template = |flow: &FlowPlan| {
        let sender = senders.iter().find(|sender| sender.name == flow.from);
        let receiver = receivers.iter().find(|receiver| receiver.name == flow.to);
        let addresses = addresses(sender.unwrap().port, receiver.unwrap().port);
        FrameTemplate::new(flow, &addresses).unwrap()
    };
    let templates = plan.flows.iter().map(template).collect();
    let mut bench = VirtualBench {
        now,
        plan,
        limits: limits.clone(),
        switch: device,
        templates,
        burst: None,
        sequences: vec![0; plan.flows.len()],
        sent: Vec::new(),
        offered: vec![[0; 8]; WINDOWS],
        receivers,
        senders,
        storm: None,
        stall: setup.stall,
        stopped: setup.stopped,
        waiting: VecDeque::new(),
        woke: 0,
        device_stalls: Vec::new(),
        settled: Vec::new(),
        macs: driver.map(|driver| {
            [
                mac::Mac::new(driver, "tx", alive),
                mac::Mac::new(driver, "rx", &Alive::default()),
            ]
        }),
    };
    bench.introduce();
    let mut done = Stimulus::default();
    stimulate::run(&mut bench, plan, limits, &mut done).unwrap_or_else(|stop| panic!("{stop:?}"));
    // The device ends when it is told to, and not before it has woken; the ports still count.
    if let Some(stop) = Stopped::holds(bench.stopped, Process::Device, bench.now) {
        bench.pass_until(stop.to);
    }
    bench.evidence(done, alive)
}

/// Names of the ports at that end of the flows: the usual one, and those beside it.
fn further(
    plan: &RepetitionPlan,
    end: fn(&FlowPlan) -> &PortName,
    usual: PortName,
) -> Vec<PortName> {
    let mut names: Vec<_> = plan.flows.iter().map(|flow| end(flow).clone()).collect();
    names.retain(|name| *name != usual);
    names.sort();
    names.dedup();
    names.insert(0, usual);
    names
}

/// Address of the tester's port that is cabled to that port of the device.
fn address(port: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, 1 + port as u8]
}

/// Addresses of what it sends to another.
fn addresses(port: usize, to: usize) -> Addresses {
    Addresses {
        source_mac: address(port),
        destination_mac: address(to),
        source_ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        destination_ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
    }
}

/// A receiving port of the tester.
struct Receiver {
    name: PortName,
    /// The port of the device.
    port: usize,
    /// What came in.
    account: Accounting,
}

impl Receiver {
    fn is_goal_of(&self, flow: &FlowPlan) -> bool {
        flow.to == self.name
    }

    /// What came in of the flows that go to it, and how many frames of others.
    fn flows(&self, plan: &RepetitionPlan) -> (Vec<FlowReceived>, u64) {
        let goes = |found: &FlowReceived| self.is_goal_of(&plan.flows[usize::from(found.flow)]);
        let (own, others): (Vec<_>, Vec<_>) = self.account.flows().into_iter().partition(goes);
        (own, others.iter().map(FlowReceived::all).sum())
    }
}

/// A sending port of the tester.
struct Sender {
    name: PortName,
    /// The port of the device.
    port: usize,
    /// Its flows' places in the plan.
    flows: Vec<usize>,
    pacer: Option<Pacer>,
    history: History,
    excess: BurstMeter,
    /// When time last emptied it.
    looked: Nanos,
    /// What came in.
    account: Accounting,
}

impl Sender {
    fn new(
        name: PortName,
        place: usize,
        plan: &RepetitionPlan,
        account: Accounting,
        now: Nanos,
    ) -> Self {
        let of_port = |(_, flow): &(usize, &FlowPlan)| flow.from == name;
        let flows: Vec<_> = plan.flows.iter().enumerate().filter(of_port).collect();
        Self {
            port: if place == 0 { TX } else { RX + place },
            excess: BurstMeter::new(flows.iter().map(|(_, flow)| flow.rate).sum()),
            flows: flows.into_iter().map(|(index, _)| index).collect(),
            name,
            pacer: None,
            history: History::default(),
            looked: now,
            account,
        }
    }

    /// The flow and the phase of each frame that is to leave by `now`.
    fn due(&mut self, now: Nanos, burst: Burst) -> Vec<usize> {
        let Some(pacer) = &mut self.pacer else {
            return Vec::new();
        };
        self.excess.pass(now - self.looked);
        self.looked = now;
        let due = pacer.next_due().filter(|due| *due < burst.to);
        if let Some(due) = due.filter(|due| due + Stall::ABOVE < now) {
            self.history.stall(due, now);
        }
        for (priority, stood) in
            Priority::all().zip(pacer.advance(now.min(burst.to), self.account.pauses()))
        {
            if !stood.is_empty() {
                self.history.withheld(Withheld {
                    port: PortName::TX,
                    priority,
                    phase: burst.phase,
                    from: stood.start,
                    to: stood.end,
                });
            }
        }
        let mut due = Vec::new();
        while let Some(token) = pacer.take() {
            if now >= burst.to {
                break;
            }
            due.push(self.flows[token.flow]);
        }
        due
    }
}

struct RunningStorm {
    next: Nanos,
    due: Nanos,
    left: u64,
    interval: Nanos,
    frame: Vec<u8>,
    ledger: GapLedger,
    latest: Latest,
}

struct VirtualBench<'p> {
    now: Nanos,
    plan: &'p RepetitionPlan,
    limits: Limits,
    switch: Box<dyn Device>,
    templates: Vec<FrameTemplate>,
    senders: Vec<Sender>,
    burst: Option<Burst>,
    sequences: Vec<u64>,
    sent: Vec<FlowSent>,
    offered: Vec<[u32; 8]>,
    /// The rx port, then further ones.
    receivers: Vec<Receiver>,
    storm: Option<RunningStorm>,
    /// The storm's sender stalls after so many frames, for so long.
    stall: Option<(u64, Nanos)>,
    stopped: Option<Stopped>,
    /// Frames for a device that is stopped: when, at which port.
    waiting: VecDeque<(Nanos, usize, Vec<u8>)>,
    /// No frame leaves the device before it last woke.
    woke: Nanos,
    device_stalls: Vec<Stall>,
    settled: Vec<Wait>,
    /// MACs of both ports, if they consume PAUSE/PFC frames.
    macs: Option<[mac::Mac; 2]>,
}

/// A pause frame in the test plan's layout, written here again so that it does not rest on the
/// tester's own codec.
fn octets(control: MacControl) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 1]);
    frame[6..12].copy_from_slice(&STORM_MAC);
    let words = match control {
        MacControl::Pause { quanta } => vec![0x8808, 0x0001, quanta],
        MacControl::Pfc { vector, quanta } => [&[0x8808, 0x0101, vector], &quanta[..]].concat(),
    };
    for (at, word) in words.iter().enumerate() {
        frame[12 + 2 * at..14 + 2 * at].copy_from_slice(&word.to_be_bytes());
    }
    frame
}

impl VirtualBench<'_> {
    fn rx(&self) -> &Accounting {
        &self.receivers[0].account
    }

    /// A frame comes to a port of the device.
    fn ingress(&mut self, port: usize, frame: Vec<u8>) {
        if Stopped::holds(self.stopped, Process::Device, self.now).is_some() {
            self.waiting.push_back((self.now, port, frame));
        } else {
            self.switch.ingress(port, self.now, frame);
        }
    }

    /// The device does what it has to, unless it is stopped. One that wakes learns from its kernel
    /// what came when.
    fn device(&mut self) {
        if Stopped::holds(self.stopped, Process::Device, self.now).is_some() {
            return;
        }
        if let Some(stop) = self
            .stopped
            .take_if(|stop| stop.process == Process::Device && stop.to <= self.now)
        {
            let due = self.switch.next_event().unwrap_or(Nanos::MAX);
            let first = self.waiting.front().map_or(Nanos::MAX, |waiting| waiting.0);
            let from = due.min(first).max(stop.from);
            if from.saturating_add(Stall::ABOVE) < stop.to {
                let to = stop.to;
                self.device_stalls.push(Stall { from, to });
            }
            self.woke = stop.to;
            for (at, port, frame) in std::mem::take(&mut self.waiting) {
                self.switch.ingress(port, at, frame);
            }
        }
        self.switch.advance(self.now);
        self.deliver();
    }

    fn deliver(&mut self) {
        while let Some(departure) = self.switch.pop_departure() {
            if let Some(macs) = &mut self.macs
                && macs[departure.port].keeps(&departure.frame)
            {
                continue;
            }
            let port = departure.port;
            let side = match self.senders.iter_mut().find(|sender| sender.port == port) {
                Some(sender) => &mut sender.account,
                None => {
                    let mut receivers = self.receivers.iter_mut();
                    let receiver = receivers.find(|receiver| receiver.port == port);
                    &mut receiver.unwrap().account
                }
            };
            side.receive(departure.at.max(self.woke), &departure.frame);
        }
    }

    /// Time of the next event, at most `deadline`.
    fn next(&self, deadline: Nanos) -> Nanos {
        let pacers = self
            .senders
            .iter()
            .filter_map(|sender| sender.pacer.as_ref());
        let due = pacers.filter_map(Pacer::next_due).min();
        let due = due.filter(|due| self.burst.is_some_and(|burst| *due < burst.to));
        let storm = self.storm.as_ref().map(|storm| storm.next);
        let stopped = |process| Stopped::holds(self.stopped, process, self.now);
        let tester = stopped(Process::Tester).map_or(0, |stop| stop.to);
        let device = match stopped(Process::Device) {
            Some(stop) => Some(stop.to),
            None => self.switch.next_event(),
        };
        let begin = self
            .stopped
            .map(|stop| stop.from)
            .filter(|from| *from > self.now);
        // When a pause of a sending port expires, flows continue without an event of their own.
        let pauses = self
            .senders
            .iter()
            .flat_map(|sender| sender.account.pauses());
        let expiry = pauses
            .map(|pause| pause.until)
            .filter(|until| *until > self.now)
            .min();
        let of_tester = [due, storm, expiry].into_iter().flatten();
        of_tester
            .map(|time| time.max(tester))
            .chain(device)
            .chain(begin)
            .min()
            .unwrap_or(deadline)
            .clamp(self.now, deadline)
    }

    fn pass_until(&mut self, deadline: Nanos) {
        let stopped = Stopped::holds(self.stopped, Process::Tester, deadline);
        let deadline = stopped.map_or(deadline, |stop| stop.to);
        loop {
            self.now = self.next(deadline);
            self.device();
            if Stopped::holds(self.stopped, Process::Tester, self.now).is_some() {
                continue;
            }
            if self
                .storm
                .as_ref()
                .is_some_and(|storm| storm.next <= self.now)
            {
                self.storm_frame();
            }
            self.traffic();
            if self.now >= deadline {
                return;
            }
        }
    }

    fn storm_frame(&mut self) {
        let now = self.now;
        let storm = self.storm.as_mut().unwrap();
        let departure = Departure {
            before: now,
            after: now,
        };
        storm.ledger.ran(storm.due, now);
        storm.ledger.left(departure, &storm.latest);
        storm.left += 1;
        let stall = self.stall.filter(|(after, _)| *after == storm.left);
        storm.due = now + storm.interval;
        storm.next = storm.due + stall.map_or(0, |(_, stall)| stall);
        let frame = storm.frame.clone();
        self.ingress(RX, frame);
    }

    fn traffic(&mut self) {
        let now = self.now;
        let Some(burst) = self.burst else {
            return;
        };
        for sender in 0..self.senders.len() {
            for flow in self.senders[sender].due(now, burst) {
                self.frame(sender, flow, burst.phase);
            }
        }
    }

    /// Sends a frame of each port before the begin, as the tester does, where a device has to learn
    /// addresses.
    fn introduce(&mut self) {
        if self.senders.len() + self.receivers.len() <= 2 {
            return;
        }
        let begin = self.now;
        self.now -= MS;
        let senders = self.senders.iter().map(|sender| sender.port);
        let receivers = self.receivers.iter().map(|receiver| receiver.port);
        let ports: Vec<usize> = senders
            .chain(receivers)
            .filter(|port| *port != RX)
            .collect();
        for port in ports {
            for (at, to) in [(port, RX), (RX, port)] {
                let mut frame = vec![0; 60];
                frame[..6].copy_from_slice(&address(to));
                frame[6..12].copy_from_slice(&address(at));
                frame[12..14].copy_from_slice(&[0x88, 0xb5]);
                self.ingress(at, frame);
            }
        }
        self.pass_until(begin);
    }

    fn frame(&mut self, sender: usize, index: usize, phase: Phase) {
        let flow: &FlowPlan = &self.plan.flows[index];
        let mut frame = Vec::new();
        self.templates[index].copy_to(&mut frame);
        let stamp = Stamp {
            run: 1,
            flow: flow.id,
            phase,
            sequence: self.sequences[index],
            time: self.now,
        };
        self.templates[index].stamp(&mut frame, &stamp);
        self.sequences[index] += 1;
        let now = self.now;
        let window = (now - self.rx().epoch()) / WINDOW;
        match self
            .sent
            .iter_mut()
            .find(|sent| sent.flow == flow.id && sent.phase == phase)
        {
            Some(sent) => {
                sent.frames += 1;
                sent.last = now;
            }
            None => self.sent.push(FlowSent {
                flow: flow.id,
                phase,
                frames: 1,
                first: now,
                last: now,
            }),
        }
        self.offered[window as usize][flow.priority.index()] += 1;
        let sender = &mut self.senders[sender];
        sender
            .excess
            .add(LineRate::frame_bits(flow.length) * SECOND);
        let port = sender.port;
        self.ingress(port, frame);
    }

    fn evidence(mut self, done: Stimulus, alive: &mut Alive) -> PfcEvidence {
        let seen = self
            .macs
            .is_none()
            .then(|| "every frame is seen".to_owned());
        let now = self.now;
        let macs = self.macs.take().into_iter().flatten();
        // Only the tx port's counters are noted as alive for the case.
        let (name, mut other) = (&self.plan.name, Alive::default());
        let macs = macs
            .zip([alive, &mut other])
            .map(|(mac, alive)| mac.finish(now, name, alive))
            .collect();
        let seen = &seen;
        let facts = |role: PortRole, name: &PortName, counts: PortReceived| Port {
            role,
            interface: name.to_string(),
            driver: "virtual".into(),
            carrier: true,
            disturbed: None,
            speed: None,
            xdp: "virtual".into(),
            pfc_visible: seen.clone(),
            takes_own_pfc: None,
            alive: true,
            counts,
        };
        let ports = self.senders.len() + self.receivers.len();
        let dut = DutReport {
            received: vec![0; ports],
            sent: vec![0; ports],
            model_drops: self
                .switch
                .drops()
                .iter()
                .map(|(reason, count)| (reason.to_string(), *count))
                .collect(),
            xoff_sent: self.switch.xoff_sent(),
            max_lateness: self
                .device_stalls
                .iter()
                .map(Stall::length)
                .max()
                .unwrap_or(0),
            stalls: std::mem::take(&mut self.device_stalls),
            ..DutReport::default()
        };
        let accounting = vec![DropCounter {
            place: "wire".into(),
            counter: "lost".into(),
            rise: 0,
        }];
        let macs: Vec<MacReport> = macs;
        let names = |mac: &MacReport| {
            let names = mac.counters.iter().map(|counter| counter.name.clone());
            (mac.port.clone(), names.collect())
        };
        let mut instruments = Instruments {
            macs: macs.iter().map(names).collect(),
            device: true,
            ..Instruments::default()
        };
        instruments.note(&accounting);
        // Windows without a frame after the end of the last phase say nothing.
        let ended = done.phases.iter().map(|span| span.to).max().unwrap_or(now);
        let epoch = self.rx().epoch();
        let ended = ((ended - epoch) / WINDOW + 1) as usize;
        let mut received = vec![[0; 8]; WINDOWS];
        for receiver in &self.receivers {
            for (sum, window) in received.iter_mut().zip(receiver.account.windows()) {
                for (sum, frames) in sum.iter_mut().zip(window) {
                    *sum += frames;
                }
            }
        }
        let used = |windows: &[[u32; 8]]| windows.iter().rposition(|window| *window != [0; 8]);
        let last = used(&self.offered)
            .max(used(&received))
            .map_or(0, |last| last + 1);
        received.truncate(ended.max(last));
        self.offered.truncate(ended.max(last));
        let of_senders = self.senders.iter().map(|Sender { name, account, .. }| {
            let facts = facts(PortRole::Tx, name, account.port());
            (name.clone(), facts)
        });
        let of_receivers = self.receivers.iter().map(|receiver| {
            let Receiver { name, account, .. } = receiver;
            let counts = PortReceived {
                misdelivered: receiver.flows(self.plan).1,
                ..account.port()
            };
            (name.clone(), facts(PortRole::Rx, name, counts))
        });
        let ports: BTreeMap<_, _> = of_senders.chain(of_receivers).collect();
        let ports = Ports::try_from(ports).unwrap();
        let arrivals = self.receivers.iter().flat_map(|receiver| {
            let of_it = receiver.account.arrivals().into_iter();
            of_it.filter(|one| receiver.is_goal_of(&self.plan.flows[usize::from(one.flow)]))
        });
        let mut arrivals: Vec<Arrival> = arrivals.collect();
        arrivals.sort_by_key(|arrival| arrival.time);
        let offences = self
            .senders
            .iter()
            .map(|sender| (&sender.name, &sender.account));
        let of_receivers = self.receivers.iter();
        let of_receivers = of_receivers.map(|receiver| (&receiver.name, &receiver.account));
        let offences = offences
            .chain(of_receivers)
            .flat_map(|(port, side)| side.offences(port))
            .collect();
        let mut sent = Sent::default();
        for sender in std::mem::take(&mut self.senders) {
            let report = Sent {
                report: SenderReport {
                    method: "virtual".into(),
                    honours_pfc: "virtual".into(),
                    withheld: sender.history.withheld,
                    withheld_left_out: sender.history.withheld_left_out,
                    max_burst: sender
                        .excess
                        .largest(self.limits.line_rate.bits_per_second()),
                    stalls: sender.history.stalls,
                    stalls_left_out: sender.history.stalls_left_out,
                    ..SenderReport::default()
                },
                ..Sent::default()
            };
            sent.add(report.at(&sender.name));
        }
        PfcEvidence {
            counting: Counting::default(),
            plan: self.plan.clone(),
            attempt: 1,
            instruments,
            not_begun: done.not_begun(self.plan),
            limits: self.limits.clone(),
            ports,
            watchdog: Some("off".into()),
            phases: done.phases,
            waits: self.settled,
            sender: SenderReport {
                flows: std::mem::take(&mut self.sent),
                ..sent.report
            },
            received: self
                .receivers
                .iter()
                .flat_map(|receiver| receiver.flows(self.plan).0)
                .collect(),
            windows: Windows {
                epoch,
                width: WINDOW,
                offered: self.offered,
                received,
            },
            storm: done.storm,
            probes: done.probes,
            arrivals: Arrivals {
                records: arrivals,
                lost: 0,
            },
            offences,
            mac: macs,
            accounting,
            dut: Some(dut),
            hooks: Vec::new(),
            interrupted: false,
        }
    }
}

impl Bench for VirtualBench<'_> {
    fn now(&self) -> Nanos {
        self.now
    }

    fn wait_until(&mut self, deadline: Nanos) -> Result<(), Stop> {
        self.pass_until(deadline.max(self.now));
        Ok(())
    }

    fn start_traffic(&mut self, burst: Burst) -> Result<(), Stop> {
        for receiver in &mut self.receivers {
            receiver.account.log(self.plan, burst.load);
        }
        for sender in &mut self.senders {
            let of_port = sender
                .flows
                .iter()
                .map(|flow| self.plan.flows[*flow].clone());
            let flows: Vec<FlowPlan> = of_port.collect();
            let paced = flows.iter().map(|flow| Paced {
                priority: flow.priority,
                rate: flow.rate,
                bits: LineRate::frame_bits(flow.length),
            });
            let mut pacer = Pacer::new(
                &paced.collect::<Vec<_>>(),
                self.limits.line_rate,
                self.limits.largest_burst(&flows),
            )
            .unwrap();
            pacer.start(burst.from, burst.load);
            sender.pacer = Some(pacer);
        }
        self.burst = Some(burst);
        Ok(())
    }

    fn finish_traffic(&mut self) -> Result<(), Stop> {
        self.burst = None;
        self.senders
            .iter_mut()
            .for_each(|sender| sender.pacer = None);
        Ok(())
    }

    fn settle(&mut self, phase: Phase, deadline: Nanos) -> Result<(), Stop> {
        let sent: u64 = self
            .sent
            .iter()
            .filter(|sent| sent.phase == phase)
            .map(|sent| sent.frames)
            .sum();
        let quiet = settle::quiet(self.plan, &self.limits);
        let mut settling = Settling::new(phase, self.now, deadline, sent, quiet);
        loop {
            let arrived = self.receivers.iter().map(|receiver| {
                let goes = |flow: u16| receiver.is_goal_of(&self.plan.flows[usize::from(flow)]);
                receiver.account.received(phase, goes)
            });
            let arrived = arrived.sum();
            if let Some(wait) = settling.look(self.now, arrived) {
                self.settled.push(wait);
                return Ok(());
            }
            self.pass_until((self.now + MS).min(deadline));
        }
    }

    fn start_storm(&mut self, storm: &StormPlan) -> Result<(), Stop> {
        let frame = octets(storm.control());
        self.storm = Some(RunningStorm {
            next: self.now,
            due: self.now,
            left: 0,
            interval: storm.interval,
            frame,
            ledger: GapLedger::new(storm.lapse(self.limits.line_rate)),
            latest: Latest::default(),
        });
        Ok(())
    }

    fn stop_storm(&mut self) -> Result<StormReport, Stop> {
        let storm = self.storm.take().ok_or(Stop::Interrupted)?;
        Ok(GapLedger::end(
            "virtual".into(),
            vec![storm.ledger],
            self.now,
        ))
    }

    fn pause(&mut self, frame: &PfcFrame) -> Result<Departure, Stop> {
        let frame = match frame.form {
            Form::Standard => octets(frame.control()),
            _ => frame.emit(STORM_MAC),
        };
        self.ingress(RX, frame);
        self.deliver();
        Ok(Departure {
            before: self.now,
            after: self.now,
        })
    }

    fn pauses(&mut self) -> Option<Vec<Nanos>> {
        let pauses = self
            .senders
            .iter()
            .flat_map(|sender| sender.account.pauses());
        let ends = pauses.map(|pause| pause.until);
        Some(ends.collect())
    }

    fn arrivals(&mut self) -> Result<&[Arrival], Stop> {
        Ok(self.receivers[0].account.logged())
    }

    fn announce(&mut self, phase: &'static str) {
        for mac in self.macs.iter_mut().flatten() {
            mac.log.read(phase, self.now);
        }
    }
}
