//! snappi, the real client, over every transport before an engine that records.
//!
//! `VALIDATOR_SNAPPI` is the Python interpreter of an environment that has it; `cargo xtask lab
//! otg` makes one. Without it the tests are skipped.
//!
//! lane: waiting

#[path = "server/places.rs"]
mod places;
#[path = "server/served.rs"]
mod served;

use std::process::Stdio;

use served::Served;
use tokio::process::Command;

/// Runs the script of the client against a new server.
async fn talks(transport: &str, location: impl FnOnce(&Served) -> String) {
    let Some(python) = std::env::var_os("VALIDATOR_SNAPPI") else {
        println!("skipped: {transport}: VALIDATOR_SNAPPI does not name a Python with snappi");
        return;
    };
    let served = Served::start().await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/client.py");
    let output = Command::new(python)
        .args([script, transport, &location(&served), "veth0", "veth1"])
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.ends_with("all as expected\n"), "{text}");
    served.stop().await;
}

#[tokio::test]
async fn snappi_talks_http() {
    talks("http", |served| format!("http://{}", served.http)).await;
}

#[tokio::test]
async fn snappi_talks_https_on_the_same_port() {
    talks("https", |served| format!("https://{}", served.http)).await;
}

#[tokio::test]
async fn snappi_talks_grpc() {
    talks("grpc", |served| served.grpc.to_string()).await;
}

#[tokio::test]
async fn snappi_talks_grpc_in_pieces() {
    talks("grpc-pieces", |served| served.grpc.to_string()).await;
}
