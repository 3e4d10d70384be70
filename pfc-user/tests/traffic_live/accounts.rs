//! Frames, counted at both ends.

use std::thread;

use pfc_ebpf::stamp::Phase;
use validator::driver::kernel::netns::Namespace;
use validator::driver::kernel::{clock, link};
use validator::driver::traffic::{Burst, Source, TrafficError};

use crate::common::need_two_cpus;
use crate::traffic_live::bench::*;
use crate::traffic_wire::wire::ip;

#[test]
fn root_every_frame_let_go_is_received_or_told_as_lost() {
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, rate(20_000_000, 64), 64),
            flow(1, 4, None, rate(100_000, 1024), 1024),
        ];
        let mut wire = Setup::new(&flows).open().unwrap();
        wire.send(Phase::Baseline, 5000);
        wire.send(Phase::Storm, 5000);
        wire.burst(Phase::Storm, 20 * MS);
        let sent = wire.sender.report().unwrap();
        println!(
            "{} frames, lost {:?}, stalls {}",
            total(&sent),
            sent.lost,
            sent.report.stalls.len()
        );
        assert_eq!(
            (
                sent.report.method.as_str(),
                sent.report.honours_pfc.as_str()
            ),
            ("live frames, 1 core", "software (XDP)")
        );
        assert_eq!(sent.report.flows.len(), 4);
        assert_exact(&wire, &sent);
    });
}

#[test]
fn root_frames_that_nobody_takes_are_told_as_lost() {
    on_a_wire(|| {
        let flows = [flow(0, 3, None, rate(1_000_000, 64), 64)];
        let mut wire = Setup::new(&flows).open().unwrap();
        wire.send(Phase::Baseline, 1000);
        // Without carrier the other end takes nothing, and the interface itself is still up.
        ip("link set dev b down");
        let here = Namespace::current().unwrap();
        let before = link::statistics(&here, "a").unwrap();
        wire.send(Phase::Storm, 1000);
        let counters = link::drop_rises("a", &before, &link::statistics(&here, "a").unwrap());
        let sent = wire.sender.report().unwrap();
        let of = |phase| {
            sent.report
                .flows
                .iter()
                .find(|flow| flow.phase == phase)
                .unwrap()
                .frames
        };
        assert!(of(Phase::Baseline) > 0 && of(Phase::Storm) > 0);
        assert_eq!(
            sent.lost[0],
            ("live frames the driver did not take", of(Phase::Storm))
        );
        assert_eq!(lost(&sent), of(Phase::Storm));
        // A veth counts them as well, for which the evidence makes allowance.
        assert_eq!(
            counters
                .iter()
                .find(|counter| counter.counter == "tx_dropped")
                .unwrap()
                .rise,
            of(Phase::Storm)
        );
        assert_exact(&wire, &sent);
    });
}

#[test]
fn root_an_interface_that_goes_down_ends_the_burst() {
    on_a_wire(|| {
        let flows = [flow(0, 3, None, rate(1_000_000, 64), 64)];
        let mut wire = Setup::new(&flows).open().unwrap();
        wire.sender
            .start(endless(Phase::Baseline, clock::now()))
            .unwrap();
        until(|| wire.received(0) > 0);
        ip("link set dev a down");
        let error = wire.sender.wait(clock::now() + HOUR).unwrap_err();
        assert_eq!(error.to_string(), "a is down; `ip link set a up`");
        let sent = wire.sender.report().unwrap();
        assert!(
            sent.lost
                .iter()
                .any(|(what, count)| *what == "live frames the kernel refused" && *count > 0),
            "{:?}",
            sent.lost
        );
        assert_exact(&wire, &sent);
    });
}

#[test]
fn root_nothing_leaves_after_stop_and_the_next_burst_goes_on_from_there() {
    on_a_wire(|| {
        let flows = [flow(0, 3, None, rate(1_000_000, 64), 64)];
        let mut wire = Setup::new(&flows).open().unwrap();
        wire.sender
            .start(endless(Phase::Baseline, clock::now()))
            .unwrap();
        assert!(matches!(
            wire.sender.start(endless(Phase::Storm, clock::now())),
            Err(TrafficError::Running)
        ));
        assert!(!wire.sender.wait(clock::now()).unwrap());
        until(|| wire.received(0) > 0);
        wire.sender.stop().unwrap();
        let stopped = clock::now();
        let sent = wire.sender.report().unwrap();
        assert!(sent.report.flows[0].last <= stopped);
        assert_exact(&wire, &sent);
        // One that is stopped before it begins sends nothing.
        let later = clock::now() + HOUR;
        wire.sender.start(endless(Phase::Storm, later)).unwrap();
        wire.sender.stop().unwrap();
        wire.send(Phase::Resume, 1000);
        let again = wire.sender.report().unwrap();
        assert_eq!(again.report.flows.len(), 2);
        assert_eq!(again.report.flows[0], sent.report.flows[0]);
        assert_exact(&wire, &again);
        // Nothing is left to stop.
        wire.sender.stop().unwrap();
    });
}

