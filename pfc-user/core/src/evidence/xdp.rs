//! Modes of attaching XDP programs, and the XDP features of an interface.

use serde::{Deserialize, Serialize};

/// Mode of attaching XDP programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XdpMode {
    /// The program runs in the driver where it can, else in the generic path.
    #[default]
    Auto,
    /// The program runs in the driver, before the kernel makes an skb.
    Driver,
    /// The program runs in the generic path: in the stack, on every kind of interface.
    Skb,
}

impl XdpMode {
    /// The word in testbeds, evidence and reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Driver => "driver",
            Self::Skb => "skb",
        }
    }
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

    /// True if all bits of `feature` are set.
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
