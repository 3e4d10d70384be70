//! Attempts of the probe, measured well or not.

use super::*;

#[test]
fn a_probe_that_was_not_measured_well_decides_nothing() {
    let both = |words| all(&["response", "xon"], INCONCLUSIVE, words);
    tampered(
        "no probe",
        SINGLE,
        |e| e.probes.clear(),
        &both("no probe was made"),
    );
    let slow = |e: &mut PfcEvidence| {
        let test = flow(e, Role::Test);
        let others = e
            .arrivals
            .records
            .iter_mut()
            .filter(|arrival| arrival.flow != test && arrival.phase == Phase::Probe);
        others.for_each(|arrival| arrival.latency = 500_000);
    };
    tampered(
        "slow background",
        SINGLE,
        slow,
        &both("background latency round the pause frame was 0.500 ms, has to be below 0.500 ms"),
    );
    let uncertain = |e: &mut PfcEvidence| {
        for probe in &mut e.probes {
            probe.left[0].after += 500_000;
        }
    };
    tampered(
        "uncertain departures",
        SINGLE,
        uncertain,
        &both("departure is uncertain by 0.500 ms"),
    );
    let silent = |e: &mut PfcEvidence| {
        let test = flow(e, Role::Test);
        e.arrivals
            .records
            .retain(|arrival| arrival.flow == test || arrival.phase != Phase::Probe);
    };
    tampered(
        "no background",
        SINGLE,
        silent,
        &both("no background frame arrived round the pause frame"),
    );
    let without_test_frames = |e: &mut PfcEvidence| {
        let test = flow(e, Role::Test);
        e.arrivals
            .records
            .retain(|arrival| arrival.flow != test || arrival.phase != Phase::Probe);
    };
    tampered(
        "no test traffic",
        SINGLE,
        without_test_frames,
        &both("no frame of priority 3 arrived just before the pause frame"),
    );
    tampered(
        "arrivals lost",
        SINGLE,
        |e| e.arrivals.lost = 7,
        &both("7 did not fit"),
    );
    // The link looks idle where records are missing.
    let thinned = |e: &mut PfcEvidence| {
        let mut number = 0;
        e.arrivals.records.retain(|arrival| {
            number += 1;
            arrival.phase != Phase::Probe || number % 3 == 0
        });
        e.arrivals.lost = 7;
    };
    tampered(
        "arrivals lost among others",
        SINGLE,
        thinned,
        &both("7 did not fit"),
    );
    // At 100 Gbit/s the longest pause is a third of a millisecond.
    let short = |e: &mut PfcEvidence| e.limits.max_response = PAUSE;
    let expected = all(
        &["response", "xon"],
        INCONCLUSIVE,
        "too short to be told from none by a max_response of 33.554 ms",
    );
    tampered(
        "a pause shorter than max_response",
        SINGLE,
        |e| {
            short(e);
            // The storm began by max_response before the data all the same.
            let first = e.span(Phase::Storm).unwrap().from - PAUSE;
            e.storm.as_mut().unwrap().first = at(first, first);
        },
        &expected,
    );
    // A DUT that ignores PFC does not pass for that reason.
    let mut ignoring = run(SINGLE, &["ignores-pfc".parse().unwrap()]);
    short(&mut ignoring);
    let found: Vec<_> = results(SINGLE, &ignoring)
        .into_iter()
        .filter(|result| ["response", "xon"].contains(&result.check.as_str()))
        .collect();
    assert!(
        found.iter().all(|result| result.verdict == INCONCLUSIVE),
        "{found:#?}"
    );
}

/// Removes all that arrived from the first XOFF's response on for `span`, of every attempt: the
/// sender stalled.
fn stall_after_xoff(e: &mut PfcEvidence, span: Nanos) {
    let stalls: Vec<_> = e
        .probes
        .iter()
        .map(|probe| probe.left[0].after + e.limits.max_response)
        .collect();
    e.arrivals.records.retain(|arrival| {
        arrival.phase != Phase::Probe
            || !stalls
                .iter()
                .any(|from| (*from..*from + span).contains(&arrival.time))
    });
}

