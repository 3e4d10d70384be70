//! Offloads that matter to a measurement.

use serde::{Deserialize, Serialize};

/// An offload that changes what frames look like to the tester.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// VLAN tags leave beside the frame, not in it.
    TxVlan,
    /// VLAN tags are taken out of received frames, where XDP cannot see them.
    RxVlan,
    /// Generic receive offload: frames are merged.
    Gro,
    /// Generic segmentation offload: frames leave merged.
    Gso,
    /// TCP segmentation offload.
    Tso,
    /// Checksums of sent frames are left to the device.
    TxChecksum,
    /// Large receive offload: the device merges frames.
    Lro,
    /// Generic receive offload by the device.
    GroHardware,
    /// Frames that the MAC would keep for itself, PAUSE and PFC among them, come in too.
    RxAll,
}

impl Feature {
    /// Features by which the device merges frames. The kernel turns them off for a program in the
    /// stack, and not on again; some drivers turn them off for a program of their own, while they
    /// have it.
    pub const MERGING: [Self; 2] = [Self::Lro, Self::GroHardware];

    /// The name that `ethtool -k` has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TxVlan => "tx-vlan-offload",
            Self::RxVlan => "rx-vlan-offload",
            Self::Gro => "generic-receive-offload",
            Self::Gso => "generic-segmentation-offload",
            Self::Tso => "tcp-segmentation-offload",
            Self::TxChecksum => "tx-checksumming",
            Self::Lro => "large-receive-offload",
            Self::GroHardware => "rx-gro-hw",
            Self::RxAll => "rx-all",
        }
    }

    /// The name that `ethtool -K` takes.
    pub const fn ethtool_name(self) -> &'static str {
        match self {
            Self::TxVlan => "txvlan",
            Self::RxVlan => "rxvlan",
            Self::Gro => "gro",
            Self::Gso => "gso",
            Self::Tso => "tso",
            Self::TxChecksum => "tx",
            Self::Lro => "lro",
            Self::GroHardware => "rx-gro-hw",
            Self::RxAll => "rx-all",
        }
    }

    /// The name that the kernel has for its bit; `None` where it stands for several.
    pub const fn kernel_name(self) -> Option<&'static str> {
        match self {
            Self::TxVlan => Some("tx-vlan-hw-insert"),
            Self::RxVlan => Some("rx-vlan-hw-parse"),
            Self::Gro => Some("rx-gro"),
            Self::Gso => Some("tx-generic-segmentation"),
            Self::Lro => Some("rx-lro"),
            Self::GroHardware => Some("rx-gro-hw"),
            Self::RxAll => Some("rx-all"),
            Self::Tso | Self::TxChecksum => None,
        }
    }
}
