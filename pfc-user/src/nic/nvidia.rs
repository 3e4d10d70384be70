//! NVIDIA's (Mellanox') drivers: drivers/net/ethernet/mellanox of Linux.

use super::{Nic, Pattern, Receives};
use crate::evidence::mac::Frames;

/// mlx5/core/en_stats.c and Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst: `rx_prio[p]_pause` counts
/// packets, XOFF and XON, and is there only if PFC is enabled on p; duration and transitions come from an XOFF alone. en_dcbnl.c:
/// indications are the same as `rx_prio[p]_pause`.
pub(super) const MLX5_CORE: Nic = Nic {
    driver: "mlx5_core",
    receives: Receives::Keeps,
    sends: true,
    counters: &[
        Pattern::new("rx_prio{}_pause", Frames::Either),
        Pattern::new("rx_prio{}_pause_duration", Frames::Effect),
        Pattern::new("rx_prio{}_pause_transition", Frames::Effect),
        Pattern::new("rx_global_pause", Frames::Either),
        Pattern::new("rx_pause_ctrl_phy", Frames::Either),
    ],
    counts_with_pfc_alone: true,
    indications: Some(Frames::Either),
    lag: 0,
};

/// mlx4/en_ethtool.c, main_strings; en_netdev.c refreshes them every quarter of a second (STATS_DELAY).
pub(super) const MLX4_EN: Nic = Nic {
    driver: "mlx4_en",
    receives: Receives::Unknown,
    sends: true,
    counters: &[
        Pattern::new("rx_pause_prio_{}", Frames::Either),
        Pattern::new("rx_pause_duration_prio_{}", Frames::Effect),
        Pattern::new("rx_pause_transition_prio_{}", Frames::Effect),
        Pattern::new("rx_pause", Frames::Either),
    ],
    counts_with_pfc_alone: true,
    indications: Some(Frames::Either),
    lag: 500_000_000,
};
