//! The rights that `validator-otg.service` leaves to the server.

use std::fs::File;
use std::process::Command;

use serde_json::{Value, json};

use crate::common;
use crate::otg::server::{Server, config, flow, frames, ports, until};

/// Any user without rights: Debian's `nobody`.
const NOBODY: &str = "65534";

/// The capabilities that the unit names, as setpriv names them.
fn capabilities() -> Vec<String> {
    let unit = include_str!("../../../configs/systemd/validator-otg.service");
    let mut lines = unit.lines();
    let line = lines.find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let names = line.unwrap().split(' ');
    names
        .map(|name| name.strip_prefix("CAP_").unwrap().to_lowercase())
        .collect()
}

/// The program as another user with these rights alone.
fn as_nobody(capabilities: &[String]) -> Command {
    let set: String = capabilities
        .iter()
        .map(|name| format!(",+{name}"))
        .collect();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", NOBODY, "--regid", NOBODY])
        .args(["--clear-groups", "--no-new-privs"])
        .args(["inh-caps", "ambient-caps", "bounding-set"].map(|own| format!("--{own}=-all{set}")))
        // The program lies in a folder that this user may not enter; root's process opens it.
        .args(["--", "/proc/self/fd/0"])
        .stdin(File::open(env!("CARGO_BIN_EXE_validator")).unwrap());
    command
}

/// Why a server with these rights does not send 50 frames from one port to the other; `None`: it
/// does.
fn refused(capabilities: &[String]) -> Option<Value> {
    let namespace = ports();
    let journal = tempfile::tempdir().unwrap();
    let nobody = Some(NOBODY.parse().unwrap());
    std::os::unix::fs::chown(journal.path(), nobody, nobody).unwrap();
    let server = Server::of(as_nobody(capabilities), &namespace, journal.path(), &[]);
    let config = config(4000, &[flow("f", 1000, frames(50))]);
    let start = json!({"choice": "traffic", "traffic": {"flow_transmit": {"state": "start"}}});
    for (line, body) in [("POST /config", config), ("POST /control/state", start)] {
        if let Err(refusal) = server.answer(line, &body) {
            return Some(refusal);
        }
    }
    until("all frames", || server.flows()[0]["frames_rx"] == json!(50));
    server.stop();
    None
}

#[test]
fn root_the_service_has_the_rights_that_it_needs_and_no_other() {
    let test = "root_the_service_has_the_rights_that_it_needs_and_no_other";
    if !common::need_root(test) || !common::need_tool(test, "setpriv") {
        return;
    }
    let all = capabilities();
    assert_eq!(refused(&all), None);
    for place in 0..all.len() {
        let mut fewer = all.clone();
        let without = fewer.remove(place);
        // Without it frames leave late on a busy machine; nothing is refused.
        let needed = without != "sys_nice";
        assert_eq!(refused(&fewer).is_some(), needed, "without {without}");
    }
}
