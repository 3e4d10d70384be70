//! A repetition on real frames: the bench of drivers, and the evidence that it collects.

use std::time::Duration;

use anyhow::{Context, Result};

mod bench;
pub mod hooks;
mod macs;
mod prepare;

use bench::LiveBench;
use hooks::{Hooks, NotConfigured};
use macs::Macs;
use prepare::{configure, counting, introduce, open_control, open_sender};
use validator_core::cases::pfc::stimulate::{self, Stimulus, Stop};
use validator_core::evidence::mac::MacReport;
use validator_core::evidence::pfc::{
    Arrivals, DropCounter, DutReport, HookOutput, Instruments, Offence, PfcEvidence, PortFacts,
    PortReceived, Ports, Wait, Windows,
};
use validator_core::evidence::{CaseEvidence, Repetition};
use validator_core::nic;
pub use validator_core::plan::effort;
use validator_core::plan::{Durations, FlowPlan, Nanos, RepetitionPlan};
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
use crate::driver::traffic::{NOT_TAKEN, Sent};

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
    ports: [PortFacts; 2],
    links: [LinkWatch; 2],
}

/// The state of DUT and ports after the traffic, and what it was in between.
struct After {
    ports: Ports,
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
        let (tx, rx) = (&live.testbed.tx, &live.testbed.rx);
        let longest = plan.flows.iter().map(FlowPlan::packet_length).max();
        let longest = longest.unwrap_or(0);
        Ok(Self {
            device,
            hooks,
            counters: live.testbed.counters()?,
            macs: Macs::begin(live.testbed)?,
            ports: [tx.facts()?, rx.facts()?],
            links: [
                LinkWatch::begin(tx, longest)?,
                LinkWatch::begin(rx, longest)?,
            ],
        })
    }

    /// The readings that are to be taken; the sender knows of those losses.
    fn instruments(&self, lost: &[(&str, u64)]) -> Instruments {
        let none = losses(self.counters.rises(&self.counters), &self.ports[0], lost);
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
        let was_silent = live.testbed.tx.account.port()?.pfc_frames == 0;
        if !driven.interrupted && was_silent {
            live.interrupt.wait_until(clock::now() + self.macs.lag());
        }
        self.macs.read("end");
        let mac = self.macs.finish(&plan.name, live.testbed);
        let dut = self.device.take().map(dut_report).transpose()?;
        let counters = live.testbed.counters()?;
        counters_hook(live, "after", plan, &mut self.hooks)?;
        let [mut tx, mut rx] = self.ports;
        let now = [&live.testbed.tx, &live.testbed.rx];
        for ((facts, link), port) in [&mut tx, &mut rx].into_iter().zip(&self.links).zip(now) {
            let now = port.facts()?;
            facts.carrier &= now.carrier;
            facts.alive = now.alive;
            facts.disturbed = link.disturbed(port)?;
        }
        Ok(After {
            accounting: losses(self.counters.rises(&counters), &tx, &driven.sent.lost),
            ports: Ports {
                tx,
                rx,
                watchdog: live.hooks.watchdog.clone(),
            },
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
    for port in [&mut live.testbed.tx, &mut live.testbed.rx] {
        port.alive |= port.account.port()?.frames > 0;
    }
    let epoch = clock::now();
    configure(live, plan, epoch)?;
    let mut sender = open_sender(live, plan, epoch)?;
    let instruments = before.instruments(&sender.report()?.lost);
    let control = open_control(live.testbed)?;
    if live.testbed.tx.pfc_visible.is_none() {
        // Frames that came before are not to be counted as this repetition's.
        live.interrupt.wait_until(clock::now() + before.macs.lag());
    }
    let mut bench = LiveBench {
        live,
        plan,
        sender,
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
    bench.sender.stop()?;
    let rings = std::mem::take(&mut bench.rings);
    let mut sent = bench.sender.report()?;
    sent.report.waits += bench.waits;
    done.storm = done.storm.or(bench.cut_short.take());
    let waits = bench.settled;
    Ok(Driven {
        epoch,
        instruments,
        interrupted,
        sent,
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
    let (tx_port, _, mut offences) = read_port("tx", &mut live.testbed.tx, Rings::default())?;
    let (rx_port, arrivals, of_rx) = read_port("rx", &mut live.testbed.rx, driven.rings)?;
    offences.extend(of_rx);
    live.testbed.note_pfc(&tx_port, &plan.name);
    live.testbed.tx.alive |= tx_port.frames > 0;
    let (mut instruments, done) = (driven.instruments, driven.done);
    instruments.note(&after.accounting);
    let mut sender = driven.sent.report;
    if after.ports.tx.pfc_visible.is_none() && tx_port.pfc_frames == 0 {
        sender
            .honours_pfc
            .push_str("; it was not shown that PFC reaches it");
    }
    let account = &mut live.testbed.rx.account;
    Ok(PfcEvidence {
        plan: plan.clone(),
        attempt: live.attempt,
        counting: counting(account.configured(), plan),
        received: account.flows()?,
        windows: Windows {
            epoch: driven.epoch,
            width: WINDOW,
            offered: driven.sent.offered,
            received: account.windows()?,
        },
        limits: live.testbed.limits.clone(),
        ports: after.ports,
        instruments,
        not_begun: done.not_begun(plan),
        phases: done.phases,
        waits: driven.waits,
        sender,
        storm: done.storm,
        probes: done.probes,
        arrivals,
        tx_port,
        rx_port,
        offences,
        mac: after.mac,
        accounting: after.accounting,
        dut: after.dut,
        hooks: after.hooks,
        interrupted: driven.interrupted,
    })
}

/// Returns the error with what became of a port meanwhile: a sender reports only what the kernel
/// said to its frames.
fn explained(testbed: &Testbed, links: &[LinkWatch; 2], error: anyhow::Error) -> anyhow::Error {
    let disturbed = [&testbed.tx, &testbed.rx]
        .into_iter()
        .zip(links)
        .find_map(|(port, before)| {
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
/// reach the tx port's program.
pub fn carry_over(testbed: &Testbed, cases: &mut [CaseEvidence]) {
    for repetition in cases.iter_mut().flat_map(|case| &mut case.repetitions) {
        if let Repetition::Pfc(measured) = repetition {
            let tx = &mut measured.ports.tx;
            tx.alive |= testbed.tx.alive;
            tx.pfc_visible = tx.pfc_visible.take().or(testbed.tx.pfc_seen.clone());
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

/// The counters of lost frames, with those that the sender knows of. What a veth counted in its
/// `tx_dropped` as well is told once, or it would excuse two; of other drivers it is not known that
/// they count the same.
fn losses(
    mut counters: Vec<DropCounter>,
    tx: &PortFacts,
    lost: &[(&str, u64)],
) -> Vec<DropCounter> {
    let place = format!("tx port {}", tx.interface);
    let is_same = |counter: &&DropCounter| {
        nic::of(&tx.driver).counts_untaken
            && counter.place == place
            && counter.counter == "tx_dropped"
    };
    let counted = counters
        .iter()
        .find(is_same)
        .map_or(0, |counter| counter.rise);
    counters.extend(lost.iter().map(|&(what, count)| {
        let rise = if what == NOT_TAKEN {
            count.saturating_sub(counted)
        } else {
            count
        };
        DropCounter {
            place: "sender".into(),
            counter: what.into(),
            rise,
        }
    }));
    counters
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

/// Ends the counting at both ports: a frame that a DUT lets go now would be in one count and not in
/// another.
fn stop_counting(testbed: &mut Testbed) -> Result<()> {
    for port in [&mut testbed.tx, &mut testbed.rx] {
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
    name: &str,
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
            port: name.into(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_the_driver_counted_as_well_is_told_once() {
        let counter = |place: &str, counter: &str, rise| DropCounter {
            place: place.into(),
            counter: counter.into(),
            rise,
        };
        let lost = [(NOT_TAKEN, 10), ("refused", 2)];
        let own = |driver: &str, tx_dropped| {
            let counters = vec![
                counter("tx port a", "tx_dropped", tx_dropped),
                counter("rx port b", "tx_dropped", 99),
            ];
            let tx = PortFacts {
                interface: "a".into(),
                driver: driver.into(),
                ..PortFacts::default()
            };
            let counters = losses(counters, &tx, &lost);
            [counters[2].rise, counters[3].rise]
        };
        assert_eq!(
            [0, 7, 10, 50].map(|dropped| own("veth", dropped)),
            [[10, 2], [3, 2], [0, 2], [0, 2]]
        );
        assert_eq!(
            own("other", 7),
            [10, 2],
            "that the driver counted the same is not known"
        );
    }
}
