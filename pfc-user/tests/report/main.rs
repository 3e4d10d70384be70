//! What a run shows: before it, during it, and in its reports.
//!
//! lane: computing

#[path = "../common/mod.rs"]
mod common;
mod compare;
mod results;
mod views;
