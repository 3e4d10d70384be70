//! The evidence, decoded; an error where it contradicts itself or its plan.

use std::time::Duration;

use ib_mad::attr::{Attribute, Notice, PortInfo};
use ib_mad::mad::{MKey, Method, Tid};
use ib_mad::smp::Smp;

use super::likelihood::Loss;
use crate::cases::mad::timing;
use crate::cases::stalls::Stalls;
use crate::evidence::mad::{self, Exchange, MadEvidence, Packet, Purpose};
use crate::m_key::Protection;
use crate::plan::Nanos;
use crate::plan::mad::Difference;
use crate::verdict::Subject;

/// Reason why lateness is not the DUT's.
pub const STOOD_STILL: &str = "while the tester or its simulated DUT stood still";

/// A request and its answer.
#[derive(Debug)]
pub struct Asked {
    pub purpose: Purpose,
    pub attempt: u32,
    pub sent: Nanos,
    pub deadline: Nanos,
    /// Until when its answer could be seen where the transport drops what answers no request that
    /// it keeps.
    pub kept: Nanos,
    pub request: Smp,
    pub answer: Option<(Nanos, Smp)>,
}

impl Asked {
    /// The answer, unless the DUT was busy.
    pub fn answer(&self) -> Option<&Smp> {
        let (_, smp) = self.answer.as_ref()?;
        (!smp.status().is_busy()).then_some(smp)
    }

    /// True if the answer is BUSY.
    pub fn is_busy(&self) -> bool {
        self.answer.is_some() && self.answer().is_none()
    }

    /// PortInfo of an answer with status 0.
    pub fn port(&self) -> Option<PortInfo> {
        self.answer()?.granted()
    }

    /// The exchange, for drawings.
    pub fn subject(&self) -> Subject {
        Subject::Exchange(self.sent)
    }

    /// How long its answer took.
    pub fn took(&self) -> Option<Nanos> {
        let (at, _) = self.answer.as_ref()?;
        Some(at.saturating_sub(self.sent))
    }

    /// How long its answer was waited for.
    pub fn waited(&self) -> Nanos {
        self.deadline.saturating_sub(self.sent)
    }

    /// True if `smp`, which has its TID, is a GetResp of its class.
    pub fn fits(&self, smp: &Smp) -> bool {
        smp.method() == Method::GET_RESP && smp.is_directed() == self.request.is_directed()
    }

    /// True if the TID is the request's. Only the low half is the tester's: Linux' umad writes the
    /// other.
    pub fn owns(&self, tid: Tid) -> bool {
        self.request.tid().0 as u32 == tid.0 as u32
    }

    /// The request, for people.
    pub fn name(&self) -> String {
        let (method, attribute) = (self.request.method(), self.request.attribute());
        match self.request.modifier() {
            0 => format!("{method}({attribute})"),
            modifier => format!("{method}({attribute} {modifier})"),
        }
    }
}

/// All requests of one purpose in one attempt: those before the last were repeated.
pub struct Asking<'v> {
    pub all: Vec<&'v Asked>,
}

impl<'v> Asking<'v> {
    /// The last, on which the verdict rests.
    pub fn last(&self) -> &'v Asked {
        self.all.last().expect("made of at least one")
    }

    /// The answer of the last.
    pub fn answer(&self) -> Option<&'v Smp> {
        self.last().answer()
    }

    /// How often the DUT said that it was busy.
    pub fn busy(&self) -> usize {
        self.all.iter().filter(|asked| asked.is_busy()).count()
    }
}

/// A packet that answered no request under way.
#[derive(Debug)]
pub struct Stray<'e> {
    pub at: Nanos,
    pub octets: &'e [u8],
    /// `None`: no whole SMP.
    pub smp: Option<Smp>,
    /// Index of the request that has its TID.
    pub of: Option<usize>,
    /// True if the packet answers a request of an earlier repetition.
    pub of_earlier: bool,
    /// True if the packet has the TID of a request to the DUT that an earlier repetition of the
    /// case sent, and is judged there.
    pub is_judged_elsewhere: bool,
}

