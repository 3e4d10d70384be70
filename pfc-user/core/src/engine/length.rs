//! Lengths of a flow's frames, each by its number.

use super::packet::scattered;
use super::plan::Length;

/// Seed of the lengths: any value, as long as it stays.
const SEED: u64 = 1;
/// Shortest and longest Ethernet frame that is sent, with FCS.
const SHORTEST: u32 = 64;
const LONGEST: u32 = 16_000;

impl Length {
    /// Octets of frame `number`, with FCS.
    pub fn nth(&self, number: u64) -> u32 {
        match self {
            Self::Fixed(length) => *length,
            Self::Increment { start, end, step } => {
                let lengths = u64::from(end.saturating_sub(*start) / (*step).max(1)) + 1;
                start + step * (number % lengths) as u32
            }
            Self::Random { min, max } => {
                let width = u64::from(max.saturating_sub(*min)) + 1;
                min + (scattered(SEED, number) % width) as u32
            }
            Self::Weighted(lengths) => weighted(lengths, number),
        }
    }

    /// The shortest and the longest.
    pub fn bounds(&self) -> (u32, u32) {
        match self {
            Self::Fixed(length) => (*length, *length),
            Self::Increment { start, end, .. } => (*start, *end),
            Self::Random { min, max } => (*min, *max),
            Self::Weighted(lengths) => {
                let all = || lengths.iter().map(|(length, _)| *length);
                (all().min().unwrap_or(0), all().max().unwrap_or(0))
            }
        }
    }

    /// The defects.
    pub fn check(&self) -> Vec<String> {
        let (shortest, longest) = self.bounds();
        let mut wrong = Vec::new();
        if shortest < SHORTEST || longest > LONGEST {
            wrong.push(format!(
                "expected lengths of {SHORTEST} to {LONGEST} octets with FCS, found {shortest} to \
                 {longest}"
            ));
        }
        match self {
            Self::Increment { step: 0, .. } => wrong.push("the step of lengths is 0".into()),
            Self::Increment { .. } | Self::Random { .. } if shortest > longest => wrong.push(
                format!("lengths begin at {shortest}, above their end at {longest}"),
            ),
            Self::Weighted(lengths) => {
                let right = |weight: f32| weight.is_finite() && weight >= 0.0;
                let sum: f32 = lengths.iter().map(|(_, weight)| weight).sum();
                if sum <= 0.0 || lengths.iter().any(|(_, weight)| !right(*weight)) {
                    wrong.push("expected weights of lengths of 0 or more, and one above 0".into());
                }
            }
            _ => {}
        }
        wrong
    }
}

/// The length that a number in a series without order falls on.
fn weighted(lengths: &[(u32, f32)], number: u64) -> u32 {
    let sum: f64 = lengths.iter().map(|(_, weight)| f64::from(*weight)).sum();
    // 53 bits: what a double holds.
    let mut place = (scattered(SEED, number) >> 11) as f64 / (1u64 << 53) as f64 * sum;
    for (length, weight) in lengths {
        place -= f64::from(*weight);
        if place < 0.0 {
            return *length;
        }
    }
    lengths.last().map_or(SHORTEST, |(length, _)| *length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn increments_reach_their_end_and_begin_again() {
        let length = Length::Increment {
            start: 64,
            end: 70,
            step: 3,
        };
        let found: Vec<_> = (0..5).map(|number| length.nth(number)).collect();
        assert_eq!(found, [64, 67, 70, 64, 67]);
    }

    #[test]
    fn random_lengths_reach_both_bounds_and_nothing_beyond() {
        let length = Length::Random { min: 64, max: 66 };
        let found: Vec<_> = (0..100).map(|number| length.nth(number)).collect();
        assert!((64..=66).all(|length| found.contains(&length)));
        assert!(found.iter().all(|length| (64..=66).contains(length)));
    }

    #[test]
    fn lengths_come_by_their_weights() {
        let length = Length::Weighted(vec![(64, 7.0), (570, 0.0), (594, 2.0), (1518, 1.0)]);
        let mut counts = std::collections::BTreeMap::new();
        for number in 0..10_000 {
            *counts.entry(length.nth(number)).or_insert(0) += 1;
        }
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [64, 594, 1518]);
        // Four standard deviations of a draw of 10000.
        for (length, expected) in [(64, 7000), (594, 2000), (1518, 1000)] {
            let off = i32::abs(counts[&length] - expected);
            assert!(off < 190, "{length}: {} of {expected}", counts[&length]);
        }
    }

    #[test]
    fn defects_are_warned() {
        for (length, expected) in [
            (Length::Fixed(63), "found 63 to 63"),
            (Length::Fixed(16_001), "64 to 16000"),
            (
                Length::Increment {
                    start: 64,
                    end: 70,
                    step: 0,
                },
                "step",
            ),
            (Length::Random { min: 80, max: 70 }, "above their end"),
            (Length::Weighted(vec![(64, 0.0)]), "weights"),
        ] {
            let wrong = length.check();
            assert_eq!(wrong.len(), 1, "{wrong:?}");
            assert!(wrong[0].contains(expected), "{wrong:?}");
        }
    }
}
