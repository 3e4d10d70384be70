//! Checks on single XOFF and XON frames: `response`, `xon`; and the proof that the tester's pause
//! frames reach the DUT.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Priority;

use super::{Pfc, delivery};
use crate::cases::finding::Finding;
use crate::cases::judge::Precondition;
use crate::evidence::pfc::{Arrival, Departure, PfcEvidence, ProbeReport};
use crate::plan::Nanos;
use crate::quantity::ms;

/// The DUT was shown to receive the pause frames of the storm's port.
pub(in crate::cases::pfc) const STORM_ARRIVAL: Precondition<Pfc> =
    Precondition::<Pfc>::new("storm-arrival", storm_arrival);

/// Arrivals of the probe phase: of each priority that the probe pauses, and of all others.
struct Traffic<'e> {
    paused: Vec<(Priority, Vec<&'e Arrival>)>,
    others: Vec<&'e Arrival>,
}

fn traffic<'e>(e: &'e PfcEvidence, probe: &ProbeReport) -> Traffic<'e> {
    let in_use = |priority: &Priority| e.plan.flows.iter().any(|flow| flow.priority == *priority);
    let mut traffic = Traffic {
        paused: probe
            .priorities
            .iter()
            .filter(|priority| in_use(priority))
            .map(|priority| (*priority, Vec::new()))
            .collect(),
        others: Vec::new(),
    };
    for arrival in e
        .arrivals
        .records
        .iter()
        .filter(|arrival| arrival.phase == Phase::Probe)
    {
        let Some(flow) = e.plan.flows.iter().find(|flow| flow.id == arrival.flow) else {
            continue;
        };
        match traffic
            .paused
            .iter_mut()
            .find(|(priority, _)| *priority == flow.priority)
        {
            Some((_, arrivals)) => arrivals.push(arrival),
            None => traffic.others.push(arrival),
        }
    }
    traffic
}

fn within<'e>(arrivals: &[&'e Arrival], from: Nanos, to: Nanos) -> Vec<&'e Arrival> {
    arrivals
        .iter()
        .copied()
        .filter(|arrival| arrival.time > from && arrival.time < to)
        .collect()
}

/// Time around a pause frame in which traffic is judged.
fn vicinity(e: &PfcEvidence) -> Nanos {
    5 * e.limits.max_response
}

/// Traffic that is not paused arrived between these times.
fn heard(traffic: &Traffic, from: Nanos, to: Nanos, place: &str) -> Result<(), String> {
    if within(&traffic.others, from, to).is_empty() {
        Err(format!("no background frame arrived {place}"))
    } else {
        Ok(())
    }
}

/// Traffic that is not paused got through quickly enough between these times: it shows the latency
/// of all else.
fn quick(
    e: &PfcEvidence,
    traffic: &Traffic,
    from: Nanos,
    to: Nanos,
    place: &str,
) -> Result<(), String> {
    let limit = e.limits.max_response / 2;
    match within(&traffic.others, from, to)
        .iter()
        .map(|arrival| Nanos::from(arrival.latency))
        .max()
    {
        Some(worst) if worst < limit => Ok(()),
        Some(worst) => Err(format!(
            "background latency {place} was {}, has to be below {}",
            ms(worst),
            ms(limit)
        )),
        None => Err(format!("no background frame arrived {place}")),
    }
}

/// The measurement was quick enough round the XOFF `frame`, and all priorities were flowing.
fn quick_enough(e: &PfcEvidence, traffic: &Traffic, frame: Departure) -> Result<(), String> {
    let from = frame.before.saturating_sub(vicinity(e));
    quick(
        e,
        traffic,
        from,
        frame.after + vicinity(e),
        "round the pause frame",
    )?;
    let (uncertainty, limit) = (frame.after - frame.before, e.limits.max_response / 2);
    if uncertainty >= limit {
        return Err(format!(
            "the pause frame's departure is uncertain by {}, has to be below {}",
            ms(uncertainty),
            ms(limit)
        ));
    }
    if let Some((priority, _)) = traffic
        .paused
        .iter()
        .find(|(_, arrivals)| within(arrivals, from, frame.before).is_empty())
    {
        return Err(format!(
            "no frame of priority {priority} arrived just before the pause frame, so that its end \
             could not be seen"
        ));
    }
    Ok(())
}

/// The earliest time at which a pause that began with `frame` may run out.
fn expiry(e: &PfcEvidence, probe: &ProbeReport, frame: Departure) -> Nanos {
    let span = e
        .limits
        .pause_time(probe.quanta)
        .saturating_sub(e.limits.pause_tolerance(probe.quanta));
    frame.before + span
}

/// Judges each attempt that was measured well enough; undecided if there is none.
fn judge_attempts(
    e: &PfcEvidence,
    mut judge: impl FnMut(&mut Finding, &ProbeReport, &Traffic) -> Result<(), String>,
) -> Finding {
    let mut finding = Finding::new();
    let mut reasons = Vec::new();
    for probe in &e.probes {
        if let Err(reason) = judge(&mut finding, probe, &traffic(e, probe)) {
            reasons.push(reason);
        }
    }
    if e.arrivals.lost > 0 {
        finding.undecided(
            "records of the probe",
            "all",
            format!("{} did not fit", e.arrivals.lost),
        );
    }
    if finding.assertions.is_empty() {
        let reason = reasons
            .into_iter()
            .next()
            .unwrap_or_else(|| "no probe was made".into());
        finding.undecided(
            "attempts measured well enough",
            "at least 1",
            format!("0 of {}: {reason}", e.probes.len()),
        );
    }
    finding
}

