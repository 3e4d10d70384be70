//! The program as its user runs it: on veths, with every kind of device under test, and with
//! failures.
//!
//! lane: frames
//! lane: waiting: external::root_a_case_that, rc::root_an_agent, rc::root_ctrl_c
//! lane: waiting: speeds::a_repetition_that_cannot_work, speeds::too_long, external_page::every

mod bad_input; // lane: waiting
mod bridge;
mod cable;
mod check; // lane: waiting
mod disturbed;
mod external;
mod external_page;
mod faults;
mod hooks; // lane: waiting
mod interrupt; // lane: waiting
mod lab;
mod losses;
mod outcome;
mod rates; // lane: waiting
mod rc;
mod reports; // lane: waiting
mod settle;
mod speeds;
mod trace; // lane: waiting
mod witness;
