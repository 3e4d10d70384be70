//! PFC that the tx port receives, and what it holds back.

use pfc_ebpf::abi::account::PauseState;
use pfc_ebpf::abi::generate::SHORT_BATCH;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Quanta;
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::kernel::clock;
use validator::driver::storm::ControlSender;
use validator::driver::traffic::Source;
use validator_core::evidence::pfc::Departure;
use validator_core::plan::FlowPlan;

use crate::common::need_two_cpus;
use crate::traffic_live::bench::*;

/// The DUT's address.
const DUT: [u8; 6] = [2, 0, 0, 0, 1, 1];
/// At this speed the longest pause is 33 s.
const SLOW: u64 = 1_000_000;

/// A wire with its pause times at `line`, and a sender of pause frames at the far end.
fn open(flows: &[FlowPlan], line: u64, cpus: &[usize]) -> (Wire, ControlSender) {
    let setup = Setup {
        pause_line: line,
        cpus,
        ..Setup::new(flows)
    };
    let wire = setup.open().unwrap();
    (wire, ControlSender::open("b", DUT).unwrap())
}

/// Pauses priority 3.
fn pause(control: &ControlSender, quanta: Quanta) -> Departure {
    let frame = MacControl::pfc([priority(3)], quanta);
    control.send(&frame).unwrap()
}

#[test]
fn root_a_paused_priority_sends_nothing_and_the_others_go_on() {
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, rate(200_000, 64), 64),
            flow(1, 4, None, rate(200_000, 64), 64),
        ];
        let (mut wire, control) = open(&flows, SLOW, &[0]);
        let from = clock::now();
        wire.sender.start(endless(Phase::Baseline, from)).unwrap();
        until(|| wire.received(0) > 100);
        let xoff = pause(&control, Quanta::MAX);
        until(|| wire.tx.port().unwrap().pfc_frames == 1);
        let paused = clock::now();
        let before = wire.received(1);
        until(|| wire.received(1) > before + 10_000);
        let held = wire.received(0);
        let xon = pause(&control, Quanta::ZERO);
        until(|| wire.received(0) > held + 100);
        wire.sender.stop().unwrap();
        let sent = wire.sender.report().unwrap();
        assert_exact(&wire, &sent);
        let [span] = &sent.report.withheld[..] else {
            panic!("{:?}", sent.report.withheld)
        };
        assert_eq!((span.priority, span.phase), (priority(3), Phase::Baseline));
        // It begins when the frame came, and ends when the one that ends it was.
        assert!(
            span.from <= paused && span.to >= xon.before,
            "{span:?} {xoff:?} {xon:?}"
        );
        // Frames that were not to be sent are not owed: the clock of the priority stood still. The
        // first frame leaves within its time, for flows are staggered.
        let flow = sent.report.flows[0];
        let time = u128::from(flow.last - from - (span.to - span.from));
        assert!(
            u128::from(flow.frames - 1) * 1_000_000_000 <= time * 200_000,
            "{flow:?} {span:?}"
        );
        assert!(
            sent.report.after_xoff[3] < held * 64 && sent.report.after_xoff[4] == 0,
            "{:?}",
            sent.report.after_xoff
        );
    });
}

#[test]
fn root_a_stall_beside_a_pause_is_not_withheld() {
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, rate(200_000, 64), 64),
            flow(1, 4, None, rate(200_000, 64), 64),
        ];
        let (mut wire, control) = open(&flows, SLOW, &[0]);
        pause(&control, Quanta::MAX);
        until(|| wire.tx.port().unwrap().pfc_frames == 1);
        let pauses = wire.tx.pause_view();
        // As a sender that did not run from long before the XOFF on.
        let from = pauses.state(3).since - 50 * MS;
        wire.sender.start(endless(Phase::Baseline, from)).unwrap();
        until(|| wire.received(1) > 1000);
        assert_eq!(wire.received(0), 0);
        pause(&control, Quanta::ZERO);
        until(|| wire.received(0) > 1000);
        wire.sender.stop().unwrap();
        let sent = wire.sender.report().unwrap();
        assert_exact(&wire, &sent);
        let PauseState { since, until } = pauses.state(3);
        let [span] = &sent.report.withheld[..] else {
            panic!("{:?}", sent.report.withheld)
        };
        assert_eq!(
            (span.priority, span.phase, span.from),
            (priority(3), Phase::Baseline, since)
        );
        // The pause may end, by its XON, before the sender looks and notices it. No frame leaves
        // earlier than the end.
        let first = sent
            .report
            .flows
            .iter()
            .find(|flow| flow.flow == 0)
            .map(|flow| flow.first);
        assert!(
            until <= span.to && Some(span.to) <= first,
            "{span:?} until {until}, {first:?}"
        );
        let stall = sent.report.stalls[0];
        assert!(stall.from == from && stall.to > since, "{stall:?}");
    });
}

