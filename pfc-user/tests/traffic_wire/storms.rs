//! Storms and single pause frames.

use pfc_ebpf::units::Quanta;
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::kernel::clock;
use validator::driver::kernel::packet::PacketError;
use validator::driver::storm::{ControlSender, Storm};
use validator_core::plan::{StormKind, StormPlan};

use crate::traffic_wire::wire::{Capture, ip, on_a_wire};
use crate::traffic_wire::{HOUR, STORM_SOURCE, line_rate, priority};

#[test]
fn root_a_dropped_storm_sends_no_more_and_a_single_frame_tells_when_it_left() {
    on_a_wire(|| {
        let capture = Capture::open();
        let plan = StormPlan {
            kind: StormKind::Pause,
            quanta: Quanta::MAX,
            interval: HOUR,
        };
        let storm = Storm::start(
            ControlSender::open("a", STORM_SOURCE).unwrap(),
            &plan,
            line_rate(),
        )
        .unwrap();
        let control =
            || std::iter::from_fn(|| capture.next()).find(|frame| frame[12..14] == [0x88, 0x08]);
        assert_eq!(
            control().unwrap(),
            MacControl::Pause { quanta: 0xffff }.emit(STORM_SOURCE)
        );
        // Returns long before the next frame is due.
        drop(storm);
        let xon = MacControl::pfc([priority(3), priority(4)], Quanta::ZERO);
        let before = clock::now();
        let departure = ControlSender::open("a", STORM_SOURCE)
            .unwrap()
            .send(&xon)
            .unwrap();
        assert!(
            before <= departure.before
                && departure.before <= departure.after
                && departure.after <= clock::now()
        );
        assert_eq!(control().unwrap(), xon.emit(STORM_SOURCE));
    });
}

#[test]
fn root_control_frames_that_do_not_leave_are_errors() {
    on_a_wire(|| {
        ip("link set dev b down");
        let sender = ControlSender::open("a", STORM_SOURCE).unwrap();
        assert!(matches!(
            sender.send(&MacControl::Pause { quanta: 1 }),
            Err(PacketError::Refused { interface }) if interface == "a"
        ));
        ip("link set dev a down");
        assert!(matches!(
            sender.send(&MacControl::Pause { quanta: 1 }),
            Err(PacketError::Down { interface }) if interface == "a"
        ));
    });
}
