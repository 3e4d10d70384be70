//! The thread of a port that reads whole frames: it keeps the capture, answers ARP and ND, and asks
//! for next hops.

mod capture;

use std::io::{self, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pfc_ebpf::units::Nanos;
use validator_core::engine::Captured;
use validator_core::engine::neighbour::Host;
use validator_core::engine::plan::Captures;

use self::capture::{Capture, ROOM, record};
use crate::driver::bpf::flow::FrameRings;
use crate::driver::kernel::clock;
use crate::driver::kernel::packet::PacketSocket;

/// Time from one look at the capture's ring to the next: at 10 Gbit/s an eighth of it.
const LOOK: Nanos = 3_000_000;

/// An order to the thread.
pub enum Order {
    /// These are the interfaces.
    Interfaces(Vec<Host>),
    /// Captures begin with nothing captured; what is in the ring is of before. To be given before
    /// the program keeps frames for it.
    Begin(Captures),
    /// No more will come; what is in the ring belongs to the capture. To be given after the program
    /// no longer keeps frames.
    End,
    /// Asks for what was captured so far.
    Captured(Sender<Option<Captured>>),
}

/// The thread. It ends when this is dropped.
pub struct ReaderThread {
    orders: Option<Sender<(Order, Sender<()>)>>,
    /// Wakes the thread up.
    bell: PipeWriter,
    thread: Option<JoinHandle<()>>,
    macs: Macs,
    /// Frames that the capture has no room for.
    missed: Arc<AtomicU64>,
}

/// The next hops' MAC addresses by interface, as far as they have answered.
#[derive(Clone, Default)]
struct Macs(Arc<Mutex<Vec<Option<[u8; 6]>>>>);

impl Macs {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<[u8; 6]>>> {
        // A vector of plain values is whole even if a thread died with the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReaderThread {
    /// Starts it, without interfaces.
    pub fn start(rings: FrameRings, socket: PacketSocket) -> io::Result<Self> {
        let (ring, bell) = io::pipe()?;
        let (orders, inbox) = channel();
        let macs = Macs::default();
        let missed = Arc::new(AtomicU64::new(0));
        let mut worker = Worker {
            rings,
            socket,
            hosts: Vec::new(),
            capture: None,
            is_on: false,
            macs: macs.clone(),
            missed: missed.clone(),
        };
        let thread = thread::Builder::new()
            .name("frames".into())
            .spawn(move || worker.serve(&inbox, ring.as_fd()))?;
        Ok(Self {
            orders: Some(orders),
            bell,
            thread: Some(thread),
            macs,
            missed,
        })
    }

    /// The next hops' MAC addresses, by interface of this port.
    pub fn macs(&self) -> Vec<Option<[u8; 6]>> {
        self.macs.lock().clone()
    }

    /// Returns what was captured; `None` if nothing ever was.
    pub fn captured(&self) -> io::Result<Option<Captured>> {
        let (reply, captured) = channel();
        self.order(Order::Captured(reply))?;
        captured.recv().map_err(|_| died())
    }

    /// Frames that the last capture had no memory for so far.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Gives an order; returns when it has been carried out.
    pub fn order(&self, order: Order) -> io::Result<()> {
        let (done, carried_out) = channel();
        let orders = self.orders.as_ref().ok_or_else(died)?;
        orders.send((order, done)).map_err(|_| died())?;
        (&self.bell).write_all(&[0])?;
        carried_out.recv().map_err(|_| died())
    }
}

fn died() -> io::Error {
    io::Error::other("the thread that reads frames has ended; its last words are on stderr")
}

impl Drop for ReaderThread {
    fn drop(&mut self) {
        self.orders = None;
        // A thread that is gone needs no waking.
        let _ = (&self.bell).write_all(&[0]);
        // A panic there has been reported on stderr by the thread itself.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Worker {
    rings: FrameRings,
    socket: PacketSocket,
    hosts: Vec<Host>,
    capture: Option<Capture>,
    is_on: bool,
    macs: Macs,
    missed: Arc<AtomicU64>,
}

impl Worker {
    /// Serves until no order can come any more.
    fn serve(&mut self, inbox: &Receiver<(Order, Sender<()>)>, bell: BorrowedFd<'_>) {
        loop {
            match inbox.try_recv() {
                Ok((order, done)) => {
                    self.obey(order);
                    // The giver of the order may be gone.
                    let _ = done.send(());
                    continue;
                }
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => {}
            }
            self.take_capture();
            self.talk();
            self.wait(bell);
        }
    }

    /// Waits for an order, a frame of a neighbour, or the time of the next look.
    fn wait(&self, bell: BorrowedFd<'_>) {
        let now = clock::now();
        let asks = self.hosts.iter().map(Host::ask_at).min();
        let looks = self.is_on.then_some(now + LOOK);
        let next = [asks, looks].into_iter().flatten().min();
        let timeout = next.map_or(PollTimeout::NONE, |next| {
            let millis = next.saturating_sub(now).div_ceil(1_000_000);
            PollTimeout::from(u16::try_from(millis).unwrap_or(u16::MAX))
        });
        let mut events =
            [bell, self.rings.neighbours.as_fd()].map(|file| PollFd::new(file, PollFlags::POLLIN));
        // A signal is as good a reason to look as any.
        let _ = poll(&mut events, timeout);
        if events[0].any() == Some(true) {
            // One octet an order; what is left rings again.
            let _ = nix::unistd::read(bell, &mut [0; 64]);
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Interfaces(hosts) => {
                *self.macs.lock() = vec![None; hosts.len()];
                self.hosts = hosts;
            }
            Order::Begin(captures) => {
                while self.rings.capture.next().is_some() {}
                self.missed.store(0, Ordering::Relaxed);
                self.capture = Some(Capture::begin(ROOM, captures));
                self.is_on = true;
            }
            Order::End => {
                self.take_capture();
                self.is_on = false;
            }
            Order::Captured(reply) => {
                self.take_capture();
                // The asker may be gone.
                let _ = reply.send(self.capture.as_mut().map(Capture::captured));
            }
        }
    }

    fn take_capture(&mut self) {
        let Some(capture) = self.capture.as_mut().filter(|_| self.is_on) else {
            return;
        };
        while let Some(item) = self.rings.capture.next() {
            capture.add(&item);
        }
        self.missed.store(capture.missed(), Ordering::Relaxed);
    }

    /// Answers the neighbours, and asks what is to be asked.
    fn talk(&mut self) {
        let now = clock::now();
        let mut frames = Vec::new();
        while let Some(item) = self.rings.neighbours.next() {
            if let Some((_, frame)) = record(&item) {
                frames.extend(
                    self.hosts
                        .iter_mut()
                        .filter_map(|host| host.receive(frame, now)),
                );
            }
        }
        frames.extend(self.hosts.iter_mut().filter_map(|host| host.ask(now)));
        for frame in frames {
            // A frame that cannot leave (the link is down, there is no room) counts as lost: it is
            // asked again.
            let _ = self.socket.send(&frame);
        }
        let macs = self.hosts.iter().map(Host::mac).collect();
        *self.macs.lock() = macs;
    }
}
