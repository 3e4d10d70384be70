//! Translation of a configuration of the model to a plan of the engine.
//!
//! All errors of a configuration are found at once, each by its path. A field that is set and not
//! understood is an error too: see [`crate::reader`].

mod captures;
mod devices;
mod duration;
mod flows;
mod headers;
mod layer1;
mod names;
mod options;
mod ports;
mod rate;
mod size;
mod update;

use prost_reflect::DynamicMessage;
use validator_core::engine::plan::Plan;

pub use devices::Address;
pub use flows::FlowNames;
pub use ports::{Capture, Format, PortNames};
pub use size::Shortest;
pub use update::{FlowChange, changes};

use crate::error::Refusal;
use crate::places::Places;
use crate::reader;

/// A configuration, understood.
#[derive(Debug, Default, PartialEq)]
pub struct Translated {
    /// Plan for the engine.
    pub plan: Plan,
    /// Names of the plan's ports.
    pub ports: Vec<PortNames>,
    /// Names of the plan's flows.
    pub flows: Vec<FlowNames>,
    /// Names of the plan's interfaces.
    pub addresses: Vec<Address>,
    /// Warnings about fields that were accepted and change nothing.
    pub warnings: Vec<String>,
}

/// Objects of a configuration that are out of this server's reach, and what they would need.
const OUT: [(&str, &str); 5] = [
    (
        "lags",
        "it needs link aggregation in the tester; use its ports one by one",
    ),
    ("lldp", "it needs an LLDP agent on the tester's ports"),
    (
        "stateful_flows",
        "it needs end points with state, such as RoCEv2 queue pairs",
    ),
    (
        "egress_only_tracking",
        "it needs counting by fields of received frames",
    ),
    ("events", "it needs measurement of convergence"),
];

/// Understands a configuration.
///
/// # Errors
///
/// All that is wrong in it, or not supported.
pub fn translate(config: &DynamicMessage, places: &Places) -> Result<Translated, Refusal> {
    let ((ports, interfaces, flows), warnings) = reader::read(config, |reader| {
        for (field, why) in OUT {
            reader.refuse(field, why);
        }
        options::read(reader);
        let mut names = names::Names::default();
        let mut ports = ports::read(reader, places, &mut names);
        layer1::read(reader, &mut ports, &mut names);
        captures::read(reader, &mut ports, &mut names);
        let interfaces = devices::read(reader, &ports, &mut names);
        let flows = flows::read(reader, &ports, &interfaces, &mut names);
        (ports, interfaces, flows)
    })?;
    let (plan_flows, flow_names) = flows.into_iter().unzip();
    let (plan_ports, port_names) = ports.into_plan();
    let (plan_interfaces, addresses) = interfaces.into_plan();
    Ok(Translated {
        plan: Plan {
            ports: plan_ports,
            flows: plan_flows,
            interfaces: plan_interfaces,
        },
        ports: port_names,
        flows: flow_names,
        addresses,
        warnings,
    })
}
