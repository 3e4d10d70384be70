//! The program as its user runs it: on veths, with every kind of device under test, and with what goes wrong.

mod bad_input;
mod bridge;
mod check;
#[path = "../common/mod.rs"]
mod common;
mod disturbed;
mod external;
mod faults;
mod interrupt;
mod lab;
mod losses;
#[path = "../common/napi.rs"]
mod napi;
mod outcome;
mod rates;
mod rc;
mod reports;
mod settle;
mod trace;
mod witness;