/// `response`.
pub(in crate::cases::pfc) fn response(e: &PfcEvidence) -> Finding {
    let mut losses = Finding::new();
    delivery::expect_none_lost_by_probe(&mut losses, e);
    let mut finding = judge_attempts(e, |finding, probe, traffic| {
        let allowed = probe.xoff.after + e.limits.max_response;
        let expiry = expiry(e, probe, probe.xoff);
        if allowed >= expiry {
            return Err(too_short(e, probe));
        }
        quick_enough(e, traffic, probe.xoff)?;
        // Silence is the DUT's doing only while something else is heard.
        heard(
            traffic,
            allowed,
            expiry.min(allowed + vicinity(e)),
            "while the pause was in force",
        )?;
        for (priority, arrivals) in &traffic.paused {
            let early = within(arrivals, allowed, expiry);
            let last = arrivals
                .iter()
                .rev()
                .find(|arrival| arrival.time <= allowed)
                .map_or(0, |arrival| arrival.time);
            finding.prove(
                format!(
                    "frames of priority {priority} between max_response after the XOFF and the \
                    end of its quanta"
                ),
                "0",
                match early.first() {
                    Some(first) => {
                        let (first, quanta) = (
                            ms(first.time - probe.xoff.before),
                            ms(e.limits.pause_time(probe.quanta)),
                        );
                        format!(
                            "{}, the first {first} after the XOFF (quanta last {quanta})",
                            early.len()
                        )
                    }
                    None => format!(
                        "0 (last frame {} after the XOFF)",
                        ms(last.saturating_sub(probe.xoff.before))
                    ),
                },
                early.is_empty(),
                true,
            );
            if !arrivals.iter().any(|arrival| arrival.time >= expiry) {
                let what = format!("frames of priority {priority} after the quanta");
                finding.undecided(what, "some, or the silence before proves nothing", "none");
            }
        }
        Ok(())
    });
    finding.merge(losses);
    finding
}

/// The reason of a pause that is too short, as even the longest is at high speeds.
fn too_short(e: &PfcEvidence, probe: &ProbeReport) -> String {
    let (pause, response) = (
        ms(e.limits.pause_time(probe.quanta)),
        ms(e.limits.max_response),
    );
    format!(
        "a pause of {pause} is too short to be told from none by a max_response of {response}; set \
         limits.max_response to what the DUT needs"
    )
}

/// `xon`.
pub(in crate::cases::pfc) fn xon(e: &PfcEvidence) -> Finding {
    judge_attempts(e, |finding, probe, traffic| {
        let Some((xoff, xon)) = probe.xon else {
            return Err("no XON was sent".into());
        };
        let deadline = xon.after + e.limits.max_response;
        if deadline >= expiry(e, probe, xoff) {
            return Err(too_short(e, probe));
        }
        quick_enough(e, traffic, xoff)?;
        // The sender was at work, so that the DUT holds frames that an XON can let go.
        heard(
            traffic,
            xoff.after + e.limits.max_response,
            xon.before,
            "between XOFF and XON",
        )?;
        quick(
            e,
            traffic,
            xon.before,
            xon.after + vicinity(e),
            "after the XON",
        )?;
        for (priority, arrivals) in &traffic.paused {
            if !within(arrivals, xoff.after + e.limits.max_response, xon.before).is_empty() {
                return Err(format!(
                    "the DUT did not keep priority {priority} still until the XON"
                ));
            }
        }
        for (priority, arrivals) in &traffic.paused {
            let first = arrivals
                .iter()
                .map(|arrival| arrival.time)
                .filter(|time| *time >= xon.before)
                .min();
            finding.prove(
                format!("first frame of priority {priority} after the XON"),
                format!("within {}", ms(e.limits.max_response)),
                first.map_or("never".into(), |first| ms(first - xon.before)),
                first.is_some_and(|first| first <= deadline),
                true,
            );
        }
        Ok(())
    })
}

/// Succeeds if a pause of a lossless priority, sent by the storm's port and sender, was seen to
/// act: during its first half the rate of the paused frames fell below half of the rate before,
/// while other flows went on. How well the DUT obeys is not judged here.
fn storm_arrival(e: &PfcEvidence) -> Result<(), String> {
    let mut reason = "a lossless priority did not stop for one".to_owned();
    for probe in &e.probes {
        let traffic = traffic(e, probe);
        let half = e.limits.pause_time(probe.quanta) / 2;
        let (from, to) = (
            probe.xoff.after + e.limits.max_response,
            probe.xoff.before + half,
        );
        if from >= to {
            reason = too_short(e, probe);
            break;
        }
        if e.arrivals.lost > 0 {
            reason = format!("{} records of the probe did not fit", e.arrivals.lost);
            break;
        }
        // Frames in the pause for each that came in as long a time just before it.
        let share = |arrivals: &[&Arrival]| {
            let before = within(
                arrivals,
                probe.xoff.before.saturating_sub(vicinity(e)),
                probe.xoff.before,
            )
            .len() as f64
                / vicinity(e) as f64;
            let during = within(arrivals, from, to).len() as f64 / (to - from) as f64;
            if before > 0.0 {
                Some(during / before)
            } else {
                None
            }
        };
        let paused: Vec<&Arrival> = traffic
            .paused
            .iter()
            .flat_map(|(_, arrivals)| arrivals)
            .copied()
            .collect();
        if share(&paused).is_some_and(|share| share < 0.5)
            && share(&traffic.others).is_some_and(|share| share >= 0.5)
        {
            return Ok(());
        }
    }
    Err(format!(
        "it was not shown that pause frames of the rx port reach the DUT: {reason}"
    ))
}
