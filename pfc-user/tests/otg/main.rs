//! The process of `validator otg` on real ports. Needs root, the feature `otg`, and the object that
//! `cargo xtask build-ebpf` makes.
//!
//! lane: frames

mod clients;
#[path = "../common/mod.rs"]
mod common;
mod ended;
mod refusals;
mod rights;
#[path = "../../otg/tests/common/rpc.rs"]
mod rpc;
mod server;
mod settings;
mod speeds;
