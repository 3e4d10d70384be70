//! A repetition on real frames: the bench of drivers, and the evidence that it collects.

use std::time::Duration;

use anyhow::{Context, Result};
use pfc_ebpf::maps::{self, Trust};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Priority};

mod bench;
mod macs;

use bench::LiveBench;
use macs::Macs;

use super::stimulate::{self, Stimulus, Stop};
use crate::case::Event;
use crate::config::{self, Destination};
use crate::driver::clock;
use crate::driver::control::ControlSender;
use crate::driver::interrupt::Interrupt;
use crate::driver::testbed::{Counters, Steady, Testbed, WINDOW};
use crate::driver::traffic::choice::{self, Chosen};
use crate::driver::traffic::{Addresses, FlowControl, NOT_TAKEN, Sent, Source, TrafficPlan};
use crate::driver::{process, realtime};
use crate::evidence::mac::MacReport;
use crate::evidence::pfc::{
    Arrivals, Counting, DropCounter, DutReport, HookOutput, Offence, PfcEvidence, PortFacts,
    PortReceived, Ports, Windows,
};
use crate::plan::{Durations, FlowPlan, Nanos, RepetitionPlan};

/// How often the counters are looked at while waiting for the last frames.
const SETTLE_POLL: Nanos = 2_000_000;
/// The sender's thread ends a burst within this of its time.
const SENDER_END: Nanos = 1_000_000_000;
/// Longest wait for a DUT to let frames through, and the time from one try to the next.
const PATH_WAIT: Nanos = 3_000_000_000;
const PATH_RETRY: Nanos = 100_000_000;
/// The simulated DUT prints its report within this.
const DUT_END: Duration = Duration::from_secs(5);

/// Everything that a repetition needs beside its plan.
pub struct Live<'l> {
    /// The testbed's file.
    pub config: &'l config::PfcTestbed,
    /// The testbed brought up.
    pub testbed: &'l mut Testbed,
    /// The user's wish to stop.
    pub interrupt: &'l mut Interrupt,
    /// Where events go.
    pub events: &'l mut dyn FnMut(Event),
    /// Number of the repetition in this run: tells its frames from earlier ones.
    pub run: u16,
}

/// Runs one repetition; the evidence says if it was interrupted.
pub fn run(live: &mut Live, plan: &RepetitionPlan) -> Result<PfcEvidence> {
    let hooks = configure_dut(live, plan)?;
    let mut before = Before::begin(live, plan, hooks)?;
    let driven = drive(live, plan, &mut before)?;
    let after = before.finish(live, plan, &driven)?;
    evidence(live, plan, driven, after)
}

/// Runs the hook `configure`, where there is one; its output.
fn configure_dut(live: &mut Live, plan: &RepetitionPlan) -> Result<Vec<HookOutput>> {
    let Some(command) = &live.config.hooks.configure else {
        return Ok(Vec::new());
    };
    let output = hook(live.config, "configure", "before", command, plan)?;
    anyhow::ensure!(
        output.status == 0,
        "the hook `configure` failed for {}: {}",
        plan.name,
        output.stderr.trim()
    );
    live.testbed.wait_for_carrier()?;
    Ok(vec![output])
}

