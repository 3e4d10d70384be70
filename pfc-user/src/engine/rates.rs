//! Rates, from counts that were read before: the mean of the last second, or of the traffic since
//! the last silence within it.

use std::collections::VecDeque;

use pfc_ebpf::units::{Nanos, Priority, SECOND};
use validator_core::engine::plan::FlowIndex;
use validator_core::engine::snapshot::{Count, Rates, SAMPLING};

/// Least frames expected in a time in which none came, for that to be a silence. Fewer are no
/// evidence of one.
const EXPECTED: f64 = 3.0;

/// Counts at one time: of each port and each flow, what was sent and what was received.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub at: Nanos,
    pub ports: Vec<[Count; 2]>,
    pub flows: Vec<[Count; 2]>,
    /// By port.
    pub held: Vec<Held>,
}

/// Time for which each queue of a port was held until `at`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    pub at: Nanos,
    pub totals: [Nanos; Priority::COUNT],
}

impl Sample {
    /// True if a queue of a port was held all the time from an earlier sample on.
    pub fn is_held_since(&self, from: &Self, port: usize, queue: Priority) -> bool {
        let (Some(now), Some(then)) = (self.held.get(port), from.held.get(port)) else {
            return false;
        };
        let total = |held: &Held| held.totals[queue.index()];
        then.at < now.at && total(now).saturating_sub(total(then)) == now.at - then.at
    }
}

/// Samples of the last second or so, over which a rate is taken where there are samples that old.
#[derive(Debug, Default)]
pub struct Samples {
    kept: VecDeque<Sample>,
    /// Time at which a count had last changed.
    changed: Nanos,
}

impl Samples {
    /// Flows start with all counts zero.
    pub fn begin(&mut self, flows: &[FlowIndex]) {
        for sample in &mut self.kept {
            for flow in flows {
                if let Some(counts) = sample.flows.get_mut(flow.0) {
                    *counts = Default::default();
                }
            }
        }
    }

    /// True if a count changed within the last second or so: rates are not 0 yet.
    pub fn moves(&self, now: Nanos) -> bool {
        !self.kept.is_empty() && now < self.changed + SECOND + 2 * SAMPLING
    }

    /// Keeps a sample.
    pub fn keep(&mut self, sample: Sample) {
        while self.kept.len() > 1 && self.kept[1].at + SECOND <= sample.at {
            self.kept.pop_front();
        }
        let last = self.kept.back();
        let is_other = |last: &Sample| (&last.ports, &last.flows) != (&sample.ports, &sample.flows);
        if last.is_none_or(is_other) {
            self.changed = sample.at;
        }
        // The next may come somewhat early.
        if last.is_none_or(|last| last.at + SAMPLING / 2 <= sample.at) {
            self.kept.push_back(sample);
        }
    }

    /// The present rate of a count. `is_still`: nothing of it was to be sent from that sample on,
    /// by order or for a pause, so that any silence since then is its end.
    pub fn rate(
        &self,
        now: &Sample,
        is_still: impl Fn(&Sample) -> bool,
        count: impl Fn(&Sample) -> Option<Count>,
    ) -> Rates {
        let counted = |sample: &Sample| count(sample).unwrap_or_default();
        let before = |sample: &&Sample| sample.at < now.at;
        let Some(oldest) = self.kept.front().filter(before) else {
            return Rates::default();
        };
        let mut kept = self.kept.iter().rev();
        let recent = kept.find(|sample| sample.at + SAMPLING <= now.at);
        let mut from = recent.unwrap_or(oldest);
        let usual = [oldest, from].map(|from| mean(from, now, counted).frames);
        let usual = usual[0].max(usual[1]) / SECOND as f64;
        let is_silent = |from: &Sample, to: &Sample| {
            let frames = counted(to).frames.saturating_sub(counted(from).frames);
            frames == 0 && usual * (to.at - from.at) as f64 >= EXPECTED
        };
        if counted(now).frames <= counted(from).frames {
            // The rate before the silence tells how much was to come in it.
            let all = |sample: &&Sample| counted(sample).frames >= counted(now).frames;
            let last = self.kept.iter().find(all).unwrap_or(from);
            let before = mean(oldest, last, counted).frames / SECOND as f64;
            let ended = before * (now.at - last.at) as f64 >= EXPECTED;
            if is_still(from) || ended || last.at == oldest.at {
                return Rates::default();
            }
        }
        for older in kept {
            if is_silent(older, from) {
                break;
            }
            from = older;
        }
        mean(from, now, counted)
    }
}

/// The mean rate from one sample to a later one.
fn mean(from: &Sample, to: &Sample, counted: impl Fn(&Sample) -> Count) -> Rates {
    let (time, from, to) = (to.at - from.at, counted(from), counted(to));
    let by_second = |before: u64, after: u64| {
        after.saturating_sub(before) as f64 * SECOND as f64 / time.max(1) as f64
    };
    Rates {
        frames: by_second(from.frames, to.frames),
        octets: by_second(from.octets, to.octets),
    }
}

#[cfg(test)]
mod tests {
    use pfc_ebpf::units::MILLISECOND;

    use super::*;

