//! The usual load of SONiC's tests: eight flows of 45 and seven times 6 percent of 1 Gbit/s at 1024
//! octets, 104,000 frames a second, and a storm of PFC, while all counts are asked for time and
//! again.

use pfc_ebpf::units::{Priority, Quanta};
use validator_core::engine::packet::Value;
use validator_core::engine::plan::{End, Flow, Obeys, Rate};
use validator_core::engine::snapshot::Transmit;

use crate::common;
use crate::engine::bench::{Bench, flow, gigabit, pauses, plan};

const SECOND: u64 = 1_000_000_000;
/// 10 ms.
const PAUSE: Quanta = Quanta(20_000);

#[test]
fn root_104_000_frames_a_second_are_exact_with_a_storm_while_counts_are_asked_for() {
    let test = "root_104_000_frames_a_second_are_exact_with_a_storm_while_counts_are_asked_for";
    if !common::need_root(test) {
        return;
    }
    let mut flows: Vec<_> = (0..8)
        .map(|queue| Flow {
            queue: Priority::new(queue).unwrap(),
            ..flow(
                &format!("{queue}"),
                1024,
                Rate::Percent(if queue == 0 { 45.0 } else { 6.0 }),
                End::Time(5 * SECOND),
            )
        })
        .collect();
    // A pause of 10 ms each 20 ms: queues 3 and 4 are held, and go on in between.
    flows.push(pauses(
        &[
            ("class_enable_vector", Value::Fixed(0b1_1000)),
            ("pause_class_3", Value::Fixed(PAUSE.0.into())),
            ("pause_class_4", Value::Fixed(PAUSE.0.into())),
        ],
        50,
        End::Time(5 * SECOND),
    ));
    let identity = std::array::from_fn(|class| Some(Priority::new(class as u8).unwrap()));
    let mut bench = Bench::new();
    bench.start(plan(Obeys::Pfc(identity), flows));
    let mut last = bench.snapshot();
    while last
        .flows
        .iter()
        .any(|flow| flow.transmit != Transmit::Stopped)
    {
        let now = bench.snapshot();
        for (now, before) in now.flows.iter().zip(&last.flows) {
            assert!(now.received.frames >= before.received.frames);
            assert!(now.sent.frames >= before.sent.frames);
        }
        last = now;
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let done = bench.until_done();
    // Frames that a port sent are counted apart from its flows.
    let sent: u64 = done.flows[..8].iter().map(|flow| flow.sent.frames).sum();
    assert_eq!(sent, done.ports[0].sent.frames);
    for flow in &done.flows[..8] {
        assert_eq!(flow.sent, flow.received);
        assert_eq!(
            (flow.duplicates, flow.reordered, flow.corrupt, flow.leaked),
            (0, 0, 0, 0)
        );
        assert_eq!(flow.sent.octets, 1024 * flow.sent.frames);
    }
    let port = &done.ports[0];
    // No pause lasts longer than its quanta, rounded up to a nanosecond.
    let longest = port.own_pfc_received[3] * (PAUSE.nanos(gigabit()) + 1);
    assert!((1..=longest).contains(&port.held[3]), "{:?}", port.held);
    assert_eq!((port.held[0], port.held[4]), (0, port.held[3]));
    assert!(done.flows[3].sent.frames < done.flows[1].sent.frames);
}
