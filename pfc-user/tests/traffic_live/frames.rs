//! The frames themselves, octet by octet the same as those of the other sender, which tshark
//! decodes as intended (`traffic_wire`).

use std::collections::BTreeMap;

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Priority};
use validator::driver::traffic::{Addresses, Source, TrafficError};
use validator_core::plan::FlowPlan;
use validator_core::test_frame::FrameTemplate;

use crate::traffic_live::bench::*;
use crate::traffic_wire::wire::Capture;

/// Sends two bursts of these flows, and compares every frame that arrives.
fn compare(flows: &[FlowPlan], addresses: Addresses) {
    on_a_wire(|| {
        let capture = Capture::open();
        let mut wire = Setup {
            addresses,
            passes: true,
            ..Setup::new(flows)
        }
        .open()
        .unwrap();
        let bursts = [wire.send(Phase::Baseline, 50), wire.send(Phase::Probe, 50)];
        let sent = wire.sender.report().unwrap();
        assert_eq!(lost(&sent), 0);
        let frames = capture.test_frames(total(&sent));
        assert_eq!(frames.len() as u64, total(&sent));
        let largest = sent.report.max_burst;
        assert!(
            largest > 0 && largest <= 4 * MS,
            "{largest} ns, stalls {:?}",
            sent.report.stalls
        );

        let templates: Vec<_> = flows
            .iter()
            .map(|flow| FrameTemplate::new(flow, &addresses).unwrap())
            .collect();
        let mut seen = BTreeMap::new();
        let mut offered = vec![[0; 8]; WINDOWS as usize];
        for frame in &frames {
            let stamp = frame.stamp;
            let flow = &flows[usize::from(stamp.flow)];
            let template = &templates[usize::from(stamp.flow)];
            let mut expected = Vec::new();
            template.copy_to(&mut expected);
            template.stamp(&mut expected, &stamp);
            assert_eq!(frame.octets, expected, "{stamp:?}");
            assert_eq!(
                (stamp.run, frame.pcp, frame.traffic_class),
                (RUN, flow.pcp.map(Priority::get), flow.dscp.get() << 2 | 1)
            );
            let burst = bursts
                .iter()
                .find(|burst| burst.phase == stamp.phase)
                .unwrap();
            assert!((burst.from..burst.to).contains(&stamp.time));

            let (all, of_phase, times) = seen.entry(stamp.flow).or_insert((
                0u64,
                [0u64; Phase::COUNT],
                [(0, 0); Phase::COUNT],
            ));
            assert_eq!(stamp.sequence, *all);
            *all += 1;
            let before = of_phase[stamp.phase as usize];
            of_phase[stamp.phase as usize] += 1;
            let time = &mut times[stamp.phase as usize];
            *time = (if time.0 == 0 { stamp.time } else { time.0 }, stamp.time);
            // Never above the rate: the bits before this frame had accrued when it was stamped. The
            // first leaves within its time, for flows are staggered.
            let bits = u128::from(before) * u128::from(LineRate::frame_bits(flow.length));
            assert!(
                bits * 1_000_000_000 <= u128::from(flow.rate) * u128::from(stamp.time - burst.from),
                "{stamp:?}"
            );
            let window = ((stamp.time - wire.epoch) / WIDTH).min(u64::from(WINDOWS) - 1);
            offered[window as usize][flow.priority.index()] += 1;
        }
        assert_eq!(seen.len(), flows.len());
        assert_eq!(sent.offered, offered);
        for account in &sent.report.flows {
            let (_, frames, times) = seen[&account.flow];
            let phase = account.phase as usize;
            assert_eq!(
                (account.frames, account.first, account.last),
                (frames[phase], times[phase].0, times[phase].1)
            );
        }
    });
}

/// Flows of these lengths, with or without a tag.
fn flows(shapes: &[(usize, Option<u8>)]) -> Vec<FlowPlan> {
    let flow = |(id, &(length, pcp)): (usize, &(usize, Option<u8>))| {
        flow(
            id as u16,
            7 * id as u8 % 64,
            pcp,
            rate(5_000, length),
            length,
        )
    };
    shapes.iter().enumerate().map(flow).collect()
}

#[test]
fn root_frames_of_all_lengths_with_and_without_a_tag_are_as_planned() {
    let lengths = |lengths: &[usize], pcp| {
        let shapes: Vec<_> = lengths.iter().map(|length| (*length, pcp)).collect();
        flows(&shapes)
    };
    compare(&lengths(&[60, 1024, 61, 64, 87, 88, 89, 3400], None), v4());
    compare(&lengths(&[64, 1024, 65, 91, 92, 93, 3404], Some(5)), v4());
}

#[test]
fn root_short_frames_alone_are_as_planned() {
    compare(&flows(&[(60, None)]), v4());
    compare(&flows(&[(66, None), (60, None), (63, None)]), v4());
    compare(&flows(&[(67, Some(1)), (64, Some(2))]), v4());
}

#[test]
fn root_tags_beside_none_are_refused() {
    on_a_wire(|| {
        let flows = flows(&[(64, Some(1)), (60, None)]);
        let error = Setup::new(&flows).open().err().unwrap();
        assert!(matches!(error, TrafficError::Headers { .. }), "{error}");
    });
}

#[test]
fn root_ipv6_frames_are_as_planned() {
    compare(&flows(&[(80, None), (81, None), (83, None)]), v6());
    compare(
        &flows(&[(84, Some(4)), (86, Some(6)), (1504, Some(0))]),
        v6(),
    );
}
