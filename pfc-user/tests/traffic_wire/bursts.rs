//! Bursts: what a sender says that left, beside what arrived.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pfc_ebpf::abi::account::PauseState;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Priority};
use validator::driver::kernel::clock;
use validator::driver::kernel::packet::{BATCH, PacketError};
use validator::driver::traffic::sendmmsg::Sendmmsg;
use validator::driver::traffic::{Burst, FlowControl, PauseSource, Source, TrafficError};
use validator_core::evidence::pfc::Withheld;
use validator_core::plan::{FlowPlan, Nanos, PortName};

use crate::traffic_wire::wire::{Capture, ip, on_a_wire};
use crate::traffic_wire::{
    HOUR, MAX_BURST, MS, assert_complete, burst, endless, flow, of, open, plan, priority, total, v4,
};

/// Stands for the pause map and counts the reads.
#[derive(Clone, Default)]
struct FakePause {
    since: Arc<[AtomicU64; 8]>,
    until: Arc<[AtomicU64; 8]>,
    reads: Arc<AtomicU64>,
}

impl PauseSource for FakePause {
    fn state(&self, class: usize) -> PauseState {
        self.reads.fetch_add(1, Ordering::SeqCst);
        PauseState {
            until: self.until[class].load(Ordering::SeqCst),
            since: self.since[class].load(Ordering::SeqCst),
        }
    }
}

/// A sender that `pause` holds.
fn open_paused(flows: &[FlowPlan], epoch: Nanos, pause: &FakePause) -> Sendmmsg {
    let control = FlowControl::Software(Box::new(pause.clone()));
    Sendmmsg::open(&plan(flows, v4(), epoch), control).unwrap()
}

#[test]
fn root_every_frame_arrives_as_planned_and_as_accounted() {
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, 400_000_000, 1024),
            flow(1, 46, None, 200_000_000, 300),
            flow(2, 12, Some(5), 300_000_000, 1500),
            flow(7, 63, None, 100_000_000, 64),
        ];
        let capture = Capture::open();
        let epoch = clock::now();
        let control = FlowControl::Unaware("no DUT".into());
        let mut sender = Sendmmsg::open(&plan(&flows, v4(), epoch), control).unwrap();
        let bursts = [
            burst(&mut sender, Phase::Baseline, 100 * MS),
            burst(&mut sender, Phase::Resume, 100 * MS),
        ];
        let sent = sender.report().unwrap();
        println!(
            "{} frames, {} errors, stalls {:?}, largest burst {} us",
            total(&sent),
            sent.report.errors,
            sent.report.stalls,
            sent.report.max_burst / 1000
        );
        let frames = capture.test_frames(total(&sent));

        assert_complete(&frames, &flows);
        assert!(
            sent.report.max_burst > 0 && sent.report.max_burst <= MAX_BURST,
            "{}",
            sent.report.max_burst
        );
        assert_eq!(
            (
                sent.report.method.as_str(),
                sent.report.honours_pfc.as_str()
            ),
            ("sendmmsg", "no DUT")
        );
        let mut offered = vec![[0; 8]; 64];
        for flow in &flows {
            for burst in &bursts {
                let arrived: Vec<_> = of(&frames, flow.id)
                    .into_iter()
                    .filter(|frame| frame.stamp.phase == burst.phase)
                    .collect();
                let account = sent
                    .report
                    .flows
                    .iter()
                    .find(|sent| sent.flow == flow.id && sent.phase == burst.phase)
                    .expect("some left");
                assert_eq!(account.frames, arrived.len() as u64);
                assert_eq!(
                    (account.first, account.last),
                    (arrived[0].stamp.time, arrived[arrived.len() - 1].stamp.time)
                );
                for (before, frame) in arrived.iter().enumerate() {
                    let stamp = frame.stamp;
                    assert_eq!(
                        (stamp.run, frame.pcp, frame.traffic_class),
                        (
                            0x5678,
                            flow.pcp.map(Priority::get),
                            flow.dscp.get() << 2 | 1
                        )
                    );
                    assert_eq!(frame.octets.len(), flow.length);
                    assert!((burst.from..burst.to).contains(&stamp.time));
                    // Never above the rate, which allowed the bits before this frame when it was
                    // stamped: the first leaves within its time, for flows are staggered.
                    let bits = before as u128 * u128::from(LineRate::frame_bits(flow.length));
                    assert!(
                        bits * 1_000_000_000
                            <= u128::from(flow.rate) * u128::from(stamp.time - burst.from),
                        "{flow:?} {before}"
                    );
                    offered[((stamp.time - epoch) / (10 * MS)).min(63) as usize]
                        [flow.priority.index()] += 1;
                }
            }
        }
        assert_eq!(sent.offered, offered);
    });
}

