//! Each numbered step of the document, with what was found.

use crate::agent::protocol::QueuePair;
use crate::cases::rc::judge::decoded::{PhaseView, View};
use crate::cases::rc::judge::state;
use crate::cases::steps::{Found, checked};
use crate::quantity::ms;
use crate::verdict::{CheckResult, Verdict};

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
    let done = |found: String| (found, Verdict::Pass);
    let packets = test.phase.packets.len();
    match step {
        "1" => done(format!(
            "memory region of {} octets, and queue pair {}, at the DUT's agent",
            view.e.plan.path_mtu,
            dut(test)
        )),
        "2" => done(format!(
            "queue pair {:#08x} of the tester: {packets} packets recorded and dropped",
            test.phase.queue_pair
        )),
        "5" => done(posted(view, test)),
        "6" | "7" => done(format!("{} transmissions", test.transmissions.len())),
        "6.1" | "6.6" => with_times(test, checked(&["requests"])),
        "6.2" => checked(&["requests", "same-request"]),
        "6.3" => checked(&["single-packet"]),
        "6.4" => done(format!("{packets} packets dropped, none answered")),
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
    let read_back = |asked: u8, shown: u8| {
        let found = format!("{asked} asked for, {shown} read back");
        (asked == shown, found)
    };
    let (holds, found) = match step {
        "init 1" => {
            let found = format!(
                "{} at {}, {state:?}, path MTU {path_mtu}, connected to {:#08x} of the tester",
                dut(opened),
                opened.phase.channel.address,
                opened.phase.queue_pair
            );
            (true, found)
        }
        "init 2" | "3" => read_back(plan.retry_count, retry_count),
        "init 3" => read_back(plan.timeout, timeout),
        "4" => match opened.t_tr() {
            Some(t_tr) => (
                true,
                format!("T_tr = 4.096 us * 2^{timeout} = {}", ms(t_tr)),
            ),
            None => (false, format!("time-out {timeout}: the timer never ends")),
        },
        _ => return None,
    };
    let verdict = match holds {
        true => Verdict::Pass,
        false => Verdict::Inconclusive,
    };
    Some((found, verdict))
}

/// The DUT's queue pair.
fn dut(phase: &PhaseView<'_>) -> String {
    format!("{:#08x}", phase.phase.channel.queue_pair)
}

fn posted(view: &View<'_>, test: &PhaseView<'_>) -> String {
    let plan = &view.e.plan;
    let read = format!(
        "READ of {} octets at {:#x} with R_Key {:#x} posted",
        plan.path_mtu, plan.address, plan.r_key
    );
    match test.times().first() {
        None => read,
        Some(first) => {
            let after = ms(first.saturating_sub(test.phase.posted));
            format!("{read}; its first packet came after {after}")
        }
    }
}

/// Puts the times of the transmissions before the finding on their number.
fn with_times(test: &PhaseView<'_>, (found, verdict): Found) -> Found {
    let since_first = |time: &u64| ms(time - test.times()[0]);
    let times: Vec<_> = test.times().iter().map(since_first).collect();
    match times.is_empty() {
        true => (found, verdict),
        false => (format!("{found}; at {}", times.join(", ")), verdict),
    }
}

fn polled(view: &View<'_>, test: &PhaseView<'_>) -> String {
    let completions = view.completions();
    let completions = completions.iter().map(|completion| {
        let after = ms(completion.time.saturating_sub(test.phase.posted));
        let (status, vendor_error) = (completion.status, completion.vendor_error);
        format!("status {status} ({vendor_error:#x}) after {after}")
    });
    let completions: Vec<_> = completions.collect();
    match completions.is_empty() {
        true => format!("none within {}", ms(test.waited())),
        false => completions.join("; "),
    }
}

fn closed(test: &PhaseView<'_>, (found, verdict): Found) -> Found {
    let left = state(test.phase).unwrap_or("not read".into());
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
