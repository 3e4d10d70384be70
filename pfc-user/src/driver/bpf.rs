//! The BPF programs: load, attach, write and read their maps.

mod account;
mod batch;
mod error;
pub mod flow;
mod generate;
mod mmap;
mod object;
mod pod;
mod prog_run;
pub mod responder;
mod syscall;
mod trace;
mod verifier_log;
pub mod watch;
mod xdp_link;

pub use account::{
    AccountProgram, CaseGenerator, OffendingFrame, PauseView, Rings, Sizes, TestResult,
};
pub use error::XdpError;
pub use generate::{Constant, Generator, Tracepoints};
pub use trace::TraceOutput;
pub use validator_core::evidence::xdp::XdpMode;

pub use crate::driver::kernel::link::attached::Attached;
