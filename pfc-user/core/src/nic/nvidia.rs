//! NVIDIA's (Mellanox') drivers: drivers/net/ethernet/mellanox of Linux.

use super::{Drops, HARDWARE, Nic, Pattern, Receives, Xdp};
use crate::evidence::mac::Frames;

/// mlx5/core/en_stats.c and
/// Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst: `rx_prio[p]_pause`
/// counts packets, XOFF and XON, and is there only if PFC is enabled on p; duration and transitions
/// come from an XOFF alone. en_dcbnl.c: indications are the same as `rx_prio[p]_pause`.
pub(super) const MLX5_CORE: Nic = Nic {
    driver: "mlx5_core",
    receives: Receives::Keeps,
    counters: &[
        Pattern::new("rx_prio{}_pause", Frames::Either),
        Pattern::new("rx_prio{}_pause_duration", Frames::Effect),
        Pattern::new("rx_prio{}_pause_transition", Frames::Effect),
        Pattern::new("rx_global_pause", Frames::Either),
        Pattern::new("rx_pause_ctrl_phy", Frames::Either),
    ],
    counts_with_pfc_alone: true,
    indications: Some(Frames::Either),
    xdp: Xdp::Driver { since: (4, 9) },
    // en_stats.c, from memory. Frames for other addresses are steered away, and are not ours; nor
    // is what TLS drops. `rx_xdp_drop` and `rx{}_xdp_drop` count our own.
    drops: Drops {
        lost: &["rx_buff_alloc_err", "rx_wqe_err", "rx_if_down_packets"],
        not_lost: &[
            "rx_steer_missed_packets",
            "tx_tls_drop_no_sync_data",
            "tx_tls_drop_bypass_req",
            "tx{}_tls_drop_no_sync_data",
            "tx{}_tls_drop_bypass_req",
        ],
        ..Drops::BY_NAME
    },
    resets: true,
    sent_by_priority: Some("tx_prio{}_packets"),
    ..HARDWARE
};

/// mlx4/en_ethtool.c, main_strings; en_netdev.c refreshes them every quarter of a second
/// (STATS_DELAY).
pub(super) const MLX4_EN: Nic = Nic {
    driver: "mlx4_en",
    counters: &[
        Pattern::new("rx_pause_prio_{}", Frames::Either),
        Pattern::new("rx_pause_duration_prio_{}", Frames::Effect),
        Pattern::new("rx_pause_transition_prio_{}", Frames::Effect),
        Pattern::new("rx_pause", Frames::Either),
    ],
    counts_with_pfc_alone: true,
    indications: Some(Frames::Either),
    lag: 500_000_000,
    xdp: Xdp::Driver { since: (4, 8) },
    resets: true,
    sent_by_priority: Some("tx_prio_{}_packets"),
    ..HARDWARE
};
