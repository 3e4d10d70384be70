//! Losses: what the tester's own side, its sender and an XOFF that was not honoured explain.

use super::*;
use validator_core::plan::PortName;

/// Checks of `case` on frames that it forwards.
fn of_data(case: &str) -> Vec<&'static str> {
    let mut checks = every_check(case);
    checks.retain(|check| !OF_THE_DUTS_PFC.contains(check));
    checks
}

#[test]
fn a_drop_on_the_testers_own_side_explains_as_many_losses() {
    for (what, drop) in [
        ("a drop of the tester", (|e| lost_by_tester(e, 2)) as Tamper),
        ("overruns of the simulated DUT", |e| dut(e).overruns = 2),
        ("refused sends of the simulated DUT", |e| {
            dut(e).send_errors = 2
        }),
    ] {
        for (case, ..) in REPETITIONS {
            let expected = all(
                &of_data(case),
                INCONCLUSIVE,
                "drops on the tester's own side: ",
            );
            tampered(&format!("{what} without a loss"), case, drop, &expected);
            let explained = |e: &mut PfcEvidence| {
                drop(e);
                lose(e, Role::Test, Phase::Storm, 2);
            };
            tampered(&format!("{what} with the loss"), case, explained, &expected);
        }
    }
    // One frame more than that, be it of one flow or of several.
    let more = |e: &mut PfcEvidence| {
        lost_by_tester(e, 2);
        lose(e, Role::Background, Phase::Storm, 3);
    };
    let mut expected = all(
        &of_data(SINGLE),
        INCONCLUSIVE,
        "drops on the tester's own side: rx port eth2 rx_missed_errors +2",
    );
    expected.retain(|(check, ..)| *check != "background");
    expected.push(("background", FAIL, "frames of flow 1"));
    tampered("more loss than explained", SINGLE, more, &expected);
    let spread = |e: &mut PfcEvidence| {
        lost_by_tester(e, 2);
        for (priority, phase) in [(0, Phase::Baseline), (1, Phase::Storm), (2, Phase::Probe)] {
            let flow = flow_of(e, priority);
            received(e, flow, phase).frames -= 1;
        }
    };
    tampered(
        "more loss than explained, in several flows",
        SINGLE,
        spread,
        &expected,
    );
}

#[test]
fn a_loss_in_the_baseline_is_the_devices_own() {
    tampered(
        "a lossy loss",
        SINGLE,
        |e| lose(e, Role::Background, Phase::Baseline, 1),
        &[("background", FAIL, "phase Baseline")],
    );
    let lossless = [
        ("delivered", FAIL, "phase Baseline"),
        ("resume", SKIPPED, "`delivered`"),
        ("response", SKIPPED, "`resume`"),
        ("xon", SKIPPED, "`response`"),
    ];
    tampered(
        "a lossless loss",
        SINGLE,
        |e| lose(e, Role::Test, Phase::Baseline, 1),
        &lossless,
    );
    tampered(
        "an isolated loss",
        MULTI,
        |e| lose(e, Role::Isolation, Phase::Baseline, 1),
        &[("isolation", FAIL, "phase Baseline")],
    );
    tampered(
        "a loss in case 3",
        LOSSY,
        |e| lose(e, Role::Test, Phase::Baseline, 1),
        &[("test-traffic", FAIL, "phase Baseline")],
    );
    tampered(
        "a loss in case 4",
        GLOBAL,
        |e| lose(e, Role::Test, Phase::Baseline, 1),
        &[("no-loss", FAIL, "phase Baseline")],
    );
}

#[test]
fn every_phase_of_every_flow_is_accounted_for() {
    for (case, ..) in REPETITIONS {
        let evidence = good(case);
        for FlowSent { flow, phase, .. } in evidence.sender.flows.clone() {
            let mut tampered = evidence.clone();
            received(&mut tampered, flow, phase).frames -= 1;
            as_long_as_sent(&mut tampered, &evidence);
            let failed: Vec<_> = results(case, &tampered)
                .into_iter()
                .filter(|result| result.verdict == FAIL)
                .collect();
            assert_eq!(
                failed.len(),
                1,
                "{case}: a frame of flow {flow} lost in phase {phase:?}: {failed:#?}"
            );
        }
    }
}

