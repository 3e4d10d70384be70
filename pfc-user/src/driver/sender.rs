//! The thread of every sender in userspace: it takes orders, sends in rounds, and sleeps between
//! them. What it sends, and when, is up to its [`Work`].
//!
//! [`batch`] is the work of those that send many frames at once; a storm sends them one by one.
//! [`standby`] has a second thread for a sender that must not be late.

pub mod batch;
pub mod standby;

use std::io;
use std::sync::mpsc::{Receiver, RecvError, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle, Thread};

use pfc_ebpf::units::Nanos;

use super::kernel::{clock, realtime};

/// Longest time without sleep. After it the thread lets others run, for [`REST`]: under SCHED_FIFO
/// nothing else would make it.
const LONGEST_RUN: Nanos = 1_000_000;
const REST: Nanos = 100_000;

/// Work of a sender's thread.
pub trait Work: Send + 'static {
    /// Order that the work takes.
    type Order: Send + 'static;

    /// Carries out an order. A round follows.
    fn obey(&mut self, order: Self::Order);

    /// Sends what is due at `now`.
    fn round(&mut self, now: Nanos) -> Next;

    /// The thread means to sleep until then.
    fn sleeping(&mut self, _until: Nanos) {}
}

/// Time of the next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At once.
    Now,
    /// At this time, or upon an order that comes before.
    At(Nanos),
    /// Upon an order.
    Order,
}

/// Name and place of a thread.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its name, at most 15 octets.
    pub name: String,
    /// Its priority under SCHED_FIFO; without one the thread has the most of the CPU that an
    /// ordinary one can have.
    pub priority: Option<i32>,
    /// CPU to stay on.
    pub cpu: Option<usize>,
}

/// Permissions that a thread got. Without them frames may leave late, which counts show.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// The thread runs under SCHED_FIFO.
    pub fifo: bool,
    /// CPU that the thread stays on.
    pub cpu: Option<usize>,
}

/// The thread is gone.
#[derive(Debug, thiserror::Error)]
#[error("the thread that sends has ended; its last words are on stderr")]
pub struct Died;

/// A sender's thread. It ends when this is dropped.
#[derive(Debug)]
pub struct SenderThread<W: Work> {
    orders: Option<Sender<(W::Order, Sender<()>)>>,
    thread: Option<JoinHandle<W>>,
    placed: Placed,
}