#[test]
fn silence_of_the_sender_is_no_answer_of_the_device() {
    // A device that ignores PFC, and a sender that stood still just when the device should have.
    let mut evidence = run(SINGLE, &["ignores-pfc".parse().unwrap()]);
    stall_after_xoff(&mut evidence, PAUSE);
    let response = results(SINGLE, &evidence)
        .into_iter()
        .find(|result| result.check == "response")
        .unwrap();
    assert_eq!(response.verdict, INCONCLUSIVE, "{}", response.reason);
    assert!(
        response
            .reason
            .contains("no background frame arrived while the pause was in force"),
        "{}",
        response.reason
    );
    // Nothing was sent between XOFF and XON, so that there was nothing to let go.
    let stalled = |e: &mut PfcEvidence| {
        let priority = Priority::new(3).unwrap();
        let ended = |probe: &&ProbeReport| probe.burst.ends_by_xon(priority) == Some(true);
        let ended = e.probes.iter().filter(ended);
        let holds: Vec<_> = ended
            .map(|probe| probe.left[0].after..probe.left[1].after + 3 * MS / 2)
            .collect();
        e.arrivals.records.retain(|arrival| {
            arrival.phase != Phase::Probe || !holds.iter().any(|hold| hold.contains(&arrival.time))
        });
    };
    tampered(
        "a sender that stood still",
        SINGLE,
        stalled,
        &[(
            "xon",
            INCONCLUSIVE,
            "no background frame arrived between XOFF and XON",
        )],
    );
}

#[test]
fn one_attempt_measured_well_that_fails_is_a_failure() {
    let early = |e: &mut PfcEvidence| {
        let (left, pause) = probe(e, RUNS_OUT);
        arrives(e, Phase::Probe, left[0].before + pause - TOLERANCE - 1);
    };
    tampered(
        "one early frame",
        SINGLE,
        early,
        &[("response", FAIL, "found 1, 20."), ("xon", SKIPPED, "")],
    );
    // 39225 quanta of 512 ns each.
    let several = |e: &mut PfcEvidence| {
        let xoff = probe(e, RUNS_OUT).0[0].before;
        for after in [5, 8, 12] {
            arrives(e, Phase::Probe, xoff + after * MS);
        }
    };
    let words = "found 3, the first 5.000 ms and the last 12.000 ms after the XOFF (quanta last \
                 20.083 ms)";
    tampered(
        "frames in the midst of a pause",
        SINGLE,
        several,
        &[("response", FAIL, words), ("xon", SKIPPED, "")],
    );
    // In an attempt that was not measured well it says nothing.
    let unsure = |e: &mut PfcEvidence| {
        early(e);
        e.probes[RUNS_OUT].left[0].after += 500_000;
    };
    let two = [(
        "response",
        INCONCLUSIVE,
        "expected 4, found 3: the pause frame's departure",
    )];
    tampered("one early frame in a bad attempt", SINGLE, unsure, &two);
    let late = |e: &mut PfcEvidence| {
        let xon = xons(e)[0];
        let test = flow(e, Role::Test);
        e.arrivals.records.retain(|arrival| {
            arrival.flow != test || !(xon.before..=xon.after + 3 * MS / 2).contains(&arrival.time)
        });
    };
    tampered(
        "one XON without effect",
        SINGLE,
        late,
        &[("xon", FAIL, "expected within 1.017 ms")],
    );
}

#[test]
fn a_pass_names_the_last_frame_that_came_in_the_time_for_a_response() {
    let mut e = good(SINGLE);
    let xoff = probe(&e, RUNS_OUT).0[0].before;
    for after in [300_000, 700_000, 500_000] {
        arrives(&mut e, Phase::Probe, xoff + after);
    }
    let results = results(SINGLE, &e);
    let response = results.iter().find(|result| result.check == "response");
    let response = response.unwrap();
    assert_eq!(response.verdict, Verdict::Pass, "{}", response.reason);
    let silent = response.assertions.iter();
    let silent = silent.filter(|one| one.expected == "0" && one.what.contains("max_response"));
    let found: Vec<&str> = silent.map(|one| one.actual.as_str()).collect();
    assert_eq!(
        found[0], "0 (last frame 0.700 ms after the XOFF)",
        "{found:?}"
    );
}

