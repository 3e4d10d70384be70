//! Rates over the last second or so, from counts that were read before.

use std::collections::VecDeque;

use pfc_ebpf::units::Nanos;
use validator_core::engine::plan::FlowIndex;
use validator_core::engine::snapshot::{Count, Rates, Snapshot};

/// From one sample that is kept to the next.
const SPACING: Nanos = 100_000_000;
/// What a rate is over, where there are samples that old.
const SECOND: Nanos = 1_000_000_000;

/// What was counted at one time: of each port and each flow, what was sent and what was received.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub at: Nanos,
    pub ports: Vec<[Count; 2]>,
    pub flows: Vec<[Count; 2]>,
}

impl Sample {
    /// That of a snapshot.
    pub fn of(snapshot: &Snapshot) -> Self {
        let ports = snapshot.ports.iter();
        let flows = snapshot.flows.iter();
        Self {
            at: snapshot.at,
            ports: ports.map(|port| [port.sent, port.received]).collect(),
            flows: flows.map(|flow| [flow.sent, flow.received]).collect(),
        }
    }
}

/// Samples of the last second or so.
#[derive(Debug, Default)]
pub struct Samples {
    kept: VecDeque<Sample>,
}

impl Samples {
    /// Flows start with all counts zero; all others have come as far as in `now`.
    pub fn begin(&mut self, flows: &[FlowIndex], now: Sample) {
        self.kept.push_back(now);
        for sample in &mut self.kept {
            for flow in flows {
                if let Some(counts) = sample.flows.get_mut(flow.0) {
                    *counts = Default::default();
                }
            }
        }
    }

    /// Keeps a sample, and returns the one that rates are counted from.
    pub fn keep(&mut self, sample: &Sample) -> Sample {
        while self.kept.len() > 1 && self.kept[1].at + SECOND <= sample.at {
            self.kept.pop_front();
        }
        let from = self.kept.front().unwrap_or(sample).clone();
        if self
            .kept
            .back()
            .is_none_or(|last| last.at + SPACING <= sample.at)
        {
            self.kept.push_back(sample.clone());
        }
        from
    }
}

/// The rate from one count to a later one.
pub fn rate(from: &Count, to: &Count, time: Nanos) -> Rates {
    if time == 0 {
        return Rates::default();
    }
    let by_second =
        |before: u64, after: u64| after.saturating_sub(before) as f64 * SECOND as f64 / time as f64;
    Rates {
        frames: by_second(from.frames, to.frames),
        octets: by_second(from.octets, to.octets),
    }
}

#[cfg(test)]
mod tests {
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
        }
    }

    fn rate_of(samples: &mut Samples, now: &Sample) -> f64 {
        let from = samples.keep(now);
        rate(&from.flows[0][0], &now.flows[0][0], now.at - from.at).frames
    }

    #[test]
    fn rates_are_over_the_last_second_however_often_they_are_asked_for() {
        for step in [20_000_000, 100_000_000, 400_000_000, 3_000_000_000] {
            let mut samples = Samples::default();
            samples.keep(&sample(0, 0));
            let mut at = 0;
            // 1000 frames a second, ...
            while at < 6_000_000_000 {
                at += step;
                let found = rate_of(&mut samples, &sample(at, at / 1_000_000));
                assert!((found - 1000.0).abs() < 1e-6, "{found} at {at}");
            }
            // ... then none.
            let last = at / 1_000_000;
            let mut found = 1000.0;
            for _ in 0..2 {
                at += SECOND.max(step);
                found = rate_of(&mut samples, &sample(at, last));
            }
            assert_eq!(found, 0.0, "asked for each {step} ns");
        }
    }

    #[test]
    fn a_start_clears_the_counts_that_a_rate_is_from() {
        let mut samples = Samples::default();
        samples.keep(&sample(0, 0));
        samples.keep(&sample(SECOND, 5000));
        samples.begin(&[FlowIndex(0)], sample(2 * SECOND, 9000));
        let now = sample(2 * SECOND + SECOND / 2, 50);
        assert!(rate_of(&mut samples, &now) > 0.0);
        let now = sample(3 * SECOND, 100);
        assert_eq!(rate_of(&mut samples, &now), 100.0);
    }

    #[test]
    fn a_start_leaves_the_rates_of_others_as_they_are() {
        let mut samples = Samples::default();
        samples.keep(&sample(0, 0));
        // 1000 frames a second, and another flow starts before the next sample would be kept.
        samples.begin(&[FlowIndex(1)], sample(90_000_000, 90));
        let now = sample(90_000_000 + SECOND, 1090);
        assert_eq!(rate_of(&mut samples, &now), 1000.0);
    }
}
