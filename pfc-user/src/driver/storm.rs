//! A persistent stream of pause frames, with an account of its gaps.

mod transmit;

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use pfc_ebpf::units::{LineRate, Nanos, Quanta};
use pfc_ebpf::wire::mac_control::MacControl;

pub use self::transmit::{ControlSender, PATIENCE, Transmit};

use crate::driver::kernel::clock;
use crate::driver::kernel::packet::{AGAIN, PacketError};
use crate::driver::kernel::realtime::{self, Awake};
use crate::evidence::pfc::StormReport;
use crate::pacing::storm::gap_ledger::{GapLedger, Latest};
use crate::pacing::storm::placement::Placement;
use crate::pacing::storm::schedule::Schedule;
use crate::plan::{StormKind, StormPlan};
use crate::quantity::Span;

/// A storm that is being sent by threads of its own; it ends when this is dropped.
#[derive(Debug)]
pub struct Storm {
    stop: Arc<AtomicBool>,
    senders: Vec<JoinHandle<Sent>>,
    interval: Nanos,
    awake: Option<Awake>,
}

/// The result of a sender's thread.
#[derive(Debug)]
struct Sent {
    ledger: GapLedger,
    /// Its scheduling policy and CPU.
    scheduling: String,
}

impl Storm {
    /// Sends the first frame as soon as every sender is in its place, and goes on until it is
    /// stopped; each sender keeps to [`StormPlan::interval`]. The number of senders depends on the
    /// pause time at `line_rate`, with which gaps are compared, and on the CPUs that the calling
    /// thread may use.
    pub fn start(
        sender: impl Transmit + 'static,
        plan: &StormPlan,
        line_rate: LineRate,
    ) -> std::io::Result<Self> {
        let placement = Placement::choose(plan.quanta.nanos(line_rate), &realtime::allowed_cpus());
        Self::start_on(sender, plan, line_rate, placement)
    }

    /// The same with a placement of the caller's choice.
    pub fn start_on(
        sender: impl Transmit + 'static,
        plan: &StormPlan,
        line_rate: LineRate,
        placement: Placement,
    ) -> std::io::Result<Self> {
        let frame = match &plan.kind {
            StormKind::Pfc(priorities) => MacControl::pfc(priorities.iter().copied(), plan.quanta),
            StormKind::Pause => MacControl::Pause {
                quanta: plan.quanta.0,
            },
        };
        let cpus = placement.cpus();
        let pause = shortest_pause(plan.quanta, line_rate);
        let (sender, latest) = (Arc::new(sender), Arc::new(Latest::default()));
        let mut storm = Self {
            stop: Arc::new(AtomicBool::new(false)),
            senders: Vec::with_capacity(cpus.len()),
            interval: plan.interval,
            awake: Awake::hold(),
        };
        // A sender that is still being moved to its CPU when the first frame leaves is missed at
        // once, for up to milliseconds.
        let (unplaced, placed) = mpsc::channel::<Infallible>();
        let mut starts = Vec::with_capacity(cpus.len());
        let count = cpus.len();
        for (index, cpu) in cpus.into_iter().enumerate() {
            let (start, begin) = mpsc::channel();
            let job = Job {
                sender: sender.clone(),
                frame,
                interval: plan.interval,
                place: (index, count),
                cpu,
                ledger: GapLedger::new(pause),
                latest: latest.clone(),
                stop: storm.stop.clone(),
            };
            let unplaced = unplaced.clone();
            // Those that were started end when `starts` and `storm` are dropped.
            storm.senders.push(
                thread::Builder::new()
                    .name(format!("storm {index}"))
                    .spawn(move || job.run(unplaced, &begin))?,
            );
            starts.push(start);
        }
        drop(unplaced);
        // Nothing is ever sent on this channel: it closes when every sender is in its place.
        let Err(mpsc::RecvError) = placed.recv();
        let now = clock::now();
        for start in starts {
            // One that is gone has panicked, which `stop` passes on.
            let _ = start.send(now);
        }
        Ok(storm)
    }

