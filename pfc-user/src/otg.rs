//! `validator otg`: the server of the Open Traffic Generator API on this machine's ports.

pub mod args;
mod engine;
pub mod process;
