//! Reports of `validator-core`, and what only a run shows: its progress, and what it would do.

pub use validator_core::report::*;

pub mod dry_run;
pub mod progress;