impl Stray<'_> {
    /// The notice of a trap.
    pub fn notice(&self) -> Option<Notice> {
        let trap = self.smp.as_ref();
        let trap = trap.filter(|smp| smp.method() == Method::TRAP)?;
        trap.decode().ok()
    }

    /// True for an SMP of status BUSY.
    pub fn is_busy(&self) -> bool {
        self.smp.as_ref().is_some_and(|smp| smp.status().is_busy())
    }
}

/// The evidence, decoded.
pub struct View<'e> {
    pub e: &'e MadEvidence,
    pub asked: Vec<Asked>,
    /// Packets that answered no request under way, with those that came in a later repetition and
    /// answer a request of this one.
    pub strays: Vec<Stray<'e>>,
    /// Until when an answer to one of the requests could be seen.
    pub heard_until: Nanos,
    pub stalls: Stalls,
    /// All repetitions of the case.
    all: Vec<&'e MadEvidence>,
}

impl<'e> View<'e> {
    /// The view of the repetition of that index among all of the case.
    pub fn new(all: &[&'e MadEvidence], index: usize) -> Result<Self, String> {
        let (earlier, later) = (&all[..index], &all[index + 1..]);
        let e = all[index];
        let asked: Vec<Asked> = e.exchanges.iter().map(decode).collect::<Result<_, _>>()?;
        for pair in asked.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            if after.sent < before.sent || after.attempt < before.attempt {
                let [before, after] =
                    [before, after].map(|asked| format!("{} at {} ns", asked.name(), asked.sent));
                return Err(format!("{after} stands after {before}"));
            }
        }
        let own = e.strays.iter().map(|stray| sort(stray, &asked, earlier));
        let of_earlier = later.iter().flat_map(|later| &later.strays);
        let of_earlier = of_earlier
            .filter(|stray| stray.of_earlier)
            .map(|stray| sort(stray, &asked, &[]))
            .filter(|stray| stray.of.is_some());
        let strays = own.chain(of_earlier).collect();
        let ends = later.iter().map(|later| later.listened_until);
        let stalls = later.iter().flat_map(|later| &later.stalls);
        Ok(Self {
            e,
            asked,
            strays,
            heard_until: ends.fold(e.listened_until, Nanos::max),
            stalls: Stalls::new(e.stalls.iter().chain(stalls)),
            all: all.to_vec(),
        })
    }

