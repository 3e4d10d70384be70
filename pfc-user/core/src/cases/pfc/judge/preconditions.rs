//! Preconditions on the tester's side of a check; each that is not met names the figure.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::LineRate;

use super::{Pfc, mac};
use crate::cases::judge::{Met, Precondition};
use crate::evidence::pfc::{
    Gap, LeftOut, PfcEvidence, PhaseSpan, Port, Stall, StormReport, Withheld,
};
use crate::plan::{FlowPlan, Nanos, PortName, Role};
use crate::quantity::ms;
use crate::verdict::Flow;

type Need = Precondition<Pfc>;

/// The phases at full rate.
const ALL: [Phase; 3] = [Phase::Baseline, Phase::Storm, Phase::Resume];

/// The traffic whose priorities no frame of the storm names.
const BESIDE: [Role; 2] = [Role::Background, Role::Isolation];

/// The PFC frames of the storm name some priority.
pub(in crate::cases::pfc) fn storm_names_some(e: &PfcEvidence) -> Result<(), String> {
    match storm_names_none(e) {
        Ok(()) => Err("the storm of this repetition names no priority".into()),
        Err(_) => Ok(()),
    }
}

/// The storm is to hold some of the traffic.
pub(in crate::cases::pfc) fn storm_holds_some(e: &PfcEvidence) -> Result<(), String> {
    match flows(e, Some(Role::Test)).next() {
        Some(_) => Ok(()),
        None => Err("the storm of this repetition names no lossless priority with traffic".into()),
    }
}

/// The PFC frames of the storm name no priority.
pub(in crate::cases::pfc) fn storm_names_none(e: &PfcEvidence) -> Result<(), String> {
    match e.plan.storm.as_ref().and_then(|storm| storm.kind.named()) {
        Some(named) if !named.is_empty() => Err(format!(
            "the storm of this repetition names priority {}",
            crate::cases::pfc::planning::join(named)
        )),
        _ => Ok(()),
    }
}

