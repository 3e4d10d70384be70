//! The engine's own counts, beyond those of the model: PFC by class, direction and origin, times
//! held and responses to them, gaps of storms, duplicates, reorder, corruption, leaks.

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

/// Frames that left and that arrived.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Traffic {
    /// Frames that left.
    pub frames_tx: u64,
    /// Octets of the frames that left, with FCS.
    pub bytes_tx: u64,
    /// Frames that arrived.
    pub frames_rx: u64,
    /// Octets of the frames that arrived, with FCS.
    pub bytes_rx: u64,
}

/// Counts of a port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortCounters {
    /// Name.
    pub name: String,
    /// Location, as the configuration has it.
    pub location: String,
    /// True if the link is up.
    pub link_up: bool,
    /// All frames.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// PAUSE frames that left.
    pub pause_tx: u64,
    /// PAUSE frames that arrived and that no flow of the configuration sends.
    pub pause_rx: u64,
    /// PAUSE frames of the configuration's own flows that arrived.
    pub pause_own_rx: u64,
    /// PFC frames that left, by class.
    pub pfc_tx: [u64; 8],
    /// PFC frames that arrived and that no flow of the configuration sends, by class.
    pub pfc_rx: [u64; 8],
    /// PFC frames of the configuration's own flows that arrived, by class.
    pub pfc_own_rx: [u64; 8],
    /// PAUSE frames that arrived from the address of zeros, from which a flow of the configuration
    /// sends some as well: whose they are is undecided.
    pub pause_undecided_rx: u64,
    /// PFC frames of that kind, by class.
    pub pfc_undecided_rx: [u64; 8],
    /// Frames that its last capture had no room for.
    pub capture_missed: u64,
    /// Time for which each queue was held by any of its classes, nanoseconds.
    pub held_ns: [u64; 8],
    /// Times that each queue's sender found it held, having been free before.
    pub holds: [u64; 8],
    /// Frames of each queue that left after the pause frame that held it had arrived, at most.
    pub frames_after_xoff: [u64; 8],
    /// Octets of the frames that left after such a pause frame, with FCS.
    pub bytes_after_xoff: [u64; 8],
    /// The longest time from such a pause frame's arrival to the last frame after it, at most,
    /// nanoseconds.
    pub response_max_ns: [u64; 8],
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
    /// Frames since the last start; of those that arrived, only the ones that arrived where they
    /// should.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Frames that arrived a second time.
    pub duplicates: u64,
    /// Frames that arrived more than 512 frames after a later one, so that it is unknown whether
    /// they had been counted: missing from those that arrived, perhaps without loss.
    pub beyond_window: u64,
    /// Frames that arrived after a later one.
    pub reordered: u64,
    /// Frames that arrived with a wrong sum of the stamp. Of UDP directly over IP whose lengths and
    /// checksums are left to the engine, also frames with a wrong IPv4 or UDP checksum, if they
    /// came in one piece. Other changes are not seen.
    pub corrupt: u64,
    /// Frames that arrived at a port that is none of the flow's.
    pub leaked: u64,
    /// Frames that arrived within another, which an ICMP error or a mirror's tunnel makes of them.
    pub wrapped: u64,
    /// Frames of a flow of pause frames that left after the pause of the one before had ended.
    pub storm_gaps: Option<u64>,
    /// The longest time from such a frame to the one before, nanoseconds.
    pub storm_gap_max_ns: Option<u64>,
    /// Time from the order to start to the first frame, nanoseconds.
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
    /// Counts that the engine cannot read.
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
        traffic: traffic(counts.sent, counts.received),
        pause_tx: counts.pause_sent,
        pause_rx: counts.pause_received,
        pause_own_rx: counts.own_pause_received,
        pfc_tx: counts.pfc_sent,
        pfc_rx: counts.pfc_received,
        pfc_own_rx: counts.own_pfc_received,
        pause_undecided_rx: counts.undecided_pause_received,
        pfc_undecided_rx: counts.undecided_pfc_received,
        capture_missed: counts.capture_missed,
        held_ns: counts.held,
        holds: counts.responses.map(|response| response.holds),
        frames_after_xoff: counts.responses.map(|response| response.after.frames),
        bytes_after_xoff: counts.responses.map(|response| response.after.octets),
        response_max_ns: counts.responses.map(|response| response.longest),
    }
}

fn traffic(sent: Count, received: Count) -> Traffic {
    Traffic {
        frames_tx: sent.frames,
        bytes_tx: sent.octets,
        frames_rx: received.frames,
        bytes_rx: received.octets,
    }
}

fn flow([name, tx, rx]: [&str; 3], counts: &FlowCounts) -> FlowCounters {
    let latency = |of: fn(Latency) -> u64| counts.latency.map(of);
    FlowCounters {
        name: name.to_owned(),
        port_tx: tx.to_owned(),
        port_rx: rx.to_owned(),
        traffic: traffic(counts.sent, counts.received),
        duplicates: counts.duplicates,
        beyond_window: counts.beyond_window,
        reordered: counts.reordered,
        corrupt: counts.corrupt,
        leaked: counts.leaked,
        wrapped: counts.wrapped,
        storm_gaps: counts.storm.map(|gaps| gaps.count),
        storm_gap_max_ns: counts.storm.map(|gaps| gaps.longest),
        first_frame_ns: counts.first_frame,
        latency_min_ns: latency(|latency| latency.min),
        latency_mean_ns: latency(|latency| latency.mean),
        latency_max_ns: latency(|latency| latency.max),
    }
}
