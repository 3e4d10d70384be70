//! Counts for Prometheus.

use validator_core::prometheus::{Label, Text};

use super::metrics::{FAMILIES, Unit};
use super::session::PortName;
use crate::driver::bpf::watch::Reading;

/// A port as it is served.
pub struct Exposed {
    /// Labels that tell it from others.
    pub labels: Vec<Label>,
    /// Its state; `None` where its interface is gone, whose series end.
    pub present: Option<Present>,
}

/// State of a port.
pub struct Present {
    /// The way in which it is counted.
    pub name: PortName,
    /// There is a link to the other end.
    pub carrier: bool,
    /// Its counts.
    pub reading: Reading,
}

impl Present {
    /// Labels of how it is counted.
    fn settings(&self) -> Vec<Label> {
        let name = &self.name;
        let mut labels = vec![("attached", name.place), ("trust", name.trust())];
        labels.extend(name.map.iter().map(|map| ("dscp_map", map.name.as_str())));
        labels.extend(name.map_source().map(|source| ("dscp_map_source", source)));
        let labels = labels.into_iter();
        labels
            .map(|(name, value)| (name, value.to_owned()))
            .collect()
    }
}

/// The state and the counts of ports; `dropped`: lines that the reader of the output did not take.
pub fn render(ports: &[Exposed], dropped: u64) -> String {
    let mut text = Text::default();
    let version = ("version", env!("CARGO_PKG_VERSION").to_owned());
    text.family(
        "validator_build_info",
        "gauge",
        "The program that serves this: 1.",
        [(vec![version], "1".to_owned())],
    );
    text.family(
        "validator_output_dropped_total",
        "counter",
        "Lines and tables that the reader of standard output did not take.",
        [(Vec::new(), dropped.to_string())],
    );
    let flag = |is: bool| u8::from(is).to_string();
    text.family(
        "validator_port_up",
        "gauge",
        "1: the interface is counted; 0: it is gone, and so are its other series.",
        ports
            .iter()
            .map(|port| (port.labels.clone(), flag(port.present.is_some()))),
    );
    let present = || {
        let ports = ports.iter();
        ports.filter_map(|port| Some((&port.labels, port.present.as_ref()?)))
    };
    text.family(
        "validator_port_info",
        "gauge",
        "Place where frames are counted, and the field and map that tell priorities: 1.",
        present().map(|(labels, port)| ([&labels[..], &port.settings()].concat(), "1".to_owned())),
    );
    text.family(
        "validator_port_carrier",
        "gauge",
        "1: there is a link to the other end.",
        present().map(|(labels, port)| (labels.clone(), flag(port.carrier))),
    );
    text.family(
        "validator_port_line_rate_bytes_per_second",
        "gauge",
        "Speed that turns quanta into time; no value where it is not known.",
        present().filter_map(|(labels, port)| {
            let rate = port.name.line_rate?.bits_per_second() / 8;
            Some((labels.clone(), rate.to_string()))
        }),
    );
    for family in FAMILIES {
        let samples = present().flat_map(|(labels, port)| {
            let samples = (family.samples)(&port.reading).into_iter();
            samples.map(move |sample| {
                let own = family.label.map(|name| (name, sample.label));
                let value = match family.unit {
                    Unit::Count => sample.value.to_string(),
                    Unit::Nanos => seconds(sample.value),
                };
                (labels.iter().cloned().chain(own).collect(), value)
            })
        });
        let name = format!("validator_{}_total", family.name);
        text.family(&name, "counter", family.help, samples);
    }
    text.0
}

/// Exact, unlike a division of floating-point numbers.
fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use pfc_ebpf::abi::watch::{ClassCounters, Counters, Volume};
    use pfc_ebpf::units::LineRate;

    use super::*;

    /// A port of which every family has a sample above 0, and a name with all that has to be
    /// escaped.
    fn port() -> Exposed {
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
        (counters.hidden, counters.untold) = ([43, 44, 45], [46, 47]);
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
        Exposed {
            labels,
            present: Some(Present {
                name: PortName {
                    line_rate: LineRate::from_bits_per_second(25_000_000_000).ok(),
                    ..PortName::example()
                },
                carrier: true,
                reading: Reading {
                    time: 0,
                    counters,
                    paused: [0, 0, 0, 1_000_000_001, 0, 0, 0, 0, 7],
                },
            }),
        }
    }

    #[test]
    fn a_port_that_is_gone_has_a_single_series() {
        let mut gone = port();
        gone.present = None;
        let rendered = render(&[gone], 0);
        let series: Vec<_> = rendered
            .lines()
            .filter(|line| line.contains("interface="))
            .collect();
        let [line] = series[..] else {
            panic!("{series:?}")
        };
        assert!(
            line.starts_with("validator_port_up{") && line.ends_with(" 0"),
            "{line}"
        );
    }

    #[test]
    fn a_port_without_a_link_says_so_and_one_without_a_known_speed_serves_none() {
        let mut exposed = port();
        let present = exposed.present.as_mut().unwrap();
        (present.carrier, present.name.line_rate) = (false, None);
        let rendered = render(&[exposed], 0);
        let of = |name: &str| -> Vec<&str> {
            let begin = format!("validator_{name}{{");
            let lines = rendered.lines();
            lines.filter(|line| line.starts_with(&begin)).collect()
        };
        let [carrier] = of("port_carrier")[..] else {
            panic!("{rendered}")
        };
        assert!(carrier.ends_with(" 0"), "{carrier}");
        let rates = of("port_line_rate_bytes_per_second");
        assert!(rates.is_empty(), "{rates:?}");
    }

    #[test]
    fn the_info_of_a_port_says_whether_its_map_was_asked_for() {
        for (is_default, is_dscp, expected) in [
            (
                false,
                true,
                ",dscp_map=\"sonic\",dscp_map_source=\"option\"} 1",
            ),
            (
                true,
                true,
                ",dscp_map=\"sonic\",dscp_map_source=\"default\"} 1",
            ),
            (true, false, ",trust=\"pcp\"} 1"),
        ] {
            let mut exposed = port();
            let name = &mut exposed.present.as_mut().unwrap().name;
            name.is_default = is_default;
            name.map = name.map.take().filter(|_| is_dscp);
            let rendered = render(&[exposed], 0);
            let mut lines = rendered.lines();
            let info = lines.find(|line| line.starts_with("validator_port_info{"));
            assert!(info.unwrap().ends_with(expected), "{info:?}");
        }
    }

    #[test]
    fn every_family_is_rendered_as_in_the_golden_file() {
        let rendered = render(&[port()], 61);
        let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
        let golden = include_str!("prometheus/golden.txt");
        let golden = golden.replace("version=\"VERSION\"", &version);
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
