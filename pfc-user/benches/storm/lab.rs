//! Two ports with the program `account` at their other ends, and the other load of the machine.

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, ensure};
use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::{Config, FlowConfig};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Dscp, LineRate, Priority};
use validator::driver::bpf::{AccountProgram, Sizes, XdpMode};
use validator::driver::kernel::link::{End, create_veth};
use validator::driver::kernel::netns::Namespace;
use validator::driver::kernel::{clock, realtime};
use validator::driver::storm::ControlSender;
use validator::driver::traffic::sendmmsg::Sendmmsg;
use validator::driver::traffic::{Addresses, Burst, FlowControl, Source, TrafficPlan};
use validator_core::plan::{FlowPlan, Nanos, PortName, Role};

use crate::{MS, REPORT, SECOND, live};

const MTU: u32 = 1500;
/// Octets of a frame of traffic.
const FRAME: usize = 1024;
const STORM_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const DATA_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Ten times the pause at 100 Gbit/s.
const KEPT: Nanos = 3 * MS;
const KEPT_EVERY: Nanos = 100 * MS;

type Open = fn(&TrafficPlan<'_>, FlowControl) -> Result<Box<dyn Source + Send>>;

/// Every sender of traffic with its rate in Gbit/s. The rate is out of reach, except for live
/// frames at a rate that leaves idle time.
const SOURCES: [(&str, u64, Open); 3] = [
    ("sendmmsg", 40, |plan, flow_control| {
        Ok(Box::new(Sendmmsg::open(plan, flow_control)?))
    }),
    ("live frames", 40, |plan, flow_control| {
        live::live(plan, flow_control, plan.cpus)
    }),
    ("live, 2.4 Mpps", 20, |plan, flow_control| {
        live::live(plan, flow_control, plan.cpus)
    }),
];

/// The other load of the machine.
#[derive(Clone, Copy)]
pub enum Load {
    Idle,
    /// A busy loop on every CPU.
    Hog,
    /// A busy loop on every CPU with priority over a storm's senders, on all CPUs at the same time:
    /// [`KEPT`] of every [`KEPT_EVERY`].
    Kept,
    /// A sender of traffic on another port, with its rate in Gbit/s.
    Traffic(&'static str, u64, Open),
}

impl Load {
    pub fn all() -> Vec<Self> {
        [Self::Idle, Self::Hog]
            .into_iter()
            .chain(SOURCES.map(|(name, gbits, open)| Self::Traffic(name, gbits, open)))
            .collect()
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Hog => "CPU hog",
            Self::Kept => "kept",
            Self::Traffic(name, ..) => name,
        }
    }
}

/// Two ports and their other ends, each with the program `account`.
pub struct Lab {
    tester: Namespace,
    pub storm: AccountProgram,
    data: AccountProgram,
    _far: Namespace,
}

impl Lab {
    pub fn new() -> Result<Self> {
        let (tester, far) = (Namespace::new()?, Namespace::new()?);
        let cpus = realtime::allowed_cpus().len();
        let mut accounts = Vec::new();
        for (near_name, far_name, mac) in [
            ("storm", "storm-end", STORM_MAC),
            ("data", "data-end", DATA_MAC),
        ] {
            let far_mac = [mac[0], 0, 0, 0, 1, mac[5]];
            create_veth(
                End {
                    namespace: &tester,
                    name: near_name,
                    mac,
                },
                End {
                    namespace: &far,
                    name: far_name,
                    mac: far_mac,
                },
                MTU,
            )?;
            // The receiving end needs its queues first.
            let queued = far
                .run(|| queues(far_name, cpus))?
                .and_then(|()| tester.run(|| queues(near_name, cpus))?);
            let _ = queued
                .inspect_err(|error| REPORT.skip("a queue for each CPU", &format!("{error:#}")));
            accounts.push(far.run(|| {
                AccountProgram::attach(
                    far_name,
                    XdpMode::Driver,
                    Sizes {
                        flows: 1,
                        windows: 1,
                    },
                )
            })??);
        }
        let (Some(data), Some(storm)) = (accounts.pop(), accounts.pop()) else {
            unreachable!("two were pushed")
        };
        Ok(Self {
            tester,
            storm,
            data,
            _far: far,
        })
    }

    /// Resets the counts.
    pub fn reset(&mut self) -> Result<()> {
        let config = Config {
            epoch: clock::now(),
            window: SECOND,
            windows: 1,
            run: 1,
            trust: Trust::Dscp as u8,
            line_rate: 1_000_000_000,
            verify_every: 1,
            ..Config::default()
        };
        let flow = FlowConfig {
            length: FRAME as u16,
            ..FlowConfig::default()
        };
        for account in [&mut self.storm, &mut self.data] {
            account.configure(&config, &[flow])?;
        }
        Ok(())
    }

    pub fn control(&self) -> Result<ControlSender> {
        Ok(self
            .tester
            .run(|| ControlSender::open("storm", STORM_MAC))??)
    }

    /// Starts `load`; it ends when the result is dropped.
    pub fn load(&self, load: Load, length: Nanos) -> Result<Running> {
        Ok(match load {
            Load::Idle => Running::default(),
            Load::Hog => Running {
                _hogs: Some(Hogs::start(hog)),
                _source: None,
            },
            Load::Kept => Running {
                _hogs: Some(Hogs::start(keeper)),
                _source: None,
            },
            Load::Traffic(_, gbits, open) => {
                let line_rate = LineRate::from_bits_per_second(gbits * 1_000_000_000)?;
                let flows = [FlowPlan {
                    from: PortName::TX,
                    to: PortName::RX,
                    id: 0,
                    role: Role::Test,
                    priority: Priority::from_low_bits(0),
                    dscp: Dscp::new(0)?,
                    pcp: None,
                    rate: line_rate.bits_per_second(),
                    length: FRAME,
                }];
                let plan = TrafficPlan {
                    interface: "data",
                    run: 1,
                    flows: &flows,
                    addresses: Addresses {
                        source_mac: DATA_MAC,
                        destination_mac: STORM_MAC,
                        source_ip: Ipv4Addr::new(192, 0, 2, 1).into(),
                        destination_ip: Ipv4Addr::new(192, 0, 2, 2).into(),
                    },
                    receivers: &[],
                    line_rate,
                    max_burst: 4 * MS,
                    epoch: clock::now(),
                    width: SECOND,
                    windows: 1,
                    cpus: &realtime::allowed_cpus()[..1],
                };
                let flow_control = || FlowControl::Unaware("the benchmark has no DUT".into());
                let mut source = self.tester.run(|| open(&plan, flow_control()))??;
                let from = clock::now() + 10 * MS;
                source.start(Burst {
                    phase: Phase::Baseline,
                    from,
                    to: from + length + SECOND,
                    load: 100,
                })?;
                Running {
                    _hogs: None,
                    _source: Some(source),
                }
            }
        })
    }
}

/// Gives an end in the calling thread's namespace `count` queues each way, as network cards have
/// one per CPU. Senders that share a queue wait for each other's lock, even while the holder's CPU
/// is away, and a frame of one may be received on the other's CPU.
fn queues(end: &str, count: usize) -> Result<()> {
    let count = count.to_string();
    let output = Command::new("ethtool")
        .args(["-L", end, "rx", &count, "tx", &count])
        .output()
        .context("ethtool does not start")?;
    ensure!(
        output.status.success(),
        "ethtool: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

#[derive(Default)]
pub struct Running {
    _hogs: Option<Hogs>,
    _source: Option<Box<dyn Source + Send>>,
}

/// A thread on each CPU.
struct Hogs {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Hogs {
    fn start(work: fn(&AtomicBool)) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let hog = |cpu| {
            let stop = stop.clone();
            thread::spawn(move || {
                realtime::pin(cpu);
                work(&stop);
            })
        };
        let threads = realtime::allowed_cpus().into_iter().map(hog).collect();
        Self { stop, threads }
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads
            .drain(..)
            .for_each(|thread| thread.join().expect("a hog does not panic"));
    }
}

fn hog(stop: &AtomicBool) {
    let mut rounds = 0u64;
    while !stop.load(Ordering::Relaxed) {
        rounds = black_box(rounds + 1);
    }
}

fn keeper(stop: &AtomicBool) {
    assert!(
        realtime::enter_fifo(realtime::STORM + 1),
        "root may do this"
    );
    while !stop.load(Ordering::Relaxed) {
        // The time is the same on all CPUs.
        let next = clock::now().next_multiple_of(KEPT_EVERY);
        clock::sleep_until(next);
        while clock::now() < next + KEPT {}
    }
}
