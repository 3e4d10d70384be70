//! A subnet management agent behind ibsim's sockets: the model is `ib_mad::sma`, and this puts it
//! on the real clock.

pub mod args;
pub mod process;
