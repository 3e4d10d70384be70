//! The requester: an adapter's port with one RC queue pair that sends RDMA READ requests.

pub mod frame;
pub mod model;
