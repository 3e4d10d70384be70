//! A repetition on real frames: the bench of drivers, and the evidence that it collects.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};

mod bench;
pub mod hooks;
mod macs;
mod prepare;
mod senders;

use bench::LiveBench;
use hooks::{Hooks, NotConfigured};
use macs::Macs;
use pfc_ebpf::units::Priority;
use prepare::{configure, counting, introduce, open_control};
use senders::{Lost, Senders, losses};
use validator_core::cases::pfc::stimulate::{self, Stimulus, Stop};
use validator_core::evidence::mac::MacReport;
use validator_core::evidence::pfc::{
    Arrivals, DropCounter, DutReport, FlowReceived, HookOutput, Instruments, Offence, PfcEvidence,
    Port, PortReceived, Ports, Wait, Windows,
};
use validator_core::evidence::{CaseEvidence, Repetition};
pub use validator_core::plan::effort;
use validator_core::plan::{Durations, FlowPlan, Nanos, PortName, PortRole, RepetitionPlan};
use validator_core::quantity::hex;
use validator_core::verdict::Event;

use crate::config;
use crate::driver::bpf::Rings;
use crate::driver::bringup::testbed::{Counters, LinkWatch, Testbed, TesterPort, WINDOW};
use crate::driver::kernel::clock;
use crate::driver::kernel::interrupt::Interrupt;
use crate::driver::kernel::packet;
use crate::driver::kernel::process;
use crate::driver::kernel::realtime::Awake;
use crate::driver::traffic::Sent;

/// Interval between readings of the counters while the last frames are awaited.
const SETTLE_POLL: Nanos = 2_000_000;
/// The sender's thread ends a burst within this of its time.
const SENDER_END: Nanos = 1_000_000_000;
/// Longest wait for a DUT to let frames through, and the time from one try to the next.
const PATH_WAIT: Nanos = 3_000_000_000;
const PATH_RETRY: Nanos = 100_000_000;
/// Readings of a port's counts until they have come to rest.
const READINGS: usize = 8;
/// The simulated DUT prints its report within this.
const DUT_END: Duration = Duration::from_secs(5);

/// Everything that a repetition needs beside its plan.
pub struct Live<'l> {
    /// The testbed's file.
    pub config: &'l config::PfcTestbed,
    /// Id of the case.
    pub case: &'static str,
    /// The user's hooks.
    pub hooks: &'l Hooks<'l>,
    /// The testbed brought up.
    pub testbed: &'l mut Testbed,
    /// The user's wish to stop.
    pub interrupt: &'l mut Interrupt,
    /// Receiver of events.
    pub events: &'l mut dyn FnMut(Event),
    /// Number of the attempt at a repetition in this run: tells its frames from earlier ones.
    pub run: u16,
    /// Number of the attempt at this repetition, from 1.
    pub attempt: u32,
}

/// Runs one repetition; the evidence says if it was interrupted.
pub fn run(live: &mut Live, plan: &RepetitionPlan) -> Result<PfcEvidence> {
    let hooks = configure_dut(live, plan)?;
    let mut before = Before::begin(live, plan, hooks)?;
    let waited = live.testbed.neighbour_waits();
    let driven = drive(live, plan, &mut before)?;
    let waits = live.testbed.neighbour_waits() - waited;
    if waits > 0 {
        let note = packet::waited("a port", "an answer to a neighbour", waits);
        (live.events)(Event::Note(note));
    }
    let after = before.finish(live, plan, &driven)?;
    evidence(live, plan, driven, after)
}

/// Runs the hook `configure`, where there is one; its output.
///
/// # Errors
/// [`NotConfigured`] where it failed.
fn configure_dut(live: &mut Live, plan: &RepetitionPlan) -> Result<Vec<HookOutput>> {
    let Some(output) = live.hooks.configure(live.case, plan)? else {
        return Ok(Vec::new());
    };
    if let Some(failure) = output.failure() {
        return Err(NotConfigured(failure).into());
    }
    live.testbed.wait_for_carrier()?;
    // The hook's settings may let pause frames through, or cable the ports together.
    live.testbed.self_test_again()?;
    Ok(vec![output])
}

