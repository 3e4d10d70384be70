//! A persistent stream of pause frames, with an account of its gaps.

mod transmit;

use std::sync::Arc;

use pfc_ebpf::units::{LineRate, Nanos, Quanta};
use pfc_ebpf::wire::mac_control::MacControl;

pub use self::transmit::{ControlSender, PATIENCE, Transmit};

use validator_core::evidence::pfc::StormReport;
use validator_core::pacing::storm::gap_ledger::{GapLedger, Latest};
use validator_core::pacing::storm::placement::Placement;
use validator_core::pacing::storm::schedule::Schedule;
use validator_core::plan::StormPlan;
use validator_core::quantity::Span;

use crate::driver::kernel::clock;
use crate::driver::kernel::packet::{AGAIN, PacketError};
use crate::driver::kernel::realtime::{self, Awake};
use crate::driver::sender::{Next, Placed, SenderThread, Setup, Work};

/// A storm that is being sent by threads of its own; it ends when this is dropped.
pub struct Storm {
    senders: Vec<SenderThread<Job>>,
    interval: Nanos,
    awake: Option<Awake>,
}

impl Storm {
    /// Sends the first frame as soon as every sender is in its place, and goes on until it is
    /// stopped; each sender keeps to [`StormPlan::interval`]. The number of senders depends on its
    /// [`StormPlan::lapse`] at `line_rate`, with which gaps are compared, and on the CPUs that the
    /// calling thread may use.
    pub fn start(
        sender: impl Transmit + 'static,
        plan: &StormPlan,
        line_rate: LineRate,
    ) -> std::io::Result<Self> {
        let placement = Placement::choose(plan.lapse(line_rate), &realtime::allowed_cpus());
        Self::start_on(sender, plan, line_rate, placement)
    }

    /// Like `start`, with a placement of the caller's choice.
    pub fn start_on(
        sender: impl Transmit + 'static,
        plan: &StormPlan,
        line_rate: LineRate,
        placement: Placement,
    ) -> std::io::Result<Self> {
        let frame = plan.control();
        let cpus = placement.cpus();
        let lapse = shortest_lapse(plan, line_rate);
        let (sender, latest) = (Arc::new(sender), Arc::new(Latest::default()));
        let awake = Awake::hold();
        // A sender that is still being moved to its CPU when the first frame leaves is missed at
        // once, for up to milliseconds: all are in their places before any begins.
        let mut senders = Vec::with_capacity(cpus.len());
        let count = cpus.len();
        for (index, cpu) in cpus.into_iter().enumerate() {
            let job = Job {
                sender: sender.clone(),
                frame,
                interval: plan.interval,
                place: (index, count),
                ledger: GapLedger::new(lapse),
                latest: latest.clone(),
                times: None,
            };
            let setup = Setup {
                name: format!("storm {index}"),
                priority: Some(realtime::STORM),
                cpu,
            };
            senders.push(SenderThread::start(setup, job)?);
        }
        let now = clock::now();
        for sender in &senders {
            // One that is gone has panicked, which `stop` passes on.
            let _ = sender.give(now);
        }
        Ok(Self {
            senders,
            interval: plan.interval,
            awake,
        })
    }

    /// Stops at once and returns the account. When not a single frame left, the departures in it
    /// are zero.
    pub fn stop(mut self) -> StormReport {
        // From here on no frame is due.
        let stopped = clock::now();
        self.senders.iter_mut().for_each(SenderThread::dismiss);
        let (mut placed, mut ledgers) = (Vec::new(), Vec::new());
        for sender in self.senders {
            placed.push(sender.placed());
            let job = sender.end();
            ledgers.push(
                job.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    .ledger,
            );
        }
        let method = method(&placed, self.interval, self.awake.is_some());
        GapLedger::end(method, ledgers, stopped)
    }
}

/// The work of one sender's thread: a frame at each of its times. Its order is the time at which
/// the storm begins.
struct Job {
    sender: Arc<dyn Transmit>,
    frame: MacControl,
    interval: Nanos,
    /// Its number, and that of all senders.
    place: (usize, usize),
    ledger: GapLedger,
    latest: Arc<Latest>,
    /// `None` until the storm begins.
    times: Option<Times>,
}

/// The times of one sender.
struct Times {
    schedule: Schedule,
    /// Time of its next frame.
    next: Nanos,
    /// Time of its next try.
    wake: Nanos,
}

impl Work for Job {
    type Order = Nanos;

    fn obey(&mut self, begin: Nanos) {
        let (index, count) = self.place;
        let schedule = Schedule::new(begin, self.interval, index, count);
        let first = schedule.first();
        self.times = Some(Times {
            schedule,
            next: first,
            wake: first,
        });
    }

