//! The lossless switch: a sans-IO model, and the process that puts it on two ports.
//!
//! ```text
//!  port 0 --> frame -> impair -> queue -> wire --> port 1       and the same from port 1 to port 0
//!     ^                            |       ^
//!     |                         upstream   |
//!     +-------- XOFF, XON <--------+     pause <-- PFC received on port 1
//! ```

pub mod args;
pub mod config;
mod control;
mod frame;
mod impair;
pub mod model;
mod pause;
mod port;
pub mod process;
mod queue;
mod upstream;
mod wire;

#[cfg(test)]
mod tests;
