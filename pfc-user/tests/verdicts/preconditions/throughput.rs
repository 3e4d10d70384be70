//! Rates, and what lateness of the tester explains of them.

use super::*;

#[test]
fn throughput_is_what_arrived_and_lateness_of_the_tester_never_makes_it_more() {
    // All arrives, but the last of it late.
    let late = |by: Nanos, stall: Nanos| {
        move |e: &mut PfcEvidence| {
            let data = e.span(Phase::Storm).unwrap();
            let flow = flow(e, Role::Test);
            received(e, flow, Phase::Storm).last = data.to + by;
            e.sender.stalls.push(Stall {
                from: data.from,
                to: data.from + stall,
            });
        }
    };
    tampered("1 % late", GLOBAL, late(4 * MS, 0), &[]);
    tampered(
        "2 % late",
        GLOBAL,
        late(8 * MS, 0),
        &[("throughput", FAIL, "0.98")],
    );
    tampered(
        "2 % late after a stall",
        GLOBAL,
        late(8 * MS, 8 * MS),
        &[("throughput", INCONCLUSIVE, "explains it")],
    );
    tampered(
        "4 % late after a stall",
        GLOBAL,
        late(16 * MS, 8 * MS),
        &[("throughput", FAIL, "0.96")],
    );
    let open = ("no-dip", INCONCLUSIVE, "without a long stall");
    let unlisted = |e: &mut PfcEvidence| {
        late(8 * MS, 4 * MS)(e);
        let data = e.span(Phase::Storm).unwrap();
        e.sender.stalls_left_out = LeftOut {
            count: 3,
            total: 4 * MS,
            from: data.from,
            to: data.to,
        };
    };
    tampered(
        "2 % late after stalls of which some are not listed",
        GLOBAL,
        unlisted,
        &[
            ("throughput", INCONCLUSIVE, "explains it"),
            // They may have been at any time of the phase.
            open,
            ("no-delay", INCONCLUSIVE, "without a stall"),
        ],
    );
    // An XOFF withholds what comes at once after a stall, or while the simulated DUT stalls.
    let withheld = |stall: Nanos| {
        move |e: &mut PfcEvidence| {
            withhold(e, 3, 100 * MS);
            let from = e.span(Phase::Storm).unwrap().from;
            dut(e).stalls.push(Stall {
                from,
                to: from + stall,
            });
        }
    };
    // 1 % of the line's 400 ms are 32 ms of an eighth of it.
    tampered(
        "withheld after a stall",
        GLOBAL,
        withheld(72 * MS),
        &[("throughput", INCONCLUSIVE, "explains it"), open],
    );
    tampered(
        "withheld for longer than stalls explain",
        GLOBAL,
        withheld(60 * MS),
        &[("throughput", FAIL, "0.96")],
    );
    let nothing = |e: &mut PfcEvidence| {
        e.sender.flows.retain(|sent| sent.phase != Phase::Storm);
        e.received.retain(|received| received.phase != Phase::Storm);
        let data = e.span(Phase::Storm).unwrap();
        let window = |time: Nanos| ((time - e.windows.epoch) / e.windows.width) as usize;
        let all = window(data.from)..=window(data.to);
        e.windows.offered[all.clone()].fill([0; 8]);
        e.windows.received[all].fill([0; 8]);
    };
    let mut expected = all(
        &["no-loss", "throughput", "no-dip"],
        INCONCLUSIVE,
        "missed its rate",
    );
    expected.push(("no-delay", INCONCLUSIVE, "at least 3 for some priority"));
    tampered("nothing sent", GLOBAL, nothing, &expected);
}

/// The last frame of the storm phase, of 400 ms, comes 8 ms after it: 2 % late.
fn two_percent_late(e: &mut PfcEvidence) -> PhaseSpan {
    let data = e.span(Phase::Storm).unwrap();
    let flow = flow(e, Role::Test);
    received(e, flow, Phase::Storm).last = data.to + 8 * MS;
    data
}

