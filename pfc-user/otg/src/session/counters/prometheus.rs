//! Counters in Prometheus' text format.

use std::fmt::Write as _;

use super::{Counters, FlowCounters, PortCounters};

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// A metric of ports, by direction and class where it has them.
type OfPort = (&'static str, &'static str, fn(&PortCounters) -> Vec<Sample>);
/// A metric of flows.
type OfFlow = (&'static str, &'static str, fn(&FlowCounters) -> Vec<Sample>);

/// Labels beside the name, and a value.
struct Sample(Vec<(&'static str, String)>, f64);

const PORTS: [OfPort; 6] = [
    ("port_up", "The link is up.", |port| {
        vec![Sample(Vec::new(), f64::from(u8::from(port.link_up)))]
    }),
    ("port_frames_total", "Frames.", |port| {
        both(port.frames_tx, port.frames_rx)
    }),
    ("port_bytes_total", "Octets of frames, with FCS.", |port| {
        both(port.bytes_tx, port.bytes_rx)
    }),
    (
        "port_pause_frames_total",
        "PAUSE (802.3x) frames.",
        |port| both(port.pause_tx, port.pause_rx),
    ),
    (
        "port_pfc_frames_total",
        "PFC (802.1Qbb) frames by class.",
        |port| {
            let sent = classes("tx", &port.pfc_tx);
            sent.chain(classes("rx", &port.pfc_rx)).collect()
        },
    ),
    (
        "port_held_seconds_total",
        "Time for which a queue was held by pause frames.",
        |port| {
            let queues = port.held_ns.iter().enumerate();
            queues
                .map(|(queue, held)| {
                    Sample(vec![("queue", queue.to_string())], decimal(*held) / SECOND)
                })
                .collect()
        },
    ),
];

const FLOWS: [OfFlow; 9] = [
    ("flow_frames", "Frames since the flow's start.", |flow| {
        both(flow.frames_tx, flow.frames_rx)
    }),
    (
        "flow_bytes",
        "Octets of frames since the flow's start, with FCS.",
        |flow| both(flow.bytes_tx, flow.bytes_rx),
    ),
    (
        "flow_duplicates",
        "Frames that arrived a second time.",
        |flow| one(flow.duplicates),
    ),
    (
        "flow_reordered",
        "Frames that arrived after a later one.",
        |flow| one(flow.reordered),
    ),
    ("flow_corrupt", "Frames that arrived changed.", |flow| {
        one(flow.corrupt)
    }),
    (
        "flow_leaked",
        "Frames that arrived at a wrong port.",
        |flow| one(flow.leaked),
    ),
    (
        "flow_first_frame_seconds",
        "From the order to start to the first frame.",
        |flow| time(flow.first_frame_ns),
    ),
    (
        "flow_latency_mean_seconds",
        "Mean one-way latency.",
        |flow| time(flow.latency_mean_ns),
    ),
    (
        "flow_latency_max_seconds",
        "Greatest one-way latency.",
        |flow| time(flow.latency_max_ns),
    ),
];

impl Counters {
    /// In Prometheus' text format (version 0.0.4). Counts of flows begin anew with each start, and
    /// are gauges therefore.
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

fn lines(out: &mut String, name: &str, labels: &[(&str, &str)], samples: &[Sample]) {
    for Sample(more, value) in samples {
        let labels = labels.iter().map(|(label, text)| label_of(label, text));
        let more = more.iter().map(|(label, text)| label_of(label, text));
        let labels: Vec<String> = labels.chain(more).collect();
        // Infallible: a string.
        let _ = writeln!(out, "validator_otg_{name}{{{}}} {value}", labels.join(","));
    }
}

fn label_of(label: &str, text: &str) -> String {
    let text = text
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n");
    format!("{label}=\"{text}\"")
}

fn both(tx: u64, rx: u64) -> Vec<Sample> {
    [("tx", tx), ("rx", rx)]
        .map(|(direction, value)| Sample(vec![("direction", direction.to_owned())], decimal(value)))
        .into()
}

fn classes<'a>(direction: &'static str, counts: &'a [u64; 8]) -> impl Iterator<Item = Sample> + 'a {
    counts.iter().enumerate().map(move |(class, count)| {
        let labels = vec![
            ("direction", direction.to_owned()),
            ("class", class.to_string()),
        ];
        Sample(labels, decimal(*count))
    })
}

fn one(value: u64) -> Vec<Sample> {
    vec![Sample(Vec::new(), decimal(value))]
}

fn time(nanos: Option<u64>) -> Vec<Sample> {
    let seconds = nanos.map(|nanos| decimal(nanos) / SECOND);
    seconds
        .map(|seconds| Sample(Vec::new(), seconds))
        .into_iter()
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus' values are f64")]
fn decimal(value: u64) -> f64 {
    value as f64
}
