//! Metrics of ports and flows.

use prost_reflect::{DynamicMessage, Value};
use validator_core::engine::plan::{FlowIndex, PortIndex};
use validator_core::engine::snapshot::{FlowCounts, PortCounts, Rates, Snapshot, Transmit};

use super::{Session, read};
use crate::error::Refusal;
use crate::model::{Builder, IntoValue};
use crate::reader::Reader;
use crate::translate::{FlowNames, PortNames};

/// Octets of a frame that layer 1 adds: preamble, delimiter and least gap (IEEE 802.3, 4.2.3).
const LAYER_1: f64 = 20.0;

/// What is asked for.
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
        let Some(asked) = asked else {
            return Err(Refusal::internal("a request without a choice was taken"));
        };
        let snapshot = self.engine.snapshot()?;
        Ok(match asked {
            Asked::Ports(ports, columns) => self.port_metrics(&snapshot, &ports, &columns),
            Asked::Flows(flows, metrics) => self.flow_metrics(&snapshot, &flows, &metrics),
        })
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
            other => {
                reader.refuse_choice(other, "port and flow are");
                None
            }
        }
    }

    fn port_metrics(
        &self,
        snapshot: &Snapshot,
        ports: &[PortIndex],
        columns: &[String],
    ) -> DynamicMessage {
        let rows = ports.iter().filter_map(|port| {
            let counts = snapshot.ports.get(port.0)?;
            Some(port_row(&self.force.ports[port.0], counts, columns))
        });
        Builder::new("MetricsResponse")
            .with_name("choice", "port_metrics")
            .with_messages("port_metrics", rows.collect())
            .done()
    }

    fn flow_metrics(
        &self,
        snapshot: &Snapshot,
        flows: &[FlowIndex],
        metrics: &[String],
    ) -> DynamicMessage {
        let rows = flows.iter().filter_map(|flow| {
            let names = &self.force.flows[flow.0];
            let counts = snapshot.flows.get(flow.0)?;
            names.counted.then(|| flow_row(names, counts, metrics))
        });
        Builder::new("MetricsResponse")
            .with_name("choice", "flow_metrics")
            .with_messages("flow_metrics", rows.collect())
            .done()
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
    // What arrived since the other count was read is not negative loss.
    (100.0 * sent.saturating_sub(received) as f64 / sent as f64) as f32
}

#[expect(clippy::cast_precision_loss, reason = "exact to 104 days")]
fn decimal(nanos: u64) -> f64 {
    nanos as f64
}
