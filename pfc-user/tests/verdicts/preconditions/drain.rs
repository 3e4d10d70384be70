//! The rate at which held frames leave after the storm.

use super::*;

/// What the check says of it, and the least time for which the link is idle.
const IDLE: &str = "idle time of the link while held frames of priority 3 left: expected at most";

/// Held frames of the stormed priority leave at so many times their distance.
fn spread(e: &mut PfcEvidence, times: Nanos) {
    let test = flow(e, Role::Test);
    let (first, last) = {
        let received = received(e, test, Phase::Storm);
        let (first, last) = (received.first, received.last);
        received.last = first + (last - first) * times;
        (first, received.last)
    };
    for arrival in &mut e.arrivals.records {
        if arrival.flow == test && arrival.phase == Phase::Storm {
            arrival.time = first + (arrival.time - first) * times;
        }
    }
    e.arrivals.records.sort_by_key(|arrival| arrival.time);
    let drain = e.phases.iter_mut().find(|span| span.phase == Phase::Drain);
    let drain = drain.unwrap();
    drain.to = drain.to.max(last);
}

#[test]
fn held_frames_that_leave_at_less_than_a_quarter_of_the_line_fail() {
    for times in 1..=4 {
        let quarter = |e: &mut PfcEvidence| spread(e, times);
        tampered("a quarter of the line or more", SINGLE, quarter, &[]);
    }
    let expected = [("lets-go", FAIL, IDLE)];
    tampered("a fifth", SINGLE, |e| spread(e, 5), &expected);
}

#[test]
fn a_stall_explains_a_slow_drain_where_it_is_as_long_as_the_link_was_idle_too_long() {
    let stalled = |span: Nanos| {
        move |e: &mut PfcEvidence| {
            spread(e, 5);
            let test = flow(e, Role::Test);
            let from = received(e, test, Phase::Storm).first + MS;
            dut(e).stalls.push(Stall {
                from,
                to: from + span,
            });
        }
    };
    let words = "but the tester or the simulated DUT stalled for 9.000 ms";
    let expected = [("lets-go", INCONCLUSIVE, words)];
    tampered("a long stall", SINGLE, stalled(9 * MS), &expected);
    let expected = [("lets-go", FAIL, IDLE)];
    tampered("a short stall", SINGLE, stalled(MS / 50), &expected);
}

#[test]
fn a_slow_drain_is_undecided_where_not_all_that_came_was_logged() {
    let beside = |e: &mut PfcEvidence| {
        spread(e, 5);
        let (test, other) = (flow(e, Role::Test), flow(e, Role::Background));
        let first = received(e, test, Phase::Storm).first;
        received(e, other, Phase::Storm).last = first + 1;
    };
    let words = "not every frame that came meanwhile was logged";
    let mut late = good(SINGLE);
    beside(&mut late);
    let found = results(SINGLE, &late);
    let found = found.iter().find(|result| result.check == "lets-go");
    let found = found.unwrap();
    assert_eq!(found.verdict, INCONCLUSIVE, "{}", found.reason);
    assert!(found.reason.contains(words), "{}", found.reason);
}

#[test]
fn held_frames_need_not_leave_faster_than_they_were_offered() {
    // They leave at an eighth of the line.
    let verdict = |percent: u64| {
        let mut e = good(SINGLE);
        spread(&mut e, 8);
        let line = e.limits.line_rate.bits_per_second();
        let test = e.plan.flows.iter_mut();
        let test: Vec<_> = test.filter(|flow| flow.role == Role::Test).collect();
        let flows = test.len() as u64;
        for flow in test {
            flow.rate = line * percent / 100 / flows;
        }
        let found = results(SINGLE, &e);
        let found = found.iter().find(|result| result.check == "lets-go");
        found.unwrap().verdict
    };
    assert_eq!([10, 20].map(verdict), [Verdict::Pass, FAIL]);
}
