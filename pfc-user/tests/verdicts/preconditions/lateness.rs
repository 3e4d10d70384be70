//! Last frames and waits, and what lateness of the tester explains of them.

use super::*;

#[test]
fn a_stall_excuses_what_came_later_by_no_more_than_that() {
    let late = |stall: Nanos, by: Nanos| {
        move |e: &mut PfcEvidence| {
            let end = e.storm.as_ref().unwrap().last.before + PAUSE - TOLERANCE;
            let flow = flow(e, Role::Background);
            received(e, flow, Phase::Storm).last = end + by;
            dut(e).stalls.push(Stall {
                from: end - stall,
                to: end,
            });
        }
    };
    tampered("in time", SINGLE, late(2 * MS, 0), &[]);
    tampered(
        "late by the stall",
        SINGLE,
        late(2 * MS, 2 * MS),
        &[("background", INCONCLUSIVE, "stalled for 2.000 ms")],
    );
    tampered(
        "later than the stall",
        SINGLE,
        late(2 * MS, 2 * MS + 1),
        &[("background", FAIL, "while the storm still runs")],
    );
    // The bounded wait.
    let after_wait = |stall: Nanos, by: Nanos| {
        move |e: &mut PfcEvidence| {
            let flow = flow(e, Role::Test);
            let end = e.span(Phase::Drain).unwrap().to;
            received(e, flow, Phase::Storm).last = end + by;
            e.sender.stalls.push(Stall {
                from: end - stall,
                to: end,
            });
        }
    };
    tampered(
        "after the wait by the stall",
        SINGLE,
        after_wait(MS, MS),
        &[("delivered", INCONCLUSIVE, "stalled for 1.000 ms")],
    );
    let mut failed = AFTER_DELIVERED.to_vec();
    failed.push(("delivered", FAIL, "within the wait"));
    tampered("after the wait", SINGLE, after_wait(MS, MS + 1), &failed);
}

#[test]
fn a_wait_that_silence_ended_excuses_what_came_before_its_deadline_and_no_xon() {
    let late = |end: WaitEnd, deadline: Nanos, by: Nanos| {
        move |e: &mut PfcEvidence| {
            let flow = flow(e, Role::Test);
            let drain = e.span(Phase::Drain).unwrap();
            received(e, flow, Phase::Storm).last = drain.to + by;
            e.waits.retain(|wait| wait.phase != Phase::Storm);
            e.waits.push(Wait {
                phase: Phase::Storm,
                from: drain.from,
                to: drain.to,
                deadline: drain.to + deadline,
                end,
            });
        }
    };
    let mut failed = AFTER_DELIVERED.to_vec();
    failed.push(("delivered", FAIL, "within the wait"));
    let tried = |what: &str, (end, deadline, by), expected: Expected| {
        tampered(what, SINGLE, late(end, deadline, by), expected);
    };
    let (quiet, soon) = (WaitEnd::Quiet, MS);
    tried("before its deadline", (quiet, soon, soon), &[]);
    tried("after its deadline", (quiet, soon, soon + 1), &failed);
    tried("by the deadline", (WaitEnd::Deadline, soon, 1), &failed);

    // The next traffic comes long before this deadline.
    let evidence = good(SINGLE);
    let next = evidence.span(Phase::Resume).unwrap().from;
    let before = next - evidence.span(Phase::Drain).unwrap().to;
    let later = before + 500 * MS;
    tried("before the next traffic", (quiet, later, before), &[]);
    tried(
        "after the next traffic",
        (quiet, later, before + 1),
        &failed,
    );
}

#[test]
fn of_the_waits_of_the_probe_the_last_one_counts() {
    let burst = |end: WaitEnd| {
        move |e: &mut PfcEvidence| {
            let mut of_probe = e.waits.iter_mut().filter(|wait| wait.phase == Phase::Probe);
            let first = of_probe.next().unwrap();
            (first.end, first.deadline) = (WaitEnd::Quiet, first.to);
            let last = of_probe.next_back().unwrap();
            (last.end, last.deadline) = (end, last.to);
            // Every later burst brings frames after the first wait.
            let (end, background) = (last.to, flow(e, Role::Background));
            received(e, background, Phase::Probe).last = end + MS;
        }
    };
    let ended = burst(WaitEnd::AllArrived);
    tampered("silence after the first burst", SINGLE, ended, &[]);
    let late = [(
        "background",
        FAIL,
        "sent in phase Probe: expected within the wait",
    )];
    let silent = burst(WaitEnd::Quiet);
    tampered("silence after the last burst", SINGLE, silent, &late);
}

