//! The program as its user runs it: on veths, with every kind of device under test, and with what goes wrong.

mod bad_input;
mod bridge;
mod check;
#[path = "../common/mod.rs"]
mod common;
mod external;
mod faults;
mod interrupt;
mod lab;
mod outcome;
mod rates;
mod rc;
mod reports;
