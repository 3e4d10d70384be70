//! An XOFF that holds a priority which it does not name.

use super::*;

/// Time between the begin of a probe and that of the same one sent again: longer than it takes.
const AGAIN: Nanos = 1_000 * MS;
/// A priority that no frame of a probe names, for what may be late there, and another.
pub(super) const HELD: u8 = 6;
const OTHER: u8 = 5;

/// The first probe sent `times` times more, each as long after the one before it; their XOFFs.
pub(super) fn sent_again(e: &mut PfcEvidence, times: u64) -> Vec<Nanos> {
    let probe = e.probes[RUNS_OUT].clone();
    let (xoff, end) = (probe.left[0].before, e.probes[RUNS_OUT + 1].left[0].before);
    let records = e.arrivals.records.iter();
    let of_it = records.filter(|arrival| arrival.phase == Phase::Probe);
    let of_it: Vec<_> = of_it
        .filter(|arrival| (xoff - 15 * MS..end - 15 * MS).contains(&arrival.time))
        .copied()
        .collect();
    for number in 1..=times {
        let later = number * AGAIN;
        let again = of_it.iter().map(|arrival| Arrival {
            time: arrival.time + later,
            ..*arrival
        });
        e.arrivals.records.extend(again);
        let mut again = probe.clone();
        for left in &mut again.left {
            *left = at(left.before + later, left.after + later);
        }
        e.probes.push(again);
    }
    let span = e.phases.iter_mut().find(|span| span.phase == Phase::Probe);
    span.unwrap().to += times * AGAIN;
    (0..=times).map(|number| xoff + number * AGAIN).collect()
}

/// Frames of `priority` that arrive within `span` after `from` arrive at its end.
pub(super) fn hold(e: &mut PfcEvidence, priority: u8, from: Nanos, span: Nanos) {
    let flows: Vec<u16> = e
        .plan
        .flows
        .iter()
        .filter(|flow| flow.priority.get() == priority)
        .map(|flow| flow.id)
        .collect();
    for arrival in &mut e.arrivals.records {
        if flows.contains(&arrival.flow) && (from..from + span).contains(&arrival.time) {
            let later = from + span - arrival.time;
            arrival.time += later;
            arrival.latency += later as u32;
        }
    }
    e.arrivals.records.sort_by_key(|arrival| arrival.time);
}

#[test]
fn what_an_xoff_holds_beside_what_it_names_fails_if_it_does_so_again() {
    // Two that hold it, and a third that was measured well.
    let held = |spans: [Nanos; 2], after: Nanos| {
        move |e: &mut PfcEvidence| {
            let xoffs = sent_again(e, 2);
            for (xoff, span) in xoffs.into_iter().zip(spans) {
                hold(e, HELD, xoff + after, span);
            }
        }
    };
    let reason = "waits of priority 6 that begin with an XOFF which does not name it";
    let failed = [("response", FAIL, reason), ("xon", SKIPPED, "`response`")];
    for case in [SINGLE, MULTI] {
        tampered("sent again", case, held([0, 0], 0), &[]);
        tampered("held twice", case, held([5 * MS, 2 * MS], 0), &failed);
        tampered("held once", case, held([5 * MS, 0], 0), &[]);
        // A millisecond and two frames are allowed.
        tampered("held shortly", case, held([5 * MS, MS], 0), &[]);
        tampered("held later", case, held([5 * MS, 5 * MS], 4 * MS), &[]);
    }
    // The tester may be the cause where another priority is late with it.
    let with_others = |e: &mut PfcEvidence| {
        held([5 * MS, 5 * MS], 0)(e);
        let xoff = e.probes[RUNS_OUT].left[0].before;
        hold(e, OTHER, xoff, 900_000);
    };
    tampered("held with others", SINGLE, with_others, &[]);
    let stalled = |span: Nanos| {
        move |e: &mut PfcEvidence| {
            held([5 * MS, 5 * MS], 0)(e);
            let from = e.probes[RUNS_OUT].left[0].before;
            e.sender.stalls.push(Stall {
                from,
                to: from + span,
            });
        }
    };
    tampered(
        "held while the tester stalled",
        SINGLE,
        stalled(5 * MS),
        &[],
    );
    tampered(
        "held for longer than it stalled",
        SINGLE,
        stalled(3 * MS),
        &failed,
    );
}