    fn sample(at: Nanos, frames: u64) -> Sample {
        let count = Count {
            frames,
            octets: 64 * frames,
        };
        Sample {
            at,
            ports: vec![[count; 2]],
            flows: vec![[count; 2]],
            held: Vec::new(),
        }
    }

    fn rate_of(samples: &mut Samples, now: Sample, is_still: bool) -> f64 {
        let rate = samples.rate(&now, |_| is_still, |sample| Some(sample.flows[0][0]));
        samples.keep(now);
        rate.frames
    }

    #[test]
    fn rates_are_those_of_the_last_second_however_often_they_are_asked_for() {
        for step in [20, 100, 400, 3000].map(|step| step * MILLISECOND) {
            let mut samples = Samples::default();
            samples.keep(sample(0, 0));
            let mut at = 0;
            // 1000 frames a second, ...
            while at < 6 * SECOND {
                at += step;
                let found = rate_of(&mut samples, sample(at, at / MILLISECOND), false);
                assert!((found - 1000.0).abs() < 1e-6, "{found} at {at}");
            }
            // ... then none.
            let last = at / MILLISECOND;
            let found = rate_of(&mut samples, sample(at + step.max(SAMPLING), last), false);
            assert_eq!(found, 0.0, "asked for each {step} ns");
        }
    }

    #[test]
    fn a_rate_ends_within_100_ms_and_begins_without_the_silence_before_it() {
        let mut samples = Samples::default();
        let mut rates = Vec::new();
        // Frames for a second, none for two, and frames again, looked at each 50 ms.
        for at in (0..=80).map(|step| step * 50) {
            let frames = u64::min(at, 1000) + u64::saturating_sub(at, 3000);
            let found = rate_of(&mut samples, sample(at * MILLISECOND, frames), false);
            rates.push((at, found));
        }
        for (at, found) in rates {
            let expected = match at {
                0 | 1050..=3000 => 0.0,
                _ => 1000.0,
            };
            assert!((found - expected).abs() < 1e-6, "{found} at {at} ms");
        }
    }

    #[test]
    fn a_slow_flow_has_the_mean_of_a_second_until_it_is_known_to_have_ended() {
        let mut samples = Samples::default();
        let frames = |at: u64| at / 200;
        for at in (0..=4000).step_by(50) {
            let found = rate_of(&mut samples, sample(at * MILLISECOND, frames(at)), false);
            assert!(at < 1000 || (4.0..=6.0).contains(&found), "{found} at {at}");
        }
        let ended = sample(4100 * MILLISECOND, frames(4000));
        assert!(rate_of(&mut samples, ended.clone(), false) > 0.0);
        assert_eq!(rate_of(&mut samples, ended, true), 0.0);
    }

    /// Rates at each 50 ms of a flow of 10 frames a second in a queue that was held for so many of
    /// the milliseconds up to each, with the milliseconds.
    fn slow_and_held(frames: fn(u64) -> u64, held: fn(u64) -> u64) -> Vec<(u64, f64)> {
        let queue = Priority::new(3).unwrap();
        let mut samples = Samples::default();
        let times = (0..=4000).step_by(50);
        let rates = times.map(|at| {
            let mut totals = [0; Priority::COUNT];
            totals[queue.index()] = held(at) * MILLISECOND;
            let now = Sample {
                held: vec![Held {
                    at: at * MILLISECOND,
                    totals,
                }],
                ..sample(at * MILLISECOND, frames(at))
            };
            let is_held = |from: &Sample| now.is_held_since(from, 0, queue);
            let rate = samples.rate(&now, is_held, |sample| Some(sample.flows[0][0]));
            samples.keep(now);
            (at, rate.frames)
        });
        rates.collect()
    }

    #[test]
    fn a_slow_flow_has_no_rate_within_100_ms_after_it_is_held() {
        const HELD: std::ops::RangeInclusive<u64> = 1030..=2000;
        let held = |at: u64| at.clamp(*HELD.start(), *HELD.end()) - HELD.start();
        let frames = |at: u64| (at.min(*HELD.start()) + at.saturating_sub(*HELD.end())) / 100;
        for (at, found) in slow_and_held(frames, held) {
            match at {
                ..200 | 1031..1130 | 2001..3200 => {}
                1130..=2000 => assert_eq!(found, 0.0, "at {at} ms"),
                _ => assert!((8.0..=12.0).contains(&found), "{found} at {at} ms"),
            }
        }
    }

    #[test]
    fn a_slow_flow_that_is_let_go_again_and_again_has_the_mean_of_a_second() {
        // Each 50 ms it is free for 10 ms.
        for (at, found) in slow_and_held(|at| at / 100, |at| at / 50 * 40) {
            assert!(
                at < 1000 || (8.0..=12.0).contains(&found),
                "{found} at {at}"
            );
        }
    }

    #[test]
    fn a_start_clears_the_counts_that_a_rate_is_from() {
        let mut samples = Samples::default();
        samples.keep(sample(0, 0));
        samples.keep(sample(SECOND, 5000));
        samples.begin(&[FlowIndex(0)]);
        let now = sample(SECOND + SECOND / 2, 50);
        assert_eq!(rate_of(&mut samples, now, false), 100.0);
    }
}
