//! The simulated switch on real frames: without a fault no check fails, and with a fault exactly
//! its checks do.

use std::path::Path;

use validator::report;
use validator_core::evidence::Repetition;

use crate::run::lab::{Lab, cases_with, of_repository};
use crate::run::outcome::set;
use crate::run::settle;

/// Traffic in the storm phase, unless a fault needs more.
const TRAFFIC: &str = "250ms";

/// Runs a switch with `faults` until each of `expected` has failed, with so much traffic in the
/// storm phase. Those of `possible` may fail, and no others.
fn expect(test: &str, faults: &[&str], traffic: &str, expected: &[&str], possible: &[&str]) {
    let Some(lab) = Lab::new(test) else { return };
    let testbed = of_repository("configs/testbeds/sim.toml");
    settle::until_all_fail(test, expected, possible, |cases| {
        let plan = lab.file("plan.toml", &cases_with(traffic, cases));
        let out = lab.out();
        // Arguments are split at spaces.
        let listed = format!("{faults:?}").replace(", ", ",");
        // Cases that an attempt leaves open are run again alone.
        let set_faults =
            format!("--set testbed.dut.faults={listed} --set testbed.limits.attempts=1");
        let run = lab.run(&format!(
            "run --testbed {testbed} --plan {plan} --out {} --format json {set_faults}",
            out.display()
        ));
        lab.assert_nothing_is_left();
        (run, hindrances(&out))
    });
}

/// Disturbances of the tester and the simulated DUT by the machine, to explain a wrong verdict.
fn hindrances(out: &Path) -> String {
    let mut text = String::new();
    for case in report::read_evidence(out).unwrap().cases {
        for measured in case.repetitions.iter().filter_map(Repetition::pfc) {
            let dut = measured.dut.as_ref().unwrap();
            text += &format!(
                "{} {}: sender stalls {:?}, octets after XOFF {:?}, DUT stalls {:?}, drops {:?}, \
                 XOFF {:?}\n",
                case.case,
                measured.plan.name,
                measured.sender.stalls,
                measured.sender.after_xoff,
                dut.stalls,
                dut.model_drops,
                dut.xoff_sent
            );
        }
    }
    text
}

macro_rules! faults {
    ($(
        $test:ident: $($fault:literal),+ $(; for $traffic:literal)? => [$($expected:literal),* $(,)?]
            $(or [$($possible:literal),* $(,)?])?;
    )*) => {
        $(#[test]
        fn $test() {
            let (expected, possible) = (&[$($expected),*], &[$($($possible),*)?]);
            let traffic = [$($traffic,)? TRAFFIC][0];
            expect(stringify!($test), &[$($fault),+], traffic, expected, possible);
        })*
    };
}

faults! {
    root_ignores_pfc: "ignores-pfc" => [
        "single paused", "single response", "multi paused", "multi response",
    ];
    root_loses_held: "loses-held" => [
        "single delivered", "multi delivered", "lossy background", "global no-loss",
    ];
    root_ignores_xon: "ignores-xon" => ["single xon", "multi xon"];
    root_obeys_pause: "obeys-pause" => [
        "global no-loss", "global throughput", "global no-dip", "global no-delay",
    ];
    // One in 8 of seven priorities is more than 100 ms can miss at its edge: 1 % is tolerated, a
    // sender without room catches up by a burst of 4 ms, and a stall of 1 ms leaves nothing out.
    root_drops_lossy: "drops=lossy:8" => [
        "single background", "single no-dip", "multi background", "multi no-dip",
        "lossy test-traffic", "lossy no-dip", "global no-loss", "global throughput",
        "global no-dip",
    ];
    // A shortfall in a window also shows as latency, and may be attributed to the path.
    // What the line does not carry fills the buffers, and an XOFF may withhold it.
    root_throttles: "throttles" => ["global throughput"] or [
        "single resume", "single no-dip", "multi resume", "multi isolation", "multi no-dip",
        "lossy background", "lossy no-dip", "lossy no-delay", "global no-dip", "global no-delay",
    ];
    // 20 ms in 250. A DUT that makes good for a dip afterwards shows it only in the 100 ms that end
    // with the dip. Phases of less than 380 ms may have no such 100 ms. Where it meets the end of a
    // pause, what should go then waits.
    root_dips: "dips"; for "500ms" => ["lossy no-dip", "global throughput"] or [
        "single lets-go", "single resume", "single response", "single xon", "single no-dip",
        "multi lets-go", "multi resume", "multi response", "multi xon", "multi isolation",
        "multi no-dip", "lossy background", "lossy no-delay", "global no-dip", "global no-delay",
    ];
    // Each has a check of its own that looks at single frames: one run shows all.
    root_wrong_frames: "duplicates", "corrupts", "remarks", "reflects", "forwards-control" => [
        "single no-duplicate", "multi no-duplicate", "lossy no-duplicate", "global no-duplicate",
        "single no-corruption", "multi no-corruption", "lossy no-corruption",
        "global no-corruption", "single no-remark", "multi no-remark", "lossy no-remark",
        "global no-remark", "single no-mac-control-forwarded", "multi no-mac-control-forwarded",
        "lossy no-mac-control-forwarded", "global no-mac-control-forwarded",
        "single no-reflection", "multi no-reflection", "lossy no-reflection",
        "global no-reflection",
    ];
}

