//! Options of a configuration.

use crate::reader::Reader;

/// Reads what changes nothing here, and refuses the rest.
pub fn read(config: &Reader<'_>) {
    let Some(options) = config.child("options") else {
        return;
    };
    if let Some(ports) = options.child("port_options") {
        // Clients send false by themselves. The last configuration has its ports in any case.
        ports.truth("location_preemption");
        if ports.truth("data_integrity") == Some(true) {
            ports.error("data_integrity", "is not supported: remove it");
        }
    }
    if let Some(protocols) = options.child("protocol_options") {
        // The model's default is true, which is what happens.
        if protocols.truth("auto_start_all") == Some(false) {
            protocols.warn(
                "auto_start_all",
                "changes nothing: addresses are answered for from the configuration on",
            );
        }
    }
    if let Some(flows) = options.child("flow_options")
        && flows.truth("packet_loss_duration") == Some(true)
    {
        flows.error("packet_loss_duration", "is not supported: remove it");
    }
}
