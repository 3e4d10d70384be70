//! Tests that compute: what is read, planned, judged and reported.

mod bench;
mod common;
mod config;
mod docs;
#[path = "../examples/manual/files.rs"]
mod files;
mod packaging;
mod pages;
mod preflight;
mod registry;
mod report;
#[path = "common/snapshot.rs"]
mod snapshot;
mod verdicts;
