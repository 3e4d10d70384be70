//! Repetitions on real devices, one family a file. Drivers do what stimulation asks for, and their
//! counts become evidence.

pub mod mad;
pub mod pfc;
pub mod rc;