#[test]
fn throughput_is_excused_by_stalls_between_its_first_and_last_frame_and_no_others() {
    // From the last arrival on, and up to the first frame: neither made any of it late.
    let resumed = |e: &mut PfcEvidence| {
        let data = two_percent_late(e);
        let stall = Stall {
            from: data.to + 8 * MS,
            to: data.to + 20 * MS,
        };
        e.sender.stalls.push(stall);
        dut(e).stalls.push(stall);
        // As the simulated DUT reports it: what came late is also its largest lateness.
        dut(e).max_lateness = 12 * MS;
        e.sender.stalls_left_out = LeftOut {
            count: 2,
            total: 12 * MS,
            from: data.to + 8 * MS,
            to: data.to + 40 * MS,
        };
    };
    tampered(
        "stalls after the storm phase",
        GLOBAL,
        resumed,
        &[("throughput", FAIL, "0.98")],
    );
    let before = |e: &mut PfcEvidence| {
        let data = two_percent_late(e);
        e.sender.stalls.push(Stall {
            from: data.from - 12 * MS,
            to: data.from,
        });
        e.sender.stalls_left_out = LeftOut {
            count: 2,
            total: 12 * MS,
            from: data.from - 40 * MS,
            to: data.from,
        };
    };
    tampered(
        "stalls before it",
        GLOBAL,
        before,
        &[("throughput", FAIL, "0.98")],
    );
    // Without 4 of the 8 ms it is no more than 1 % late. Of a stall, what lies within the phase
    // counts.
    let partly = |within: Nanos| {
        move |e: &mut PfcEvidence| {
            let data = two_percent_late(e);
            e.sender.stalls.push(Stall {
                from: data.from - 50 * MS,
                to: data.from + within,
            });
        }
    };
    tampered(
        "a stall that ends in it",
        GLOBAL,
        partly(4 * MS),
        &[("throughput", INCONCLUSIVE, "up to 4.008 ms explains it")],
    );
    tampered(
        "a stall that ends early in it",
        GLOBAL,
        partly(3 * MS),
        &[("throughput", FAIL, "0.98")],
    );
    let waiting = |e: &mut PfcEvidence| {
        let data = two_percent_late(e);
        dut(e).stalls.push(Stall {
            from: data.to + 2 * MS,
            to: data.to + 60 * MS,
        });
    };
    tampered(
        "a stall before its last frame",
        GLOBAL,
        waiting,
        &[("throughput", INCONCLUSIVE, "up to 6.008 ms explains it")],
    );
    // Nor does a stall explain what an XOFF withheld before it, or in a phase before it.
    let withheld = |after_begin: Nanos| {
        move |e: &mut PfcEvidence| {
            let data = e.span(Phase::Storm).unwrap();
            withhold(e, 3, 100 * MS);
            let from = data.from + after_begin;
            e.sender.stalls.push(Stall {
                from,
                to: from + 72 * MS,
            });
        }
    };
    let failed = ("throughput", FAIL, "0.96");
    let open = ("no-dip", INCONCLUSIVE, "without a long stall");
    for (begin, expected) in [(100 * MS, &[failed, open][..]), (400 * MS + MS, &[failed])] {
        tampered("withheld before a stall", GLOBAL, withheld(begin), expected);
    }
    tampered(
        "withheld, and a stall in it",
        GLOBAL,
        withheld(20 * MS),
        &[("throughput", INCONCLUSIVE, "explains it"), open],
    );
}

#[test]
fn what_stalls_at_the_same_time_is_late_once() {
    // Two workers and the simulated DUT. Added up they would be 7 ms, which explains more than the
    // 4 ms that it takes.
    let together = |apart: Nanos| {
        move |e: &mut PfcEvidence| {
            let data = two_percent_late(e);
            let at = |from: Nanos, to: Nanos| Stall {
                from: data.from + from,
                to: data.from + to,
            };
            e.sender
                .stalls
                .extend([at(10 * MS, 12 * MS), at(10 * MS, 12 * MS)]);
            dut(e)
                .stalls
                .extend([at(11 * MS, 13 * MS), at(12 * MS + apart, 13 * MS + apart)]);
        }
    };
    tampered(
        "stalls of 3 ms in all",
        GLOBAL,
        together(0),
        &[("throughput", FAIL, "0.98")],
    );
    tampered(
        "stalls of 4 ms in all",
        GLOBAL,
        together(MS),
        &[("throughput", INCONCLUSIVE, "up to 4.008 ms explains it")],
    );
    // So it is with those that are not listed: no more of them than there was time between their
    // first and last.
    let unlisted = |long: Nanos| {
        move |e: &mut PfcEvidence| {
            let data = two_percent_late(e);
            e.sender.stalls_left_out = LeftOut {
                count: 4,
                total: 2 * long,
                from: data.from + MS,
                to: data.from + MS + long,
            };
        }
    };
    tampered(
        "not listed, 3 ms in all",
        GLOBAL,
        unlisted(3 * MS),
        &[("throughput", FAIL, "0.98")],
    );
    tampered(
        "not listed, 4 ms in all",
        GLOBAL,
        unlisted(4 * MS),
        &[("throughput", INCONCLUSIVE, "up to 4.008 ms explains it")],
    );
}