/// With a DUT that loses frames, no phase waits for all of its deadline.
#[test]
fn silence_ends_each_wait_for_frames_that_are_lost() {
    let losing = run(SINGLE, &["drops".parse().unwrap()]);
    let pause = losing.limits.pause_time(losing.plan.storm_quanta());
    // Waits of the probes are shorter than any silence.
    let early = losing
        .waits
        .iter()
        .filter(|wait| wait.phase != Phase::Probe && wait.end != WaitEnd::AllArrived);
    let mut phases: Vec<Phase> = Vec::new();
    for wait in early {
        assert_eq!(wait.end, WaitEnd::Quiet, "{wait:?}");
        // Frames that the storm held arrive until shortly before.
        let moving = if wait.phase == Phase::Storm { 2 } else { 1 };
        let longest = pause + 300 * MS + moving * 50 * MS;
        assert!(wait.to - wait.from < longest, "{wait:?}");
        phases.push(wait.phase);
    }
    for phase in [Phase::Baseline, Phase::Storm, Phase::Resume] {
        assert!(phases.contains(&phase), "{phase:?} in {phases:?}");
    }
}

#[test]
fn a_stall_excuses_only_frames_that_were_under_way_in_it_or_in_its_backlog() {
    // Half a second of the probe, and of the baseline: neither held a frame of the storm phase.
    let late = |phase: Phase, stall: Nanos| {
        move |e: &mut PfcEvidence| {
            let end = e.storm.as_ref().unwrap().last.before + PAUSE - TOLERANCE;
            let flow = flow(e, Role::Background);
            received(e, flow, Phase::Storm).last = end + 2 * MS;
            let from = e.span(phase).unwrap().from;
            let to = from + stall;
            e.sender.stalls.push(Stall { from, to });
        }
    };
    let failed = [("background", FAIL, "while the storm still runs")];
    let excused = [("background", INCONCLUSIVE, "stalled for 3.000 ms meanwhile")];
    tampered(
        "a stall of the probe",
        SINGLE,
        late(Phase::Probe, 500 * MS),
        &failed,
    );
    tampered(
        "a stall of the baseline",
        SINGLE,
        late(Phase::Baseline, 100 * MS),
        &[failed[0], ("no-dip", INCONCLUSIVE, "of phase Baseline")],
    );
    // At full load its backlog stays to the end of the phase, and at half load as long as it took.
    tampered("at full load", SINGLE, late(Phase::Storm, 3 * MS), &excused);
    let half = |e: &mut PfcEvidence| {
        late(Phase::Storm, 3 * MS)(e);
        let line = e.limits.line_rate.bits_per_second();
        e.limits.line_rate = LineRate::from_bits_per_second(2 * line).unwrap();
    };
    let found = results(SINGLE, &{
        let mut evidence = good(SINGLE);
        half(&mut evidence);
        evidence
    });
    let background = found.iter().find(|result| result.check == "background");
    assert_eq!(background.unwrap().verdict, FAIL, "{background:?}");
}

#[test]
fn stalls_that_were_not_listed_are_excused_at_the_highest_load_of_the_bursts_they_span() {
    // A frame of the last burst, the one at full load, comes late by 2 ms.
    let late = |around: usize| {
        move |e: &mut PfcEvidence| {
            let of_probe = e
                .received
                .iter()
                .filter(|received| received.phase == Phase::Probe);
            let last = of_probe.map(|received| received.last).max().unwrap();
            let flow = flow(e, Role::Background);
            received(e, flow, Phase::Probe).last = last + 2 * MS;
            let mut waits = e.waits.iter_mut().rev();
            let wait = waits.find(|wait| wait.phase == Phase::Probe).unwrap();
            (wait.end, wait.deadline) = (WaitEnd::Quiet, last);
            let loads: Vec<u8> = e
                .probes
                .iter()
                .rev()
                .map(|probe| probe.burst.load)
                .collect();
            assert_eq!(loads[..4], [100, 50, 50, 50]);
            let begin = e.probes[e.probes.len() - around].begin();
            e.sender.stalls_left_out = LeftOut {
                count: 7,
                total: 3 * MS,
                from: begin - MS / 5,
                to: begin + MS / 5,
            };
        }
    };
    let excused = [("background", INCONCLUSIVE, "stalled for 3.000 ms meanwhile")];
    tampered("to the burst at full load", SINGLE, late(1), &excused);
    let failed = [("background", FAIL, "within the wait")];
    tampered("from one at half load to another", SINGLE, late(3), &failed);
}
