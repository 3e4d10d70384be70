//! snappi, the real client, over every transport before an engine that records.
//!
//! `VALIDATOR_SNAPPI` is the Python interpreter of an environment that has it; `cargo xtask lab
//! otg` and `cargo xtask test` make one. Without it the tests are skipped, and say so.
//!
//! lane: waiting

#[path = "server/places.rs"]
mod places;
#[path = "server/served.rs"]
mod served;

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::Stdio;

use served::Served;
use tokio::process::Command;

/// Reports a test as skipped, in the file named by `VALIDATOR_SKIPS`, which `cargo xtask test`
/// counts, or on the output.
fn skip(test: &str, reason: &str) {
    let line = format!("{test}: {reason}\n");
    match env::var_os("VALIDATOR_SKIPS") {
        // One write in append mode keeps the lines of parallel tests apart.
        Some(file) => OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("VALIDATOR_SKIPS names {}: {error}", file.display())),
        None => print!("skipped: {line}"),
    }
}

/// Runs the script of the client against a new server.
async fn talks(test: &str, transport: &str, location: impl FnOnce(&Served) -> String) {
    let Some(python) = env::var_os("VALIDATOR_SNAPPI") else {
        return skip(test, "needs VALIDATOR_SNAPPI, a Python with snappi");
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
    talks("snappi_talks_http", "http", |served| {
        format!("http://{}", served.http)
    })
    .await;
}

#[tokio::test]
async fn snappi_talks_https_on_the_same_port() {
    talks("snappi_talks_https_on_the_same_port", "https", |served| {
        format!("https://{}", served.http)
    })
    .await;
}

#[tokio::test]
async fn snappi_talks_grpc() {
    talks("snappi_talks_grpc", "grpc", |served| {
        served.grpc.to_string()
    })
    .await;
}

#[tokio::test]
async fn snappi_talks_grpc_in_pieces() {
    talks("snappi_talks_grpc_in_pieces", "grpc-pieces", |served| {
        served.grpc.to_string()
    })
    .await;
}
