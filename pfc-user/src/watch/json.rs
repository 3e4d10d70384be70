//! One object a line.

use serde_json::{Map, Value, json};

use super::metrics::{FAMILIES, Unit};
use super::session::PortName;
use crate::driver::watch::Reading;
use crate::plan::Nanos;

const SECOND: f64 = 1e9;

/// What a port has counted since it was attached, and how much a second since `before`. `elapsed` since the beginning.
pub fn counters(port: &PortName, elapsed: Nanos, before: &Reading, now: &Reading) -> Value {
    let seconds = now.time.saturating_sub(before.time) as f64 / SECOND;
    let (mut total, mut rate) = (Map::new(), Map::new());
    for family in FAMILIES {
        let old = family.samples(before);
        let old = |label: &str| old.iter().find(|sample| sample.label == label).map_or(0, |sample| sample.value);
        let number = |value: u64| match family.unit {
            Unit::Count => json!(value),
            Unit::Nanos => json!(value as f64 / SECOND),
        };
        let per_second = |label: &str, value: u64| {
            let rise = value.saturating_sub(old(label)) as f64 / if family.unit == Unit::Nanos { SECOND } else { 1.0 };
            json!(if seconds > 0.0 { rise / seconds } else { 0.0 })
        };
        let samples = family.samples(now);
        let (absolute, a_second) = if family.label.is_some() {
            // What was never met would make the line long.
            let met = || samples.iter().filter(|sample| sample.value > 0);
            let absolute = met().map(|sample| (sample.label.clone(), number(sample.value))).collect();
            let a_second = met().map(|sample| (sample.label.clone(), per_second(&sample.label, sample.value))).collect();
            (Value::Object(absolute), Value::Object(a_second))
        } else {
            samples.first().map_or((Value::Null, Value::Null), |sample| (number(sample.value), per_second("", sample.value)))
        };
        total.insert(family.name.to_owned(), absolute);
        rate.insert(family.name.to_owned(), a_second);
    }
    json!({
        "type": "counters",
        "interface": port.interface,
        "place": port.place,
        "elapsed_seconds": elapsed as f64 / SECOND,
        "total": total,
        "per_second": rate,
    })
}

/// Something that happened.
pub fn event(elapsed: Nanos, interface: &str, event: &str, message: &str) -> Value {
    json!({
        "type": "event",
        "interface": interface,
        "event": event,
        "message": message,
        "elapsed_seconds": elapsed as f64 / SECOND,
    })
}
