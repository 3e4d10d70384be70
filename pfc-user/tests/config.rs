//! Testbeds and plans, as they are read.
//!
//! lane: computing

mod errors;
mod files;
mod keys;
mod named_keys;
mod rc;
