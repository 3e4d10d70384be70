//! Resolution of a pass: the smallest violation that the check would have found in this repetition.

use pfc_ebpf::stamp::Phase;

use super::judge::integrity::{pause_frames, total};
use super::judge::probe::{Measured, odd, pause_time};
use super::judge::{dip, generation, latency, preconditions, victim};
use crate::cases::resolution::{self, percent};
use crate::cases::value::{Value, count, time};
use crate::evidence::pfc::{FlowReceived, PfcEvidence};
use crate::plan::{Nanos, Role, StormPlan};
use crate::verdict::{CheckResult, Figure};

/// Phases with data.
const ALL: [Phase; 4] = [Phase::Baseline, Phase::Storm, Phase::Resume, Phase::Probe];

/// The resolution of each of `checks` that passed.
pub(super) fn figures(checks: &[CheckResult], e: &PfcEvidence) -> Vec<Figure> {
    resolution::figures(checks, |check| of(check, e))
}

/// The resolution of `check` in this repetition; `None` for a check that has none, or where nothing
/// was looked at.
fn of(check: &str, e: &PfcEvidence) -> Option<Value> {
    let arrived = total(e, |flow| flow.frames);
    let lost = |role, phases: &[Phase]| smallest_share("lost", sent(e, Some(role), phases));
    match check {
        "paused" | "only-enabled" => leak(e),
        "ignored" if e.plan.storm.is_none() => {
            odd::least_hold(e).map(|held| "a priority held for " + time(held))
        }
        "ignored" => smallest_share("lost", sent(e, None, &ALL)),
        "map" => leak(e).or_else(|| smallest_share("lost", sent(e, None, &ALL))),
        "others" => {
            let roles = [Role::Background, Role::Isolation].into_iter();
            smallest_share("lost", roles.map(|role| sent(e, Some(role), &ALL)).sum())
        }
        "background" => lost(Role::Background, &ALL),
        "isolation" => lost(Role::Isolation, &ALL),
        "victim" => lost(Role::Victim, &ALL)
            .zip(victim::least_late(e))
            .map(|(lost, late)| lost + "; a hundredth of them under way for " + time(late)),
        "test-traffic" | "no-loss" => lost(Role::Test, &ALL),
        "delivered" => lost(Role::Test, &[Phase::Baseline, Phase::Storm]),
        "resume" => lost(Role::Test, &[Phase::Resume]),
        "lets-go" => release(e),
        "not-early" | "not-late" => response(e).map(|found| found + left_out(e)),
        "linear" => pause_time::least_slope(e),
        "still-pauses" | "pauses" => response(e),
        "response" | "own-time" | "replaced" | "alive" => {
            response(e).map(|found| found + held_unnamed(&Measured::of(e)))
        }
        "xon" | "resumes" => xon(e),
        "no-dip" => dip::resolution(e).map(dips),
        "throughput" => Some(percent(1.0 - e.limits.min_throughput) + " of the rate"),
        "no-duplicate" => smallest_share("duplicated", arrived),
        "no-reorder" => smallest_share("reordered", arrived),
        "no-remark" => smallest_share("re-marked", arrived),
        "no-resize" => smallest_share("resized", total(e, verified)),
        "no-corruption" => smallest_share("corrupted", total(e, verified)),
        "no-delay" => latency::resolution(e)
            .map(|delay| "the median later by " + time(delay) + " at some priority"),
        "well-formed" => Some("one PFC frame".into()),
        "silent" => Some("one PAUSE or PFC frame".into()),
        "in-time" => generation::least_late(e),
        "releases" => Some("one XOFF".into()),
        "no-pfc-on-lossy" => Some("one XOFF".into()),
        "no-pause" => Some("one PAUSE frame".into()),
        "no-reflection" => smallest_share("reflected", sent(e, None, &ALL)),
        "no-mac-control-forwarded" => smallest_share("forwarded", pause_frames(e)),
        _ => None,
    }
}

/// One frame among those that were looked at.
fn smallest_share(what: &str, frames: u64) -> Option<Value> {
    resolution::smallest_share(&format!("frame {what}"), frames)
}

/// Frames of a traffic item, or of all, that left.
fn sent(e: &PfcEvidence, role: Option<Role>, phases: &[Phase]) -> u64 {
    let of_flow = |flow| {
        phases
            .iter()
            .map(move |phase| preconditions::sent(e, flow, *phase))
    };
    preconditions::flows(e, role).flat_map(of_flow).sum()
}

