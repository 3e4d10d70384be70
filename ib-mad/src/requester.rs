//! Requests and their responses: matches TIDs, sends nothing twice, and records all other packets.

use std::collections::VecDeque;
use std::time::Duration;

use crate::mad::{Lid, MadError, Method, Tid};
use crate::smp::{Route, Smp};
use crate::transport::{ReceiveError, Received, SendError, Time, Transport};

/// Packets already waiting at the deadline are still looked at, up to this number: the tester may
/// have read them late. The bound keeps a flood of packets from prolonging the wait for ever.
const LAST_LOOK: usize = 64;
/// Requests whose responses are still told apart, so that a long run takes no more and more memory.
const REMEMBERED: usize = 8192;
/// Strays of each kind that are kept until they are taken: packets that may answer something, and
/// those that do not. More are counted: a flood takes no more memory, and one of traps takes no
/// answer's place.
const KEPT: usize = 4096;

/// Outcome of a request.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly every outcome is an answer"
)]
pub enum Outcome {
    /// The first GetResp of the request's class and TID, in time. Its attribute, status and data
    /// are not checked.
    Answered {
        /// When it arrived.
        at: Time,
        /// The response.
        smp: Smp,
    },
    /// No response in time.
    TimedOut,
    /// The request was not sent.
    NotSent(SendError),
}

/// A request and its outcome.
#[derive(Debug)]
pub struct Exchange {
    /// The request as it was sent.
    pub request: Smp,
    /// Time of sending.
    pub sent: Time,
    /// Latest end of the wait for its response.
    pub deadline: Time,
    /// Until when a response to it is seen by any transport, as a stray after `deadline`.
    pub kept: Time,
    /// Outcome.
    pub outcome: Outcome,
}

/// A packet that answers no request under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// When it arrived.
    pub at: Time,
    /// Kind.
    pub kind: StrayKind,
    /// The octets.
    pub octets: Vec<u8>,
}

/// Kind of a stray packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrayKind {
    /// The first response to this earlier request, after its deadline.
    Late(Tid),
    /// A further response to this request.
    Duplicate(Tid),
    /// A response to a request that is no longer remembered; the first or a further one.
    Forgotten(Tid),
    /// A response to no request of ours: of a TID that was never ours, of another class, or not
    /// GetResp.
    Foreign(Tid),
    /// A trap, or another node's request.
    Unsolicited(Method),
    /// Not an SMP, for example a truncated one. It answers nothing, whatever its TID.
    Malformed(MadError),
}

impl StrayKind {
    /// True if it is, or may have been, a response.
    pub fn may_answer(self) -> bool {
        !matches!(self, Self::Unsolicited(_))
    }
}

/// Strays that were not kept, as there were too many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Traps, and other nodes' requests.
    pub unsolicited: u64,
    /// All others, each of which may be a response.
    pub others: u64,
}

impl LeftOut {
    /// Adds one of that kind.
    pub fn add(&mut self, kind: StrayKind) {
        match kind.may_answer() {
            true => self.others += 1,
            false => self.unsolicited += 1,
        }
    }
}

#[derive(Debug)]
struct Sent {
    tid: Tid,
    directed: bool,
    responses: u32,
}

/// Sends requests, one at a time.
pub struct Requester<T: ?Sized> {
    transport: Box<T>,
    first: u32,
    next: u32,
    /// Seed of the upper halves of TIDs; 0: they are 0.
    seed: u32,
    /// The last requests, with consecutive TIDs.
    sent: VecDeque<Sent>,
    strays: Vec<Stray>,
    left_out: LeftOut,
}

impl<T: Transport + ?Sized> Requester<T> {
    /// Makes a requester whose first request has the TID `first`; the following ones count up. Only
    /// the low 32 bits of a TID tell requests apart: Linux' umad writes the upper ones. Where the
    /// transport leaves those alone, they are another number in each request, made from the upper
    /// half of `first`, so that a node that loses or changes them is found; they are 0 if that is.
    pub fn new(transport: Box<T>, first: u64) -> Self {
        Self {
            seed: match transport.keeps_tids() {
                true => (first >> 32) as u32,
                false => 0,
            },
            transport,
            first: first as u32,
            next: first as u32,
            sent: VecDeque::new(),
            strays: Vec::new(),
            left_out: LeftOut::default(),
        }
    }

    fn next_tid(&mut self) -> Tid {
        let low = self.next;
        self.next = low.wrapping_add(1);
        let upper = match self.seed {
            0 => 0,
            seed => mixed(u64::from(seed) << 32 | u64::from(low)) >> 32,
        };
        Tid(upper << 32 | u64::from(low))
    }

