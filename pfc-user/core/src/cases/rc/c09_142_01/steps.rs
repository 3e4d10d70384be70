//! Each numbered step of the document, with what was found.

use crate::agent::protocol::QueuePair;
use crate::case::{CheckResult, Verdict};
use crate::cases::rc::judge::decoded::{PhaseView, View};
use crate::cases::rc::judge::state;
use crate::cases::steps::{Found, checked};
use crate::quantity::ms;

/// The outcome of a step of the document.
pub(super) fn step(step: &str, view: &View<'_>, checks: &[CheckResult]) -> Found {
    let checked = |ids: &[&str]| checked(checks, ids);
    if step == "control" {
        return checked(&["path-alive"]);
    }
    let opened = view.test.as_ref().or(view.control.as_ref());
    if let Some(found) = opened.and_then(|opened| initialisation(step, view, opened)) {
        return found;
    }
    let Some(test) = &view.test else {
        return not_reached(view);
    };
    match step {
        "1" => (
            format!(
                "memory region of {} octets, and queue pair {}, at the DUT's agent",
                view.e.plan.path_mtu,
                dut(test)
            ),
            Verdict::Pass,
        ),
        "2" => (
            format!(
                "queue pair {:#08x} of the tester: {} packets recorded and dropped",
                test.phase.queue_pair,
                count(test)
            ),
            Verdict::Pass,
        ),
        "5" => posted(view, test),
        "6" | "7" => (
            format!("{} transmissions", test.transmissions.len()),
            Verdict::Pass,
        ),
        "6.1" | "6.6" => with_times(test, checked(&["requests"])),
        "6.2" => checked(&["requests", "same-request"]),
        "6.3" => checked(&["single-packet"]),
        "6.4" => (
            format!("{} packets dropped, none answered", count(test)),
            Verdict::Pass,
        ),
        "6.5" => checked(&["interval"]),
        "6.7" => checked(&["retry-count"]),
        "8" => with_times(test, checked(&["requests", "retry-count"])),
        "9" | "12" => checked(&["one-completion", "status"]),
        "10" => (polled(view, test), checked(&["one-completion", "status"]).1),
        "11" => checked(&["one-completion"]),
        "13" => closed(test, checked(&["qp-error", "flush"])),
        _ => not_reached(view),
    }
}

/// The steps that attributes of the queue pair show.
fn initialisation(step: &str, view: &View<'_>, opened: &PhaseView<'_>) -> Option<Found> {
    let plan = &view.e.plan;
    let QueuePair {
        state,
        path_mtu,
        retry_count,
        timeout,
        ..
    } = opened.phase.channel.attributes;
    let shown = |holds: bool, found: String| {
        Some((
            found,
            if holds {
                Verdict::Pass
            } else {
                Verdict::Inconclusive
            },
        ))
    };
    match step {
        "init 1" => {
            let (number, address, tester) = (
                dut(opened),
                opened.phase.channel.address,
                opened.phase.queue_pair,
            );
            shown(
                true,
                format!(
                    "{number} at {address}, {state:?}, path MTU {path_mtu}, connected to \
                     {tester:#08x} of the tester"
                ),
            )
        }
        "init 2" | "3" => shown(
            retry_count == plan.retry_count,
            format!("{} asked for, {retry_count} read back", plan.retry_count),
        ),
        "init 3" => shown(
            timeout == plan.timeout,
            format!("{} asked for, {timeout} read back", plan.timeout),
        ),
        "4" => match opened.t_tr() {
            Some(t_tr) => shown(
                true,
                format!("T_tr = 4.096 us * 2^{timeout} = {}", ms(t_tr)),
            ),
            None => shown(false, format!("time-out {timeout}: the timer never ends")),
        },
        _ => None,
    }
}

/// The DUT's queue pair.
fn dut(phase: &PhaseView<'_>) -> String {
    format!("{:#08x}", phase.phase.channel.queue_pair)
}

fn count(phase: &PhaseView<'_>) -> usize {
    phase.phase.packets.len()
}

fn posted(view: &View<'_>, test: &PhaseView<'_>) -> Found {
    let plan = &view.e.plan;
    let first = test.times().first().map(|first| {
        format!(
            "; its first packet came after {}",
            ms(first.saturating_sub(test.phase.posted))
        )
    });
    let read = format!(
        "READ of {} octets at {:#x} with R_Key {:#x} posted",
        plan.path_mtu, plan.address, plan.r_key
    );
    (
        format!("{read}{}", first.unwrap_or_default()),
        Verdict::Pass,
    )
}

/// Puts the times of the transmissions before the finding on their number.
fn with_times(test: &PhaseView<'_>, (found, verdict): Found) -> Found {
    let since_first = |time: &u64| ms(time - test.times()[0]);
    let times = test
        .times()
        .iter()
        .map(since_first)
        .collect::<Vec<_>>()
        .join(", ");
    if times.is_empty() {
        (found, verdict)
    } else {
        (format!("{found}; at {times}"), verdict)
    }
}

fn polled(view: &View<'_>, test: &PhaseView<'_>) -> String {
    let completions = view.completions();
    let told = completions.iter().map(|completion| {
        let after = completion.time.saturating_sub(test.phase.posted);
        format!(
            "status {} ({:#x}) after {}",
            completion.status,
            completion.vendor_error,
            ms(after)
        )
    });
    let told = told.collect::<Vec<_>>().join("; ");
    let waited = ms(test.phase.until.saturating_sub(test.phase.posted));
    if told.is_empty() {
        format!("none within {waited}")
    } else {
        told
    }
}

fn closed(test: &PhaseView<'_>, (found, verdict): Found) -> Found {
    let left = state(test.phase).map_or("not read".into(), |state| state);
    (format!("{found}; given back in state {left}"), verdict)
}

fn not_reached(view: &View<'_>) -> Found {
    let why = match () {
        () if view.e.unreachable.is_some() => {
            "not reached: the DUT could not open a channel to the tester"
        }
        () if view.e.interrupted => "not reached: interrupted",
        () => "not reached",
    };
    (why.into(), Verdict::Skipped)
}
