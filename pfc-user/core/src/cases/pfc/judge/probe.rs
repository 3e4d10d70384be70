//! Checks on single XOFF and XON frames: `response`, `xon`.

mod arrival;
mod measured;

use pfc_ebpf::units::Priority;

use self::measured::{NotCounted, Traffic, heard, within};
use super::delivery;
use super::preconditions::lost_by_tester;
use super::stalls::stalled_within;
use crate::cases::finding::Finding;
use crate::cases::pfc::probing;
use crate::evidence::pfc::{Arrival, PfcEvidence, ProbeReport};
use crate::plan::Nanos;
use crate::quantity::ms;

pub(in crate::cases::pfc) use self::arrival::STORM_ARRIVAL;
pub(in crate::cases::pfc) use self::measured::{Measured, enough};

/// The comparisons of a probe, or why it does not count.
type JudgeProbe = fn(&Measured, &ProbeReport, &Traffic) -> Result<Vec<Comparison>, NotCounted>;

/// A comparison of a probe that counts.
struct Comparison {
    what: String,
    expected: String,
    actual: String,
    holds: bool,
    /// Where it does not hold, the time in which a stall may be the reason, and by how much it does
    /// not.
    late: Late,
}

/// A time that came too late.
#[derive(Default)]
struct Late {
    from: Nanos,
    to: Nanos,
    by: Nanos,
}

/// Judges each probe; undecided unless enough of them count.
fn judge_probes(e: &PfcEvidence, judge: JudgeProbe) -> Finding {
    let mut finding = Finding::new();
    let mut reason = None;
    let mut counted = 0;
    let measured = Measured::of(e);
    for probe in &e.probes {
        let outcome = judge(&measured, probe, &measured.traffic(probe));
        match outcome.and_then(|compared| without_stall(e, compared)) {
            Ok(compared) => {
                counted += 1;
                for one in compared {
                    let certain = lost_by_tester(e).0 == 0;
                    finding.prove(one.what, one.expected, one.actual, one.holds, certain);
                }
            }
            Err(why) => {
                reason.get_or_insert(why);
            }
        }
    }
    if e.arrivals.lost > 0 {
        finding.undecided(
            "records of the probe",
            "all",
            format!("{} did not fit", e.arrivals.lost),
        );
    }
    if counted < probing::ENOUGH {
        let made = e.probes.len();
        let why = match &reason {
            Some(why) => format!(": {}", why.reason()),
            None if made == 0 => ": no probe was made".to_owned(),
            None => String::new(),
        };
        let what = "probes measured well enough";
        let expected = format!("at least {}", probing::ENOUGH);
        let actual = format!("{counted} of {made}{why}");
        match reason {
            Some(NotCounted::Planned(_)) => finding.undecidable(what, expected, actual),
            _ => finding.undecided(what, expected, actual),
        }
    }
    finding
}

/// A probe does not count that failed by less than the tester or the simulated DUT stalled.
fn without_stall(
    e: &PfcEvidence,
    compared: Vec<Comparison>,
) -> Result<Vec<Comparison>, NotCounted> {
    for one in compared.iter().filter(|one| !one.holds) {
        let stalled = stalled_within(e, one.late.from, one.late.to);
        if one.late.by <= stalled {
            return Err(NotCounted::Tester(format!(
                "the tester or the simulated DUT stalled for {} meanwhile",
                ms(stalled)
            )));
        }
    }
    Ok(compared)
}

/// The first frame of a priority at `from` or later.
fn first_from(arrivals: &[&Arrival], from: Nanos) -> Option<Nanos> {
    let times = arrivals.iter().map(|arrival| arrival.time);
    times.filter(|time| *time >= from).min()
}

/// `response`.
pub(in crate::cases::pfc) fn response(e: &PfcEvidence) -> Finding {
    let mut losses = Finding::new();
    delivery::expect_none_lost_by_probe(&mut losses, e);
    let mut finding = judge_probes(e, response_of);
    finding.merge(losses);
    finding
}

/// The XOFF of a probe that runs out.
fn response_of(
    measured: &Measured,
    probe: &ProbeReport,
    traffic: &Traffic,
) -> Result<Vec<Comparison>, NotCounted> {
    let pause = measured.pause(probe, probe.xoff);
    if pause.in_force >= pause.earliest {
        return Err(measured.too_short(probe, measured.limits.max_response));
    }
    measured.quick_round_xoff(traffic, probe.xoff)?;
    // Silence is the DUT's doing only while something else is heard.
    let to = pause.earliest.min(pause.in_force + measured.vicinity());
    heard(traffic, pause.in_force, to, "while the pause was in force")?;
    let paused = traffic.paused.iter();
    let mut compared: Vec<_> = paused
        .map(|(priority, arrivals)| silence(measured, probe, *priority, arrivals))
        .collect();
    // What came too early was not made so by a latency round the end.
    if compared.iter().all(|silence| silence.holds) {
        let place = "round the end of the pause";
        measured.quick_round_end(traffic, pause.earliest, pause.latest, place)?;
        for (priority, arrivals) in &traffic.paused {
            let first = first_from(arrivals, pause.earliest);
            let what = format!("first frame of priority {priority} after the quanta of an XOFF");
            compared.push(goes_on(
                measured,
                traffic,
                *priority,
                what,
                pause.latest,
                first,
            )?);
        }
    }
    Ok(compared)
}