/// Carrier, equal speed and no watchdog. Where it is not met it explains even a failure that no
/// loss or lateness of the tester does: a pause then does not last as long as was asked, and frames
/// are lost.
pub(in crate::cases::pfc) const PORTS: Need = Need {
    explains_certain: true,
    ..PORTS_OF_ARRIVALS
};
/// `PORTS` for checks on frames that arrived: a breach of it makes no DUT double, damage, re-mark,
/// send or forward a frame.
pub(in crate::cases::pfc) const PORTS_OF_ARRIVALS: Need = Need::new(
    "ports",
    "Keep the links up and unchanged for the whole run, and declare facts.watchdog = \"off\" once \
     the DUT's PFC watchdog is off.",
    ports,
);
/// The tester's side lost nothing.
pub(in crate::cases::pfc) const ACCOUNTING: Need = Need::of_tester(
    "accounting",
    "Take load off the tester, or give its ports longer rings, until it drops nothing itself.",
    accounting,
);
/// Every flow arrived in the baseline.
pub(in crate::cases::pfc) const BASELINE: Need = Need::new(
    "baseline",
    "See that every flow reaches its port without a storm: VLAN, addresses and DSCP map.",
    |e| baseline(e, None),
);
/// The test traffic arrived in the baseline.
pub(in crate::cases::pfc) const BASELINE_OF_TEST: Need = Need {
    met: Met::If(|e| baseline(e, Some(&[Role::Test]))),
    ..BASELINE
};
/// The background traffic arrived in the baseline.
pub(in crate::cases::pfc) const BASELINE_OF_BACKGROUND: Need = Need {
    met: Met::If(|e| baseline(e, Some(&[Role::Background]))),
    ..BASELINE
};
/// The lossless traffic that is not stormed arrived in the baseline.
pub(in crate::cases::pfc) const BASELINE_OF_ISOLATION: Need = Need {
    met: Met::If(|e| baseline(e, Some(&[Role::Isolation]))),
    ..BASELINE
};
/// All that the storm does not concern arrived in the baseline.
pub(in crate::cases::pfc) const BASELINE_BESIDE: Need = Need {
    met: Met::If(|e| baseline(e, Some(&BESIDE))),
    ..BASELINE
};
/// The sender kept the rate of every flow.
pub(in crate::cases::pfc) const RATE: Need = Need::of_tester(
    "rate",
    "Send fewer frames a second, by longer ones (traffic.frame of the plan) or a lower \
     limits.load, or give the sender a CPU of its own.",
    |e| rate(e, None, &ALL),
);
/// The sender kept the rate of every flow in the storm.
pub(in crate::cases::pfc) const RATE_IN_STORM: Need = Need {
    met: Met::If(|e| rate(e, None, &[Phase::Storm])),
    ..RATE
};
/// The sender kept the rate of the test traffic; that of the baseline stands in for what the DUT
/// withholds in the storm.
pub(in crate::cases::pfc) const RATE_OF_TEST: Need = Need {
    met: Met::If(|e| rate(e, Some(Role::Test), &[Phase::Baseline, Phase::Storm])),
    ..RATE
};
/// The sender kept the rate of the test traffic after the drain.
pub(in crate::cases::pfc) const RATE_OF_RESUME: Need = Need {
    met: Met::If(|e| rate(e, Some(Role::Test), &[Phase::Resume])),
    ..RATE
};
/// The sender kept the rate of the background traffic.
pub(in crate::cases::pfc) const RATE_OF_BACKGROUND: Need = Need {
    met: Met::If(|e| rate(e, Some(Role::Background), &ALL)),
    ..RATE
};
/// The sender kept the rate of the lossless traffic that is not stormed.
pub(in crate::cases::pfc) const RATE_OF_ISOLATION: Need = Need {
    met: Met::If(|e| rate(e, Some(Role::Isolation), &ALL)),
    ..RATE
};
/// The sender kept the rate of all that the storm does not concern.
pub(in crate::cases::pfc) const RATE_BESIDE: Need = Need {
    met: Met::If(|e| {
        BESIDE
            .into_iter()
            .try_for_each(|role| rate(e, Some(role), &ALL))
    }),
    ..RATE
};
/// The storm had no gap above its pause time.
pub(in crate::cases::pfc) const STORM_CONTINUITY: Need = Need::of_tester(
    "storm-continuity",
    "Give the storm a CPU of its own, with nothing beside it on the machine.",
    storm_continuity,
);
/// PAUSE/PFC frames were shown to reach the tx port's counters, the program's or else its MAC's,
/// and the programs of further ports that send.
pub(in crate::cases::pfc) const PFC_VISIBLE: Need = Need::new(
    "pfc-visible",
    "Turn off pause handling in the MAC of the sending port, or use a port whose driver counts the \
     frames; `validator check` says what to type. A further port that a good DUT has no reason to \
     pause is shown to see PFC by pfc.oversubscription in the same run, or by facts.pfc_visible.",
    |e| {
        mac::witness(e)?;
        unseen(e, None)
            .next()
            .map_or(Ok(()), |port| Err(not_shown(port)))
    },
);
/// PAUSE/PFC frames were shown to reach the program of each sending port.
pub(in crate::cases::pfc) const SENDERS_SEE_PFC: Need = Need {
    met: Met::If(|e| senders_see_pfc(e)),
    ..PFC_VISIBLE
};
/// The tx port's MAC does not obey the storm that the rx port sends.
pub(in crate::cases::pfc) const OWN_STORM: Need = Need::new(
    "own-storm",
    "Have the MAC of the tx port pass pause frames on, such as by `ethtool -K DEV rx-all on`, or \
     keep the DUT from forwarding them.",
    own_storm,
);
/// Excuses a loss of lossless frames and nothing else; weighed where losses are counted.
pub(in crate::cases::pfc) const HONOURED: Need = Need::by("honoured", Met::InCheck);
/// Weighed attempt by attempt by the checks of the probe.
pub(in crate::cases::pfc) const PROBE_LATENCY: Need = Need::by("probe-latency", Met::InCheck);

fn ports(e: &PfcEvidence) -> Result<(), String> {
    for (_, port) in e.ports.iter() {
        let disturbed = if port.carrier {
            port.disturbed.as_deref()
        } else {
            Some("had no carrier")
        };
        if let Some(what) = disturbed {
            return Err(format!("{} {what} during the repetition", port.interface));
        }
    }
    let mut speeds = e
        .ports
        .iter()
        .filter_map(|(name, port)| Some((name, port.speed?)));
    if let Some((first, speed)) = speeds.next()
        && let Some((name, other)) = speeds.find(|(_, other)| *other != speed)
    {
        return Err(format!(
            "the ports differ in speed: {first} {speed} bit/s, {name} {other} bit/s"
        ));
    }
    for (_, port) in e.ports.iter() {
        // A quantum is 512 bit times of the link, whatever the testbed says.
        let (name, line_rate) = (&port.interface, e.limits.line_rate);
        let other = |speed: &u64| *speed != line_rate.bits_per_second();
        if let Some(speed) = port.speed.filter(other) {
            return Err(format!(
                "{name} runs at {speed} bit/s, pause times were taken at {line_rate}; leave \
                 ports.line_rate out"
            ));
        }
    }
    match e.watchdog.as_deref() {
        Some("off") => Ok(()),
        Some(state) => Err(format!(
            "the DUT's PFC watchdog is {state}; it has to be off"
        )),
        None => Err(
            "it is not known that the DUT's PFC watchdog is off; declare facts.watchdog = \"off\""
                .into(),
        ),
    }
}

