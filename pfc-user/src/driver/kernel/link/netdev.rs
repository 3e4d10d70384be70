//! XDP features of an interface: the kernel's `netdev` family (Linux 6.3 and newer).

use std::io;

use validator_core::evidence::xdp::XdpFeatures;

use super::genetlink::query;
use super::netlink::{attribute, find_u64};

// `linux/netdev.h`.
const CMD_DEV_GET: u8 = 1;
const A_DEV_IFINDEX: u16 = 1;
const A_DEV_XDP_FEATURES: u16 = 3;

/// The features of the interface with that index in the calling thread's namespace. `ENOENT` on
/// kernels before 6.3.
pub fn xdp_features(index: u32) -> io::Result<XdpFeatures> {
    let answer = query(
        "netdev",
        CMD_DEV_GET,
        attribute(A_DEV_IFINDEX, &index.to_ne_bytes()),
    )?;
    find_u64(&answer, A_DEV_XDP_FEATURES)
        .map(XdpFeatures)
        .ok_or_else(|| io::Error::other("netdev: the answer has no XDP features"))
}

/// Returns true if the interface with that index in the calling thread's network namespace takes
/// frames of XDP; `None` where the kernel does not tell. A veth does where its other end has a
/// program or GRO.
pub fn takes_frames(index: u32) -> io::Result<Option<bool>> {
    match xdp_features(index) {
        Ok(features) => Ok(Some(features.has(XdpFeatures::NDO_XMIT))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
