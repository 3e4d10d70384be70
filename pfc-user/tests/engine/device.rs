//! A device between the ports: a thread that passes IPv4 frames on from `c` to `d`, in their order,
//! with a delay, or does to them what a device should not.

use std::collections::VecDeque;
use std::io::{PipeReader, PipeWriter, pipe};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{JoinHandle, spawn};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pfc_ebpf::units::Nanos;
use validator::driver::kernel::clock;
use validator::driver::kernel::netns::Namespace;
use validator::driver::kernel::packet::PacketSocket;

const IPV4: u16 = 0x0800;
/// Room for the longest frame.
const LONGEST: usize = 9216;

/// Fate of a frame that the device receives.
#[derive(Clone, Copy)]
pub enum Fate {
    /// It leaves so much later.
    Held(Nanos),
    /// It never leaves.
    Lost,
    /// It leaves, and once more.
    Twice,
    /// It leaves behind the next that leaves.
    Late,
    /// It leaves with another octet, so many before its end; 1 is the last.
    Changed(usize),
}

/// The device, until it is unplugged.
pub struct Device {
    alive: PipeWriter,
    /// Frames that it received.
    seen: Arc<AtomicU64>,
    thread: JoinHandle<Passed>,
}

/// Account of the frames that the device received.
#[derive(Debug, Default)]
pub struct Passed {
    /// Time for which each frame was held that left.
    pub held: Vec<Nanos>,
    /// Frames that did not leave.
    pub lost: u64,
}

impl Device {
    pub fn plug(namespace: &Namespace, fate: fn(usize) -> Fate) -> Self {
        let open = || {
            let ingress = PacketSocket::open_for("c", IPV4).unwrap();
            (ingress, PacketSocket::open("d").unwrap())
        };
        let (ingress, egress) = namespace.run(open).unwrap();
        let (end, alive) = pipe().unwrap();
        let seen = Arc::new(AtomicU64::new(0));
        let count = seen.clone();
        let thread = spawn(move || pass(&ingress, &egress, &end, &count, fate));
        Self {
            alive,
            seen,
            thread,
        }
    }

    /// Frames that it has received so far.
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// Ends it once all that it holds has left.
    pub fn unplug(self) -> Passed {
        drop(self.alive);
        self.thread.join().unwrap()
    }
}

/// A frame that is held.
struct Held {
    since: Nanos,
    until: Nanos,
    frame: Vec<u8>,
}

fn pass(
    ingress: &PacketSocket,
    egress: &PacketSocket,
    end: &PipeReader,
    seen: &AtomicU64,
    fate: fn(usize) -> Fate,
) -> Passed {
    let (mut passed, mut queue) = (Passed::default(), VecDeque::<Held>::new());
    let mut late = Vec::new();
    let mut ends = false;
    let mut buffer = vec![0; LONGEST];
    while !(ends && queue.is_empty()) {
        let wait = match queue.front() {
            Some(first) => first.until.saturating_sub(clock::now()).div_ceil(1_000_000),
            None => u64::from(u16::MAX),
        };
        let wait = PollTimeout::from(u16::try_from(wait).unwrap_or(u16::MAX));
        let mut events = [
            PollFd::new(ingress.as_fd(), PollFlags::POLLIN),
            PollFd::new(end.as_fd(), PollFlags::POLLIN),
        ];
        // Its end is looked at once; it stays ready from then on.
        let events = &mut events[..if ends { 1 } else { 2 }];
        poll(events, wait).unwrap();
        ends |= events.get(1).is_some_and(|end| end.any() == Some(true));
        while let Ok(length) = ingress.receive(&mut buffer) {
            let since = clock::now();
            let number = seen.fetch_add(1, Ordering::Relaxed);
            let held = |time, frame: &[u8]| Held {
                since,
                until: since + time,
                frame: frame.to_vec(),
            };
            let frame = &mut buffer[..length];
            match fate(number as usize) {
                Fate::Held(time) => queue.push_back(held(time, frame)),
                Fate::Twice => queue.extend([held(0, frame), held(0, frame)]),
                Fate::Changed(before_end) => {
                    frame[length - before_end] ^= 0xff;
                    queue.push_back(held(0, frame));
                }
                Fate::Late => {
                    late.push(held(0, frame));
                    continue;
                }
                Fate::Lost => {
                    passed.lost += 1;
                    continue;
                }
            }
            queue.extend(late.drain(..));
        }
        if ends {
            queue.extend(late.drain(..));
        }
        while let Some(first) = queue.pop_front_if(|first| first.until <= clock::now()) {
            let held = clock::now() - first.since;
            // An error: the link is down, where frames are lost.
            match egress.send(&first.frame) {
                Ok(()) => passed.held.push(held),
                Err(_) => passed.lost += 1,
            }
        }
    }
    passed
}
