//! Refusals by real ports, over both transports.

use serde_json::{Value, json};

use crate::common;
use crate::otg::server::{MTU, Server, config, flow, frames, ports, until};
use crate::rpc::Client;

/// A testbed with a port in a namespace that does not exist.
const TESTBED: &str = "[ports.far]\ninterface = \"a\"\nnamespace = \"nowhere-at-all\"\n";

/// Answer of the server to a configuration over gRPC: the code of the status, and the JSON in its
/// message.
fn over_grpc(server: &Server, config: &Value) -> (i32, Value) {
    let ask = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let mut client = Client::connect(server.grpc).await;
            client.ask("SetConfig", &config.to_string()).await
        })
    };
    let refused = server.within(ask).unwrap_err();
    let json = serde_json::from_str(refused.message()).unwrap();
    (refused.code() as i32, json)
}

#[test]
fn root_ports_that_do_not_exist_are_the_requests_fault_over_both_transports() {
    let test = "root_ports_that_do_not_exist_are_the_requests_fault_over_both_transports";
    if !common::need_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let testbed = folder.path().join("testbed.toml");
    std::fs::write(&testbed, TESTBED).unwrap();
    let namespace = ports();
    let server = Server::with(
        &namespace,
        folder.path(),
        &["--testbed", testbed.to_str().unwrap()],
    );
    let good = config(MTU, &[flow("f", 1000, frames(20))]);
    server.request("POST /config", &good);
    for (location, why) in [
        ("gone", "port \"b\": there is no interface \"gone\""),
        (
            "far",
            "port \"b\": there is no network namespace \"nowhere-at-all\"",
        ),
    ] {
        let mut wrong = good.clone();
        wrong["ports"][1]["location"] = json!(location);
        let http = server.answer("POST /config", &wrong).unwrap_err();
        let (code, grpc) = over_grpc(&server, &wrong);
        for (json, number) in [(&http, 400), (&grpc, 3)] {
            assert_eq!(json["code"], number, "{json}");
            assert_eq!(json["kind"], "validation", "{json}");
            let error = json["errors"][0].as_str().unwrap();
            assert!(error.starts_with(why), "{error}");
        }
        assert_eq!((code, &http["errors"]), (3, &grpc["errors"]));
    }
    // The configuration before is in force, and its flow is sent.
    server.start_flows();
    until("all frames", || server.flows()[0]["frames_rx"] == json!(20));
    server.stop();
}
