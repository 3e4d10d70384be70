//! Options of a configuration.

use crate::reader::Reader;

/// Reads what changes nothing here, and refuses the rest.
pub fn read(config: &Reader<'_>) {
    let Some(options) = config.child("options") else {
        return;
    };
    if let Some(ports) = options.child("port_options") {
        // Ports are taken over in any case: nobody else can have them.
        ports.truth("location_preemption");
        if ports.truth("data_integrity") == Some(true) {
            ports.error("data_integrity", "is not supported: remove it");
        }
    }
    if let Some(protocols) = options.child("protocol_options") {
        // Addresses are answered for from the configuration on.
        protocols.truth("auto_start_all");
    }
    if let Some(flows) = options.child("flow_options")
        && flows.truth("packet_loss_duration") == Some(true)
    {
        flows.error("packet_loss_duration", "is not supported: remove it");
    }
}
