//! `validator watch`: what passes ports that carry traffic already, and what is lost between two of
//! them.
//!
//! The programs of [`crate::driver::bpf::watch`] count; [`metrics`] names what they count, once for
//! [`json`] and [`prometheus`]; [`text`] is for people; [`loss`] judges; [`session`] attaches,
//! waits and writes.

pub mod args;
pub mod json;
pub mod loss;
pub mod metrics;
pub mod pcapng;
pub mod prometheus;
pub mod server;
pub mod session;
pub mod text;
