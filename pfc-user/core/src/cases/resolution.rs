//! Resolution of a pass: the smallest violation that a check would have found in a repetition.

use super::value::{Value, count, number};
use crate::verdict::{CheckResult, Figure, Verdict, least_found};

/// The resolution of each of `checks` that passed; `of` has that of a check, and `None` for one
/// that has none or where nothing was looked at.
pub(super) fn figures(checks: &[CheckResult], of: impl Fn(&str) -> Option<Value>) -> Vec<Figure> {
    let passed = checks.iter().filter(|check| check.verdict == Verdict::Pass);
    let figure = |check: &CheckResult| {
        Some(of(&check.check)?.figure(&check.repetition, least_found(&check.check)))
    };
    passed.filter_map(figure).collect()
}

/// One `what` among those that were looked at.
pub(super) fn one_of(what: &str, of: u64) -> Option<Value> {
    (of > 0).then(|| count(1, "") + format!(" {what} of ") + count(of, ""))
}

/// One `what` among those that were looked at, with its share.
pub(super) fn smallest_share(what: &str, of: u64) -> Option<Value> {
    Some(one_of(what, of)? + " (" + percent(1.0 / of as f64) + ")")
}

/// A share with two digits that say something.
pub(super) fn percent(share: f64) -> Value {
    let percent = share * 100.0;
    let digits = (1.0 - percent.log10().floor()).clamp(0.0, 9.0) as usize;
    number(percent, digits, "%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_show_two_digits() {
        let text = |value: Value| value.figure("", "").value;
        let shown = [0.01, 1.0 / 31_250.0, 1.0 / 3.0, 1.0].map(|share| text(percent(share)));
        assert_eq!(shown, ["1.0 %", "0.0032 %", "33 %", "100 %"]);
        let share = smallest_share("frame lost", 200).unwrap();
        assert_eq!(text(share), "1 frame lost of 200 (0.50 %)");
        let one = one_of("frame lost", 200).unwrap();
        assert_eq!(text(one), "1 frame lost of 200");
        assert!(one_of("frame", 0).or(smallest_share("frame", 0)).is_none());
    }
}
