//! Pause storms: how many senders on which CPUs, when each sends, and the ledger of the gaps.

pub mod gap_ledger;
pub mod placement;
pub mod schedule;
