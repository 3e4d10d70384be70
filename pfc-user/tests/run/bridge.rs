//! A device that is not simulated: a Linux bridge, which does not support PFC.

use crate::run::lab::{Lab, of_repository};
use crate::run::settle;

#[test]
fn root_a_linux_bridge_fails_the_cases_on_lossless_priorities_and_no_other() {
    let test = "root_a_linux_bridge_fails_the_cases_on_lossless_priorities_and_no_other";
    let Some(lab) = Lab::new(test) else { return };
    let testbed = of_repository("configs/testbeds/bridge.toml");
    let expected = [
        "single paused",
        "single response",
        "multi paused",
        "multi response",
    ];
    settle::until_all_fail(test, &expected, &[], |_| {
        let run = lab.run(&format!(
            "run --testbed {testbed} --plan smoke --format json"
        ));
        lab.assert_nothing_is_left();
        (run, String::new())
    });
}
