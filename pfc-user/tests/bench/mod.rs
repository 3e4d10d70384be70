//! The PFC cases in virtual time: the real steps, pacing and switch model, joined by a wire without
//! delay, and with a simple accounting in place of the kernel program's. No sleeps and no noise:
//! the evidence is the same each time.

pub mod accounting;
pub mod mac;
mod virtual_bench;

use std::collections::{BTreeMap, BTreeSet};

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Dscp, LineRate, Priority, Quanta};
use validator::driver::kernel::link::mac::Alive;
use validator::dut::switch::config::{Priorities, Scheduler, SwitchConfig};
use validator::dut::switch::model::{Departure as Left, Switch};
use validator_core::cases::pfc::parameters::shortest_frame;
use validator_core::cases::pfc::planning::RepetitionRequest;
use validator_core::cases::pfc::port::PortContext;
use validator_core::cases::pfc::{CASES, PfcCase};
use validator_core::evidence::pfc::PfcEvidence;
use validator_core::fault::switch::Fault;
use validator_core::plan::{Durations, Limits, Nanos, PortName, RepetitionPlan};

use virtual_bench::run_device;

const MS: Nanos = 1_000_000;
/// Windows for the probes of 10 Mbit/s, of which each waits for pauses of 3.4 s.
const WINDOWS: usize = 10_000;
/// Begin of a repetition.
pub const BEGIN: Nanos = 1_000 * MS;

/// Short, but long enough for the windows of 100 ms and the pauses of 33.5 ms at 1 Gbit/s.
pub const DURATIONS: Durations = Durations {
    baseline: 150 * MS,
    lead: 20 * MS,
    traffic: 400 * MS,
    tail: 50 * MS,
    resume: 50 * MS,
    drain_max: 500 * MS,
};

pub fn priorities(list: &[u8]) -> Vec<Priority> {
    list.iter()
        .map(|number| Priority::new(*number).unwrap())
        .collect()
}

pub fn case(id: &str) -> &'static PfcCase {
    CASES.iter().find(|case| case.case.id == id).unwrap()
}

pub fn port() -> PortContext {
    PortContext {
        line_rate: LineRate::from_bits_per_second(1_000_000_000).unwrap(),
        max_response: MS,
        max_residence: 1000 * MS,
        load: 1.0,
        trust: Trust::Dscp,
        dscp_map: dscp_map(|dscp| dscp),
        vlan: false,
        senders: vec![PortName::new("tx2".into())],
        receivers: vec![PortName::new("rx2".into())],
        shortest: shortest(Trust::Dscp, false),
        zero_source: true,
        fixed_lossless: None,
    }
}

/// Length of the shortest test frame of IPv4, in octets without FCS.
pub fn shortest(trust: Trust, vlan: bool) -> usize {
    shortest_frame(true, vlan || trust == Trust::Pcp).0
}

/// The map of which that function gives the low three bits.
pub fn dscp_map(map: fn(u8) -> u8) -> [Priority; Dscp::COUNT] {
    std::array::from_fn(|dscp| Priority::from_low_bits(map(dscp as u8)))
}

/// Plans a repetition of a case with these lossless priorities; `storm`, if given, selects the
/// stormed ones.
pub fn plan(id: &str, lossless: &[u8], storm: Option<&[u8]>) -> RepetitionPlan {
    plan_in_turn(id, lossless, storm, 0)
}

/// The same as one of several repetitions.
pub fn plan_in_turn(
    id: &str,
    lossless: &[u8],
    storm: Option<&[u8]>,
    turn: usize,
) -> RepetitionPlan {
    planned(&port(), id, lossless, storm, turn)
}

/// The same at other ports.
pub fn plan_at(
    port: &PortContext,
    id: &str,
    lossless: &[u8],
    storm: Option<&[u8]>,
) -> RepetitionPlan {
    planned(port, id, lossless, storm, 0)
}