    /// This repetition and the others of the case, as far as they make sense.
    pub fn all(&self) -> impl Iterator<Item = View<'e>> {
        let all = &self.all;
        (0..all.len()).filter_map(|index| Self::new(all, index).ok())
    }

    /// Requests of the repetition that the DUT had to answer, and those of them that got no answer
    /// at all.
    pub fn loss(&self) -> Loss {
        let known_at = self.port_known_at();
        let mut loss = Loss::default();
        for (index, asked) in self.asked.iter().enumerate() {
            let may_be_refused = match asked.purpose {
                Purpose::TesterPort | Purpose::InForce => true,
                Purpose::OtherKey => self.protect_bits() > 1,
                _ => false,
            };
            if may_be_refused || asked.sent <= known_at {
                continue;
            }
            let is_late = || self.strays.iter().any(|stray| stray.of == Some(index));
            loss.asked += 1;
            loss.lost += u64::from(asked.answer.is_none() && !is_late());
        }
        loss
    }

    /// How the wrong key of `asked` differs.
    pub fn difference(&self, asked: &Asked) -> Difference {
        self.e.plan.trial(asked.attempt).0
    }

    /// True if an earlier request of the case carried the wrong key of `asked`.
    pub fn was_sent_before(&self, asked: &Asked) -> bool {
        let key = asked.request.m_key().0.to_be_bytes();
        let exchanges = self.all.iter().flat_map(|e| &e.exchanges);
        exchanges
            .filter(|other| other.sent < asked.sent)
            .any(|other| other.request.0.get(24..32) == Some(&key))
    }

    /// True if a stall of the tester or of its simulated DUT explains why an answer came only at
    /// `at`.
    pub fn is_excused(&self, asked: &Asked, at: Nanos) -> bool {
        self.stalls.excuse(asked.sent, at, asked.waited())
    }

    /// The late answer to one of the requests that a stall explains.
    pub fn excused_answer(&self, asking: &Asking<'_>) -> Option<Nanos> {
        let is_one_of = |of: &Asked| asking.all.iter().any(|asked| asked.sent == of.sent);
        let late = self.strays.iter().find(|stray| {
            let of = stray.of.map(|of| &self.asked[of]);
            of.is_some_and(|of| is_one_of(of) && self.is_excused(of, stray.at))
        });
        Some(late?.at)
    }

    /// When the answer to `asked` came, in its time or after it.
    pub fn answered_at(&self, asked: &Asked) -> Option<Nanos> {
        let is_it = |stray: &&Stray<'_>| {
            let of = stray.of.map(|of| &self.asked[of]).zip(stray.smp.as_ref());
            of.is_some_and(|(of, smp)| of.sent == asked.sent && of.fits(smp))
        };
        let in_time = asked.answer.as_ref().map(|(at, _)| *at);
        in_time.or_else(|| Some(self.strays.iter().find(is_it)?.at))
    }

    /// Requests of that purpose, those with the same modifier and attempt together, in order.
    pub fn askings(&self, purpose: Purpose) -> Vec<Asking<'_>> {
        let mut askings: Vec<Asking<'_>> = Vec::new();
        for asked in self.asked.iter().filter(|asked| asked.purpose == purpose) {
            let same = |other: &Asked| {
                (other.attempt, other.request.modifier())
                    == (asked.attempt, asked.request.modifier())
            };
            match askings.last_mut().filter(|asking| same(asking.last())) {
                Some(asking) => asking.all.push(asked),
                None => askings.push(Asking { all: vec![asked] }),
            }
        }
        askings
    }

    /// The only one of that purpose, where a repetition has only one, or the last.
    pub fn asking(&self, purpose: Purpose) -> Option<Asking<'_>> {
        self.askings(purpose).pop()
    }

    /// The asking of that purpose in that attempt.
    pub fn in_attempt(&self, purpose: Purpose, attempt: u32) -> Option<Asking<'_>> {
        let mut askings = self.askings(purpose).into_iter();
        askings.find(|asking| asking.last().attempt == attempt)
    }

    /// PortInfo in the answer to that asking.
    pub fn port_in(&self, purpose: Purpose, attempt: u32) -> Option<PortInfo> {
        self.in_attempt(purpose, attempt)?.last().port()
    }

    /// PortInfo of the DUT as it was found.
    pub fn port(&self) -> Option<PortInfo> {
        self.asking(Purpose::DutPort)?.last().port()
    }

    /// When the DUT's times became known; the end of time if they never did.
    pub fn port_known_at(&self) -> Nanos {
        let known = self.asking(Purpose::DutPort);
        let known = known.filter(|asking| asking.last().port().is_some());
        known.map_or(Nanos::MAX, |asking| asking.last().sent)
    }

    /// The DUT's protection at the beginning of the repetition.
    pub fn found(&self) -> Option<Protection> {
        self.port()
            .map(|port| Protection::to_restore(&port, self.current(), self.dut_key()))
    }

    /// True if a Get has shown M_KEY_DUT after a Set of it.
    pub fn shows_dut_key(&self) -> bool {
        let shown = self.askings(Purpose::KeyShown);
        let mut ports = shown.iter().filter_map(|asking| asking.last().port());
        ports.any(|port| port.m_key() == self.dut_key())
    }

    /// How long an answer may take by 13.4.6.2, once the DUT's times are known; the testbed's least
    /// time at the least.
    pub fn answer_time(&self) -> Duration {
        let least = Duration::from_nanos(self.e.plan.timeout);
        self.port()
            .map_or(least, |port| timing::answer_time(&port, least))
    }

    /// Until when an answer to `asked` could have been seen.
    fn seen_until(&self, asked: &Asked) -> Nanos {
        let until = match self.e.shows_unmatched {
            true => self.heard_until,
            false => self.heard_until.min(asked.kept),
        };
        until.max(asked.deadline)
    }

    /// Time after `asked` in which an answer to it could have been seen.
    pub fn seen_for(&self, asked: &Asked) -> Nanos {
        self.seen_until(asked).saturating_sub(asked.sent)
    }

    /// True if the DUT answered anything after `asked`. Only then is silence the DUT's, and not the
    /// link's.
    pub fn is_alive_after(&self, asked: &Asked) -> bool {
        let mut later = self.of_dut().filter(|later| later.sent > asked.sent);
        later.any(|later| later.answer.is_some())
    }

    /// Requests to the DUT.
    pub fn of_dut(&self) -> impl DoubleEndedIterator<Item = &Asked> {
        let asked = self.asked.iter();
        asked.filter(|asked| asked.purpose != Purpose::TesterPort)
    }

    /// Protect bits of the subcase; 0 in a case without subcases.
    pub fn protect_bits(&self) -> u8 {
        self.e.plan.stimulus.protect_bits().unwrap_or(0)
    }

    /// The attribute in the answer with status 0 to the only request of that purpose.
    pub fn attribute<A: Attribute>(&self, purpose: Purpose) -> Option<A> {
        self.asking(purpose)?.answer()?.granted()
    }

    pub fn current(&self) -> MKey {
        MKey(self.e.plan.m_key_current)
    }

    pub fn dut_key(&self) -> MKey {
        MKey(self.e.plan.m_key_dut)
    }
}

