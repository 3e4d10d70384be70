//! A repetition on real frames: the bench of drivers, and the evidence that it collects.

use std::time::Duration;

use anyhow::{Context, Result};
use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account as maps;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Priority, Quanta};
use pfc_ebpf::wire::mac_control::MacControl;

use super::macs::Macs;
use super::stimulate::{self, Bench, Stimulus, Stop};
use crate::case::Event;
use crate::config::{self, Destination};
use crate::driver::bpf::PauseView;
use crate::driver::bringup::testbed::{LinkSnapshot as Steady, Testbed, WINDOW};
use crate::driver::kernel::clock;
use crate::driver::kernel::interrupt::Interrupt;
use crate::driver::kernel::{process, realtime};
use crate::driver::storm::{ControlSender, Storm};
use crate::driver::traffic::choice::{self, Chosen};
use crate::driver::traffic::{
    Addresses, Burst, FlowControl, NOT_TAKEN, PauseSource, Source, TrafficPlan,
};
use crate::evidence::pfc::{
    Arrivals, Counting, Departure, DropCounter, DutReport, HookOutput, Offence, PfcEvidence,
    PortFacts, PortReceived, Ports, StormReport, Windows,
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

/// Runs one repetition; the evidence says whether it was interrupted.
pub fn run(live: &mut Live, plan: &RepetitionPlan) -> Result<PfcEvidence> {
    let limits = live.testbed.limits.clone();
    let mut hooks = Vec::new();
    if let Some(command) = &live.config.hooks.configure {
        let output = hook(live.config, "configure", "before", command, plan)?;
        let failed = output.status != 0;
        let said = output.stderr.trim().to_owned();
        hooks.push(output);
        anyhow::ensure!(
            !failed,
            "the hook `configure` failed for {}: {said}",
            plan.name
        );
        live.testbed.wait_for_carrier()?;
    }
    let mut device = live.testbed.start_device(live.config, &plan.lossless)?;
    counters_hook(live.config, "before", plan, &mut hooks)?;
    let before = live.testbed.counters()?;
    let mut macs = Macs::begin(live.testbed)?;
    let facts = (live.testbed.tx.facts()?, live.testbed.rx.facts()?);
    let steady = [Steady::of(&live.testbed.tx)?, Steady::of(&live.testbed.rx)?];
    let storm_source = live.testbed.rx.state.mac;
    configure(live, plan, clock::now(), storm_source)?;
    introduce(live)?;
    let epoch = clock::now();
    configure(live, plan, epoch, storm_source)?;
    let sender = open_sender(live, plan, epoch)?;
    let control = open_control(live.testbed)?;
    if live.testbed.tx.pfc_visible.is_none() {
        // What came before is not to be counted as this repetition's.
        live.interrupt.wait_until(clock::now() + macs.lag());
    }
    let mut bench = LiveBench {
        live,
        plan,
        sender,
        control,
        waits: 0,
        storm: None,
        cut_short: None,
        macs: &mut macs,
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
            return Err(explained(live.testbed, steady, error));
        }
    };
    bench.sender.stop()?;
    let mut sent = bench.sender.report()?;
    sent.report.waits += bench.waits;
    done.storm = done.storm.or(bench.cut_short.take());
    drop(bench);
    if !interrupted && live.testbed.tx.account.port()?.pfc_frames == 0 {
        live.interrupt.wait_until(clock::now() + macs.lag());
    }
    macs.read("end");
    let mac = macs.finish(&plan.name, live.testbed);
    let dut = match device.take() {
        Some(child) => Some(dut_report(child)?),
        None => None,
    };
    let after = live.testbed.counters()?;
    counters_hook(live.config, "after", plan, &mut hooks)?;
    let mut ports = Ports {
        tx: facts.0,
        rx: facts.1,
        watchdog: watchdog(live),
    };
    ports.tx.carrier &= live.testbed.tx.facts()?.carrier;
    ports.rx.carrier &= live.testbed.rx.facts()?.carrier;
    ports.tx.disturbed = steady[0].disturbed(Steady::of(&live.testbed.tx)?);
    ports.rx.disturbed = steady[1].disturbed(Steady::of(&live.testbed.rx)?);
    let (tx_port, _, mut offences) = read_port(live.testbed, Side::Tx)?;
    let accounting = losses(before.rises(&after), &ports.tx, &sent.lost);
    let mut sender = sent.report;
    if ports.tx.pfc_visible.is_none() && tx_port.pfc_frames == 0 {
        sender.honours_pfc = format!(
            "{}; it was not shown that PFC reaches it",
            sender.honours_pfc
        );
    }
    let (rx_port, arrivals, more) = read_port(live.testbed, Side::Rx)?;
    offences.extend(more);
    Ok(PfcEvidence {
        plan: plan.clone(),
        limits,
        ports,
        phases: done.phases,
        sender,
        counting: counting(live.testbed.rx.account.configured(), plan),
        received: live.testbed.rx.account.flows()?,
        windows: Windows {
            epoch,
            width: WINDOW,
            offered: sent.offered,
            received: live.testbed.rx.account.windows()?,
        },
        storm: done.storm,
        probes: done.probes,
        arrivals,
        tx_port,
        rx_port,
        offences,
        mac,
        accounting,
        dut,
        hooks,
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

impl PauseSource for PauseView {
    fn state(&self, class: usize) -> maps::PauseState {
        PauseView::state(self, class)
    }
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

struct LiveBench<'b, 'l> {
    live: &'b mut Live<'l>,
    plan: &'b RepetitionPlan,
    sender: Chosen,
    control: ControlSender,
    /// How often there was no room for a single pause frame.
    waits: u64,
    storm: Option<Storm>,
    /// Account of a storm that the user ended.
    cut_short: Option<StormReport>,
    /// Read as each phase begins.
    macs: &'b mut Macs,
}

impl LiveBench<'_, '_> {
    /// Storm and traffic stop at once.
    fn interrupted(&mut self) -> Stop {
        // What ended the traffic before the user did no longer matters.
        let _ = self.sender.stop();
        self.cut_short = self.storm.take().map(Storm::stop);
        Stop::Interrupted
    }
}

impl Bench for LiveBench<'_, '_> {
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn wait_until(&mut self, deadline: Nanos) -> Result<(), Stop> {
        if self.live.interrupt.wait_until(deadline) {
            Err(self.interrupted())
        } else {
            Ok(())
        }
    }

    fn start_traffic(&mut self, burst: Burst) -> Result<(), Stop> {
        self.sender
            .start(burst)
            .map_err(|error| Stop::Failed(error.into()))
    }

    fn finish_traffic(&mut self) -> Result<(), Stop> {
        match self.sender.wait(clock::now() + SENDER_END) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Stop::Failed(anyhow::anyhow!(
                "the sender did not come to the end of its traffic"
            ))),
            Err(error) => Err(Stop::Failed(error.into())),
        }
    }

    fn settle(&mut self, phase: Phase, deadline: Nanos) -> Result<(), Stop> {
        let report = self
            .sender
            .report()
            .map_err(|error| Stop::Failed(error.into()))?
            .report;
        let sent: u64 = report
            .flows
            .iter()
            .filter(|sent| sent.phase == phase)
            .map(|sent| sent.frames)
            .sum();
        loop {
            if self
                .live
                .testbed
                .rx
                .account
                .received(phase)
                .map_err(|error| Stop::Failed(error.into()))?
                >= sent
            {
                return Ok(());
            }
            let now = clock::now();
            if now >= deadline {
                return Ok(());
            }
            self.wait_until(deadline.min(now + SETTLE_POLL))?;
        }
    }

    fn start_storm(&mut self) -> Result<(), Stop> {
        let control = open_control(self.live.testbed)?;
        self.storm = Some(
            Storm::start(
                control,
                &self.plan.storm,
                self.live.testbed.limits.line_rate,
            )
            .map_err(|error| Stop::Failed(error.into()))?,
        );
        Ok(())
    }

    fn stop_storm(&mut self) -> Result<StormReport, Stop> {
        match self.storm.take() {
            Some(storm) => Ok(storm.stop()),
            None => Err(Stop::Interrupted),
        }
    }

    fn pause(&mut self, priorities: &[Priority], quanta: Quanta) -> Result<Departure, Stop> {
        let frame = MacControl::pfc(priorities.iter().copied(), quanta);
        let (departure, waits) = self
            .control
            .send_with_room(&frame)
            .map_err(|error| Stop::Failed(error.into()))?;
        self.waits += waits;
        Ok(departure)
    }

    fn announce(&mut self, phase: &'static str) {
        (self.live.events)(Event::PhaseBegins { phase });
        self.macs.read(phase);
    }
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
