//! Metrics of ports and flows.

use prost_reflect::{DynamicMessage, Value};
use validator_core::engine::plan::{FlowIndex, PortIndex};
use validator_core::engine::snapshot::{FlowCounts, PortCounts, Rates, Transmit};

use super::{Session, read};
use crate::error::Refusal;
use crate::model::{Builder, IntoValue};
use crate::reader::Reader;
use crate::translate::{FlowNames, PortNames};

/// Octets of a frame that layer 1 adds: preamble, delimiter and least gap (IEEE 802.3, 4.2.3).
const LAYER_1: f64 = 20.0;

/// Metrics that a request asks for.
enum Asked {
    /// Ports, and columns of them; no column is all.
    Ports(Vec<PortIndex>, Vec<String>),
    /// Flows, and metrics of them; no metric is all.
    Flows(Vec<FlowIndex>, Vec<String>),
}

impl Session {
    /// Metrics at one time.
    ///
    /// # Errors
    ///
    /// All that is wrong in the request; or what the engine cannot read.
    pub fn metrics(&mut self, request: &DynamicMessage) -> Result<DynamicMessage, Refusal> {
        let asked = read(request, |reader| self.asked(reader))?;
        let snapshot = self.engine.snapshot()?;
        let (kind, rows) = match asked {
            Asked::Ports(ports, columns) => {
                let rows = ports.iter().filter_map(|port| {
                    let counts = snapshot.ports.get(port.0)?;
                    Some(port_row(&self.force.ports[port.0], counts, &columns))
                });
                ("port_metrics", rows.collect())
            }
            Asked::Flows(flows, metrics) => {
                let rows = flows.iter().filter_map(|flow| {
                    let names = &self.force.flows[flow.0];
                    let counts = snapshot.flows.get(flow.0)?;
                    names.counted.then(|| flow_row(names, counts, &metrics))
                });
                ("flow_metrics", rows.collect())
            }
        };
        Ok(Builder::new("MetricsResponse")
            .with_name("choice", kind)
            .with_messages(kind, rows)
            .done())
    }

    fn asked(&self, reader: &Reader<'_>) -> Option<Asked> {
        match &*reader.choice("port") {
            "port" => {
                let request = reader.object("port");
                let ports = self.ports_of(&request, "port_names");
                Some(Asked::Ports(ports, request.enumerations("column_names")))
            }
            "flow" => {
                let request = reader.object("flow");
                if let Some(tagged) = request.child("tagged_metrics") {
                    // The model's default is to include them.
                    if tagged.truth("include") != Some(false) {
                        request.error(
                            "tagged_metrics",
                            "is not supported: it needs counting by fields of received frames; \
                             remove it, or set its include to false",
                        );
                    }
                    request.leave("tagged_metrics");
                }
                let flows = self.flows_of(&request, "flow_names");
                Some(Asked::Flows(flows, request.enumerations("metric_names")))
            }
            other => reader.refuse_choice(other, "port and flow are"),
        }
    }
}

/// A row with those of its columns that are asked for.
struct Row<'a> {
    builder: Builder,
    wanted: &'a [String],
}

impl Row<'_> {
    fn number(mut self, column: &str, value: impl IntoValue) -> Self {
        if self.wants(column) {
            self.builder = self.builder.with(column, value);
        }
        self
    }

    /// The model's rates have 24 bits of precision.
    #[expect(clippy::cast_possible_truncation, reason = "the model has f32")]
    fn rate(self, column: &str, value: f64) -> Self {
        self.number(column, value as f32)
    }

    fn name(mut self, column: &str, value: &str) -> Self {
        if self.wants(column) {
            self.builder = self.builder.with_name(column, value);
        }
        self
    }

    fn wants(&self, column: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted == column)
    }
}

fn port_row(names: &PortNames, counts: &PortCounts, columns: &[String]) -> DynamicMessage {
    let started = |on: bool| if on { "started" } else { "stopped" };
    Row {
        builder: Builder::new("PortMetric").with("name", names.name.clone()),
        wanted: columns,
    }
    .number("location", names.location.clone())
    .name("link", if counts.link_up { "up" } else { "down" })
    .name("capture", started(counts.capturing))
    .name("transmit", started(counts.transmitting))
    .number("frames_tx", counts.sent.frames)
    .number("frames_rx", counts.received.frames)
    .number("bytes_tx", counts.sent.octets)
    .number("bytes_rx", counts.received.octets)
    .rate("frames_tx_rate", counts.sent_rate.frames)
    .rate("frames_rx_rate", counts.received_rate.frames)
    .rate("bytes_tx_rate", counts.sent_rate.octets)
    .rate("bytes_rx_rate", counts.received_rate.octets)
    .builder
    .done()
}

