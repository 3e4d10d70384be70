//! The cases, by family.

pub mod pfc;