fn planned(
    port: &PortContext,
    id: &str,
    lossless: &[u8],
    storm: Option<&[u8]>,
    turn: usize,
) -> RepetitionPlan {
    let (lossless, storm) = (priorities(lossless), storm.map(priorities));
    let request = RepetitionRequest {
        lossless: &lossless,
        storm: storm.as_deref(),
        turn,
        durations: durations_of(id),
        frame: frame_of(id),
        quanta: Quanta::MAX,
        interval: 11 * MS,
    };
    (case(id).plan)(port, &request).unwrap()
}

/// Length of the frames of that case: a hundred probes at full load, and eight repetitions, have
/// many.
pub fn frame_of(id: &str) -> usize {
    match id {
        "pfc.response-time" | "pfc.class-map" => 3400,
        _ => 1024,
    }
}

/// Times of that case; those with a flow for each code point, or for each size, have many frames.
pub fn durations_of(id: &str) -> Durations {
    match id {
        "pfc.class-map" | "pfc.sizes" => Durations {
            baseline: 100 * MS,
            traffic: 150 * MS,
            ..DURATIONS
        },
        _ => DURATIONS,
    }
}

/// Limits of a port of 1 Gbit/s.
pub fn limits() -> Limits {
    Limits {
        line_rate: port().line_rate,
        max_response: MS,
        headroom: 1 << 20,
        xoff: Some(512 << 10),
        max_residence: 1000 * MS,
        min_throughput: 0.99,
        max_burst: 4 * MS,
    }
}

/// Runs the repetition against a switch with these faults. The programs see every frame.
pub fn run(plan: &RepetitionPlan, faults: &[Fault]) -> PfcEvidence {
    run_behind(plan, faults, SETUP)
}

/// Runs it where the switch is to trust this field, with this map.
pub fn run_trusting(
    trust: Trust,
    map: fn(u8) -> u8,
    plan: &RepetitionPlan,
    faults: &[Fault],
) -> PfcEvidence {
    run_behind(
        plan,
        faults,
        Setup {
            trust,
            map,
            ..SETUP
        },
    )
}

/// Runs it against a switch that serves its priorities in that order.
pub fn run_scheduled(scheduler: Scheduler, plan: &RepetitionPlan, faults: &[Fault]) -> PfcEvidence {
    run_behind(plan, faults, Setup { scheduler, ..SETUP })
}

/// Runs it with these limits, at their line rate.
pub fn run_at(limits: &Limits, plan: &RepetitionPlan, faults: &[Fault]) -> PfcEvidence {
    let limits = Some(limits);
    run_behind(plan, faults, Setup { limits, ..SETUP })
}

/// Runs it with ports whose MACs keep PAUSE/PFC frames from the programs.
pub fn run_blind(
    plan: &RepetitionPlan,
    faults: &[Fault],
    driver: mac::Driver,
    alive: &mut Alive,
) -> PfcEvidence {
    run_with(plan, faults, SETUP, Some((driver, alive)))
}

/// Runs it with a storm whose sender stalls for `stall` after so many frames.
pub fn run_stalling(plan: &RepetitionPlan, frames: u64, stall: Nanos) -> PfcEvidence {
    let stall = Some((frames, stall));
    run_behind(plan, &[], Setup { stall, ..SETUP })
}

/// Runs it with one of the processes stopped for a time.
pub fn run_stopped(plan: &RepetitionPlan, stop: Stopped) -> PfcEvidence {
    let stopped = Some(stop);
    run_behind(plan, &[], Setup { stopped, ..SETUP })
}

/// Runs it against a switch with another configuration.
pub fn run_configured(
    plan: &RepetitionPlan,
    faults: &[Fault],
    configure: fn(&mut SwitchConfig),
) -> PfcEvidence {
    run_behind(plan, faults, Setup { configure, ..SETUP })
}

/// Runs it against another switch than the simulated one.
pub fn run_foreign(plan: &RepetitionPlan, switch: Box<dyn Device>) -> PfcEvidence {
    run_device(plan, switch, SETUP, None)
}

// Each test file compiles this module anew, and few use all of it.
const _: () = {
    let _ = (DURATIONS, BEGIN, port, plan, plan_at);
    let _ = (run, run_trusting, run_scheduled, run_at, run_blind);
    let _ = (run_stalling, run_stopped, run_configured, run_foreign);
    let _ = [Process::Tester, Process::Device];
};