    /// Stops at once and returns the account. When not a single frame left, the departures in it
    /// are zero.
    pub fn stop(mut self) -> StormReport {
        // From here on no frame is due.
        let stopped = clock::now();
        let ended = self.end();
        let sent: Vec<Sent> = ended
            .into_iter()
            .map(|sent| sent.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        let method = method(&sent, self.interval, self.awake.is_some());
        GapLedger::end(
            method,
            sent.into_iter().map(|sent| sent.ledger).collect(),
            stopped,
        )
    }

    fn end(&mut self) -> Vec<thread::Result<Sent>> {
        self.stop.store(true, Ordering::Release);
        self.senders
            .iter()
            .for_each(|sender| sender.thread().unpark());
        self.senders.drain(..).map(JoinHandle::join).collect()
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        // Nobody asks for the report.
        let _ = self.end();
    }
}

/// The work of one sender's thread.
struct Job<T> {
    sender: Arc<T>,
    frame: MacControl,
    interval: Nanos,
    /// Its number, and that of all senders.
    place: (usize, usize),
    cpu: Option<usize>,
    ledger: GapLedger,
    latest: Arc<Latest>,
    stop: Arc<AtomicBool>,
}

impl<T: Transmit> Job<T> {
    /// Lets go of `unplaced` once the thread is where it is to run, and sends from the time that
    /// `begin` says.
    fn run(mut self, unplaced: mpsc::Sender<Infallible>, begin: &mpsc::Receiver<Nanos>) -> Sent {
        // Where neither is permitted gaps may be longer, which the ledger tells.
        let fifo = realtime::enter_fifo(realtime::STORM);
        let pinned = self.cpu.filter(|cpu| realtime::pin(*cpu));
        drop(unplaced);
        if let Ok(start) = begin.recv() {
            let (index, count) = self.place;
            self.send(Schedule::new(start, self.interval, index, count));
        }
        Sent {
            ledger: self.ledger,
            scheduling: scheduling(fifo, pinned),
        }
    }

    /// Sends until it is told to stop.
    fn send(&mut self, mut schedule: Schedule) {
        let mut wake = schedule.first();
        let mut next = wake;
        loop {
            let mut woke = clock::now();
            while woke < wake && !self.stop.load(Ordering::Acquire) {
                clock::park_until(wake);
                woke = clock::now();
            }
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            self.ledger.ran(wake, woke);
            let sent = self.sender.send(&self.frame);
            let now = clock::now();
            // Its own times are an interval apart, whatever was tried again between them.
            if woke >= next {
                next = schedule.next(woke, now);
            }
            wake = match sent {
                Ok(departure) => {
                    self.ledger.left(departure, &self.latest);
                    next
                }
                // A full ring has room soon, and the pause of the last frame is running out.
                Err(PacketError::Refused { .. }) => {
                    self.ledger.refused();
                    next.min(now + AGAIN)
                }
                // An interface that is down may come up again; until then each frame that was due
                // counts.
                Err(_) => {
                    self.ledger.refused();
                    next
                }
            };
        }
    }
}

/// A DUT with a fast clock goes on a little earlier: 2 quanta and the 100 ppm of IEEE 802.3.
fn shortest_pause(quanta: Quanta, line_rate: LineRate) -> Nanos {
    let full = quanta.nanos(line_rate);
    full.saturating_sub(Quanta(2).nanos(line_rate) + full / 10_000)
}

fn scheduling(fifo: bool, cpu: Option<usize>) -> String {
    let policy = if fifo {
        format!("SCHED_FIFO {}", realtime::STORM)
    } else {
        "the scheduling of the process".into()
    };
    match cpu {
        Some(cpu) => format!("{policy} on CPU {cpu}"),
        None => format!("{policy} on any CPU"),
    }
}

/// The sending of the storm in words.
fn method(sent: &[Sent], interval: Nanos, awake: bool) -> String {
    let scheduling: Vec<&str> = sent.iter().map(|sent| sent.scheduling.as_str()).collect();
    let senders = match scheduling[..] {
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
    use std::sync::Mutex;

    use super::*;
    use crate::evidence::pfc::Departure;
    use pfc_ebpf::units::Priority;

    const HOUR: Nanos = 3_600_000_000_000;

    /// Refuses so many frames, and says when it took one.
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

    fn sent(scheduling: String) -> Sent {
        Sent {
            ledger: GapLedger::new(0),
            scheduling,
        }
    }

    #[test]
    fn the_report_says_how_the_storm_was_sent() {
        let one = [sent(scheduling(false, None))];
        assert_eq!(
            method(&one, 11_184_640, true),
            "one sender (the scheduling of the process on any CPU) every 11.18464ms by send and \
             sleep; CPUs kept out of deep sleep"
        );
        let two = [
            sent(scheduling(true, Some(0))),
            sent(scheduling(true, None)),
        ];
        assert_eq!(
            method(&two, 13_980, false),
            "2 senders, redundant and evenly apart (SCHED_FIFO 20 on CPU 0, SCHED_FIFO 20 on any \
             CPU), every 13.98us by send and sleep"
        );
    }
}