/// Runs the hook `counters`, where there is one.
fn counters_hook(
    live: &mut Live,
    phase: &'static str,
    plan: &RepetitionPlan,
    hooks: &mut Vec<HookOutput>,
) -> Result<()> {
    let Some(output) = live.hooks.counters(phase, live.case, plan)? else {
        return Ok(());
    };
    if let Some(failure) = output.failure() {
        (live.events)(Event::Note(format!("  {}, {phase}: {failure}", plan.name)));
    }
    hooks.push(output);
    Ok(())
}

/// The state of DUT and ports before the traffic, to be compared with that after it.
struct Before {
    device: Option<process::Child>,
    hooks: Vec<HookOutput>,
    counters: Counters,
    macs: Macs,
    /// Of tx, rx, and the further ports, as all that follows.
    ports: Vec<Port>,
    links: Vec<LinkWatch>,
}

/// The state of DUT and ports after the traffic, and what it was in between.
struct After {
    ports: Vec<Port>,
    hooks: Vec<HookOutput>,
    mac: Vec<MacReport>,
    dut: Option<DutReport>,
    accounting: Vec<DropCounter>,
}

impl Before {
    /// Starts the simulated DUT, where there is one, and reads everything.
    fn begin(live: &mut Live, plan: &RepetitionPlan, mut hooks: Vec<HookOutput>) -> Result<Self> {
        let device = live.testbed.start_device(live.config, &plan.lossless)?;
        counters_hook(live, "before", plan, &mut hooks)?;
        let longest = plan.flows.iter().map(FlowPlan::packet_length).max();
        let longest = longest.unwrap_or(0);
        Ok(Self {
            device,
            hooks,
            counters: live.testbed.counters()?,
            macs: Macs::begin(live.testbed)?,
            ports: facts(live.testbed)?,
            links: live
                .testbed
                .ports()
                .map(|port| LinkWatch::begin(port, longest))
                .collect::<Result<_>>()?,
        })
    }

    /// The readings that are to be taken; the senders know of those losses.
    fn instruments(&self, testbed: &Testbed, lost: &[Lost]) -> Instruments {
        let none = losses(self.counters.rises(&self.counters), testbed, lost);
        Instruments {
            counters: none
                .into_iter()
                .map(|counter| (counter.place, counter.counter))
                .collect(),
            macs: self.macs.instruments(),
            device: self.device.is_some(),
        }
    }

    /// Ends the simulated DUT, and reads everything again.
    fn finish(mut self, live: &mut Live, plan: &RepetitionPlan, driven: &Driven) -> Result<After> {
        let mut was_silent = false;
        for port in live.testbed.senders() {
            was_silent |= port.account.port()?.pfc_frames == 0;
        }
        if !driven.interrupted && was_silent {
            live.interrupt.wait_until(clock::now() + self.macs.lag());
        }
        self.macs.read("end");
        let mac = self.macs.finish(&plan.name, live.testbed);
        let dut = self.device.take().map(dut_report).transpose()?;
        let counters = live.testbed.counters()?;
        counters_hook(live, "after", plan, &mut self.hooks)?;
        let now = live.testbed.ports();
        for ((facts, link), port) in self.ports.iter_mut().zip(&self.links).zip(now) {
            let now = port.facts()?;
            facts.carrier &= now.carrier;
            facts.alive = now.alive;
            facts.disturbed = link.disturbed(port)?;
        }
        Ok(After {
            accounting: losses(self.counters.rises(&counters), live.testbed, &driven.lost),
            ports: self.ports,
            hooks: self.hooks,
            mac,
            dut,
        })
    }
}

/// The traffic and the storm as they were.
struct Driven {
    epoch: Nanos,
    instruments: Instruments,
    interrupted: bool,
    sent: Sent,
    lost: Vec<Lost>,
    done: Stimulus,
    waits: Vec<Wait>,
    /// Records of the rx port that were taken meanwhile.
    rings: Rings,
}

