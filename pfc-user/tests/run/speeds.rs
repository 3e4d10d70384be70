//! Low speeds on real frames, and what cannot work at a speed.

use crate::common;
use crate::run::lab::{CASES, Lab, cases_of, of_repository, plan};
use crate::run::outcome::{Outcome, Report};
use crate::run::witness::{Stillness, Witness};

/// A run, and how long the machine stood still meanwhile.
struct Run {
    test: &'static str,
    report: Report,
    stillness: Stillness,
}

/// Runs the cases of these words at that speed of the links with frames of `length` octets. No
/// check may fail.
fn run(test: &'static str, line_rate: &str, length: usize, words: &[&str]) -> Option<Run> {
    let lab = Lab::new(test)?;
    // A pause of 10 Mbit/s lasts 3.4 s, and what it held back has to drain.
    let text = cases_of(words).replace("drain_max = \"500ms\"", "drain_max = \"8s\"");
    let plan = lab.file("plan.toml", &format!("{text}[traffic]\nframe = {length}\n"));
    let testbed = of_repository("configs/testbeds/sim.toml");
    let witness = Witness::begin();
    let run = lab.start(&format!(
        "--testbed {testbed} --plan {plan} --set testbed.ports.line_rate=\"{line_rate}\""
    ));
    Outcome::of(run.wait_with_output().unwrap());
    let stillness = witness.end();
    let report = Report::read(&lab.out());
    lab.assert_nothing_is_left();
    assert_eq!(report.reasons("fail"), "");
    Some(Run {
        test,
        report,
        stillness,
    })
}

/// Asserts that these checks passed: at that speed the machine has time for every frame. What it
/// left open by standing still is reported as undecided.
fn assert_passed(run: &Run, checks: &[&str]) {
    let passed = run.report.checks("pass");
    let open: Vec<&str> = checks
        .iter()
        .copied()
        .filter(|check| !passed.contains(*check))
        .collect();
    if open.is_empty() {
        return;
    }
    let inconclusive = run.report.checks("inconclusive");
    let stillness = &run.stillness;
    assert!(
        stillness.explains() && open.iter().all(|check| inconclusive.contains(*check)),
        "{open:?} did not pass, and {stillness}: {}",
        run.report.reasons("inconclusive")
    );
    common::undecided(run.test, &format!("{open:?}: {stillness}"));
}

/// Checks of case 4 that need no probe. Its witness is one of 64 flows, of which few frames come in
/// the time that the probe looks at where frames are long.
const WITHOUT_PROBE: [&str; 3] = [
    "global no-loss",
    "global no-pfc-on-lossy",
    "global no-duplicate",
];

#[test]
fn root_at_10_mbit_the_smallest_frames_fill_the_line_of_case_4() {
    let test = "root_at_10_mbit_the_smallest_frames_fill_the_line_of_case_4";
    if let Some(run) = run(test, "10M", 60, &["global"]) {
        assert_passed(&run, &WITHOUT_PROBE);
        assert_passed(&run, &["global throughput"]);
    }
}

#[test]
fn root_at_10_mbit_long_frames_of_64_flows_wait_for_each_other() {
    let test = "root_at_10_mbit_long_frames_of_64_flows_wait_for_each_other";
    if let Some(run) = run(test, "10M", 1024, &["global"]) {
        assert_passed(&run, &WITHOUT_PROBE);
    }
}

#[test]
fn root_at_100_mbit_a_good_switch_fails_nothing() {
    let test = "root_at_100_mbit_a_good_switch_fails_nothing";
    if let Some(run) = run(test, "100M", 1024, &CASES) {
        assert_passed(&run, &WITHOUT_PROBE);
        let of_others = ["single delivered", "multi paused", "lossy no-reorder"];
        assert_passed(&run, &of_others);
    }
}

#[test]
fn root_at_10_mbit_a_good_switch_obeys_pauses_of_seconds() {
    let test = "root_at_10_mbit_a_good_switch_obeys_pauses_of_seconds";
    if let Some(run) = run(test, "10M", 256, &["single", "lossy"]) {
        let of_single = ["single paused", "single delivered", "single resume"];
        assert_passed(&run, &of_single);
        assert_passed(&run, &["lossy test-traffic", "lossy no-reorder"]);
    }
}

/// A repetition that has too few frames in a phase at this speed is left out, and the other one of
/// the plan is not; where none is left, nothing is run.
#[test]
fn a_repetition_that_cannot_work_is_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let text = plan("300ms", &[("pause-lossy", "lossless = [3]")]);
    let text = text.replace("150ms", "300ms")
        + "[[case]]\nid = \"pfc.global-pause\"\nrepetitions = [{ lossless = [3, 4] }]\n\
           [traffic]\nframe = 3000\n";
    let testbed = of_repository("configs/testbeds/sim.toml");
    let dry_run = |plan: &str, speed: &str| {
        let arguments = format!(
            "run --dry-run --testbed {testbed} --plan {plan} --set testbed.ports.line_rate={speed}"
        );
        let output = std::process::Command::new(crate::run::lab::PROGRAM)
            .args(arguments.split(' '))
            .output()
            .unwrap();
        Outcome::of(output)
    };
    let both = file("both.toml", &text);
    // 64 flows of frames of 24192 bits: one each 155 ms.
    let ended = dry_run(&both, "10M");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let words = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        words.contains("pfc.pause-lossy [lossless 3] test traffic:"),
        "{words}"
    );
    assert!(
        words.contains(
            "pfc.global-pause [lossless 3+4] not done: a flow, one of 64, sends a frame each \
             154.8288ms, and has to send 2 in each phase: set durations.baseline to at least \
             309.6576ms, found 300ms; or send shorter frames (traffic.frame)"
        ),
        "{words}"
    );
    let ended = dry_run(&both, "1M");
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(2), ""),
        "{ended:?}"
    );
    assert!(
        ended
            .stderr
            .starts_with("validator: no repetition can run: a flow, one of "),
        "{ended:?}"
    );
}

#[test]
fn too_long_a_response_for_a_fast_link_is_named_before_anything_is_sent() {
    let testbed = of_repository("configs/testbeds/sim.toml");
    let is_refused = |set: &str| {
        let arguments = format!(
            "run --dry-run --testbed {testbed} --case pfc.pause-lossy \
             --set testbed.ports.line_rate=400G{set}"
        );
        let output = std::process::Command::new(crate::run::lab::PROGRAM)
            .args(arguments.split(' '))
            .output()
            .unwrap();
        let ended = Outcome::of(output);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let words = ended
            .stdout
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        words.contains(
            "no single pause can be judged: the longest pause at 400 Gbit/s is 83.884us, so that \
             a DUT that may take 1ms to obey it cannot be told from one that does not; set \
             limits.max_response to what the DUT needs, below 41.942us",
        )
    };
    // The testbed has 1ms.
    assert!(is_refused(""));
    assert!(!is_refused(" --set testbed.limits.max_response=41us"));
}