#[test]
fn root_a_withheld_priority_sends_nothing_and_the_others_go_on() {
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, 300_000_000, 1024),
            flow(1, 4, None, 300_000_000, 1024),
        ];
        let capture = Capture::open();
        let pause = FakePause::default();
        pause.until[3].store(u64::MAX, Ordering::SeqCst);
        let mut sender = open_paused(&flows, clock::now(), &pause);

        let held = burst(&mut sender, Phase::Storm, 100 * MS);
        let sent = sender.report().unwrap();
        assert!(
            sent.report.flows.iter().all(|sent| sent.flow == 1) && total(&sent) > 0,
            "{:?}",
            sent.report.flows
        );
        assert_eq!(
            sent.report.withheld,
            [Withheld {
                port: PortName::TX,
                priority: priority(3),
                phase: Phase::Storm,
                from: held.from,
                to: held.to
            }]
        );

        pause.until[3].store(0, Ordering::SeqCst);
        burst(&mut sender, Phase::Resume, 100 * MS);
        let sent = sender.report().unwrap();
        let frames = capture.test_frames(total(&sent));
        assert_complete(&frames, &flows);
        assert!(
            !of(&frames, 0).is_empty()
                && of(&frames, 0)
                    .iter()
                    .all(|frame| frame.stamp.phase == Phase::Resume)
        );
        assert_eq!(
            (sent.report.withheld.len(), sent.report.after_xoff),
            (1, [0; 8])
        );
        assert_eq!(sent.report.honours_pfc, "software (XDP)");
    });
}

#[test]
fn root_a_stall_beside_a_pause_is_not_withheld() {
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, 300_000_000, 1024),
            flow(1, 4, None, 300_000_000, 1024),
        ];
        let pause = FakePause::default();
        let now = clock::now();
        // As a sender that did not run from long before the XOFF on.
        let (from, since, until) = (now - 50 * MS, now - 10 * MS, now + 10 * MS);
        pause.since[3].store(since, Ordering::SeqCst);
        pause.until[3].store(until, Ordering::SeqCst);
        let mut sender = open_paused(&flows, from, &pause);
        sender
            .start(Burst {
                phase: Phase::Storm,
                from,
                to: until + 10 * MS,
                load: 100,
            })
            .unwrap();
        assert!(sender.wait(clock::now() + HOUR).unwrap());
        let sent = sender.report().unwrap().report;
        assert_eq!(
            sent.withheld,
            [Withheld {
                port: PortName::TX,
                priority: priority(3),
                phase: Phase::Storm,
                from: since,
                to: until
            }]
        );
        assert!(
            sent.stalls[0].from == from && sent.stalls[0].to > since,
            "{:?}",
            sent.stalls
        );
        assert!(
            sent.flows
                .iter()
                .find(|sent| sent.flow == 0)
                .is_none_or(|sent| sent.first >= until),
            "{:?}",
            sent.flows
        );
    });
}

/// Whenever it is asked another pause has come, and is over.
struct RestlessPause(AtomicU64);

impl PauseSource for RestlessPause {
    fn state(&self, _class: usize) -> PauseState {
        PauseState {
            until: 0,
            since: self.0.fetch_add(1, Ordering::SeqCst),
        }
    }
}

