//! Dips, and what lateness of the tester explains of them.

use super::*;
use pfc_ebpf::abi::account::Clock;

/// Window of 10 ms in which `share` of all that should have arrived does not, from `start` of the
/// storm phase on.
fn dip(e: &mut PfcEvidence, start: Nanos, share: f64) {
    let from = e.span(Phase::Storm).unwrap().from + start;
    let window = ((from - e.windows.epoch) / e.windows.width) as usize + 1;
    for frames in &mut e.windows.received[window] {
        *frames -= (f64::from(*frames) * share).ceil() as u32;
    }
}

/// The same frames arrive two windows later.
fn late(e: &mut PfcEvidence, start: Nanos, share: f64) {
    let from = e.span(Phase::Storm).unwrap().from + start;
    let window = ((from - e.windows.epoch) / e.windows.width) as usize + 1;
    let before = e.windows.received[window];
    dip(e, start, share);
    for (priority, frames) in before.into_iter().enumerate() {
        let missing = frames - e.windows.received[window][priority];
        e.windows.received[window + 2][priority] += missing;
    }
}

/// A stall of which the window is left out.
const LONG_STALL: Nanos = 4_200_000;

#[test]
fn a_dip_fails_wherever_it_is_unless_the_tester_explains_it() {
    for start in [5, 95, 215, 375] {
        let mut expected = vec![("no-dip", FAIL, ">= 0.99, found 0.9")];
        // The frames are on their way for most of the storm.
        if start < 200 {
            expected.push(("no-delay", FAIL, "in the storm"));
        }
        tampered(
            &format!("a dip at {start} ms"),
            LOSSY,
            |e| dip(e, start * MS, 0.3),
            &expected,
        );
    }
    // Half of it in each of two adjacent windows of 100 ms.
    let straddling = |e: &mut PfcEvidence| {
        let data = e.span(Phase::Storm).unwrap();
        let whole = (data.from - e.windows.epoch).div_ceil(e.windows.width);
        let boundary = e.windows.epoch + (whole + 10) * e.windows.width - data.from;
        dip(e, boundary - 20 * MS + MS, 0.08);
        dip(e, boundary - 10 * MS + MS, 0.08);
    };
    let unlisted = |from: Nanos| {
        move |e: &mut PfcEvidence| {
            dip(e, 215 * MS, 0.3);
            let from = e.span(Phase::Storm).unwrap().from + from;
            e.sender.stalls_left_out = LeftOut {
                count: 7,
                total: 5 * MS,
                from,
                to: from + 50 * MS,
            };
        }
    };
    let reason = "stalled 7 times, for 5.000 ms in all";
    tampered(
        "a stall that may be in the window",
        LOSSY,
        unlisted(190 * MS),
        &[("no-dip", INCONCLUSIVE, reason)],
    );
    tampered(
        "stalls that are not in the window",
        LOSSY,
        unlisted(340 * MS),
        &[("no-dip", FAIL, "")],
    );
    tampered(
        "a dip across windows",
        LOSSY,
        straddling,
        &[
            ("no-dip", FAIL, ">= 0.99, found 0.98"),
            // Frames that never come are late for ever.
            ("no-delay", FAIL, "in the storm"),
        ],
    );
    // A dip in the window of a stall is left out, if most of the phase is watched all the same.
    let stalled = |share: f64| {
        move |e: &mut PfcEvidence| {
            late(e, 215 * MS, share);
            let from = e.span(Phase::Storm).unwrap().from + 216 * MS;
            e.sender.stalls.push(Stall {
                from,
                to: from + LONG_STALL,
            });
        }
    };
    tampered("a stall in the window", LOSSY, stalled(0.3), &[]);
    tampered("nothing arrives where it stalled", LOSSY, stalled(1.0), &[]);
    // Frames that never arrive are more than a stall delays.
    let lost = |e: &mut PfcEvidence| {
        stalled(0.0)(e);
        dip(e, 215 * MS, 1.0);
    };
    tampered(
        "what comes no more where it stalled",
        LOSSY,
        lost,
        &[("no-dip", FAIL, "(over ")],
    );
    // A short stall explains as much as it delays, and no more.
    let shortly = |share: f64| {
        move |e: &mut PfcEvidence| {
            stalled(share)(e);
            let stall = e.sender.stalls.last_mut().unwrap();
            stall.to = stall.from + LONG_STALL / 2;
            dut(e).max_lateness = LONG_STALL / 2;
        }
    };
    tampered("a short stall in the window", LOSSY, shortly(0.1), &[]);
    tampered(
        "more than a short stall delays",
        LOSSY,
        shortly(0.5),
        &[("no-dip", FAIL, ">= 0.99, found 0.9")],
    );
    // Stalls of the simulated DUT add up, and those of the sender do not.
    let of_dut = |count: u64, share: f64| {
        move |e: &mut PfcEvidence| {
            dip(e, 215 * MS, share);
            let from = e.span(Phase::Storm).unwrap().from + 216 * MS;
            let stalls = (0..count).map(|number| from + number * 5 * MS);
            let stalls = stalls.map(|from| Stall {
                from,
                to: from + 3 * MS,
            });
            dut(e).stalls.extend(stalls);
            dut(e).max_lateness = 3 * MS;
        }
    };
    tampered("a stall of the DUT", LOSSY, of_dut(1, 0.3), &[]);
    tampered(
        "more than the DUT's stall delays",
        LOSSY,
        of_dut(1, 0.7),
        &[("no-dip", FAIL, ">= 0.99, found 0.9")],
    );
    tampered("many stalls of the DUT", LOSSY, of_dut(3, 0.9), &[]);
    let of_sender = |e: &mut PfcEvidence| {
        of_dut(3, 0.9)(e);
        e.sender.stalls = std::mem::take(&mut dut(e).stalls);
    };
    tampered(
        "many stalls of the sender",
        LOSSY,
        of_sender,
        &[("no-dip", FAIL, ">= 0.99, found 0.9")],
    );
    // A hundred milliseconds without a frame are no stall of a millisecond.
    let long = |e: &mut PfcEvidence| {
        stalled(1.0)(e);
        (205..305)
            .step_by(10)
            .filter(|at| *at != 215)
            .for_each(|at| dip(e, at * MS, 1.0));
    };
    tampered(
        "a dip longer than the stall",
        LOSSY,
        long,
        &[("no-dip", FAIL, "found 0.2")],
    );
    let often = |e: &mut PfcEvidence| {
        let from = e.span(Phase::Storm).unwrap().from;
        let stalls = [100, 190, 280].map(|at| Stall {
            from: from + at * MS,
            to: from + at * MS + LONG_STALL,
        });
        e.sender.stalls.extend(stalls);
    };
    tampered(
        "stalls that leave little to watch",
        LOSSY,
        often,
        &[(
            "no-dip",
            INCONCLUSIVE,
            "stalled 3 times, for 12.600 ms in all",
        )],
    );
    // The storm's sender is the tester's as well.
    let storm = |e: &mut PfcEvidence| {
        dip(e, 215 * MS, 0.3);
        let from = e.span(Phase::Storm).unwrap().from + 216 * MS;
        let to = from + 8 * MS;
        e.storm.as_mut().unwrap().stalls.push(Stall { from, to });
    };
    tampered("a stall of the storm", LOSSY, storm, &[]);
    let elsewhere = |e: &mut PfcEvidence| {
        dip(e, 335 * MS, 0.3);
        let from = e.span(Phase::Storm).unwrap().from + 100 * MS;
        e.sender.stalls.push(Stall {
            from,
            to: from + LONG_STALL,
        });
    };
    tampered(
        "a stall in another window",
        LOSSY,
        elsewhere,
        &[("no-dip", FAIL, "")],
    );
    // A burst of 8 ms of the line at the edge is more than a fourteenth of what is in 100 ms. A
    // sender that waited for room may have sent it without a stall.
    let bursty = |burst: Nanos, share: f64| {
        move |e: &mut PfcEvidence| {
            dip(e, 215 * MS, share);
            e.limits.max_burst = burst;
            e.sender.max_burst = burst;
            e.sender.waits = 1;
        }
    };
    tampered(
        "bursts too large to tell",
        LOSSY,
        bursty(8 * MS, 0.0),
        &[("no-dip", INCONCLUSIVE, "under way at its edges, found")],
    );
    tampered(
        "a burst as large as the dip",
        LOSSY,
        bursty(MS / 4, 0.05),
        &[],
    );
    tampered(
        "a dip larger than the burst",
        LOSSY,
        bursty(MS / 4, 0.3),
        &[(
            "no-dip",
            FAIL,
            "frames of priority 3 in 100 ms of phase Storm",
        )],
    );
    // One priority of eight: 0.7 % of what arrives.
    let one = |e: &mut PfcEvidence| {
        let from = e.span(Phase::Storm).unwrap().from + 215 * MS;
        let window = ((from - e.windows.epoch) / e.windows.width) as usize;
        e.windows.received[window][5] = 0;
    };
    let reason = "least share received of frames of priority 5 in 100 ms of phase Storm";
    tampered(
        "a dip of one priority",
        LOSSY,
        one,
        &[("no-dip", FAIL, reason)],
    );
    tampered(
        "a baseline dip",
        LOSSY,
        |e| {
            let from = e.span(Phase::Baseline).unwrap().from + 60 * MS;
            let window = ((from - e.windows.epoch) / e.windows.width) as usize;
            e.windows.received[window] = [0; 8];
        },
        &[
            ("no-dip", FAIL, "phase Baseline"),
            ("no-delay", FAIL, "in the storm"),
        ],
    );
    let none = |e: &mut PfcEvidence| {
        e.windows
            .offered
            .iter_mut()
            .for_each(|window| *window = [0; 8])
    };
    tampered(
        "nothing offered",
        LOSSY,
        none,
        &[
            ("no-dip", INCONCLUSIVE, "at its edges, found 0"),
            // Nor is there a latency of frames that were not sent.
            ("no-delay", INCONCLUSIVE, "at least 3 for some priority"),
        ],
    );
    let few = |e: &mut PfcEvidence| e.windows.received.truncate(2);
    tampered(
        "windows that were not counted in",
        LOSSY,
        few,
        &[
            ("no-dip", INCONCLUSIVE, "some were not counted in"),
            ("no-delay", INCONCLUSIVE, "at least 3 for some priority"),
        ],
    );
}

