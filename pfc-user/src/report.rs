//! Reports of `validator-core`, and the progress of a run.

pub use validator_core::report::*;

pub mod progress;
