//! Likelihood that the loss of requests explains a finding, by the binomial distribution: each
//! request is lost independently and with the same probability.

/// Requests that had to be answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// How many there were.
    pub asked: u64,
    /// How many of them got no answer.
    pub lost: u64,
}

/// The bound on the share of loss holds with this confidence.
pub const CONFIDENCE: f64 = 0.99;
/// Fewest requests from which a bound is taken.
pub const ENOUGH: u64 = 100;
/// Probability below which loss is ruled out as the cause.
pub const UNLIKELY: f64 = 1e-6;

impl Loss {
    /// Upper bound of the share of requests that is lost (Clopper and Pearson): the greatest p at
    /// which no more than those that were lost are lost with probability 1 - [`CONFIDENCE`] at
    /// least. `None` where there are fewer than [`ENOUGH`].
    pub fn upper_bound(self) -> Option<f64> {
        if self.asked < ENOUGH {
            return None;
        }
        if self.lost >= self.asked {
            return Some(1.0);
        }
        let at_most = |p| 1.0 - at_least(self.lost + 1, self.asked, p);
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            match at_most(middle) >= 1.0 - CONFIDENCE {
                true => low = middle,
                false => high = middle,
            }
        }
        Some(high)
    }
}

/// Probability that `count` or more of `of` are lost, each with probability `p`: the sum of
/// C(of, i) p^i (1 - p)^(of - i) for i from `count` to `of`.
pub fn at_least(count: u64, of: u64, p: f64) -> f64 {
    if count == 0 || p >= 1.0 {
        return 1.0;
    }
    if p <= 0.0 {
        return 0.0;
    }
    let mut sum = 0.0;
    // Logarithm of C(of, i).
    let mut choices = 0.0;
    for i in 0..=of {
        if i >= count {
            let (lost, kept) = (i as f64, (of - i) as f64);
            sum += (choices + lost * p.ln() + kept * (-p).ln_1p()).exp();
        }
        choices += ((of - i) as f64).ln() - ((i + 1) as f64).ln();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        let error = (found / expected - 1.0).abs();
        assert!(error < 1e-6, "{found}, not {expected}");
    }

    #[test]
    fn bounds_are_those_of_closed_forms_and_tables() {
        let bound = |lost, asked| Loss { asked, lost }.upper_bound();
        assert_eq!(bound(0, 99), None);
        // 1 - 0.01^(1/n).
        close(bound(0, 100).unwrap(), 1.0 - 0.01_f64.powf(0.01));
        close(bound(0, 1536).unwrap(), 1.0 - 0.01_f64.powf(1.0 / 1536.0));
        // 0.99 quantile of the Beta distribution (lost + 1, asked - lost).
        close(bound(1, 100).unwrap(), 0.064_542_73);
        close(bound(10, 100).unwrap(), 0.191_330_29);
        assert_eq!(bound(100, 100), Some(1.0));
    }

    #[test]
    fn likelihoods_are_sums_of_the_binomial_distribution() {
        close(at_least(1, 1, 0.25), 0.25);
        close(at_least(2, 3, 0.5), 0.5);
        close(at_least(1, 8, 0.045), 1.0 - 0.955_f64.powi(8));
        close(at_least(8, 8, 0.045), 0.045_f64.powi(8));
        assert_eq!(at_least(0, 9, 0.0), 1.0);
        assert_eq!(at_least(1, 9, 0.0), 0.0);
        assert_eq!(at_least(9, 9, 1.0), 1.0);
        // Every second of 22 keys, at the bound of no loss in 100 requests.
        assert!(at_least(22, 44, 0.045) < UNLIKELY);
        // One of 22.
        assert!(at_least(1, 23, 0.045) > 0.5);
    }
}
