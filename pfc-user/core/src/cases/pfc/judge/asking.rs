//! Checks on which ports the DUT asks to wait: `asks-each` and `asks-no-other` where more comes in
//! than leaves, `silent` where nothing queues.

use std::ops::Range;

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Priority, Quanta};

use super::mac::{self, Counted, Witness};
use super::preconditions::{received, sees_pfc, sent};
use super::stalls::{delay, unlisted_lateness};
use crate::cases::finding::Finding;
use crate::cases::value::{Value, count};
use crate::evidence::pfc::{PfcEvidence, Port, PortReceived};
use crate::nic::{self, Receives};
use crate::plan::{FlowPlan, Nanos, PortName};

/// Times that one port of a priority is asked to wait and let go again, from which on another that
/// never is shows that it is left out: were it by chance which of two buffers fills first, one
/// would be first each time in one of 128 runs.
const EPISODES: u64 = 8;

/// True if a port sends a priority.
fn sends(e: &PfcEvidence, port: &PortName, priority: Priority) -> bool {
    let mut flows = e.plan.flows.iter();
    flows.any(|flow| flow.priority == priority && flow.from == *port)
}

/// PFC frames for `priority` that were logged at a port: when, and their quanta.
pub(super) fn logged(port: &Port, priority: Priority) -> impl Iterator<Item = (Nanos, Quanta)> {
    let class = priority.index();
    let frames = port.counts.controls.iter();
    let of_it = frames.filter(move |frame| frame.vector >> class & 1 > 0);
    of_it.map(move |frame| (frame.time, Quanta(frame.quanta[class])))
}

/// XOFF frames for `priority` at a port, all of them.
fn xoffs(port: &Port, priority: Priority) -> u64 {
    port.counts.pfc[priority.index()].xoff
}

/// The congestion: from the traffic that is too much until traffic goes on at a part of it.
fn congestion(e: &PfcEvidence) -> Range<Nanos> {
    let from = |phase| e.span(phase).map(|span| span.from);
    from(Phase::Storm).unwrap_or(0)..from(Phase::Resume).unwrap_or(Nanos::MAX)
}

/// XOFF frames for `priority` at a port in the congestion. Frames that the log left out came after
/// those that it has, and count too.
fn xoffs_of_congestion(e: &PfcEvidence, port: &Port, priority: Priority) -> u64 {
    let times = congestion(e);
    let is_beside = |(time, quanta): &(Nanos, Quanta)| quanta.0 > 0 && !times.contains(time);
    let beside = logged(port, priority).filter(is_beside);
    xoffs(port, priority).saturating_sub(beside.count() as u64)
}

/// Pauses of `priority` that began at a port in the congestion: XOFF frames before which the last
/// frame for it was no XOFF, or one whose pause had run out. Only logged frames tell.
fn episodes(e: &PfcEvidence, port: &Port, priority: Priority) -> u64 {
    let times = congestion(e);
    let (mut until, mut found) = (0, 0);
    for (time, quanta) in logged(port, priority) {
        found += u64::from(quanta.0 > 0 && time >= until && times.contains(&time));
        until = match quanta.0 {
            0 => 0,
            _ => time.saturating_add(e.limits.pause_time(quanta)),
        };
    }
    found
}

/// Flows of lossless priorities.
fn lossless(e: &PfcEvidence) -> impl Iterator<Item = &FlowPlan> {
    let flows = e.plan.flows.iter();
    flows.filter(|flow| e.plan.is_lossless(flow.priority))
}

/// Octets of layer 1 of lossless priorities that left beyond what the line takes.
fn beyond(e: &PfcEvidence) -> u64 {
    let Some(span) = e.span(Phase::Storm) else {
        return 0;
    };
    let bits = |flow: &FlowPlan| {
        sent(e, flow, Phase::Storm).saturating_mul(LineRate::frame_bits(flow.length))
    };
    let bits = lossless(e).map(bits).fold(0, u64::saturating_add);
    let rate = u128::from(e.limits.line_rate.bits_per_second());
    let line = rate * u128::from(span.to.saturating_sub(span.from)) / 1_000_000_000;
    let line = u64::try_from(line).unwrap_or(u64::MAX);
    bits.saturating_sub(line) / 8
}

/// The ports that send a priority.
fn senders(e: &PfcEvidence, priority: Priority) -> impl Iterator<Item = (&PortName, &Port)> {
    let ports = e.ports.senders();
    ports.filter(move |(name, _)| sends(e, name, priority))
}

/// The lossless priorities for which XOFF came in at a port that sends them.
fn asked(e: &PfcEvidence) -> impl Iterator<Item = Priority> {
    let is_asked = |priority: &Priority| {
        senders(e, *priority).any(|(_, port)| xoffs_of_congestion(e, port, *priority) > 0)
    };
    let lossless = Priority::all().filter(|priority| e.plan.is_lossless(*priority));
    lossless.filter(is_asked)
}

/// `asks-each`.
pub(in crate::cases::pfc) fn asks_each(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let shared: Vec<_> = asked(e)
        .filter(|priority| senders(e, *priority).count() > 1)
        .collect();
    if shared.is_empty() {
        let what = "ports asked to wait, as more of a priority came in than the line takes";
        let lost = |flow: &FlowPlan| {
            let sent = sent(e, flow, Phase::Storm);
            sent.saturating_sub(received(e, flow, Phase::Storm))
        };
        let lost = lossless(e).map(lost).fold(0, u64::saturating_add);
        if lost > 0 {
            let found = "none, and " + count(lost, "frames") + " are lost";
            finding.prove(what, "each that sends it", found, false, false);
        } else {
            let found = "none; the DUT held " + count(beyond(e), "octets") + " and lost none";
            finding.undecidable(what, "each that sends it", found);
        }
        return finding;
    }
    for priority in shared {
        let times = senders(e, priority).map(|(_, port)| episodes(e, port, priority));
        let most = times.max().unwrap_or(0);
        for (name, port) in senders(e, priority) {
            let what = format!("XOFF frames for priority {priority} at the {name} port");
            let found = xoffs_of_congestion(e, port, priority);
            let others = "none, while another port was asked " + count(most, "times");
            if found > 0 {
                finding.expect(what, "some", count(found, ""), true);
            } else if most >= EPISODES {
                finding.prove(what, "some", others, false, false);
            } else {
                let found = others + "; its buffer may have been the first to fill each time";
                finding.undecided(what, "some", found);
            }
        }
    }
    finding
}

