//! No device at all: the tester's two ports on one cable. Its own storm reaches its own sender.

use crate::run::external::External;
use crate::run::lab::Lab;
use crate::run::settle;

#[test]
fn root_a_straight_cable_stops_nothing_and_forwards_the_storm() {
    let test = "root_a_straight_cable_stops_nothing_and_forwards_the_storm";
    let Some(mut lab) = Lab::new(test) else {
        return;
    };
    let external = External::cabled(&mut lab, "");
    let hooks = "hooks.configure = \"true\"\n";
    let testbed = lab.file("testbed.toml", &external.testbed("[3, 4]", hooks));
    let expected = [
        "single paused",
        "single response",
        "single no-mac-control-forwarded",
        "multi paused",
        "multi response",
        "multi no-mac-control-forwarded",
        "lossy no-mac-control-forwarded",
        "global no-mac-control-forwarded",
    ];
    settle::until_all_fail(test, &expected, &[], |_| {
        let run = lab.run(&format!(
            "run --testbed {testbed} --plan smoke --format json"
        ));
        lab.assert_nothing_is_left();
        (run, String::new())
    });
}
