//! Faults that lose or change frames on their way in. Counters stand in for chance, so that a run
//! can be repeated.

use std::collections::VecDeque;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::Priority;

use super::config::Priorities;
use super::frame::Layout;
use super::table::PortSet;
use crate::fault::switch::{Fault, OneIn, Scope};
use crate::plan::Nanos;

/// Changes a frame; `None` where that has not what is to be changed.
type Spoil = fn(Layout, &mut Vec<u8>) -> Option<()>;

/// Time for which a frame that is to be swapped waits for the next one of its flow.
const SWAP_WAIT: Nanos = 10_000_000;

/// Time after which a late copy of a frame follows it, with the next frame that comes.
const COPY_AFTER: Nanos = 100_000_000;

/// Counts events and picks one in `n`.
#[derive(Clone, Copy, Debug)]
struct Every {
    n: OneIn,
    seen: u64,
}

/// A frame that has come in, as the switch sees it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its priority.
    pub priority: Priority,
    /// Its length, without FCS.
    pub octets: u64,
    /// True if that is lossless.
    pub lossless: bool,
    /// The ports it is to leave by; what follows holds where it does for one of them.
    pub to: PortSet,
    /// True if its priority is paused there.
    pub paused: bool,
    /// True if there is a PFC storm, for any priority.
    pub in_storm: bool,
    /// True if that priority was paused there by a storm that is over.
    pub had_storm: bool,
    /// True if an XON for a lossless priority came in there a short time ago.
    pub after_xon: bool,
}

/// A frame, and how it arrived.
pub type Arrived = (Arrival, Vec<u8>);

/// The frames to be queued in place of one that came in, in order.
pub type Admitted = [Option<Arrived>; 3];

/// The faults in force for the frames of one port.
#[derive(Clone, Debug, Default)]
pub struct Impairments {
    drops: Option<(Scope, Every)>,
    drops_lossy_in_storm: Option<Every>,
    loses_held: Option<Every>,
    /// Held frames of fewer octets are lost.
    loses_short: Option<u64>,
    /// Priorities that have died, where they do.
    dead: Option<Priorities>,
    leaks: Option<Every>,
    /// Held frames of more octets let one leave.
    leaks_for_long: Option<u64>,
    reflects: Option<Every>,
    duplicates: Option<Every>,
    duplicates_late: Option<Every>,
    reorders: Option<Every>,
    /// Changes to the octets of frames.
    spoils: Vec<(Spoil, Every)>,
    remarks: Option<Every>,
    /// A frame kept back so that the next one of its flow overtakes it: its flow, the time until
    /// which it is kept at most, and the frame.
    overtaken: Option<(Vec<u8>, Nanos, Arrived)>,
    /// A copy of a frame, and the time from which on it may come.
    copied: Option<(Nanos, Arrived)>,
    /// Time for which lossy frames are kept in a storm.
    delay: Option<Nanos>,
    /// Time for which they are kept after an XON.
    delay_after_xon: Option<Nanos>,
    /// Lossy frames that are kept, each with the time until which.
    delayed: VecDeque<(Nanos, Arrived)>,
}

impl Every {
    fn new(n: OneIn) -> Self {
        Self { n, seen: 0 }
    }

    fn hit(&mut self) -> bool {
        self.hit_if(|| true)
    }

    /// Tries again with the next event when what is to be done cannot be done with this one.
    fn hit_if(&mut self, done: impl FnOnce() -> bool) -> bool {
        self.seen += 1;
        let hit = self.seen >= self.n.get() && done();
        if hit {
            self.seen = 0;
        }
        hit
    }
}

/// Counts only where `condition` holds.
fn hits(every: &mut Option<Every>, condition: bool) -> bool {
    condition && every.as_mut().is_some_and(Every::hit)
}

impl Scope {
    fn covers(self, arrival: &Arrival) -> bool {
        match self {
            Self::All => true,
            Self::Lossless => arrival.lossless,
            Self::Lossy => !arrival.lossless,
            Self::Priority(priority) => arrival.priority == priority,
        }
    }
}

impl Impairments {
    /// Returns the impairments by those of `faults` that act here.
    pub fn new(faults: &[Fault]) -> Self {
        let mut set = Self::default();
        for fault in faults {
            match *fault {
                Fault::Drops((scope, n)) => set.drops = Some((scope, Every::new(n))),
                Fault::DropsLossyInStorm(n) => set.drops_lossy_in_storm = Some(Every::new(n)),
                Fault::LosesHeld(n) => set.loses_held = Some(Every::new(n)),
                Fault::LosesShort(octets) => set.loses_short = Some(octets.get()),
                Fault::LeaksForLong(octets) => set.leaks_for_long = Some(octets.get()),
                Fault::DiesAfterPause => set.dead = Some(Priorities::default()),
                Fault::Leaks(n) => set.leaks = Some(Every::new(n)),
                Fault::Reflects(n) => set.reflects = Some(Every::new(n)),
                Fault::Duplicates(n) => set.duplicates = Some(Every::new(n)),
                Fault::Reorders(n) => set.reorders = Some(Every::new(n)),
                Fault::DelaysLossyInStorm(delay) => set.delay = Some(delay.as_nanos() as Nanos),
                Fault::DelaysLossyAfterXon(delay) => {
                    set.delay_after_xon = Some(delay.as_nanos() as Nanos);
                }
                Fault::DuplicatesLate(n) => set.duplicates_late = Some(Every::new(n)),
                Fault::Corrupts(n) => set.spoil(Layout::corrupt, n),
                Fault::SwapsWords(n) => set.spoil(Layout::swap_words, n),
                Fault::ZeroesTail(n) => set.spoil(Layout::zero_tail, n),
                Fault::ChangesPort(n) => set.spoil(Layout::change_port, n),
                Fault::Appends(n) => set.spoil(Layout::append, n),
                Fault::Cuts(n) => set.spoil(Layout::cut, n),
                Fault::Remarks(n) => set.remarks = Some(Every::new(n)),
                _ => {}
            }
        }
        set
    }

