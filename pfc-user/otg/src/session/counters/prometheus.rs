//! Counters in Prometheus' text format.

use validator_core::prometheus::{Label, Text};

use super::{Counters, FlowCounters, PortCounters, Traffic};

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// A metric of ports or flows: its name, what it is, and its values, by direction, class and queue
/// where it has them.
type Metric<T> = (&'static str, &'static str, fn(&T) -> Vec<Sample>);

/// Labels beside the name, and a value: nanoseconds where the name has seconds.
struct Sample(Vec<Label>, u64);

/// Defines metrics: `NAME: SAMPLES;`, below a comment that says what they are.
macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $name:ident: $samples:expr;)+) => {
        &[$((
            concat!("validator_otg_", stringify!($name)),
            concat!($($help),+).trim_ascii(),
            $samples,
        )),+]
    };
}

const PORTS: &[Metric<PortCounters>] = metrics! {
    /// The link is up.
    port_up: |port| one(port.link_up.into());
    /// Frames.
    port_frames_total: |port| frames(&port.traffic);
    /// Octets of frames, with FCS.
    port_bytes_total: |port| octets(&port.traffic);
    /// PAUSE (802.3x) frames; those that came from flows of this server are not in rx.
    port_pause_frames_total: |port| both(port.pause_tx, port.pause_rx);
    /// PAUSE (802.3x) frames that came from flows of this server.
    port_own_pause_frames_total: |port| one(port.pause_own_rx);
    /// PFC (802.1Qbb) frames by class that came from flows of this server.
    port_own_pfc_frames_total: |port| by("class", &port.pfc_own_rx);
    /// PFC (802.1Qbb) frames by class; those that came from flows of this server are not in rx.
    port_pfc_frames_total: |port| {
        let mut samples = Vec::new();
        for (direction, counts) in [("tx", &port.pfc_tx), ("rx", &port.pfc_rx)] {
            for Sample(mut labels, count) in by("class", counts) {
                labels.insert(0, ("direction", direction.to_owned()));
                samples.push(Sample(labels, count));
            }
        }
        samples
    };
    /// PAUSE (802.3x) frames from the address of zeros, which a flow of this server has as well.
    port_undecided_pause_frames_total: |port| one(port.pause_undecided_rx);
    /// PFC (802.1Qbb) frames of that kind by class.
    port_undecided_pfc_frames_total: |port| by("class", &port.pfc_undecided_rx);
    /// Frames that the last capture had no room for.
    port_capture_missed: |port| one(port.capture_missed);
    /// Time for which a queue was held by pause frames.
    port_held_seconds_total: |port| by("queue", &port.held_ns);
    /// How often the sender found a queue held that had been free.
    port_holds: |port| by("queue", &port.holds);
    /// Frames of a queue that left after the pause frame that held it had arrived, at most.
    port_frames_after_xoff: |port| by("queue", &port.frames_after_xoff);
    /// Octets of those frames, with FCS.
    port_bytes_after_xoff: |port| by("queue", &port.bytes_after_xoff);
    /// Longest time from such a pause frame to the last frame that left after it, at most.
    port_response_max_seconds: |port| by("queue", &port.response_max_ns);
};

const FLOWS: &[Metric<FlowCounters>] = metrics! {
    /// Frames since the flow's start.
    flow_frames: |flow| frames(&flow.traffic);
    /// Octets of frames since the flow's start, with FCS.
    flow_bytes: |flow| octets(&flow.traffic);
    /// Frames that arrived a second time.
    flow_duplicates: |flow| one(flow.duplicates);
    /// Frames that came too late to tell whether they had been counted.
    flow_beyond_window: |flow| one(flow.beyond_window);
    /// Frames that arrived after a later one.
    flow_reordered: |flow| one(flow.reordered);
    /// Frames that arrived with a wrong sum of their stamp (18 octets), or, of flows of UDP over IP
    /// with fields as computed and in one piece, with a wrong IPv4 or UDP checksum.
    flow_corrupt: |flow| one(flow.corrupt);
    /// Frames that arrived at a wrong port.
    flow_leaked: |flow| one(flow.leaked);
    /// Frames that arrived within another, as ICMP errors and mirrors make them.
    flow_wrapped: |flow| one(flow.wrapped);
    /// Pause frames that left after the pause of the one before had ended.
    flow_storm_gaps: |flow| some(flow.storm_gaps);
    /// Longest time from such a pause frame to the one before.
    flow_storm_gap_max_seconds: |flow| some(flow.storm_gap_max_ns);
    /// From the order to start to the first frame.
    flow_first_frame_seconds: |flow| some(flow.first_frame_ns);
    /// Least one-way latency.
    flow_latency_min_seconds: |flow| some(flow.latency_min_ns);
    /// Mean one-way latency.
    flow_latency_mean_seconds: |flow| some(flow.latency_mean_ns);
    /// Greatest one-way latency.
    flow_latency_max_seconds: |flow| some(flow.latency_max_ns);
};

impl Counters {
    /// Writes the counters in Prometheus' text format. Counts of flows begin anew with each start,
    /// and are gauges therefore.
    pub fn prometheus(&self) -> String {
        let mut text = Text::default();
        for (name, help, samples) in PORTS {
            let kind = if name.ends_with("_total") {
                "counter"
            } else {
                "gauge"
            };
            let ports = self.ports.iter().flat_map(|port| {
                let labels = vec![("port", port.name.clone())];
                labelled(name, labels, samples(port))
            });
            text.family(name, kind, help, ports);
        }
        for (name, help, samples) in FLOWS {
            let flows = self.flows.iter().flat_map(|flow| {
                let labels = vec![
                    ("flow", flow.name.clone()),
                    ("port_tx", flow.port_tx.clone()),
                    ("port_rx", flow.port_rx.clone()),
                ];
                labelled(name, labels, samples(flow))
            });
            text.family(name, "gauge", help, flows);
        }
        text.0
    }
}

/// Samples of a port or flow that has these labels.
#[expect(clippy::cast_precision_loss, reason = "Prometheus' values are f64")]
fn labelled(
    name: &str,
    labels: Vec<Label>,
    samples: Vec<Sample>,
) -> impl Iterator<Item = (Vec<Label>, f64)> {
    let unit = if name.contains("_seconds") {
        SECOND
    } else {
        1.0
    };
    samples.into_iter().map(move |Sample(more, value)| {
        let labels = [&labels[..], &more].concat();
        (labels, value as f64 / unit)
    })
}

fn frames(traffic: &Traffic) -> Vec<Sample> {
    both(traffic.frames_tx, traffic.frames_rx)
}

fn octets(traffic: &Traffic) -> Vec<Sample> {
    both(traffic.bytes_tx, traffic.bytes_rx)
}

fn both(tx: u64, rx: u64) -> Vec<Sample> {
    [("tx", tx), ("rx", rx)]
        .map(|(direction, value)| Sample(vec![("direction", direction.to_owned())], value))
        .into()
}

/// A value each for eight classes or queues.
fn by(label: &'static str, values: &[u64; 8]) -> Vec<Sample> {
    let values = values.iter().enumerate();
    let samples = values.map(|(number, value)| Sample(vec![(label, number.to_string())], *value));
    samples.collect()
}

fn one(value: u64) -> Vec<Sample> {
    some(Some(value))
}

fn some(found: Option<u64>) -> Vec<Sample> {
    let found = found.map(|found| Sample(Vec::new(), found));
    found.into_iter().collect()
}
