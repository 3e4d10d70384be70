//! Checks on single XOFF and XON frames: `response`, `xon`; and the proof that the tester's pause frames reach the DUT.

use pfc_ebpf::stamp::Phase;

use super::delivery;
use super::finding::{Finding, ms};
use crate::evidence::pfc::{Arrival, Departure, PfcEvidence, ProbeReport};
use crate::plan::Nanos;

/// Arrivals of the probe phase, split by whether the probe pauses their flow.
struct Traffic<'e> {
    paused: Vec<&'e Arrival>,
    others: Vec<&'e Arrival>,
}

fn traffic<'e>(e: &'e PfcEvidence, probe: &ProbeReport) -> Traffic<'e> {
    let stopped: Vec<bool> = e.plan.flows.iter().map(|flow| probe.priorities.contains(&flow.priority)).collect();
    let (paused, others) = e
        .arrivals
        .records
        .iter()
        .filter(|arrival| arrival.phase == Phase::Probe)
        .partition(|arrival| stopped.get(usize::from(arrival.flow)).copied().unwrap_or(false));
    Traffic { paused, others }
}

fn within<'e>(arrivals: &[&'e Arrival], from: Nanos, to: Nanos) -> Vec<&'e Arrival> {
    arrivals.iter().copied().filter(|arrival| arrival.time > from && arrival.time < to).collect()
}

/// How far round a pause frame the traffic is looked at.
fn vicinity(e: &PfcEvidence) -> Nanos {
    5 * e.limits.max_response
}

/// Whether the measurement was quick enough round `frame`: traffic that is not paused shows the latency of everything else.
fn quick_enough(e: &PfcEvidence, traffic: &Traffic, frame: Departure) -> Result<(), String> {
    let (from, to) = (frame.before.saturating_sub(vicinity(e)), frame.after + vicinity(e));
    let round = within(&traffic.others, from, to);
    let Some(worst) = round.iter().map(|arrival| Nanos::from(arrival.latency)).max() else {
        return Err("no background frame arrived round the pause frame".into());
    };
    let limit = e.limits.max_response / 2;
    if worst >= limit {
        return Err(format!("background latency round the pause frame was {}, has to be below {}", ms(worst), ms(limit)));
    }
    let uncertainty = frame.after - frame.before;
    if uncertainty >= limit {
        return Err(format!("the pause frame's departure is uncertain by {}, has to be below {}", ms(uncertainty), ms(limit)));
    }
    if within(&traffic.paused, from, frame.before).is_empty() {
        return Err("no test frame arrived just before the pause frame, so that its end could not be seen".into());
    }
    Ok(())
}

/// The earliest time at which a pause that began with `frame` may run out.
fn expiry(e: &PfcEvidence, probe: &ProbeReport, frame: Departure) -> Nanos {
    let span = e.limits.pause_time(probe.quanta).saturating_sub(e.limits.pause_tolerance(probe.quanta));
    frame.before + span
}

/// Judges each attempt that was measured well enough; undecided if there is none.
fn judge_attempts(e: &PfcEvidence, mut judge: impl FnMut(&mut Finding, &ProbeReport, &Traffic) -> Result<(), String>) -> Finding {
    let mut finding = Finding::new();
    let mut reasons = Vec::new();
    for probe in &e.probes {
        if let Err(reason) = judge(&mut finding, probe, &traffic(e, probe)) {
            reasons.push(reason);
        }
    }
    if e.arrivals.lost > 0 {
        finding.undecided("records of the probe", "all", format!("{} did not fit", e.arrivals.lost));
    }
    if finding.assertions.is_empty() {
        let reason = reasons.into_iter().next().unwrap_or_else(|| "no probe was made".into());
        finding.undecided("attempts measured well enough", "at least 1", format!("0 of {}: {reason}", e.probes.len()));
    }
    finding
}

