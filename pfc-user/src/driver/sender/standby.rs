//! A sender with a standby: a second thread, on another CPU, does the rounds that the first is late
//! for. Each round is done once, so that as many frames leave as were ordered.

use std::io;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread::Thread;

use pfc_ebpf::units::Nanos;

use super::{Died, Next, REST, SenderThread, Setup, Work};
use crate::driver::kernel::clock;

/// Lateness at which the standby does a round: longer than the first rests of its own accord, and
/// not so short that the standby takes a CPU from others.
const LATE: Nanos = REST + 50_000;

/// A sender's thread, and its standby where it has one. They end when this is dropped.
pub struct Sender<W: Work> {
    first: SenderThread<First<W>>,
    _standby: Option<SenderThread<Standby<W>>>,
}

impl<W: Work> Sender<W> {
    /// Starts the first thread, and one more where there is a setup for it.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub fn start(first: Setup, standby: Option<Setup>, work: W) -> io::Result<Self> {
        let turns = Turns {
            work,
            due: None,
            standby: None,
        };
        let turns = Arc::new(Mutex::new(turns));
        let start = |setup| {
            let thread = SenderThread::start(setup, Standby(turns.clone()))?;
            turns.lock().expect("nobody works yet").standby = thread.handle();
            Ok::<_, io::Error>(thread)
        };
        let standby = standby.map(start).transpose()?;
        Ok(Self {
            first: SenderThread::start(first, First(turns))?,
            _standby: standby,
        })
    }

    /// Gives an order; returns when it has been carried out.
    pub fn order(&self, order: W::Order) -> Result<(), Died> {
        self.first.order(order)
    }

    /// Gives an order; the receiver hears when it has been carried out.
    pub fn give(&self, order: W::Order) -> Result<Receiver<()>, Died> {
        self.first.give(order)
    }
}

/// The work, which one thread does at a time.
#[derive(Debug)]
struct Turns<W> {
    work: W,
    /// Time at which the next round is due; `None`: with the next order.
    due: Option<Nanos>,
    /// Sleeps for good while no round is due.
    standby: Option<Thread>,
}

impl<W: Work> Turns<W> {
    fn round(&mut self, now: Nanos) -> Next {
        let next = self.work.round(now);
        self.due = match next {
            Next::Now => Some(clock::now()),
            Next::At(time) => Some(time),
            Next::Order => None,
        };
        next
    }
}

/// Takes the orders, and does what it has time for.
#[derive(Debug)]
struct First<W>(Arc<Mutex<Turns<W>>>);

impl<W: Work> Work for First<W> {
    type Order = W::Order;

    fn obey(&mut self, order: W::Order) {
        let mut turns = self.0.lock().expect("the standby has not panicked");
        turns.work.obey(order);
        turns.due = Some(clock::now());
        if let Some(standby) = &turns.standby {
            standby.unpark();
        }
    }

    fn round(&mut self, now: Nanos) -> Next {
        let mut turns = self.0.lock().expect("the standby has not panicked");
        turns.round(now)
    }

    fn sleeping(&mut self, until: Nanos) {
        let mut turns = self.0.lock().expect("the standby has not panicked");
        turns.work.sleeping(until);
    }
}

/// Does the rounds that the first is late for.
#[derive(Debug)]
struct Standby<W>(Arc<Mutex<Turns<W>>>);

impl<W: Work> Work for Standby<W> {
    /// The standby gets no orders.
    type Order = ();

    fn obey(&mut self, (): ()) {}

    fn round(&mut self, now: Nanos) -> Next {
        // Where the first has panicked, whoever gives it an order gets the error.
        let Ok(mut turns) = self.0.lock() else {
            return Next::Order;
        };
        match turns.due {
            Some(due) if now >= due + LATE => {
                turns.round(now);
            }
            _ => {}
        }
        turns.due.map_or(Next::Order, |due| Next::At(due + LATE))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender as Outbox, channel};
    use std::time::Duration;

    use super::*;
    use crate::driver::kernel::realtime;

    const HOUR: Nanos = 3_600_000_000_000;
    const PATIENCE: Duration = Duration::from_secs(30);

    /// Says the time of each round, and does as its last order says.
    struct TestWork {
        next: Next,
        rounds: Outbox<Nanos>,
    }

    impl Work for TestWork {
        type Order = Next;

        fn obey(&mut self, order: Next) {
            self.next = order;
        }

        fn round(&mut self, now: Nanos) -> Next {
            self.rounds.send(now).unwrap();
            self.next
        }
    }

    #[test]
    fn the_standby_does_the_rounds_that_the_first_is_late_for_and_no_other() {
        let (rounds, done) = channel();
        let work = TestWork {
            next: Next::At(5000),
            rounds,
        };
        let turns = Turns {
            work,
            due: None,
            standby: None,
        };
        let turns = Arc::new(Mutex::new(turns));
        let mut first = First(turns.clone());
        let mut standby = Standby(turns.clone());
        assert_eq!(standby.round(HOUR), Next::Order);
        assert_eq!(first.round(1000), Next::At(5000));
        assert_eq!(standby.round(5000 + LATE - 1), Next::At(5000 + LATE));
        turns.lock().unwrap().work.next = Next::At(HOUR);
        assert_eq!(standby.round(5000 + LATE), Next::At(HOUR + LATE));
        // The first comes late, and finds that nothing is due.
        assert_eq!(first.round(5001 + LATE), Next::At(HOUR));
        assert_eq!(standby.round(HOUR), Next::At(HOUR + LATE));
        assert_eq!(
            done.try_iter().collect::<Vec<_>>(),
            [1000, 5000 + LATE, 5001 + LATE]
        );
    }

    #[test]
    fn an_order_wakes_the_standby_which_goes_on_where_the_first_does_not() {
        let (rounds, done) = channel();
        let turns = Turns {
            work: TestWork {
                next: Next::Order,
                rounds,
            },
            due: None,
            standby: None,
        };
        let turns = Arc::new(Mutex::new(turns));
        let setup = Setup {
            name: "standby".into(),
            priority: Some(realtime::STORM),
            cpu: None,
        };
        let standby = SenderThread::start(setup, Standby(turns.clone())).unwrap();
        turns.lock().unwrap().standby = standby.handle();
        // The first obeys, and does not come to its rounds.
        let mut first = First(turns.clone());
        for _ in 0..3 {
            let before = clock::now();
            first.obey(Next::Order);
            let round = done.recv_timeout(PATIENCE).expect("the standby goes on");
            assert!(round >= before + LATE);
        }
        first.obey(Next::At(0));
        for _ in 0..3 {
            done.recv_timeout(PATIENCE).expect("round after round");
        }
    }

    #[test]
    fn a_panic_of_either_is_told_to_who_gives_orders() {
        struct Panics;
        impl Work for Panics {
            type Order = ();
            fn obey(&mut self, (): ()) {}
            fn round(&mut self, _: Nanos) -> Next {
                panic!("as the test wants it");
            }
        }
        let setup = |name: &str| Setup {
            name: name.into(),
            priority: Some(realtime::STORM),
            cpu: None,
        };
        let sender = Sender::start(setup("first"), Some(setup("standby")), Panics).unwrap();
        // The first is gone once it has obeyed an order, and a round of either has followed.
        while sender.order(()).is_ok() {}
        assert!(sender.give(()).is_err());
    }
}
