//! Drivers of which no more is known than that they reset their rings, and some their link, when a
//! program comes or goes.

use super::{Nic, UNKNOWN};

/// drivers/net/ethernet/aquantia/atlantic of Linux, as the next ones under drivers/net/ethernet.
pub(super) const ATLANTIC: Nic = resetting("atlantic");
/// freescale/fec_main.c.
pub(super) const FEC: Nic = resetting("fec");
/// intel/iavf.
pub(super) const IAVF: Nic = resetting("iavf");
/// intel/ixgbevf.
pub(super) const IXGBEVF: Nic = resetting("ixgbevf");
/// netronome/nfp.
pub(super) const NFP: Nic = resetting("nfp");
/// qlogic/qede.
pub(super) const QEDE: Nic = resetting("qede");
/// sfc.
pub(super) const SFC: Nic = resetting("sfc");

const fn resetting(driver: &'static str) -> Nic {
    Nic {
        driver,
        resets: true,
        ..UNKNOWN
    }
}
