//! All counts at one time.

use pfc_ebpf::units::LineRate;
use validator_core::engine::Problem;
use validator_core::engine::plan::Flow;
use validator_core::engine::snapshot::{
    Count, FlowCounts, Latency, PortCounts, Snapshot, Transmit,
};

use super::port::LivePort;
use super::rates::{Sample, rate};
use super::{LiveEngine, LiveFlow, machine};
use crate::driver::bpf::flow::Received;
use crate::driver::kernel::clock;

/// A count with FCS of frames counted without.
const fn with_fcs(frames: u64, octets: u64) -> Count {
    Count {
        frames,
        octets: octets + frames * LineRate::FCS,
    }
}

impl LiveEngine {
    /// Reads what arrived before what left.
    pub(super) fn take_snapshot(&mut self) -> Result<Snapshot, Problem> {
        let mut flows: Vec<_> = self
            .flows
            .iter()
            .zip(&self.plan.flows)
            .map(|(live, planned)| FlowCounts {
                storm: planned.packet.is_pause().then(|| live.state.gaps()),
                ..received(&self.ports, live, planned)
            })
            .collect();
        for (flow, live) in flows.iter_mut().zip(&self.flows) {
            // Its state comes first: all that left before it is counted then.
            flow.transmit = live.state.transmit();
            flow.sent = left(flow.transmit, live.state.sent.read(), flow.sent);
            flow.first_frame = live.state.first();
        }
        let mut ports = Vec::with_capacity(self.ports.len());
        for (port, planned) in self.ports.iter().zip(&self.plan.ports) {
            ports.push(port.counts(planned.obeys)?);
        }
        for (flow, planned) in flows.iter().zip(&self.plan.flows) {
            ports[planned.from.0].transmitting |= flow.transmit != Transmit::Stopped;
        }
        let mut snapshot = Snapshot {
            at: clock::now(),
            ports,
            flows,
        };
        self.add_rates(&mut snapshot);
        Ok(snapshot)
    }

    fn add_rates(&mut self, snapshot: &mut Snapshot) {
        let sample = Sample::of(snapshot);
        let from = self.samples.keep(&sample);
        let time = sample.at - from.at;
        for (port, from) in snapshot.ports.iter_mut().zip(&from.ports) {
            port.sent_rate = rate(&from[0], &port.sent, time);
            port.received_rate = rate(&from[1], &port.received, time);
        }
        for (flow, from) in snapshot.flows.iter_mut().zip(&from.flows) {
            flow.sent_rate = rate(&from[0], &flow.sent, time);
            flow.received_rate = rate(&from[1], &flow.received, time);
        }
    }
}

/// What left of a flow. While it is sent, frames may arrive before their sender has counted them:
/// as many have left as any port received. Once it is not, the sender's word stands, so that frames
/// which nobody sent, or nobody counted, show.
fn left(transmit: Transmit, counted: Count, arrived: Count) -> Count {
    if transmit == Transmit::Started && counted.frames < arrived.frames {
        arrived
    } else {
        counted
    }
}

/// What arrived of a flow, at all ports; as sent, what arrived at the port that has the most.
fn received(ports: &[LivePort], live: &LiveFlow, planned: &Flow) -> FlowCounts {
    let mut counts = FlowCounts::default();
    let Some(place) = live.place.filter(|_| planned.metrics.count) else {
        return counts;
    };
    let mut sum = Received::default();
    for (port, live) in ports.iter().enumerate() {
        let here = live.program.places().read(place.flow);
        let count = with_fcs(here.frames, here.octets);
        counts.corrupt += here.corrupt;
        if counts.sent.frames < count.frames {
            counts.sent = count;
        }
        if !planned.to.iter().any(|to| to.0 == port) {
            counts.leaked += here.frames + here.duplicates + here.beyond;
            continue;
        }
        counts.received.frames += count.frames;
        counts.received.octets += count.octets;
        counts.duplicates += here.duplicates;
        counts.beyond_window += here.beyond;
        counts.reordered += here.reordered;
        sum.latency_sum += here.latency_sum;
        sum.latency_max = sum.latency_max.max(here.latency_max);
        sum.not_latency_min = sum.not_latency_min.max(here.not_latency_min);
    }
    if planned.metrics.latency && counts.received.frames > 0 {
        counts.latency = Some(Latency {
            min: sum.latency_min(),
            mean: sum.latency_sum / counts.received.frames,
            max: sum.latency_max,
        });
    }
    counts
}

impl LivePort {
    fn counts(&self, obeys: validator_core::engine::plan::Obeys) -> Result<PortCounts, Problem> {
        let received = self.program.port().map_err(machine)?;
        let holds = obeys.holds(&self.program.pauses().read(), clock::now());
        Ok(PortCounts {
            link_up: self.is_up()?,
            capturing: self.capturing,
            capture_missed: self.reader.missed() + received.missed - self.missed_before,
            sent: self.state.sent(),
            received: with_fcs(received.frames, received.octets),
            pause_received: received.pause,
            own_pause_received: received.own_pause,
            pause_sent: self.state.pause.read().frames,
            pfc_received: received.pfc_by_class,
            own_pfc_received: received.own_pfc_by_class,
            pfc_sent: std::array::from_fn(|class| self.state.pfc[class].read().frames),
            held: holds.map(|hold| hold.total),
            responses: self.state.all_responses(),
            ..PortCounts::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_and_was_not_counted_left_only_while_a_flow_is_sent() {
        let [few, many] = [49, 50].map(|frames| with_fcs(frames, 60 * frames));
        assert_eq!(left(Transmit::Started, few, many), many);
        assert_eq!(left(Transmit::Started, many, few), many);
        for transmit in [Transmit::Paused, Transmit::Stopped] {
            assert_eq!(left(transmit, few, many), few);
            assert_eq!(left(transmit, many, few), many);
        }
    }
}
