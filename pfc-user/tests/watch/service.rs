//! The rights that `validator-watch@.service` leaves to the command.

use std::process::Command;

use crate::common::need_root;
use crate::watch::lab::Lab;

/// Any user without rights: Debian's `nobody`.
const NOBODY: &str = "65534";

/// The capabilities that the unit names, as setpriv names them.
fn capabilities() -> Vec<String> {
    let unit = include_str!("../../../configs/systemd/validator-watch@.service");
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let names = line.unwrap().split(' ');
    names
        .map(|name| name.strip_prefix("CAP_").unwrap().to_lowercase())
        .collect()
}

/// Exit code and standard error of the command as another user with these rights alone.
fn watch_with(lab: &Lab, capabilities: &[String]) -> (Option<i32>, String) {
    let set: String = capabilities
        .iter()
        .map(|name| format!(",+{name}"))
        .collect();
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid",
            NOBODY,
            "--regid",
            NOBODY,
            "--clear-groups",
            "--no-new-privs",
        ])
        .args(["inh-caps", "ambient-caps", "bounding-set"].map(|own| format!("--{own}=-all{set}")))
        // A folder that this user may enter; the program itself is opened by root's process.
        .args(["--", "/proc/self/fd/0", "watch", "t0", "--duration", "10ms"])
        .args(["--prometheus", "0"])
        .stdin(std::fs::File::open(env!("CARGO_BIN_EXE_validator")).unwrap());
    let output = lab.tester.run(|| command.output()).unwrap().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), errors)
}

#[test]
fn root_the_service_has_the_rights_that_it_needs_and_no_other() {
    if !need_root("root_the_service_has_the_rights_that_it_needs_and_no_other") {
        return;
    }
    let lab = Lab::new();
    let all = capabilities();
    assert_eq!(
        watch_with(&lab, &all).0,
        Some(0),
        "{:?}",
        watch_with(&lab, &all)
    );
    for place in 0..all.len() {
        let mut fewer = all.clone();
        let without = fewer.remove(place);
        let (code, errors) = watch_with(&lab, &fewer);
        assert_eq!(code, Some(2), "without {without}: {errors}");
    }
}