/// Frames of which the checksum was verified.
fn verified(flow: &FlowReceived) -> u64 {
    flow.verified.unwrap_or(flow.frames)
}

/// One frame that leaks, and the least by which a pause may end early without letting one through.
fn leak(e: &PfcEvidence) -> Option<Value> {
    let frames = smallest_share("leaked", sent(e, Some(Role::Test), &[Phase::Storm]))?;
    let tolerance = e.limits.pause_tolerance(e.plan.storm_quanta());
    Some(frames + "; the last pause ended " + time(tolerance + longest_frame(e)) + " early")
}

/// The least by which the storm's last pause may last longer: at the priority that waits longest
/// for what was held of the others.
fn release(e: &PfcEvidence) -> Option<Value> {
    let last = e.storm.as_ref()?.last;
    let StormPlan { kind, quanta, .. } = e.plan.storm.as_ref()?;
    let (quanta, stormed) = (*quanta, kind.named()?);
    let measured = Measured::of(e);
    let tolerance = e.limits.pause_tolerance(quanta);
    let over = last.after + e.limits.pause_time(quanta) + tolerance;
    let allowed = stormed
        .iter()
        .map(|priority| measured.least_late(*priority, over))
        .max()?;
    let uncertain = last.after.saturating_sub(last.before);
    Some("a pause " + time(tolerance + allowed + uncertain) + " too long")
}

/// The longest time in which a frame of a probe left: by that its effect may be misjudged.
fn uncertain(e: &PfcEvidence) -> Option<Nanos> {
    let frames = e.probes.iter().flat_map(|probe| &probe.left);
    let times = frames.map(|frame| frame.after.saturating_sub(frame.before));
    times.max()
}

/// The least by which an XOFF may be obeyed late, or a pause end early; the pauses that show it.
fn response(e: &PfcEvidence) -> Option<Value> {
    let uncertain = uncertain(e)?;
    let measured = Measured::of(e);
    let pauses = measured.pauses().into_iter().map(|(_, pause)| pause);
    let run_out: Vec<_> = pauses.filter(|pause| !pause.by_xon).collect();
    let mut lengths: Vec<_> = run_out.iter().map(|pause| pause.lasts).collect();
    lengths.sort_unstable();
    let tolerance = run_out.iter().map(|pause| pause.tolerance).max()?;
    let [late, _] = measured.least_late_of_all();
    let found = "obeyed later than " + time(e.limits.max_response + uncertain);
    let early = time(tolerance + uncertain + longest_frame(e));
    let found = found + ", or a pause that ends " + early + " early or ";
    let found = found + time(tolerance + late? + uncertain) + " late; ";
    let found = found + count(lengths.len() as u64, "pauses") + " of " + time(*lengths.first()?);
    Some(found + " to " + time(*lengths.last()?))
}

/// The pause times of the list that were not sent.
fn left_out(e: &PfcEvidence) -> Value {
    match &pause_time::not_sent(e)[..] {
        [] => Value::default(),
        times => {
            let times = times.iter().map(|time| Value::from(u64::from(time.0)));
            "; not sent: " + Value::joined(times, ", ") + " quanta"
        }
    }
}

/// The least time for which an XOFF may hold a priority that it does not name.
fn held_unnamed(measured: &Measured) -> Value {
    measured.least_beside().map_or(Value::default(), |held| {
        "; another priority held for " + time(held) + " by an XOFF, and again when it is sent again"
    })
}

/// The least by which an XON may be obeyed late.
fn xon(e: &PfcEvidence) -> Option<Value> {
    let uncertain = uncertain(e)?;
    let [_, late] = Measured::of(e).least_late_of_all();
    Some("obeyed later than " + time(late? + uncertain))
}

/// The least dips.
fn dips(found: dip::Resolution) -> Value {
    let [all, one] = found.in_a_window.map(percent);
    let window = Value::from("in any 100 ms a dip of all frames by ") + all;
    let window = window + ", of one priority's by " + one;
    let Some(lasting) = found.lasting else {
        return window;
    };
    let [all, one] = lasting.map(percent);
    window + "; in a whole phase by " + all + " and " + one
}

/// Time of the longest frame at line rate.
fn longest_frame(e: &PfcEvidence) -> Nanos {
    let lengths = e.plan.flows.iter().map(|flow| flow.length);
    e.limits.line_rate.frame_nanos(lengths.max().unwrap_or(0))
}
