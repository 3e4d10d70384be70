//! Checks on PFC frames that depart from the standard's form: `ignored`, `still-pauses`, `alive`.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Nanos, Priority};

use super::measured::{Measured, NotCounted, Traffic, Wait, within};
use super::{Comparison, Question, beside, delivery, in_time, judge_probes, response_of};
use crate::cases::finding::Finding;
use crate::cases::pfc::probing::interval_of;
use crate::cases::value::{Value, time};
use crate::evidence::pfc::{PfcEvidence, ProbeReport};
use crate::plan::form::{Effect, Form};
use crate::plan::{ProbeBurst, Role};

/// The form of a burst's first frame.
fn form(burst: &ProbeBurst) -> Form {
    let first = burst.frames.first();
    first.map_or(Form::Standard, |first| first.frame.form)
}

/// Frames that a MAC has to ignore.
pub(super) const IGNORED: Question = Question {
    concerns: |_, burst| form(burst).effect() == Effect::None,
    judge: ignored_of,
};
/// Frames that pause all the same.
const STILL_PAUSES: Question = Question {
    concerns: |_, burst| form(burst) != Form::Standard && form(burst).effect() == Effect::Pauses,
    judge: response_of,
};
/// Frames of the standard's form after others.
const ALIVE: Question = Question {
    concerns: |_, burst| form(burst).effect() != Effect::Pauses,
    judge: response_of,
};

/// `ignored`.
pub(in crate::cases::pfc) fn ignored(e: &PfcEvidence) -> Finding {
    judge_probes(e, IGNORED)
}

/// `still-pauses`.
pub(in crate::cases::pfc) fn still_pauses(e: &PfcEvidence) -> Finding {
    judge_probes(e, STILL_PAUSES)
}

/// `alive`.
pub(in crate::cases::pfc) fn alive(e: &PfcEvidence) -> Finding {
    let mut finding = judge_probes(e, ALIVE);
    beside::expect_none_held(&mut finding, e);
    for role in [Role::Test, Role::Background] {
        delivery::expect_all(&mut finding, e, role, &[Phase::Probe]);
    }
    finding
}

/// No priority is held by an odd frame.
fn ignored_of(traffic: &Traffic) -> Result<Vec<Comparison>, NotCounted> {
    let (measured, probe) = (&traffic.measured, traffic.probe);
    let Some(odd) = probe.left.first() else {
        return Err(NotCounted::Tester("it did not leave".into()));
    };
    traffic.certain(*odd)?;
    let words = form(&probe.burst).words();
    let mut compared = Vec::new();
    for priority in Priority::all() {
        let mut flows = measured.plan.flows.iter();
        if !flows.any(|flow| flow.priority == priority) {
            continue;
        }
        let wait = wait_from(measured, probe, priority)?;
        if wait.counted > measured.allowed() && !held_before(measured, probe, priority) {
            // Frames that a silent path kept back were not kept back by the DUT.
            traffic.quick_meanwhile(wait, "while a priority was awaited")?;
        }
        let what = format!("longest wait of priority {priority} that begins with {words}");
        compared.push(in_time(measured, priority, what, wait));
    }
    Ok(compared)
}

/// The time that the first frame of `probe` asks for.
fn asked(measured: &Measured, probe: &ProbeReport) -> Nanos {
    let first = probe.burst.frames.first();
    let times = first.into_iter().flat_map(|one| {
        let classes = one.frame.classes.iter();
        classes.map(|class| one.frame.times[class.index()])
    });
    times
        .min()
        .map_or(0, |time| measured.limits.pause_time(time))
}

/// The longest wait of a frame of `priority` that begins with the first frame of `probe`, or as late
/// after it as a response and the next frame may come.
fn wait_from(
    measured: &Measured,
    probe: &ProbeReport,
    priority: Priority,
) -> Result<Wait, NotCounted> {
    let Some(odd) = probe.left.first() else {
        return Err(NotCounted::Tester("it did not leave".into()));
    };
    let between = interval_of(measured.plan, priority);
    let least = measured.allowed() + between;
    let lasts = asked(measured, probe);
    if lasts <= least {
        return Err(measured.too_short(lasts, least));
    }
    let arrivals = measured.arrivals_of(Phase::Probe, priority);
    let lead = odd.before.saturating_sub(measured.vicinity());
    if within(&arrivals, lead, odd.before).is_empty() {
        let still = format!("no frame of priority {priority} came just before the odd frame");
        return Err(NotCounted::Tester(still.into()));
    }
    // A frame that it held may have come as late as after the next one's pause.
    let arrivals = within(&arrivals, odd.before, measured.until(probe));
    let begins = odd.after + measured.limits.max_response + between;
    let wait = measured.longest_above(None, priority, &arrivals, odd.before, |since| {
        since <= begins
    });
    wait.ok_or_else(|| {
        let none = format!("no frame of priority {priority} left just after the odd frame");
        NotCounted::Tester(none.into())
    })
}

/// True if the same burst held `priority` before: one delay may be the tester's.
fn held_before(measured: &Measured, probe: &ProbeReport, priority: Priority) -> bool {
    let probes = measured.probes.iter();
    let mut earlier = probes
        .filter(|other| other.burst == probe.burst)
        .filter(|other| other.begin() < probe.begin());
    earlier.any(|other| {
        wait_from(measured, other, priority).is_ok_and(|wait| wait.counted > measured.allowed())
    })
}

/// What frames did of which the standard leaves it open, by form.
pub(in crate::cases::pfc) fn reported(e: &PfcEvidence) -> Vec<(String, Value)> {
    let measured = Measured::of(e);
    let probes = e.probes.iter();
    let open = probes.filter(|probe| form(&probe.burst).effect() == Effect::Open);
    let of_probe = |probe: &ProbeReport| {
        let priorities = e.plan.probed().iter();
        let waits = priorities.filter_map(|priority| wait_from(&measured, probe, *priority).ok());
        let longest: Nanos = waits.map(|wait| wait.counted).max()?;
        let paused = longest > measured.allowed();
        let effect = if paused { "pauses" } else { "no effect" };
        let name = form(&probe.burst).words().to_owned();
        Some((
            name,
            Value::from(effect) + ": the longest wait is " + time(longest),
        ))
    };
    open.filter_map(of_probe).collect()
}
