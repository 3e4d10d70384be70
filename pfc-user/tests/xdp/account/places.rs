//! Where a frame counts: by priority, flow, phase and window.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::{Config, OffenceKind};
use pfc_ebpf::stamp::{Phase, Stamp};
use pfc_ebpf::wire::Malformed;
use validator::driver::kernel::clock;

use super::{by_priority, kinds, only_flow, run, run_all};
use crate::frames::TestFrame;
use crate::xdp::{DROP, RUN, WINDOW, config, flows, loaded, stamp};

#[test]
fn root_where_the_pcp_is_trusted_the_outermost_tag_counts() {
    let account = loaded(Trust::Pcp);
    let frame = |sequence, tags: &[(u16, u16)]| {
        TestFrame {
            tags: tags.to_vec(),
            ..TestFrame::new(stamp(3, sequence))
        }
        .octets()
    };
    run(&account, &frame(0, &[(0x8100, 3 << 13 | 5)]));
    run(
        &account,
        &frame(1, &[(0x88a8, 3 << 13 | 5), (0x8100, 6 << 13)]),
    );
    run(
        &account,
        &frame(2, &[(0x88a8, 6 << 13 | 5), (0x8100, 3 << 13)]),
    );
    run(&account, &frame(3, &[]));
    let flow = only_flow(&account);
    assert_eq!(
        (flow.frames, flow.remarked, flow.untagged, flow.corrupt),
        (4, 2, 1, 0)
    );
    let port = account.port_counters().unwrap();
    assert_eq!(port.tagged(), 3);
    assert_eq!(by_priority(&account), [0, 0, 0, 2, 0, 0, 1, 0]);
    assert_eq!(port.by_dscp[3], 4);
}

#[test]
fn root_tags_options_and_ipv6_lead_to_the_stamp() {
    let account = loaded(Trust::Dscp);
    let mut sequence = 0;
    for tags in [
        vec![],
        vec![(0x8100, 1)],
        vec![(0x88a8, 1), (0x8100, 2)],
        vec![(0x8100, 1), (0x8100, 2)],
    ] {
        for (v6, options) in [(false, 0), (false, 4), (false, 40), (true, 0)] {
            let frame = TestFrame {
                tags: tags.clone(),
                v6,
                options: vec![1; options],
                ..TestFrame::new(stamp(3, sequence))
            };
            assert_eq!(
                run(&account, &frame.octets()),
                DROP,
                "{tags:?}, IPv6 {v6}, {options} octets of options"
            );
            sequence += 1;
        }
    }
    let flow = only_flow(&account);
    assert_eq!((flow.frames, flow.corrupt, flow.remarked), (16, 0, 0));
    assert_eq!(account.port_counters().unwrap().tagged(), 12);
}

#[test]
fn root_flows_and_phases_are_kept_apart() {
    let account = loaded(Trust::Dscp);
    for flow in 0..8 {
        for phase in Phase::ALL {
            run(
                &account,
                &TestFrame::new(Stamp {
                    phase,
                    ..stamp(flow, phase as u64)
                })
                .octets(),
            );
        }
    }
    let flows = account.flows().unwrap();
    let seen: Vec<_> = flows
        .iter()
        .map(|flow| {
            (
                flow.flow,
                flow.phase,
                flow.frames,
                flow.duplicate + flow.reordered,
            )
        })
        .collect();
    let expected: Vec<_> = (0..8)
        .flat_map(|flow| Phase::ALL.map(|phase| (flow, phase, 1, 0)))
        .collect();
    assert_eq!(seen, expected);
    assert_eq!(account.received(Phase::Probe, 0..8).unwrap(), 8);
}

#[test]
fn root_arrivals_count_in_their_window_and_late_ones_in_the_last() {
    let mut account = loaded(Trust::Dscp);
    let mut flows = flows(8);
    flows[3].log_phases = Phase::Storm.bit();
    let now = clock::now();
    // 20 windows after the epoch, which is more than there are; before the epoch.
    for epoch in [
        now,
        now.saturating_sub(2 * WINDOW),
        now.saturating_sub(20 * WINDOW),
        now + 20 * WINDOW,
    ] {
        account
            .configure(
                &Config {
                    epoch,
                    ..config(Trust::Dscp)
                },
                &flows,
            )
            .unwrap();
        run_all(&account, [0, 1, 1]);
        let arrivals = account.take_rings().unwrap().arrivals;
        assert_eq!(arrivals.len(), 3);
        let mut expected = [[0; 8]; 8];
        for arrival in &arrivals[..2] {
            let window = (arrival.time.saturating_sub(epoch) / WINDOW).min(7);
            expected[window as usize][3] += 1;
        }
        assert_eq!(account.windows().unwrap(), expected);
    }
}

#[test]
fn root_frames_of_another_run_or_flow_are_not_accounted() {
    let mut account = loaded(Trust::Dscp);
    assert_eq!(
        run(
            &account,
            &TestFrame::new(Stamp {
                run: RUN + 1,
                ..stamp(3, 0)
            })
            .octets()
        ),
        DROP
    );
    assert_eq!(run(&account, &TestFrame::new(stamp(8, 0)).octets()), DROP);
    assert_eq!(account.flows().unwrap(), []);
    let port = account.port().unwrap();
    assert_eq!((port.frames, port.test_frames, port.foreign_run), (2, 0, 1));
    assert_eq!(port.malformed, [(Malformed::Stamp, 1)]);
    assert_eq!(kinds(&mut account), [OffenceKind::Malformed]);
}
