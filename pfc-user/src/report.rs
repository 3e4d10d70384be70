//! Reports of `validator-core`, and those that only a run shows: its progress and its plan.

pub use validator_core::report::*;

pub mod dry_run;
pub mod progress;
