//! Checks on single XOFF and XON frames: `response`, `xon`.

mod arrival;
mod beside;
mod measured;
pub(in crate::cases::pfc) mod odd;
pub(in crate::cases::pfc) mod pause_time;
pub(in crate::cases::pfc) mod response_time;

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Priority;

use self::measured::{Drain, NotCounted, Pause, Traffic, within};
use self::response_time::AT_RATE;
use super::delivery;
use super::preconditions::lost_by_tester;
use super::stalls::stalled_within;
use crate::cases::finding::Finding;
use crate::cases::pfc::probing::FULL;
use crate::cases::value::{self, Value, count, time};
use crate::evidence::pfc::{Arrival, Departure, PfcEvidence, ProbeReport};
use crate::plan::{Nanos, ProbeBurst, ProbePlan};
use crate::verdict::{Bound, Subject};

pub(in crate::cases::pfc) use self::arrival::STORM_ARRIVAL;
pub(in crate::cases::pfc) use self::measured::{Measured, Wait};

/// Share of the time in which held frames leave that the link may be idle: a device whose rate is
/// lower at all times has checks of its own.
const IDLE: f64 = 0.25;

/// A check on probes.
#[derive(Clone, Copy)]
struct Question {
    /// True if a burst is one that it asks for.
    concerns: fn(&ProbePlan, &ProbeBurst) -> bool,
    /// The comparisons of a probe, or why it does not count.
    judge: fn(&Traffic) -> Result<Vec<Comparison>, NotCounted>,
}

/// Pauses that run out.
const RESPONSE: Question = Question {
    concerns: has_pause_that_runs_out,
    judge: response_of,
};
/// Pauses that an XON ends, and XONs that find none.
const XON: Question = Question {
    concerns: |plan, burst| {
        let mut paused = plan.priorities.iter();
        paused.any(|priority| {
            burst.is_idle_xon(*priority) || burst.ends_by_xon(*priority) == Some(true)
        })
    },
    judge: xon_of,
};

/// True if a pause of `burst` runs out.
fn has_pause_that_runs_out(plan: &ProbePlan, burst: &ProbeBurst) -> bool {
    let mut paused = plan.priorities.iter();
    paused.any(|priority| burst.ends_by_xon(*priority) == Some(false))
}

/// The spans in which probes hold `priority` for certain: from `max_response` after an XOFF to the
/// earliest end of its pause.
pub fn held_by_probes(e: &PfcEvidence, priority: Priority) -> Vec<(Nanos, Nanos)> {
    let pauses = Measured::of(e).pauses().into_iter();
    let of_priority = pauses.filter(|(of, _)| *of == priority);
    of_priority
        .map(|(_, pause)| (pause.in_force, pause.earliest))
        .collect()
}

/// A comparison of times.
pub(super) struct Comparison {
    pub(super) what: String,
    pub(super) expected: Value,
    pub(super) actual: Value,
    pub(super) holds: bool,
    /// The frame whose wait it is about.
    pub(super) frame: Option<Subject>,
    /// Where it does not hold, the time in which a stall may be the reason, and by how much it does
    /// not.
    pub(super) late: Late,
}

/// A time that came too late.
#[derive(Default)]
pub(super) struct Late {
    pub(super) from: Nanos,
    to: Nanos,
    by: Nanos,
}

impl Late {
    /// The time for which the tester or the simulated DUT stalled meanwhile, where that explains
    /// the lateness.
    pub(super) fn explained(&self, e: &PfcEvidence) -> Option<Nanos> {
        let stalled = stalled_within(e, self.from, self.to);
        (self.by <= stalled).then_some(stalled)
    }
}

