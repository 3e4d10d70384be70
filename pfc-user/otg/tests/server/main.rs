//! The server over both transports, before an engine that records.
//!
//! lane: waiting

mod certificates;
mod client;
mod grpc;
mod http;
mod metrics;
mod places;
mod refusals;
#[path = "../common/rpc.rs"]
mod rpc;
mod served;
mod slow;
