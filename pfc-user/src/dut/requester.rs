//! The requester: an adapter's port with one RC queue pair that sends RDMA READ requests. A sans-IO
//! model, and the process that puts it on an interface and serves the agent's protocol.

pub mod args;
pub mod frame;
pub mod model;
pub mod process;