/// The bursts of `plan` that have not been measured well enough yet; none where more of them would
/// not help.
pub(in crate::cases::pfc) fn open(plan: &ProbePlan, measured: &Measured) -> Vec<usize> {
    // How a pause ends is not asked where all of them are on a full link.
    let fill = plan.bursts.iter().all(|burst| burst.load >= FULL);
    let pauses = if fill { AT_RATE } else { RESPONSE };
    let questions = |burst: &ProbeBurst| {
        let all = [pauses, XON, odd::IGNORED].into_iter();
        all.filter(|question| (question.concerns)(plan, burst))
            .collect::<Vec<_>>()
    };
    let mut open: Vec<usize> = (0..plan.bursts.len()).collect();
    for probe in measured.probes {
        let traffic = measured.traffic(probe);
        let questions = questions(&probe.burst).into_iter();
        let outcomes: Vec<_> = questions
            .map(|question| (question.judge)(&traffic))
            .collect();
        let settled = |outcome: &Result<_, NotCounted>| {
            matches!(outcome, Ok(_) | Err(NotCounted::Planned(_)))
        };
        if outcomes.iter().all(settled) && !measured.is_to_be_confirmed(probe) {
            open.retain(|burst| plan.bursts[*burst] != probe.burst);
        }
        let is_last = measured.probes.last() == Some(probe);
        let lasts =
            |outcome: &Result<_, NotCounted>| matches!(outcome, Err(NotCounted::Lasting(_)));
        if is_last && outcomes.iter().any(lasts) {
            return Vec::new();
        }
    }
    open
}

