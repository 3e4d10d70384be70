//! Prometheus' text format, version 0.0.4.

use std::fmt::Write;

use super::metrics::{FAMILIES, Unit};
use crate::driver::bpf::watch::Reading;

/// Its media type.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A port's reading, with the labels that tell it from others'.
pub struct Labelled {
    /// Name and value.
    pub labels: Vec<(&'static str, String)>,
    /// The port's counts.
    pub reading: Reading,
}

/// The readings of ports.
pub fn render(ports: &[Labelled]) -> String {
    let mut text = String::new();
    for family in FAMILIES {
        // Infallible: a string.
        let _ = writeln!(
            text,
            "# HELP validator_{}_total {}",
            family.name, family.help
        );
        let _ = writeln!(text, "# TYPE validator_{}_total counter", family.name);
        for Labelled { labels, reading } in ports {
            for sample in family.samples(reading) {
                let own = family.label.map(|name| (name, sample.label.clone()));
                let labels: Vec<_> = labels
                    .iter()
                    .cloned()
                    .chain(own)
                    .map(|(name, value)| format!("{name}=\"{}\"", escaped(&value)))
                    .collect();
                let _ = write!(
                    text,
                    "validator_{}_total{{{}}} ",
                    family.name,
                    labels.join(",")
                );
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
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use pfc_ebpf::abi::watch::{ClassCounters, Counters, Volume};

    use super::*;

    /// A port of which every family has a sample above 0, and a name with all that has to be
    /// escaped.
    fn port() -> Labelled {
        let volume = |frames| Volume {
            frames,
            octets: 100 * frames,
        };
        let mut counters = Counters {
            total: volume(1001),
            no_priority: volume(2),
            double_tagged: 3,
            ..Counters::ZERO
        };
        counters.by_priority = std::array::from_fn(|priority| volume(10 + priority as u64));
        counters.by_dscp[26] = volume(20);
        counters.by_pcp[5] = volume(21);
        counters.by_ecn = [22, 23, 24, 25];
        counters.ce[3] = 26;
        counters.malformed = std::array::from_fn(|reason| 30 + reason as u64);
        counters.pause = ClassCounters { xoff: 50, xon: 51 };
        (counters.pfc_frames, counters.pfc_empty) = (52, 53);
        counters.pfc[3] = ClassCounters { xoff: 54, xon: 55 };
        (counters.roce, counters.roce_ce) = (volume(56), 57);
        counters.by_opcode[usize::from(crate::watch::metrics::CNP)] = 58;
        (
            counters.stamped,
            counters.flows_lost,
            counters.controls_lost,
        ) = (59, 60, u64::MAX);
        let labels = vec![
            ("interface", "e\"t\\h\n0".to_owned()),
            ("direction", "receive".to_owned()),
        ];
        Labelled {
            labels,
            reading: Reading {
                time: 0,
                counters,
                paused: [0, 0, 0, 1_000_000_001, 0, 0, 0, 0, 7],
            },
        }
    }

    #[test]
    fn every_family_is_rendered_as_in_the_golden_file() {
        let rendered = render(&[port()]);
        let golden = include_str!("prometheus/golden.txt");
        for (number, (found, expected)) in rendered.lines().zip(golden.lines()).enumerate() {
            assert_eq!(found, expected, "line {}", number + 1);
        }
        assert_eq!(rendered.len(), golden.len());
    }

    #[test]
    fn names_are_those_of_counters_in_base_units() {
        for family in FAMILIES {
            let words: Vec<_> = family.name.split('_').collect();
            assert!(
                words.iter().all(|word| !word.is_empty()
                    && word.chars().all(|letter| letter.is_ascii_lowercase())),
                "{}",
                family.name
            );
            assert_eq!(
                family.unit == Unit::Nanos,
                words.last() == Some(&"seconds"),
                "{}",
                family.name
            );
            assert!(
                !words
                    .iter()
                    .any(|word| ["octets", "total", "count", "nanos", "ms", "bits"].contains(word)),
                "{}",
                family.name
            );
            assert!(
                !family.help.contains(['\\', '\n']),
                "it would have to be escaped: {}",
                family.help
            );
        }
    }
}
