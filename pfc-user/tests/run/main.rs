//! The program as its user runs it: on veths, with every kind of device under test, and with
//! failures.
//!
//! lane: frames

mod bad_input; // lane: waiting
mod bridge;
mod cable;
mod check; // lane: waiting
#[path = "../common/mod.rs"]
mod common;
mod disturbed;
mod external;
mod external_page;
mod faults;
mod hooks; // lane: waiting
mod interrupt; // lane: waiting
mod lab;
mod losses;
#[path = "../common/napi.rs"]
mod napi;
mod outcome;
mod rates; // lane: waiting
mod rc;
mod reports; // lane: waiting
mod settle;
#[path = "../common/snapshot.rs"]
mod snapshot;
mod speeds;
mod trace;
mod witness;