#[test]
fn root_what_left_while_an_xoff_came_counts_as_sent_after_it() {
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, 200_000_000, 1024),
            flow(1, 4, None, 100_000_000, 500),
        ];
        let pause = FlowControl::Software(Box::new(RestlessPause(AtomicU64::new(0))));
        let mut sender = Sendmmsg::open(&plan(&flows, v4(), clock::now()), pause).unwrap();
        burst(&mut sender, Phase::Baseline, 100 * MS);
        let sent = sender.report().unwrap();
        // Every batch left while a pause came, each while another one: the largest batch is told.
        let after_xoff = sent.report.after_xoff;
        for flow in &flows {
            let frames = sent
                .report
                .flows
                .iter()
                .find(|sent| sent.flow == flow.id)
                .expect("some left")
                .frames;
            let (octets, length) = (after_xoff[flow.priority.index()], flow.length as u64);
            assert!(
                octets > 0 && octets % length == 0 && octets <= length * frames.min(BATCH as u64),
                "{after_xoff:?}, {frames} frames"
            );
        }
        assert_eq!(
            after_xoff.iter().filter(|octets| **octets > 0).count(),
            flows.len()
        );
    });
}

#[test]
fn root_stop_ends_a_burst_and_the_next_goes_on_in_sequence() {
    on_a_wire(|| {
        let flows = [flow(0, 3, None, 900_000_000, 1024)];
        let capture = Capture::open();
        let mut sender = open(&flows);
        let baseline = endless(Phase::Baseline, clock::now());
        sender.start(baseline).unwrap();
        assert!(matches!(sender.start(baseline), Err(TrafficError::Running)));
        let first = capture.next_test_frame().expect("traffic runs");
        assert!(!sender.wait(clock::now()).unwrap());
        sender.stop().unwrap();
        assert!(sender.wait(clock::now()).unwrap());
        let stopped = total(&sender.report().unwrap());

        // No frame leaves after the stop. Then a burst that has yet to begin is stopped.
        let mut frames = vec![first];
        frames.extend(capture.test_frames(stopped - 1));
        let later = clock::now() + HOUR;
        sender.start(endless(Phase::Storm, later)).unwrap();
        sender.stop().unwrap();
        burst(&mut sender, Phase::Resume, 100 * MS);
        let sent = sender.report().unwrap();
        frames.extend(capture.test_frames(total(&sent) - stopped));
        assert_complete(&frames, &flows);
        assert_eq!(frames.len() as u64, total(&sent));
    });
}

#[test]
fn root_frames_without_room_are_waited_for_and_leave_no_gap() {
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, 250_000_000, 1024),
            flow(1, 4, None, 250_000_000, 1024),
        ];
        let capture = Capture::open();
        let pause = FakePause::default();
        let mut sender = open_paused(&flows, clock::now(), &pause);
        let baseline = endless(Phase::Baseline, clock::now());
        sender.start(baseline).unwrap();
        let mut frames = vec![capture.next_test_frame().expect("traffic runs")];
        ip("link set dev b down");
        // Each of the sender's rounds reads all eight states at least once, and has frames to send.
        let reads = pause.reads.load(Ordering::SeqCst);
        while pause.reads.load(Ordering::SeqCst) < reads + 100 {
            std::thread::yield_now();
        }
        ip("link set dev b up");
        let up = clock::now();
        while frames[frames.len() - 1].stamp.time < up {
            frames.push(capture.next_test_frame().expect("traffic runs again"));
        }
        sender.stop().unwrap();
        let sent = sender.report().unwrap();
        println!(
            "{} frames left, there was no room {} times",
            total(&sent),
            sent.report.waits
        );
        frames.extend(capture.test_frames(total(&sent) - frames.len() as u64));
        assert!(sent.report.waits > 0);
        assert_eq!(sent.report.errors, 0);
        assert!(sent.report.max_burst <= MAX_BURST, "{sent:?}");
        assert_eq!(frames.len() as u64, total(&sent));
        assert_complete(&frames, &flows);
    });
}

#[test]
fn root_what_the_interface_does_not_take_is_named() {
    on_a_wire(|| {
        let error = |length| {
            let mut sender = open(&[flow(0, 3, None, 100_000_000, length)]);
            let from = clock::now();
            sender.start(endless(Phase::Baseline, from)).unwrap();
            let error = sender.wait(from + HOUR).unwrap_err();
            assert_eq!(total(&sender.report().unwrap()), 0);
            error
        };
        assert!(matches!(
            error(1515),
            TrafficError::Packet(PacketError::TooLong { interface, length: 1515 })
                if interface == "a"
        ));
        ip("link set dev a down");
        assert!(matches!(
            error(1514),
            TrafficError::Packet(PacketError::Down { interface }) if interface == "a"
        ));
    });
}
