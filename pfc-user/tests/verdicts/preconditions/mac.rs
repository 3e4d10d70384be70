//! Checks that the MAC's counters decide where the program sees no PAUSE/PFC frame.

use validator::driver::kernel::link::mac::Alive;
use validator_core::evidence::mac::MacReport;

use super::bench::mac::Driver;
use super::*;

/// A repetition on a switch with this fault, or none, with ports of that driver.
fn run_blind(case: &str, fault: &str, driver: Driver, alive: &mut Alive) -> PfcEvidence {
    let (_, lossless, storm) = REPETITIONS
        .into_iter()
        .find(|(id, ..)| *id == case)
        .unwrap();
    let faults: Vec<Fault> = fault
        .split_terminator(' ')
        .map(|fault| fault.parse().unwrap())
        .collect();
    bench::run_blind(&bench::plan(case, lossless, storm), &faults, driver, alive)
}

/// The counters that an earlier repetition of the run showed alive: case 1, in which the switch
/// sends PFC for priority 3.
fn shown_alive(driver: Driver) -> Alive {
    let mut alive = Alive::default();
    run_blind(SINGLE, "", driver, &mut alive);
    assert_ne!(alive, Alive::default());
    alive
}

/// Case 3, in which the storm and the switch's own pauses are for different priorities: those of
/// its probe, which show counters alive.
fn lossy(fault: &str, driver: Driver) -> PfcEvidence {
    run_blind(LOSSY, fault, driver, &mut Alive::default())
}

const ON_LOSSY: &str = "no-pfc-on-lossy";
const FORWARDED: &str = "no-mac-control-forwarded";
/// A MAC that keeps PAUSE frames and was not shown to count them.
const KEEPS_PAUSE: (&str, Verdict, &str) = ("no-pause", NOT_APPLICABLE, "keeps PAUSE frames");
const ALL_ENABLED: Driver = Driver::Mlx5 { enabled: 0xff };

#[test]
fn counters_shown_alive_that_stay_pass() {
    for driver in [Driver::I40e, ALL_ENABLED, Driver::DcbAlone] {
        let evidence = lossy("", driver);
        expect(&format!("{driver:?}"), LOSSY, &evidence, &[KEEPS_PAUSE]);
        let results = results(LOSSY, &evidence);
        let result = results
            .iter()
            .find(|result| result.check == ON_LOSSY)
            .unwrap();
        assert!(
            result
                .assertions
                .iter()
                .all(|assertion| assertion.what.contains("by the MAC of tx (")),
            "{result:?}"
        );
        assert!(
            result
                .assertions
                .iter()
                .all(|assertion| assertion.actual.contains(", which counts: ")),
            "{result:?}"
        );
    }
}

#[test]
fn a_rise_on_a_lossy_priority_fails_where_the_driver_tells_xoff_apart() {
    let unclear = (
        FORWARDED,
        INCONCLUSIVE,
        "a MAC's counters do not tell whose they are",
    );
    for (driver, words) in [
        (
            Driver::I40e,
            "by the MAC of tx (i40e): expected 0, found port.rx_priority_0_xoff_rx rose by",
        ),
        (
            ALL_ENABLED,
            "by the MAC of tx (mlx5_core): expected 0, found rx_prio0_pause_duration rose by",
        ),
    ] {
        for fault in ["xoff-for-lossy", "forwards-control"] {
            expect(
                fault,
                LOSSY,
                &lossy(fault, driver),
                &[(ON_LOSSY, FAIL, words), unclear, KEEPS_PAUSE],
            );
        }
    }
    for (driver, words) in [
        (Driver::DcbAlone, "indications[0] rose by"),
        (Driver::DcbAlone, "which counts XOFF and XON together"),
        (Driver::Standard, "no counter of priority 0 is known"),
        // Counted is only what is enabled.
        (
            Driver::Mlx5 { enabled: 8 },
            "not shown to count in this run",
        ),
    ] {
        expect(
            "xoff-for-lossy",
            LOSSY,
            &lossy("xoff-for-lossy", driver),
            &[(ON_LOSSY, INCONCLUSIVE, words), unclear, KEEPS_PAUSE],
        );
    }
}