/// The state of DUT and ports before the traffic, to be compared with that after it.
struct Before {
    device: Option<process::Child>,
    hooks: Vec<HookOutput>,
    counters: Counters,
    macs: Macs,
    ports: [PortFacts; 2],
    links: [Steady; 2],
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
        counters_hook(live.config, "before", plan, &mut hooks)?;
        let (tx, rx) = (&live.testbed.tx, &live.testbed.rx);
        Ok(Self {
            device,
            hooks,
            counters: live.testbed.counters()?,
            macs: Macs::begin(live.testbed)?,
            ports: [tx.facts()?, rx.facts()?],
            links: [Steady::of(tx)?, Steady::of(rx)?],
        })
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
        counters_hook(live.config, "after", plan, &mut self.hooks)?;
        let [mut tx, mut rx] = self.ports;
        let now = [&live.testbed.tx, &live.testbed.rx];
        for ((facts, link), port) in [&mut tx, &mut rx].into_iter().zip(self.links).zip(now) {
            facts.carrier &= port.facts()?.carrier;
            facts.disturbed = link.disturbed(Steady::of(port)?);
        }
        Ok(After {
            accounting: losses(self.counters.rises(&counters), &tx, &driven.sent.lost),
            ports: Ports {
                tx,
                rx,
                watchdog: watchdog(live),
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
    interrupted: bool,
    sent: Sent,
    done: Stimulus,
}

/// Prepares the ports, and sends traffic and storm.
fn drive(live: &mut Live, plan: &RepetitionPlan, before: &mut Before) -> Result<Driven> {
    let limits = live.testbed.limits.clone();
    let storm_source = live.testbed.rx.state.mac;
    configure(live, plan, clock::now(), storm_source)?;
    introduce(live)?;
    let epoch = clock::now();
    configure(live, plan, epoch, storm_source)?;
    let sender = open_sender(live, plan, epoch)?;
    let control = open_control(live.testbed)?;
    if live.testbed.tx.pfc_visible.is_none() {
        // What came before is not to be counted as this repetition's.
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
        macs: &mut before.macs,
    };
    let mut done = Stimulus::default();
    let outcome = stimulate::run(
        &mut bench,
        plan,
        limits.pause_time(plan.storm.quanta),
        limits.max_response,
        &mut done,
    );
    let interrupted = match outcome {
        Ok(()) => false,
        Err(Stop::Interrupted) => true,
        Err(Stop::Failed(error)) => {
            drop(bench);
            return Err(explained(live.testbed, before.links, error));
        }
    };
    bench.sender.stop()?;
    let mut sent = bench.sender.report()?;
    sent.report.waits += bench.waits;
    done.storm = done.storm.or(bench.cut_short.take());
    Ok(Driven {
        epoch,
        interrupted,
        sent,
        done,
    })
}

/// Puts the evidence together, with what the ports' programs counted.
fn evidence(
    live: &mut Live,
    plan: &RepetitionPlan,
    driven: Driven,
    after: After,
) -> Result<PfcEvidence> {
    let (tx_port, _, mut offences) = read_port(live.testbed, Side::Tx)?;
    let (rx_port, arrivals, of_rx) = read_port(live.testbed, Side::Rx)?;
    offences.extend(of_rx);
    let Driven {
        epoch,
        interrupted,
        sent,
        done,
    } = driven;
    let mut sender = sent.report;
    if after.ports.tx.pfc_visible.is_none() && tx_port.pfc_frames == 0 {
        sender
            .honours_pfc
            .push_str("; it was not shown that PFC reaches it");
    }
    let account = &mut live.testbed.rx.account;
    Ok(PfcEvidence {
        plan: plan.clone(),
        counting: counting(account.configured(), plan),
        received: account.flows()?,
        windows: Windows {
            epoch,
            width: WINDOW,
            offered: sent.offered,
            received: account.windows()?,
        },
        limits: live.testbed.limits.clone(),
        ports: after.ports,
        phases: done.phases,
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
        interrupted,
    })
}

/// An error with what became of a port meanwhile: a sender tells only what the kernel said to its frames.
fn explained(testbed: &Testbed, steady: [Steady; 2], error: anyhow::Error) -> anyhow::Error {
    let disturbed =
        [&testbed.tx, &testbed.rx]
            .into_iter()
            .zip(steady)
            .find_map(|(port, before)| {
                let (facts, now) = (port.facts().ok()?, Steady::of(port).ok()?);
                let what = if facts.carrier {
                    before.disturbed(now)?
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

/// How long all phases of a repetition take at the longest, nanoseconds.
pub fn longest(durations: &Durations, pause_time: Nanos) -> Nanos {
    let d = durations;
    d.baseline
        + d.lead
        + d.traffic
        + d.tail
        + d.resume
        + 10 * pause_time
        + 4 * d.drain_max
        + 1_000_000_000
}

/// Frames a second above which the programs read the clock once for several frames and verify the checksum of some. Exact
/// accounting of a frame of 1024 octets costs about 130 ns beside the driver's own 80 ns (BENCHMARKS.md): that core is full at
/// some 4 million, and must not be.
const EXACT_FRAMES: u64 = 3_000_000;
/// The share of frames that is verified then.
const SAMPLE: u64 = 16;

/// How frames of flows are counted that bring so many a second: clock, and one in how many is verified.
pub fn effort(flows: &[FlowPlan]) -> (maps::Clock, u64) {
    let frames: u64 = flows
        .iter()
        .map(|flow| flow.rate / LineRate::frame_bits(flow.length))
        .sum();
    if frames > EXACT_FRAMES {
        (maps::Clock::Batched, SAMPLE)
    } else {
        (maps::Clock::Exact, 1)
    }
}

fn counting(config: &maps::Config, plan: &RepetitionPlan) -> Counting {
    let (clock, verify_every) = effort(&plan.flows);
    Counting {
        clock,
        verify_every,
        exclusive: config.exclusive != 0,
    }
}

fn configure(
    live: &mut Live,
    plan: &RepetitionPlan,
    epoch: Nanos,
    storm_source: [u8; 6],
) -> Result<()> {
    let limits = &live.testbed.limits;
    let (clock, verify_every) = effort(&plan.flows);
    let config = maps::Config {
        abi: 0,
        flows: 0,
        epoch,
        window: WINDOW,
        windows: live.testbed.windows,
        run: live.run,
        trust: live.config.trust as u8,
        clock: clock as u8,
        line_rate: limits.line_rate.bits_per_second(),
        quantum: 0,
        storm_source,
        exclusive: 1,
        _pad: 0,
        verify_every,
        dscp_to_priority: live.config.dscp_map.map(Priority::get),
    };
    let probed = |priority: Priority| {
        plan.probe
            .as_ref()
            .is_some_and(|probe| probe.priorities.contains(&priority))
    };
    // Latency round a probe is told by one flow that the probe does not pause.
    let witness = plan
        .flows
        .iter()
        .find(|flow| !probed(flow.priority))
        .map(|flow| flow.id);
    let flows: Vec<_> = plan
        .flows
        .iter()
        .map(|flow| {
            let mut log_phases = 0;
            if plan.is_stormed(flow.priority) && plan.is_lossless(flow.priority) {
                log_phases |= Phase::Storm.bit();
            }
            if probed(flow.priority) || witness == Some(flow.id) {
                log_phases |= Phase::Probe.bit();
            }
            let mark = if live.config.trust == Trust::Pcp {
                flow.priority.get()
            } else {
                flow.dscp.get()
            };
            maps::FlowConfig {
                mark,
                log_phases,
                priority: flow.priority.get(),
                _pad: 0,
            }
        })
        .collect();
    for port in [&mut live.testbed.tx, &mut live.testbed.rx] {
        port.account.configure(&config, &flows)?;
    }
    Ok(())
}

/// Makes both ports known to the DUT, and waits until it lets their frames through: a port that was configured may take a
/// while. A DUT that never does will show in the baseline.
fn introduce(live: &mut Live) -> Result<()> {
    let end = clock::now() + PATH_WAIT;
    while !matches!(live.config.addresses.destination, Destination::Gateway(_))
        && clock::now() < end
    {
        live.testbed.introduce()?;
        let next = clock::now() + PATH_RETRY;
        while clock::now() < next {
            if live.testbed.rx.account.port()?.other > 0
                && live.testbed.tx.account.port()?.other > 0
            {
                return Ok(());
            }
            if live.interrupt.wait_until(clock::now() + SETTLE_POLL) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn addresses(config: &config::PfcTestbed, testbed: &Testbed) -> Addresses {
    let wanted = &config.addresses;
    Addresses {
        source_mac: wanted.source_mac.unwrap_or(testbed.tx.state.mac),
        destination_mac: match wanted.destination {
            Destination::RxPort => testbed.rx.state.mac,
            Destination::Mac(mac) | Destination::Gateway(mac) => mac,
        },
        source_ip: wanted.source_ip,
        destination_ip: wanted.destination_ip,
    }
}

fn open_sender(live: &mut Live, plan: &RepetitionPlan, epoch: Nanos) -> Result<Chosen> {
    let testbed = &mut *live.testbed;
    let traffic = TrafficPlan {
        interface: &testbed.tx.interface,
        run: live.run,
        flows: &plan.flows,
        addresses: addresses(live.config, testbed),
        line_rate: testbed.limits.line_rate,
        max_burst: testbed.limits.max_burst,
        epoch,
        width: WINDOW,
        windows: testbed.windows as usize,
        cpu: realtime::first_cpu(),
    };
    let flow_control = FlowControl::Software(Box::new(testbed.tx.account.pause_view()));
    let (namespace, account) = (&testbed.tx.namespace, &mut testbed.tx.account);
    Ok(namespace.run(|| {
        choice::open(&traffic, live.config.sender, flow_control, || {
            account.generator()
        })
    })??)
}

/// The counters of lost frames, with those that the sender knows of. What a veth counted in its `tx_dropped` as well is told once,
/// or it would excuse two; of other drivers it is not known that they count the same.
fn losses(
    mut counters: Vec<DropCounter>,
    tx: &PortFacts,
    lost: &[(&str, u64)],
) -> Vec<DropCounter> {
    let place = format!("tx port {}", tx.interface);
    let is_same = |counter: &&DropCounter| {
        tx.driver == "veth" && counter.place == place && counter.counter == "tx_dropped"
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

/// Socket and address of the storm, and of single pause frames.
fn open_control(testbed: &Testbed) -> Result<ControlSender> {
    let rx = &testbed.rx;
    Ok(rx
        .namespace
        .run(|| ControlSender::open(&rx.interface, rx.state.mac))??)
}

fn watchdog(live: &Live) -> Option<String> {
    live.config
        .watchdog
        .clone()
        .or_else(|| live.testbed.is_own_device().then(|| "off".into()))
}

fn hook(
    config: &config::PfcTestbed,
    hook: &str,
    when: &str,
    command: &str,
    plan: &RepetitionPlan,
) -> Result<HookOutput> {
    let lossless = plan
        .lossless
        .iter()
        .map(Priority::to_string)
        .collect::<Vec<_>>()
        .join(",");
    process::run_hook(
        hook,
        when,
        command,
        &[("VALIDATOR_LOSSLESS", &lossless)],
        Duration::from_nanos(config.hooks.timeout),
    )
    .with_context(|| format!("the hook `{hook}` could not be run"))
}

fn counters_hook(
    config: &config::PfcTestbed,
    when: &str,
    plan: &RepetitionPlan,
    hooks: &mut Vec<HookOutput>,
) -> Result<()> {
    if let Some(command) = &config.hooks.counters {
        hooks.push(hook(config, "counters", when, command, plan)?);
    }
    Ok(())
}

fn dut_report(child: process::Child) -> Result<DutReport> {
    let output = child
        .finish(DUT_END)
        .context("the simulated DUT did not end as it should")?;
    anyhow::ensure!(
        output.status.success(),
        "the simulated DUT ended ({}) before the repetition did; its messages are above",
        output.status
    );
    let line = output.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(line)
        .with_context(|| format!("the simulated DUT's report cannot be read: {line:?}"))
}

enum Side {
    Tx,
    Rx,
}

fn read_port(testbed: &mut Testbed, side: Side) -> Result<(PortReceived, Arrivals, Vec<Offence>)> {
    let (name, port) = match side {
        Side::Tx => ("tx", &mut testbed.tx),
        Side::Rx => ("rx", &mut testbed.rx),
    };
    let rings = port.account.take_rings()?;
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
            octets: offence
                .octets
                .iter()
                .map(|octet| format!("{octet:02x}"))
                .collect(),
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