impl<W: Work> SenderThread<W> {
    /// Starts it; returns once it is where it is to run. It waits for its first order.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub fn start(setup: Setup, mut work: W) -> io::Result<Self> {
        let (orders, inbox) = channel();
        let (place, placed) = channel();
        let serve = move || {
            let fifo = match setup.priority {
                Some(priority) => realtime::enter_fifo(priority),
                None => {
                    realtime::be_preferred();
                    false
                }
            };
            let cpu = setup.cpu.filter(|cpu| realtime::pin(*cpu));
            // The starter of the thread waits for this.
            let _ = place.send(Placed { fifo, cpu });
            serve(&mut work, &inbox);
            work
        };
        let thread = thread::Builder::new().name(setup.name).spawn(serve)?;
        let placed = placed.recv();
        Ok(Self {
            orders: Some(orders),
            thread: Some(thread),
            placed: placed.map_err(|RecvError| io::Error::other(Died))?,
        })
    }

    /// Returns how the thread runs.
    pub fn placed(&self) -> Placed {
        self.placed
    }

    /// Returns the handle that wakes the thread up.
    fn handle(&self) -> Option<Thread> {
        self.thread.as_ref().map(|thread| thread.thread().clone())
    }

    /// Gives an order; returns when it has been carried out.
    pub fn order(&self, order: W::Order) -> Result<(), Died> {
        self.give(order)?.recv().map_err(|RecvError| Died)
    }

    /// Gives an order; the receiver hears when it has been carried out.
    pub fn give(&self, order: W::Order) -> Result<Receiver<()>, Died> {
        let (done, carried_out) = channel();
        let orders = self.orders.as_ref().ok_or(Died)?;
        orders.send((order, done)).map_err(|_| Died)?;
        self.unpark();
        Ok(carried_out)
    }

    /// Has it end after the round that it is in, without waiting for that.
    pub fn dismiss(&mut self) {
        self.orders = None;
        self.unpark();
    }

    /// Ends it, and returns its work; the error is the thread's panic.
    pub fn end(mut self) -> thread::Result<W> {
        self.dismiss();
        match self.thread.take() {
            Some(thread) => thread.join(),
            None => Err(Box::new(Died)),
        }
    }

    /// Ends its sleep.
    pub fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl<W: Work> Drop for SenderThread<W> {
    fn drop(&mut self) {
        self.dismiss();
        // A panic there has been reported on stderr by the thread itself.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Serves until no order can come any more.
fn serve<W: Work>(work: &mut W, inbox: &Receiver<(W::Order, Sender<()>)>) {
    let mut next = Next::Order;
    let mut rested = clock::now();
    loop {
        match inbox.try_recv() {
            Ok((order, done)) => {
                work.obey(order);
                // The giver of the order may be gone.
                let _ = done.send(());
                next = Next::Now;
                continue;
            }
            Err(TryRecvError::Disconnected) => return,
            Err(TryRecvError::Empty) => {}
        }
        let now = clock::now();
        match next {
            Next::Order => thread::park(),
            Next::At(time) if now < time => {
                work.sleeping(time);
                clock::park_until(time);
            }
            _ if now >= rested + LONGEST_RUN => {
                next = Next::At(now + REST);
                continue;
            }
            _ => {
                next = work.round(now);
                continue;
            }
        }
        // The round is due, or whoever woke the thread has something for it to find.
        next = Next::Now;
        rested = clock::now();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HOUR: Nanos = 3_600_000_000_000;
    const PATIENCE: Duration = Duration::from_secs(30);

    /// Does as its last order says, and reports the outcome.
    struct TestWork {
        next: Next,
        orders: Vec<Next>,
        rounds: u64,
        slept: Sender<(u64, Nanos)>,
    }

    impl Work for TestWork {
        type Order = Next;

        fn obey(&mut self, order: Next) {
            self.next = order;
            self.orders.push(order);
        }

        fn round(&mut self, _: Nanos) -> Next {
            self.rounds += 1;
            self.next
        }

        fn sleeping(&mut self, until: Nanos) {
            // The test may know enough.
            let _ = self.slept.send((self.rounds, until));
        }
    }

    fn start() -> (SenderThread<TestWork>, Receiver<(u64, Nanos)>) {
        let (slept, sleeps) = channel();
        let work = TestWork {
            next: Next::Order,
            orders: Vec::new(),
            rounds: 0,
            slept,
        };
        let setup = Setup {
            name: "sender".into(),
            priority: Some(realtime::SENDER),
            cpu: realtime::first_cpu(),
        };
        (SenderThread::start(setup, work).unwrap(), sleeps)
    }

    #[test]
    fn each_order_is_carried_out_and_followed_by_a_round_however_long_the_sleep() {
        let (thread, sleeps) = start();
        assert_eq!(thread.placed().cpu, realtime::first_cpu());
        let orders = [1, 2, 3].map(|hours| Next::At(clock::now() + hours * HOUR));
        let mut rounds = 0;
        for order in orders {
            thread.order(order).unwrap();
            // The thread may have woken up without a reason before, and slept again.
            let slept = std::iter::repeat_with(|| sleeps.recv_timeout(PATIENCE));
            let mut slept = slept.map(|slept| slept.expect("it sleeps"));
            let (after, _) = slept
                .find(|(_, until)| Next::At(*until) == order)
                .expect("it never ends");
            assert!(after > rounds, "{rounds}, then {after}");
            rounds = after;
        }
        let work = thread.end().unwrap();
        assert_eq!(work.orders, orders);
    }

    #[test]
    fn a_thread_that_always_has_something_to_do_lets_others_run() {
        let begun = clock::now();
        let (thread, sleeps) = start();
        thread.order(Next::Now).unwrap();
        let (rounds, until) = sleeps.recv_timeout(PATIENCE).expect("it sleeps");
        assert!(rounds > 0);
        assert!(until >= begun + LONGEST_RUN + REST);
        // The thread goes on after that.
        let (later, _) = sleeps.recv_timeout(PATIENCE).expect("it sleeps again");
        assert!(later > rounds, "{rounds}, then {later}");
    }

    #[test]
    fn a_panic_is_told_to_who_gives_orders_and_to_who_ends_it() {
        struct Panics;
        impl Work for Panics {
            type Order = ();
            fn obey(&mut self, (): ()) {
                panic!("as the test wants it");
            }
            fn round(&mut self, _: Nanos) -> Next {
                Next::Order
            }
        }
        let setup = Setup {
            name: "panics".into(),
            priority: Some(realtime::SENDER),
            cpu: None,
        };
        let thread = SenderThread::start(setup, Panics).unwrap();
        assert!(thread.order(()).is_err());
        assert!(thread.end().is_err());
    }
}
