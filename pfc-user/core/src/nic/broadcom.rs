//! Broadcom's drivers: drivers/net/ethernet/broadcom of Linux.

use super::{Drops, HARDWARE, Nic, Pattern, Xdp};
use crate::evidence::mac::Frames;

/// bnxt/bnxt_ethtool.c, bnxt_port_stats_arr: `rx_pfc_ena_frames` counts frames that have the
/// priority's bit set, XOFF and XON; bnxt_port_stats_ext_arr: duration and transitions come from an
/// XOFF alone. bnxt_dcb.c: indications are `rx_pfc_ena_frames`. bnxt.h, BNXT_DEF_STATS_COAL_TICKS:
/// the device hands them over once a second.
pub(super) const BNXT_EN: Nic = Nic {
    driver: "bnxt_en",
    counters: &[
        Pattern::new("rx_pfc_ena_frames_pri{}", Frames::Either),
        Pattern::new("pfc_pri{}_rx_duration_us", Frames::Effect),
        Pattern::new("pfc_pri{}_rx_transitions", Frames::Effect),
        Pattern::new("rx_pause_frames", Frames::Either),
    ],
    indications: Some(Frames::Either),
    lag: 2_000_000_000,
    xdp: Xdp::Driver { since: (4, 11) },
    // bnxt_rx_sw_stats_str and bnxt_cmn_sw_stats_str, behind the ring's number, in the sources:
    // interrupts that are missed lose no frame.
    drops: Drops {
        lost: &["[{}]: rx_buf_errors"],
        not_lost: &["[{}]: missed_irqs"],
        ..Drops::BY_NAME
    },
    resets: true,
    // bnxt_ethtool.c, bnxt_tx_pkts_pri_arr.
    sent_by_priority: Some("tx_packets_pri{}"),
    ..HARDWARE
};
