//! Runs the Python script beside this file.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use crate::common::PYTHON;

/// Returns the script's output for `input`.
pub fn run(arguments: &[&str], input: String) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/responder/scapy_roce.py");
    let mut command = Command::new(PYTHON);
    command
        .arg(script)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // In a thread, so that writing and reading do not wait for each other.
    let writing = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    writing.join().unwrap().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