/// Its counters of PFC decide nothing, for that reason.
fn neither(words: &str) -> [(&str, Verdict, &str); 3] {
    let open = |check| (check, INCONCLUSIVE, words);
    [open(ON_LOSSY), open(FORWARDED), KEEPS_PAUSE]
}

#[test]
fn counters_that_were_not_shown_alive_decide_nothing() {
    // In case 4 a good switch asks for no pause at all.
    for driver in [
        Driver::I40e,
        ALL_ENABLED,
        Driver::DcbAlone,
        Driver::Standard,
    ] {
        let dead = run_blind(GLOBAL, "", driver, &mut Alive::default());
        expect(
            "dead",
            GLOBAL,
            &dead,
            &all(
                &OF_THE_DUTS_PFC,
                INCONCLUSIVE,
                "counters of such frames was shown to count",
            ),
        );
    }
    let silent = run_blind(GLOBAL, "", Driver::Silent, &mut Alive::default());
    expect(
        "blind",
        GLOBAL,
        &silent,
        &all(
            &OF_THE_DUTS_PFC,
            INCONCLUSIVE,
            "no counter of the driver unheard-of is known that counts them",
        ),
    );
    // PFC that is enabled on another priority alone shows nothing for this one.
    let words = "not shown to count in this run";
    expect(
        "another setting",
        LOSSY,
        &lossy("", Driver::Mlx5 { enabled: 8 }),
        &neither(words),
    );
    // One counter of all kinds does not tell the probe's pauses from others.
    let words = "no counter of priority 0 is known";
    expect(
        "one counter",
        LOSSY,
        &lossy("", Driver::Standard),
        &neither(words),
    );
}

#[test]
fn a_pause_frame_of_the_storm_is_told_from_none_by_the_standard_counter_alone() {
    let evidence = |fault, driver| run_blind(GLOBAL, fault, driver, &mut shown_alive(driver));
    expect("good", GLOBAL, &evidence("", Driver::Standard), &[]);
    expect(
        "PFC alive",
        GLOBAL,
        &evidence("", Driver::I40e),
        &[
            (
                FORWARDED,
                INCONCLUSIVE,
                "0 by port.link_xoff_rx, port.link_xon_rx, not shown to count",
            ),
            KEEPS_PAUSE,
        ],
    );
    expect(
        "forwarded",
        GLOBAL,
        &evidence("forwards-control", Driver::I40e),
        &all(
            &["no-pause", FORWARDED],
            INCONCLUSIVE,
            "port.link_xoff_rx rose by",
        ),
    );
}

#[test]
fn loss_is_the_switchs_own_only_where_the_mac_shows_that_it_asked_for_no_pause() {
    let driver = Driver::I40e;
    let forwarded = (
        FORWARDED,
        INCONCLUSIVE,
        "port.rx_priority_3_xoff_rx rose by",
    );
    let good = run_blind(SINGLE, "", driver, &mut Alive::default());
    expect(
        "a good switch, whose pauses nobody obeys",
        SINGLE,
        &good,
        &[
            (
                "delivered",
                INCONCLUSIVE,
                "the DUT asked for a pause, which the sender did not obey",
            ),
            forwarded,
            KEEPS_PAUSE,
        ],
    );
    let failed = [
        (
            "delivered",
            FAIL,
            "without an XOFF (by the MAC of tx, 0 by port.rx_priority_3_xoff_rx, which counts: it \
             rose in",
        ),
        KEEPS_PAUSE,
    ];
    let never = run_blind(SINGLE, "no-upstream-pfc", driver, &mut shown_alive(driver));
    expect(
        "a switch that never asks",
        SINGLE,
        &never,
        &[&failed[..], &AFTER_DELIVERED].concat(),
    );
    let unshown = run_blind(SINGLE, "no-upstream-pfc", driver, &mut Alive::default());
    let words = "counters of such frames was shown to count";
    let mut undecided = all(&OF_THE_DUTS_PFC, INCONCLUSIVE, words);
    undecided.push(("delivered", INCONCLUSIVE, words));
    expect(
        "the same, by a counter that may be dead",
        SINGLE,
        &unshown,
        &undecided,
    );
}

