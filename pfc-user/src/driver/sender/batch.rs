//! Frames made, stamped and sent together, as a [`Script`] has it.

use pfc_ebpf::units::Nanos;
use validator_core::evidence::pfc::Departure;

use super::{Next, Work};
use crate::driver::kernel::clock;
use crate::driver::kernel::packet::{AGAIN, BATCH, PacketError, PacketSocket};

/// Time from one look at what is due to the next, so that frames leave by the dozen and not by one.
pub const TICK: Nanos = 150_000;

/// Script of a sender: which frames leave when, and what is noted of those that did.
pub trait Script: Send + 'static {
    /// Order that the script takes.
    type Order: Send + 'static;
    /// Note that the script keeps of a frame in the batch.
    type Note: Default + Send + 'static;

    /// Carries out an order.
    fn obey(&mut self, order: Self::Order);

    /// Time has passed to `now`; false: nothing leaves in this round.
    fn look(&mut self, now: Nanos) -> bool;

    /// Makes the frame that is due next, without its stamp; false: none is. The slot may hold an
    /// earlier frame.
    fn make(&mut self, slot: &mut Slot<Self::Note>, now: Nanos) -> bool;

    /// Stamps frames that leave at `time`; false: it is too late for them, and none does.
    fn stamp(&mut self, slots: &mut [Slot<Self::Note>], time: Nanos) -> bool;

    /// A frame did not leave, nor did any that was made after it; called for the last first. It is
    /// due as before, with the number that it had, for a gap would look like a loss.
    fn give_back(&mut self, note: &Self::Note);

    /// These frames left, one or more; those that did not have been given back.
    fn left(&mut self, slots: &[Slot<Self::Note>], departure: Departure);

    /// The port had no room for all frames.
    fn refused(&mut self) {}

    /// No frame left, of which this was the first, for another reason than want of room.
    fn failed(&mut self, error: PacketError, first: &Self::Note, now: Nanos) -> Next;

    /// Time of the next look, if no order comes; `None`: none before an order.
    fn next(&mut self, now: Nanos) -> Option<Nanos>;

    /// The least time from this look to the next while the port keeps up, where `tick` is what the
    /// sender was made with.
    fn tick(&mut self, tick: Nanos, _now: Nanos) -> Nanos {
        tick
    }

    /// The thread means to sleep until then.
    fn sleeping(&mut self, _until: Nanos) {}
}

/// Room for a frame.
#[derive(Debug, Default)]
pub struct Slot<N> {
    /// Note that the script keeps of the frame.
    pub note: N,
    /// Its octets, without FCS.
    pub frame: Vec<u8>,
}

/// The work of sending what a script has due, in batches.
#[derive(Debug)]
pub struct Batches<S: Script> {
    script: S,
    socket: PacketSocket,
    slots: Vec<Slot<S::Note>>,
    /// Least time from one look to the next.
    tick: Nanos,
}

impl<S: Script> Batches<S> {
    /// Looks at most once every `tick` while the port keeps up.
    pub fn new(socket: PacketSocket, script: S, tick: Nanos) -> Self {
        Self {
            script,
            socket,
            slots: (0..BATCH).map(|_| Slot::default()).collect(),
            tick,
        }
    }

    /// Makes what is due; returns how many frames that are.
    fn fill(&mut self, now: Nanos) -> usize {
        let mut count = 0;
        while count < BATCH && self.script.make(&mut self.slots[count], now) {
            count += 1;
        }
        count
    }

    /// Stamps and sends the first frames of the batch; true: the port had no room for all of them.
    /// An error means that none left.
    fn send(&mut self, count: usize) -> Result<bool, PacketError> {
        let (script, slots) = (&mut self.script, &mut self.slots[..count]);
        if slots.is_empty() {
            return Ok(false);
        }
        let before = clock::now();
        let outcome = if script.stamp(slots, before) {
            let frames = slots.iter().map(|slot| slot.frame.as_slice());
            self.socket.send_batch(frames).map(Some)
        } else {
            Ok(None)
        };
        let after = clock::now();
        let left = match &outcome {
            Ok(Some(outcome)) => outcome.left,
            _ => 0,
        };
        let (sent, unsent) = slots.split_at(left);
        for slot in unsent.iter().rev() {
            script.give_back(&slot.note);
        }
        if !sent.is_empty() {
            script.left(sent, Departure { before, after });
        }
        Ok(outcome?.is_some_and(|outcome| outcome.refused))
    }
}

impl<S: Script> Work for Batches<S> {
    type Order = S::Order;

    fn obey(&mut self, order: S::Order) {
        self.script.obey(order);
    }

    fn round(&mut self, now: Nanos) -> Next {
        let count = if self.script.look(now) {
            self.fill(now)
        } else {
            0
        };
        match self.send(count) {
            Ok(true) => {
                self.script.refused();
                Next::At(clock::now() + AGAIN)
            }
            // There may be more that is due.
            Ok(false) if count == BATCH => Next::Now,
            Ok(false) => match self.script.next(now) {
                Some(time) => Next::At(time.max(now + self.script.tick(self.tick, now))),
                None => Next::Order,
            },
            Err(error) => self.script.failed(error, &self.slots[0].note, now),
        }
    }

    fn sleeping(&mut self, until: Nanos) {
        self.script.sleeping(until);
    }
}
