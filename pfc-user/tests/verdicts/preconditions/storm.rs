//! Gaps, a late begin and an early end of the storm, and the proof that it arrives.

use super::*;
use pfc_ebpf::abi::account::Clock;

/// The same where a frame leaks that nothing explains.
fn leaked<'a>(no_leak: Expected<'a>, words: &'a str) -> Vec<(&'a str, Verdict, &'a str)> {
    let others = no_leak
        .iter()
        .filter(|(check, ..)| !["paused", "lets-go"].contains(check));
    let failed = [("paused", FAIL, words), AFTER_PAUSED];
    failed.into_iter().chain(others.copied()).collect()
}

#[test]
fn a_gap_of_the_storm_excuses_what_it_let_go_to_the_nanosecond() {
    let no_leak = all(
        on_the_storm(SINGLE),
        INCONCLUSIVE,
        "storm-continuity: the storm had 1 gaps above its pause time of 33.554 ms",
    );
    tampered("a gap", SINGLE, |e| _ = with_gap(e), &no_leak);
    for (what, edge) in [("first", 0), ("last", 1)] {
        let inside = |e: &mut PfcEvidence| {
            let (from, to) = with_gap(e);
            leak(e, [from, to][edge]);
        };
        tampered(
            &format!("a leak at the {what} excused nanosecond"),
            SINGLE,
            inside,
            &no_leak,
        );
        let outside = |e: &mut PfcEvidence| {
            let (from, to) = with_gap(e);
            leak(e, [from - 1, to + 1][edge]);
        };
        let failed = leaked(&no_leak, "1 (1 unexcused");
        tampered(
            &format!("a leak beyond the {what} excused nanosecond"),
            SINGLE,
            outside,
            &failed,
        );
    }
    // Frames that left the simulated DUT late may have been let go before the storm went on.
    let late = |lateness| {
        move |e: &mut PfcEvidence| {
            let (_, to) = with_gap(e);
            dut(e).max_lateness = lateness;
            leak(e, to + 500);
        }
    };
    tampered("a leak explained by lateness", SINGLE, late(500), &no_leak);
    tampered(
        "a leak not explained",
        SINGLE,
        late(499),
        &leaked(&no_leak, "unexcused"),
    );
    // Where one reading of the clock served several frames, the longest latency of the baseline may
    // be a tick longer.
    let batched = |beyond: Nanos| {
        move |e: &mut PfcEvidence| {
            let (_, to) = with_gap(e);
            e.counting.clock = Clock::Batched;
            leak(e, to + beyond);
        }
    };
    tampered(
        "a leak explained by the clock",
        SINGLE,
        batched(10 * MS),
        &no_leak,
    );
    tampered(
        "a leak later than a tick",
        SINGLE,
        batched(10 * MS + 1),
        &leaked(&no_leak, "unexcused"),
    );
}

#[test]
fn gaps_that_are_not_listed_excuse_all_that_they_may_have_let_go() {
    let unlisted = |leaks: Option<i64>| {
        move |e: &mut PfcEvidence| {
            let (from, to) = with_gap(e);
            let storm = e.storm.as_mut().unwrap();
            let gap = storm.gaps.pop().unwrap();
            storm.gaps_left_out = LeftOut {
                count: 2,
                total: 2 * gap.length(),
                from: gap.from,
                to: gap.to + 100 * MS,
            };
            if let Some(beyond) = leaks {
                leak(
                    e,
                    if beyond < 0 { from } else { to + 100 * MS }.strict_add_signed(beyond),
                );
            }
        }
    };
    let no_leak = all(
        on_the_storm(SINGLE),
        INCONCLUSIVE,
        "storm-continuity: the storm had 2 gaps above its pause time of 33.554 ms",
    );
    tampered("gaps", SINGLE, unlisted(None), &no_leak);
    tampered("a leak within", SINGLE, unlisted(Some(0)), &no_leak);
    let failed = leaked(&no_leak, "1 (1 unexcused");
    tampered("a leak before", SINGLE, unlisted(Some(-1)), &failed);
    tampered("a leak after", SINGLE, unlisted(Some(1)), &failed);
}

