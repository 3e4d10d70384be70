//! A good device on a busy machine: runs the smoke plan while every CPU is kept busy. It takes long
//! and therefore runs with `--full` only.
//!
//! lane: alone

use std::io::{self, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common;

const RUNS: usize = 20;

#[test]
fn root_a_good_switch_never_fails_on_a_busy_machine() {
    let name = "root_a_good_switch_never_fails_on_a_busy_machine";
    if !common::need_root(name) || !common::need_full(name) {
        return;
    }
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let done = AtomicBool::new(false);
    let mut clean = 0;
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // Ends the busy loops also when an assertion below fails.
        let _end = OnDrop(|| done.store(true, Ordering::Relaxed));
        for run in 1..=RUNS {
            let output = Command::new(env!("CARGO_BIN_EXE_validator"))
                .current_dir(root)
                .args([
                    "run",
                    "--testbed",
                    "configs/testbeds/sim.toml",
                    "--plan",
                    "smoke",
                ])
                .output()
                .expect("the validator starts");
            let (code, text) = (
                output.status.code(),
                String::from_utf8_lossy(&output.stdout),
            );
            print(format_args!("run {run} of {RUNS}: exit code {code:?}"));
            for line in text
                .lines()
                .filter(|line| line.starts_with("  inconclusive  "))
            {
                print(format_args!("  {line}"));
            }
            assert!(matches!(code, Some(0 | 3)), "run {run}: {text}");
            clean += usize::from(code == Some(0));
        }
    });
    print(format_args!(
        "{clean} of {RUNS} runs without an inconclusive check"
    ));
    assert!(
        clean * 2 >= RUNS,
        "{clean} of {RUNS} runs without an inconclusive check"
    );
}

/// Prints at once. The harness would capture `println!` and hide it when the test passes.
fn print(line: std::fmt::Arguments) {
    writeln!(io::stderr(), "{line}").expect("stderr is open");
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
