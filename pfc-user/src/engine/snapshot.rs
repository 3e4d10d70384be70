//! All counts at one time.

use pfc_ebpf::units::LineRate;
use validator_core::engine::Problem;
use validator_core::engine::plan::Flow;
use validator_core::engine::snapshot::{Count, FlowCounts, Latency, Snapshot, Transmit};

use super::port::LivePort;
use super::rates::{Held, Sample};
use super::{LiveEngine, LiveFlow};
use crate::driver::bpf::flow::Received;
use crate::driver::kernel::clock;

/// A count with FCS of frames counted without.
pub const fn with_fcs(frames: u64, octets: u64) -> Count {
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
            let counted = live.before + live.state.sent.read();
            flow.sent = left(flow.transmit, counted, flow.sent);
            flow.first_frame = live.state.first();
        }
        let mut ports = Vec::with_capacity(self.ports.len());
        let mut raw = Vec::with_capacity(self.ports.len());
        let mut held = Vec::with_capacity(self.ports.len());
        for (port, planned) in self.ports.iter().zip(&self.plan.ports) {
            let counts = port.raw_counts()?;
            let of_queues = port.held(planned.obeys);
            ports.push(port.counts(&counts, of_queues.totals, self.nobodys_pauses)?);
            raw.push([counts.sent, counts.received]);
            held.push(of_queues);
        }
        for (flow, planned) in flows.iter().zip(&self.plan.flows) {
            ports[planned.from.0].transmitting |= flow.transmit != Transmit::Stopped;
        }
        let mut snapshot = Snapshot {
            at: clock::now(),
            ports,
            flows,
        };
        self.add_rates(&mut snapshot, raw, held);
        Ok(snapshot)
    }

    /// Rates follow from all that the ports counted, whenever the counts began that are shown.
    fn add_rates(&mut self, snapshot: &mut Snapshot, ports: Vec<[Count; 2]>, held: Vec<Held>) {
        let flows = snapshot.flows.iter();
        let sample = Sample {
            at: snapshot.at,
            ports,
            flows: flows.map(|flow| [flow.sent, flow.received]).collect(),
            held,
        };
        let (samples, plan) = (&self.samples, &self.plan);
        let states: Vec<Transmit> = snapshot.flows.iter().map(|flow| flow.transmit).collect();
        // Nothing of a flow was to be sent from that sample on.
        let is_still = |flow: usize, from: &Sample| {
            if states[flow] != Transmit::Started {
                return true;
            }
            let planned = &plan.flows[flow];
            !planned.packet.is_pause() && sample.is_held_since(from, planned.from.0, planned.queue)
        };
        for (place, port) in snapshot.ports.iter_mut().enumerate() {
            let all_still = |from: &Sample| {
                let mut flows = plan.flows.iter().enumerate();
                flows.all(|(flow, planned)| planned.from.0 != place || is_still(flow, from))
            };
            port.sent_rate = samples.rate(&sample, all_still, |sample| {
                Some(sample.ports.get(place)?[0])
            });
            // Other senders may yet send to it.
            port.received_rate = samples.rate(
                &sample,
                |_| false,
                |sample| Some(sample.ports.get(place)?[1]),
            );
        }
        for (place, flow) in snapshot.flows.iter_mut().enumerate() {
            let rate = |side: usize| {
                samples.rate(
                    &sample,
                    |from| is_still(place, from),
                    |sample| Some(sample.flows.get(place)?[side]),
                )
            };
            flow.sent_rate = rate(0);
            flow.received_rate = rate(1);
        }
        self.samples.keep(sample);
    }
}

/// Returns what left of a flow. While it is sent, frames may arrive before their sender has counted
/// them: as many have left as any port received. Once it is not, the sender's word stands, so that
/// frames that no sender sent, or none counted, show.
fn left(transmit: Transmit, counted: Count, arrived: Count) -> Count {
    if transmit == Transmit::Started && counted.frames < arrived.frames {
        arrived
    } else {
        counted
    }
}

/// Returns what arrived of a flow, at all ports; as sent, what arrived at the port that has the
/// most.
fn received(ports: &[LivePort], live: &LiveFlow, planned: &Flow) -> FlowCounts {
    let mut counts = FlowCounts::default();
    if planned.metrics.stamp.is_none() {
        return counts;
    }
    let mut sum = Received::default();
    for (port, counted) in ports.iter().enumerate() {
        let here = counted.program.places();
        let starts = live.places.iter().map(|place| here.read(place.flow));
        let here = starts.fold(Received::default(), both);
        let count = with_fcs(here.frames, here.octets);
        counts.corrupt += here.corrupt;
        counts.wrapped += here.wrapped;
        if counts.sent.frames < count.frames {
            counts.sent = count;
        }
        if !planned.to.iter().any(|to| to.0 == port) {
            counts.leaked += here.frames + here.duplicates + here.beyond;
            continue;
        }
        counts.received += count;
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

/// Sums up what arrived of two starts of a flow.
fn both(mut one: Received, other: Received) -> Received {
    let latency_max = one.latency_max.max(other.latency_max);
    let not_latency_min = one.not_latency_min.max(other.not_latency_min);
    one.merge(&other);
    Received {
        latency_max,
        not_latency_min,
        ..one
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
