//! Bursts as they arrive: by the capture's times.

use std::time::{Duration, SystemTime};

use validator_core::engine::plan::{End, FlowIndex, Obeys, PortIndex, Rate, Span};
use validator_core::engine::{CapturedFrame, Engine as _, Order};

use crate::common;
use crate::engine::bench::{Bench, flow, plan};
use crate::engine::witness::Witness;

const BURSTS: usize = 6;
const FRAMES: usize = 20;
/// From one frame of a burst to the next, and from the last of one to the first of the next.
const INTERVAL: Duration = Duration::from_millis(1);
const SILENCE: Duration = Duration::from_millis(60);

/// Times of arrival by burst: a silence of half the length that was asked for begins another one.
fn by_burst(frames: &[CapturedFrame]) -> Vec<Vec<SystemTime>> {
    let mut bursts: Vec<Vec<SystemTime>> = Vec::new();
    for frame in frames {
        match bursts.last_mut() {
            Some(burst) if since(burst[burst.len() - 1], frame.at) < SILENCE / 2 => {
                burst.push(frame.at);
            }
            _ => bursts.push(vec![frame.at]),
        }
    }
    bursts
}

fn since(before: SystemTime, after: SystemTime) -> Duration {
    after.duration_since(before).unwrap()
}

#[test]
fn root_bursts_arrive_as_they_were_asked_for() {
    let test = "root_bursts_arrive_as_they_were_asked_for";
    if !common::need_root(test) {
        return;
    }
    let end = End::Bursts {
        bursts: Some(BURSTS as u64),
        frames: FRAMES as u64,
        gap: Span::Time(SILENCE.as_nanos() as u64),
    };
    let bursts = flow("bursts", 256, Rate::FramesPerSecond(1000), end);
    let mut bench = Bench::new();
    bench
        .engine
        .configure(plan(Obeys::Nothing, vec![bursts]))
        .unwrap();
    bench.engine.capture(&[PortIndex(1)], true).unwrap();
    let witness = Witness::start();
    let order = SystemTime::now();
    bench
        .engine
        .transmit(&[FlowIndex(0)], Order::Start)
        .unwrap();
    let done = bench.until_done();
    let still = witness.longest();
    if still > SILENCE / 3 {
        return common::undecided(test, &format!("this machine stood still for {still:?}"));
    }
    assert_eq!(done.flows[0].received.frames as usize, BURSTS * FRAMES);
    let captured = bench.engine.captured(PortIndex(1)).unwrap().unwrap();
    let found = by_burst(&captured.frames);
    let sizes: Vec<usize> = found.iter().map(Vec::len).collect();
    assert_eq!(sizes, [FRAMES; BURSTS]);
    // None comes before its time, and none much later.
    let burst = INTERVAL * (FRAMES as u32 - 1);
    let mut due = order;
    for times in &found {
        for (number, time) in times.iter().enumerate() {
            let due = due + INTERVAL * number as u32;
            let late = time.duration_since(due);
            let late = late.unwrap_or_else(|early| panic!("{:?} early", early.duration()));
            assert!(late < SILENCE / 3 + still, "{late:?} late");
        }
        due += burst + SILENCE;
    }
}
