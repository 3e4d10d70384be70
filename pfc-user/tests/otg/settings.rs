//! Settings of the ports that a run may change, and where a change of them shows.

use std::fs;
use std::path::Path;

use serde_json::json;
use validator::driver::bpf::XdpMode;
use validator::driver::bpf::flow::FlowProgram;
use validator::driver::kernel::link;
use validator::driver::kernel::netns::Namespace;
use validator_core::evidence::preflight::FeatureFact;

use crate::otg::server::{Server, config, endless, flow, until};

/// Octets of an IP packet that the configuration asks for.
pub const LONG: u32 = 4000;

/// Settings of a port.
#[derive(Debug, PartialEq)]
pub struct Settings {
    pub up: bool,
    pub mtu: u32,
    features: Vec<FeatureFact>,
}

/// Settings of both ports.
pub fn settings(namespace: &Namespace) -> [Settings; 2] {
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
pub fn is_free(namespace: &Namespace) -> bool {
    let attach = |port: &str| FlowProgram::attach(port, XdpMode::Auto, 1).is_ok();
    ["a", "b"]
        .into_iter()
        .all(|port| namespace.run(|| attach(port)).unwrap())
}

/// Entries of what is to be put back.
pub fn entries(journal: &Path) -> usize {
    let files = fs::read_dir(journal).unwrap().flatten();
    let files = files.filter(|file| file.path().extension().is_some_and(|end| end == "json"));
    files.count()
}

/// A server that sends, with another MTU than it found, and a link down by order.
pub fn busy(namespace: &Namespace, journal: &Path) -> Server {
    let server = Server::start(namespace, journal);
    let config = config(LONG, &[flow("endless", 1000, endless())]);
    server.request("POST /config", &config);
    server.start_flows();
    until("frames", || {
        server.flows()[0]["frames_rx"].as_u64() > Some(10)
    });
    let link = json!({"choice": "port", "port": {"choice": "link",
        "link": {"port_names": ["b"], "state": "down"}}});
    server.request("POST /control/state", &link);
    assert!(!is_free(namespace), "the server's programs count");
    let now = settings(namespace);
    assert_eq!((now[0].mtu, now[1].up), (LONG, false));
    assert!(entries(journal) > 0);
    server
}
