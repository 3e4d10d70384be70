//! `validator otg`: the server of the Open Traffic Generator API on this machine's ports.

pub mod args;
pub mod process;