/// Its frames pause nobody, so that no pause tells the gaps.
#[test]
fn a_storm_of_xons_has_a_gap_above_three_of_its_intervals() {
    let plan = bench::plan("pfc.zero-time", &[3], None);
    // Beside an interval of 11 ms.
    for (stall, verdict, words) in [
        (21 * MS, Verdict::Pass, ""),
        (
            23 * MS,
            INCONCLUSIVE,
            "storm-continuity: the storm had 1 gaps above three intervals, 33.000 ms, the largest \
             34.000 ms",
        ),
    ] {
        let evidence = bench::run_stalling(&plan, 10, stall);
        let checks = bench::case("pfc.zero-time").judge(&evidence).checks;
        let ignored = checks.iter().find(|result| result.check == "ignored");
        let ignored = ignored.unwrap();
        assert_eq!(ignored.verdict, verdict, "{stall}: {}", ignored.reason);
        assert!(ignored.reason.contains(words), "{}", ignored.reason);
    }
}

#[test]
fn without_a_gap_a_single_frame_is_a_leak_until_the_last_pause_runs_out() {
    let last = |e: &PfcEvidence| e.storm.as_ref().unwrap().last.before + PAUSE - TOLERANCE;
    tampered(
        "a leak",
        SINGLE,
        |e| leak(e, last(e) - 1),
        &[("paused", FAIL, "1 (1 unexcused"), AFTER_PAUSED],
    );
    tampered("a frame after the storm", SINGLE, |e| leak(e, last(e)), &[]);
    // The counters know of an arrival of which no record is left.
    let forgotten = |e: &mut PfcEvidence| {
        let time = last(e) - 1;
        leak(e, time);
        e.arrivals.records.retain(|arrival| arrival.time != time);
    };
    tampered(
        "a leak without a record",
        SINGLE,
        forgotten,
        &[("paused", INCONCLUSIVE, "their records are missing")],
    );
}

#[test]
fn a_gap_below_the_pause_time_by_less_than_the_tolerance_is_one() {
    let gap = |max_gap, leaks: bool| {
        move |e: &mut PfcEvidence| {
            e.storm.as_mut().unwrap().max_gap = max_gap;
            if leaks {
                leak(e, e.span(Phase::Storm).unwrap().from + 100 * MS);
            }
        }
    };
    tampered("a short gap", SINGLE, gap(PAUSE - TOLERANCE, false), &[]);
    let narrow = all(
        on_the_storm(SINGLE),
        INCONCLUSIVE,
        "by the tolerance of the DUT's clock",
    );
    tampered(
        "a narrow gap",
        SINGLE,
        gap(PAUSE - TOLERANCE + 1, false),
        &narrow,
    );
    tampered(
        "a narrow gap with a leak",
        SINGLE,
        gap(PAUSE - TOLERANCE + 1, true),
        &narrow,
    );
    tampered(
        "a short gap with a leak",
        SINGLE,
        gap(PAUSE - TOLERANCE, true),
        &[("paused", FAIL, "unexcused"), AFTER_PAUSED],
    );
}

#[test]
fn a_storm_that_was_not_there_when_it_had_to_be_decides_nothing() {
    for (case, ..) in REPETITIONS {
        let checks = on_the_storm(case);
        // The pause of its last frame may end just before the traffic does.
        let ended = |e: &mut PfcEvidence| {
            let data = e.span(Phase::Storm).unwrap();
            e.storm.as_mut().unwrap().last = at(data.to - PAUSE, data.to - PAUSE);
        };
        let paused_to_the_end = |e: &mut PfcEvidence| {
            let data = e.span(Phase::Storm).unwrap();
            e.storm.as_mut().unwrap().last = at(data.to - PAUSE / 2, data.to - PAUSE / 2);
        };
        // By such a log the first frame after the storm came much too late.
        let late = ("lets-go", FAIL, "after the storm's last pause");
        let expected = if [SINGLE, MULTI].contains(&case) {
            &[late][..]
        } else {
            &[]
        };
        tampered(
            "a pause that outlasts the data",
            case,
            paused_to_the_end,
            expected,
        );
        // Traffic went on until a pause time and more after the storm's end.
        let long_ended = |e: &mut PfcEvidence| {
            let data = e.span(Phase::Storm).unwrap();
            e.storm.as_mut().unwrap().last = at(data.to - 2 * PAUSE, data.to - 2 * PAUSE);
        };
        tampered(
            "a storm that ended early",
            case,
            ended,
            &all(checks, INCONCLUSIVE, "the storm ended before the traffic"),
        );
        tampered(
            "a storm that ended too early",
            case,
            long_ended,
            &all(checks, INCONCLUSIVE, "the storm ended before the traffic"),
        );
        let none = |e: &mut PfcEvidence| {
            let storm = e.storm.as_mut().unwrap();
            (storm.frames, storm.errors, storm.first, storm.last) = (0, 40, at(0, 0), at(0, 0));
        };
        let mut nothing_left = all(
            checks,
            INCONCLUSIVE,
            "not one frame of the storm left, they were refused 40 times",
        );
        nothing_left.push(("no-mac-control-forwarded", INCONCLUSIVE, "none left"));
        tampered("no storm", case, none, &nothing_left);
    }
    let late_start = |shift, leaks: bool| {
        move |e: &mut PfcEvidence| {
            let first = e.span(Phase::Storm).unwrap().from - e.limits.max_response + shift;
            e.storm.as_mut().unwrap().first = at(first, first);
            if leaks {
                leak(e, e.span(Phase::Storm).unwrap().from + 1);
            }
        }
    };
    tampered(
        "a storm that began just in time",
        SINGLE,
        late_start(0, false),
        &[],
    );
    let late = all(
        on_the_storm(SINGLE),
        INCONCLUSIVE,
        "the storm did not begin by max_response before the traffic",
    );
    tampered(
        "a storm that began late",
        SINGLE,
        late_start(1, false),
        &late,
    );
    tampered(
        "a storm that began late, with a leak",
        SINGLE,
        late_start(1, true),
        &late,
    );
}