/// A process that a signal can stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    Tester,
    Device,
}

/// A process does nothing from one time to another. Kernels go on: they take frames and note when.
#[derive(Clone, Copy, Debug)]
pub struct Stopped {
    pub process: Process,
    pub from: Nanos,
    pub to: Nanos,
}

impl Stopped {
    fn holds(stopped: Option<Self>, process: Process, now: Nanos) -> Option<Self> {
        stopped.filter(|stop| stop.process == process && (stop.from..stop.to).contains(&now))
    }
}

/// The surroundings of a repetition.
#[derive(Clone, Copy)]
struct Setup<'s> {
    limits: Option<&'s Limits>,
    configure: fn(&mut SwitchConfig),
    trust: Trust,
    /// Priority by DSCP.
    map: fn(u8) -> u8,
    scheduler: Scheduler,
    /// The storm's sender stalls after so many frames, for so long.
    stall: Option<(u64, Nanos)>,
    stopped: Option<Stopped>,
}

const SETUP: Setup<'static> = Setup {
    limits: None,
    configure: |_| (),
    trust: Trust::Dscp,
    map: |dscp| dscp,
    scheduler: Scheduler::RoundRobin,
    stall: None,
    stopped: None,
};

fn run_behind(plan: &RepetitionPlan, faults: &[Fault], setup: Setup) -> PfcEvidence {
    run_with(plan, faults, setup, None)
}

fn run_with(
    plan: &RepetitionPlan,
    faults: &[Fault],
    setup: Setup,
    macs: Option<(mac::Driver, &mut Alive)>,
) -> PfcEvidence {
    let Setup {
        trust, scheduler, ..
    } = setup;
    let limits = setup.limits.cloned().unwrap_or_else(limits);
    let mut lossless = Priorities::default();
    plan.lossless
        .iter()
        .for_each(|priority| lossless.insert(*priority));
    let mut config = SwitchConfig::new(limits.line_rate, lossless);
    config.trust = trust;
    config.dscp_to_priority = dscp_map(setup.map);
    config.scheduler = scheduler;
    (setup.configure)(&mut config);
    let ends = plan.flows.iter().flat_map(|flow| [&flow.from, &flow.to]);
    let ports: BTreeSet<_> = ends.chain([&PortName::TX, &PortName::RX]).collect();
    let ports = 0..ports.len() as u8;
    config.macs = ports.map(|port| [2, 0, 0, 0, 1, port]).collect();
    let device = Box::new(Switch::new(config, faults));
    run_device(plan, device, setup, macs)
}

/// A switch between the ports, whoever wrote it.
pub trait Device {
    /// A frame has come in whole at `port`, at time `at`.
    fn ingress(&mut self, port: usize, at: Nanos, frame: Vec<u8>);
    /// When the next thing happens by itself, if anything does.
    fn next_event(&self) -> Option<Nanos>;
    /// Lets everything take place up to and including `now`.
    fn advance(&mut self, now: Nanos);
    /// The next frame that has left.
    fn pop_departure(&mut self) -> Option<Left>;
    /// Frames dropped, by reason.
    fn drops(&self) -> &BTreeMap<&'static str, u64>;
    /// XOFF frames sent, by priority.
    fn xoff_sent(&self) -> [u64; Priority::COUNT];
}

impl Device for Switch {
    fn ingress(&mut self, port: usize, at: Nanos, frame: Vec<u8>) {
        Self::ingress(self, port, at, frame);
    }

    fn next_event(&self) -> Option<Nanos> {
        Self::next_event(self)
    }

    fn advance(&mut self, now: Nanos) {
        Self::advance(self, now);
    }

    fn pop_departure(&mut self) -> Option<Left> {
        Self::pop_departure(self)
    }

    fn drops(&self) -> &BTreeMap<&'static str, u64> {
        Self::drops(self)
    }

    fn xoff_sent(&self) -> [u64; Priority::COUNT] {
        Self::xoff_sent(self)
    }
}
