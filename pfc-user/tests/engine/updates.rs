//! Lengths as they were drawn, and changes of flows while they are sent. A flow of one bit a second
//! sends its first frame at once, and its second in minutes: whatever comes after the first is due
//! to a change.

use pfc_ebpf::units::LineRate;
use validator_core::engine::packet::Value;
use validator_core::engine::plan::{End, Flow, FlowIndex, Length, Obeys, PortIndex, Rate};
use validator_core::engine::snapshot::Count;
use validator_core::engine::{Change, Engine, Order, Problem, Warning};

use crate::common;
use crate::engine::bench::{Bench, flow, plan};

const STILL: Rate = Rate::BitsPerSecond(1);
const ONE: FlowIndex = FlowIndex(0);

/// Lengths with FCS of the frames that port 1 captured, in order.
fn captured(bench: &mut Bench) -> Vec<u32> {
    let captured = bench.engine.captured(PortIndex(1)).unwrap().unwrap();
    assert_eq!(captured.missed, 0);
    let frames = captured.frames.iter();
    frames.map(|frame| frame.octets.len() as u32 + 4).collect()
}

/// Takes the plan, and captures what the flow sends.
fn started(flows: Vec<Flow>) -> Bench {
    let mut bench = Bench::new();
    bench.engine.configure(plan(Obeys::Nothing, flows)).unwrap();
    bench.engine.capture(&[PortIndex(1)], true).unwrap();
    bench.engine.transmit(&[ONE], Order::Start).unwrap();
    bench
}

#[test]
fn root_random_and_weighted_lengths_arrive_as_they_were_drawn() {
    if !common::need_root("root_random_and_weighted_lengths_arrive_as_they_were_drawn") {
        return;
    }
    for length in [
        Length::Random { min: 64, max: 1518 },
        Length::Weighted(vec![(64, 7.0), (594, 4.0), (1518, 1.0)]),
    ] {
        let mut bench = started(vec![Flow {
            length: length.clone(),
            ..flow(
                "drawn",
                64,
                Rate::FramesPerSecond(20_000),
                End::Frames(3000),
            )
        }]);
        let done = bench.until_done();
        let drawn: Vec<u32> = (0..3000).map(|number| length.nth(number)).collect();
        let all = Count {
            frames: 3000,
            octets: drawn.iter().map(|length| u64::from(*length)).sum(),
        };
        assert_eq!((done.flows[0].sent, done.flows[0].received), (all, all));
        assert_eq!(done.ports[1].received, all);
        assert_eq!(captured(&mut bench), drawn, "{length:?}");
    }
}

#[test]
fn root_rate_and_length_change_while_a_flow_is_sent_and_no_frame_is_lost() {
    let test = "root_rate_and_length_change_while_a_flow_is_sent_and_no_frame_is_lost";
    if !common::need_root(test) {
        return;
    }
    let mut bench = started(vec![flow("one", 64, STILL, End::Frames(4000))]);
    bench.until("its first frame", |now| now.flows[0].received.frames == 1);
    let changes = [
        (ONE, Change::Length(Length::Fixed(1024))),
        (ONE, Change::Rate(Rate::FramesPerSecond(10_000))),
    ];
    bench.engine.update(&changes).unwrap();
    bench.until("frames of the new rate", |now| {
        now.flows[0].received.frames > 1000
    });
    let shorter = [(ONE, Change::Length(Length::Fixed(300)))];
    bench.engine.update(&shorter).unwrap();
    let done = bench.until_done();
    let lengths = captured(&mut bench);
    let long = lengths.iter().filter(|length| **length == 1024).count();
    let mut expected = vec![64];
    expected.resize(1 + long, 1024);
    expected.resize(4000, 300);
    assert_eq!(lengths, expected);
    assert!((1000..3999).contains(&long), "{long} frames of 1024 octets");
    let all = Count {
        frames: 4000,
        octets: expected.iter().map(|length| u64::from(*length)).sum(),
    };
    assert_eq!((done.flows[0].sent, done.flows[0].received), (all, all));
}

