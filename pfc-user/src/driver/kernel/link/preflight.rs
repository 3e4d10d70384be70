//! Everything about an interface that a measurement depends on. Nothing is changed.

use std::fs;

use rtnetlink::packet_route::link::LinkFlags;
use validator_core::evidence::preflight::Facts;
use validator_core::nic;

use super::{
    LinkError, Namespace, attached, dcb, ethtool, features, find, mac, netdev, pause, state,
};

/// The facts about `interface`. An error when it does not exist, or the namespace cannot be
/// entered; what the driver does not tell is left open.
pub fn examine(namespace: &Namespace, interface: &str) -> Result<Facts, LinkError> {
    let state = state(namespace, interface)?;
    let flags = find(namespace, interface)?.header.flags;
    let counters = nic::counters(&mac::read(namespace, interface)?);
    let facts = namespace.run(|| {
        let driver = ethtool::identity(interface).unwrap_or_default();
        Facts {
            interface: interface.to_owned(),
            namespace: namespace.name().map(str::to_owned),
            rdma: rdma_devices(&driver.bus),
            driver,
            kind: state.kind,
            up: state.up,
            carrier: state.carrier,
            speed: state.speed,
            mtu: state.mtu,
            queues: ethtool::queues(interface).ok(),
            promiscuous: flags.contains(LinkFlags::Promisc),
            xdp_features: netdev::xdp_features(state.index).ok(),
            xdp_attached: attached::program(state.index)
                .ok()
                .flatten()
                .map(|program| program.to_string()),
            features: features::read(interface).unwrap_or_default(),
            features_with_program: Vec::new(),
            pause: pause::pause(interface).ok(),
            pfc: dcb::pfc(interface).ok().flatten(),
            mac_counters: counters
                .into_iter()
                .map(|(counter, _)| counter.name)
                .collect(),
        }
    })?;
    Ok(facts)
}

/// RDMA devices of the PCI function, such as `mlx5_0`. The folders of PCI devices are the same in
/// every network namespace.
fn rdma_devices(bus: &str) -> Vec<String> {
    if bus.is_empty() || bus.contains('/') {
        return Vec::new();
    }
    let devices = fs::read_dir(format!("/sys/bus/pci/devices/{bus}/infiniband"))
        .into_iter()
        .flatten()
        .flatten();
    let mut names: Vec<String> = devices
        .map(|device| device.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
