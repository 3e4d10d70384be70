//! The only contact with the kernel and with devices, one room for each thing touched.
//!
//! - [`kernel`]: namespaces, links, packet sockets, clocks, scheduling, processes.
//! - [`bpf`]: loads and attaches the BPF programs, writes and reads their maps.
//! - [`sender`]: the thread of every sender in userspace, and its batches.
//! - [`traffic`]: senders of test frames.
//! - [`storm`]: senders of PAUSE and PFC frames.
//! - [`stall`]: lines in which the process of a simulated device tells the tester of its stalls.
//! - [`neighbour`]: answers a DUT that asks for a port's address.
//! - [`bringup`]: makes the testbed of a run, proves that it works, and undoes it.

pub mod bpf;
pub mod bringup;
pub mod kernel;
pub mod neighbour;
pub mod sender;
pub mod stall;
pub mod storm;
pub mod traffic;
