//! Links without a MAC of their own: nothing counts pause frames.

use super::{Drops, HARDWARE, Nic, Receives, Xdp};

/// drivers/net/veth.c. Every frame that the other end sends is the program's to see.
pub(super) const VETH: Nic = Nic {
    receives: Receives::PassesOn,
    xdp: Xdp::Driver { since: (4, 19) },
    ..without_phy("veth")
};

/// drivers/net/tun.c, tun_xdp_act of Linux 6.18: each XDP_DROP in the driver is `rx_dropped` as well.
/// Nothing is said of pause frames: what a tap carries is its user's affair.
pub(super) const TUN: Nic = Nic {
    own_drops: Some("rx_dropped"),
    xdp: Xdp::Driver { since: (4, 14) },
    ..without_phy("tun")
};

/// drivers/net/virtio_net.c. The counter of a queue's drops counts those of a program as well: seen as
/// `rx_queue_{}_drops` on Linux 6.1 and 6.12; `rx{}_drops`, with a sum without a number beside the
/// queues', is from memory of later versions. Seen: rx-gro-hw goes off at attach.
pub(super) const VIRTIO_NET: Nic = Nic {
    receives: Receives::ByHost,
    xdp: Xdp::Driver { since: (4, 10) },
    stops_merging: true,
    drops: Drops {
        with_own: &[
            ("rx_queue_{}_drops", "rx_queue_{}_xdp_drops"),
            ("rx{}_drops", "rx{}_xdp_drops"),
            ("rx_drops", "rx_xdp_drops"),
        ],
        ..Drops::BY_NAME
    },
    ..without_phy("virtio_net")
};

/// drivers/net/vmxnet3/vmxnet3_ethtool.c: names stand once for each queue, with spaces, without its
/// number; seen: `xdp drops`, twice. From memory: `drv dropped rx total` is of the driver, and the
/// device counts `pkts rx OOB` for want of buffers. Seen: LRO goes off at attach, and programs run in the driver
/// on 6.12, in the stack on 6.1; that this came with 6.6 is from memory.
pub(super) const VMXNET3: Nic = Nic {
    receives: Receives::ByHost,
    xdp: Xdp::Driver { since: (6, 6) },
    stops_merging: true,
    drops: Drops {
        lost: &["pkts rx OOB", "pkts rx err", "rx buf alloc fail"],
        ..Drops::BY_NAME
    },
    ..without_phy("vmxnet3")
};

/// drivers/net/ethernet/amazon/ena/ena_ethtool.c, from memory: `queue_{}_rx_xdp_drop` counts our own.
/// `rx_overruns` of the device, and descriptors that a queue could not use, are losses.
pub(super) const ENA: Nic = Nic {
    driver: "ena",
    receives: Receives::ByHost,
    xdp: Xdp::Driver { since: (5, 6) },
    drops: Drops {
        lost: &[
            "rx_overruns",
            "queue_{}_rx_bad_desc_num",
            "queue_{}_rx_bad_req_id",
        ],
        ..Drops::BY_NAME
    },
    ..HARDWARE
};

/// The carrier of these goes and comes by order alone, and is as it reads when the order is done.
const fn without_phy(driver: &'static str) -> Nic {
    Nic {
        driver,
        settles: 0,
        deaf: 0,
        ..HARDWARE
    }
}