/// Prepares the ports, and sends traffic and storm.
fn drive(live: &mut Live, plan: &RepetitionPlan, before: &mut Before) -> Result<Driven> {
    let limits = live.testbed.limits.clone();
    // A virtual CPU that halts runs again when the host lets it: milliseconds later, and often.
    let _awake = Awake::hold();
    configure(live, plan, clock::now())?;
    introduce(live)?;
    for port in live.testbed.ports_mut() {
        port.alive |= port.account.port()?.frames > 0;
    }
    let epoch = clock::now();
    configure(live, plan, epoch)?;
    let mut senders = Senders::open(live, plan, epoch)?;
    let instruments = before.instruments(live.testbed, &senders.report()?.1);
    let control = open_control(live.testbed)?;
    let is_unseen = |port: &TesterPort| port.pfc_visible.is_none();
    if live.testbed.senders().any(is_unseen) {
        // Frames that came before are not to be counted as this repetition's.
        live.interrupt.wait_until(clock::now() + before.macs.lag());
    }
    let mut bench = LiveBench {
        live,
        plan,
        senders,
        control,
        waits: 0,
        storm: None,
        cut_short: None,
        settled: Vec::new(),
        rings: Rings::default(),
        macs: &mut before.macs,
    };
    let mut done = Stimulus::default();
    let outcome = stimulate::run(&mut bench, plan, &limits, &mut done);
    let interrupted = match outcome {
        Ok(()) => false,
        Err(Stop::Interrupted) => true,
        Err(Stop::Failed(error)) => {
            drop(bench);
            return Err(explained(live.testbed, &before.links, error));
        }
    };
    bench.senders.stop()?;
    let rings = std::mem::take(&mut bench.rings);
    let (mut sent, lost) = bench.senders.report()?;
    sent.report.waits += bench.waits;
    done.storm = done.storm.or(bench.cut_short.take());
    let waits = bench.settled;
    Ok(Driven {
        epoch,
        instruments,
        interrupted,
        sent,
        lost,
        done,
        waits,
        rings,
    })
}

/// Puts the evidence together, with what the ports' programs counted.
fn evidence(
    live: &mut Live,
    plan: &RepetitionPlan,
    driven: Driven,
    after: After,
) -> Result<PfcEvidence> {
    stop_counting(live.testbed)?;
    let (mut instruments, done) = (driven.instruments, driven.done);
    instruments.note(&after.accounting);
    let mut sender = driven.sent.report;
    let (mut arrivals, mut offences) = (Arrivals::default(), Vec::new());
    let (mut rings, mut shown) = (driven.rings, true);
    let (mut received, mut windows) = (Vec::new(), Vec::new());
    let mut ports = BTreeMap::new();
    for (port, facts) in live.testbed.ports_mut().zip(after.ports) {
        let taken = if port.name == PortName::RX {
            std::mem::take(&mut rings)
        } else {
            Rings::default()
        };
        let (mut counts, logged, offending) = read_port(port, taken)?;
        offences.extend(offending);
        match port.role {
            PortRole::Tx => {
                port.note_pfc(&counts, &plan.name);
                port.alive |= counts.frames > 0;
                shown &= facts.pfc_visible.is_some() || counts.pfc_frames > 0;
            }
            PortRole::Rx => {
                let goes = |flow: u16| {
                    let mut planned = plan.flows.iter();
                    planned.any(|planned| planned.id == flow && planned.to == port.name)
                };
                let (own, others): (Vec<_>, Vec<_>) = port
                    .account
                    .flows()?
                    .into_iter()
                    .partition(|found| goes(found.flow));
                counts.misdelivered = others.iter().map(FlowReceived::all).sum();
                received.extend(own);
                let records = logged.records.into_iter();
                arrivals
                    .records
                    .extend(records.filter(|one| goes(one.flow)));
                arrivals.lost += logged.lost;
                add(&mut windows, port.account.windows()?);
            }
        }
        ports.insert(port.name.clone(), Port { counts, ..facts });
    }
    if !shown {
        sender
            .honours_pfc
            .push_str("; it was not shown that PFC reaches it");
    }
    let ports = Ports::try_from(ports).map_err(anyhow::Error::msg)?;
    arrivals.records.sort_by_key(|record| record.time);
    Ok(PfcEvidence {
        plan: plan.clone(),
        attempt: live.attempt,
        counting: counting(live.testbed, plan),
        received,
        windows: Windows {
            epoch: driven.epoch,
            width: WINDOW,
            offered: driven.sent.offered,
            received: windows,
        },
        limits: live.testbed.limits.clone(),
        ports,
        watchdog: live.hooks.watchdog.clone(),
        instruments,
        not_begun: done.not_begun(plan),
        phases: done.phases,
        waits: driven.waits,
        sender,
        storm: done.storm,
        probes: done.probes,
        arrivals,
        offences,
        mac: after.mac,
        accounting: after.accounting,
        dut: after.dut,
        hooks: after.hooks,
        interrupted: driven.interrupted,
    })
}

