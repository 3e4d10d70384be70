//! The cases as their user runs them, and the processes that they start.

mod agent;
mod closed_output;
mod common;
mod host_process;
mod loaded;
mod mad;
mod mad_journal;
#[path = "common/napi.rs"]
mod napi;
#[path = "common/packet_socket.rs"]
mod packet_socket;
mod requester;
mod run;
mod schemas;
mod sma_process;
#[path = "common/snapshot.rs"]
mod snapshot;
mod sonic;
mod switch_process;