#[test]
fn a_flow_that_never_arrived_proves_nothing_by_its_silence() {
    // Nothing ever arrives of the stormed flow: `paused` may not rest on that, `delivered` fails.
    let dead = |e: &mut PfcEvidence| {
        let flow = flow(e, Role::Test);
        e.received.retain(|received| received.flow != flow);
        e.arrivals.records.retain(|arrival| arrival.flow != flow);
        let windows = e.windows.received.iter_mut();
        windows.for_each(|window| window[3] = 0);
    };
    let words = "nothing was received in the baseline, so that a count of zero proves nothing: \
        flow 0 (DSCP 3)";
    let mut expected = all(
        &[
            "paused",
            "lets-go",
            "no-duplicate",
            "no-reorder",
            "no-corruption",
            "no-resize",
            "no-remark",
            "no-reflection",
        ],
        INCONCLUSIVE,
        words,
    );
    expected.push(("delivered", FAIL, "received: expected"));
    expected.push(("no-dip", FAIL, "of priority 3 in 100 ms of phase Baseline"));
    expected.extend(all(&["resume", "response", "xon"], SKIPPED, ""));
    tampered("a dead flow", SINGLE, dead, &expected);
}

#[test]
fn what_the_sender_missed_decides_nothing() {
    // (what is done, words, also for checks that have to see a frame of the stormed flow)
    let slow = |e: &mut PfcEvidence| {
        // 2 % low, and nothing lost.
        for sent in e
            .sender
            .flows
            .iter_mut()
            .filter(|sent| sent.phase == Phase::Storm)
        {
            sent.frames -= sent.frames / 50;
        }
        let sent = e.sender.flows.clone();
        for sent in sent.iter().filter(|sent| sent.phase == Phase::Storm) {
            received(e, sent.flow, Phase::Storm).frames = sent.frames;
        }
    };
    let fast = |e: &mut PfcEvidence| {
        let flow = e.plan.flows.last().unwrap().id;
        sent(e, flow, Phase::Baseline).frames += 2;
        received(e, flow, Phase::Baseline).frames += 2;
    };
    let refused = |e: &mut PfcEvidence| e.sender.errors = 1;
    let burst = |e: &mut PfcEvidence| e.sender.max_burst = e.limits.max_burst + 1;
    let [storm, baseline] = ["Storm", "Baseline"].map(|phase| format!("rate in phase {phase}"));
    let (refused_words, burst_words) = (
        "the kernel refused 1 frames of the sender",
        "the sender's largest burst was 4.000 ms, at most 4.000 ms is allowed",
    );
    // Only what rests on the flow and the phase. The last flow is background in cases 1 and 2,
    // and the lossless one in case 3.
    let all_of = |case: &str| match case {
        SINGLE => &["paused", "background", "resume", "no-dip"][..],
        MULTI => &["paused", "background", "isolation", "resume", "no-dip"],
        LOSSY => &["test-traffic", "background", "no-dip"],
        _ => &["no-loss", "throughput", "no-dip"],
    };
    let slow_of = |case: &str| match case {
        SINGLE => &["background", "no-dip"][..],
        MULTI => &["background", "isolation", "no-dip"],
        _ => all_of(case),
    };
    let fast_of = |case: &str| match case {
        GLOBAL => &["no-loss", "no-dip"],
        _ => &["background", "no-dip"],
    };
    for (case, ..) in REPETITIONS {
        for (what, tamper, touched, words) in [
            ("2 % low", slow as Tamper, slow_of(case), &*storm),
            ("above the target", fast, fast_of(case), &baseline),
            ("a refused frame", refused, all_of(case), refused_words),
            ("a large burst", burst, all_of(case), burst_words),
        ] {
            tampered(what, case, tamper, &all(touched, INCONCLUSIVE, words));
        }
    }
    // The largest burst and one frame beside the target are allowed.
    let just = |e: &mut PfcEvidence| {
        e.sender.max_burst = e.limits.max_burst;
        let flow = e.plan.flows.last().unwrap().id;
        received(e, flow, Phase::Baseline).frames += 1;
        sent(e, flow, Phase::Baseline).frames += 1;
    };
    tampered("just allowed", SINGLE, just, &[]);
}

