//! validator: an open conformance tester for lossless networks.
//!
//! Data flows one way:
//!
//! ```text
//! testbed and plan files -> config -> plan -> run -> evidence -> cases (judge) -> report
//!                                             |  ^
//!                                             v  |
//!                                           driver <-> kernel, ports, device under test (dut, or a real one)
//! ```
//!
//! - [`config`] is the only reader of files; what it returns is typed and checked.
//! - [`plan`] is plain data: what each repetition is to do, made before anything is sent.
//! - [`run`] is the only loop: it brings up the testbed and lets each case drive its repetitions.
//! - [`driver`] is the only contact with kernel and devices: XDP programs, senders, storm, links, namespaces.
//! - [`fault`] names the faults of the simulated devices, one row each.
//! - [`dut`] has the simulated devices: models without I/O, and the processes that put them on ports.
//! - [`evidence`] is what a run measured, and all that a verdict rests on: [`cases::judge`] is a function of it alone, so that stored
//!   evidence gives the same verdicts again.
//! - [`watch`] is apart from that: it counts what passes ports that carry traffic already.
//! - [`pacing`] says when frames leave, [`test_frame`] what a test frame is made of, and [`mad`] what holds
//!   of management datagrams: all without I/O.
//! - [`roce`] knows what a RoCEv2 packet is made of, without any I/O.
//! - [`case`] has the vocabulary of verdicts, [`cases`] the cases; [`report`] writes results, one format a file.

pub use validator_core::{
    case, cases, evidence, fault, mad, nic, pacing, plan, preflight, quantity, roce, test_frame,
};

pub mod agent;
pub mod check;
pub mod cli;
pub mod config;
pub mod docs;
pub mod driver;
pub mod dut;
pub mod error_text;
pub mod live;
pub mod report;
pub mod run;
pub mod watch;
