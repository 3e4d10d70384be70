//! The check on how soon each of many XOFFs is obeyed: `response` of `pfc.response-time`.

use pfc_ebpf::units::{LineRate, Quanta};

use super::measured::{Measured, within};
use super::pause_time::not_early;
use super::{beside, delivery, silences, subjects};
use crate::cases::finding::Finding;
use crate::cases::value::{Value, count, number, time};
use crate::evidence::pfc::PfcEvidence;
use crate::plan::Nanos;

/// Times to stop of IEEE 802.3, 31B.3.7, in quanta, by speed in Gbit/s: those of the quickest PHY.
const TO_STOP: [(f64, u64); 9] = [
    (0.1, 1),
    (1.0, 2),
    (10.0, 67),
    (25.0, 80),
    (40.0, 118),
    (50.0, 147),
    (100.0, 394),
    (200.0, 453),
    (400.0, 905),
];

/// Pauses of which a distribution says something.
const MANY: usize = 20;

/// `response` of `pfc.response-time`.
pub(in crate::cases::pfc) fn response(e: &PfcEvidence) -> Finding {
    let mut finding = not_early(e);
    beside::expect_none_held(&mut finding, e);
    delivery::expect_none_lost_by_probe(&mut finding, e);
    finding
}

/// The times from an XOFF to the last frame before the silence of its pause, of those pauses that
/// were measured well enough, in ascending order; 0 where no frame came.
fn responses(e: &PfcEvidence) -> Vec<Nanos> {
    let measured = Measured::of(e);
    let of_probe = |probe| {
        let traffic = measured.traffic(probe);
        let is_measured = silences(&traffic).is_ok();
        let paused = subjects(&traffic, false).into_iter();
        let last = paused.map(|(_, pause, arrivals)| {
            let until_end = within(arrivals, pause.xoff.before, pause.earliest);
            let last = until_end.last().map_or(0, |arrival| arrival.time);
            last.saturating_sub(pause.xoff.before)
        });
        last.filter(|_| is_measured).collect::<Vec<_>>()
    };
    let mut times: Vec<Nanos> = e.probes.iter().flat_map(of_probe).collect();
    times.sort_unstable();
    times
}

/// How soon XOFFs were obeyed, beside what the standard has; nothing where few were measured.
pub(in crate::cases::pfc) fn reported(e: &PfcEvidence) -> Option<(String, Value)> {
    let times = responses(e);
    if times.len() < MANY {
        return None;
    }
    let (least, most) = (*times.first()?, *times.last()?);
    let below = |share: usize| times[(times.len() - 1) * share / 100];
    let named = [
        ("min", least),
        ("p50", below(50)),
        ("p99", below(99)),
        ("max", most),
    ];
    let named = named.map(|(name, nanos)| {
        let quanta = number(quanta(nanos, e.limits.line_rate), 1, "quanta");
        Value::from(name) + " " + time(nanos) + " (" + quanta + ")"
    });
    let of = " of " + count(times.len() as u64, "pauses");
    let value = Value::joined(named, ", ") + of + standard(e.limits.line_rate);
    Some(("last frame after an XOFF".into(), value))
}

/// A time in quanta at that speed.
fn quanta(nanos: Nanos, rate: LineRate) -> f64 {
    nanos as f64 / 1000.0 / (Quanta(1000).nanos(rate) as f64 / 1e6)
}

/// The standard's time to stop, in words.
fn standard(rate: LineRate) -> Value {
    let speed = rate.bits_per_second() as f64 / 1e9;
    let found = TO_STOP.iter().find(|(of, _)| *of == speed);
    found.map_or(Value::default(), |(_, quanta)| {
        "; IEEE 802.3, 31B.3.7 has " + count(*quanta, "quanta") + " from the frame to the last bit"
    })
}
