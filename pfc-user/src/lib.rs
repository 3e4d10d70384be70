//! validator: an open conformance tester for lossless networks.
//!
//! Data flows one way: [`config`](crate) -> [`plan`] -> run -> [`evidence`] -> judge -> report.

pub mod evidence;
pub mod plan;
