//! One object a line.

use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use pfc_ebpf::units::{LineRate, Nanos};
use serde_json::{Map, Value, json};

use super::loss::Report;
use super::metrics::{FAMILIES, Sample, Unit};
use super::session::PortName;
use crate::driver::bpf::watch::Reading;

const SECOND: f64 = 1e9;

/// Counts of a port since it was attached, and rates per second since `before`. `elapsed` is the
/// time since the beginning.
pub fn counters(port: &PortName, elapsed: Nanos, before: &Reading, now: &Reading) -> Value {
    let seconds = now.time.saturating_sub(before.time) as f64 / SECOND;
    let (mut total, mut rate) = (Map::new(), Map::new());
    for family in FAMILIES {
        let (old, samples) = ((family.samples)(before), (family.samples)(now));
        let absolute = |sample: &Sample| match family.unit {
            Unit::Count => json!(sample.value),
            Unit::Nanos => json!(sample.value as f64 / SECOND),
        };
        let per_second = |sample: &Sample| {
            let old = old.iter().find(|old| old.label == sample.label);
            let rise = sample.value.saturating_sub(old.map_or(0, |old| old.value)) as f64;
            let rise = match family.unit {
                Unit::Count => rise,
                Unit::Nanos => rise / SECOND,
            };
            json!(if seconds > 0.0 { rise / seconds } else { 0.0 })
        };
        let all = |number: &dyn Fn(&Sample) -> Value| match family.label {
            // Labels that were never met would make the line long.
            Some(_) => {
                let met = samples.iter().filter(|sample| sample.value > 0);
                met.map(|sample| (sample.label.as_str(), number(sample)))
                    .collect()
            }
            None => samples.first().map_or(Value::Null, number),
        };
        total.insert(family.name.to_owned(), all(&absolute));
        rate.insert(family.name.to_owned(), all(&per_second));
    }
    let mut value = json!({
        "type": "counters",
        "interface": port.interface,
        "place": port.place,
        "line_rate_bits_per_second": line_rate(port),
        "total": total,
        "per_second": rate,
    });
    add_classification(&mut value, port);
    stamp(&mut value, elapsed);
    value
}

/// The judgement of loss from one port to another.
pub fn loss(
    report: &Report,
    elapsed: Nanos,
    [tx, rx]: [&PortName; 2],
) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(report)?;
    value["type"] = json!("loss");
    value["tx_line_rate_bits_per_second"] = json!(line_rate(tx));
    value["rx_line_rate_bits_per_second"] = json!(line_rate(rx));
    // The field and the map are those of both.
    add_classification(&mut value, rx);
    stamp(&mut value, elapsed);
    Ok(value)
}

fn line_rate(port: &PortName) -> Option<u64> {
    port.line_rate.map(LineRate::bits_per_second)
}

/// Adds the field that tells priorities, the map, and whether it was asked for.
fn add_classification(value: &mut Value, port: &PortName) {
    value["trust"] = json!(port.trust());
    value["dscp_map"] = json!(port.map.as_ref().map(|map| &map.name));
    value["dscp_map_source"] = json!(port.map_source());
}

/// Adds when it was: the time of day (RFC 3339), and the time since the beginning.
fn stamp(value: &mut Value, elapsed: Nanos) {
    let now = DateTime::<Utc>::from(SystemTime::now());
    value["time"] = json!(now.to_rfc3339_opts(SecondsFormat::Millis, true));
    value["elapsed_seconds"] = json!(elapsed as f64 / SECOND);
}

/// Something that happened.
pub fn event(elapsed: Nanos, interface: &str, event: &str, message: &str) -> Value {
    let mut value = json!({
        "type": "event",
        "interface": interface,
        "event": event,
        "message": message,
    });
    stamp(&mut value, elapsed);
    value
}

#[cfg(test)]
mod tests {
    use pfc_ebpf::abi::watch::{Counters, Volume};

    use super::*;
    use crate::watch::loss::Verdict;