    fn round(&mut self, woke: Nanos) -> Next {
        let Some(times) = &mut self.times else {
            return Next::Order;
        };
        if woke < times.wake {
            return Next::At(times.wake);
        }
        self.ledger.ran(times.wake, woke);
        let sent = self.sender.send(&self.frame);
        let now = clock::now();
        // Its own times are an interval apart, whatever was tried again between them.
        if woke >= times.next {
            times.next = times.schedule.next(woke, now);
        }
        times.wake = match sent {
            Ok(departure) => {
                self.ledger.left(departure, &self.latest);
                times.next
            }
            // A full ring has room soon, and the pause of the last frame is running out.
            Err(PacketError::Refused { .. }) => {
                self.ledger.refused();
                times.next.min(now + AGAIN)
            }
            // An interface that is down may come up again; until then each frame that was due
            // counts.
            Err(_) => {
                self.ledger.refused();
                times.next
            }
        };
        Next::At(times.wake)
    }
}

/// A DUT with a fast clock goes on a little earlier: 2 quanta and the 100 ppm of IEEE 802.3.
fn shortest_lapse(plan: &StormPlan, line_rate: LineRate) -> Nanos {
    let full = plan.lapse(line_rate);
    full.saturating_sub(Quanta(2).nanos(line_rate) + full / 10_000)
}

fn scheduling(placed: &Placed) -> String {
    let policy = if placed.fifo {
        format!("SCHED_FIFO {}", realtime::STORM)
    } else {
        "the scheduling of the process".into()
    };
    match placed.cpu {
        Some(cpu) => format!("{policy} on CPU {cpu}"),
        None => format!("{policy} on any CPU"),
    }
}

/// The sending of the storm in words.
fn method(placed: &[Placed], interval: Nanos, awake: bool) -> String {
    let scheduling: Vec<String> = placed.iter().map(scheduling).collect();
    let senders = match &scheduling[..] {
        [one] => format!("one sender ({one})"),
        _ => format!(
            "{} senders, redundant and evenly apart ({}),",
            scheduling.len(),
            scheduling.join(", ")
        ),
    };
    let sleep = if awake {
        "; CPUs kept out of deep sleep"
    } else {
        ""
    };
    format!(
        "{senders} every {} by send and sleep{sleep}",
        Span(interval)
    )
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use super::*;
    use pfc_ebpf::units::Priority;
    use validator_core::evidence::pfc::Departure;
    use validator_core::plan::StormKind;

    const HOUR: Nanos = 3_600_000_000_000;

    /// Refuses `refusals` frames, and says when it took one.
    struct Full {
        refusals: Mutex<u64>,
        taken: Mutex<mpsc::Sender<()>>,
    }

    impl Transmit for Full {
        fn send(&self, _: &MacControl) -> Result<Departure, PacketError> {
            let mut refusals = self.refusals.lock().unwrap();
            if *refusals > 0 {
                *refusals -= 1;
                return Err(PacketError::Refused {
                    interface: "a".into(),
                });
            }
            self.taken.lock().unwrap().send(()).unwrap();
            let now = clock::now();
            Ok(Departure {
                before: now,
                after: now,
            })
        }
    }

    #[test]
    fn a_frame_for_which_there_was_no_room_leaves_before_the_next_is_due() {
        let (taken, took) = mpsc::channel();
        let sender = Full {
            refusals: Mutex::new(3),
            taken: Mutex::new(taken),
        };
        let plan = StormPlan {
            kind: StormKind::Pfc(Priority::all().collect()),
            quanta: Quanta::MAX,
            interval: HOUR,
        };
        let line_rate = LineRate::from_bits_per_second(1_000_000_000).unwrap();
        let storm = Storm::start_on(sender, &plan, line_rate, Placement::Single).unwrap();
        took.recv_timeout(std::time::Duration::from_secs(30))
            .expect("long before an hour is over");
        let report = storm.stop();
        assert_eq!((report.frames, report.errors), (1, 3));
    }

    const fn placed(fifo: bool, cpu: Option<usize>) -> Placed {
        Placed { fifo, cpu }
    }

    #[test]
    fn the_report_says_how_the_storm_was_sent() {
        let one = [placed(false, None)];
        assert_eq!(
            method(&one, 11_184_640, true),
            "one sender (the scheduling of the process on any CPU) every 11.18464ms by send and \
             sleep; CPUs kept out of deep sleep"
        );
        let two = [placed(true, Some(0)), placed(true, None)];
        assert_eq!(
            method(&two, 13_980, false),
            "2 senders, redundant and evenly apart (SCHED_FIFO 20 on CPU 0, SCHED_FIFO 20 on any \
             CPU), every 13.98us by send and sleep"
        );
    }
}
