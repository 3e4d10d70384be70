//! validator: an open conformance tester for lossless networks.
//!
//! This crate is the machinery: it reads testbeds and plans, drives devices and writes files. The
//! rules are in [`validator_core`]; ARCHITECTURE.md has the whole picture. Data flows one way:
//!
//! ```text
//! testbed, plan -> config -> plan -> run -> evidence -> cases (judge) -> report
//!                                     |  ^
//!                                     v  |
//!                           live -> driver <-> kernel, ports, device under test
//! ```
//!
//! - [`config`] is the only reader of testbeds and plans; it returns typed, checked values.
//! - [`run`] is the only loop: it brings up the testbed and has each repetition driven.
//! - [`engine`] sends and counts flows on ports, for any caller.
//! - [`live`] drives the repetitions of each family on real devices.
//! - [`driver`] is the only contact with kernel and devices: programs, senders, storms, links.
//! - [`dut`] has the processes of the simulated devices, [`agent`] the verbs agent.
//! - `otg` (feature `otg`) puts the server of `validator_otg` on real ports.
//! - [`port_check`] is `validator check`; [`watch`] counts the traffic of ports in use.
//!
//! In `validator_core`, `cases` plans, stimulates and judges; `evidence` is all that a verdict
//! rests on, so that stored evidence gives the same verdicts again.

// `eprintln!` panics where standard error has no reader; `output::note` does not.
#![cfg_attr(not(test), deny(clippy::print_stderr))]

pub mod agent;
pub mod cli;
pub mod config;
pub mod docs;
pub mod driver;
pub mod dut;
pub mod engine;
pub mod error_text;
pub mod live;
#[cfg(feature = "otg")]
pub mod otg;
pub mod output;
pub mod port_check;
pub mod report;
pub mod run;
pub mod watch;
