//! A persistent stream of pause frames, with an account of its gaps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use pfc_ebpf::units::LineRate;
use pfc_ebpf::wire::mac_control::MacControl;

use super::ControlSender;
use crate::driver::{clock, realtime};
use crate::evidence::pfc::{Departure, StormReport};
use crate::plan::{Nanos, StormKind, StormPlan};

/// The last part of a wait is spun, for the wake-up from sleep is that imprecise; never more than a quarter of the
/// interval, since a thread under SCHED_FIFO must sleep.
const SPIN: Nanos = 50_000;
/// Gaps up to 2^39 ns, nine minutes.
const HISTOGRAM: usize = 40;
/// Gaps above the pause time that fit without growing.
const ROOM: usize = 1024;

/// A storm that is being sent by a thread of its own; it ends when this is dropped.
#[derive(Debug)]
pub struct Storm {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<StormReport>>,
}

impl Storm {
    /// Sends the first frame at once and one every [`StormPlan::interval`] from then on, until it is stopped. Gaps are
    /// compared with the pause time at `line_rate`.
    pub fn start(sender: ControlSender, plan: &StormPlan, line_rate: LineRate) -> std::io::Result<Self> {
        let frame = match &plan.kind {
            StormKind::Pfc(priorities) => MacControl::pfc(priorities.iter().copied(), plan.quanta),
            StormKind::Pause => MacControl::Pause { quanta: plan.quanta.0 },
        };
        let interval = plan.interval;
        let account = Account::new(plan.quanta.nanos(line_rate));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::Builder::new().name("storm".into()).spawn(move || {
            // Where that is not permitted gaps may be longer, which the account tells.
            realtime::enter_fifo(realtime::STORM);
            send(&sender, &frame, interval, account, &stopped)
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops at once and returns the account. When not a single frame left, the departures in it are zero.
    pub fn stop(mut self) -> StormReport {
        self.end().expect("ended only here and in drop").unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn end(&mut self) -> Option<thread::Result<StormReport>> {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        Some(thread.join())
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        // Nobody asks for the report.
        let _ = self.end();
    }
}

fn send(sender: &ControlSender, frame: &MacControl, interval: Nanos, mut account: Account, stop: &AtomicBool) -> StormReport {
    let spin = SPIN.min(interval / 4);
    let mut due = clock::now();
    loop {
        while !stop.load(Ordering::Acquire) {
            let now = clock::now();
            if now >= due {
                break;
            }
            if now < due.saturating_sub(spin) {
                clock::park_until(due - spin);
            } else {
                std::hint::spin_loop();
            }
        }
        if stop.load(Ordering::Acquire) {
            return account.report;
        }
        match sender.send(frame) {
            Ok(departure) => account.left(departure),
            // An interface that is down may come up again; until then each frame that was due counts.
            Err(_) => account.report.errors += 1,
        }
        due = next(due, interval, clock::now());
    }
}

/// When the frame after the one due at `due` is: on an even schedule, or an interval from `now` where that was missed.
fn next(due: Nanos, interval: Nanos, now: Nanos) -> Nanos {
    if due + interval > now { due + interval } else { now + interval }
}

/// The running account.
#[derive(Debug)]
struct Account {
    report: StormReport,
    pause: Nanos,
}

impl Account {
    fn new(pause: Nanos) -> Self {
        let never = Departure { before: 0, after: 0 };
        let report = StormReport {
            method: "send, sleep and spin".into(),
            frames: 0,
            errors: 0,
            first: never,
            last: never,
            max_gap: 0,
            gaps: Vec::with_capacity(ROOM),
            histogram: vec![0; HISTOGRAM],
        };
        Self { report, pause }
    }

    fn left(&mut self, departure: Departure) {
        let report = &mut self.report;
        if report.frames == 0 {
            report.first = departure;
        } else {
            let gap = departure.after - report.last.before;
            report.max_gap = report.max_gap.max(gap);
            report.histogram[(Nanos::BITS - gap.leading_zeros()).min(HISTOGRAM as u32 - 1) as usize] += 1;
            if gap > self.pause {
                report.gaps.push((report.last, departure));
            }
        }
        report.last = departure;
        report.frames += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(before: Nanos) -> Departure {
        Departure { before, after: before + 10 }
    }

    #[test]
    fn the_schedule_does_not_drift_and_does_not_hurry_after_a_delay() {
        assert_eq!(next(1000, 100, 1003), 1100);
        assert_eq!(next(1000, 100, 1099), 1100);
        // Sent late by more than an interval: no second frame at once, but a new schedule from there.
        assert_eq!(next(1000, 100, 1350), 1450);
        assert_eq!(next(1450, 100, 1451), 1550);
    }

    #[test]
    fn gaps_reach_from_before_one_frame_to_after_the_next() {
        let mut account = Account::new(110);
        [at(1000), at(1100), at(1201), at(1500)].into_iter().for_each(|departure| account.left(departure));
        let report = account.report;
        assert_eq!((report.frames, report.first, report.last), (4, at(1000), at(1500)));
        assert_eq!(report.max_gap, 309);
        // 110 is not above the pause time.
        assert_eq!(report.gaps, [(at(1100), at(1201)), (at(1201), at(1500))]);
        let mut histogram = vec![0; 40];
        (histogram[7], histogram[9]) = (2, 1);
        assert_eq!(report.histogram, histogram);
    }

    #[test]
    fn the_longest_gaps_fall_into_the_last_bucket() {
        let mut account = Account::new(Nanos::MAX);
        [at(0), at(1 << 50)].into_iter().for_each(|departure| account.left(departure));
        assert_eq!(account.report.histogram[39], 1);
    }
}