#[test]
fn root_no_frame_of_a_priority_is_stamped_in_its_pause() {
    on_a_wire(|| {
        let flows = [flow(0, 3, None, rate(200_000, 64), 64)];
        let (mut wire, control) = open(&flows, SLOW, &[0]);
        let from = clock::now();
        wire.sender.start(endless(Phase::Baseline, from)).unwrap();
        until(|| wire.received(0) > 100);
        pause(&control, Quanta::MAX);
        until(|| wire.tx.port().unwrap().pfc_frames == 1);
        let paused = clock::now();
        wire.sender.stop().unwrap();
        let sent = wire.sender.report().unwrap();
        assert!(sent.report.flows[0].last <= paused);
        assert_exact(&wire, &sent);
        // Paused from beginning to end: not one frame, and all of it is told.
        let burst = wire.burst(Phase::Storm, 20 * MS);
        let sent = wire.sender.report().unwrap();
        assert!(
            sent.report
                .flows
                .iter()
                .all(|flow| flow.phase == Phase::Baseline),
            "{:?}",
            sent.report.flows
        );
        let span = &sent.report.withheld[sent.report.withheld.len() - 1];
        assert_eq!(
            (span.phase, span.from, span.to),
            (Phase::Storm, burst.from, burst.to)
        );
    });
}

#[test]
fn root_two_cores_are_of_one_mind_on_how_long_a_pause_was() {
    let Some(cpus) = need_two_cpus("root_two_cores_are_of_one_mind_on_how_long_a_pause_was") else {
        return;
    };
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, rate(100_000, 64), 64),
            flow(1, 3, None, rate(100_000, 64), 64),
        ];
        let (mut wire, control) = open(&flows, SLOW, &cpus);
        let from = clock::now();
        wire.sender.start(endless(Phase::Baseline, from)).unwrap();
        until(|| wire.received(0) > 100 && wire.received(1) > 100);
        pause(&control, Quanta::MAX);
        until(|| wire.tx.port().unwrap().pfc_frames == 1);
        pause(&control, Quanta::ZERO);
        let [a, b] = [wire.received(0), wire.received(1)];
        until(|| wire.received(0) > a + 1000 && wire.received(1) > b + 1000);
        wire.sender.stop().unwrap();
        let sent = wire.sender.report().unwrap();
        // One worker tells, so that no span counts twice; both have stood still for so long.
        let [span] = &sent.report.withheld[..] else {
            panic!("{:?}", sent.report.withheld)
        };
        assert_eq!(sent.report.flows.len(), 2);
        for flow in &sent.report.flows {
            let time = u128::from(flow.last - from - (span.to - span.from));
            assert!(
                u128::from(flow.frames - 1) * 1_000_000_000 <= time * 100_000,
                "{flow:?} {span:?}"
            );
        }
        assert_exact(&wire, &sent);
    });
}

#[test]
fn root_what_left_after_an_xoff_is_no_more_than_two_of_the_senders_batches() {
    on_a_wire(|| {
        // The rate is low enough for short batches, and high enough that a frame is due in every
        // run of the program.
        let flows = [flow(0, 3, None, rate(2_900_000, 64), 64)];
        let (mut wire, control) = open(&flows, SLOW, &[0]);
        let from = clock::now();
        wire.sender.start(endless(Phase::Baseline, from)).unwrap();
        for pauses in 0..20 {
            let before = wire.received(0);
            until(|| wire.received(0) > before + 1000);
            pause(&control, Quanta::MAX);
            until(|| wire.tx.port().unwrap().pfc_frames == 2 * pauses + 1);
            pause(&control, Quanta::ZERO);
            until(|| wire.tx.port().unwrap().pfc_frames == 2 * pauses + 2);
        }
        wire.sender.stop().unwrap();
        let sent = wire.sender.report().unwrap();
        assert_exact(&wire, &sent);
        // Frames reach the device at the end of a batch, and an XOFF that arrives during one batch
        // is seen in the next.
        let after = sent.report.after_xoff[3];
        assert!(after <= 2 * u64::from(SHORT_BATCH) * 64, "{after} octets");
    });
}

#[test]
fn root_what_left_after_an_xoff_counts_though_its_pause_ends_before_the_next_look() {
    on_a_wire(|| {
        // A frame is due in every run, and a quantum is 5 ns.
        let flows = [flow(0, 3, None, rate(2_900_000, 64), 64)];
        let (mut wire, control) = open(&flows, 100_000_000_000, &[0]);
        let from = clock::now();
        wire.sender.start(endless(Phase::Baseline, from)).unwrap();
        for pauses in 0..20 {
            let before = wire.received(0);
            until(|| wire.received(0) > before + 1000);
            pause(&control, Quanta(1));
            until(|| wire.tx.port().unwrap().pfc_frames == pauses + 1);
        }
        wire.sender.stop().unwrap();
        let sent = wire.sender.report().unwrap();
        assert_exact(&wire, &sent);
        let after = sent.report.after_xoff[3];
        assert!(
            (1..=2 * u64::from(SHORT_BATCH) * 64).contains(&after),
            "{after} octets"
        );
    });
}