#[test]
fn what_was_due_within_a_tick_before_an_xoff_that_lasts_is_no_missed_rate() {
    // An XOFF holds the lossless flow of case 3, half the line, for the last 100 ms. What was due
    // in half a millisecond before it are 29 frames, beside 1 % of 17 890 and one.
    let held = |missing: u64, ends_early: Nanos| {
        move |e: &mut PfcEvidence| {
            withhold(e, 3, 100 * MS);
            let data = e.span(Phase::Storm).unwrap();
            let held = e.sender.withheld.last_mut().unwrap();
            (held.from, held.to) = (data.to - 100 * MS - ends_early, data.to - ends_early);
            let flow = flow_of(e, 3);
            sent(e, flow, Phase::Storm).frames -= missing;
            lose(e, Role::Background, Phase::Storm, missing);
        }
    };
    let missed = all(&["background", "no-dip"], INCONCLUSIVE, "missed its rate");
    // The rate was kept, so that the XOFF itself is judged: it held a lossless flow for too long.
    let held_too_long = [("background", FAIL, "what the DUT's XOFF withheld included")];
    tampered("a tick", LOSSY, held(178 + 28, 0), &held_too_long);
    tampered("more than a tick", LOSSY, held(178 + 40, 0), &missed);
    tampered(
        "an XOFF that ends before",
        LOSSY,
        held(178 + 28, 10 * MS),
        &missed,
    );
}

#[test]
fn a_flow_of_which_nothing_left_in_the_storm_is_not_judged_by_it() {
    let none = |e: &mut PfcEvidence| {
        let flow = flow(e, Role::Test);
        e.sender
            .flows
            .retain(|sent| sent.flow != flow || sent.phase != Phase::Storm);
        e.received
            .retain(|received| received.flow != flow || received.phase != Phase::Storm);
        e.arrivals
            .records
            .retain(|arrival| arrival.flow != flow || arrival.phase != Phase::Storm);
    };
    let mut expected = all(
        &["paused"],
        INCONCLUSIVE,
        "rate: no storm-phase frame of flow 0 (DSCP 3) left",
    );
    expected.push(("delivered", INCONCLUSIVE, "none left the tester"));
    expected.push(("lets-go", INCONCLUSIVE, "none left the tester"));
    tampered("no storm-phase frame", SINGLE, none, &expected);
    // More than was sent is no DUT's doing.
    let more = |e: &mut PfcEvidence| {
        let flow = flow(e, Role::Background);
        received(e, flow, Phase::Storm).frames += 1;
    };
    tampered(
        "more than was sent",
        SINGLE,
        more,
        &[("background", INCONCLUSIVE, "more than the sender knows of")],
    );
}

