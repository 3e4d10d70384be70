//! A device that is no simulation: a Linux bridge, which knows nothing of PFC.

use crate::lab::{Lab, of_repository};
use crate::outcome::set;

#[test]
fn root_a_linux_bridge_fails_the_cases_on_lossless_priorities_and_no_other() {
    let Some(lab) = Lab::new("root_a_linux_bridge_fails_the_cases_on_lossless_priorities_and_no_other") else { return };
    let testbed = of_repository("configs/testbeds/bridge.toml");
    let run = lab.run(&format!("run --testbed {testbed} --plan smoke --format json"));
    let report = run.report();
    let expected = ["single paused", "single response", "multi paused", "multi response"];
    assert_eq!(report.checks("fail"), set(&expected), "{}", report.reasons("fail"));
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    for (case, verdicts) in [
        ("pause-single-lossless", ["fail", "fail"]),
        ("pause-multi-lossless", ["fail", "fail"]),
        ("pause-lossy", ["pass", "inconclusive"]),
        ("global-pause", ["pass", "inconclusive"]),
    ] {
        let verdict = report.case(case)["verdict"].as_str().unwrap();
        assert!(verdicts.contains(&verdict), "{case}: {verdict}");
    }
    lab.assert_nothing_is_left();
}
