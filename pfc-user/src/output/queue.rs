//! Writing that blocks no caller: a thread writes, and what its reader does not take in time is
//! counted as dropped.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow};

use super::Output;

/// Octets that may wait for the reader. A pipe holds 64 KiB more.
const ROOM: usize = 1 << 20;

/// A way to a writer that may stall.
#[derive(Debug)]
pub struct Queue {
    pieces: Option<Sender<Vec<u8>>>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
    state: Arc<State>,
    dropped: u64,
}

#[derive(Debug, Default)]
struct State {
    /// Octets that wait.
    waiting: AtomicUsize,
    /// Pieces written.
    taken: AtomicU64,
    closed: AtomicBool,
    failure: Mutex<Option<io::Error>>,
}

impl Queue {
    /// Begins a thread that writes to `to`.
    pub fn new(to: impl Write + Send + 'static) -> Self {
        let (pieces, waiting) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let state = Arc::new(State::default());
        let shared = state.clone();
        // A signal is for the threads that wait for it: this one may be anywhere in a write.
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK);
        thread::spawn(move || {
            write(&mut Output::new(to).keeping_errors(), &waiting, &shared);
            drop(end);
        });
        if let Ok(before) = before {
            // Infallible: the mask was this thread's own.
            let _ = before.thread_set_mask();
        }
        Self {
            pieces: Some(pieces),
            ended,
            state,
            dropped: 0,
        }
    }

    /// Adds a piece; false: it is dropped, for there is no room.
    pub fn put(&mut self, piece: Vec<u8>) -> bool {
        let Some(pieces) = &self.pieces else {
            return true;
        };
        let length = piece.len();
        if self.state.waiting.load(Ordering::Relaxed) + length > ROOM {
            self.dropped += 1;
            return false;
        }
        self.state.waiting.fetch_add(length, Ordering::Relaxed);
        // Where the reader is gone, it takes everything.
        let _ = pieces.send(piece);
        true
    }

    /// Pieces dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// True if the reader has gone away, or an error has ended this output.
    pub fn is_closed(&self) -> bool {
        self.state.closed.load(Ordering::Acquire)
    }

    /// Takes the error that ended this output.
    pub fn failure(&self) -> Option<io::Error> {
        let failure = self.state.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Adds no more, and waits until all is written: for as long as the reader takes something
    /// within each `patience`, and `goes_on` says so every tenth of it. Returns true if nothing is
    /// left.
    pub fn finish(&mut self, patience: Duration, mut goes_on: impl FnMut() -> bool) -> bool {
        self.pieces = None;
        let mut taken = self.state.taken.load(Ordering::Relaxed);
        let mut looks = 0;
        while looks < 10 && goes_on() {
            match self.ended.recv_timeout(patience / 10) {
                Err(RecvTimeoutError::Timeout) => looks += 1,
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return true,
            }
            let now = self.state.taken.load(Ordering::Relaxed);
            if now != taken {
                (taken, looks) = (now, 0);
            }
        }
        false
    }
}

fn write(out: &mut Output<impl Write>, waiting: &Receiver<Vec<u8>>, state: &State) {
    for piece in waiting {
        // An error ends the output, and is kept in it.
        let _ = out.write_all(&piece).and_then(|()| out.flush());
        if out.is_closed() && !state.closed.load(Ordering::Relaxed) {
            let mut failure = state.failure.lock().unwrap_or_else(PoisonError::into_inner);
            *failure = out.failure();
            drop(failure);
            state.closed.store(true, Ordering::Release);
        }
        state.waiting.fetch_sub(piece.len(), Ordering::Relaxed);
        state.taken.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, pipe};

    use super::*;

    #[test]
    fn a_reader_that_stalls_holds_up_nobody_and_loses_what_it_does_not_take() {
        let (mut reader, writer) = pipe().unwrap();
        let mut queue = Queue::new(writer);
        let piece = || vec![b'x'; 64 << 10];
        let put = (0..100).filter(|_| queue.put(piece())).count() as u64;
        assert!((16..100).contains(&put), "{put}");
        assert_eq!(queue.dropped(), 100 - put);
        assert!(
            !queue.finish(Duration::from_millis(50), || true),
            "nobody reads"
        );
        assert!(
            !queue.finish(Duration::from_secs(3600), || false),
            "nobody waits"
        );
        // All that was put comes, once it is read.
        let mut octets = Vec::new();
        reader.read_to_end(&mut octets).unwrap();
        assert_eq!(octets.len() as u64, put * (64 << 10));
        assert!(queue.finish(Duration::from_secs(3600), || true));
    }

    #[test]
    fn a_reader_that_is_gone_takes_everything_and_other_errors_are_kept() {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let mut queue = Queue::new(writer);
        assert!(queue.put(vec![0; 10]));
        assert!(queue.finish(Duration::from_secs(3600), || true));
        assert!(queue.is_closed() && queue.failure().is_none());
        let full = std::fs::File::options().write(true).open("/dev/full");
        let mut queue = Queue::new(full.unwrap());
        assert!(queue.put(vec![0; 10]));
        assert!(queue.finish(Duration::from_secs(3600), || true));
        assert_eq!(queue.failure().unwrap().kind(), io::ErrorKind::StorageFull);
        assert!(queue.put(vec![0; 10]) && queue.dropped() == 0);
    }
}
