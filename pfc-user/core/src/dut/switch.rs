//! The lossless switch.
//!
//! ```text
//!  port 0 --> frame -> impair -> queue -> wire --> port 1       and the same from port 1 to port 0
//!     ^                            |       ^
//!     |                         upstream   |
//!     +-------- XOFF, XON <--------+     pause <-- PFC received on port 1
//! ```

pub mod config;
mod control;
pub mod counts;
mod frame;
mod impair;
pub mod model;
mod pause;
mod port;
mod queue;
mod upstream;
mod wire;

#[cfg(test)]
mod tests;
