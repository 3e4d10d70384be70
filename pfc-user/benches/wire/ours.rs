//! Our senders, driven like in a case.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Dscp, LineRate, Priority};
use validator::driver::kernel::{clock, realtime};
use validator::driver::traffic::sendmmsg::Sendmmsg;
use validator::driver::traffic::{Addresses, Burst, FlowControl, Source, TrafficPlan};
use validator_core::plan::{FlowPlan, Nanos, PortName, Role};

use super::link;
use super::live::live;

const MS: Nanos = 1_000_000;
/// Width of an accounting window.
pub const WINDOW: Nanos = 10 * MS;
/// Beyond any sender here, so that the sender is the limit.
const UNREACHABLE: u64 = 400_000_000_000;

type Open = fn(&TrafficPlan<'_>, FlowControl) -> Result<Box<dyn Source + Send>>;

/// A sender with its name in reports. Adding a line to [`SENDERS`] measures a new one everywhere.
#[derive(Clone, Copy)]
pub struct Ours {
    pub name: &'static str,
    open: Open,
}

/// Works with any receiving end.
pub const SENDMMSG: Ours = Ours {
    name: "sendmmsg",
    open: |plan, flow_control| Ok(Box::new(Sendmmsg::open(plan, flow_control)?)),
};
/// The fastest; on a veth the other end needs an XDP program.
pub const LIVE_FRAMES: Ours = Ours {
    name: "live frames",
    open: |plan, flow_control| live(plan, flow_control, plan.cpus),
};
/// The fastest, on all CPUs.
pub const LIVE_FRAMES_ON_ALL: Ours = Ours {
    name: "live frames on all CPUs",
    open: |plan, flow_control| live(plan, flow_control, &realtime::allowed_cpus()),
};

pub const SENDERS: [Ours; 2] = [SENDMMSG, LIVE_FRAMES];

/// Flows to send.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Number of the first flow.
    pub first: u16,
    /// Number of flows.
    pub flows: u16,
    /// Octets of a frame, without FCS.
    pub length: usize,
    /// Frames per second over all flows; `None`: as many as the sender can.
    pub rate: Option<u64>,
    /// Duration.
    pub duration: Duration,
    /// Run number in the stamps.
    pub run: u16,
    /// CPU of the sender's thread.
    pub cpu: usize,
}

impl Load {
    fn frame_bits(&self) -> u64 {
        LineRate::frame_bits(self.length)
    }

    /// Makes the flows. Their DSCPs, and thus priorities, go round.
    pub fn plan(&self) -> Vec<FlowPlan> {
        let rate = self
            .rate
            .map_or(UNREACHABLE / 2, |rate| rate * self.frame_bits())
            / u64::from(self.flows);
        let flow = |id: u16| {
            let dscp = Dscp::new((id % Dscp::COUNT as u16) as u8).expect("below 64");
            FlowPlan {
                from: PortName::TX,
                to: PortName::RX,
                id,
                role: Role::Test,
                priority: Priority::from_low_bits(dscp.get()),
                dscp,
                pcp: None,
                rate,
                length: self.length,
            }
        };
        (self.first..self.first + self.flows).map(flow).collect()
    }
}

impl Sent {
    /// CPU time per frame, in nanoseconds.
    pub fn cost(&self) -> f64 {
        self.cpu * 1e9 / self.frames.max(1) as f64
    }
}

/// The sender's report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// Frames sent.
    pub frames: u64,
    /// Frames refused by the kernel, or for which the other end had no room; each is a drop of the
    /// link.
    pub refused: u64,
    /// Frames per second over the whole burst.
    pub rate: f64,
    /// CPU time of the process, in seconds.
    pub cpu: f64,
}

pub fn addresses() -> Addresses {
    let ip = |last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
    // Not the receiving end's own address: a frame that passes a counter stops at the entry to the
    // stack.
    Addresses {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        source_ip: ip(1),
        destination_ip: ip(2),
    }
}

/// Sends a load in the calling thread's namespace. Calls `look` every 100 ms while sending.
pub fn send(ours: &Ours, load: &Load, mut look: impl FnMut()) -> Result<Sent> {
    let flows = load.plan();
    let epoch = clock::now();
    let plan = TrafficPlan {
        interface: link::TX,
        run: load.run,
        flows: &flows,
        addresses: addresses(),
        receivers: &[],
        line_rate: LineRate::from_bits_per_second(UNREACHABLE).expect("a speed that there is"),
        max_burst: 4 * MS,
        epoch,
        width: WINDOW,
        windows: windows(load.duration),
        cpus: &[load.cpu],
    };
    let mut source = (ours.open)(&plan, FlowControl::Unaware("the wire asks for none".into()))
        .context(ours.name)?;
    let before = cpu_time(UsageWho::RUSAGE_SELF)?;
    let from = clock::now() + 5 * MS;
    let to = from + load.duration.as_nanos() as Nanos;
    source
        .start(Burst {
            phase: Phase::Baseline,
            from,
            to,
            load: 100,
        })
        .context(ours.name)?;
    while !source.wait(clock::now() + 100 * MS).context(ours.name)? {
        look();
    }
    let cpu = cpu_time(UsageWho::RUSAGE_SELF)? - before;
    let sent = source.report().context(ours.name)?;
    let lost: u64 = sent.lost.iter().map(|(_, lost)| lost).sum();
    let frames = sent
        .report
        .flows
        .iter()
        .map(|flow| flow.frames)
        .sum::<u64>()
        - lost;
    let seconds = load.duration.as_secs_f64();
    Ok(Sent {
        frames,
        refused: sent.report.errors + lost,
        rate: frames as f64 / seconds,
        cpu,
    })
}

/// Number of windows for a burst of this duration, and the time before and after it.
pub fn windows(duration: Duration) -> usize {
    (duration.as_nanos() as Nanos / WINDOW) as usize + 100
}

/// CPU time used so far, in seconds.
pub fn cpu_time(who: UsageWho) -> Result<f64> {
    let usage = getrusage(who)?;
    Ok(
        (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64
            / 1e6,
    )
}
