//! A thread that tells how long this machine stood still.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use crate::common;

const STEP: Duration = Duration::from_millis(1);

/// How often what depends on the machine is tried.
const ATTEMPTS: u32 = 5;

/// Tries until the machine has not stood still for too long; the error says for how many
/// nanoseconds it did. The test is undecided where it always does.
pub fn decided(test: &str, attempt: impl Fn() -> Result<(), u64>) {
    let mut still = 0;
    for _ in 0..ATTEMPTS {
        match attempt() {
            Ok(()) => return,
            Err(time) => still = time,
        }
    }
    common::undecided(test, &format!("this machine stood still for {still} ns"));
}

/// It looks at the clock each millisecond.
pub struct Witness {
    stop: Sender<()>,
    thread: JoinHandle<Duration>,
}

impl Witness {
    pub fn start() -> Self {
        let (stop, stopped) = channel();
        let thread = spawn(move || {
            let mut longest = Duration::ZERO;
            loop {
                let before = Instant::now();
                if stopped.recv_timeout(STEP) != Err(RecvTimeoutError::Timeout) {
                    return longest;
                }
                longest = longest.max(before.elapsed().saturating_sub(STEP));
            }
        });
        Self { stop, thread }
    }

    /// The longest time for which it did not run.
    pub fn longest(self) -> Duration {
        drop(self.stop);
        self.thread.join().unwrap()
    }
}
