//! Sender and receiver on threads of their own, with the veth's ring of 256 frames between them.
//! Frames that do not fit into the ring are lost, and the sender reports each of them. Needs
//! `unshare` and `chrt` of util-linux.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use pfc_ebpf::stamp::Phase;
use validator::driver::kernel::netns::Namespace;
use validator::driver::kernel::{link, realtime};
use validator::driver::traffic::Source;

use crate::common::need_two_cpus;
use crate::napi;
use crate::traffic_live::bench::*;

/// One at a time: the kernel's threads of NAPI are told apart by when they came.
static ALONE: Mutex<()> = Mutex::new(());

/// Sends at full speed from the first CPU to a receiver on CPU `cpu`, and returns the number of
/// lost frames. `chrt` of util-linux sets the scheduling policy of the receiver's thread.
fn lost_with_receiver_on(cpu: usize, policy: &str) -> u64 {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, rate(50_000_000, 64), 64),
            flow(1, 4, None, rate(50_000_000, 1024), 1024),
        ];
        let sender = [realtime::first_cpu().unwrap()];
        let mut wire = Setup {
            cpus: &sender,
            ..Setup::new(&flows)
        }
        .open()
        .unwrap();
        let thread = napi::receive_on("b", cpu).unwrap();
        assert!(
            Command::new("chrt")
                .args([policy, "--pid", "0", &thread.to_string()])
                .status()
                .unwrap()
                .success()
        );
        let here = Namespace::current().unwrap();
        let before = link::statistics(&here, "a").unwrap();
        wire.send(Phase::Baseline, 20_000);
        wire.send(Phase::Storm, 20_000);
        let sent = wire.sender.report().unwrap();
        // Received or lost: nothing else.
        assert_exact(&wire, &sent);
        assert_eq!(
            sent.lost[1..].iter().map(|(_, lost)| lost).sum::<u64>(),
            0,
            "{:?}",
            sent.lost
        );
        let (what, lost) = sent.lost[0];
        assert_eq!(what, "live frames the driver did not take");
        // Each is one drop of the sending end by the kernel's own account.
        let counters = link::drop_rises("a", &before, &link::statistics(&here, "a").unwrap());
        assert_eq!(
            counters
                .iter()
                .find(|counter| counter.counter == "tx_dropped")
                .unwrap()
                .rise,
            lost
        );
        lost
    })
}

#[test]
fn root_what_the_ring_between_two_cpus_has_no_room_for_is_told() {
    let Some([_, last]) =
        need_two_cpus("root_what_the_ring_between_two_cpus_has_no_room_for_is_told")
    else {
        return;
    };
    lost_with_receiver_on(last, "--other");
}

#[test]
fn root_a_receiver_that_does_not_come_to_run_loses_frames_and_each_is_told() {
    // A SCHED_IDLE thread preempts nobody when it wakes up, so that the sender fills the ring of
    // 256 frames before the receiver runs.
    assert!(lost_with_receiver_on(realtime::first_cpu().unwrap(), "--idle") > 0);
}
