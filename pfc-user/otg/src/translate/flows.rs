//! Flows: what is sent from where to where.

mod ends;
mod payload;

use pfc_ebpf::flow_stamp::Form;
use validator_core::engine::plan::{End, Flow, Metrics, PortIndex};

use super::devices::Interfaces;
use super::names::Names;
use super::ports::Ports;
use super::{duration, headers, rate, size};
use crate::reader::Reader;

/// Names of a flow, and properties that requests depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowNames {
    /// Name.
    pub name: String,
    /// The sending port.
    pub tx: String,
    /// The receiving ports, with commas between.
    pub rx: String,
    /// True if it is in flow metrics.
    pub counted: bool,
    /// True if its latency is, too.
    pub latency: bool,
    /// True if nothing but an order ends it.
    pub endless: bool,
    /// Shortest frame of the flow.
    pub shortest: size::Shortest,
}

/// Reads the flows.
pub fn read(
    config: &Reader<'_>,
    ports: &Ports,
    interfaces: &Interfaces,
    names: &mut Names,
) -> Vec<(Flow, FlowNames)> {
    let flows = config.children("flows");
    let read = flows
        .iter()
        .filter_map(|flow| read_flow(flow, ports, interfaces, names));
    read.collect()
}

/// Reads a flow; `None` only with an error.
fn read_flow(
    reader: &Reader<'_>,
    ports: &Ports,
    interfaces: &Interfaces,
    names: &mut Names,
) -> Option<(Flow, FlowNames)> {
    let name = names.take(reader).to_owned();
    let needs = "it needs counting by fields of received frames";
    reader.refuse("egress_packet", needs);
    let mut headers = headers::read(reader);
    payload::read(reader, &mut headers.packet);
    let ends = ends::read(reader, ports, interfaces, &mut headers);
    let mut metrics = metrics(reader, &headers);
    let mut shortest = size::Shortest::of(&headers.packet, metrics);
    let length = size::read(reader, shortest);
    let rate = rate::read(reader);
    let schedule = duration::read(reader);
    let (ends, length, rate, schedule) = (ends?, length?, rate?, schedule?);
    if metrics.stamp.is_some() {
        let (form, from_now_on) = shortest.counted(&length);
        (metrics.stamp, shortest) = (Some(form), from_now_on);
        if form == Form::Short {
            reader.warn("size", size::SHORT);
        }
    }
    let names = FlowNames {
        name: name.clone(),
        tx: ports.name(ends.from).to_owned(),
        rx: joined(ports, &ends.to),
        counted: metrics.stamp.is_some(),
        latency: metrics.latency,
        endless: matches!(schedule.end, End::Never | End::Bursts { bursts: None, .. }),
        shortest,
    };
    let flow = Flow {
        name,
        from: ends.from,
        to: ends.to,
        queue: headers.queue,
        packet: headers.packet,
        length,
        rate,
        schedule,
        metrics,
        next_hops: ends.next_hops,
    };
    Some((flow, names))
}

fn joined(ports: &Ports, list: &[PortIndex]) -> String {
    let names: Vec<&str> = list.iter().map(|port| ports.name(*port)).collect();
    names.join(",")
}

/// Reads which counts a flow has.
fn metrics(flow: &Reader<'_>, headers: &headers::Headers) -> Metrics {
    let Some(reader) = flow.child("metrics") else {
        return Metrics::default();
    };
    let count = reader.truth("enable").unwrap_or(false);
    // The loss is always there.
    reader.truth("loss");
    if reader.truth("timestamps") == Some(true) {
        reader.warn(
            "timestamps",
            "changes nothing: times of single frames are not kept; ask for latency",
        );
    }
    reader.refuse("rx_tx_ratio", "divide frames_rx by frames_tx");
    if let Some(tags) = reader.child("predefined_metric_tags") {
        tags.refuse_true("rx_name", "make a flow for each port");
    }
    let latency = latency(&reader);
    if latency && !count {
        reader.error(
            "latency",
            "is enabled, but the metrics of this flow are not: enable them",
        );
    }
    let mut list = headers.packet.headers.iter();
    let control = list.any(|header| header.protocol.is_pause());
    if latency && control {
        reader.warn(
            "latency",
            "changes nothing: pause frames have no room for a stamp, which it needs",
        );
    }
    let latency = latency && !control;
    // A short stamp has no time.
    let least = if latency || headers.packet.needs_whole_stamp() {
        Form::Whole
    } else {
        Form::Short
    };
    Metrics {
        stamp: count.then_some(least),
        latency,
    }
}

fn latency(reader: &Reader<'_>) -> bool {
    let Some(latency) = reader.child("latency") else {
        return false;
    };
    let enabled = latency.truth("enable").unwrap_or(false);
    match latency.enumeration("mode").as_deref() {
        None | Some("store_forward") => {}
        Some("cut_through") if enabled => latency.warn(
            "mode",
            "cut_through is measured as store_forward, until the whole frame is there: it is less \
             by the time that a frame takes on the line",
        ),
        Some(other) if enabled => {
            latency.error(
                "mode",
                format!("{other} is not supported: store_forward is"),
            );
        }
        Some(_) => {}
    }
    enabled
}
