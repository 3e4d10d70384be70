//! Rates, dips and last frames, and what lateness of the tester explains of them.

use super::*;

#[test]
fn a_stall_excuses_what_came_later_by_no_more_than_that() {
    let late = |stall: Nanos, by: Nanos| {
        move |e: &mut PfcEvidence| {
            let end = e.storm.as_ref().unwrap().last.before + PAUSE - TOLERANCE;
            let flow = flow(e, Role::Background);
            received(e, flow, Phase::Storm).last = end + by;
            dut(e).stalls.push(Stall { from: end - stall, to: end });
        }
    };
    tampered("in time", SINGLE, late(2 * MS, 0), &[]);
    tampered("late by the stall", SINGLE, late(2 * MS, 2 * MS), &[("background", INCONCLUSIVE, "stalled for 2.000 ms")]);
    tampered("later than the stall", SINGLE, late(2 * MS, 2 * MS + 1), &[("background", FAIL, "while the storm still runs")]);
    // The bounded wait.
    let after_wait = |stall: Nanos, by: Nanos| {
        move |e: &mut PfcEvidence| {
            let flow = flow(e, Role::Test);
            let end = e.span(Phase::Drain).unwrap().to;
            received(e, flow, Phase::Storm).last = end + by;
            e.sender.stalls.push(Stall { from: end - stall, to: end });
        }
    };
    tampered("after the wait by the stall", SINGLE, after_wait(MS, MS), &[("delivered", INCONCLUSIVE, "stalled for 1.000 ms")]);
    let mut failed = AFTER_DELIVERED.to_vec();
    failed.push(("delivered", FAIL, "within the wait"));
    tampered("after the wait", SINGLE, after_wait(MS, MS + 1), &failed);
}

/// Window of 10 ms in which `share` of all that should have arrived does not, from `start` of the storm phase on.
fn dip(e: &mut PfcEvidence, start: Nanos, share: f64) {
    let from = e.span(Phase::Storm).unwrap().from + start;
    let window = ((from - e.windows.epoch) / e.windows.width) as usize + 1;
    for frames in &mut e.windows.received[window] {
        *frames -= (f64::from(*frames) * share).ceil() as u32;
    }
}

#[test]
fn a_dip_fails_wherever_it_is_unless_the_tester_explains_it() {
    for start in [5, 95, 215, 375] {
        tampered(&format!("a dip at {start} ms"), LOSSY, |e| dip(e, start * MS, 0.3), &[("no-dip", FAIL, ">= 0.99, found 0.9")]);
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
            e.sender.stalls_left_out = LeftOut { count: 7, total: 5 * MS, from, to: from + 50 * MS };
        }
    };
    let told = "stalled for 5.000 ms in all, 7 times more than there was room to list";
    tampered("a stall that may be in the window", LOSSY, unlisted(190 * MS), &[("no-dip", INCONCLUSIVE, told)]);
    tampered("stalls that are not in the window", LOSSY, unlisted(340 * MS), &[("no-dip", FAIL, "")]);
    tampered("a dip across windows", LOSSY, straddling, &[("no-dip", FAIL, ">= 0.99, found 0.98")]);
    let stalled = |e: &mut PfcEvidence| {
        dip(e, 215 * MS, 0.3);
        let from = e.span(Phase::Storm).unwrap().from + 216 * MS;
        e.sender.stalls.push(Stall { from, to: from + 600_000 });
    };
    tampered("a stall in the window", LOSSY, stalled, &[("no-dip", INCONCLUSIVE, "stalled for 0.600 ms")]);
    let elsewhere = |e: &mut PfcEvidence| {
        dip(e, 335 * MS, 0.3);
        let from = e.span(Phase::Storm).unwrap().from + 100 * MS;
        e.sender.stalls.push(Stall { from, to: from + 600_000 });
    };
    tampered("a stall in another window", LOSSY, elsewhere, &[("no-dip", FAIL, "")]);
    let bursty = |e: &mut PfcEvidence| {
        dip(e, 215 * MS, 0.3);
        e.sender.max_burst = 4 * MS;
    };
    tampered("a late burst", LOSSY, bursty, &[("no-dip", INCONCLUSIVE, "explains it")]);
    tampered(
        "a baseline dip",
        LOSSY,
        |e| {
            let from = e.span(Phase::Baseline).unwrap().from + 60 * MS;
            let window = ((from - e.windows.epoch) / e.windows.width) as usize;
            e.windows.received[window] = [0; 8];
        },
        &[("no-dip", FAIL, "phase Baseline")],
    );
    let none = |e: &mut PfcEvidence| e.windows.offered.iter_mut().for_each(|window| *window = [0; 8]);
    tampered("nothing offered", LOSSY, none, &[("no-dip", INCONCLUSIVE, "windows of 100 ms with traffic")]);
    let few = |e: &mut PfcEvidence| e.windows.received.truncate(2);
    tampered("windows that were not counted in", LOSSY, few, &[("no-dip", INCONCLUSIVE, "some were not counted in")]);
}

#[test]
fn throughput_is_what_arrived_and_lateness_of_the_tester_never_makes_it_more() {
    // All arrives, but the last of it late.
    let late = |by: Nanos, stall: Nanos| {
        move |e: &mut PfcEvidence| {
            let data = e.span(Phase::Storm).unwrap();
            let flow = flow(e, Role::Test);
            received(e, flow, Phase::Storm).last = data.to + by;
            e.sender.stalls.push(Stall { from: data.from, to: data.from + stall });
        }
    };
    tampered("1 % late", GLOBAL, late(4 * MS, 0), &[]);
    tampered("2 % late", GLOBAL, late(8 * MS, 0), &[("throughput", FAIL, "0.98")]);
    tampered("2 % late after a stall", GLOBAL, late(8 * MS, 8 * MS), &[("throughput", INCONCLUSIVE, "explains it")]);
    tampered("4 % late after a stall", GLOBAL, late(16 * MS, 8 * MS), &[("throughput", FAIL, "0.96")]);
    let unlisted = |e: &mut PfcEvidence| {
        late(8 * MS, 4 * MS)(e);
        let data = e.span(Phase::Storm).unwrap();
        e.sender.stalls_left_out = LeftOut { count: 3, total: 4 * MS, from: data.from, to: data.to };
    };
    tampered("2 % late after stalls of which some are not listed", GLOBAL, unlisted, &[("throughput", INCONCLUSIVE, "explains it")]);
    // What comes at once after a stall, or while the simulated DUT stalls, is withheld by an XOFF.
    let withheld = |stall: Nanos| {
        move |e: &mut PfcEvidence| {
            withhold(e, 3, 100 * MS);
            dut(e).stalls.push(Stall { from: 0, to: stall });
        }
    };
    // 1 % of the line's 400 ms are 32 ms of an eighth of it.
    tampered("withheld after a stall", GLOBAL, withheld(72 * MS), &[("throughput", INCONCLUSIVE, "explains it")]);
    tampered("withheld for longer than stalls explain", GLOBAL, withheld(60 * MS), &[("throughput", FAIL, "0.96")]);
    let nothing = |e: &mut PfcEvidence| {
        e.sender.flows.retain(|sent| sent.phase != Phase::Storm);
        e.received.retain(|received| received.phase != Phase::Storm);
    };
    let expected = [("no-loss", INCONCLUSIVE, "missed its rate"), ("throughput", INCONCLUSIVE, "missed its rate")];
    tampered("nothing sent", GLOBAL, nothing, &expected);
}
