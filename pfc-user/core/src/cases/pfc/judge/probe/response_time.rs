//! The check on how soon each of many XOFFs is obeyed: `response` of `pfc.response-time`.

use pfc_ebpf::units::LineRate;

use super::measured::{Measured, NotCounted, Traffic, within};
use super::{
    Comparison, Question, delivery, has_pause_that_runs_out, judge_probes, silences, subjects,
    without_stall,
};
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

/// Share of the rate of a priority that has to arrive just before its pause.
const FLOWING: f64 = 0.9;

/// Pauses that run out, of priorities at their full rate.
pub(super) const AT_RATE: Question = Question {
    concerns: has_pause_that_runs_out,
    judge: silences_at_rate,
};

/// Each of them holds its priority until its quanta run out.
fn silences_at_rate(traffic: &Traffic) -> Result<Vec<Comparison>, NotCounted> {
    let measured = &traffic.measured;
    let span = measured.vicinity();
    for (priority, pause, arrivals) in subjects(traffic, false) {
        let before = pause.xoff.before;
        let found = within(arrivals, before.saturating_sub(span), before).len();
        let flows = measured.plan.flows.iter();
        let due = flows.filter(|flow| flow.priority == priority).map(|flow| {
            let rate = flow.rate as f64 * f64::from(traffic.probe.burst.load) / 100.0;
            let frames = rate * span as f64 / 1e9 / LineRate::frame_bits(flow.length) as f64;
            // The first and the last are not whole ones.
            FLOWING * frames - 2.0
        });
        if (found as f64) < due.sum() {
            let found = count(found as u64, "frames") + format!(" of priority {priority} came");
            let found = found + " in " + time(span) + " before the XOFF";
            return Err(NotCounted::Tester(found + ", fewer than its rate has"));
        }
    }
    silences(traffic)
}

/// `response` of `pfc.response-time`.
pub(in crate::cases::pfc) fn response(e: &PfcEvidence) -> Finding {
    let mut finding = judge_probes(e, AT_RATE);
    delivery::expect_none_lost_by_probe(&mut finding, e);
    finding
}

/// The times from an XOFF to the last frame before the silence of its pause, of those pauses that
/// were measured well enough, in ascending order; 0 where no frame came.
fn responses(e: &PfcEvidence) -> Vec<Nanos> {
    let measured = Measured::of(e);
    let of_probe = |probe| {
        let traffic = measured.traffic(probe);
        let compared = silences_at_rate(&traffic);
        let is_measured = compared.and_then(|all| without_stall(e, all)).is_ok();
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
        let bits = nanos as f64 * e.limits.line_rate.bits_per_second() as f64 / 1e9;
        let quanta = number(bits / 512.0, 1, "quanta");
        Value::from(name) + " " + time(nanos) + " (" + quanta + ")"
    });
    let of = " of " + count(times.len() as u64, "pauses");
    let value = Value::joined(named, ", ") + of + standard(e.limits.line_rate);
    Some(("last frame after an XOFF".into(), value))
}

/// The standard's time to stop, in words.
fn standard(rate: LineRate) -> Value {
    let speed = rate.bits_per_second() as f64 / 1e9;
    let found = TO_STOP.iter().find(|(of, _)| *of == speed);
    found.map_or(Value::default(), |(_, quanta)| {
        "; IEEE 802.3, 31B.3.7 has " + count(*quanta, "quanta") + " and the frame that has begun"
    })
}
