//! The engine's own counts, beyond those of the model: PFC by class and direction, times held,
//! duplicates, reorder, corruption, leaks.

mod prometheus;

use serde::Serialize;
use validator_core::engine::snapshot::{Count, FlowCounts, Latency, PortCounts};

use super::Session;
use crate::error::Refusal;

/// All counts at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counters {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub at_ns: u64,
    /// Ports of the configuration in force.
    pub ports: Vec<PortCounters>,
    /// Flows of the configuration in force, also those without metrics.
    pub flows: Vec<FlowCounters>,
}

/// Counts of a port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortCounters {
    /// Name.
    pub name: String,
    /// Location, as the configuration has it.
    pub location: String,
    /// The link is up.
    pub link_up: bool,
    /// Frames that left.
    pub frames_tx: u64,
    /// Their octets, with FCS.
    pub bytes_tx: u64,
    /// Frames that arrived.
    pub frames_rx: u64,
    /// Their octets, with FCS.
    pub bytes_rx: u64,
    /// PAUSE frames that left.
    pub pause_tx: u64,
    /// PAUSE frames that arrived.
    pub pause_rx: u64,
    /// PFC frames that left, by class.
    pub pfc_tx: [u64; 8],
    /// PFC frames that arrived, by class.
    pub pfc_rx: [u64; 8],
    /// Time for which each queue was held, nanoseconds.
    pub held_ns: [u64; 8],
}

/// Counts of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowCounters {
    /// Name.
    pub name: String,
    /// Sending port.
    pub port_tx: String,
    /// Receiving ports, with commas between.
    pub port_rx: String,
    /// Frames that left since the last start.
    pub frames_tx: u64,
    /// Their octets, with FCS.
    pub bytes_tx: u64,
    /// Frames of that start that arrived where they should.
    pub frames_rx: u64,
    /// Their octets, with FCS.
    pub bytes_rx: u64,
    /// Arrived a second time.
    pub duplicates: u64,
    /// Arrived after a later one.
    pub reordered: u64,
    /// Arrived with other octets than were sent.
    pub corrupt: u64,
    /// Arrived at a port that is none of the flow's.
    pub leaked: u64,
    /// From the order to start to the first frame, nanoseconds.
    pub first_frame_ns: Option<u64>,
    /// Least latency, nanoseconds.
    pub latency_min_ns: Option<u64>,
    /// Mean latency, nanoseconds.
    pub latency_mean_ns: Option<u64>,
    /// Greatest latency, nanoseconds.
    pub latency_max_ns: Option<u64>,
}

impl Session {
    /// All counts.
    ///
    /// # Errors
    ///
    /// What the engine cannot read.
    pub fn counters(&mut self) -> Result<Counters, Refusal> {
        let snapshot = self.engine.snapshot()?;
        let ports = self.force.ports.iter().zip(&snapshot.ports);
        let flows = self.force.flows.iter().zip(&snapshot.flows);
        Ok(Counters {
            at_ns: snapshot.at,
            ports: ports
                .map(|(names, counts)| port(&names.name, &names.location, counts))
                .collect(),
            flows: flows
                .map(|(names, counts)| flow([&names.name, &names.tx, &names.rx], counts))
                .collect(),
        })
    }
}

fn port(name: &str, location: &str, counts: &PortCounts) -> PortCounters {
    PortCounters {
        name: name.to_owned(),
        location: location.to_owned(),
        link_up: counts.link_up,
        frames_tx: counts.sent.frames,
        bytes_tx: counts.sent.octets,
        frames_rx: counts.received.frames,
        bytes_rx: counts.received.octets,
        pause_tx: counts.pause_sent,
        pause_rx: counts.pause_received,
        pfc_tx: counts.pfc_sent,
        pfc_rx: counts.pfc_received,
        held_ns: counts.held,
    }
}

fn flow([name, tx, rx]: [&str; 3], counts: &FlowCounts) -> FlowCounters {
    let latency = |of: fn(Latency) -> u64| counts.latency.map(of);
    let Count { frames, octets } = counts.sent;
    FlowCounters {
        name: name.to_owned(),
        port_tx: tx.to_owned(),
        port_rx: rx.to_owned(),
        frames_tx: frames,
        bytes_tx: octets,
        frames_rx: counts.received.frames,
        bytes_rx: counts.received.octets,
        duplicates: counts.duplicates,
        reordered: counts.reordered,
        corrupt: counts.corrupt,
        leaked: counts.leaked,
        first_frame_ns: counts.first_frame,
        latency_min_ns: latency(|latency| latency.min),
        latency_mean_ns: latency(|latency| latency.mean),
        latency_max_ns: latency(|latency| latency.max),
    }
}
