//! Pause storms: how many senders on which CPUs, when each sends, and the ledger of the gaps.

use pfc_ebpf::units::Nanos;

use crate::evidence::pfc::{Departure, Gap};

pub mod gap_ledger;
pub mod placement;
pub mod schedule;

/// The longest that nothing may have left before a departure, where `latest` is the latest time
/// that a frame before it left after. A frame that another sender's overtook ends no gap.
pub fn silence(latest: Nanos, departure: Departure) -> Gap {
    Gap {
        from: latest,
        to: departure.after.max(latest),
    }
}
