//! Intel's drivers: drivers/net/ethernet/intel of Linux.

use super::{Drops, HARDWARE, Nic, Pattern, Receives, Xdp};
use crate::evidence::mac::Frames;

const XOFF: Frames = Frames::Xoff;
const XON: Frames = Frames::Xon;

/// ixgbe/ixgbe_ethtool.c (`rx_pb_%u_pxoff`); ixgbe_main.c, ixgbe_update_xoff_received: read only
/// while PFC is enabled, by user priority; ixgbe_dcb_nl.c, ixgbe_dcbnl_ieee_getpfc: what was
/// received stands in `requests`.
pub(super) const IXGBE: Nic = Nic {
    driver: "ixgbe",
    receives: Receives::Keeps,
    counters: &[
        Pattern::new("rx_pb_{}_pxoff", XOFF),
        Pattern::new("rx_pb_{}_pxon", XON),
        Pattern::new("rx_flow_control_xoff", XOFF),
        Pattern::new("rx_flow_control_xon", XON),
    ],
    counts_with_pfc_alone: true,
    xdp: Xdp::Driver { since: (4, 12) },
    // ixgbe_gstrings_stats, from memory: `rx_dropped` is that of dev_get_stats(), to which the
    // device adds nothing, and the stack the frames that no protocol wanted. What the device lost
    // is `rx_missed_errors` and `rx_no_dma_resources`.
    drops: Drops {
        lost: &["rx_no_dma_resources"],
        not_lost: &["rx_dropped"],
        ..Drops::BY_NAME
    },
    resets: true,
    ..HARDWARE
};

/// igc/igc_ethtool.c, igc_gstrings_stats.
pub(super) const IGC: Nic = Nic {
    resets: true,
    ..gigabit("igc", Xdp::Driver { since: (5, 13) })
};
/// igb/igb_ethtool.c, igb_gstrings_stats. Seen with QEMU 10 on Linux 6.12: it closes the port to
/// attach or detach a program, and its link is down for 0.4 to 1 s.
pub(super) const IGB: Nic = Nic {
    resets: true,
    ..gigabit("igb", Xdp::Driver { since: (5, 10) })
};
/// e1000e/ethtool.c, e1000_gstrings_stats. Seen with QEMU on Linux 6.12: its link is down for 2 to
/// 3 s after `rx-all`, `rxvlan` and `ethtool -A`, without speed meanwhile.
pub(super) const E1000E: Nic = gigabit("e1000e", Xdp::Stack);
/// e1000/e1000_ethtool.c, e1000_gstrings_stats. Its link goes as that of e1000e. Seen with QEMU:
/// no frame comes in for a second after a write to RCTL, as promiscuous mode makes one
/// (hw/net/e1000.c, set_rx_control: flush_queue_timer).
pub(super) const E1000: Nic = Nic {
    filter_pause: 1_500_000_000,
    ..gigabit("e1000", Xdp::Stack)
};

const PAUSE: &[Pattern] = &[
    Pattern::new("rx_flow_control_xoff", XOFF),
    Pattern::new("rx_flow_control_xon", XON),
];

/// These drivers know PAUSE, but not PFC: with `rx-all` (RCTL.SBP and PMCF) MAC control frames come
/// in. Their lost frames, from memory, are `rx_missed_errors`, `rx_no_buffer_count` and igb's
/// `rx_queue_{}_drops`, which are known by their names; frames of the management controller are not
/// ours.
const fn gigabit(driver: &'static str, xdp: Xdp) -> Nic {
    Nic {
        driver,
        receives: Receives::WithRxAll,
        counters: PAUSE,
        xdp,
        drops: Drops {
            not_lost: &["dropped_smbus"],
            ..Drops::BY_NAME
        },
        ..HARDWARE
    }
}

/// i40e/i40e_ethtool.c, i40e_gstrings_pfc_stats, and the names before Linux 4.19; i40e_dcb_nl.c:
/// indications are `priority_xoff_rx`; i40e_main.c, i40e_add_filter_to_drop_tx_flow_control_frames.
pub(super) const I40E: Nic = Nic {
    driver: "i40e",
    sends: false,
    counters: &[
        Pattern::new("port.rx_priority_{}_xoff_rx", XOFF),
        Pattern::new("port.rx_priority_{}_xon_rx", XON),
        Pattern::new("port.rx_priority_{}_xoff", XOFF),
        Pattern::new("port.rx_priority_{}_xon", XON),
        Pattern::new("port.link_xoff_rx", XOFF),
        Pattern::new("port.link_xon_rx", XON),
    ],
    indications: Some(XOFF),
    xdp: Xdp::Driver { since: (4, 13) },
    resets: true,
    ..HARDWARE
};

/// ice/ice_ethtool.c, ice_get_strings; ice_dcb_nl.c: indications are `priority_xoff_rx`; a filter
/// drops what software sends.
pub(super) const ICE: Nic = Nic {
    driver: "ice",
    sends: false,
    counters: &[
        Pattern::new("rx_priority_{}_xoff.nic", XOFF),
        Pattern::new("rx_priority_{}_xon.nic", XON),
        Pattern::new("link_xoff_rx.nic", XOFF),
        Pattern::new("link_xon_rx.nic", XON),
    ],
    indications: Some(XOFF),
    xdp: Xdp::Driver { since: (5, 5) },
    resets: true,
    ..HARDWARE
};
