//! Counters in Prometheus' text format.

use std::fmt::Write as _;

use super::{Counters, FlowCounters, PortCounters, Traffic};

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// A metric of ports or flows: its name, what it is, and its values, by direction, class and queue
/// where it has them.
type Metric<T> = (&'static str, &'static str, fn(&T) -> Vec<Sample>);

/// Labels beside the name, and a value: nanoseconds where the name has seconds.
struct Sample(Vec<(&'static str, String)>, u64);

const PORTS: [Metric<PortCounters>; 15] = [
    ("port_up", "The link is up.", |port| {
        one(port.link_up.into())
    }),
    ("port_frames_total", "Frames.", |port| frames(&port.traffic)),
    ("port_bytes_total", "Octets of frames, with FCS.", |port| {
        octets(&port.traffic)
    }),
    (
        "port_pause_frames_total",
        "PAUSE (802.3x) frames; those that came from flows of this server are not in rx.",
        |port| both(port.pause_tx, port.pause_rx),
    ),
    (
        "port_own_pause_frames_total",
        "PAUSE (802.3x) frames that came from flows of this server.",
        |port| one(port.pause_own_rx),
    ),
    (
        "port_own_pfc_frames_total",
        "PFC (802.1Qbb) frames by class that came from flows of this server.",
        |port| by("class", &port.pfc_own_rx),
    ),
    (
        "port_pfc_frames_total",
        "PFC (802.1Qbb) frames by class; those that came from flows of this server are not in rx.",
        |port| {
            let mut samples = Vec::new();
            for (direction, counts) in [("tx", &port.pfc_tx), ("rx", &port.pfc_rx)] {
                for Sample(mut labels, count) in by("class", counts) {
                    labels.insert(0, ("direction", direction.to_owned()));
                    samples.push(Sample(labels, count));
                }
            }
            samples
        },
    ),
    (
        "port_undecided_pause_frames_total",
        "PAUSE (802.3x) frames from the address of zeros, which a flow of this server has as well.",
        |port| one(port.pause_undecided_rx),
    ),
    (
        "port_undecided_pfc_frames_total",
        "PFC (802.1Qbb) frames of that kind by class.",
        |port| by("class", &port.pfc_undecided_rx),
    ),
    (
        "port_capture_missed",
        "Frames that the last capture had no room for.",
        |port| one(port.capture_missed),
    ),
    (
        "port_held_seconds_total",
        "Time for which a queue was held by pause frames.",
        |port| by("queue", &port.held_ns),
    ),
    (
        "port_holds",
        "How often the sender found a queue held that had been free.",
        |port| by("queue", &port.holds),
    ),
    (
        "port_frames_after_xoff",
        "Frames of a queue that left after the pause frame that held it had arrived, at most.",
        |port| by("queue", &port.frames_after_xoff),
    ),
    (
        "port_bytes_after_xoff",
        "Octets of those frames, with FCS.",
        |port| by("queue", &port.bytes_after_xoff),
    ),
    (
        "port_response_max_seconds",
        "Longest time from such a pause frame to the last frame that left after it, at most.",
        |port| by("queue", &port.response_max_ns),
    ),
];

const FLOWS: [Metric<FlowCounters>; 14] = [
    ("flow_frames", "Frames since the flow's start.", |flow| {
        frames(&flow.traffic)
    }),
    (
        "flow_bytes",
        "Octets of frames since the flow's start, with FCS.",
        |flow| octets(&flow.traffic),
    ),
    (
        "flow_duplicates",
        "Frames that arrived a second time.",
        |flow| one(flow.duplicates),
    ),
    (
        "flow_beyond_window",
        "Frames that came too late to tell whether they had been counted.",
        |flow| one(flow.beyond_window),
    ),
    (
        "flow_reordered",
        "Frames that arrived after a later one.",
        |flow| one(flow.reordered),
    ),
    (
        "flow_corrupt",
        "Frames that arrived with a wrong sum of their stamp (18 octets), or, of flows of UDP over \
         IP with fields as computed and in one piece, with a wrong IPv4 or UDP checksum.",
        |flow| one(flow.corrupt),
    ),
    (
        "flow_leaked",
        "Frames that arrived at a wrong port.",
        |flow| one(flow.leaked),
    ),
    (
        "flow_wrapped",
        "Frames that arrived within another, as ICMP errors and mirrors make them.",
        |flow| one(flow.wrapped),
    ),
    (
        "flow_storm_gaps",
        "Pause frames that left after the pause of the one before had ended.",
        |flow| some(flow.storm_gaps),
    ),
    (
        "flow_storm_gap_max_seconds",
        "Longest time from such a pause frame to the one before.",
        |flow| some(flow.storm_gap_max_ns),
    ),
    (
        "flow_first_frame_seconds",
        "From the order to start to the first frame.",
        |flow| some(flow.first_frame_ns),
    ),
    (
        "flow_latency_min_seconds",
        "Least one-way latency.",
        |flow| some(flow.latency_min_ns),
    ),
    (
        "flow_latency_mean_seconds",
        "Mean one-way latency.",
        |flow| some(flow.latency_mean_ns),
    ),
    (
        "flow_latency_max_seconds",
        "Greatest one-way latency.",
        |flow| some(flow.latency_max_ns),
    ),
];

impl Counters {
    /// Writes the counters in Prometheus' text format (version 0.0.4). Counts of flows begin anew
    /// with each start, and are gauges therefore.
    pub fn prometheus(&self) -> String {
        let mut out = String::new();
        for (name, help, samples) in PORTS {
            let kind = if name.ends_with("_total") {
                "counter"
            } else {
                "gauge"
            };
            head(&mut out, name, help, kind);
            for port in &self.ports {
                lines(&mut out, name, &[("port", &port.name)], &samples(port));
            }
        }
        for (name, help, samples) in FLOWS {
            head(&mut out, name, help, "gauge");
            for flow in &self.flows {
                let labels = [
                    ("flow", &*flow.name),
                    ("port_tx", &flow.port_tx),
                    ("port_rx", &flow.port_rx),
                ];
                lines(&mut out, name, &labels, &samples(flow));
            }
        }
        out
    }
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    // Infallible: a string.
    let _ = writeln!(out, "# HELP validator_otg_{name} {help}");
    let _ = writeln!(out, "# TYPE validator_otg_{name} {kind}");
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus' values are f64")]
fn lines(out: &mut String, name: &str, labels: &[(&str, &str)], samples: &[Sample]) {
    let unit = if name.contains("_seconds") {
        SECOND
    } else {
        1.0
    };
    for Sample(more, value) in samples {
        let labels = labels.iter().map(|(label, text)| label_of(label, text));
        let more = more.iter().map(|(label, text)| label_of(label, text));
        let labels: Vec<String> = labels.chain(more).collect();
        let (labels, value) = (labels.join(","), *value as f64 / unit);
        // Infallible: a string.
        let _ = writeln!(out, "validator_otg_{name}{{{labels}}} {value}");
    }
}

fn label_of(label: &str, text: &str) -> String {
    let text = text
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n");
    format!("{label}=\"{text}\"")
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
