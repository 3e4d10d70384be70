//! The process of `validator otg` on real ports. Needs root, the feature `otg`, and the object that
//! `cargo xtask build-ebpf` makes.
//!
//! lane: frames

#[path = "../common/mod.rs"]
mod common;
mod killed;
mod rights;
mod server;