/// `asks-no-other`.
pub(in crate::cases::pfc) fn asks_no_other(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let mut compared = false;
    for (name, port) in e.ports.iter() {
        for priority in Priority::all().filter(|priority| e.plan.is_lossless(*priority)) {
            // Where no such frame is shown to be seen, that none was says nothing.
            if sees_pfc(port) && !sends(e, name, priority) {
                compared = true;
                let what = format!("XOFF frames for priority {priority} at the {name} port");
                let found = xoffs(port, priority);
                finding.prove(what, 0, found, found == 0, true);
            }
        }
    }
    if !compared {
        return Finding::not_applicable(
            "each port at which PFC is shown to be seen sends every lossless priority",
        );
    }
    if asked(e).next().is_none() {
        let what = "lossless priorities for which a port was asked to wait";
        finding.undecidable(what, "some", "none: nothing was congested");
    }
    finding
}

/// A threshold is declared below which the DUT asks for no pause.
pub(in crate::cases::pfc) fn declares_xoff(e: &PfcEvidence) -> Result<(), String> {
    match e.limits.xoff {
        Some(_) => Ok(()),
        None => Err(
            "limits.xoff is not set: it is not known from where on the DUT asks for a pause".into(),
        ),
    }
}

/// True if frames leave a port no faster than its speed: it is neither a veth nor one that a host
/// serves from memory.
fn has_wire(port: &Port) -> bool {
    let receives = nic::find(&port.driver).map(|nic| &nic.receives);
    let is_virtual = matches!(receives, Some(Receives::PassesOn | Receives::ByHost));
    port.speed.is_some() && !is_virtual
}

/// Most octets that may have waited in the DUT between two times. From one wire to another of its
/// speed no burst queues: a frame of each flow may wait. Else the tester's largest burst may, and
/// what a stall made late and had not left by then.
fn queued(e: &PfcEvidence, from: Nanos, to: Nanos) -> u64 {
    if has_wire(&e.ports.tx) && has_wire(&e.ports.rx) {
        let lengths = e.plan.flows.iter().map(|flow| flow.length as u64);
        return lengths.fold(0, u64::saturating_add);
    }
    let late = delay(e, from, to).saturating_add(unlisted_lateness(e));
    let late = late.saturating_add(e.sender.max_burst);
    let bits = u128::from(late) * u128::from(e.limits.line_rate.bits_per_second()) / 1_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

/// Judges PAUSE or PFC that came, `found` of it: a failure if one of the frames came when no more may
/// have waited than is declared. `frames`: the times between which each came.
fn expect_congested(
    finding: &mut Finding,
    e: &PfcEvidence,
    what: String,
    found: Value,
    frames: impl Iterator<Item = Range<Nanos>>,
) {
    let xoff = e.limits.xoff.unwrap_or(u64::MAX);
    let queued_at = |frame: Range<Nanos>| queued(e, frame.start, frame.end);
    let without = frames.map(queued_at).find(|queued| *queued <= xoff);
    let declared = " octets may have waited, and limits.xoff is ";
    match without {
        Some(queued) => {
            let found = found + ", one when at most " + queued + declared + count(xoff, "");
            finding.prove(what, 0, found, false, true);
        }
        None => {
            let most = queued(e, 0, Nanos::MAX);
            let found = found + "; up to " + most + declared + count(xoff, "");
            finding.undecided(what, 0, found);
        }
    }
}

/// `silent`.
pub(in crate::cases::pfc) fn silent(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let ports = || e.ports.iter().map(|(_, port)| &port.counts);
    let of_port = |counts: &PortReceived| {
        let pause = counts.pause.xoff.saturating_add(counts.pause.xon);
        counts.pfc_frames.saturating_add(pause)
    };
    let seen = ports().map(of_port).fold(0, u64::saturating_add);
    let what = "PAUSE and PFC frames of the DUT";
    if seen > 0 {
        let frames = ports().flat_map(|counts| &counts.controls);
        // The tester may look at a frame later than it came.
        let times =
            frames.map(|frame| frame.time.saturating_sub(e.limits.max_response)..frame.time);
        expect_congested(&mut finding, e, what.into(), count(seen, ""), times);
        return finding;
    }
    let Ok(Witness::Mac(mac)) = mac::witness(e) else {
        finding.expect(what, 0, 0, true);
        return finding;
    };
    // A MAC tells XOFF alone; `no-pause` weighs its count of PAUSE.
    for priority in Priority::all() {
        let what = format!(
            "XOFF for priority {priority} of the DUT, by the MAC of {}",
            mac.interface
        );
        match mac::xoff(mac, priority) {
            Counted::None(how) => finding.expect(what, 0, how, true),
            Counted::Some(how) => {
                let any_time = std::iter::once(0..Nanos::MAX);
                expect_congested(&mut finding, e, what, how, any_time);
            }
            Counted::Unknown(why) | Counted::Unshown(why) => finding.undecidable(what, 0, why),
        }
    }
    finding
}
