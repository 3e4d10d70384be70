//! The engine of ports and flows on veths in namespaces of their own: what it counts, sends and
//! obeys. Needs root and the object that `cargo xtask build-ebpf` makes.
//!
//! lane: frames

mod apart;
mod bench;
mod bursts;
mod captures;
mod changed;
mod counts;
mod device;
mod fast;
mod lifetime;
mod load;
mod pauses;
mod program; // lane: programs
mod settings;
mod through;
mod updates;
mod witness;