/// In the same run the other vectors find nothing wrong.
#[test]
fn root_zero_vector_names_all() {
    let test = "root_zero_vector_names_all";
    let Some(lab) = Lab::new(test) else { return };
    let testbed = of_repository("configs/testbeds/sim.toml");
    settle::until_all_fail(test, &["enable ignored", "enable no-dip"], &[], |_| {
        let out = lab.out();
        let run = lab.run(&format!(
            "run --testbed {testbed} --plan pfc-further --out {} --format json --set \
             testbed.dut.faults=[\"zero-vector-names-all\"] --set testbed.limits.attempts=1 --set \
             plan.durations.baseline=500ms --set plan.durations.traffic=500ms",
            out.display()
        ));
        lab.assert_nothing_is_left();
        (run, hindrances(&out))
    });
}

/// It ends pauses at a time of 0, as it should.
#[test]
fn root_zero_pauses_idle() {
    let test = "root_zero_pauses_idle";
    let Some(lab) = Lab::new(test) else { return };
    let testbed = of_repository("configs/testbeds/sim.toml");
    let expected = ["zero ignored", "zero no-dip", "zero resumes"];
    settle::until_all_fail(test, &expected, &[], |_| {
        let out = lab.out();
        let run = lab.run(&format!(
            "run --testbed {testbed} --plan pfc-further --case pfc.zero-time --out {} --format \
             json --set testbed.dut.faults=[\"zero-pauses-idle\"] --set \
             testbed.limits.attempts=1 --set plan.durations.baseline=500ms --set \
             plan.durations.traffic=500ms",
            out.display()
        ));
        lab.assert_nothing_is_left();
        (run, hindrances(&out))
    });
}

/// Mistakes with timers and with the form of frames, each of which one case finds.
#[test]
fn root_probes() {
    let test = "root_probes";
    let Some(lab) = Lab::new(test) else { return };
    let testbed = of_repository("configs/testbeds/sim.toml");
    for (fault, case, expected) in [
        ("shares-timer", "independent-times", "independent own-time"),
        ("misplaces-dscp", "class-map", "class map"),
        ("leaks-for-long", "sizes", "sizes paused"),
        ("keeps-longer", "timer-reload", "timer replaced"),
        ("half-ethertype", "invalid-frames", "invalid ignored"),
        ("wants-source", "source-address", "source pauses"),
        ("pauses-longer=2", "pause-time", "time linear"),
        ("pfc-long", "generation", "generation well-formed"),
        ("slow-at-times", "response-time", "response response"),
        ("asks-early", "no-congestion", "congestion silent"),
    ] {
        // That case has a baseline of its own.
        let shorter = match case {
            "class-map" => "",
            _ => "--set plan.durations.baseline=300ms ",
        };
        settle::until_all_fail(test, &[expected], &[], |_| {
            let out = lab.out();
            let run = lab.run(&format!(
                "run --testbed {testbed} --plan pfc-further --case pfc.{case} --out {} --format \
                 json --set testbed.dut.faults=[\"{fault}\"] --set testbed.limits.attempts=1 \
                 {shorter}--set testbed.facts.zero_source=true",
                out.display()
            ));
            lab.assert_nothing_is_left();
            (run, hindrances(&out))
        });
    }
}

/// Four ports: a good switch, and each fault of the cases that want them.
#[test]
fn root_oversubscription() {
    let faults = [
        ("asks-first-port", "oversubscription asks-each"),
        ("asks-all-ports", "oversubscription asks-no-other"),
    ];
    of_further_ports(
        "root_oversubscription",
        "pfc.oversubscription",
        &[],
        &faults,
    );
}

#[test]
fn root_victim() {
    // With one lossless priority there is no other.
    let open = ["victim isolation"];
    let faults = [
        ("pauses-all-ports", "victim victim"),
        ("floods", "victim no-reflection"),
    ];
    of_further_ports("root_victim", "pfc.victim", &open, &faults);
}

/// A good switch passes, but for checks without a subject, and each fault fails its check.
fn of_further_ports(test: &str, case: &str, no_subject: &[&str], faults: &[(&str, &'static str)]) {
    let Some(lab) = Lab::new(test) else { return };
    let testbed = of_repository("configs/testbeds/sim-four-ports.toml");
    let run = |set: &str| {
        let out = lab.out();
        let run = lab.run(&format!(
            "run --testbed {testbed} --plan pfc-further --case {case} --out {} \
             --format json --set testbed.limits.attempts=1{set}",
            out.display()
        ));
        lab.assert_nothing_is_left();
        (run, hindrances(&out))
    };
    let (good, _) = run("");
    let report = good.report();
    let reasons = report.reasons("fail");
    assert_eq!(report.checks("fail"), set(&[]), "{reasons}");
    assert_eq!(report.checks("not-applicable"), set(no_subject));
    for (fault, expected) in faults.iter().copied() {
        let set = format!(" --set testbed.dut.faults=[\"{fault}\"]");
        settle::until_all_fail(test, &[expected], &[], |_| run(&set));
    }
}

#[test]
fn root_a_good_switch_fails_nothing() {
    let Some(lab) = Lab::new("root_a_good_switch_fails_nothing") else {
        return;
    };
    let testbed = of_repository("configs/testbeds/sim.toml");
    let run = lab.run(&format!(
        "run --testbed {testbed} --plan smoke --format json"
    ));
    let report = run.report();
    assert_eq!(
        report.checks("fail"),
        set(&[]),
        "{}",
        report.reasons("fail")
    );
    assert_eq!(
        report.checks("skipped"),
        set(&[]),
        "{}",
        report.reasons("skipped")
    );
    let verdict = report.0["verdict"].as_str().unwrap();
    assert!(
        matches!(
            (run.code, verdict),
            (Some(0), "pass") | (Some(3), "inconclusive")
        ),
        "{verdict}, exit code {:?}",
        run.code
    );
    lab.assert_nothing_is_left();
}
