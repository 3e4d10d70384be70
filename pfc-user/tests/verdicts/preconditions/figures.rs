//! Figures that are reported beside the verdicts, worked out by hand.

use pfc_ebpf::wire::Malformed;

use super::*;

/// The value of a figure; `None` where it is not reported.
fn figure(e: &PfcEvidence, name: &str) -> Option<String> {
    let figures = bench::case(SINGLE).judge(e).figures.into_iter();
    let mut values = figures.filter(|figure| figure.name == name);
    let value = values.next().map(|figure| figure.value);
    assert_eq!(values.next(), None, "{name}");
    value
}

#[test]
fn rates_of_the_storm_phase_are_those_of_its_whole_windows() {
    let mut e = good(SINGLE);
    let data = e.span(Phase::Storm).unwrap();
    assert_eq!(data.to - data.from, 400 * MS);
    // Window 20 begins before the phase, and window 60 ends after it.
    let whole = 21..60;
    let frames = |lossy: u32, lossless: u32| {
        let mut window = [0; 8];
        (window[0], window[3]) = (lossy, lossless);
        window
    };
    let mut offered = vec![[9000; 8]; 70];
    offered[whole.clone()].fill(frames(700, 300));
    let mut received = vec![[9000; 8]; 70];
    received[whole].fill(frames(250, 0));
    received[30..35].fill(frames(0, 100));
    e.windows = Windows {
        epoch: data.from - 203 * MS,
        width: 10 * MS,
        offered,
        received,
    };
    // A frame takes 8384 bits: 1000 of them in each 10 ms; 34 * 250 and 5 * 100 in 390 ms; and
    // 5 * 250 and 5 * 100 in 100 ms.
    for (name, value) in [
        (
            "offered in the storm phase",
            "838.4 Mbit/s, 83.8 % of the link",
        ),
        (
            "received in the storm phase",
            "193.5 Mbit/s, 19.3 % of the link",
        ),
        (
            "least received in 100 ms of the storm phase",
            "14.7 % of the link",
        ),
    ] {
        assert_eq!(figure(&e, name).as_deref(), Some(value), "{name}");
    }
}

#[test]
fn frames_of_the_storm_phase_that_came_after_it_are_told_as_held() {
    let mut e = good(SINGLE);
    let (test, end) = (flow(&e, Role::Test), e.span(Phase::Storm).unwrap().to);
    let arrival = |time, phase| Arrival {
        time,
        flow: test,
        phase,
        latency: 1000,
    };
    e.arrivals.records = vec![
        arrival(end - MS, Phase::Storm),
        arrival(end, Phase::Storm),
        arrival(end + 1, Phase::Storm),
        arrival(end + 5 * MS, Phase::Storm),
        arrival(end + 6 * MS, Phase::Resume),
    ];
    let name = "held in the storm phase and received later";
    assert_eq!(figure(&e, name).as_deref(), Some("2 frames"));
    e.arrivals.lost = 1;
    assert_eq!(figure(&e, name).as_deref(), Some("at least 2 frames"));
    e.arrivals.records.truncate(2);
    assert_eq!(figure(&e, name), None);
}

#[test]
fn frames_of_other_senders_are_counted_at_both_ports() {
    let at = |port: &str| format!("frames of other senders or runs at the {port} port");
    let mut e = good(SINGLE);
    for port in ["tx", "rx"] {
        assert_eq!(figure(&e, &at(port)), None);
    }
    e.ports.tx.counts.other = 7;
    // One of four that could not be read was a test frame.
    (e.ports.rx.counts.foreign_run, e.ports.rx.counts.other) = (2, 3);
    e.ports.rx.counts.malformed = vec![(Malformed::Stamp, 4)];
    e.ports.rx.counts.damaged = vec![(Malformed::Stamp, 1)];
    for (port, number) in [("tx", 7), ("rx", 8)] {
        let expected = format!("{number}; no check counts them");
        assert_eq!(figure(&e, &at(port)), Some(expected), "{port}");
    }
}
