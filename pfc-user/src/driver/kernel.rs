//! The kernel: namespaces, links, adapters, packet sockets, clocks, scheduling, processes.

pub mod adapter;
pub mod clock;
pub mod descriptors;
pub mod interrupt;
pub mod link;
pub mod netns;
pub mod packet;
pub mod process;
pub mod promiscuous;
pub mod realtime;
mod rtnl;
pub(in crate::driver) mod wait;
