//! Requests and their answers: TIDs matched, nothing sent twice, and everything that came besides recorded.

use std::time::Duration;

use crate::mad::{Lid, MadError, Method, Tid};
use crate::smp::{Route, Smp};
use crate::transport::{ReceiveError, Received, SendError, Time, Transport};

/// Packets that were waiting when a wait ended, of which so many are looked at: the tester may have been late, not they. A bound,
/// because a flood of packets must not prolong the wait for ever.
const LAST_LOOK: usize = 64;

/// What became of a request.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly every outcome is an answer"
)]
pub enum Outcome {
    /// The first GetResp of its class with its TID, in time. Whether its attribute, status and data are right is not looked at.
    Answered {
        /// When it came.
        at: Time,
        /// The response.
        smp: Smp,
    },
    /// None came in time.
    TimedOut,
    /// It has not been sent.
    NotSent(SendError),
}

/// A request and what became of it.
#[derive(Debug)]
pub struct Exchange {
    /// The request as it was sent.
    pub request: Smp,
    /// When it was sent.
    pub sent: Time,
    /// When the wait for its answer ended, at the latest.
    pub deadline: Time,
    /// What became of it.
    pub outcome: Outcome,
}

/// A packet that is the answer to no request under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// When it came.
    pub at: Time,
    /// What it is.
    pub kind: StrayKind,
    /// Its octets.
    pub octets: Vec<u8>,
}

/// What a stray packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrayKind {
    /// The first response to this earlier request, after its time.
    Late(Tid),
    /// One more response to this request.
    Duplicate(Tid),
    /// A response to no request of ours: one whose TID was never ours, or of another class, or not GetResp.
    Foreign(Tid),
    /// A trap, or a request of another.
    Unsolicited(Method),
    /// No SMP, such as one that has been cut off: it answers nothing, whatever TID it has.
    Malformed(MadError),
}

#[derive(Debug)]
struct Sent {
    tid: Tid,
    directed: bool,
    responses: u32,
}

/// Sends requests, one at a time.
pub struct Requester<T> {
    transport: T,
    next: u32,
    sent: Vec<Sent>,
    strays: Vec<Stray>,
}

impl<T: Transport> Requester<T> {
    /// `first` is the TID of the first request; the following count on from there. Only the low 32 bits of a TID are ours: Linux'
    /// umad writes the others.
    pub fn new(transport: T, first: u32) -> Self {
        Self {
            transport,
            next: first,
            sent: Vec::new(),
            strays: Vec::new(),
        }
    }

    /// The transport.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Gives `request` the next TID, sends it and waits at most `wait` for its answer.
    pub fn exchange(
        &mut self,
        mut request: Smp,
        route: &Route,
        wait: Duration,
    ) -> Result<Exchange, ReceiveError> {
        let tid = Tid(self.next.into());
        self.next = self.next.wrapping_add(1);
        request.set_tid(tid);
        let to = if let Route::Lid(lid) = route {
            *lid
        } else {
            Lid::PERMISSIVE
        };
        let sent = self.transport.now();
        let deadline = sent + wait;
        self.sent.push(Sent {
            tid,
            directed: request.is_directed(),
            responses: 0,
        });
        let outcome = match self.transport.send(&request, to, wait) {
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
            outcome,
        })
    }

    /// Records what comes until `deadline`.
    pub fn listen(&mut self, deadline: Time) -> Result<(), ReceiveError> {
        self.await_answer(None, deadline).map(drop)
    }

    /// What came besides the answers since this was last asked.
    pub fn take_strays(&mut self) -> Vec<Stray> {
        std::mem::take(&mut self.strays)
    }

    /// The answer to `awaited`, with the time when it came.
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

    /// The packet, if it is the first answer to `awaited`; anything else is a stray.
    fn sort(&mut self, awaited: Option<Tid>, at: Time, octets: Vec<u8>) -> Option<Smp> {
        let kind = match Smp::parse(&octets) {
            Err(error) => StrayKind::Malformed(error),
            Ok(smp) if !smp.method().is_response() => StrayKind::Unsolicited(smp.method()),
            Ok(smp) => {
                // The upper half may be the kernel's, or ibsim's.
                let is_answer = |sent: &&mut Sent| {
                    sent.tid.0 as u32 == smp.tid().0 as u32
                        && sent.directed == smp.is_directed()
                        && smp.method() == Method::GET_RESP
                };
                match self.sent.iter_mut().rev().find(is_answer) {
                    None => StrayKind::Foreign(smp.tid()),
                    Some(Sent { tid, responses, .. }) => {
                        *responses += 1;
                        match *responses {
                            1 if awaited == Some(*tid) => return Some(smp),
                            1 => StrayKind::Late(*tid),
                            _ => StrayKind::Duplicate(*tid),
                        }
                    }
                }
            }
        };
        self.strays.push(Stray { at, kind, octets });
        None
    }
}
