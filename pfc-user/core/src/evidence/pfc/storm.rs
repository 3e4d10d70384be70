//! The account of a storm.

use pfc_ebpf::units::Nanos;
use serde::{Deserialize, Serialize};

use super::{Departure, LeftOut, Stall};

/// The storm's own account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StormReport {
    /// The way it was sent: senders, their scheduling and CPUs.
    pub method: String,
    /// Frames that left.
    pub frames: u64,
    /// Times that the kernel refused a frame; for want of room it was tried again soon.
    pub errors: u64,
    /// The first frame.
    pub first: Departure,
    /// The last frame.
    pub last: Departure,
    /// Largest gap.
    pub max_gap: Nanos,
    /// Every gap in which the shortest pause that the tolerances allow may have run out.
    pub gaps: Vec<Gap>,
    /// Further such gaps.
    pub gaps_left_out: LeftOut,
    /// All gaps between frames, by their length.
    pub histogram: GapHistogram,
    /// Spans above 0.5 ms in which a sender of the storm should have sent and did not run.
    pub stalls: Vec<Stall>,
    /// Further such spans.
    pub stalls_left_out: LeftOut,
}

impl StormReport {
    /// Number of gaps in which the shortest pause may have run out.
    pub fn gaps_above(&self) -> u64 {
        self.gaps.len() as u64 + self.gaps_left_out.count
    }
}

/// A time in which no frame is known to have left: from the `before` of the frame that began last
/// to the `after` of the frame that ended it, or to the end of the storm.
///
/// So no gap is shorter than it was, with frames of any sender: the frame before it may have left
/// later than at `from`, the frame after it earlier than at `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Begin.
    pub from: Nanos,
    /// End.
    pub to: Nanos,
}

impl Gap {
    /// Time from its begin to its end.
    pub fn length(&self) -> Nanos {
        self.to.saturating_sub(self.from)
    }
}

/// Gaps by their length. In the file an array of pairs: a length, and how many gaps were below it
/// but not below that of the pair before; lengths without gaps are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapHistogram(pub Vec<(Nanos, u64)>);

impl GapHistogram {
    /// Gaps in all.
    pub fn count(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// A length that at least the share `q` (0 to 1) of all gaps is below; `None` where there are
    /// none. As near as the buckets are wide, and never too short.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        let rank = (q * self.count() as f64).ceil() as u64;
        let mut sum = 0u64;
        self.0.iter().find_map(|(below, count)| {
            sum = sum.saturating_add(*count);
            (*count > 0 && sum >= rank).then_some(*below)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_end_of_the_bucket_that_it_falls_into() {
        let histogram = GapHistogram(vec![(10, 50), (20, 0), (30, 49), (40, 1)]);
        assert_eq!(histogram.count(), 100);
        for (q, expected) in [
            (0.0, 10),
            (0.01, 10),
            (0.5, 10),
            (0.500_1, 30),
            (0.99, 30),
            (0.990_1, 40),
            (1.0, 40),
        ] {
            assert_eq!(histogram.quantile(q), Some(expected), "{q}");
        }
        assert_eq!(GapHistogram::default().quantile(0.5), None);
        assert_eq!(GapHistogram(vec![(10, 0)]).quantile(1.0), None);
        assert_eq!(
            GapHistogram(vec![(10, u64::MAX), (20, u64::MAX)]).quantile(1.0),
            Some(10)
        );
    }
}