fn senders_see_pfc(e: &PfcEvidence) -> Result<(), String> {
    let tx = std::iter::once(&e.ports.tx).filter(|port| !sees_pfc(port));
    match tx.chain(unseen(e, None)).next() {
        Some(port) => Err(not_shown(port)),
        None => Ok(()),
    }
}

/// True if PFC frames were shown to reach the program of that port.
pub(super) fn sees_pfc(port: &Port) -> bool {
    port.pfc_visible.is_some() || port.counts.pfc_frames > 0
}

/// That it was not shown that PFC reaches the program of a port.
pub(super) fn not_shown(port: &Port) -> String {
    format!(
        "it was not shown that PAUSE/PFC frames reach the program on {}",
        port.interface
    )
}

/// True if these flows may fill one buffer: they are of one priority, and leave by one port.
pub(super) fn shares_buffer(one: &FlowPlan, other: &FlowPlan) -> bool {
    one.priority == other.priority && one.to == other.to
}

/// Ports beside tx that send flows, any or such as may fill the buffer of that one, and whose
/// program was not shown to see PFC.
pub(super) fn unseen<'e>(
    e: &'e PfcEvidence,
    of: Option<&FlowPlan>,
) -> impl Iterator<Item = &'e Port> {
    let sends = move |name: &PortName| {
        let mut flows = e.plan.flows.iter();
        flows.any(|flow| flow.from == *name && of.is_none_or(|of| shares_buffer(flow, of)))
    };
    let ports = e.ports.more.iter();
    let unseen = ports.filter(move |(name, port)| sends(name) && !sees_pfc(port));
    unseen.map(|(_, port)| port)
}

/// A DUT that forwards the storm and does not obey it looks like one that obeys, if the tx port's
/// MAC then does. Where the program sees those frames it passes them by.
pub(super) fn own_storm(e: &PfcEvidence) -> Result<(), String> {
    let tx = &e.ports.tx;
    tx.takes_own_pfc.as_ref().map_or(Ok(()), |how| {
        Err(format!(
            "the MAC of {} may obey the storm itself, as the DUT forwards PFC frames or is a cable: \
             {how}",
            tx.interface
        ))
    })
}

/// Frames that the tester's side may have lost, with where.
pub(super) fn lost_by_tester(e: &PfcEvidence) -> (u64, String) {
    let counters = e.accounting.iter().map(|counter| {
        let place = format!("{} {} +", counter.place, counter.counter);
        (place, counter.rise)
    });
    let of_dut = e.dut.iter().flat_map(|dut| {
        [
            ("simulated DUT overruns ".into(), dut.overruns),
            ("simulated DUT refused sends ".into(), dut.send_errors),
        ]
    });
    let lost = counters.chain(of_dut).filter(|(_, count)| *count > 0);
    let (counts, places): (Vec<u64>, Vec<String>) = lost
        .map(|(place, count)| (count, format!("{place}{count}")))
        .unzip();
    (counts.iter().sum(), places.join(", "))
}

fn accounting(e: &PfcEvidence) -> Result<(), String> {
    match lost_by_tester(e) {
        (0, _) => Ok(()),
        (_, places) => Err(format!("drops on the tester's own side: {places}")),
    }
}

/// A flow as a reader knows it.
pub(super) fn name(e: &PfcEvidence, flow: &FlowPlan) -> String {
    let pcp = flow.pcp.map_or(String::new(), |pcp| format!("PCP {pcp}, "));
    let is_as_long = |other: &FlowPlan| other.length == flow.length;
    let length = match e.plan.flows.iter().all(is_as_long) {
        true => String::new(),
        false => format!(", {} octets", flow.length),
    };
    format!("flow {} ({pcp}DSCP {}{length})", flow.id, flow.dscp)
}

/// A flow, for the comparisons that are about it.
pub(super) fn named(e: &PfcEvidence, flow: &FlowPlan) -> Flow {
    Flow {
        id: flow.id,
        name: name(e, flow),
    }
}