    fn spoil(&mut self, how: Spoil, n: OneIn) {
        self.spoils.push((how, Every::new(n)));
    }

    /// True if the frame is lost.
    pub fn loses(&mut self, arrival: &Arrival) -> bool {
        self.drops
            .as_mut()
            .is_some_and(|(scope, every)| scope.covers(arrival) && every.hit())
            || hits(
                &mut self.drops_lossy_in_storm,
                !arrival.lossless && arrival.in_storm,
            )
            || hits(&mut self.loses_held, arrival.paused)
            || arrival.paused && self.loses_short.is_some_and(|least| arrival.octets < least)
            || self.dead.as_mut().is_some_and(|dead| {
                if arrival.had_storm {
                    dead.insert(arrival.priority);
                }
                dead.contains(arrival.priority)
            })
    }

    /// True if the frame's arrival lets one of its queue leave despite the pause.
    pub fn leaks(&mut self, arrival: &Arrival) -> bool {
        let is_long = self
            .leaks_for_long
            .is_some_and(|most| arrival.octets > most);
        hits(&mut self.leaks, arrival.paused) || is_long && arrival.paused
    }

    /// True if a copy of the frame goes back by the port at which it came in.
    pub fn reflects(&mut self) -> bool {
        hits(&mut self.reflects, true)
    }

    /// Changes, doubles or keeps back a frame.
    pub fn admit(
        &mut self,
        arrival: Arrival,
        layout: Layout,
        trust: Trust,
        mut frame: Vec<u8>,
        now: Nanos,
    ) -> Admitted {
        let begins = arrival.in_storm && self.delay.is_some()
            || arrival.after_xon && self.delay_after_xon.is_some();
        if let Some(delay) = self.delay.or(self.delay_after_xon)
            && !arrival.lossless
            && (begins || !self.delayed.is_empty())
        {
            self.delayed.push_back((now + delay, (arrival, frame)));
            return Default::default();
        }
        let copy = self.late_copy(arrival, &frame, now);
        for (spoil, every) in &mut self.spoils {
            every.hit_if(|| spoil(layout, &mut frame).is_some());
        }
        if let Some(every) = &mut self.remarks {
            every.hit_if(|| layout.remark(&mut frame, trust).is_some());
        }
        let twin = hits(&mut self.duplicates, true).then(|| (arrival, frame.clone()));
        let twin = copy.or(twin);
        if self.reorders.is_none() {
            return [twin, Some((arrival, frame)), None];
        }
        let flow = layout.flow(&frame);
        if let Some((.., overtaken)) = self.overtaken.take_if(|(of, ..)| *of == flow) {
            return [twin, Some((arrival, frame)), Some(overtaken)];
        }
        if self.overtaken.is_none() && hits(&mut self.reorders, !flow.is_empty()) {
            self.overtaken = Some((flow, now + SWAP_WAIT, (arrival, frame)));
            return [twin, None, None];
        }
        [twin, Some((arrival, frame)), None]
    }

    /// A copy of an earlier frame, if it is time for one.
    fn late_copy(&mut self, arrival: Arrival, frame: &[u8], now: Nanos) -> Option<Arrived> {
        if let Some((_, copied)) = self.copied.take_if(|(due, _)| *due <= now) {
            return Some(copied);
        }
        if self.copied.is_none() && hits(&mut self.duplicates_late, true) {
            self.copied = Some((now + COPY_AFTER, (arrival, frame.to_vec())));
        }
        None
    }

    /// Time at which a frame kept back is to go on though none has overtaken it.
    pub fn release_at(&self) -> Option<Nanos> {
        let overtaken = self.overtaken.as_ref().map(|(_, until, _)| *until);
        let delayed = self.delayed.front().map(|(until, ..)| *until);
        overtaken.into_iter().chain(delayed).min()
    }

    /// That frame, if its time has come.
    pub fn release(&mut self, now: Nanos) -> Option<Arrived> {
        if let Some((.., overtaken)) = self.overtaken.take_if(|(_, until, _)| *until <= now) {
            return Some(overtaken);
        }
        let delayed = self.delayed.pop_front_if(|(until, _)| *until <= now);
        delayed.map(|(_, arrived)| arrived)
    }
}
