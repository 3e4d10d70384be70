//! Links without a MAC of their own: nothing counts pause frames.

use super::{Drops, HARDWARE, Nic, Receives, Xdp};

/// drivers/net/veth.c. Every frame that the other end sends is the program's to see.
pub(super) const VETH: Nic = Nic {
    receives: Receives::PassesOn,
    xdp: Xdp::Driver { since: (4, 19) },
    counts_untaken: true,
    ..without_phy("veth")
};

/// drivers/net/tun.c, tun_xdp_act of Linux 6.18: each XDP_DROP in the driver is `rx_dropped` as
/// well. Nothing is said of pause frames: what a tap carries is its user's affair.
pub(super) const TUN: Nic = Nic {
    own_drops: Some("rx_dropped"),
    xdp: Xdp::Driver { since: (4, 14) },
    polls_queues: false,
    ..without_phy("tun")
};

/// drivers/net/virtio_net.c. The counter of a queue's drops counts those of a program as well:
/// `rx_queue_{}_drops`, and since Linux 6.10 `rx{}_drops`, with a sum without a number beside the
/// queues' (names from the sources, the version from memory). Seen: rx-gro-hw goes off at attach.
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

/// drivers/net/vmxnet3/vmxnet3_ethtool.c, vmxnet3_rq_dev_stats and vmxnet3_rq_driver_stats (from
/// the sources): names stand once for each queue, with spaces, without its number; `xdp drops` was
/// seen twice. Seen: LRO goes off at attach, and programs run in the driver on Linux 6.12, in the
/// stack on 6.1; that this came with 6.6 is from memory.
pub(super) const VMXNET3: Nic = Nic {
    receives: Receives::ByHost,
    xdp: Xdp::Driver { since: (6, 6) },
    stops_merging: true,
    drops: Drops {
        lost: &["pkts rx OOB", "pkts rx err", "rx buf alloc fail"],
        ..Drops::BY_NAME
    },
    resets: true,
    ..without_phy("vmxnet3")
};

/// drivers/net/ethernet/amazon/ena/ena_ethtool.c, ena_stats_rx_strings (from the sources):
/// `queue_{}_rx_xdp_drop` counts our own. That `rx_overruns` are losses is from memory, and so are
/// the names before and behind the queue's number.
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
    resets: true,
    ..HARDWARE
};

/// The carrier of these goes and comes by order alone, and is as it reads when the order is done.
const fn without_phy(driver: &'static str) -> Nic {
    Nic {
        driver,
        carrier_hold: 0,
        filter_pause: 0,
        ..HARDWARE
    }
}
