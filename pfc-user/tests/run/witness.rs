//! A witness of the machine, independent of the program: it measures how long a CPU stood still.
//!
//! A check on real frames is rightly `inconclusive` on a machine that stalls. A test that expected
//! another verdict may accept this one only if the witness saw the reason too.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use validator::driver::kernel::{clock, realtime};

/// Sampling period in nanoseconds.
const PERIOD: u64 = 1_000_000;
/// Lateness that counts, in nanoseconds: the tightest bound of any check, that of the background's
/// latency.
const LATE: u64 = 500_000;
/// Above all that the program starts: whatever delays this thread delays every one of them.
const PRIORITY: i32 = 90;

/// Samples on every CPU while it lives.
pub struct Witness {
    done: Arc<AtomicBool>,
    watchers: Vec<JoinHandle<Stillness>>,
}

/// Time lost by a CPU that did not return in time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stillness {
    watched: Duration,
    /// In stalls of more than half a millisecond.
    stalled: Duration,
    longest: Duration,
}

impl Witness {
    pub fn begin() -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let watch = |cpu| {
            let done = Arc::clone(&done);
            std::thread::spawn(move || {
                assert!(
                    realtime::pin(cpu) && realtime::enter_fifo(PRIORITY),
                    "root may do this"
                );
                watch(&done)
            })
        };
        let watchers = realtime::allowed_cpus().into_iter().map(watch).collect();
        Self { done, watchers }
    }

    /// Returns the result of the CPU that fared worst.
    pub fn end(self) -> Stillness {
        self.done.store(true, Ordering::Relaxed);
        let seen = self
            .watchers
            .into_iter()
            .map(|watcher| watcher.join().unwrap());
        seen.max_by_key(|seen| seen.stalled).unwrap_or_default()
    }
}

fn watch(done: &AtomicBool) -> Stillness {
    let begin = clock::now();
    let (mut stalled, mut longest) = (0, 0);
    while !done.load(Ordering::Relaxed) {
        let due = clock::now() + PERIOD;
        clock::sleep_until(due);
        let late = clock::now().saturating_sub(due);
        longest = late.max(longest);
        stalled += if late > LATE { late } else { 0 };
    }
    let [watched, stalled, longest] =
        [clock::now() - begin, stalled, longest].map(Duration::from_nanos);
    Stillness {
        watched,
        stalled,
        longest,
    }
}

impl Stillness {
    /// True if it explains an inconclusive run: a thousandth of the time, or one stall longer than
    /// the burst with which a flow may catch up.
    pub fn explains(&self) -> bool {
        self.stalled * 1000 > self.watched || self.longest > Duration::from_millis(4)
    }
}

impl fmt::Display for Stillness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a CPU stood still for {:.1?} of {:.1?}, {:.1?} at a time at most",
            self.stalled, self.watched, self.longest
        )
    }
}
