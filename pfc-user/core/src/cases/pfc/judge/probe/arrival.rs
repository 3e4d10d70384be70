//! The proof that the tester's pause frames reach the DUT.

use super::measured::{Measured, NotCounted, Traffic, within};
use crate::cases::judge::Precondition;
use crate::cases::pfc::judge::Pfc;
use crate::cases::pfc::judge::preconditions::own_storm;
use crate::cases::pfc::planning::join;
use crate::evidence::pfc::{Arrival, PfcEvidence};
use crate::plan::Nanos;

/// The DUT was shown to receive the pause frames of the storm's port.
pub(in crate::cases::pfc) const STORM_ARRIVAL: Precondition<Pfc> = Precondition::<Pfc>::new(
    "storm-arrival",
    "Show that the DUT obeys a pause frame on this port: PFC enabled for a lossless priority.",
    storm_arrival,
);

/// Succeeds if a pause of a lossless priority, sent by the storm's port and sender, was seen to
/// act. How well the DUT obeys is not judged here.
fn storm_arrival(e: &PfcEvidence) -> Result<(), String> {
    // Otherwise the tester itself may be what stopped.
    own_storm(e)?;
    let measured = Measured::of(e);
    let mut reason = "no probe was made".to_owned();
    if e.arrivals.lost > 0 {
        reason = format!("{} records of the probe did not fit", e.arrivals.lost);
    } else {
        for probe in &e.probes {
            match acted(&measured.traffic(probe)) {
                Ok(()) => return Ok(()),
                Err(why) => reason = why.reason().clone().into_text(),
            }
        }
    }
    Err(format!(
        "it was not shown that pause frames of the rx port reach the DUT: {reason}"
    ))
}

/// During the first half of the pause the rate of the paused frames fell below half of the rate
/// before, while other flows went on.
fn acted(traffic: &Traffic) -> Result<(), NotCounted> {
    let measured = &traffic.measured;
    let pauses = traffic.paused.iter();
    let pauses = pauses.filter_map(|(priority, _)| traffic.pause(*priority));
    let Some(pause) = pauses.min_by_key(|pause| pause.lasts) else {
        return Err(NotCounted::Planned(
            "no lossless priority was paused".into(),
        ));
    };
    let half = pause.lasts / 2;
    let xoff = pause.xoff.before;
    let (from, to) = (pause.in_force, xoff + half);
    if from >= to {
        let needed = half + measured.limits.max_response;
        return Err(measured.too_short(pause.lasts, needed));
    }
    // Frames in the pause for each that came in as long a time just before it.
    let share = |arrivals: &[&Arrival]| {
        let per = |frames: Vec<_>, span: Nanos| frames.len() as f64 / span as f64;
        let begin = xoff.saturating_sub(measured.vicinity());
        let before = per(within(arrivals, begin, xoff), measured.vicinity());
        let during = per(within(arrivals, from, to), to - from);
        (before > 0.0).then(|| during / before)
    };
    let paused = traffic.paused.iter().flat_map(|(_, arrivals)| arrivals);
    let paused: Vec<&Arrival> = paused.copied().collect();
    // With fewer, none may be due in that half.
    let begin = xoff.saturating_sub(measured.vicinity());
    let before = within(&paused, begin, xoff).len() as f64;
    let due = before * (to - from) as f64 / measured.vicinity() as f64;
    if before > 0.0 && due < 2.0 {
        let few = format!("{due:.1} frames are due in half of a pause; it takes 2 or more");
        return Err(NotCounted::Planned(few.into()));
    }
    let names = traffic.paused.iter().map(|(priority, _)| *priority);
    let names = join(&names.collect::<Vec<_>>());
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let reason = match (share(&paused), share(&traffic.others)) {
        (None, _) => format!("no frame of priority {names} arrived just before the probe's XOFF"),
        (_, None) => "no frame of another priority arrived just before the probe's XOFF".into(),
        (Some(paused), _) if paused >= 0.5 => format!(
            "a lossless priority did not stop for one: that of priority {names} was {} of the \
             rate before",
            percent(paused)
        ),
        (Some(paused), Some(others)) if others < 0.5 => format!(
            "priority {names} stopped for one, to {} of its rate, but the other priorities did \
             so too, to {} of theirs",
            percent(paused),
            percent(others)
        ),
        _ => return Ok(()),
    };
    Err(NotCounted::Tester(reason.into()))
}
