//! Values of figures: text, with the numbers in it.

use std::ops::Add;

use crate::plan::Nanos;
use crate::verdict::{Figure, Number};

/// A value, which grows from left to right.
#[derive(Clone, Debug, Default)]
pub(crate) struct Value {
    text: String,
    form: String,
    numbers: Vec<Number>,
}

impl Value {
    /// Values with commas between them.
    pub(super) fn joined(values: impl IntoIterator<Item = Self>) -> Self {
        let joined = values.into_iter().reduce(|all, next| all + ", " + next);
        joined.unwrap_or_default()
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
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        let (form, numbers) = (text.clone(), Vec::new());
        Self {
            text,
            form,
            numbers,
        }
    }
}

impl<T: Into<Value>> Add<T> for Value {
    type Output = Self;

    fn add(mut self, next: T) -> Self {
        let next = next.into();
        self.text += &next.text;
        self.form += &next.form;
        self.numbers.extend(next.numbers);
        self
    }
}

/// A number with that many digits behind the point, and its unit.
pub(crate) fn number(value: f64, digits: usize, unit: &'static str) -> Value {
    let text = format!("{value:.digits$}");
    // Comparisons use the value that is shown.
    let value = text.parse().unwrap_or(value);
    let unit_in_text = Value::from(if unit.is_empty() { "" } else { " " }) + unit;
    let number = Value {
        text,
        form: "#".into(),
        numbers: vec![Number { value, unit }],
    };
    number + unit_in_text
}

/// A number of things.
pub(super) fn count(number_of: u64, unit: &'static str) -> Value {
    number(number_of as f64, 0, unit)
}

/// A time in milliseconds, as [`ms`](crate::quantity::ms) writes it.
pub(super) fn time(nanos: Nanos) -> Value {
    number(nanos as f64 / 1e6, 3, "ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_the_one_that_is_shown() {
        for (value, text, expected) in [
            (time(4_500), "0.004 ms", 0.004),
            (number(6.25, 1, "%"), "6.2 %", 6.2),
        ] {
            assert_eq!(
                (value.text.as_str(), value.numbers[0].value),
                (text, expected)
            );
        }
    }
}
