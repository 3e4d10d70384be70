//! The rules of the validator: what a repetition is to do, what its evidence shows, and how it is
//! judged. Nothing in this crate touches a kernel, a network or a file: it builds on any system.

pub mod agent;
pub mod case;
pub mod plan;
pub mod quantity;
pub mod roce;
