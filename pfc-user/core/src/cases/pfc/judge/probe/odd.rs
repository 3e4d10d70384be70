//! Checks on PFC frames that depart from the standard's form: `ignored`, `still-pauses`, `alive`.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Nanos, Priority};

use super::measured::{Measured, NotCounted, Traffic, Wait, within};
use super::{Comparison, Question, beside, delivery, in_time, judge_probes, response_of};
use crate::cases::finding::Finding;
use crate::cases::pfc::probing::interval_of;
use crate::cases::value::{Value, count, time};
use crate::evidence::pfc::{Departure, PfcEvidence, ProbeReport, Stall};
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
/// Pauses by frames of the standard's form, beside others.
const ALIVE: Question = Question {
    concerns: |_, burst| burst.frames.iter().any(|one| !one.frame.is_heeded()),
    judge: response_of,
};

/// The plan has PFC from 00-00-00-00-00-00 that the DUT is to obey.
pub(in crate::cases::pfc) fn declares_zero_source(e: &PfcEvidence) -> Result<(), String> {
    let mut bursts = e.plan.bursts();
    match bursts.any(|burst| form(burst) == Form::ZeroSourceDeclared) {
        true => Ok(()),
        false => Err("facts.zero_source does not declare that the DUT obeys it".into()),
    }
}

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
    traffic.certain(frames_of(probe)?.0)?;
    let words = form(&probe.burst).words();
    let mut compared = Vec::new();
    for priority in Priority::all() {
        let mut flows = measured.plan.flows.iter();
        if !flows.any(|flow| flow.priority == priority) {
            continue;
        }
        let wait = wait_from(measured, probe, priority)?;
        if wait.counted > measured.allowed() && !held_twice(traffic, priority) {
            // Frames that a silent path kept back were not kept back by the DUT.
            traffic.quick_meanwhile(wait, "while a priority was awaited")?;
            // One short delay may be the tester's, of one of its queues or cores.
            if !is_long(measured, probe, wait.counted) {
                let waited = Value::from(format!("priority {priority} waited for "));
                let waited = waited + time(wait.counted);
                return Err(NotCounted::Tester(
                    waited + ", which may be the tester's doing",
                ));
            }
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

/// True if a wait is as long as a half of the time asked for, and longer than a stall that is not
/// listed.
fn is_long(measured: &Measured, probe: &ProbeReport, wait: Nanos) -> bool {
    wait >= (asked(measured, probe) / 2).max(2 * Stall::ABOVE)
}

/// The departures of the odd frame and of the one behind it.
fn frames_of(probe: &ProbeReport) -> Result<(Departure, Departure), NotCounted> {
    match probe.left[..] {
        [odd, next, ..] => Ok((odd, next)),
        _ => Err(NotCounted::Tester(
            "a frame of the burst did not leave".into(),
        )),
    }
}

/// The longest wait of a frame of `priority` that begins with the first frame of `probe`, or as
/// late after it as a response and the next frame may come.
fn wait_from(
    measured: &Measured,
    probe: &ProbeReport,
    priority: Priority,
) -> Result<Wait, NotCounted> {
    let (odd, next) = frames_of(probe)?;
    let between = interval_of(measured.plan, priority);
    let least = measured.allowed() + between;
    let lasts = asked(measured, probe);
    if lasts <= least {
        return Err(measured.too_short(lasts, least));
    }
    let response = measured.limits.max_response;
    let begins = odd.after + response + between;
    if next.before <= begins + response {
        let late = "it left so late that the next frame may be the one that paused";
        return Err(NotCounted::Tester(late.into()));
    }
    let arrivals = measured.arrivals_of(Phase::Probe, priority);
    let lead = odd.before.saturating_sub(measured.vicinity());
    if within(&arrivals, lead, odd.before).is_empty() {
        let still = format!("no frame of priority {priority} came just before the odd frame");
        return Err(NotCounted::Tester(still.into()));
    }
    // A frame that it held may have come as late as after the next one's pause.
    let arrivals = within(&arrivals, odd.before, measured.until(probe));
    let meant = |since| since <= begins;
    let wait = measured.longest_above(None, priority, &arrivals, odd.before, meant);
    wait.ok_or_else(|| {
        let none = format!("no frame of priority {priority} left just after the odd frame");
        NotCounted::Tester(none.into())
    })
}

/// True if `priority` waited from the odd frame on, after all had come quickly, and for about as
/// long when the same burst was sent before: one delay may be the tester's, and it may be of all
/// priorities.
fn held_twice(traffic: &Traffic, priority: Priority) -> bool {
    let (measured, probe) = (&traffic.measured, traffic.probe);
    let held = |traffic: &Traffic| -> Option<Nanos> {
        let wait = wait_from(measured, traffic.probe, priority);
        let begin = traffic.probe.begin();
        let lead = begin.saturating_sub(measured.vicinity());
        let quick = traffic.quick(lead, begin, "just before the odd frame");
        let wait = wait.ok().filter(|_| quick.is_ok())?;
        let goes_on = traffic.quick_meanwhile(wait, "while a priority was awaited");
        let certain = goes_on.is_ok() || wait.counted > 2 * Stall::ABOVE;
        let wait = wait.counted;
        (certain && wait > 2 * measured.allowed()).then_some(wait)
    };
    let probes = measured.probes.iter();
    let mut earlier = probes
        .filter(|other| other.burst == probe.burst)
        .filter(|other| other.begin() < probe.begin());
    held(traffic).is_some_and(|now| {
        earlier.any(|other| {
            let before = held(&measured.traffic(other));
            before.is_some_and(|before| now.min(before) >= now.max(before) / 2)
        })
    })
}

/// Each form whose effect the standard leaves open, and what it did.
pub(in crate::cases::pfc) fn reported(e: &PfcEvidence) -> Vec<(String, Value)> {
    let measured = Measured::of(e);
    // Of a burst that was repeated the last counts.
    let is_last = |probe: &&ProbeReport| {
        let mut others = e.probes.iter();
        !others.any(|other| other.burst == probe.burst && other.begin() > probe.begin())
    };
    let probes = e.probes.iter().filter(is_last);
    let open = probes.filter(|probe| form(&probe.burst).effect() == Effect::Open);
    let of_probe = |probe: &ProbeReport| {
        let priorities = e.plan.probed().iter();
        let waits = priorities.map(|priority| wait_from(&measured, probe, *priority));
        let waits: Result<Vec<Wait>, _> = waits.collect();
        let effect = match waits {
            Err(why) => "not measured: " + why.reason().clone(),
            Ok(waits) => {
                let longest = waits.iter().map(|wait| wait.counted).max().unwrap_or(0);
                let asked = asked(&measured, probe);
                let effect = if longest > 2 * measured.allowed() {
                    "pauses"
                } else {
                    "no effect"
                };
                Value::from(effect)
                    + ": the longest wait is "
                    + time(longest)
                    + " of "
                    + time(asked)
            }
        };
        (form(&probe.burst).words().to_owned(), effect)
    };
    open.map(of_probe).collect()
}

/// The least hold by an odd frame that is found; `None` where there was no such frame.
pub(in crate::cases::pfc) fn least_hold(e: &PfcEvidence) -> Option<Nanos> {
    let measured = Measured::of(e);
    let mut probes = e.probes.iter();
    let any = probes.any(|probe| form(&probe.burst).effect() == Effect::None);
    let flows = e.plan.flows.iter();
    let between = flows
        .map(|flow| interval_of(&e.plan, flow.priority))
        .max()?;
    any.then(|| measured.allowed() + between)
}

/// `pauses`.
pub(in crate::cases::pfc) fn pauses(e: &PfcEvidence) -> Finding {
    let mut finding = still_pauses(e);
    // Such a frame that comes back from the DUT counts as its own, and stops the sender.
    let stopped = |probe: &&ProbeReport| {
        // The sender may look as late as that. An XOFF for what the pause held comes later.
        let odd = probe.left.first();
        let to = odd.map_or(0, |odd| odd.after + e.limits.max_response + Stall::ABOVE);
        let from = probe.begin();
        let mut spans = e.sender.withheld.iter();
        let mut left_out = e.sender.withheld_left_out.iter();
        spans.any(|span| (from..to).contains(&span.from))
            || left_out.any(|more| more.spans.may_overlap(from, to))
    };
    let declared = |probe: &&ProbeReport| form(&probe.burst) == Form::ZeroSourceDeclared;
    let probes = e.probes.iter().filter(declared);
    let stopped = probes.filter(stopped).count();
    if stopped > 0 {
        let what = "probes in which an XOFF stopped the sender at once";
        finding.undecided(what, 0, count(stopped as u64, ""));
    }
    finding
}