#[test]
fn root_changes_that_come_together_are_made_all_or_none() {
    if !common::need_root("root_changes_that_come_together_are_made_all_or_none") {
        return;
    }
    let witness = flow(
        "witness",
        64,
        Rate::FramesPerSecond(10_000),
        End::Frames(500),
    );
    let mut bench = started(vec![
        flow("one", 64, STILL, End::Frames(200)),
        flow("long", 64, STILL, End::Never),
        witness,
    ]);
    let right = [
        (ONE, Change::Rate(Rate::FramesPerSecond(10_000))),
        (ONE, Change::Length(Length::Fixed(128))),
    ];
    let mut wrong = right.to_vec();
    wrong.push((FlowIndex(1), Change::Length(Length::Fixed(9600))));
    let problems = bench.engine.update(&wrong).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    for (problem, part) in problems.iter().zip(["MTU of 9200"]) {
        let found = matches!(problem, Problem::Order(text)
            if text.contains("\"long\"") && text.contains(part));
        assert!(found, "{problem}");
    }
    let unknown = [right[0].clone(), (FlowIndex(9), right[0].1.clone())];
    let problems = bench.engine.update(&unknown).unwrap_err();
    assert!(problems[0].to_string().contains("flow 9"), "{problems:?}");
    bench
        .engine
        .transmit(&[FlowIndex(2)], Order::Start)
        .unwrap();
    let now = bench.until("the end of the witness", |now| {
        now.flows[2].received.frames == 500
    });
    assert_eq!(now.flows[0].sent.frames, 1);
    bench.engine.update(&right).unwrap();
    let done = bench.until_done();
    let octets = 64 + 199 * 128;
    assert_eq!(
        done.flows[0].sent,
        Count {
            frames: 200,
            octets
        }
    );
}

#[test]
fn root_a_rate_that_an_update_raises_beyond_a_thread_is_warned_of_once() {
    let test = "root_a_rate_that_an_update_raises_beyond_a_thread_is_warned_of_once";
    if !common::need_root(test) {
        return;
    }
    let of = |rate| flow("one", 64, Rate::FramesPerSecond(rate), End::Never);
    let [slow, fast] = [1000, 500_000].map(|rate| {
        let mut plan = plan(Obeys::Nothing, vec![of(rate)]);
        for port in &mut plan.ports {
            port.line_rate = LineRate::from_bits_per_second(100_000_000_000).ok();
        }
        plan
    });
    // A veth takes no frames of the kernel's where the other end is not ours.
    let mut bench = Bench::through();
    assert_eq!(bench.engine.configure(slow), Ok(Vec::new()));
    // Each rate with the number of warnings that it is the first to give rise to.
    let change = |bench: &mut Bench, rate| {
        let change = Change::Rate(Rate::FramesPerSecond(rate));
        bench.engine.update(&[(ONE, change)]).unwrap()
    };
    for (rate, expected) in [(500_000, 1), (600_000, 0), (1000, 0), (500_000, 1)] {
        let warnings = change(&mut bench, rate);
        assert_eq!(warnings.len(), expected, "{rate}: {warnings:?}");
        for Warning(text) in warnings {
            assert!(
                text.contains("port \"a\"") && text.contains("500000"),
                "{text}"
            );
        }
    }
    // A plan tells all there is to tell, and the update after it nothing again.
    for _ in 0..2 {
        assert_eq!(bench.engine.configure(fast.clone()).unwrap().len(), 1);
        assert_eq!(change(&mut bench, 600_000), []);
    }
}

#[test]
fn root_flows_beyond_a_thread_that_the_kernel_cannot_make_are_warned_of() {
    let test = "root_flows_beyond_a_thread_that_the_kernel_cannot_make_are_warned_of";
    if !common::need_root(test) {
        return;
    }
    let mut walks = flow("walks", 64, Rate::FramesPerSecond(500_000), End::Never);
    let walk = Value::Increment {
        start: 1,
        step: 1,
        count: 100,
    };
    walks.packet.headers[2].fields = vec![("src_port", walk)];
    let constant = |rate| flow("constant", 64, Rate::FramesPerSecond(rate), End::Never);
    let of = |flows: Vec<Flow>| {
        let mut plan = plan(Obeys::Nothing, flows);
        for port in &mut plan.ports {
            port.line_rate = LineRate::from_bits_per_second(100_000_000_000).ok();
        }
        plan
    };
    let mut bench = Bench::new();
    let beside = vec![constant(10), walks.clone()];
    // The kernel sends at that port from the second plan on, which changes nothing for the others.
    for (flows, slow) in [
        (vec![walks.clone()], true),
        (vec![constant(500_000)], false),
        (vec![walks], true),
        (beside, true),
    ] {
        let warnings = bench.engine.configure(of(flows)).unwrap();
        assert_eq!(warnings.len(), usize::from(slow), "{warnings:?}");
        for Warning(text) in warnings {
            assert!(text.contains("whose headers are all the same"), "{text}");
        }
    }
}
