//! MACs of systems on a chip. Names of counters are from the Linux sources where it says so, else
//! from memory; what their MACs do with pause frames that come in is not known.

use super::{Drops, HARDWARE, Nic, Xdp};

/// drivers/net/ethernet/freescale/enetc/enetc_ethtool.c, rx_ring_stats (from the
/// sources): `Rx ring  0 XDP drops` counts our own.
pub(super) const ENETC: Nic = Nic {
    driver: "fsl_enetc",
    xdp: Xdp::Driver { since: (5, 13) },
    drops: Drops {
        lost: &["Rx ring {} alloc errors"],
        ..Drops::BY_NAME
    },
    ..HARDWARE
};

/// freescale/dpaa2/dpaa2-ethtool.c (from the sources): `[drv] xdp drop` counts our own;
/// `[hw] rx nobuffer discards` and `[drv] dequeue portal busy` stand beside it, of which the second
/// loses nothing. That the device filters a frame is no loss.
pub(super) const DPAA2: Nic = Nic {
    driver: "fsl_dpaa2_eth",
    xdp: Xdp::Driver { since: (5, 0) },
    drops: Drops {
        not_lost: &["[hw] rx filtered frames"],
        ..Drops::BY_NAME
    },
    ..HARDWARE
};

/// drivers/net/ethernet/stmicro/stmmac/stmmac_ethtool.c; `st_gmac` is what `ethtool -i` shows. The
/// MAC's own counters (stmmac_mmc) say of frames that found the FIFO full: overflow.
pub(super) const STMMAC: Nic = Nic {
    driver: "st_gmac",
    xdp: Xdp::Driver { since: (5, 13) },
    drops: Drops {
        lost: &[
            "mmc_rx_fifo_overflow",
            "rx_overflow_irq",
            "overflow_error",
            "rx_overflow",
        ],
        ..Drops::BY_NAME
    },
    resets: true,
    ..HARDWARE
};

/// drivers/net/ethernet/marvell/mvneta.c (from the sources): `rx_xdp_drop` counts our own.
pub(super) const MVNETA: Nic = Nic {
    driver: "mvneta",
    xdp: Xdp::Driver { since: (5, 5) },
    drops: Drops {
        lost: &["rx_overrun", "refill_errors", "skb_alloc_errors"],
        ..Drops::BY_NAME
    },
    ..HARDWARE
};

/// drivers/net/ethernet/engleder/tsnep_ethtool.c: `rx_dropped_frames` and `rx_{}_dropped_frames`,
/// `rx_fifo_overflow_errors`. No counter of a program's drops is known.
pub(super) const TSNEP: Nic = Nic {
    driver: "tsnep",
    xdp: Xdp::Driver { since: (6, 3) },
    drops: Drops {
        lost: &[
            "rx_fifo_overflow_errors",
            "rx_{}_fifo_overflow_errors",
            "rx_invalid_frame_errors",
        ],
        ..Drops::BY_NAME
    },
    ..HARDWARE
};
