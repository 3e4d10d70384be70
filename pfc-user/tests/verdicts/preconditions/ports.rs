//! Carrier, speed and watchdog, and whether PFC of the DUT can be seen.

use super::*;

#[test]
fn ports_explain_whatever_rests_on_pauses_and_arrivals() {
    let tampers: [(&str, Tamper, &str); 7] = [
        (
            "an unknown watchdog",
            |e| e.watchdog = None,
            "ports: it is not known that the DUT's PFC watchdog is off",
        ),
        (
            "a watchdog",
            |e| e.watchdog = Some("on".into()),
            "ports: the DUT's PFC watchdog is on",
        ),
        (
            "no carrier at tx",
            |e| e.ports.tx.carrier = false,
            "ports: tx had no carrier",
        ),
        (
            "no carrier at rx",
            |e| e.ports.rx.carrier = false,
            "ports: rx had no carrier",
        ),
        (
            "a link that changed at rx",
            |e| e.ports.rx.disturbed = Some("lost its carrier for a time".into()),
            "ports: rx lost its carrier for a time during the repetition",
        ),
        (
            "unequal speeds",
            |e| (e.ports.tx.speed, e.ports.rx.speed) = (Some(1_000_000_000), Some(2_500_000_000)),
            "ports: the ports differ in speed: tx 1000000000 bit/s, rx 2500000000 bit/s",
        ),
        (
            "another speed than quanta were reckoned by",
            |e| (e.ports.tx.speed, e.ports.rx.speed) = (Some(2_500_000_000), Some(2_500_000_000)),
            "ports: tx runs at 2500000000 bit/s, pause times were taken at 1 Gbit/s",
        ),
    ];
    for (what, tamper, words) in tampers {
        for (case, ..) in REPETITIONS {
            tampered(
                what,
                case,
                tamper,
                &all(&every_check(case), INCONCLUSIVE, words),
            );
        }
        // Leaks and losses are explained; what was sent twice is not.
        let worse = |e: &mut PfcEvidence| {
            tamper(e);
            leak(e, e.span(Phase::Storm).unwrap().from + MS);
            lose(e, Role::Background, Phase::Storm, 10);
            lose(e, Role::Test, Phase::Storm, 10);
            e.received[0].duplicate = 1;
        };
        let mut expected = all(&every_check(SINGLE), INCONCLUSIVE, words);
        expected
            .iter_mut()
            .filter(|(check, ..)| *check == "no-duplicate")
            .for_each(|line| *line = ("no-duplicate", FAIL, "found 1"));
        tampered(what, SINGLE, worse, &expected);
    }
    let known = |e: &mut PfcEvidence| {
        (e.ports.tx.speed, e.ports.rx.speed) = (Some(1_000_000_000), Some(1_000_000_000))
    };
    tampered("the speed that quanta were reckoned by", SINGLE, known, &[]);
}

#[test]
fn a_mac_that_may_obey_the_storm_itself_proves_no_obedience_of_the_device() {
    let taken = |e: &mut PfcEvidence| {
        let how = "self-test: of 8 PFC frames the program saw 0, and rx_prio3_pause rose by 8";
        e.ports.tx.takes_own_pfc = Some(how.into());
    };
    let words = "own-storm: the MAC of tx may obey the storm itself";
    for case in [SINGLE, MULTI] {
        let touched = all(
            &["paused", "lets-go", "response", "xon"],
            INCONCLUSIVE,
            words,
        );
        tampered("frames of its own", case, taken, &touched);
    }
    // Nor that the storm arrives where the device must do nothing.
    let words = "storm-arrival: the MAC of tx may obey the storm itself";
    for case in [LOSSY, GLOBAL] {
        let touched = all(on_the_storm(case), INCONCLUSIVE, words);
        tampered("frames of its own", case, taken, &touched);
    }
    // A leak shows that nobody obeyed the storm.
    let leaks = |e: &mut PfcEvidence| {
        taken(e);
        let time = e.storm.as_ref().unwrap().last.before;
        leak(e, time);
    };
    let words = "own-storm: the MAC of tx may obey the storm itself";
    let mut expected = all(&["response", "xon"], INCONCLUSIVE, words);
    expected.extend([("paused", FAIL, "1 (1 unexcused"), AFTER_PAUSED]);
    tampered("a leak beside frames of its own", SINGLE, leaks, &expected);
}

#[test]
fn where_pfc_of_the_device_cannot_be_seen_its_absence_proves_nothing() {
    let unseen = all(
        &OF_THE_DUTS_PFC,
        INCONCLUSIVE,
        "pfc-visible: it was not shown",
    );
    for (case, ..) in REPETITIONS {
        tampered("blind", case, blind, &unseen);
    }
    // A MAC that obeys PFC may pass PAUSE frames on.
    let pause = |e: &mut PfcEvidence| {
        blind(e);
        e.ports.tx.counts.pause.xoff = 1;
    };
    let mut seen = unseen.clone();
    seen.retain(|(check, ..)| *check != "no-pause");
    seen.push(("no-pause", FAIL, "found 1"));
    tampered("blind but for a PAUSE frame", SINGLE, pause, &seen);
    let xoff = |e: &mut PfcEvidence| {
        blind(e);
        e.ports.tx.counts.pfc_frames = 1;
        e.ports.tx.counts.pfc[6].xoff = 1;
    };
    tampered(
        "an XOFF for a lossy priority",
        SINGLE,
        xoff,
        &[("no-pfc-on-lossy", FAIL, "lossy priority 6")],
    );
    let xon = |e: &mut PfcEvidence| {
        blind(e);
        e.ports.tx.counts.pfc_frames = 1;
        e.ports.tx.counts.pfc[6].xon = 1;
    };
    tampered("an XON for a lossy priority", SINGLE, xon, &[]);
    // No XOFF seen and frames of the lossless priority lost.
    let lost = |e: &mut PfcEvidence| {
        blind(e);
        lose(e, Role::Test, Phase::Storm, 5);
    };
    let mut expected = unseen.clone();
    expected.push((
        "delivered",
        INCONCLUSIVE,
        "but it was not shown that PAUSE/PFC frames reach the program on tx",
    ));
    tampered("blind, with a loss", SINGLE, lost, &expected);
    let alive = |e: &mut PfcEvidence| {
        lost(e);
        e.ports.tx.pfc_visible = Some("self-test".into());
    };
    let mut expected = AFTER_DELIVERED.to_vec();
    expected.push(("delivered", FAIL, "phase Storm"));
    tampered("a loss without XOFF", SINGLE, alive, &expected);
}