fn decode(exchange: &Exchange) -> Result<Asked, String> {
    let Exchange {
        purpose,
        attempt,
        sent,
        deadline,
        kept,
        ..
    } = *exchange;
    let parse = |what: &str, octets: &[u8]| {
        Smp::parse(octets).map_err(|error| format!("{what} at {sent} ns: {error}"))
    };
    if deadline < sent {
        return Err(format!(
            "the wait for an answer to the request at {sent} ns ended at {deadline} ns"
        ));
    }
    if kept < deadline {
        return Err(format!(
            "the answer to the request at {sent} ns was waited for until {deadline} ns, and could \
             not be seen that long"
        ));
    }
    let answer = exchange.answer.as_ref().map(|Packet { at, octets }| {
        let smp = parse("an answer", &octets.0)?;
        Ok::<_, String>((*at, smp))
    });
    let asked = Asked {
        purpose,
        attempt,
        sent,
        deadline,
        kept,
        request: parse("a request", &exchange.request.0)?,
        answer: answer.transpose()?,
    };
    match &asked.answer {
        Some((at, smp)) if !asked.fits(smp) || !asked.owns(smp.tid()) || *at < sent => Err(
            format!("what came at {at} ns is no answer to the request at {sent} ns"),
        ),
        _ => Ok(asked),
    }
}

/// True if `e` has a request to the DUT with the TID of the response `octets`.
fn has_asked(e: &MadEvidence, octets: &[u8]) -> bool {
    let low = |octets: &[u8]| octets.get(12..16).map(<[u8]>::to_vec);
    low(octets).is_some()
        && e.exchanges.iter().any(|exchange| {
            exchange.purpose != Purpose::TesterPort && low(&exchange.request.0) == low(octets)
        })
}

fn sort<'e>(stray: &'e mad::Stray, asked: &[Asked], earlier: &[&MadEvidence]) -> Stray<'e> {
    let Packet { at, octets } = &stray.packet;
    let octets = &octets.0[..];
    let method = octets.get(3).map(|method| Method(*method));
    let tid = octets.get(8..).and_then(<[u8]>::first_chunk);
    let tid = tid.filter(|_| method.is_some_and(Method::is_response));
    let of = tid.and_then(|tid| {
        let tid = Tid(u64::from_be_bytes(*tid));
        let is_it = |asked: &Asked| asked.owns(tid) && asked.sent <= *at;
        asked.iter().position(is_it)
    });
    Stray {
        at: *at,
        octets,
        smp: Smp::parse(octets).ok(),
        of,
        of_earlier: stray.of_earlier,
        is_judged_elsewhere: stray.of_earlier && earlier.iter().any(|e| has_asked(e, octets)),
    }
}