#[test]
fn an_xoff_that_was_not_honoured_and_a_long_storm_excuse_losses_and_nothing_else() {
    let beyond =
        |by: u64| move |e: &mut PfcEvidence| e.sender.after_xoff[3] = e.limits.headroom + by;
    let long = |by: u64| {
        move |e: &mut PfcEvidence| {
            let flow = flow(e, Role::Test);
            let end = e.storm.as_ref().unwrap().last.before + PAUSE - TOLERANCE;
            e.limits.max_residence = end - sent(e, flow, Phase::Storm).first - by;
        }
    };
    let mut failed = AFTER_DELIVERED.to_vec();
    failed.push(("delivered", FAIL, "phase Storm"));
    for (what, excused, kept, words) in [
        (
            "beyond the headroom",
            Box::new(beyond(1)) as Box<dyn Fn(&mut PfcEvidence)>,
            Box::new(beyond(0)) as Box<dyn Fn(&mut PfcEvidence)>,
            "octets of priority 3 left after the DUT's XOFF, its headroom is 1048576",
        ),
        (
            "a long storm",
            Box::new(long(1)),
            Box::new(long(0)),
            "longer than max_residence",
        ),
    ] {
        tampered(what, SINGLE, &excused, &[]);
        let lost = |tamper: &dyn Fn(&mut PfcEvidence), role| {
            let mut evidence = good(SINGLE);
            tamper(&mut evidence);
            lose(&mut evidence, role, Phase::Storm, 1);
            evidence
        };
        expect(
            &format!("{what}, with a loss"),
            SINGLE,
            &lost(&excused, Role::Test),
            &[("delivered", INCONCLUSIVE, words)],
        );
        expect(
            &format!("just not {what}, with a loss"),
            SINGLE,
            &lost(&kept, Role::Test),
            &failed,
        );
        let lossy = [("background", FAIL, "phase Storm")];
        expect(
            &format!("{what}, with a lossy loss"),
            SINGLE,
            &lost(&excused, Role::Background),
            &lossy,
        );
    }
    // A long storm is no reason to lose what was sent before or after it.
    let before = |e: &mut PfcEvidence| {
        long(1)(e);
        lose(e, Role::Test, Phase::Baseline, 1);
    };
    failed.pop();
    failed.push(("delivered", FAIL, "phase Baseline"));
    tampered(
        "a long storm, with a loss before it",
        SINGLE,
        before,
        &failed,
    );
    let probe = |e: &mut PfcEvidence| {
        long(1)(e);
        lose(e, Role::Test, Phase::Probe, 1);
    };
    tampered(
        "a long storm, with a loss after it",
        SINGLE,
        probe,
        &[("response", FAIL, "phase Probe"), ("xon", SKIPPED, "")],
    );
    let not_honoured = |e: &mut PfcEvidence| {
        beyond(1)(e);
        lose(e, Role::Test, Phase::Probe, 1);
    };
    tampered(
        "a loss in the probe with XOFF not honoured",
        SINGLE,
        not_honoured,
        &[("response", INCONCLUSIVE, "octets of priority 3")],
    );
    // The lossless flows of the other cases: where an XOFF came in that phase, and no more frames
    // than one octet too many explains.
    let background = |withheld: bool, lost: u64| {
        move |e: &mut PfcEvidence| {
            beyond(1)(e);
            if withheld {
                withhold(e, 3, MS);
            }
            lose(e, Role::Background, Phase::Storm, lost);
        }
    };
    tampered(
        "a lossless loss in case 3",
        LOSSY,
        background(true, 1),
        &[("background", INCONCLUSIVE, "octets of priority 3")],
    );
    tampered(
        "one more than the octets explain",
        LOSSY,
        background(true, 2),
        &[("background", FAIL, "of which at most 1 because")],
    );
    tampered(
        "a lossless loss in case 3, and no XOFF in its phase",
        LOSSY,
        background(false, 1),
        &[("background", FAIL, "phase Storm")],
    );
}

#[test]
fn a_stall_of_the_simulated_device_excuses_losses_when_more_came_in_than_its_headroom() {
    // Half the line for one priority: 62.5 octets a microsecond.
    let fills = |e: &PfcEvidence| e.limits.headroom * 16;
    let stalled_in = |phase: Phase, by: Nanos, lost: u64| {
        move |e: &mut PfcEvidence| {
            let from = e.span(phase).unwrap().from;
            let to = from + fills(e) + by;
            dut(e).stalls.push(Stall { from, to });
            lose(e, Role::Test, Phase::Storm, lost);
        }
    };
    let stalled = |by: Nanos| stalled_in(Phase::Storm, by, 1);
    let mut failed = AFTER_DELIVERED.to_vec();
    failed.push(("delivered", FAIL, "phase Storm"));
    tampered(
        "a stall that fills the headroom",
        SINGLE,
        stalled(0),
        &failed,
    );
    tampered(
        "a longer stall",
        SINGLE,
        stalled(16),
        &[(
            "delivered",
            INCONCLUSIVE,
            "the simulated DUT stalled for 16.777 ms",
        )],
    );
    tampered(
        "a long stall of the probe",
        SINGLE,
        stalled_in(Phase::Probe, 500 * MS, 1),
        &failed,
    );
    // Half the line for 16.8 ms are 1000 frames and the one that had begun: no more are explained.
    let lossless = |lost: u64| {
        move |e: &mut PfcEvidence| {
            let from = e.span(Phase::Storm).unwrap().from;
            let to = from + fills(e) + 16;
            dut(e).stalls.push(Stall { from, to });
            lose(e, Role::Background, Phase::Storm, lost);
        }
    };
    for (lost, verdict, words) in [
        (1001, INCONCLUSIVE, "its XOFF was late by as much"),
        (
            1002,
            FAIL,
            "of which at most 1001 because the simulated DUT stalled",
        ),
    ] {
        tampered(
            &format!("a stall and {lost} frames lost"),
            LOSSY,
            lossless(lost),
            &[("background", verdict, words)],
        );
    }
    // Eight flows share a priority in case 4: together an eighth of the line.
    let shared = |by: Nanos| {
        move |e: &mut PfcEvidence| {
            let from = e.span(Phase::Storm).unwrap().from;
            let to = from + 4 * fills(e) + by;
            dut(e).stalls.push(Stall { from, to });
            let flow = flow_of(e, 3);
            received(e, flow, Phase::Storm).frames -= 1;
        }
    };
    let open = ("no-dip", INCONCLUSIVE, "without a long stall");
    tampered(
        "a stall in case 4",
        GLOBAL,
        shared(0),
        &[("no-loss", FAIL, "phase Storm"), open],
    );
    tampered(
        "a longer stall in case 4",
        GLOBAL,
        shared(64),
        &[
            (
                "no-loss",
                INCONCLUSIVE,
                "the simulated DUT stalled for 67.1",
            ),
            open,
        ],
    );
}

