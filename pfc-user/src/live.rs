//! Repetitions on real devices, one family a file: what stimulation asks for is done by drivers, and
//! what they count becomes evidence.

pub mod mad;
pub mod pfc;
pub mod rc;
