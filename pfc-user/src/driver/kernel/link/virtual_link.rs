//! Links of our own: pairs that join two namespaces like a cable, and a bridge.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rtnetlink::packet_route::link::{BridgeStpState, InfoData, InfoVeth, LinkMessage};
use rtnetlink::{LinkBridge, LinkUnspec, LinkVeth};

use super::{Feature, LinkError, Namespace, find, netlink, set_feature, wait_for_carrier};

/// A pair has carrier as soon as both ends are up; the kernel does the rest on a work queue.
const CARRIER: Duration = Duration::from_secs(5);

/// One end of a pair.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// Its namespace.
    pub namespace: &'a Namespace,
    /// Its name.
    pub name: &'a str,
    /// Its Ethernet address.
    pub mac: [u8; 6],
}

impl<'a> End<'a> {
    /// An end of that name and Ethernet address in `namespace`.
    pub const fn new(namespace: &'a Namespace, name: &'a str, mac: [u8; 6]) -> Self {
        Self {
            namespace,
            name,
            mac,
        }
    }
}

/// Makes a veth pair that carries frames as they are and none of the kernel's own: no IPv6, no ARP,
/// no offload that merges frames or takes VLAN tags out of them. Returns when frames can pass.
/// `mtu` in octets.
pub fn create_veth(a: End, b: End, mtu: u32) -> Result<(), LinkError> {
    let peer = LinkUnspec::new_with_name(b.name)
        .address(b.mac.to_vec())
        .mtu(mtu)
        .setns_by_fd(b.namespace.as_fd().as_raw_fd())
        .build();
    let pair = LinkVeth::new(a.name, b.name)
        .address(a.mac.to_vec())
        .mtu(mtu)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
        .build();
    let what = format!(
        "cannot make the veth pair of {} in {} and {} in {}",
        a.name, a.namespace, b.name, b.namespace
    );
    netlink(a.namespace, &what, async |handle, _| {
        handle.link().add(pair).execute().await
    })?;
    for end in [a, b] {
        quieten(end.namespace, end.name)?;
        for feature in [
            Feature::TxVlan,
            Feature::RxVlan,
            Feature::Gro,
            Feature::Tso,
            Feature::Gso,
            Feature::TxChecksum,
        ] {
            set_feature(end.namespace, end.name, feature, false)?;
        }
        set_up(end.namespace, end.name)?;
    }
    for end in [a, b] {
        wait_for_carrier(end.namespace, end.name, CARRIER)?;
    }
    Ok(())
}

/// Makes a Linux bridge over `ports` in their namespace: a device that knows nothing of PFC. No
/// STP, no multicast snooping, no VLAN filtering (off by default; not all kernels know the option).
/// Returns when it forwards.
pub fn create_bridge(namespace: &Namespace, name: &str, ports: &[&str]) -> Result<(), LinkError> {
    let bridge = LinkBridge::new(name)
        .down()
        .stp_state(BridgeStpState::Disabled)
        .mcast_snooping(false)
        .build();
    netlink(
        namespace,
        &format!("cannot make the bridge {name} in {namespace}"),
        async |handle, _| handle.link().add(bridge).execute().await,
    )?;
    quieten(namespace, name)?;
    let index = find(namespace, name)?.header.index;
    for port in ports {
        change(
            namespace,
            port,
            LinkUnspec::new_with_name(port).controller(index).build(),
        )?;
    }
    set_up(namespace, name)?;
    wait_for_carrier(namespace, name, CARRIER)
}

fn change(namespace: &Namespace, interface: &str, message: LinkMessage) -> Result<(), LinkError> {
    netlink(
        namespace,
        &format!("cannot configure {interface} in {namespace}"),
        async |handle, _| handle.link().change(message).execute().await,
    )
}

fn set_up(namespace: &Namespace, interface: &str) -> Result<(), LinkError> {
    let link = LinkUnspec::new_with_name(interface);
    let up = link.arp(false).multicast(false).up().build();
    change(namespace, interface, up)
}

/// No IPv6: its neighbour and router discovery would put frames of the kernel on the wire.
fn quieten(namespace: &Namespace, interface: &str) -> Result<(), LinkError> {
    let path = format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6");
    match namespace.run(|| std::fs::write(&path, "1"))? {
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|error| LinkError::system(format!("cannot write {path}"), error)),
    }
}