#[test]
fn root_half_the_load_is_at_most_half_the_frames() {
    on_a_wire(|| {
        let flows = [flow(0, 3, None, rate(1_000_000, 64), 64)];
        let mut wire = Setup::new(&flows).open().unwrap();
        let from = clock::now();
        let burst = Burst {
            load: 50,
            ..endless(Phase::Probe, from)
        };
        wire.sender.start(burst).unwrap();
        until(|| wire.received(0) > 10_000);
        wire.sender.stop().unwrap();
        let sent = wire.sender.report().unwrap();
        let flow = sent.report.flows[0];
        // Half a million a second.
        assert!(flow.frames * 2000 <= flow.last - from, "{flow:?}");
        assert_exact(&wire, &sent);
    });
}

#[test]
fn root_4096_flows_all_send_in_turn() {
    on_a_wire(|| {
        let flows: Vec<_> = (0..4096)
            .map(|id| flow(id, id as u8 % 64, None, rate(500, 64), 64))
            .collect();
        let mut wire = Setup::new(&flows).open().unwrap();
        wire.sender
            .start(endless(Phase::Baseline, clock::now()))
            .unwrap();
        until(|| wire.rx.flows().unwrap().len() == 4096);
        wire.sender.stop().unwrap();
        let sent = wire.sender.report().unwrap();
        assert_eq!(sent.report.flows.len(), 4096);
        assert!(sent.report.max_burst <= 4 * MS, "{}", sent.report.max_burst);
        assert_exact(&wire, &sent);
    });
}

#[test]
fn root_two_cores_share_the_flows() {
    let Some(cpus) = need_two_cpus("root_two_cores_share_the_flows") else {
        return;
    };
    on_a_wire(|| {
        let flows: Vec<_> = (0..9)
            .map(|id| flow(id, id as u8, None, rate(100_000, 200), 200))
            .collect();
        let mut wire = Setup {
            cpus: &cpus,
            ..Setup::new(&flows)
        }
        .open()
        .unwrap();
        wire.sender
            .start(endless(Phase::Baseline, clock::now()))
            .unwrap();
        until(|| wire.rx.flows().unwrap().len() == 9);
        wire.sender.stop().unwrap();
        wire.send(Phase::Resume, 100);
        let sent = wire.sender.report().unwrap();
        assert_eq!(sent.report.method, "live frames, 2 cores");
        assert_exact(&wire, &sent);
    });
}

#[test]
fn root_a_core_without_a_flow_sends_nothing() {
    let Some(cpus) = need_two_cpus("root_a_core_without_a_flow_sends_nothing") else {
        return;
    };
    on_a_wire(|| {
        let flows = [flow(0, 3, None, rate(1_000_000, 64), 64)];
        let mut wire = Setup {
            cpus: &cpus,
            room: 8,
            ..Setup::new(&flows)
        }
        .open()
        .unwrap();
        wire.sender
            .start(endless(Phase::Baseline, clock::now()))
            .unwrap();
        until(|| wire.received(0) >= 1000);
        wire.sender.stop().unwrap();
        let sent = wire.sender.report().unwrap();
        assert_eq!(sent.report.method, "live frames, 1 core");
        // Frames of no flow would be among those offered, and none of those sent.
        assert_exact(&wire, &sent);
    });
}

#[test]
fn root_a_sender_that_is_dropped_leaves_nothing_running() {
    on_a_wire(|| {
        let flows = [flow(0, 3, None, rate(1_000_000, 64), 64)];
        let Wire {
            tx: _tx,
            rx,
            mut sender,
            ..
        } = Setup::new(&flows).open().unwrap();
        sender
            .start(endless(Phase::Baseline, clock::now()))
            .unwrap();
        until(|| rx.received(Phase::Baseline, 0..1).unwrap() > 0);
        drop(sender);
        // Its threads have ended: what they had let go is on its way at the most.
        let mut before = rx.received(Phase::Baseline, 0..1).unwrap();
        let mut same = 0;
        while same < 1000 {
            let now = rx.received(Phase::Baseline, 0..1).unwrap();
            same = if now == before { same + 1 } else { 0 };
            before = now;
            thread::yield_now();
        }
    });
}
