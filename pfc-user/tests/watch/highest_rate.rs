//! Frames made in the kernel at full speed: each one is counted or reported as dropped by the
//! kernel.

use std::net::Ipv4Addr;
use std::process::Command;

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Dscp, LineRate, Priority};
use validator::driver::bpf::{AccountProgram, Sizes, XdpMode};
use validator::driver::kernel::clock;
use validator::driver::kernel::link::{self, Feature, drop_rises, statistics};
use validator::driver::traffic::live_frames::LiveFrames;
use validator::driver::traffic::{Addresses, Burst, Source, TrafficPlan};
use validator_core::plan::{FlowPlan, PortName, Role};

use crate::common::{need_root, need_tool};
use crate::napi;
use crate::watch::lab::{Lab, MACS, Running};

/// Some tenth of a second of sending.
const COUNT: u64 = 1_000_000;
const LENGTH: usize = 64;
const HOUR: u64 = 3_600_000_000_000;
const SIZES: Sizes = Sizes {
    flows: 1,
    windows: 1,
};

/// Sends from d0 to t0, faster than any veth can, until more than [`COUNT`] frames have left.
/// Returns the number of frames sent, and of those that t0 did not take according to the sender.
fn send(lab: &Lab) -> (u64, u64) {
    let priority = Priority::new(3).unwrap();
    let rate = 50_000_000 * LineRate::frame_bits(LENGTH);
    let flow = FlowPlan {
        from: PortName::TX,
        to: PortName::RX,
        id: 0,
        role: Role::Test,
        priority,
        dscp: Dscp::new(3).unwrap(),
        pcp: None,
        rate,
        length: LENGTH,
    };
    let addresses = Addresses {
        source_mac: MACS[1],
        // Somebody else's, so that the stack has nothing more to do with them.
        destination_mac: [2, 0, 0, 0, 0, 0x77],
        source_ip: Ipv4Addr::new(198, 18, 0, 1).into(),
        destination_ip: Ipv4Addr::new(198, 18, 0, 2).into(),
    };
    let plan = TrafficPlan {
        interface: "d0",
        run: 77,
        flows: &[flow],
        addresses,
        receivers: &[],
        line_rate: LineRate::from_bits_per_second(1_600_000_000_000).unwrap(),
        max_burst: 4_000_000,
        epoch: clock::now(),
        width: HOUR,
        windows: 1,
        cpus: &[],
    };
    let run = || {
        let mut account = AccountProgram::attach("d0", XdpMode::Driver, SIZES).unwrap();
        let generator = account.generator().unwrap();
        let mut sender =
            LiveFrames::open(&plan, generator.clone(), &[0], Some("no DUT".into())).unwrap();
        let from = clock::now();
        sender
            .start(Burst {
                phase: Phase::Baseline,
                from,
                to: from + HOUR,
                load: 100,
            })
            .unwrap();
        while generator.flows.get(0).sequence < COUNT {
            assert!(
                !sender.wait(clock::now() + 1_000_000).unwrap(),
                "an hour is not over"
            );
        }
        sender.stop().unwrap();
        let sent = sender.report().unwrap();
        (
            sent.report.flows[0].frames,
            sent.lost.iter().map(|(_, lost)| lost).sum(),
        )
    };
    lab.device.run(run).unwrap()
}

/// Sends while `running` counts; how many frames the kernel dropped.
fn assert_exact(lab: &Lab, mut running: Running, what: &str) -> u64 {
    // Frames that the receiving end had no room for are counted here.
    let drops = || statistics(&lab.device, "d0").unwrap();
    let before = drops();
    let dropped = || {
        drop_rises("d0", &before, &drops())
            .iter()
            .map(|drop| drop.rise)
            .sum::<u64>()
    };
    let (sent, refused) = send(lab);
    running.wait_for("all frames", |object| {
        object["total"]["frames"].as_u64().unwrap_or(0) + dropped() >= sent
    });
    let total = running.summary("t0");
    println!(
        "{what}: {sent} sent, {} counted, {} dropped, {refused} of them as the sender knows",
        total["frames"],
        dropped()
    );
    assert_eq!(
        total["frames"].as_u64().unwrap() + dropped(),
        sent,
        "{what}: {total}"
    );
    assert_eq!(
        (&total["stamped_frames"], &total["priority_frames"]["3"]),
        (&total["frames"], &total["frames"]),
        "{what}"
    );
    assert_eq!(
        dropped(),
        refused,
        "{what}: nothing is lost behind the veth's ring"
    );
    dropped()
}

/// A lab whose t0 takes frames of XDP, whatever program is there, if any.
fn lab() -> Lab {
    let lab = Lab::new();
    link::set_feature(&lab.tester, "t0", Feature::Gro, true).unwrap();
    lab
}

#[test]
fn root_frames_made_in_the_kernel_are_all_counted() {
    if !need_root("root_frames_made_in_the_kernel_are_all_counted") {
        return;
    }
    for mode in ["driver", "skb", "tc"] {
        let lab = lab();
        let running = lab.watch(&format!(
            "t0 --interval 50ms --dscp-map dscp-mod-8 --attach {mode}"
        ));
        assert_exact(&lab, running, mode);
    }
}

#[test]
fn root_behind_another_program_frames_made_in_the_kernel_are_all_counted() {
    if !need_root("root_behind_another_program_frames_made_in_the_kernel_are_all_counted") {
        return;
    }
    let lab = lab();
    // One that was told nothing lets all frames pass.
    let _other = lab
        .tester
        .run(|| AccountProgram::attach("t0", XdpMode::Driver, SIZES))
        .unwrap()
        .unwrap();
    let running = lab.watch_from(
        "t0 --interval 50ms --dscp-map dscp-mod-8",
        "occupied",
        |_| {},
    );
    assert_exact(&lab, running, "tcx behind XDP");
}

#[test]
fn root_where_the_ring_overflows_the_drops_are_exactly_those_that_are_missing() {
    const NAME: &str = "root_where_the_ring_overflows_the_drops_are_exactly_those_that_are_missing";
    if !need_root(NAME) || !need_tool(NAME, "unshare") || !need_tool(NAME, "chrt") {
        return;
    }
    for mode in ["driver", "skb", "tc"] {
        let lab = lab();
        let running = lab.watch(&format!(
            "t0 --interval 50ms --dscp-map dscp-mod-8 --attach {mode}"
        ));
        // A thread of its own receives. As SCHED_IDLE on the sender's CPU it does not run before
        // the ring of 256 frames is full.
        let thread = lab
            .tester
            .run(|| napi::receive_on("t0", 0))
            .unwrap()
            .unwrap();
        assert!(
            Command::new("chrt")
                .args(["--idle", "--pid", "0", &thread.to_string()])
                .status()
                .unwrap()
                .success()
        );
        let dropped = assert_exact(&lab, running, &format!("threaded NAPI, {mode}"));
        assert!(dropped > 0, "a ring of 256 frames for a million");
    }
}