#[test]
fn each_priority_of_a_probe_answers_for_itself() {
    let good = bench::run(&bench::plan(MULTI, &[3, 4], None), &[]);
    expect("nothing", MULTI, &good, &[]);
    for priority in [3, 4] {
        let mut late = good.clone();
        // A priority has two code points.
        let flows: Vec<u16> = (late.plan.flows.iter())
            .filter(|flow| flow.priority.index() == priority)
            .map(|flow| flow.id)
            .collect();
        let xons = xons(&late);
        late.arrivals.records.retain(|arrival| {
            !flows.contains(&arrival.flow)
                || !xons
                    .iter()
                    .any(|xon| (xon.before..=xon.after + 3 * MS).contains(&arrival.time))
        });
        expect(
            "an XON that one priority ignores",
            MULTI,
            &late,
            &[("xon", FAIL, &format!("first frame of priority {priority}"))],
        );
        let mut gone = good.clone();
        let end = gone.probes[RUNS_OUT].left[0].after + MS;
        gone.arrivals.records.retain(|arrival| {
            !flows.contains(&arrival.flow) || arrival.phase != Phase::Probe || arrival.time < end
        });
        let words = format!("first frame of priority {priority} after the quanta of an XOFF: ");
        let words = words + "expected within 1.017 ms, found never";
        let expected = [("response", FAIL, words.as_str()), ("xon", SKIPPED, "")];
        expect("one priority that does not go on", MULTI, &gone, &expected);
    }
}

/// Storm-phase frames of `priority` come later by so much, but for the first `but` of them.
fn come_later(e: &mut PfcEvidence, priority: u8, but: usize, by: Nanos) {
    // A priority has two code points.
    let flows: Vec<u16> = (e.plan.flows.iter())
        .filter(|flow| flow.priority.get() == priority)
        .map(|flow| flow.id)
        .collect();
    let records = &mut e.arrivals.records;
    let of_it = records
        .iter_mut()
        .filter(|arrival| arrival.phase == Phase::Storm && flows.contains(&arrival.flow));
    of_it.skip(but).for_each(|arrival| arrival.time += by);
    records.sort_by_key(|arrival| arrival.time);
    for flow in flows {
        let of_flow = (e.arrivals.records.iter())
            .filter(|arrival| arrival.phase == Phase::Storm && arrival.flow == flow);
        let times: Vec<Nanos> = of_flow.map(|arrival| arrival.time).collect();
        let received = received(e, flow, Phase::Storm);
        (received.first, received.last) = (times[0], times[times.len() - 1]);
    }
    // All of them come within the wait.
    let drain = e.phases.iter_mut().find(|span| span.phase == Phase::Drain);
    drain.unwrap().to += by + MS;
}

#[test]
fn each_priority_answers_for_itself_after_the_storm() {
    let good = bench::run(&bench::plan(MULTI, &[3, 4], None), &[]);
    for priority in [3, 4] {
        let mut late = good.clone();
        come_later(&mut late, priority, 0, 5 * MS);
        let words = format!(
            "first frame of priority {priority} after the storm's last pause: expected within \
             1.017 ms, found 4.7"
        );
        let expected = [("lets-go", FAIL, words.as_str())];
        expect("one priority that goes on late", MULTI, &late, &expected);
    }
}

#[test]
fn each_priority_answers_for_its_later_frames_after_the_storm() {
    let good = bench::run(&bench::plan(MULTI, &[3, 4], None), &[]);
    for priority in [3, 4] {
        let mut stops = good.clone();
        come_later(&mut stops, priority, 1, 5 * MS);
        let words = format!(
            "longest wait of a later frame of priority {priority}: expected within 1.017 ms, \
             found 4.7"
        );
        let expected = [("lets-go", FAIL, words.as_str())];
        let what = "one priority that stops after a frame";
        expect(what, MULTI, &stops, &expected);
    }
}

/// The simulated switch stood still for `span` when the storm's last pause ended.
fn stalls_at_the_end(e: &mut PfcEvidence, span: Nanos) {
    let from = e.storm.as_ref().unwrap().last.before + PAUSE;
    dut(e).stalls.push(Stall {
        from,
        to: from + span,
    });
}