/// At 100 Mbit/s a flow of a fourteenth of the line has 85 frames in 100 ms: one is above 1 %.
#[test]
fn frames_under_way_at_an_edge_are_no_dip_however_few_a_window_has() {
    let late = |frames: u32| {
        move |e: &mut PfcEvidence| {
            let data = e.span(Phase::Storm).unwrap();
            let window = |time: Nanos| ((time - e.windows.epoch) / e.windows.width) as usize;
            let (first, last) = (window(data.from), window(data.to));
            e.sender.max_burst = 0;
            for index in first..=last {
                e.windows.offered[index] = [8; 8];
                e.windows.received[index] = [8; 8];
            }
            // They arrive in the window after theirs.
            e.windows.received[first + 20][5] -= frames;
            e.windows.received[first + 21][5] += frames;
        }
    };
    tampered("a frame at the edge", LOSSY, late(1), &[]);
    let reason = "frames of priority 5 in 100 ms of phase Storm: expected >= 0.99, found 0.9891";
    tampered("one more", LOSSY, late(2), &[("no-dip", FAIL, reason)]);
}

/// In each 100 ms a stall explains it, and in the whole phase it does not.
#[test]
fn a_small_dip_that_lasts_shows_where_stalls_hide_it_in_100_ms() {
    let lasting = |share: f64| {
        move |e: &mut PfcEvidence| {
            let data = e.span(Phase::Storm).unwrap();
            let window = |time: Nanos| ((time - e.windows.epoch) / e.windows.width) as usize;
            let (first, last) = (window(data.from), window(data.to));
            for index in first..=last {
                for priority in 0..8 {
                    let received = e.windows.received[index][priority];
                    let late = (f64::from(received) * share) as u32;
                    e.windows.received[index][priority] -= late;
                    e.windows.received[last + 1][priority] += late;
                }
            }
            e.sender.max_burst = 4 * MS;
            let stalls = (0..4).map(|number| data.from + (number * 100 + 50) * MS);
            e.sender.stalls.extend(stalls.map(|from| Stall {
                from,
                to: from + LONG_STALL - MS,
            }));
        }
    };
    tampered("less than stalls delay", LOSSY, lasting(0.01), &[]);
    let reason = "found 0.98";
    tampered(
        "a dip of 3 %",
        LOSSY,
        lasting(0.03),
        &[("no-dip", FAIL, reason)],
    );
    tampered("over", LOSSY, lasting(0.03), &[("no-dip", FAIL, "(over ")]);
}