    /// The transport.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Gives `request` the next TID, sends it and waits at most `wait` for its response.
    pub fn exchange(
        &mut self,
        request: Smp,
        route: &Route,
        wait: Duration,
    ) -> Result<Exchange, ReceiveError> {
        self.exchange_kept(request, route, wait, wait)
    }

    /// Works as [`Requester::exchange`], but a response is seen for `keep` after the request was
    /// sent, even where the transport drops those to requests whose time is over. One that comes
    /// after `wait` is a stray.
    pub fn exchange_kept(
        &mut self,
        mut request: Smp,
        route: &Route,
        wait: Duration,
        keep: Duration,
    ) -> Result<Exchange, ReceiveError> {
        let keep = keep.max(wait);
        let tid = self.next_tid();
        request.set_tid(tid);
        let to = match route {
            Route::Lid(lid) => *lid,
            Route::Directed(_) => Lid::PERMISSIVE,
        };
        let sent = self.transport.now();
        let deadline = sent + wait;
        if self.sent.len() == REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent {
            tid,
            directed: request.is_directed(),
            responses: 0,
        });
        let outcome = match self.transport.send(&request, to, keep) {
            Err(error) => Outcome::NotSent(error),
            Ok(()) => match self.await_answer(Some(tid), deadline) {
                Ok(Some((at, smp))) => Outcome::Answered { at, smp },
                Ok(None) => Outcome::TimedOut,
                Err(ReceiveError::NotSent(error)) => Outcome::NotSent(error),
                Err(error) => return Err(error),
            },
        };
        Ok(Exchange {
            request,
            sent,
            deadline,
            kept: sent + keep,
            outcome,
        })
    }

    /// Records what arrives until `deadline`.
    pub fn listen(&mut self, deadline: Time) -> Result<(), ReceiveError> {
        self.await_answer(None, deadline).map(drop)
    }

    /// Returns the strays recorded since the last call.
    pub fn take_strays(&mut self) -> Vec<Stray> {
        std::mem::take(&mut self.strays)
    }

    /// Returns how many strays were not kept since the last call, as there were too many.
    pub fn take_left_out(&mut self) -> LeftOut {
        std::mem::take(&mut self.left_out)
    }

    /// Waits for the response to `awaited` and returns it with its arrival time.
    fn await_answer(
        &mut self,
        awaited: Option<Tid>,
        deadline: Time,
    ) -> Result<Option<(Time, Smp)>, ReceiveError> {
        let mut overdue = 0;
        while overdue < LAST_LOOK
            && let Some(Received { at, octets }) = self.transport.receive(deadline)?
        {
            overdue += usize::from(at > deadline);
            if let Some(smp) = self.sort(awaited, at, octets) {
                return Ok(Some((at, smp)));
            }
        }
        Ok(None)
    }

    /// Returns the packet if it is the first response to `awaited`; records anything else as a
    /// stray.
    fn sort(&mut self, awaited: Option<Tid>, at: Time, octets: Vec<u8>) -> Option<Smp> {
        let kind = match Smp::parse(&octets) {
            Err(error) => StrayKind::Malformed(error),
            Ok(smp) if !smp.method().is_response() => StrayKind::Unsolicited(smp.method()),
            Ok(smp) => {
                let answers = smp.method() == Method::GET_RESP;
                let is_forgotten = answers && self.is_forgotten(smp.tid());
                match self.request(smp.tid()).filter(|_| answers) {
                    Some(Sent {
                        tid,
                        directed,
                        responses,
                    }) if *directed == smp.is_directed() => {
                        *responses += 1;
                        match *responses {
                            1 if awaited == Some(*tid) => return Some(smp),
                            1 => StrayKind::Late(*tid),
                            _ => StrayKind::Duplicate(*tid),
                        }
                    }
                    None if is_forgotten => StrayKind::Forgotten(smp.tid()),
                    _ => StrayKind::Foreign(smp.tid()),
                }
            }
        };
        let same = |stray: &&Stray| stray.kind.may_answer() == kind.may_answer();
        if self.strays.len() < KEPT || self.strays.iter().filter(same).count() < KEPT {
            self.strays.push(Stray { at, kind, octets });
        } else {
            self.left_out.add(kind);
        }
        None
    }

    /// The remembered request of that TID. The kernel or ibsim may have written the upper half.
    fn request(&mut self, tid: Tid) -> Option<&mut Sent> {
        let oldest = self.sent.front()?.tid.0 as u32;
        self.sent
            .get_mut((tid.0 as u32).wrapping_sub(oldest) as usize)
    }

    /// True if the TID is one of ours that is older than all remembered ones.
    fn is_forgotten(&self, tid: Tid) -> bool {
        let age = |of: u32| of.wrapping_sub(self.first);
        let oldest = self.next.wrapping_sub(self.sent.len() as u32);
        age(tid.0 as u32) < age(oldest)
    }
}

/// All bits of `number` mixed (SplitMix64).
fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
