//! Traffic on real ports: senders, counting programs, `watch` and the OTG server.

#![expect(
    clippy::duplicate_mod,
    reason = "both makers of frames bring the same damage"
)]

#[path = "../../pfc-ebpf/tests/classified/mod.rs"]
mod classified;
mod common;
mod engine;
#[path = "../../pfc-ebpf/tests/frames/mod.rs"]
mod frames;
mod host_link;
#[path = "common/napi.rs"]
mod napi;
mod neighbour;
#[cfg(feature = "otg")]
mod otg;
#[path = "common/packet_socket.rs"]
mod packet_socket;
mod responder;
#[path = "../../pfc-ebpf/tests/roce_frames/mod.rs"]
mod roce_frames;
#[cfg(feature = "otg")]
#[path = "../otg/tests/common/rpc.rs"]
mod rpc;
mod storm;
mod traffic_live;
mod traffic_wire;
mod watch;
mod xdp;
