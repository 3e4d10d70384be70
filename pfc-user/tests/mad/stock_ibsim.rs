//! Stock ibsim as an independent device: it knows no M_Key, and has a linear forwarding table.

use crate::common;
use crate::mad::fabric::Fabric;
use crate::mad::{Folder, case, checks};

#[test]
fn stock_ibsim_gets_the_verdicts_that_it_deserves() {
    if !common::need_tool("stock_ibsim_gets_the_verdicts_that_it_deserves", "ibsim") {
        return;
    }
    let folder = Folder::new();
    let fabric = Fabric::stock(folder.0.path());
    let testbed = folder.file("t.toml", &fabric.testbed(""));
    let ended = folder.run(&testbed, "--plan mad");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let report = folder.report();
    let table = case(&report, "mad.c14-024-10-01");
    assert_eq!(table["verdict"], "not-applicable");
    let keys = case(&report, "mad.c14-016-get");
    let accepted_and_not_done = ["key-set", "own-key-value"];
    let failing = accepted_and_not_done
        .iter()
        .flat_map(|check| (0..4).map(move |bits| format!("{check} [protect-bits-{bits}]")));
    assert_eq!(checks(keys, "fail"), failing.collect(), "{ended:?}");
    // Its Gets with M_KEY_DUT are answered, and those with another key were not reached.
    let assertions = keys["assertions"].as_array().unwrap();
    let verdict = |id: &str| {
        let found = assertions.iter().find(|found| found["id"] == id);
        &found.unwrap()["verdict"]
    };
    assert_eq!(verdict("v1c14-029#01.01"), "inconclusive");
    assert_eq!(verdict("v1c14-016#01.01"), "fail");
}
