//! Frames at low rates leave one by one, flows that start together begin one after the other, and
//! what asks for more than the line carries is told.
//!
//! A busy machine makes frames late, so that they bunch; none makes what leaves together leave
//! apart. Each test looks for one stretch without a bunch, and tries again where there is none.

use std::thread;
use std::time::{Duration, Instant};

use validator_core::engine::plan::{End, Obeys, PortIndex, Rate};
use validator_core::engine::{Engine as _, Order};

use crate::common;
use crate::engine::bench::{Bench, all, flow, plan, until_not_spoilt};

const RATE: u64 = 20_000;
const FRAMES: u64 = 4000;
/// Half of the interval: frames that leave together come within a few microseconds.
const APART: Duration = Duration::from_micros(25);
/// Gaps in a row: of frames that leave in threes, two of three are short.
const IN_A_ROW: usize = 12;

#[test]
fn root_frames_at_20_000_a_second_leave_one_by_one() {
    let test = "root_frames_at_20_000_a_second_leave_one_by_one";
    if !common::need_root(test) {
        return;
    }
    until_not_spoilt("half of the frames left together", || {
        let slow = flow("slow", 64, Rate::FramesPerSecond(RATE), End::Frames(FRAMES));
        let mut bench = Bench::new();
        let plan = plan(Obeys::Nothing, vec![slow]);
        let flows = all(&plan);
        bench.engine.configure(plan).unwrap();
        bench.engine.capture(&[PortIndex(1)], true).unwrap();
        bench.engine.transmit(&flows, Order::Start).unwrap();
        bench.until_done();
        let frames = bench.engine.captured(PortIndex(1)).unwrap().unwrap().frames;
        assert_eq!(frames.len() as u64, FRAMES);
        let gaps: Vec<Duration> = frames
            .windows(2)
            .map(|pair| pair[1].at.duration_since(pair[0].at).unwrap_or_default())
            .collect();
        let mut sorted = gaps.clone();
        sorted.sort_unstable();
        let median = sorted[sorted.len() / 2];
        println!("median gap {median:?}");
        let is_apart = |gaps: &[Duration]| gaps.iter().all(|gap| *gap >= APART);
        median >= APART && gaps.windows(IN_A_ROW).any(is_apart)
    });
}

#[test]
fn root_flows_that_start_together_begin_one_after_the_other() {
    let test = "root_flows_that_start_together_begin_one_after_the_other";
    if !common::need_root(test) {
        return;
    }
    // An eighth of a millisecond apart.
    const FLOWS: usize = 8;
    const LEAST: u64 = 62_000;
    until_not_spoilt("first frames left together", || {
        let one = |number: usize| {
            let rate = Rate::FramesPerSecond(1000);
            flow(&number.to_string(), 64, rate, End::Frames(1))
        };
        let mut bench = Bench::new();
        bench.start(plan(Obeys::Nothing, (0..FLOWS).map(one).collect()));
        let done = bench.until_done();
        let firsts: Vec<u64> = done
            .flows
            .iter()
            .map(|flow| flow.first_frame.unwrap())
            .collect();
        println!("first frames after {firsts:?} ns");
        firsts
            .windows(2)
            .all(|pair| pair[1].saturating_sub(pair[0]) >= LEAST)
    });
}

#[test]
fn root_300_slow_flows_begin_one_after_the_other_over_all_of_an_interval() {
    let test = "root_300_slow_flows_begin_one_after_the_other_over_all_of_an_interval";
    if !common::need_root(test) {
        return;
    }
    const FLOWS: u64 = 300;
    /// Interval of ten frames a second, nanoseconds.
    const INTERVAL: u64 = 100_000_000;
    let one = |number: u64| {
        let rate = Rate::FramesPerSecond(10);
        flow(&number.to_string(), 128, rate, End::Frames(2))
    };
    let mut bench = Bench::new();
    bench.start(plan(Obeys::Nothing, (0..FLOWS).map(one).collect()));
    let done = bench.until_done();
    for (place, flow) in (0..).zip(&done.flows) {
        assert_eq!(flow.received.frames, 2, "flow {place}");
        // However late this machine is, no frame leaves before it is due.
        let (first, due) = (flow.first_frame.unwrap(), place * INTERVAL / FLOWS);
        assert!(
            first >= due,
            "flow {place} began after {first} ns, due {due} ns"
        );
    }
}

#[test]
fn root_rates_beyond_the_line_are_told_once() {
    let test = "root_rates_beyond_the_line_are_told_once";
    if !common::need_root(test) {
        return;
    }
    let end = End::Frames(1_000_000);
    let flows = ["one", "other"].map(|name| flow(name, 1024, Rate::Percent(90.0), end.clone()));
    let mut bench = Bench::new();
    bench.start(plan(Obeys::Nothing, flows.into()));
    let mut warnings = Vec::new();
    let until = Instant::now() + Duration::from_secs(10);
    while warnings.is_empty() && Instant::now() < until {
        thread::sleep(Duration::from_millis(20));
        warnings = bench.engine.notices();
    }
    let warnings: Vec<_> = warnings.into_iter().map(|warning| warning.0).collect();
    assert!(
        warnings.len() == 1 && warnings[0].contains("its flows want more than it sends"),
        "{warnings:?}"
    );
    assert!(bench.engine.notices().is_empty());
}

#[test]
fn root_a_rate_that_the_line_does_not_carry_is_told_with_the_plan() {
    let test = "root_a_rate_that_the_line_does_not_carry_is_told_with_the_plan";
    if !common::need_root(test) {
        return;
    }
    let mut bench = Bench::new();
    let mut warnings_at = |rate| {
        let flow = flow("f", 64, Rate::FramesPerSecond(rate), End::Never);
        let warnings = bench.engine.configure(plan(Obeys::Nothing, vec![flow]));
        let warnings = warnings.unwrap().into_iter().map(|warning| warning.0);
        warnings
            .filter(|warning| warning.contains("less than its rate asks for"))
            .collect::<Vec<_>>()
    };
    // 64 octets take 672 ns of 1 Gbit/s.
    assert_eq!(warnings_at(1_488_095), [""; 0]);
    let warnings = warnings_at(1_488_096);
    assert!(
        warnings.len() == 1
            && warnings[0].contains("flow \"f\"")
            && warnings[0].contains("1 Gbit/s"),
        "{warnings:?}"
    );
}
