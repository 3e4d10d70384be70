//! A server that is killed while it sends: what it leaves, and what puts it back.

use std::fs;
use std::path::Path;

use serde_json::json;
use validator::driver::bpf::XdpMode;
use validator::driver::bpf::flow::FlowProgram;
use validator::driver::kernel::link;
use validator::driver::kernel::netns::Namespace;
use validator::evidence::preflight::FeatureFact;

use crate::common;
use crate::server::{MTU, Server, ports, run, until};

/// What the configuration asks for.
const LONG: u32 = 4000;

/// What a run may change of a port.
#[derive(Debug, PartialEq)]
struct Settings {
    up: bool,
    mtu: u32,
    features: Vec<FeatureFact>,
}

fn settings(namespace: &Namespace) -> [Settings; 2] {
    ["a", "b"].map(|port| {
        let state = link::state(namespace, port).unwrap();
        Settings {
            up: state.up,
            mtu: state.mtu,
            features: link::features(namespace, port).unwrap(),
        }
    })
}

/// True if a program can be attached to each port: none is.
fn is_free(namespace: &Namespace) -> bool {
    let attach = |port: &str| FlowProgram::attach(port, XdpMode::Auto, 1).is_ok();
    ["a", "b"]
        .into_iter()
        .all(|port| namespace.run(|| attach(port)).unwrap())
}

/// Has a server send, and take a link down, and kills it.
fn kill_one(namespace: &Namespace, journal: &Path) {
    let server = Server::start(namespace, journal);
    let flow = json!({
        "name": "endless",
        "tx_rx": {"choice": "port", "port": {"tx_name": "a", "rx_names": ["b"]}},
        "packet": [{"choice": "ethernet"}, {"choice": "ipv4"}, {"choice": "udp"}],
        "size": {"choice": "fixed", "fixed": 1024},
        "metrics": {"enable": true},
    });
    let config = json!({
        "ports": [{"name": "a", "location": "a"}, {"name": "b", "location": "b"}],
        "layer1": [{"name": "l", "port_names": ["a", "b"], "speed": "speed_1_gbps", "mtu": LONG}],
        "flows": [flow],
    });
    server.request("POST /config", &config);
    let start = json!({"choice": "traffic", "traffic": {"flow_transmit": {"state": "start"}}});
    server.request("POST /control/state", &start);
    until("frames", || {
        let metrics = server.request("POST /monitor/metrics", &json!({"choice": "flow"}));
        metrics["flow_metrics"][0]["frames_rx"].as_u64() > Some(10)
    });
    let link = json!({"choice": "port", "port": {"choice": "link",
        "link": {"port_names": ["b"], "state": "down"}}});
    server.request("POST /control/state", &link);
    assert!(!is_free(namespace), "the server's programs count");
    server.kill();
}

/// Entries of what is to be put back.
fn entries(journal: &Path) -> usize {
    let files = fs::read_dir(journal).unwrap().flatten();
    let files = files.filter(|file| file.path().extension().is_some_and(|end| end == "json"));
    files.count()
}

#[test]
fn root_a_killed_server_leaves_no_program_and_its_settings_are_put_back() {
    let test = "root_a_killed_server_leaves_no_program_and_its_settings_are_put_back";
    if !common::need_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (namespace, journal) = (ports(), folder.path());
    let found = settings(&namespace);
    assert_eq!((found[0].mtu, found[0].up, found[1].up), (MTU, true, true));

    kill_one(&namespace, journal);
    until("both ports without a program", || is_free(&namespace));
    let left = settings(&namespace);
    assert_eq!((left[0].mtu, left[1].up), (LONG, false));
    let undone = run(&namespace, journal, &["check", "--undo"]);
    assert!(undone.status.success(), "{undone:?}");
    assert_eq!(settings(&namespace), found);
    assert_eq!(entries(journal), 0);

    kill_one(&namespace, journal);
    until("both ports without a program", || is_free(&namespace));
    assert_ne!(settings(&namespace), found);
    let server = Server::start(&namespace, journal);
    assert_eq!(settings(&namespace), found);
    assert_eq!(entries(journal), 0);
    server.stop();
    assert_eq!(settings(&namespace), found);
}
