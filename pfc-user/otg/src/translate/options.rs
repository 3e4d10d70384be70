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
        ports.refuse_true(
            "data_integrity",
            "it needs counts of ports by whole payloads; /counters has the corrupt frames of each \
             flow",
        );
        if let Some(mode) = ports.child("frame_ordering_mode") {
            let needs = "it needs ports that send in turn with each other; no_ordering is";
            mode.chooses("no_ordering", needs);
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
    if let Some(flows) = options.child("flow_options") {
        flows.refuse_true(
            "packet_loss_duration",
            "it needs times of single frames; divide the frames that are lost by the rate",
        );
    }
}