#[test]
fn a_storm_that_was_not_shown_to_arrive_proves_nothing_by_its_lack_of_effect() {
    for case in [LOSSY, GLOBAL] {
        let checks = on_the_storm(case);
        let unshown = |words| all(checks, INCONCLUSIVE, words);
        tampered(
            "no probe",
            case,
            |e| e.probes.clear(),
            &unshown("storm-arrival: it was not shown that pause frames of the rx port"),
        );
        tampered(
            "arrivals lost",
            case,
            |e| e.arrivals.lost = 1,
            &unshown("1 records of the probe did not fit"),
        );
        let short = |e: &mut PfcEvidence| e.limits.max_response = PAUSE / 2;
        tampered(
            "a pause too short to see",
            case,
            short,
            &unshown("too short to be told from none"),
        );
        // One attempt that shows it is enough.
        tampered("two attempts lost", case, |e| e.probes.truncate(1), &[]);
        let ignores = run(case, &["ignores-pfc".parse().unwrap()]);
        expect(
            "PFC ignored",
            case,
            &ignores,
            &unshown("a lossless priority did not stop for one"),
        );
        // A loss needs no proof that the storm arrived.
        let lost = |e: &mut PfcEvidence| {
            e.probes.clear();
            lose(e, Role::Test, Phase::Storm, 1);
        };
        let mut expected = unshown("storm-arrival");
        expected[0] = (checks[0], FAIL, "phase Storm");
        tampered("a loss", case, lost, &expected);
    }
}

#[test]
fn the_figures_say_how_the_storm_was_sent_and_how_long_its_gaps_were() {
    let figure = |tamper: fn(&mut StormReport), name: &str| {
        let mut evidence = good(SINGLE);
        tamper(evidence.storm.as_mut().unwrap());
        let figures = bench::case(SINGLE).judge(&evidence).figures;
        figures
            .into_iter()
            .find(|figure| figure.name == name)
            .map(|figure| figure.value)
    };
    let fill: fn(&mut StormReport) = |storm| {
        storm.method = "2 senders".into();
        (storm.frames, storm.errors, storm.max_gap) = (1000, 3, 40_000_000);
        storm.histogram = GapHistogram(vec![(10_500_000, 600), (11_000_000, 390), (50_000_000, 9)]);
        storm.gaps = vec![Gap {
            from: 1,
            to: 40_000_001,
        }];
    };
    assert_eq!(
        figure(fill, "storm frames").unwrap(),
        "1000, refused 3 times"
    );
    assert_eq!(figure(fill, "storm sent by").unwrap(), "2 senders");
    // 50 ms is where a bucket ends: no gap was above the largest.
    let expected = "p50 10.500 ms, p99 11.000 ms, p99.9 40.000 ms, max 40.000 ms, 119.2 % of the \
        pause time 33.554 ms; 1 above the shortest pause";
    assert_eq!(figure(fill, "gaps of the storm").unwrap(), expected);
    let none: fn(&mut StormReport) = |storm| {
        storm.histogram = GapHistogram::default();
        (storm.max_gap, storm.gaps) = (13_980, vec![]);
    };
    let expected = "max 14.0 us, 0.0 % of the pause time 33.554 ms; none above the shortest pause";
    assert_eq!(figure(none, "gaps of the storm").unwrap(), expected);
}
