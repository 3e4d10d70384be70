//! Links without a MAC: every frame is the program's to see, and nothing counts pause frames.

use super::{Nic, Receives};

pub(super) const VETH: Nic = without_mac("veth");
pub(super) const VIRTIO_NET: Nic = without_mac("virtio_net");

const fn without_mac(driver: &'static str) -> Nic {
    Nic {
        driver,
        receives: Receives::PassesOn,
        sends: true,
        counters: &[],
        counts_with_pfc_alone: false,
        indications: None,
        lag: 0,
    }
}