/// One reading of the clock for several frames: most of the baseline's seem to come when they left.
fn batched(e: &mut PfcEvidence) {
    e.counting.clock = Clock::Batched;
    for received in e
        .received
        .iter_mut()
        .filter(|received| received.phase == Phase::Baseline)
    {
        received.latency[0] = 7;
        received.latency[24] = 1;
    }
}

#[test]
fn the_path_is_as_long_as_an_exact_clock_tells() {
    // 3 % of 100 ms: a path of 4.2 ms may hold it at the edges, one of 0.5 ms may not.
    let exact = |bits: usize| {
        move |e: &mut PfcEvidence| {
            dip(e, 215 * MS, 0.3);
            e.received.iter_mut().for_each(|received| {
                received.latency = [0; 32];
                received.latency[bits] = 9;
            });
        }
    };
    tampered("a path of 4.2 ms", LOSSY, exact(22), &[]);
    tampered(
        "a path of 0.5 ms",
        LOSSY,
        exact(19),
        &[("no-dip", FAIL, ">= 0.99, found 0.98")],
    );
    // Frames that an old reading served tell nothing; those of the probe were each read for.
    let probed = |latency: u32| {
        move |e: &mut PfcEvidence| {
            batched(e);
            dip(e, 215 * MS, 0.3);
            e.arrivals
                .records
                .iter_mut()
                .for_each(|arrival| arrival.latency = latency);
            e.arrivals.records[0].latency += 1_000_000;
        }
    };
    tampered("batched, 4 ms", LOSSY, probed(4_000_000), &[]);
    tampered(
        "batched, 0.5 ms",
        LOSSY,
        probed(500_000),
        &[("no-dip", FAIL, ">= 0.99, found 0.98")],
    );
    tampered("batched, without a dip", LOSSY, batched, &[]);
    // Without any it is not known how long the path is. Which leaves it open too whether the storm
    // arrived.
    let mut unknown = good(LOSSY);
    batched(&mut unknown);
    unknown.arrivals.records.clear();
    let no_dip = |e: &PfcEvidence| {
        results(LOSSY, e)
            .into_iter()
            .find(|result| result.check == "no-dip")
            .unwrap()
    };
    assert!(
        no_dip(&unknown)
            .assertions
            .iter()
            .all(|assertion| assertion.verdict == Verdict::Pass),
        "{:#?}",
        no_dip(&unknown)
    );
    dip(&mut unknown, 215 * MS, 0.3);
    let found = no_dip(&unknown);
    let open = found
        .assertions
        .iter()
        .find(|assertion| assertion.verdict != Verdict::Pass)
        .unwrap();
    assert_eq!(
        (found.verdict, open.verdict),
        (INCONCLUSIVE, INCONCLUSIVE),
        "{found:#?}"
    );
    assert!(
        open.actual.contains("latency of the path is not known"),
        "{found:#?}"
    );
}
