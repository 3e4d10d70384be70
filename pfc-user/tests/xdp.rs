//! The XDP program in the kernel: each counter, frames that other tools made, a comparison with the
//! host's classifier, and attaching. Needs root and the object that `cargo xtask build-ebpf` makes.
//!
//! lane: frames

mod account; // lane: programs
mod attach; // lane: programs
mod differential; // lane: programs
mod modes;
mod refused; // lane: programs
mod scapy; // lane: programs
mod trace; // lane: programs

use std::net::IpAddr;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::{Config, FlowConfig};
use pfc_ebpf::stamp::{MASK_40, Phase, Stamp};
use validator::driver::bpf::{AccountProgram, Sizes};
use validator::driver::kernel::clock;
use validator_core::quantity::hex;
use validator_core::test_frame::Addresses;

const RUN: u16 = 7;
const STORM_SOURCE: [u8; 6] = [0x02, 0, 0, 0, 0, 0];
const WINDOW: u64 = 1_000_000_000;
/// Addresses of [`frames::TestFrame`] with IPv4.
const ADDRESSES: [[u8; 4]; 2] = [[192, 0, 2, 1], [198, 51, 100, 2]];
const DROP: u32 = 1;
const PASS: u32 = 2;

fn config(trust: Trust) -> Config {
    Config {
        epoch: clock::now(),
        window: WINDOW,
        windows: 8,
        run: RUN,
        trust: trust as u8,
        line_rate: 1_000_000_000,
        storm_source: STORM_SOURCE,
        dscp_to_priority: std::array::from_fn(|dscp| dscp as u8 % 8),
        addresses: std::array::from_fn(|long| {
            ADDRESSES.get(long).copied().map_or(0, u32::from_ne_bytes)
        }),
        ..Config::default()
    }
}

/// The same for a test whose frames are of IPv6, with the addresses of [`frames::TestFrame`].
fn config_of_ipv6(trust: Trust) -> Config {
    let mut config = config(trust);
    let [source, destination] = [1u8, 17].map(|first| {
        let octets: [u8; 16] = std::array::from_fn(|index| first + index as u8);
        IpAddr::from(octets)
    });
    let addresses = Addresses {
        source_mac: [0; 6],
        destination_mac: [0; 6],
        source_ip: source,
        destination_ip: destination,
    };
    addresses.write_to(&mut config);
    config
}

/// Length of [`frames::TestFrame::new`].
const PLAIN_LENGTH: u16 = 60;

/// Flow n is sent with DSCP (or PCP) n and counts under priority n.
fn flows(count: u8) -> Vec<FlowConfig> {
    (0..count)
        .map(|mark| FlowConfig {
            mark,
            log_phases: 0,
            priority: mark % 8,
            length: PLAIN_LENGTH,
            ..FlowConfig::default()
        })
        .collect()
}

/// A program that is not attached, with eight flows.
fn loaded(trust: Trust) -> AccountProgram {
    let mut account = AccountProgram::load(Sizes {
        flows: 8,
        windows: 8,
    })
    .unwrap();
    account.configure(&config(trust), &flows(8)).unwrap();
    account
}

fn stamp(flow: u16, sequence: u64) -> Stamp {
    Stamp {
        run: RUN,
        flow,
        phase: Phase::Storm,
        sequence,
        time: clock::now() & MASK_40,
    }
}
