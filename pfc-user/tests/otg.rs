//! The process of `validator otg` on real ports. Needs root, the feature `otg`, and the object that
//! `cargo xtask build-ebpf` makes.
//!
//! lane: frames

mod clients;
mod ended;
mod refusals;
mod rights;
mod server;
mod settings;
mod speeds;
