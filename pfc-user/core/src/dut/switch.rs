//! The lossless switch.
//!
//! ```text
//!  port a --> frame -> table -> impair -> queue -> wire --> port b       for each pair of ports
//!     ^                                     |       ^
//!     |                                  upstream   |
//!     +------------ XOFF, XON <-------------+     pause <-- PFC received on port b
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
mod table;
mod upstream;
mod wire;

#[cfg(test)]
mod tests;
