//! The senders' counts, compared with the frames that arrive at the other end of a veth pair.
//!
//! lane: frames

mod bursts;
mod storms;
mod tshark; // lane: waiting
pub mod wire;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Dscp, LineRate, Priority};
use validator::driver::kernel::clock;
use validator::driver::traffic::sendmmsg::Sendmmsg;
use validator::driver::traffic::{Addresses, Burst, FlowControl, Sent, Source, TrafficPlan};
use validator_core::plan::{FlowPlan, Nanos, PortName, Role};

use self::wire::TestFrame;

const MS: Nanos = 1_000_000;
const HOUR: Nanos = 3_600_000 * MS;
const MAX_BURST: Nanos = 4 * MS;
const STORM_SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn line_rate() -> LineRate {
    LineRate::from_bits_per_second(1_000_000_000).unwrap()
}

pub fn priority(value: u8) -> Priority {
    Priority::new(value).unwrap()
}

pub fn flow(id: u16, dscp: u8, pcp: Option<u8>, rate: u64, length: usize) -> FlowPlan {
    FlowPlan {
        from: PortName::TX,
        to: PortName::RX,
        id,
        role: Role::Test,
        priority: priority(dscp % 8),
        dscp: Dscp::new(dscp).unwrap(),
        pcp: pcp.map(priority),
        rate,
        length,
    }
}

pub fn v4() -> Addresses {
    addresses(
        Ipv4Addr::new(192, 0, 2, 1).into(),
        Ipv4Addr::new(192, 0, 2, 2).into(),
    )
}

pub fn v6() -> Addresses {
    addresses(
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2).into(),
    )
}

fn addresses(source_ip: IpAddr, destination_ip: IpAddr) -> Addresses {
    Addresses {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        source_ip,
        destination_ip,
    }
}

fn plan(flows: &[FlowPlan], addresses: Addresses, epoch: Nanos) -> TrafficPlan<'_> {
    TrafficPlan {
        interface: "a",
        run: 0x5678,
        flows,
        addresses,
        receivers: &[],
        line_rate: line_rate(),
        max_burst: MAX_BURST,
        epoch,
        width: 10 * MS,
        windows: 64,
        cpus: &[],
    }
}

fn open(flows: &[FlowPlan]) -> Sendmmsg {
    Sendmmsg::open(
        &plan(flows, v4(), clock::now()),
        FlowControl::Unaware("no DUT".into()),
    )
    .unwrap()
}

/// A burst that only an order ends.
pub fn endless(phase: Phase, from: Nanos) -> Burst {
    Burst {
        phase,
        from,
        to: from + HOUR,
        load: 100,
    }
}

/// Runs a burst of that length to its end.
fn burst(sender: &mut Sendmmsg, phase: Phase, length: Nanos) -> Burst {
    let from = clock::now() + MS;
    let burst = Burst {
        phase,
        from,
        to: from + length,
        load: 100,
    };
    sender.start(burst).unwrap();
    assert!(sender.wait(clock::now() + HOUR).unwrap());
    burst
}

fn total(sent: &Sent) -> u64 {
    sent.report.flows.iter().map(|flow| flow.frames).sum()
}

/// Frames of a flow in the order of their arrival.
fn of(frames: &[TestFrame], flow: u16) -> Vec<&TestFrame> {
    frames
        .iter()
        .filter(|frame| frame.stamp.flow == flow)
        .collect()
}

/// Each flow's sequence numbers count up from 0 without a gap, in the order of arrival.
fn assert_complete(frames: &[TestFrame], flows: &[FlowPlan]) {
    for flow in flows {
        for (expected, frame) in of(frames, flow.id).into_iter().enumerate() {
            assert_eq!(frame.stamp.sequence, expected as u64, "flow {}", flow.id);
        }
    }
}
