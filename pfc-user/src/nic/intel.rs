//! Intel's drivers: drivers/net/ethernet/intel of Linux.

use super::{Nic, Pattern, Receives};
use crate::evidence::mac::Frames;

const XOFF: Frames = Frames::Xoff;
const XON: Frames = Frames::Xon;

/// ixgbe/ixgbe_ethtool.c (`rx_pb_%u_pxoff`); ixgbe_main.c, ixgbe_update_xoff_received: read only while PFC is enabled, by user
/// priority; ixgbe_dcb_nl.c, ixgbe_dcbnl_ieee_getpfc: what was received stands in `requests`.
pub(super) const IXGBE: Nic = Nic {
    driver: "ixgbe",
    receives: Receives::Keeps,
    sends: true,
    counters: &[
        Pattern::new("rx_pb_{}_pxoff", XOFF),
        Pattern::new("rx_pb_{}_pxon", XON),
        Pattern::new("rx_flow_control_xoff", XOFF),
        Pattern::new("rx_flow_control_xon", XON),
    ],
    counts_with_pfc_alone: true,
    indications: None,
    lag: 0,
};

/// igc/igc_ethtool.c, igc_gstrings_stats.
pub(super) const IGC: Nic = gigabit("igc");
/// igb/igb_ethtool.c, igb_gstrings_stats.
pub(super) const IGB: Nic = gigabit("igb");
/// e1000e/ethtool.c, e1000_gstrings_stats.
pub(super) const E1000E: Nic = gigabit("e1000e");

const PAUSE: &[Pattern] = &[
    Pattern::new("rx_flow_control_xoff", XOFF),
    Pattern::new("rx_flow_control_xon", XON),
];

/// These know PAUSE, but not PFC: with `rx-all` (RCTL.SBP and PMCF) MAC control frames come in.
const fn gigabit(driver: &'static str) -> Nic {
    Nic {
        driver,
        receives: Receives::WithRxAll,
        sends: true,
        counters: PAUSE,
        counts_with_pfc_alone: false,
        indications: None,
        lag: 0,
    }
}

/// i40e/i40e_ethtool.c, i40e_gstrings_pfc_stats, and the names before Linux 4.19; i40e_dcb_nl.c: indications are
/// `priority_xoff_rx`; i40e_main.c, i40e_add_filter_to_drop_tx_flow_control_frames.
pub(super) const I40E: Nic = Nic {
    driver: "i40e",
    receives: Receives::Unknown,
    sends: false,
    counters: &[
        Pattern::new("port.rx_priority_{}_xoff_rx", XOFF),
        Pattern::new("port.rx_priority_{}_xon_rx", XON),
        Pattern::new("port.rx_priority_{}_xoff", XOFF),
        Pattern::new("port.rx_priority_{}_xon", XON),
        Pattern::new("port.link_xoff_rx", XOFF),
        Pattern::new("port.link_xon_rx", XON),
    ],
    counts_with_pfc_alone: false,
    indications: Some(XOFF),
    lag: 0,
};

/// ice/ice_ethtool.c, ice_get_strings; ice_dcb_nl.c: indications are `priority_xoff_rx`; a filter drops what software sends.
pub(super) const ICE: Nic = Nic {
    driver: "ice",
    receives: Receives::Unknown,
    sends: false,
    counters: &[
        Pattern::new("rx_priority_{}_xoff.nic", XOFF),
        Pattern::new("rx_priority_{}_xon.nic", XON),
        Pattern::new("link_xoff_rx.nic", XOFF),
        Pattern::new("link_xon_rx.nic", XON),
    ],
    counts_with_pfc_alone: false,
    indications: Some(XOFF),
    lag: 0,
};
