//! Prometheus' text format, version 0.0.4.

use std::fmt::Display;

/// Media type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A label's name and value.
pub type Label = (&'static str, String);

/// A text while it is written.
#[derive(Default)]
pub struct Text(pub String);

impl Text {
    /// Writes a family with the labels and the value of each sample.
    pub fn family<V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<Label>, V)>,
    ) {
        self.0 += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (labels, value) in samples {
            let labels = labels.iter();
            let labels: Vec<_> = labels
                .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
                .collect();
            let labels = match labels.join(",") {
                none if none.is_empty() => none,
                labels => format!("{{{labels}}}"),
            };
            self.0 += &format!("{name}{labels} {value}\n");
        }
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