/// Every flow of these roles, or of all, arrived.
fn baseline(e: &PfcEvidence, roles: Option<&[Role]>) -> Result<(), String> {
    let is_of = |flow: &&FlowPlan| roles.is_none_or(|roles| roles.contains(&flow.role));
    let is_dead = |flow: &&FlowPlan| received(e, flow, Phase::Baseline) == 0;
    let found = flows(e, None).filter(is_of).filter(is_dead);
    let dead: Vec<String> = found.map(|flow| name(e, flow)).collect();
    if dead.is_empty() {
        return Ok(());
    }
    Err(format!(
        "nothing was received in the baseline, so that a count of zero proves nothing: {}",
        dead.join(", ")
    ))
}

/// Frames as long as those of `flow` that a layer-1 rate allows in `span`.
pub(super) fn frames_at(rate: u64, flow: &FlowPlan, span: Nanos) -> f64 {
    rate as f64 * span as f64 / 1e9 / LineRate::frame_bits(flow.length) as f64
}

/// Frames of `flow` that left in `phase`.
pub(in crate::cases::pfc) fn sent(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> u64 {
    e.sent(flow.id, phase).map_or(0, |sent| sent.frames)
}

/// Frames of `flow` that left in `phase` and arrived.
pub(super) fn received(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> u64 {
    e.received(flow.id, phase)
        .map_or(0, |received| received.frames)
}

/// The flows of `role`, or all.
pub(in crate::cases::pfc) fn flows(
    e: &PfcEvidence,
    role: Option<Role>,
) -> impl Iterator<Item = &FlowPlan> {
    let flows = e.plan.flows.iter();
    flows.filter(move |flow| role.is_none_or(|role| flow.role == role))
}

/// Time for which the DUT's XOFF held `flow` back in `phase`.
pub(super) fn withheld(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> Nanos {
    let Some(data) = e.span(phase) else { return 0 };
    let listed = withheld_listed(e, flow, phase).map(|held| {
        let (from, to) = (held.from.max(data.from), held.to.min(data.to));
        to.saturating_sub(from)
    });
    let left_out = withheld_left_out(e, flow, phase).map(|spans| spans.total);
    listed.chain(left_out).fold(0, Nanos::saturating_add)
}

/// End of the last span in which the DUT's XOFF held `flow` back in `phase`: no later stall is the
/// reason of one. 0 where there is none.
pub(super) fn withheld_until(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> Nanos {
    let listed = withheld_listed(e, flow, phase).map(|held| held.to);
    let left_out = withheld_left_out(e, flow, phase).map(|spans| spans.to);
    listed.chain(left_out).max().unwrap_or(0)
}

/// Listed spans in which the DUT's XOFF held `flow` back in `phase`.
pub(super) fn withheld_listed<'e>(
    e: &'e PfcEvidence,
    flow: &FlowPlan,
    phase: Phase,
) -> impl Iterator<Item = &'e Withheld> + use<'e> {
    let (spans, priority, from) = (e.sender.withheld.iter(), flow.priority, flow.from.clone());
    spans.filter(move |held| held.priority == priority && held.phase == phase && held.port == from)
}

/// Such spans that are not listed.
pub(super) fn withheld_left_out<'e>(
    e: &'e PfcEvidence,
    flow: &FlowPlan,
    phase: Phase,
) -> impl Iterator<Item = &'e LeftOut> + use<'e> {
    let (spans, priority) = (e.sender.withheld_left_out.iter(), flow.priority);
    let from = flow.from.clone();
    let of_flow = spans.filter(move |spans| {
        spans.priority == priority && spans.phase == phase && spans.port == from
    });
    of_flow.map(|of| &of.spans)
}

/// The sender kept the rates of the flows of `role`, or of all, in `phases`.
fn rate(e: &PfcEvidence, role: Option<Role>, phases: &[Phase]) -> Result<(), String> {
    if e.sender.errors > 0 {
        return Err(format!(
            "the kernel refused {} frames of the sender",
            e.sender.errors
        ));
    }
    let largest = e.limits.largest_burst(&e.plan.flows);
    if e.sender.max_burst > largest {
        return Err(format!(
            "the sender's largest burst was {}, at most {} is allowed",
            ms(e.sender.max_burst),
            ms(largest)
        ));
    }
    for span in phases.iter().filter_map(|phase| e.span(*phase)) {
        for flow in flows(e, role) {
            rate_of(e, flow, span)?;
        }
    }
    Ok(())
}

/// Layer-1 rate at which `flow` is sent in a phase that is no probe.
pub(super) fn rate_in(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> u64 {
    (u128::from(flow.rate) * u128::from(e.plan.load(phase)) / 100) as u64
}

/// The sender kept the rate of `flow` in the phase `span`.
fn rate_of(e: &PfcEvidence, flow: &FlowPlan, span: PhaseSpan) -> Result<(), String> {
    let phase = span.phase;
    let sent = sent(e, flow, phase);
    if phase == Phase::Storm && e.plan.holds(flow) {
        // The DUT withholds these; the baseline shows that the sender keeps their rate.
        if sent == 0 {
            return Err(format!("no storm-phase frame of {} left", name(e, flow)));
        }
        return Ok(());
    }
    if withheld_left_out(e, flow, phase).any(|spans| spans.from < span.from || spans.to > span.to) {
        let name = name(e, flow);
        return Err(format!(
            "it is not known how long {name} was withheld in phase {phase:?}: there were too many \
             spans to list"
        ));
    }
    let time = (span.to - span.from).saturating_sub(withheld(e, flow, phase));
    // Frames due when an XOFF came leave after it, or never if it holds to the end of the phase. A
    // sender may look as rarely as that; more rarely is a stall.
    let held_at_end = withheld_listed(e, flow, phase).any(|held| held.to + Stall::ABOVE >= span.to);
    let unsent = if held_at_end { Stall::ABOVE } else { 0 };
    let rate = rate_in(e, flow, phase);
    let least = frames_at(rate, flow, time.saturating_sub(unsent));
    let most = frames_at(rate, flow, time);
    // A count is a whole number: one frame either way.
    if (sent as f64) < least * 0.99 - 1.0 || sent as f64 > most + 1.0 {
        let name = name(e, flow);
        return Err(format!(
            "{name} missed its rate in phase {phase:?}: {sent} frames left, {most:.0} were to leave"
        ));
    }
    Ok(())
}

/// Shortest time that a pause of the storm lasts, as a DUT's clock may be fast; of a storm of XONs,
/// that in which another one is due.
pub(super) fn shortest_lapse(e: &PfcEvidence) -> Nanos {
    e.plan.storm.as_ref().map_or(0, |storm| {
        let tolerance = e.limits.pause_tolerance(storm.quanta);
        storm.lapse(e.limits.line_rate).saturating_sub(tolerance)
    })
}

/// Earliest end of the pause of the storm's last frame.
pub(super) fn storm_end(e: &PfcEvidence, storm: &StormReport) -> Nanos {
    storm.last.before + shortest_lapse(e)
}

/// A gap that lets a DUT with a fast clock go on, but is not above the pause time, so that it is
/// not known where it was.
pub(super) fn has_narrow_gap(e: &PfcEvidence, storm: &StormReport) -> bool {
    storm.gaps_above() == 0 && storm.max_gap > shortest_lapse(e)
}

fn storm_continuity(e: &PfcEvidence) -> Result<(), String> {
    let (Some(plan), Some(storm)) = (&e.plan.storm, &e.storm) else {
        return Err("there was no storm".into());
    };
    let Some(data) = e.span(Phase::Storm) else {
        return Err("there was no traffic during the storm".into());
    };
    if storm.frames == 0 {
        return Err(format!(
            "not one frame of the storm left, they were refused {} times",
            storm.errors
        ));
    }
    if storm_end(e, storm) < data.to {
        return Err("the storm ended before the traffic".into());
    }
    if storm.first.after + e.limits.max_response > data.from {
        return Err("the storm did not begin by max_response before the traffic".into());
    }
    let lapse = ms(plan.lapse(e.limits.line_rate));
    if has_narrow_gap(e, storm) {
        let gap = ms(storm.max_gap);
        return Err(format!(
            "the storm's largest gap, {gap}, is not below its pause time of {lapse} by the \
             tolerance of the DUT's clock"
        ));
    }
    let gaps = storm.gaps.iter().filter(|gap| gap.to >= data.from);
    let lengths: Vec<_> = gaps.map(Gap::length).collect();
    let mut count = lengths.len() as u64;
    let mut largest = lengths.into_iter().max();
    if storm.gaps_left_out.may_overlap(data.from, Nanos::MAX) {
        count += storm.gaps_left_out.count;
        largest = Some(storm.max_gap);
    }
    let Some(largest) = largest else {
        return Ok(());
    };
    let largest = ms(largest);
    Err(if plan.asks() {
        format!("the storm had {count} gaps above its pause time of {lapse}, the largest {largest}")
    } else {
        format!("the storm had {count} gaps above three intervals, {lapse}, the largest {largest}")
    })
}