#[test]
fn readings_that_do_not_cover_the_repetition_are_none() {
    let good = lossy("", Driver::I40e);
    let spoilt = |spoil: fn(&mut MacReport), words: &str| {
        let mut evidence = good.clone();
        spoil(&mut evidence.mac[0]);
        let undecided = all(&OF_THE_DUTS_PFC, INCONCLUSIVE, words);
        expect(words, LOSSY, &evidence, &undecided);
    };
    let cut = "do not cover the repetition";
    spoilt(|mac| mac.lag += 1, cut);
    spoilt(|mac| mac.readings[0].time += 1_000 * MS, cut);
    spoilt(
        |mac| mac.error = Some("eth9 is gone".into()),
        "eth9 is gone",
    );
    spoilt(
        |mac| mac.port = "rx".into(),
        "there is no reading of its counters",
    );
    // Only counters that stayed are reset; the one that rose goes on to show the others alive.
    let reset = |mac: &mut MacReport| {
        let stayed = mac
            .counters
            .iter_mut()
            .filter(|counter| counter.rise() == Some(0));
        stayed.for_each(|counter| counter.values[0] += 1);
    };
    spoilt(reset, "was reset meanwhile");
    let mut fewer = good.clone();
    fewer.mac[0].counters[0].values.pop();
    assert!(
        results(LOSSY, &fewer)
            .iter()
            .all(|result| result.verdict == Verdict::Error),
        "the evidence contradicts itself"
    );
}

#[test]
fn at_the_rx_port_too_an_xoff_for_a_lossy_priority_fails() {
    let mut evidence = lossy("", Driver::I40e);
    let counter = evidence.mac[1]
        .counters
        .iter_mut()
        .find(|counter| counter.name == "port.rx_priority_5_xoff_rx")
        .unwrap();
    *counter.values.last_mut().unwrap() += 2;
    expect(
        "at rx",
        LOSSY,
        &evidence,
        &[
            (ON_LOSSY, FAIL, "port.rx_priority_5_xoff_rx rose by 2"),
            KEEPS_PAUSE,
        ],
    );
}

/// Frames of the storm that the program on the tx port saw, whose PFC its MAC swallows.
#[test]
fn frames_of_the_storm_that_the_program_saw_are_proof_whoever_counts_the_switchs_own() {
    let seen = |fault| {
        let mut evidence = lossy(fault, Driver::I40e);
        evidence.ports.tx.counts.own_control = 3;
        evidence
    };
    let forwarded = (FORWARDED, FAIL, "seen at the tx port: expected 0, found 3");
    expect("forwarded", LOSSY, &seen(""), &[forwarded, KEEPS_PAUSE]);
    // Frames that the MAC counted may be those.
    let unclear = "but 3 frames of the storm came in there too";
    expect(
        "forwarded, and counted for lossy priorities",
        LOSSY,
        &seen("xoff-for-lossy"),
        &[(ON_LOSSY, INCONCLUSIVE, unclear), forwarded, KEEPS_PAUSE],
    );
    // At the rx port they are not.
    let mut at_rx = seen("");
    let counter = at_rx.mac[1]
        .counters
        .iter_mut()
        .find(|counter| counter.name == "port.rx_priority_5_xoff_rx")
        .unwrap();
    *counter.values.last_mut().unwrap() += 2;
    let reason = "port.rx_priority_5_xoff_rx rose by 2";
    expect(
        "at rx",
        LOSSY,
        &at_rx,
        &[(ON_LOSSY, FAIL, reason), forwarded, KEEPS_PAUSE],
    );
}

#[test]
fn where_every_priority_is_lossless_there_is_none_that_an_xoff_is_wrong_for() {
    let mut evidence = good(GLOBAL);
    evidence.plan.lossless = Priority::all().collect();
    let found = results(GLOBAL, &evidence);
    let result = found
        .iter()
        .find(|result| result.check == ON_LOSSY)
        .unwrap();
    assert_eq!(result.verdict, Verdict::NotApplicable, "{result:?}");
}