    #[test]
    fn counts_are_absolute_and_a_second() {
        let port = PortName {
            line_rate: LineRate::from_bits_per_second(25_000_000_000).ok(),
            ..PortName::example()
        };
        let reading = |time, frames, paused| {
            let mut counters = Counters::ZERO;
            counters.total = Volume {
                frames,
                octets: 64 * frames,
            };
            counters.by_priority[3] = counters.total;
            Reading {
                time,
                counters,
                paused: [0, 0, 0, paused, 0, 0, 0, 0, 0],
            }
        };
        let value = counters(
            &port,
            2_000_000_000,
            &reading(1_000_000_000, 10, 0),
            &reading(1_500_000_000, 30, 250_000_000),
        );
        assert_eq!(
            (&value["interface"], &value["elapsed_seconds"]),
            (&json!("eth0"), &json!(2.0))
        );
        assert_eq!(priorities(&value), ["dscp", "sonic", "option"]);
        assert_eq!(value["line_rate_bits_per_second"], 25_000_000_000u64);
        let time = DateTime::parse_from_rfc3339(value["time"].as_str().unwrap()).unwrap();
        let age = DateTime::<Utc>::from(SystemTime::now()).signed_duration_since(time);
        assert!((0..3600).contains(&age.num_seconds()), "{age}");
        assert_eq!(
            (&value["total"]["frames"], &value["per_second"]["frames"]),
            (&json!(30), &json!(40.0))
        );
        assert_eq!(
            (&value["total"]["bytes"], &value["per_second"]["bytes"]),
            (&json!(1920), &json!(2560.0))
        );
        assert_eq!(
            value["total"]["priority_frames"],
            json!({ "3": 30 }),
            "what was met alone"
        );
        assert_eq!(value["total"]["pfc_paused_seconds"], json!({ "3": 0.25 }));
        assert_eq!(
            value["per_second"]["pfc_paused_seconds"],
            json!({ "3": 0.5 }),
            "the share of the time"
        );
        let still = counters(&port, 0, &reading(5, 1, 0), &reading(5, 1, 0));
        assert_eq!(still["per_second"]["frames"], 0.0, "no time, no rate");
    }

    /// The field, the map, and where the map is from.
    fn priorities(value: &Value) -> [Value; 3] {
        ["trust", "dscp_map", "dscp_map_source"].map(|key| value[key].clone())
    }

    #[test]
    fn every_object_with_numbers_says_which_map_and_whether_it_was_asked_for() {
        let asked_for = PortName::example();
        let by_default = PortName {
            is_default: true,
            ..PortName::example()
        };
        let by_pcp = PortName {
            map: None,
            ..by_default.clone()
        };
        let reading = Reading {
            time: 0,
            counters: Counters::ZERO,
            paused: [0; 9],
        };
        for (port, expected) in [
            (asked_for, [json!("dscp"), json!("sonic"), json!("option")]),
            (
                by_default,
                [json!("dscp"), json!("sonic"), json!("default")],
            ),
            (by_pcp, [json!("pcp"), Value::Null, Value::Null]),
        ] {
            let counted = counters(&port, 0, &reading, &reading);
            assert_eq!(priorities(&counted), expected);
            let judged = loss(&report(), 0, [&port, &port]).unwrap();
            assert_eq!(priorities(&judged), expected);
        }
    }

    fn report() -> Report {
        Report {
            tx: "a".to_owned(),
            rx: "b".to_owned(),
            sender: String::new(),
            notes: Vec::new(),
            rows: Vec::new(),
            verdict: Verdict::NoLoss,
            reason: None,
        }
    }

    #[test]
    fn a_judgement_has_the_line_rates_of_both_ends_and_the_time() {
        let port = |gigabits: u64| PortName {
            line_rate: LineRate::from_bits_per_second(gigabits * 1_000_000_000).ok(),
            ..PortName::example()
        };
        let value = loss(&report(), 1_500_000_000, [&port(100), &port(400)]).unwrap();
        for (key, expected) in [
            ("type", json!("loss")),
            ("tx", json!("a")),
            ("verdict", json!("no-loss")),
            ("tx_line_rate_bits_per_second", json!(100_000_000_000u64)),
            ("rx_line_rate_bits_per_second", json!(400_000_000_000u64)),
            ("elapsed_seconds", json!(1.5)),
        ] {
            assert_eq!(value[key], expected, "{key}");
        }
        DateTime::parse_from_rfc3339(value["time"].as_str().unwrap()).unwrap();
        let unknown = loss(&report(), 0, [&PortName::example(), &port(100)]).unwrap();
        assert_eq!(unknown["tx_line_rate_bits_per_second"], Value::Null);
    }
}
