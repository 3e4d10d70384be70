//! Values of figures and comparisons: text, with the numbers in it.

use std::ops::Add;

use crate::plan::Nanos;
use crate::verdict::{Assertion, Bound, Figure, Number, Sides, Verdict};

/// A value, which grows from left to right.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Value {
    text: String,
    form: String,
    numbers: Vec<Number>,
    bound: Option<Bound>,
}

impl Value {
    /// Values with `separator` between them.
    pub(super) fn joined(values: impl IntoIterator<Item = Self>, separator: &str) -> Self {
        let joined = values
            .into_iter()
            .reduce(|all, next| all + separator + next);
        joined.unwrap_or_default()
    }

    /// The value as an expected one, with the relation that what is found must have to its numbers.
    pub(super) fn is(self, bound: Bound) -> Self {
        let bound = Some(bound);
        Self { bound, ..self }
    }

    /// The numbers in it, as they are shown.
    pub(super) fn numbers(&self) -> &[Number] {
        &self.numbers
    }

    /// The text alone.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// The figure of that name.
    pub(crate) fn figure(self, repetition: &str, name: impl Into<String>) -> Figure {
        Figure {
            repetition: repetition.into(),
            name: name.into(),
            value: self.text,
            numbers: self.numbers,
            form: self.form,
        }
    }

    /// The comparison of `what` with that value, and its outcome.
    pub(super) fn compared(self, what: String, actual: Self, verdict: Verdict) -> Assertion {
        Assertion {
            what,
            expected: self.text,
            actual: actual.text,
            bound: self.bound,
            numbers: Sides {
                expected: self.numbers,
                actual: actual.numbers,
            },
            verdict,
            ..Assertion::default()
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        let form = text.clone();
        Self {
            text,
            form,
            ..Self::default()
        }
    }
}

/// Numbers without a unit.
macro_rules! from_numbers {
    ($($number:ty),*) => {
        $(impl From<$number> for Value {
            fn from(value: $number) -> Self {
                shown(value.to_string(), value as f64, "")
            }
        })*
    };
}
from_numbers!(u8, u16, u32, u64, usize, i32, f64);

impl<T: Into<Value>> Add<T> for Value {
    type Output = Self;

    fn add(mut self, next: T) -> Self {
        let next = next.into();
        self.bound = match () {
            () if self.text.is_empty() => next.bound,
            // A number with words beside it may be anything.
            () if !next.text.is_empty() => self.bound.filter(|bound| *bound != Bound::Exactly),
            () => self.bound,
        };
        self.text += &next.text;
        self.form += &next.form;
        self.numbers.extend(next.numbers);
        self
    }
}

impl Add<Value> for &str {
    type Output = Value;

    fn add(self, next: Value) -> Value {
        Value::from(self) + next
    }
}

/// A number as it is shown, and its unit.
fn shown(text: String, value: f64, unit: &'static str) -> Value {
    let space = if unit.is_empty() { "" } else { " " };
    Value {
        text: format!("{text}{space}{unit}"),
        form: format!("#{space}{unit}"),
        numbers: vec![Number { value, unit }],
        bound: Some(Bound::Exactly),
    }
}

/// A number with that many digits behind the point, and its unit.
pub(crate) fn number(value: f64, digits: usize, unit: &'static str) -> Value {
    let text = format!("{value:.digits$}");
    // Comparisons use the value that is shown.
    let value = text.parse().unwrap_or(value);
    shown(text, value, unit)
}

/// A number as its first two digits and a power of ten, such as `1.2e-7`.
pub(super) fn scientific(value: f64) -> Value {
    let text = format!("{value:.1e}");
    let value = text.parse().unwrap_or(value);
    shown(text, value, "")
}

/// A number of things.
pub(super) fn count(number_of: u64, unit: &'static str) -> Value {
    shown(number_of.to_string(), number_of as f64, unit)
}

/// A time in milliseconds, as [`ms`](crate::quantity::ms) writes it.
pub(super) fn time(nanos: Nanos) -> Value {
    number(nanos as f64 / 1e6, 3, "ms")
}

/// A time that is not to be exceeded.
pub(super) fn within(nanos: Nanos) -> Value {
    ("within " + time(nanos)).is(Bound::AtMost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_alone_is_exact_and_other_values_need_a_bound() {
        let bound = |value: Value| value.compared("".into(), 1.into(), Verdict::Pass).bound;
        for (value, expected) in [
            (Value::from(3), Some(Bound::Exactly)),
            (Value::default() + time(1), Some(Bound::Exactly)),
            ("about " + time(1), None),
            (time(1) + " to " + time(2), None),
            (within(1), Some(Bound::AtMost)),
            (within(1) + ", of " + 20, Some(Bound::AtMost)),
            ("none".into(), None),
        ] {
            let text = value.text.clone();
            assert_eq!(bound(value), expected, "{text}");
        }
    }

    #[test]
    fn a_number_is_the_one_that_is_shown() {
        for (value, text, expected) in [
            (time(4_500), "0.004 ms", 0.004),
            (number(6.25, 1, "%"), "6.2 %", 6.2),
            (scientific(1.26e-7), "1.3e-7", 1.3e-7),
            (0.99.into(), "0.99", 0.99),
            (u64::MAX.into(), "18446744073709551615", u64::MAX as f64),
        ] {
            assert_eq!(
                (value.text.as_str(), value.numbers[0].value),
                (text, expected)
            );
        }
    }
}
