//! The evidence as the checks look at it: packets decoded from their octets, and put into
//! transmissions.

use std::net::IpAddr;

use pfc_ebpf::wire::ip::Addresses;
use pfc_ebpf::wire::roce::{self, RC_READ_REQUEST, Reth};

use crate::cases::rc::stimulate::{READ, t_tr};
use crate::cases::rc::transmission::Transmissions;
use crate::cases::stalls::Stalls;
use crate::evidence::rc::{Completion, Packet, Phase, RcEvidence};
use crate::plan::Nanos;
use crate::plan::rc::RcPlan;
use crate::verdict::Subject;

/// A packet, decoded.
#[derive(Clone, Debug)]
pub struct Decoded {
    pub time: Nanos,
    /// Octets of the frame on the wire.
    pub length: u32,
    /// Octets of the frame that were kept.
    pub frame: Vec<u8>,
    /// `None`: not a whole RoCEv2 packet in what was kept.
    pub packet: Option<roce::Packet>,
}

impl Decoded {
    fn new(packet: &Packet) -> Result<Self, String> {
        let frame = packet
            .frame()
            .ok_or_else(|| format!("the packet at {} ns is not hexadecimal", packet.time))?;
        if frame.len() > packet.length as usize {
            return Err(format!(
                "{} octets were kept of the packet at {} ns, which has {}",
                frame.len(),
                packet.time,
                packet.length
            ));
        }
        Ok(Self {
            time: packet.time,
            length: packet.length,
            packet: roce::parse(&*frame),
            frame,
        })
    }

    /// The packet, for drawings.
    pub fn subject(&self) -> Subject {
        Subject::Packet(self.time)
    }

    pub fn is_read_request(&self) -> bool {
        self.packet
            .is_some_and(|packet| packet.bth.opcode == RC_READ_REQUEST)
    }

    /// The address that it comes from.
    pub fn source(&self) -> Option<IpAddr> {
        let Addresses { at, length } = self.packet?.ip.addresses;
        let octets = self.frame.get(at..at + length / 2)?;
        let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
        let v6 = <[u8; 16]>::try_from(octets).map(IpAddr::from);
        v4.or(v6).ok()
    }

    pub fn reth(&self) -> Option<Reth> {
        self.packet?.reth(&*self.frame)
    }
}

/// A phase, decoded.
pub struct PhaseView<'e> {
    pub phase: &'e Phase,
    /// Transmissions in their order, none of them empty.
    pub transmissions: Vec<Vec<Decoded>>,
    pub answers: Vec<Decoded>,
}

impl<'e> PhaseView<'e> {
    fn new(phase: &'e Phase, default: Nanos) -> Result<Self, String> {
        let t_tr = t_tr(&phase.channel.attributes).unwrap_or(default);
        let mut transmissions: Vec<Vec<Decoded>> = Vec::new();
        let mut sorted = Transmissions::default();
        let mut previous = None;
        for packet in &phase.packets {
            let decoded = Decoded::new(packet)?;
            if previous.is_some_and(|previous| packet.time < previous) {
                return Err(format!(
                    "the packet at {} ns is not in the order of time",
                    packet.time
                ));
            }
            let destination = decoded.packet.map(|packet| packet.bth.destination);
            if let Some(other) = destination.filter(|other| *other != phase.queue_pair) {
                return Err(format!(
                    "the packet at {} ns is for queue pair {other:#08x}",
                    packet.time
                ));
            }
            let begins = sorted.begins(packet.time, decoded.packet.as_ref(), t_tr);
            match transmissions.last_mut() {
                Some(last) if !begins => last.push(decoded),
                _ => transmissions.push(vec![decoded]),
            }
            previous = Some(packet.time);
        }
        let answers = phase.answers.iter().map(Decoded::new);
        Ok(Self {
            phase,
            transmissions,
            answers: answers.collect::<Result<_, _>>()?,
        })
    }

    /// T_tr as it was read back; `None` where the timer never ends.
    pub fn t_tr(&self) -> Option<Nanos> {
        t_tr(&self.phase.channel.attributes)
    }

    pub fn packets(&self) -> impl Iterator<Item = &Decoded> {
        self.transmissions.iter().flatten()
    }

    /// Time of the last packet.
    pub fn last(&self) -> Option<Nanos> {
        self.packets().last().map(|packet| packet.time)
    }

    /// Time for which the agent was asked for completions after the READ was posted.
    pub fn waited(&self) -> Nanos {
        self.phase.until.saturating_sub(self.phase.posted)
    }

    /// Start time of each transmission.
    pub fn times(&self) -> Vec<Nanos> {
        let transmissions = self.transmissions.iter();
        transmissions.map(|packets| packets[0].time).collect()
    }

    /// Times from each transmission to the next.
    pub fn intervals(&self) -> Vec<Nanos> {
        self.times()
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect()
    }
}

/// The evidence of a repetition.
pub struct View<'e> {
    pub e: &'e RcEvidence,
    pub control: Option<PhaseView<'e>>,
    pub test: Option<PhaseView<'e>>,
    /// Times at which the simulated DUT stood still.
    pub stalls: Stalls,
}

impl<'e> View<'e> {
    /// An error where the evidence contradicts itself.
    pub fn new(e: &'e RcEvidence) -> Result<Self, String> {
        let plan = &e.plan;
        if plan.retry_count > 7 || plan.control_drops > plan.retry_count {
            return Err(format!(
                "retry count {} and {} dropped requests in the control",
                plan.retry_count, plan.control_drops
            ));
        }
        if !(1..=31).contains(&plan.timeout) {
            return Err(format!(
                "expected a time-out of 1 to 31, found {}",
                plan.timeout
            ));
        }
        let default = RcPlan::transport_timer(plan.timeout);
        let decode = |phase: &'e Phase| PhaseView::new(phase, default);
        Ok(Self {
            e,
            control: e.control.as_ref().map(decode).transpose()?,
            test: e.test.as_ref().map(decode).transpose()?,
            stalls: Stalls::new(&e.stalls),
        })
    }

    /// Completions of the test, also those that came after it; without the READ of the flush.
    pub fn completions(&self) -> Vec<&'e Completion> {
        let flush = self.e.flush.iter().flat_map(|flush| &flush.completions);
        let late = flush.filter(|completion| completion.work_request == READ);
        let in_time = self.e.test.iter().flat_map(|test| &test.completions);
        in_time.chain(late).collect()
    }
}
