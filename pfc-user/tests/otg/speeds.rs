//! Rates that need the speed of a port, and rates that it does not reach.

use std::cell::RefCell;

use serde_json::{Value, json};

use crate::common;
use crate::otg::server::{MTU, Server, config, endless, flow, frames, ports, until};

/// A flow of 50 frames at that rate, between veths of which nothing says a speed.
fn without_speed(rate: &Value) -> Value {
    let mut config = config(MTU, &[flow("f", 1, frames(50))]);
    config.as_object_mut().unwrap().remove("layer1");
    config["flows"][0]["rate"] = rate.clone();
    config
}

/// The one error of a request that is refused.
fn refused(server: &Server, line: &str, body: &Value) -> String {
    let refusal = server.answer(line, body).unwrap_err();
    let errors = refusal["errors"].as_array().unwrap();
    assert_eq!(
        (&refusal["code"], errors.len()),
        (&json!(400), 1),
        "{refusal}"
    );
    errors[0].as_str().unwrap().to_owned()
}

#[test]
fn root_rates_in_frames_and_bits_need_no_speed_and_a_percentage_names_what_says_one() {
    let test = "root_rates_in_frames_and_bits_need_no_speed_and_a_percentage_names_what_says_one";
    if !common::need_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let namespace = ports();
    let server = Server::start(&namespace, folder.path());
    for rate in [
        json!({"choice": "pps", "pps": 1000}),
        json!({"choice": "bps", "bps": 1_000_000}),
        json!({"choice": "kbps", "kbps": 1000}),
        json!({"choice": "mbps", "mbps": 1}),
    ] {
        server.request("POST /config", &without_speed(&rate));
        server.start_flows();
        until("all frames", || server.flows()[0]["frames_rx"] == json!(50));
    }
    let percentage = json!({"choice": "percentage", "percentage": 10});
    let update = json!({"choice": "flows", "flows": {
        "property_names": ["rate"], "flows": [{"name": "f", "rate": percentage}],
    }});
    for (line, body) in [
        ("POST /config", &without_speed(&percentage)),
        ("PATCH /config", &update),
    ] {
        let error = refused(&server, line, body);
        for word in [
            "\"f\"",
            "a rate in percent",
            "`layer1.speed`",
            "`line_rate`",
        ] {
            assert!(error.contains(word), "{line}: {error}");
        }
    }
    // The setting that the refusal names helps.
    let testbed = folder.path().join("testbed.toml");
    std::fs::write(
        &testbed,
        "[ports.a]\ninterface = \"a\"\nline_rate = \"1G\"\n",
    )
    .unwrap();
    server.stop();
    let testbed = ["--testbed", testbed.to_str().unwrap()];
    let server = Server::with(&namespace, folder.path(), &testbed);
    server.request("POST /config", &without_speed(&percentage));
    server.start_flows();
    until("all frames", || server.flows()[0]["frames_rx"] == json!(50));
    server.stop();
}

#[test]
fn root_rates_that_a_port_does_not_reach_are_told_once_in_the_next_reply() {
    let test = "root_rates_that_a_port_does_not_reach_are_told_once_in_the_next_reply";
    if !common::need_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let namespace = ports();
    let server = Server::start(&namespace, folder.path());
    // The line carries one of the flows, but not both.
    let flows = ["one", "other"].map(|name| {
        let mut flow = flow(name, 1, endless());
        flow["size"] = json!({"choice": "fixed", "fixed": 1024});
        flow["rate"] = json!({"choice": "percentage", "percentage": 90});
        flow
    });
    server.request("POST /config", &config(MTU, &flows));
    server.start_flows();
    // They go on: the order changes nothing.
    let resume = json!({"choice": "traffic", "traffic": {"flow_transmit": {"state": "resume"}}});
    let behind = || {
        let reply = server.request("POST /control/state", &resume);
        let warnings = reply["warnings"].as_array().unwrap().iter();
        let warnings = warnings.map(|warning| warning.as_str().unwrap());
        let warnings =
            warnings.filter(|warning| warning.contains("its flows want more than it sends"));
        warnings.map(str::to_owned).collect::<Vec<_>>()
    };
    let warnings = RefCell::new(Vec::new());
    until("a warning", || {
        warnings.replace(behind());
        !warnings.borrow().is_empty()
    });
    let warnings = warnings.into_inner();
    assert!(
        warnings.len() == 1 && warnings[0].starts_with("port \"a\""),
        "{warnings:?}"
    );
    assert_eq!(behind(), [""; 0]);
    server.stop();
}
