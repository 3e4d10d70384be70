//! Configurations, and what is made of them.

use serde_json::{Value as Json, json};
use validator_otg::error::Refusal;
use validator_otg::json::parse;
use validator_otg::translate::{Translated, translate};

use crate::places::places;

/// Translation of a configuration.
pub fn translated(config: &Json) -> Result<Translated, Refusal> {
    translate(&parse("Config", config.to_string().as_bytes())?, &places())
}

/// Two ports and one flow with these fields beside its ports.
pub fn with_flow(fields: Json) -> Json {
    let mut flow = json!({
        "name": "f",
        "tx_rx": {"choice": "port", "port": {"tx_name": "p1", "rx_names": ["p2"]}},
        "packet": [{"choice": "ethernet", "ethernet": {}}],
    });
    for (name, value) in fields.as_object().unwrap() {
        flow[name] = value.clone();
    }
    json!({
        "ports": [{"name": "p1", "location": "veth0"}, {"name": "p2", "location": "veth1"}],
        "flows": [flow],
    })
}
