//! Clients at the same time, and clients that go while their flows run.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::common;
use crate::otg::server::{MTU, Server, config, endless, flow, frames, ports, run, until};

/// Checks the result of a poll of metrics: counts of one configuration, none of two.
fn check(flows: &[Value]) {
    let names: Vec<&str> = flows
        .iter()
        .map(|flow| flow["name"].as_str().unwrap())
        .collect();
    let known: [&[&str]; 3] = [&[], &["one"], &["one", "two", "three"]];
    assert!(known.contains(&&names[..]), "{names:?}");
    for flow in flows {
        let [sent, arrived] = ["frames_tx", "frames_rx"].map(|name| flow[name].as_u64().unwrap());
        assert!(arrived <= sent && sent <= FRAMES, "{flow}");
    }
}

/// Frames of each flow.
const FRAMES: u64 = 50;

#[test]
fn root_two_clients_poll_metrics_while_a_third_configures_and_starts() {
    let test = "root_two_clients_poll_metrics_while_a_third_configures_and_starts";
    if !common::need_root(test) {
        return;
    }
    let journal = tempfile::tempdir().unwrap();
    let namespace = ports();
    let server = Server::start(&namespace, journal.path());
    let configs = [&["one"][..], &["one", "two", "three"]].map(|names| {
        let flows: Vec<Value> = names
            .iter()
            .map(|name| flow(name, 5000, frames(FRAMES)))
            .collect();
        config(MTU, &flows)
    });
    let done = AtomicBool::new(false);
    let poll = || {
        let mut polls = 0;
        while !done.load(Ordering::Relaxed) {
            check(&server.flows());
            polls += 1;
        }
        polls
    };
    thread::scope(|scope| {
        let pollers = [scope.spawn(poll), scope.spawn(poll)];
        // Ends the pollers also where it fails.
        let configured = scope.spawn(|| {
            for config in configs.iter().cycle().take(10) {
                server.request("POST /config", config);
                server.start_flows();
                until("all frames of all flows", || {
                    let all = |flow: &Value| flow["frames_rx"] == FRAMES;
                    server.flows().iter().all(all)
                });
            }
        });
        let configured = configured.join();
        done.store(true, Ordering::Relaxed);
        configured.unwrap();
        for poller in pollers {
            assert!(poller.join().unwrap() >= 10);
        }
    });
    server.stop();
}

/// The frames of a flow that arrived, as Prometheus reads them, which is no client.
fn watched(server: &Server, flow: &str) -> u64 {
    let text = server.reply("GET /metrics", "").expect("no refusal");
    let begin = format!("validator_otg_flow_frames{{flow=\"{flow}\",");
    let of_flow = |line: &&str| line.starts_with(&begin) && line.contains("direction=\"rx\"");
    let line = text.lines().find(of_flow).expect("a line of the flow");
    line.split(' ').next_back().unwrap().parse().unwrap()
}

#[test]
fn root_flows_of_a_client_that_is_gone_end_by_themselves_or_by_the_lease() {
    const PER_SECOND: u64 = 1000;
    const ALL: u64 = 5 * PER_SECOND;
    let test = "root_flows_of_a_client_that_is_gone_end_by_themselves_or_by_the_lease";
    if !common::need_root(test) {
        return;
    }
    let journal = tempfile::tempdir().unwrap();
    let namespace = ports();
    let server = Server::with(&namespace, journal.path(), &["--lease", "2s"]);
    let config = config(
        MTU,
        &[
            flow("finite", PER_SECOND, frames(ALL)),
            flow("endless", PER_SECOND, endless()),
        ],
    );
    server.request("POST /config", &config);
    // The client goes before it has read the answer.
    let mut client = server.connect();
    let start = r#"{"choice":"traffic","traffic":{"flow_transmit":{"state":"start"}}}"#;
    write!(
        client,
        "POST /control/state HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{start}",
        start.len()
    )
    .unwrap();
    client.read_exact(&mut [0; 1]).unwrap();
    drop(client);
    until("the end of the finite flow", || {
        watched(&server, "finite") == ALL
    });
    let [finite, endless] = &server.flows()[..] else {
        panic!("two flows");
    };
    assert_eq!(
        (&finite["transmit"], &finite["frames_tx"]),
        (&json!("stopped"), &json!(ALL))
    );
    assert_eq!(endless["transmit"], "stopped");
    // Not before the lease was over, and not long after it: the other took 5 s.
    let sent = endless["frames_tx"].as_u64().unwrap();
    assert!((ALL / 3..ALL).contains(&sent), "{sent}");
    assert_eq!(endless["frames_rx"], sent);
    server.stop();
}

#[test]
fn a_lease_is_a_time_above_0() {
    let namespace = validator::driver::kernel::netns::Namespace::current().unwrap();
    let journal = tempfile::tempdir().unwrap();
    for (lease, why) in [
        ("0s", "expected a time above 0"),
        ("soon", "a time with its unit"),
        ("-1s", "a time with its unit"),
    ] {
        let lease = format!("--lease={lease}");
        let refused = run(&namespace, journal.path(), &["otg", &lease]);
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{stderr}");
        assert!(
            stderr.contains("--lease") && stderr.contains(why),
            "{lease}: {stderr}"
        );
    }
}
