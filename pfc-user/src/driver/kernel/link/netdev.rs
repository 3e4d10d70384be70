//! What an interface can do with XDP: the kernel's `netdev` family (Linux 6.3 and newer).

use std::io;

use serde::{Deserialize, Serialize};

use super::genetlink::{Family, query};
use super::netlink::{attribute, find_u64};

// `linux/netdev.h`.
const CMD_DEV_GET: u8 = 1;
const A_DEV_IFINDEX: u16 = 1;
const A_DEV_XDP_FEATURES: u16 = 3;

#[derive(Clone, Debug)]
struct Netdev;

impl Family for Netdev {
    const NAME: &'static str = "netdev";
}

/// The bits of `enum netdev_xdp_act`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct XdpFeatures(pub u64);

impl XdpFeatures {
    /// Programs run in the driver, with XDP_DROP, XDP_PASS and XDP_TX.
    pub const BASIC: u64 = 1;
    /// XDP_REDIRECT out of a program of this interface.
    pub const REDIRECT: u64 = 1 << 1;
    /// Frames can be redirected to this interface.
    pub const NDO_XMIT: u64 = 1 << 2;
    /// The bits' names, lowest first.
    const NAMES: [&str; 7] = [
        "basic",
        "redirect",
        "ndo-xmit",
        "xsk-zerocopy",
        "hw-offload",
        "rx-sg",
        "ndo-xmit-sg",
    ];

    /// Whether all bits of `feature` are there.
    pub const fn has(self, feature: u64) -> bool {
        self.0 & feature == feature
    }

    /// The names of those that are there, as the kernel's documentation has them.
    pub fn names(self) -> Vec<&'static str> {
        Self::NAMES
            .iter()
            .enumerate()
            .filter(|(bit, _)| self.0 & 1 << bit != 0)
            .map(|(_, name)| *name)
            .collect()
    }
}

/// The features of the interface with that index in the calling thread's namespace. `ENOENT` on kernels before 6.3.
pub fn xdp_features(index: u32) -> io::Result<XdpFeatures> {
    let answer = query::<Netdev>(CMD_DEV_GET, attribute(A_DEV_IFINDEX, &index.to_ne_bytes()))?;
    find_u64(&answer, A_DEV_XDP_FEATURES)
        .map(XdpFeatures)
        .ok_or_else(|| io::Error::other("netdev: the answer has no XDP features"))
}

/// Whether the interface with that index in the calling thread's network namespace takes frames of XDP; `None` where the kernel
/// does not tell. A veth does where its other end has a program or GRO.
pub fn takes_frames(index: u32) -> io::Result<Option<bool>> {
    match xdp_features(index) {
        Ok(features) => Ok(Some(features.has(XdpFeatures::NDO_XMIT))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_have_names() {
        let features = XdpFeatures(0b100011);
        assert!(
            features.has(XdpFeatures::BASIC | XdpFeatures::REDIRECT)
                && !features.has(XdpFeatures::NDO_XMIT)
        );
        assert_eq!(features.names(), ["basic", "redirect", "rx-sg"]);
    }
}
