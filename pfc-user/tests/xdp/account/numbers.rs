//! Sequence numbers and times: received, duplicate, reordered.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::OffenceKind;
use pfc_ebpf::stamp::{self, Phase};
use validator::driver::kernel::clock;

use super::{kinds, only_flow, run, run_all};
use crate::frames::TestFrame;
use crate::xdp::{loaded, stamp};

#[test]
fn root_distinct_frames_are_received_with_octets_times_and_latency() {
    let account = loaded(Trust::Dscp);
    let before = clock::now();
    for sequence in 0..5 {
        let mut late = stamp(3, sequence);
        late.time -= 1 << 30;
        run(
            &account,
            &TestFrame {
                payload: 100,
                ..TestFrame::new(late)
            }
            .octets(),
        );
    }
    let after = clock::now();
    let flow = only_flow(&account);
    assert_eq!((flow.flow, flow.phase), (3, Phase::Storm));
    assert_eq!((flow.frames, flow.octets), (5, 5 * (14 + 20 + 8 + 100)));
    assert_eq!(
        (
            flow.duplicate,
            flow.reordered,
            flow.beyond_window,
            flow.corrupt,
            flow.remarked
        ),
        (0, 0, 0, 0, 0)
    );
    assert!(
        before <= flow.first && flow.first < flow.last && flow.last <= after,
        "{before} {flow:?} {after}"
    );
    // One-way latency is 2^30 ns and what passed since the stamp: 31 significant bits.
    assert_eq!(flow.latency.iter().sum::<u32>(), 5);
    assert_eq!(flow.latency[31], 5);
    assert!((1 << 30..=(1 << 30) + after - before).contains(&flow.latency_max));
    assert!((1 << 30..=flow.latency_max).contains(&flow.latency_mean));
    assert_eq!(account.received(Phase::Storm, 0..8).unwrap(), 5);
    assert_eq!(account.received(Phase::Resume, 0..8).unwrap(), 0);
}

#[test]
fn root_latency_buckets_go_by_significant_bits() {
    let account = loaded(Trust::Dscp);
    for (sequence, back) in [1 << 22, 1 << 26, 1 << 38].into_iter().enumerate() {
        let mut stamp = stamp(3, sequence as u64);
        stamp.time = stamp.time.wrapping_sub(back) & stamp::MASK_40;
        run(&account, &TestFrame::new(stamp).octets());
    }
    let latency = only_flow(&account).latency;
    assert_eq!((latency[23], latency[27], latency[31]), (1, 1, 1));
}

#[test]
fn root_duplicates_are_counted_apart() {
    let mut account = loaded(Trust::Dscp);
    run_all(&account, [0, 1, 2, 1, 1, 3]);
    let flow = only_flow(&account);
    assert_eq!(
        (
            flow.frames,
            flow.duplicate,
            flow.reordered,
            flow.beyond_window
        ),
        (4, 2, 0, 0)
    );
    assert_eq!(kinds(&mut account), [OffenceKind::Duplicate; 2]);
}

#[test]
fn root_a_frame_after_a_later_one_is_reordered() {
    let mut account = loaded(Trust::Dscp);
    // RFC 4737, 3.3: 4 and 5 come late; 7 after a loss is not reordered.
    run_all(&account, [1, 2, 3, 6, 4, 5, 8, 9]);
    let flow = only_flow(&account);
    assert_eq!((flow.frames, flow.reordered, flow.duplicate), (8, 2, 0));
    assert_eq!(kinds(&mut account), [OffenceKind::Reordered; 2]);
}

#[test]
fn root_a_frame_far_behind_is_beyond_the_window_and_makes_nothing_be_forgotten() {
    let mut account = loaded(Trust::Dscp);
    run_all(&account, [0, 2000, 976, 2000]);
    let flow = only_flow(&account);
    assert_eq!(
        (
            flow.frames,
            flow.duplicate,
            flow.reordered,
            flow.beyond_window
        ),
        (2, 1, 0, 1)
    );
    assert_eq!(flow.latency.iter().sum::<u32>(), 2);
    assert_eq!(
        kinds(&mut account),
        [OffenceKind::BeyondWindow, OffenceKind::Duplicate]
    );
}

#[test]
fn root_within_the_window_late_frames_are_told_from_duplicates() {
    let account = loaded(Trust::Dscp);
    run_all(
        &account,
        (0..1023).chain([1024 + 500]).chain([1023, 501, 1022]),
    );
    let flow = only_flow(&account);
    assert_eq!(
        (
            flow.frames,
            flow.reordered,
            flow.duplicate,
            flow.beyond_window
        ),
        (1025, 1, 2, 0)
    );
}

#[test]
fn root_sequence_numbers_of_40_bits_are_kept_apart() {
    let account = loaded(Trust::Dscp);
    run_all(
        &account,
        [0xffff_ffff, 0x1_0000_0000, 0xff_ffff_ffff, 0xff_ffff_ffff],
    );
    let flow = only_flow(&account);
    assert_eq!((flow.frames, flow.duplicate, flow.reordered), (3, 1, 0));
}

#[test]
fn root_frames_on_several_cpus_at_once_are_each_counted_once() {
    let account = loaded(Trust::Dscp);
    // All send the same frames: each is received once, by whichever CPU came first.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| run_all(&account, 0..1000));
        }
    });
    let flow = only_flow(&account);
    assert_eq!(
        (flow.frames, flow.duplicate, flow.beyond_window),
        (1000, 3000, 0)
    );
    assert_eq!(flow.latency.iter().sum::<u32>(), 1000);
    assert_eq!(account.port().unwrap().test_frames, 4000);
}
