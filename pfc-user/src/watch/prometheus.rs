//! Prometheus' text format, version 0.0.4.

use std::fmt::Write;

use super::metrics::{FAMILIES, Unit};
use crate::driver::watch::Reading;

/// Its media type.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A port's reading, with the labels that tell it from others'.
pub struct Labelled {
    /// Name and value.
    pub labels: Vec<(&'static str, String)>,
    /// What the port has counted.
    pub reading: Reading,
}

/// The readings of ports.
pub fn render(ports: &[Labelled]) -> String {
    let mut text = String::new();
    for family in FAMILIES {
        // Infallible: a string.
        let _ = writeln!(text, "# HELP validator_{}_total {}", family.name, family.help);
        let _ = writeln!(text, "# TYPE validator_{}_total counter", family.name);
        for Labelled { labels, reading } in ports {
            for sample in family.samples(reading) {
                let own = family.label.map(|name| (name, sample.label.clone()));
                let labels: Vec<_> =
                    labels.iter().cloned().chain(own).map(|(name, value)| format!("{name}=\"{}\"", escaped(&value))).collect();
                let _ = write!(text, "validator_{}_total{{{}}} ", family.name, labels.join(","));
                let _ = match family.unit {
                    Unit::Count => writeln!(text, "{}", sample.value),
                    Unit::Nanos => writeln!(text, "{}", seconds(sample.value)),
                };
            }
        }
    }
    text
}

/// Exact, unlike a division of floating-point numbers.
fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_seconds_exact() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
        assert_eq!(seconds(1_000_000_001), "1.000000001");
    }
}