fn flow_row(names: &FlowNames, counts: &FlowCounts, metrics: &[String]) -> DynamicMessage {
    let row = Row {
        builder: Builder::new("FlowMetric")
            .with("name", names.name.clone())
            .with("port_tx", names.tx.clone())
            .with("port_rx", names.rx.clone()),
        wanted: metrics,
    };
    let transmit = match counts.transmit {
        Transmit::Started => "started",
        Transmit::Stopped => "stopped",
        Transmit::Paused => "paused",
    };
    let row = row
        .name("transmit", transmit)
        .number("frames_tx", counts.sent.frames)
        .number("frames_rx", counts.received.frames)
        .number("bytes_tx", counts.sent.octets)
        .number("bytes_rx", counts.received.octets)
        .rate("frames_tx_rate", counts.sent_rate.frames)
        .rate("frames_rx_rate", counts.received_rate.frames);
    let row = rates(row, "tx", counts.sent_rate);
    let row = rates(row, "rx", counts.received_rate);
    let latency = counts.latency.filter(|_| names.latency);
    let latency = latency.map(|latency| {
        Builder::new("MetricLatency")
            .with("minimum_ns", decimal(latency.min))
            .with("maximum_ns", decimal(latency.max))
            .with("average_ns", decimal(latency.mean))
            .done()
    });
    row.builder
        .with("loss", loss(counts))
        .with_some("latency", latency.map(Value::Message))
        .done()
}

fn rates<'a>(row: Row<'a>, side: &str, rates: Rates) -> Row<'a> {
    let bits = rates.octets * 8.0;
    row.rate(
        &format!("{side}_l1_rate_bps"),
        LAYER_1.mul_add(rates.frames, rates.octets) * 8.0,
    )
    .rate(&format!("{side}_rate_bytes"), rates.octets)
    .rate(&format!("{side}_rate_bps"), bits)
    .rate(&format!("{side}_rate_kbps"), bits / 1e3)
    .rate(&format!("{side}_rate_mbps"), bits / 1e6)
}

/// Percent of the frames that left and have not arrived.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a percentage, and the model has f32"
)]
fn loss(counts: &FlowCounts) -> f32 {
    let (sent, received) = (counts.sent.frames, counts.received.frames);
    if sent == 0 {
        return 0.0;
    }
    // Frames that arrived since the other count was read are no negative loss.
    (100.0 * sent.saturating_sub(received) as f64 / sent as f64) as f32
}

#[expect(clippy::cast_precision_loss, reason = "exact to 104 days")]
fn decimal(nanos: u64) -> f64 {
    nanos as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::text;
    use crate::translate::Shortest;

    /// 1000 frames a second of 1024 octets with FCS, and 250 of them.
    const ALL: Rates = Rates {
        frames: 1000.0,
        octets: 1_024_000.0,
    };
    const QUARTER: Rates = Rates {
        frames: 250.0,
        octets: 256_000.0,
    };

    fn columns(row: &DynamicMessage) -> Vec<(String, f64)> {
        let json: serde_json::Value = serde_json::from_str(&text(row)).unwrap();
        let rates = json.as_object().unwrap().iter();
        let rates = rates.filter(|(name, _)| name.contains("_rate"));
        rates
            .map(|(name, value)| (name.clone(), value.as_f64().unwrap()))
            .collect()
    }

    fn expected(columns: &[(&str, f64)]) -> Vec<(String, f64)> {
        let columns = columns.iter();
        let mut columns: Vec<(String, f64)> = columns
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect();
        columns.sort_by(|a, b| a.0.cmp(&b.0));
        columns
    }

    #[test]
    fn rates_of_a_flow_are_octets_with_fcs_and_bits_of_layers_1_and_2() {
        let names = FlowNames {
            name: "f".into(),
            tx: "p".into(),
            rx: "q".into(),
            counted: true,
            latency: false,
            endless: true,
            shortest: Shortest {
                whole: 64,
                timed: false,
                headers: 18,
                frame: 64,
            },
        };
        let counts = FlowCounts {
            sent_rate: ALL,
            received_rate: QUARTER,
            ..FlowCounts::default()
        };
        assert_eq!(
            columns(&flow_row(&names, &counts, &[])),
            expected(&[
                ("frames_tx_rate", 1000.0),
                ("frames_rx_rate", 250.0),
                // 1024 octets, and 20 of preamble, delimiter and gap.
                ("tx_l1_rate_bps", 8_352_000.0),
                ("rx_l1_rate_bps", 2_088_000.0),
                ("tx_rate_bytes", 1_024_000.0),
                ("rx_rate_bytes", 256_000.0),
                ("tx_rate_bps", 8_192_000.0),
                ("rx_rate_bps", 2_048_000.0),
                ("tx_rate_kbps", 8192.0),
                ("rx_rate_kbps", 2048.0),
                ("tx_rate_mbps", 8.192),
                ("rx_rate_mbps", 2.048),
            ])
        );
    }

    #[test]
    fn rates_of_a_port_are_frames_and_octets_with_fcs() {
        let names = PortNames {
            name: "p".into(),
            location: "veth0".into(),
            capture: None,
        };
        let counts = PortCounts {
            sent_rate: ALL,
            received_rate: QUARTER,
            ..PortCounts::default()
        };
        assert_eq!(
            columns(&port_row(&names, &counts, &[])),
            expected(&[
                ("frames_tx_rate", 1000.0),
                ("frames_rx_rate", 250.0),
                ("bytes_tx_rate", 1_024_000.0),
                ("bytes_rx_rate", 256_000.0),
            ])
        );
        let one = ["frames_rx_rate".to_owned()];
        assert_eq!(
            columns(&port_row(&names, &counts, &one)),
            expected(&[("frames_rx_rate", 250.0)])
        );
    }
}
