//! validator: an open conformance tester for lossless networks.
//!
//! Data flows one way: [`config`] -> [`plan`] -> [`run`] -> [`evidence`] -> judge ([`cases`]) -> [`report`].

pub mod case;
pub mod cases;
pub mod cli;
pub mod config;
pub mod driver;
pub mod dut;
pub mod evidence;
pub mod plan;
pub mod report;
pub mod run;