/// Judges each probe; undecided unless one of each kind counts.
fn judge_probes(e: &PfcEvidence, question: Question) -> Finding {
    let mut finding = Finding::new();
    let mut reason = None;
    let measured = Measured::of(e);
    let Some(plan) = &e.plan.probe else {
        return Finding::not_applicable("no probe was planned");
    };
    let bursts = plan.bursts.iter();
    let mut missing: Vec<_> = bursts
        .filter(|burst| (question.concerns)(plan, burst))
        .collect();
    let kinds = missing.len();
    let probes = e.probes.iter();
    for probe in probes.filter(|probe| (question.concerns)(plan, &probe.burst)) {
        let outcome = (question.judge)(&measured.traffic(probe));
        match outcome.and_then(|compared| without_stall(e, compared)) {
            Ok(compared) => {
                missing.retain(|burst| **burst != probe.burst);
                for one in compared {
                    let certain = lost_by_tester(e).0 == 0;
                    finding.about(one.frame.as_slice(), |finding| {
                        finding.prove(one.what, one.expected, one.actual, one.holds, certain)
                    });
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
            count(e.arrivals.lost, "") + " did not fit",
        );
    }
    if !missing.is_empty() {
        let why = match &reason {
            Some(why) => ": " + why.reason().clone(),
            None if e.probes.is_empty() => ": no probe was made".into(),
            None => Value::default(),
        };
        let what = "kinds of probes measured well enough";
        let actual = Value::from(kinds - missing.len()) + why;
        match reason {
            Some(NotCounted::Planned(_)) => finding.undecidable(what, kinds, actual),
            _ => finding.undecided(what, kinds, actual),
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
        if let Some(stalled) = one.late.explained(e) {
            let stalled = "the tester or the simulated DUT stalled for " + time(stalled);
            return Err(NotCounted::Tester(stalled + " meanwhile"));
        }
    }
    Ok(compared)
}

/// `response`.
pub(in crate::cases::pfc) fn response(e: &PfcEvidence) -> Finding {
    let mut losses = Finding::new();
    delivery::expect_none_lost_by_probe(&mut losses, e);
    let mut finding = judge_probes(e, RESPONSE);
    beside::expect_none_held(&mut finding, e);
    finding.merge(losses);
    finding
}

/// The priorities whose pause ends in one way, with that pause.
fn subjects<'t, 'e>(
    traffic: &'t Traffic<'e>,
    by_xon: bool,
) -> Vec<(Priority, Pause, &'t [&'e Arrival])> {
    let of_priority = |(priority, arrivals): &'t (Priority, Vec<&'e Arrival>)| {
        let pause = traffic.pause(*priority)?;
        (pause.by_xon == by_xon).then_some((*priority, pause, arrivals.as_slice()))
    };
    traffic.paused.iter().filter_map(of_priority).collect()
}

/// Pauses of a probe that run out.
fn response_of(traffic: &Traffic) -> Result<Vec<Comparison>, NotCounted> {
    let mut compared = silences(traffic)?;
    // Latency round the end of a pause makes no frame come too early.
    if compared.iter().all(|silence| silence.holds) {
        compared.extend(ends(traffic)?);
    }
    compared.extend(not_held(traffic)?);
    Ok(compared)
}

/// Each of them holds its priority until its quanta run out.
fn silences(traffic: &Traffic) -> Result<Vec<Comparison>, NotCounted> {
    let measured = &traffic.measured;
    let mut compared = Vec::new();
    for (priority, pause, arrivals) in &subjects(traffic, false) {
        if pause.in_force >= pause.earliest {
            return Err(measured.too_short(pause.lasts, measured.limits.max_response));
        }
        measured.unbroken(traffic.probe, *priority)?;
        traffic.quick_round_xoff(pause.xoff, pause.earliest)?;
        // Silence is the DUT's doing only while something else is heard.
        let to = pause.earliest.min(pause.in_force + measured.vicinity());
        traffic.heard(pause.in_force, to, "while the pause was in force")?;
        compared.push(silence(*priority, pause, arrivals));
    }
    Ok(compared)
}

/// Each priority goes on when they have run out.
fn ends(traffic: &Traffic) -> Result<Vec<Comparison>, NotCounted> {
    let mut compared = Vec::new();
    for (priority, pause, arrivals) in &subjects(traffic, false) {
        traffic.quick_round_end(pause, "round the end of the pause")?;
        let what = format!("priority {priority} after the quanta of an XOFF");
        let end = (pause.earliest, pause.latest);
        compared.extend(goes_on(traffic, *priority, arrivals, end, what)?);
    }
    Ok(compared)
}

/// No frame of `priority` from `max_response` after the XOFF on until its quanta run out.
fn silence(priority: Priority, pause: &Pause, arrivals: &[&Arrival]) -> Comparison {
    let early = within(arrivals, pause.in_force, pause.earliest);
    let after_xoff = |arrival: &&Arrival| time(arrival.time.saturating_sub(pause.xoff.before));
    let when = match early.as_slice() {
        [first, .., last] => {
            ", the first " + after_xoff(first) + " and the last " + after_xoff(last)
        }
        [one] => ", " + after_xoff(one),
        [] => {
            let mut earlier = arrivals.iter().rev();
            let last = earlier.find(|arrival| arrival.time <= pause.in_force);
            match last.filter(|last| last.time > pause.xoff.before) {
                Some(last) => " (last frame " + after_xoff(last),
                None => " (no frame".into(),
            }
        }
    };
    let actual = Value::from(early.len()) + when + " after the XOFF";
    let actual = match early.is_empty() {
        true => actual + ")",
        false => actual + " (quanta last " + time(pause.lasts) + ")",
    };
    let last = early.last().map_or(0, |arrival| arrival.time);
    Comparison {
        what: format!(
            "frames of priority {priority} between max_response after the XOFF and the end of its \
             quanta"
        ),
        expected: 0.into(),
        actual,
        holds: early.is_empty(),
        frame: None,
        late: Late {
            from: pause.xoff.before,
            to: last,
            by: last.saturating_sub(pause.in_force),
        },
    }
}

/// The priority goes on in time after the end of its pause, of which the earliest and the latest
/// time are given, and for good: the first frame comes in time, and so does each later one after
/// the one before it, and the link is not idle while frames wait that were held.
fn goes_on(
    traffic: &Traffic,
    priority: Priority,
    arrivals: &[&Arrival],
    (earliest, end): (Nanos, Nanos),
    what: String,
) -> Result<Vec<Comparison>, NotCounted> {
    let measured = &traffic.measured;
    let logs_all = measured.logs_all(&traffic.probe.burst);
    let allowed = measured.allowed();
    let all = within(arrivals, earliest, measured.until(traffic.probe));
    let [first_arrival, next @ ..] = all.as_slice() else {
        let deadline = end + allowed;
        let place = "after the priority had to go on";
        traffic.heard(end, deadline + measured.vicinity(), place)?;
        let never = |of: &str| Comparison {
            what: format!("{of} {what}"),
            expected: value::within(allowed),
            actual: "never".into(),
            holds: false,
            frame: None,
            late: Late {
                by: Nanos::MAX,
                ..Late::default()
            },
        };
        return Ok(["first frame of", "later frames of"].map(never).into());
    };
    let first = first_arrival.time;
    let begin = measured.wait(priority, end, first_arrival);
    let later = measured.longest_wait(priority, next, first);
    let one = |what: String, wait: Wait| -> Result<Comparison, NotCounted> {
        if wait.counted > allowed && !logs_all {
            let went_on = Value::from(format!("priority {priority} went on after "));
            let unknown = ", and as not every flow was logged it is not known for how long others \
                           filled the link";
            let why = went_on + time(wait.until - wait.since) + unknown;
            return Err(NotCounted::Lasting(why));
        }
        if wait.counted > allowed {
            // Frames that a silent path kept back were not kept back by the DUT.
            traffic.quick_meanwhile(wait, "while the priority was awaited")?;
        }
        Ok(in_time(measured, priority, what, wait))
    };
    let none = Wait {
        since: first,
        until: first,
        counted: 0,
    };
    let mut compared = vec![
        one(format!("first frame of {what}"), begin)?,
        one(
            format!("longest wait of a later frame of {what}"),
            later.unwrap_or(none),
        )?,
    ];
    if measured.whole && logs_all {
        let drain = measured.drain(&all, (earliest, first), IDLE);
        if drain.idle > drain.allowed {
            traffic.quick(first, drain.last, "while held frames left")?;
        }
        let what = format!("idle time of the link while held frames left of {what}");
        compared.push(idle(measured, what, first, drain));
    }
    Ok(compared)
}

/// The link was not idle for longer than is allowed while held frames left, from `first` on.
pub(super) fn idle(measured: &Measured, what: String, first: Nanos, drain: Drain) -> Comparison {
    Comparison {
        what,
        expected: ("at most " + time(drain.allowed)).is(Bound::AtMost),
        actual: drain.text(),
        holds: drain.idle <= drain.allowed,
        frame: None,
        late: Late {
            from: first.saturating_sub(measured.limits.max_response),
            to: drain.last,
            by: drain.idle.saturating_sub(drain.allowed),
        },
    }
}

/// A frame of a priority that had to wait for no longer than is allowed.
pub(super) fn in_time(
    measured: &Measured,
    priority: Priority,
    what: String,
    wait: Wait,
) -> Comparison {
    let allowed = measured.allowed();
    Comparison {
        what,
        expected: value::within(allowed),
        actual: wait.text(),
        holds: wait.counted <= allowed,
        frame: Some(Subject::Frame(priority, wait.until)),
        late: Late {
            from: wait.since.saturating_sub(measured.limits.max_response),
            to: wait.until,
            by: wait.counted.saturating_sub(allowed),
        },
    }
}

/// Lossy priorities that a frame of the probe names beside the lossless ones go on.
fn not_held(traffic: &Traffic) -> Result<Vec<Comparison>, NotCounted> {
    let (measured, probe) = (&traffic.measured, traffic.probe);
    let logged = measured.logs_all(&probe.burst);
    let Some(first) = probe.left.first().filter(|_| logged) else {
        return Ok(Vec::new());
    };
    let mut compared = Vec::new();
    let pauses = Priority::all().filter_map(|priority| traffic.pause(priority));
    let longest = pauses.map(|pause| pause.latest).max().unwrap_or(0);
    // A DUT may hold them for longer than their own time, such as for that of another class.
    let held = 2 * longest.saturating_sub(first.before) + measured.vicinity();
    let until = measured.until(probe).min(first.before + held);
    for priority in Priority::all().filter(|priority| !measured.plan.is_lossless(*priority)) {
        if traffic.pause(priority).is_none() {
            continue;
        }
        let arrivals = measured.arrivals_of(Phase::Probe, priority);
        let from = first.before.saturating_sub(measured.vicinity());
        let arrivals = within(&arrivals, from, until);
        let Some(wait) = measured.longest_wait(priority, &arrivals, from) else {
            let unseen =
                format!("no frame of lossy priority {priority} was seen round the pause frame");
            return Err(NotCounted::Tester(unseen.into()));
        };
        if wait.counted > measured.allowed() {
            traffic.quick_meanwhile(wait, "while a lossy priority was awaited")?;
        }
        let what = format!(
            "longest wait of a frame of lossy priority {priority}, which the XOFF names too"
        );
        compared.push(in_time(measured, priority, what, wait));
    }
    Ok(compared)
}

/// `resumes`.
pub(in crate::cases::pfc) fn resumes(e: &PfcEvidence) -> Finding {
    let mut finding = judge_probes(e, XON);
    beside::expect_none_held(&mut finding, e);
    finding
}

/// `xon`.
pub(in crate::cases::pfc) fn xon(e: &PfcEvidence) -> Finding {
    judge_probes(e, XON)
}

/// Pauses of a probe that an XON ends, and priorities that one finds without a pause.
fn xon_of(traffic: &Traffic) -> Result<Vec<Comparison>, NotCounted> {
    let (measured, probe) = (&traffic.measured, traffic.probe);
    let mut compared = Vec::new();
    let subjects = subjects(traffic, true);
    for (priority, pause, arrivals) in &subjects {
        let runs_out = measured.without_xon(probe, *priority);
        if pause.latest + measured.allowed() >= runs_out {
            let needed = pause.lasts + measured.allowed();
            return Err(measured.too_short(runs_out.saturating_sub(pause.xoff.before), needed));
        }
        traffic.quick_round_xoff(pause.xoff, pause.earliest)?;
        // The sender was at work, so that the DUT holds frames that an XON can let go.
        traffic.heard(pause.in_force, pause.earliest, "between XOFF and XON")?;
        traffic.quick_round_end(pause, "round the XON")?;
        if !within(arrivals, pause.in_force, pause.earliest).is_empty() {
            let moved = format!("the DUT did not keep priority {priority} still until the XON");
            return Err(NotCounted::Lasting(moved.into()));
        }
        let what = format!("priority {priority} after the XON");
        let end = (pause.earliest, pause.latest);
        compared.extend(goes_on(traffic, *priority, arrivals, end, what)?);
    }
    for (priority, arrivals) in &traffic.paused {
        let Some(xon) = idle_xon(probe, *priority) else {
            continue;
        };
        // An XON that ends other pauses was looked at with these.
        if subjects.is_empty() {
            traffic.quick_round_xoff(xon, Nanos::MAX)?;
        }
        let until = measured.until(probe);
        // The DUT holds none of it for certain, so that no frame need come.
        if within(arrivals, xon.before, until).is_empty() {
            let none = format!("no frame of priority {priority} came after the XON");
            return Err(NotCounted::Tester(none.into()));
        }
        let what = format!("priority {priority}, which was not paused, after the XON");
        let end = (xon.before, xon.after);
        compared.extend(goes_on(traffic, *priority, arrivals, end, what)?);
    }
    Ok(compared)
}

/// The last XON of `probe` for `priority`, where the probe has no pause of it.
fn idle_xon(probe: &ProbeReport, priority: Priority) -> Option<Departure> {
    let frames = probe.burst.frames.iter().zip(&probe.left);
    let mut named = frames.filter(|(one, _)| one.frame.time(priority).is_some());
    let (_, last) = named.next_back()?;
    probe.burst.is_idle_xon(priority).then_some(*last)
}
