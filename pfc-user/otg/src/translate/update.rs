//! Changes of flows while they are sent.

use prost_reflect::DynamicMessage;
use validator_core::engine::Change;
use validator_core::engine::plan::FlowIndex;

use super::flows::FlowNames;
use super::{rate, size};
use crate::error::Refusal;
use crate::reader::{self, Reader};

/// A change of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowChange {
    /// The flow.
    pub flow: FlowIndex,
    /// Change to make.
    pub change: Change,
    /// The field of the configuration with it, and its new value.
    pub field: (&'static str, Option<DynamicMessage>),
}

/// Understands an update of a configuration with these flows; returns warnings, too.
///
/// # Errors
///
/// All that is wrong in it, or not supported.
pub fn changes(
    update: &DynamicMessage,
    flows: &[FlowNames],
) -> Result<(Vec<FlowChange>, Vec<String>), Refusal> {
    reader::read(update, |reader| {
        let mut found = Vec::new();
        if reader.chooses("flows", "flows are") {
            of_flows(&reader.object("flows"), flows, &mut found);
        }
        found
    })
}

fn of_flows(reader: &Reader<'_>, flows: &[FlowNames], found: &mut Vec<FlowChange>) {
    let properties = reader.enumerations("property_names");
    if properties.is_empty() {
        reader.error("property_names", "is empty: name rate or size");
    }
    for property in &properties {
        if !["rate", "size"].contains(&&**property) {
            reader.error("property_names", format!("\"{property}\" is not supported"));
        }
    }
    reader.leave("flows");
    for flow in reader.children("flows") {
        let Some(name) = flow.required("name") else {
            continue;
        };
        let Some(place) = flows.iter().position(|known| known.name == name) else {
            flow.error("name", format!("is \"{name}\", which is no flow in force"));
            continue;
        };
        let named = |name: &str| properties.iter().any(|property| property == name);
        let mut add = |change: Option<Change>, field: &'static str| {
            if let Some(change) = change {
                let value = flow
                    .child(field)
                    .and_then(|reader| reader.message().cloned());
                found.push(FlowChange {
                    flow: FlowIndex(place),
                    change,
                    field: (field, value),
                });
            }
        };
        if named("rate") {
            add(rate::read(&flow).map(Change::Rate), "rate");
        }
        if named("size") {
            let length = size::read(&flow, flows[place].shortest);
            add(length.map(Change::Length), "size");
        }
    }
}