#[test]
fn held_frames_that_go_too_late_fail_unless_a_stall_explains_it() {
    // From the latest end of the pause to the first frame; two frames of 8384 ns are allowed.
    let allowed = TOLERANCE + MS + 2 * 8384;
    let later = |by: Nanos, stall: Nanos| {
        move |e: &mut PfcEvidence| {
            let test = flow(e, Role::Test);
            let end = e.storm.as_ref().unwrap().last.after + PAUSE;
            let first = received(e, test, Phase::Storm).first;
            goes_later(e, end + allowed + by - first);
            stalls_at_the_end(e, stall);
            let drain = e.phases.iter_mut().find(|span| span.phase == Phase::Drain);
            drain.unwrap().to += 2 * MS + by;
        }
    };
    tampered("just in time", SINGLE, later(0, 0), &[]);
    let words = "the storm's last pause: expected within 1.017 ms, found 1.0";
    tampered(
        "too late",
        SINGLE,
        later(10_000, 0),
        &[("lets-go", FAIL, words)],
    );
    let words = "but the tester or the simulated DUT stalled for 0.010 ms";
    let explained = [("lets-go", INCONCLUSIVE, words)];
    tampered("by a stall", SINGLE, later(10_000, 10_000), &explained);
    let more = [("lets-go", FAIL, "expected within")];
    tampered("by more than a stall", SINGLE, later(10_001, 10_000), &more);
}

#[test]
fn a_pause_that_lasts_is_named_where_the_next_one_finds_no_traffic() {
    // After its first XON the device is silent until the next XOFF has come.
    let silent = |e: &mut PfcEvidence| {
        let test = flow(e, Role::Test);
        let silent = xons(e)[0].before..e.probes[ENDED + 1].left[0].after;
        let records = &mut e.arrivals.records;
        records.retain(|arrival| arrival.flow != test || !silent.contains(&arrival.time));
    };
    let lasts = "found 3: no frame of priority 3 arrived just before the pause frame, so that \
                 its end could not be seen: the last one came";
    let expected = [
        ("response", INCONCLUSIVE, lasts),
        ("xon", FAIL, "first frame of priority 3 after the XON"),
    ];
    tampered("silence after an XON", SINGLE, silent, &expected);
}

#[test]
fn a_path_that_is_silent_from_the_end_of_a_pause_on_tells_nothing() {
    // Nothing at all arrives from just before the pause runs out until 5 ms after.
    let silent = |e: &mut PfcEvidence| {
        let (left, pause) = probe(e, RUNS_OUT);
        let end = left[0].before + pause;
        let records = &mut e.arrivals.records;
        records.retain(|arrival| !(end - MS / 5..end + 5 * MS).contains(&arrival.time));
    };
    let words = "found 3: no background frame arrived while the priority was awaited";
    let expected = [("response", INCONCLUSIVE, words)];
    tampered("a silent path", SINGLE, silent, &expected);
}

#[test]
fn an_end_of_a_pause_that_was_measured_slowly_does_not_count() {
    let slow = |e: &mut PfcEvidence| {
        let test = flow(e, Role::Test);
        let (left, pause) = probe(e, RUNS_OUT);
        let end = left[0].before + pause;
        let near = end - 2 * MS..end - MS;
        let of_others = e
            .arrivals
            .records
            .iter_mut()
            .filter(|arrival| arrival.flow != test);
        of_others
            .filter(|arrival| near.contains(&arrival.time))
            .for_each(|arrival| arrival.latency = 600_000);
    };
    let words = "expected 4, found 3: background latency round the end of the pause was 0.600 ms";
    tampered(
        "a slow end",
        SINGLE,
        slow,
        &[("response", INCONCLUSIVE, words)],
    );
}

#[test]
fn probes_are_made_until_one_of_each_kind_counts() {
    assert_eq!(good(SINGLE).probes.len(), 7);
    // Four times a second nothing at all leaves for 20 ms.
    let dips = run(SINGLE, &["dips".parse().unwrap()]);
    assert!(
        (8..=30).contains(&dips.probes.len()),
        "{}",
        dips.probes.len()
    );
    let checks = results(SINGLE, &dips);
    for check in ["response", "xon"] {
        let result = checks.iter().find(|result| result.check == check).unwrap();
        assert_eq!(result.verdict, Verdict::Pass, "{check}: {}", result.reason);
    }
}