/// `response`.
pub(super) fn response(e: &PfcEvidence) -> Finding {
    let mut losses = Finding::new();
    delivery::expect_none_lost_by_probe(&mut losses, e);
    let mut finding = judge_attempts(e, |finding, probe, traffic| {
        quick_enough(e, traffic, probe.xoff)?;
        let allowed = probe.xoff.after + e.limits.max_response;
        let expiry = expiry(e, probe, probe.xoff);
        let early = within(&traffic.paused, allowed, expiry);
        let last = traffic.paused.iter().rev().find(|arrival| arrival.time <= allowed).map_or(0, |arrival| arrival.time);
        finding.expect(
            "test frames between max_response after the XOFF and the end of its quanta",
            "0",
            match early.first() {
                Some(first) => {
                    format!("{}, the first {} after the XOFF (quanta last {})", early.len(), ms(first.time - probe.xoff.before), {
                        ms(e.limits.pause_time(probe.quanta))
                    })
                }
                None => format!("0 (last frame {} after the XOFF)", ms(last.saturating_sub(probe.xoff.before))),
            },
            early.is_empty(),
            true,
        );
        if !traffic.paused.iter().any(|arrival| arrival.time >= expiry) {
            finding.undecided("test frames after the quanta", "some, or the silence before proves nothing", "none");
        }
        Ok(())
    });
    finding.merge(losses);
    finding
}

/// `xon`.
pub(super) fn xon(e: &PfcEvidence) -> Finding {
    judge_attempts(e, |finding, probe, traffic| {
        let Some((xoff, xon)) = probe.xon else { return Err("no XON was sent".into()) };
        quick_enough(e, traffic, xoff)?;
        let limit = e.limits.max_response / 2;
        let slow = within(&traffic.others, xon.before, xon.after + vicinity(e)).iter().map(|arrival| Nanos::from(arrival.latency)).max();
        match slow {
            Some(worst) if worst < limit => {}
            Some(worst) => return Err(format!("background latency after the XON was {}, has to be below {}", ms(worst), ms(limit))),
            None => return Err("no background frame arrived after the XON".into()),
        }
        let deadline = xon.after + e.limits.max_response;
        if deadline >= expiry(e, probe, xoff) {
            return Err("the pause is too short to tell an XON from its end".into());
        }
        if !within(&traffic.paused, xoff.after + e.limits.max_response, xon.before).is_empty() {
            return Err("the DUT did not keep still until the XON".into());
        }
        let first = traffic.paused.iter().find(|arrival| arrival.time >= xon.before).map(|arrival| arrival.time);
        finding.expect(
            "first test frame after the XON",
            format!("within {}", ms(e.limits.max_response)),
            first.map_or("never".into(), |first| ms(first - xon.before)),
            first.is_some_and(|first| first <= deadline),
            true,
        );
        Ok(())
    })
}

/// Whether a pause of a lossless priority, sent by the storm's port and sender, was seen to act: in the first half of the
/// pause less than half of the frames came that had come before, while other flows went on. How well it acts is not asked.
pub(super) fn storm_arrival(e: &PfcEvidence) -> Result<(), String> {
    for probe in &e.probes {
        let traffic = traffic(e, probe);
        let half = e.limits.pause_time(probe.quanta) / 2;
        let (from, to) = (probe.xoff.after + e.limits.max_response, probe.xoff.before + half);
        if e.arrivals.lost > 0 || from >= to {
            break;
        }
        // Frames in the pause for each that came in as long a time just before it.
        let share = |arrivals: &[&Arrival]| {
            let before =
                within(arrivals, probe.xoff.before.saturating_sub(vicinity(e)), probe.xoff.before).len() as f64 / vicinity(e) as f64;
            let during = within(arrivals, from, to).len() as f64 / (to - from) as f64;
            if before > 0.0 { Some(during / before) } else { None }
        };
        if share(&traffic.paused).is_some_and(|share| share < 0.5) && share(&traffic.others).is_some_and(|share| share >= 0.5) {
            return Ok(());
        }
    }
    Err("it was not shown that pause frames of the rx port reach the DUT: a lossless priority did not stop for one".into())
}
