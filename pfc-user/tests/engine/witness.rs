//! A thread that tells how long this machine stood still.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(1);

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