/// Adds the frames that another port counted, window by window.
fn add(all: &mut Vec<[u32; Priority::COUNT]>, of_port: Vec<[u32; Priority::COUNT]>) {
    all.resize(all.len().max(of_port.len()), [0; Priority::COUNT]);
    for (sum, window) in all.iter_mut().zip(of_port) {
        for (sum, frames) in sum.iter_mut().zip(window) {
            *sum += frames;
        }
    }
}

/// Returns the error with what became of a port meanwhile: a sender reports only what the kernel
/// said to its frames.
fn explained(testbed: &Testbed, links: &[LinkWatch], error: anyhow::Error) -> anyhow::Error {
    let disturbed = testbed.ports().zip(links).find_map(|(port, before)| {
        let facts = match port.facts() {
            Ok(facts) => facts,
            // A port that is gone. A send may be the first to find that.
            Err(gone) => return Some(format!("{gone:#}")),
        };
        let what = if facts.carrier {
            before.disturbed(port).ok()??
        } else {
            "has no carrier any more".into()
        };
        Some(format!("{} {what}", facts.interface))
    });
    match disturbed {
        Some(disturbed) => error.context(disturbed),
        None => error,
    }
}

/// PAUSE/PFC frames of the DUT that were seen in one repetition show for all of the run that they
/// reach the program of the port where they came in.
pub fn carry_over(testbed: &Testbed, cases: &mut [CaseEvidence]) {
    for repetition in cases.iter_mut().flat_map(|case| &mut case.repetitions) {
        if let Repetition::Pfc(measured) = repetition {
            let ports = &mut measured.ports;
            let all = [&mut ports.tx].into_iter().chain(ports.more.values_mut());
            let sending = all.filter(|port| port.role == PortRole::Tx);
            for (port, now) in sending.zip(testbed.senders()) {
                port.alive |= now.alive;
                port.pfc_visible = port.pfc_visible.take().or(now.pfc_seen.clone());
            }
        }
    }
}

/// Longest duration of all phases of a repetition, nanoseconds.
pub fn longest(durations: &Durations, pause_time: Nanos) -> Nanos {
    let d = durations;
    d.baseline
        + d.lead
        + d.traffic
        + d.tail
        + d.resume
        // The probes that come before the storm.
        + 24 * pause_time
        + 4 * d.drain_max
        + 3_000_000_000
}

/// Facts about each port.
fn facts(testbed: &Testbed) -> Result<Vec<Port>> {
    testbed.ports().map(TesterPort::facts).collect()
}

fn dut_report(child: process::Child) -> Result<DutReport> {
    // A clean end counts as well: from then on nothing was forwarded.
    let early = child.has_ended()?;
    let output = child
        .finish(DUT_END)
        .context("the simulated DUT did not end as it should")?;
    anyhow::ensure!(
        output.status.success() && !early,
        "the simulated DUT ended ({}) before the repetition did; its messages are above",
        output.status
    );
    let line = output.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(line)
        .with_context(|| format!("the simulated DUT's report cannot be read: {line:?}"))
}

/// Ends the counting at all ports: a frame that a DUT lets go now would be in one count and not in
/// another.
fn stop_counting(testbed: &mut Testbed) -> Result<()> {
    for port in testbed.ports_mut() {
        port.account.stop()?;
        // A program that was at work on a frame comes to its end meanwhile.
        let mut before = port.account.port()?;
        for _ in 0..READINGS {
            let now = port.account.port()?;
            if now == before {
                break;
            }
            before = now;
        }
    }
    Ok(())
}

/// The counts and records of a port; `rings` has those that were taken before.
fn read_port(
    port: &mut TesterPort,
    mut rings: Rings,
) -> Result<(PortReceived, Arrivals, Vec<Offence>)> {
    rings.append(port.account.take_rings()?);
    let mut received = port.account.port()?;
    received.controls = rings.controls;
    let offences = rings
        .offences
        .into_iter()
        .map(|offence| Offence {
            port: port.name.clone(),
            time: offence.time,
            kind: offence.kind,
            length: offence.length,
            octets: hex(&offence.octets),
        })
        .collect();
    Ok((
        received,
        Arrivals {
            records: rings.arrivals,
            lost: rings.arrivals_lost,
        },
        offences,
    ))
}