#[test]
fn what_a_lossless_priority_was_withheld_is_excluded_and_counts_as_offered() {
    tampered(
        "a lossless priority withheld",
        LOSSY,
        |e| withhold(e, 3, 100 * MS),
        &[(
            "background",
            FAIL,
            "what the DUT's XOFF withheld included: expected >= 0.99, found 0.75",
        )],
    );
    tampered(
        "a lossless priority withheld while the simulated DUT stalls",
        LOSSY,
        |e| {
            withhold(e, 3, 10 * MS);
            let from = e.span(Phase::Storm).unwrap().from;
            dut(e).stalls.push(Stall {
                from,
                to: from + 5 * MS,
            });
        },
        &[("background", INCONCLUSIVE, "stalled for 5.000 ms")],
    );
    let before = |e: &mut PfcEvidence| {
        withhold(e, 3, 10 * MS);
        let end = e.sender.withheld.last().unwrap().to;
        dut(e).stalls.push(Stall {
            from: end,
            to: end + 5 * MS,
        });
    };
    let withheld = "what the DUT's XOFF withheld included: expected >= 0.99, found 0.97";
    tampered(
        "a lossless priority withheld before the simulated DUT stalls",
        LOSSY,
        before,
        &[("background", FAIL, withheld)],
    );
    // The lossless background rests on its own flow alone.
    let words = "found 0.7500 (2556 of 3408 frames; withheld for 100.000 ms";
    let lossy = all(&["test-traffic"], FAIL, words);
    tampered(
        "a lossy priority withheld",
        LOSSY,
        |e| withhold(e, 5, 100 * MS),
        &lossy,
    );
    // An eighth of the link for a quarter of the time: 3.1 % of what was to be sent.
    tampered(
        "withheld at full load",
        GLOBAL,
        |e| withhold(e, 3, 100 * MS),
        &[("throughput", FAIL, "0.96")],
    );
    tampered(
        "withheld at full load, shortly",
        GLOBAL,
        |e| withhold(e, 3, 20 * MS),
        &[],
    );
    // Traffic withheld before the data began was not offered.
    let lead = |e: &mut PfcEvidence| {
        let data = e.span(Phase::Storm).unwrap();
        let priority = Priority::new(3).unwrap();
        e.sender.withheld.push(Withheld {
            port: PortName::TX,
            priority,
            phase: Phase::Storm,
            from: data.from - 100 * MS,
            to: data.from,
        });
    };
    tampered("withheld before the data", GLOBAL, lead, &[]);
    // Unlisted spans count by their sum, where they are known to have been in the phase.
    let unlisted = |e: &mut PfcEvidence, span: Nanos, early: Nanos| {
        withhold(e, 3, span);
        let Withheld {
            port,
            priority,
            phase,
            from,
            to,
        } = e.sender.withheld.pop().unwrap();
        let spans = LeftOut {
            count: 9,
            total: to - from,
            from: from - early,
            to: to + 200 * MS,
        };
        e.sender.withheld_left_out.push(WithheldLeftOut {
            port,
            priority,
            phase,
            spans,
        });
    };
    tampered(
        "withheld and not listed",
        LOSSY,
        |e| unlisted(e, 100 * MS, 0),
        &[("background", FAIL, "found 0.75")],
    );
    tampered(
        "withheld and not listed, at full load",
        GLOBAL,
        |e| unlisted(e, 100 * MS, 0),
        &[("throughput", FAIL, "0.96")],
    );
    let unknown = all(
        &["background", "no-dip"],
        INCONCLUSIVE,
        "it is not known how long flow",
    );
    tampered(
        "withheld and not listed, perhaps before the data",
        LOSSY,
        |e| unlisted(e, 100 * MS, 1),
        &unknown,
    );
}
