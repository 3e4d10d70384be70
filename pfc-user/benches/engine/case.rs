//! The sender of the cases, beside which the engine's is measured, and a receiver that only drops.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use aya::programs::{Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Dscp, LineRate, Priority};
use validator::driver::kernel::clock;
use validator::driver::traffic::{Addresses, Burst, FlowControl, TrafficPlan};
use validator_core::plan::{FlowPlan, Nanos, PortName, Role};

use super::LINE;
use super::live::live;

const MS: Nanos = 1_000_000;

/// Drops all that arrives at an interface of the calling thread's namespace, until it is dropped
/// itself.
pub fn drop_all(interface: &str) -> Ebpf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/ebpf-object/bench");
    let octets = fs::read(&file).expect("`cargo xtask build-ebpf` makes the object");
    let mut object = EbpfLoader::new().load(&octets).expect("an object");
    let program = object.program_mut("drop").expect("a program that drops");
    let program: &mut Xdp = program.try_into().expect("an XDP program");
    program.load().expect("the verifier takes it");
    program
        .attach(interface, XdpMode::Driver)
        .expect("an interface without a program");
    object
}

/// Frames a second that the cases' sender sends on one CPU in `flows` flows of 64 octets that want
/// more than it has, in the calling thread's namespace.
pub fn rate(interface: &str, flows: usize, time: Nanos) -> f64 {
    let flow = |id: usize| {
        let dscp = Dscp::new(id as u8 % 64).expect("below 64");
        FlowPlan {
            from: PortName::TX,
            to: PortName::RX,
            id: id as u16,
            role: Role::Test,
            priority: Priority::from_low_bits(dscp.get()),
            dscp,
            pcp: None,
            rate: 100_000_000 / flows as u64 * LineRate::frame_bits(60),
            length: 60,
        }
    };
    let ip = |last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
    let flows: Vec<_> = (0..flows).map(flow).collect();
    let plan = TrafficPlan {
        interface,
        run: 7,
        flows: &flows,
        addresses: Addresses {
            source_mac: [2, 0, 0, 0, 0, 1],
            destination_mac: [2, 0, 0, 0, 0, 2],
            source_ip: ip(1),
            destination_ip: ip(2),
        },
        receivers: &[],
        line_rate: LineRate::from_bits_per_second(LINE).expect("a speed that there is"),
        max_burst: 4 * MS,
        epoch: clock::now(),
        width: 10 * MS,
        windows: (time / (10 * MS)) as usize + 100,
        cpus: &[],
    };
    let unaware = FlowControl::Unaware("nobody pauses".into());
    let mut source = live(&plan, unaware, &[0]).expect("a port that takes frames of XDP");
    let from = clock::now() + 5 * MS;
    source
        .start(Burst {
            phase: Phase::Baseline,
            from,
            to: from + time,
            load: 100,
        })
        .expect("a burst");
    let sent = source.report().expect("an account");
    let lost: u64 = sent.lost.iter().map(|(_, lost)| lost).sum();
    let frames: u64 = sent.report.flows.iter().map(|flow| flow.frames).sum();
    (frames - lost) as f64 * 1e9 / time as f64
}
