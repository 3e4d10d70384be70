//! The fast sender for benchmarks: with a program of its own on the port.

use anyhow::Result;
use validator::driver::bpf::{AccountProgram, Sizes, XdpMode};
use validator::driver::traffic::live_frames::LiveFrames;
use validator::driver::traffic::{Burst, FlowControl, Sent, Source, TrafficError, TrafficPlan};
use validator_core::plan::Nanos;

/// Live frames, and the program of their port.
struct Live {
    source: LiveFrames,
    _port: AccountProgram,
}

/// Opens live frames on these CPUs, in the network namespace of the port.
pub fn live(
    plan: &TrafficPlan<'_>,
    flow_control: FlowControl,
    cpus: &[usize],
) -> Result<Box<dyn Source + Send>> {
    let unaware = match flow_control {
        FlowControl::Software(_) => None,
        FlowControl::Unaware(reason) => Some(reason),
    };
    let sizes = Sizes {
        flows: plan.flows.len() as u32,
        windows: plan.windows as u32,
    };
    let mut port = AccountProgram::attach(plan.interface, XdpMode::Driver, sizes)?;
    let source = LiveFrames::open(plan, port.generator()?, cpus, unaware)?;
    Ok(Box::new(Live {
        source,
        _port: port,
    }))
}

impl Source for Live {
    fn start(&mut self, burst: Burst) -> Result<(), TrafficError> {
        self.source.start(burst)
    }

    fn wait(&mut self, deadline: Nanos) -> Result<bool, TrafficError> {
        self.source.wait(deadline)
    }

    fn stop(&mut self) -> Result<(), TrafficError> {
        self.source.stop()
    }

    fn report(&mut self) -> Result<Sent, TrafficError> {
        self.source.report()
    }
}
