//! `watch`: its programs against golden frames, scapy's frames and the host's classifier, and the
//! command on live ports.
//!
//! lane: frames

mod clsact;
mod counting; // lane: programs
mod differential; // lane: programs
mod exposition; // lane: programs
mod highest_rate;
mod lab;
mod lifetime; // lane: programs
mod loss; // lane: programs, 8 at a time
mod many; // lane: programs
mod merged; // lane: programs
mod own_side; // lane: programs, 8 at a time
mod pair; // lane: programs
mod program; // lane: programs
mod service; // lane: programs
mod trace;
mod tunnels;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{LineRate, Priority};
use validator::driver::bpf::XdpMode;
use validator::driver::bpf::watch::{Direction, Point, Settings};
use validator_core::quantity::hex;

/// Return codes of the programs, which let the next program or the stack decide.
const PASS: [(Point, u32); 2] = [
    (Point::Xdp(XdpMode::Auto), 2),
    (Point::Tcx(Direction::Ingress), u32::MAX),
];

/// DSCP d has priority d mod 8.
fn settings(trust: Trust) -> Settings {
    Settings {
        trust,
        dscp_map: std::array::from_fn(|dscp| Priority::from_low_bits(dscp as u8)),
        line_rate: Some(LineRate::from_bits_per_second(1_000_000_000).unwrap()),
        capture: false,
        flows: 0,
    }
}