/// No frame of `priority` from `max_response` after the XOFF on until its quanta run out.
fn silence(
    measured: &Measured,
    probe: &ProbeReport,
    priority: Priority,
    arrivals: &[&Arrival],
) -> Comparison {
    let pause = measured.pause(probe, probe.xoff);
    let early = within(arrivals, pause.in_force, pause.earliest);
    let after_xoff = |time: Nanos| ms(time.saturating_sub(probe.xoff.before));
    let actual = match early.first() {
        Some(first) => format!(
            "{}, the first {} after the XOFF (quanta last {})",
            early.len(),
            after_xoff(first.time),
            ms(measured.limits.pause_time(probe.quanta))
        ),
        None => {
            let mut earlier = arrivals.iter().rev();
            let last = earlier.find(|arrival| arrival.time <= pause.in_force);
            let last = last.map_or(0, |arrival| arrival.time);
            format!("0 (last frame {} after the XOFF)", after_xoff(last))
        }
    };
    let last = early.last().map_or(0, |arrival| arrival.time);
    Comparison {
        what: format!(
            "frames of priority {priority} between max_response after the XOFF and the end of its \
             quanta"
        ),
        expected: "0".into(),
        actual,
        holds: early.is_empty(),
        late: Late {
            from: probe.xoff.before,
            to: last,
            by: last.saturating_sub(pause.in_force),
        },
    }
}

/// `priority` goes on in time after `end`; its first frame came at `first`.
fn goes_on(
    measured: &Measured,
    traffic: &Traffic,
    priority: Priority,
    what: String,
    end: Nanos,
    first: Option<Nanos>,
) -> Result<Comparison, NotCounted> {
    let allowed = measured.allowed();
    let expected = format!("within {}", ms(allowed));
    let Some(first) = first else {
        let deadline = end + allowed;
        let place = "after the priority had to go on";
        heard(traffic, deadline, deadline + measured.vicinity(), place)?;
        return Ok(Comparison {
            what,
            expected,
            actual: "never".into(),
            holds: false,
            late: Late {
                by: Nanos::MAX,
                ..Late::default()
            },
        });
    };
    let waited = first.saturating_sub(end);
    let counted = measured.counted(priority, end, first);
    if counted > allowed && traffic.paused.len() > 1 && !measured.logs_all() {
        return Err(NotCounted::Lasting(format!(
            "priority {priority} went on after {}, and as not every flow was logged it is not \
             known for how long others filled the link",
            ms(waited)
        )));
    }
    if counted > allowed {
        // What a silent path kept back was not kept back by the DUT.
        measured.quick(traffic, end, first, "while the priority was awaited")?;
    }
    let filled = match waited.saturating_sub(counted) {
        0 => String::new(),
        filled => format!(", {} of them with the link filled by others", ms(filled)),
    };
    Ok(Comparison {
        what,
        expected,
        actual: format!("{}{filled}", ms(waited)),
        holds: counted <= allowed,
        late: Late {
            from: end.saturating_sub(measured.limits.max_response),
            to: first,
            by: counted.saturating_sub(allowed),
        },
    })
}

/// `xon`.
pub(in crate::cases::pfc) fn xon(e: &PfcEvidence) -> Finding {
    judge_probes(e, xon_of)
}

/// The XOFF of a probe that an XON ends.
fn xon_of(
    measured: &Measured,
    probe: &ProbeReport,
    traffic: &Traffic,
) -> Result<Vec<Comparison>, NotCounted> {
    let Some((xoff, xon)) = probe.xon else {
        return Err(NotCounted::Lasting("no XON was sent".into()));
    };
    let pause = measured.pause(probe, xoff);
    if xon.after + measured.allowed() >= pause.earliest {
        let hold = measured.limits.pause_time(probe.quanta) / probing::HOLD;
        return Err(measured.too_short(probe, hold + measured.allowed()));
    }
    measured.quick_round_xoff(traffic, xoff)?;
    // The sender was at work, so that the DUT holds frames that an XON can let go.
    heard(traffic, pause.in_force, xon.before, "between XOFF and XON")?;
    measured.quick_round_end(traffic, xon.before, xon.after, "round the XON")?;
    let paused = traffic.paused.iter();
    let mut moving = paused.filter(|(_, all)| !within(all, pause.in_force, xon.before).is_empty());
    if let Some((priority, _)) = moving.next() {
        return Err(NotCounted::Lasting(format!(
            "the DUT did not keep priority {priority} still until the XON"
        )));
    }
    let paused = traffic.paused.iter();
    paused
        .map(|(priority, arrivals)| {
            let first = first_from(arrivals, xon.before);
            let what = format!("first frame of priority {priority} after the XON");
            goes_on(measured, traffic, *priority, what, xon.after, first)
        })
        .collect()
}
