//! Wholeness of a repetition of a PFC case. That its plan is the planned one is known already.

use pfc_ebpf::abi::account::OffenceKind;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Priority;

use super::{Checked, Rule, ascends, ensure, frames, stalls, storm};
use crate::evidence::hooks;
use crate::evidence::mac::MacReport;
use crate::evidence::pfc::{
    ControlReceived, FlowReceived, LeftOut, Offence, PfcEvidence, PhaseSpan, PortReceived,
};
use crate::plan::Nanos;

/// IEEE 802.3 31B and 802.1Q.
const PFC: u16 = 0x0101;
/// Probes of a repetition: as many as have to count, and at most.
const MOST_PROBES: usize = 30;

pub(super) fn check(e: &PfcEvidence, at: &str) -> Checked {
    phases(e, at)?;
    if e.interrupted {
        // No check is judged. What was under way was counted here and not yet there.
        return Ok(());
    }
    ports(e, at)?;
    instruments(e, at)?;
    spans(e, at)?;
    waits(e, at)?;
    storm::check(e, at)?;
    probes(e, at)?;
    for (name, port) in [("tx_port", &e.tx_port), ("rx_port", &e.rx_port)] {
        let at = format!("{at}.{name}");
        kinds(port, &at)?;
        control(port, &at)?;
    }
    offences(e, at)?;
    let changed = hooks::changes(&e.hooks);
    ensure(e.dut_counters == changed, Rule::Instruments, at, || {
        format!(
            "{} counters of the DUT changed, those of the hooks are {}",
            e.dut_counters.len(),
            changed.len()
        )
    })?;
    for mac in &e.mac {
        rises(mac, &format!("{at}.mac ({})", mac.port))?;
    }
    frames::check(e, at)
}

fn phases(e: &PfcEvidence, at: &str) -> Checked {
    let at = &format!("{at}.phases");
    let begun = e.phases.iter().map(|span| span.phase);
    let named: Vec<Phase> = begun.chain(e.not_begun.iter().copied()).collect();
    ensure(named == e.plan.phases(), Rule::Phases, at, || {
        format!("planned were {:?}; found {named:?}", e.plan.phases())
    })?;
    ensure(
        e.not_begun.is_empty() || e.interrupted,
        Rule::Phases,
        at,
        || format!("{:?} did not begin, though nobody interrupted", e.not_begun),
    )?;
    let overlaps = |pair: &[PhaseSpan]| pair[1].from < pair[0].to;
    let overlap = e.phases.windows(2).find(|pair| overlaps(pair));
    ensure(overlap.is_none() || e.interrupted, Rule::Phases, at, || {
        format!(
            "{:?} begins before the end of the phase before",
            overlap.map(|pair| pair[1].phase)
        )
    })?;
    for span in &e.phases {
        let least = match span.phase {
            Phase::Baseline => e.plan.durations.baseline,
            Phase::Storm => e.plan.durations.traffic,
            Phase::Resume => e.plan.durations.resume,
            Phase::Drain | Phase::Probe => 0,
        };
        let long = span
            .to
            .checked_sub(span.from)
            .is_some_and(|length| length >= least);
        ensure(long, Rule::Phases, at, || {
            format!("{:?} is shorter than its {least} ns", span.phase)
        })?;
    }
    Ok(())
}

/// Facts of each port are its own.
fn ports(e: &PfcEvidence, at: &str) -> Checked {
    for (name, facts) in [("tx", &e.ports.tx), ("rx", &e.ports.rx)] {
        ensure(
            facts.port == name,
            Rule::Ports,
            &format!("{at}.ports.{name}"),
            || format!("these are facts of the port `{}`", facts.port),
        )?;
    }
    Ok(())
}

fn instruments(e: &PfcEvidence, at: &str) -> Checked {
    let read: Vec<_> = e
        .accounting
        .iter()
        .map(|read| (&read.place, &read.counter))
        .collect();
    let planned: Vec<_> = e
        .instruments
        .counters
        .iter()
        .map(|(place, name)| (place, name))
        .collect();
    ensure(
        read == planned,
        Rule::Instruments,
        &format!("{at}.accounting"),
        || {
            let missing = planned.iter().find(|counter| !read.contains(counter));
            match missing {
                Some((place, name)) => format!("the reading of {name} of {place} is missing"),
                None => "a reading is there twice, out of order, or was not planned".into(),
            }
        },
    )?;
    let macs: Vec<_> = e.mac.iter().map(|mac| (&mac.port, names(mac))).collect();
    let planned: Vec<_> = e
        .instruments
        .macs
        .iter()
        .map(|(port, names)| (port, names.clone()))
        .collect();
    ensure(
        macs == planned,
        Rule::Instruments,
        &format!("{at}.mac"),
        || format!("planned were {planned:?}; found {macs:?}"),
    )?;
    ensure(
        e.dut.is_some() == e.instruments.device,
        Rule::Instruments,
        &format!("{at}.dut"),
        || "the report of the simulated DUT is missing, or there is none".into(),
    )
}

fn names(mac: &MacReport) -> Vec<String> {
    mac.counters
        .iter()
        .map(|counter| counter.name.clone())
        .collect()
}

/// Spans of the sender and the simulated DUT: each once, and those withheld add up.
fn spans(e: &PfcEvidence, at: &str) -> Checked {
    let sender = &e.sender;
    let at_sender = format!("{at}.sender.stalls");
    stalls(
        &sender.stalls,
        sender.stalls_left_out,
        sender.stalls_noted,
        &at_sender,
    )?;
    if let Some(storm) = &e.storm {
        let at = format!("{at}.storm.stalls");
        stalls(
            &storm.stalls,
            storm.stalls_left_out,
            storm.stalls_noted,
            &at,
        )?;
    }
    if let Some(dut) = &e.dut {
        let at = format!("{at}.dut.stalls");
        stalls(&dut.stalls, LeftOut::default(), dut.stalls_noted, &at)?;
    }
    for priority in Priority::all() {
        let listed = e
            .sender
            .withheld
            .iter()
            .filter(|held| held.priority == priority);
        let listed = listed.map(|held| held.to.saturating_sub(held.from));
        let others = e
            .sender
            .withheld_left_out
            .iter()
            .filter(|held| held.priority == priority);
        let sum = listed
            .chain(others.map(|held| held.spans.total))
            .fold(0, Nanos::saturating_add);
        let total = e.sender.withheld_total[priority.index()];
        ensure(
            sum == total,
            Rule::Spans,
            &format!("{at}.sender.withheld"),
            || format!("priority {priority} was withheld for {total} ns, but {sum} ns are listed"),
        )?;
    }
    Ok(())
}

/// Each burst of traffic was followed by a wait for its last frames, and the probe by one more.
fn waits(e: &PfcEvidence, at: &str) -> Checked {
    let at = &format!("{at}.waits");
    let bursts = |phase| match phase {
        Phase::Drain => 0,
        Phase::Probe => e.probes.len() + 1,
        Phase::Baseline | Phase::Storm | Phase::Resume => 1,
    };
    for span in &e.phases {
        let expected = bursts(span.phase);
        let found = e
            .waits
            .iter()
            .filter(|wait| wait.phase == span.phase)
            .count();
        ensure(found == expected, Rule::Waits, at, || {
            format!(
                "{expected} were made in phase {:?}; found {found}",
                span.phase
            )
        })?;
    }
    let times = e.waits.iter().flat_map(|wait| [wait.from, wait.to]);
    ensure(ascends(times), Rule::Waits, at, || {
        "they are out of order".into()
    })
}

fn probes(e: &PfcEvidence, at: &str) -> Checked {
    let at = &format!("{at}.probes");
    let Some(plan) = &e.plan.probe else {
        return ensure(e.probes.is_empty(), Rule::Probes, at, || {
            "none was planned".into()
        });
    };
    let (made, least) = (e.probes.len(), plan.bursts.len());
    ensure((1..=MOST_PROBES).contains(&made), Rule::Probes, at, || {
        format!("1 to {MOST_PROBES} were planned; found {made}")
    })?;
    let frames: u64 = e.probes.iter().map(|probe| probe.left.len() as u64).sum();
    ensure(frames == e.single_pauses, Rule::Probes, at, || {
        format!(
            "they have {frames} pause frames, but {} left",
            e.single_pauses
        )
    })?;
    for probe in &e.probes {
        let planned = plan.bursts.contains(&probe.burst);
        let complete = probe.left.len() == probe.burst.frames.len();
        ensure(planned && complete, Rule::Probes, at, || {
            "one was not made as planned".into()
        })?;
    }
    // One that another try could not improve ends them.
    let first = e.probes.iter().zip(&plan.bursts);
    let in_turn = first
        .filter(|(probe, burst)| probe.burst == **burst)
        .count();
    ensure(in_turn >= made.min(least), Rule::Probes, at, || {
        "the first of them are not those of the plan".into()
    })?;
    let departures = e.probes.iter().flat_map(|probe| &probe.left);
    let times = departures.flat_map(|frame| [frame.before, frame.after]);
    ensure(ascends(times), Rule::Probes, at, || {
        "they are out of order".into()
    })
}

/// All frames of a port are of some kind.
fn kinds(port: &PortReceived, at: &str) -> Checked {
    let malformed: u64 = port.malformed.iter().map(|(_, count)| count).sum();
    let sum = port.test_frames
        + port.foreign_run
        + port.other
        + port.pfc_frames
        + port.pause.xoff
        + port.pause.xon
        + port.own_control
        + malformed;
    ensure(sum == port.frames, Rule::Ports, at, || {
        format!(
            "{} frames came in, but those of each kind are {sum}",
            port.frames
        )
    })?;
    let among = |(reason, count): &(_, u64)| {
        let mut all = port.malformed.iter().filter(|(other, _)| other == reason);
        all.any(|(_, all)| count <= all)
    };
    ensure(port.damaged.iter().all(among), Rule::Ports, at, || {
        "more frames are damaged than malformed".into()
    })
}

/// The log of PAUSE and PFC frames has as many of each class as were counted.
fn control(port: &PortReceived, at: &str) -> Checked {
    let at = &format!("{at}.controls");
    let logged = port.controls.len() as u64 + port.controls_lost;
    let counted = port.pfc_frames + port.pause.xoff + port.pause.xon;
    ensure(logged == counted, Rule::Control, at, || {
        format!("{logged} were logged or lost, {counted} were counted")
    })?;
    let times = port.controls.iter().map(|control| control.time);
    ensure(ascends(times), Rule::Control, at, || {
        "they are out of order".into()
    })?;
    let agree = |logged: u64, counted: u64| {
        logged == counted || (port.controls_lost > 0 && logged < counted)
    };
    let (of_pfc, of_pause): (Vec<&ControlReceived>, Vec<&ControlReceived>) = port
        .controls
        .iter()
        .partition(|control| control.opcode == PFC);
    for priority in Priority::all() {
        let index = priority.index();
        let quanta = of_pfc
            .iter()
            .filter(|control| control.vector >> index & 1 == 1)
            .map(|control| control.quanta[index]);
        let (xoff, xon): (Vec<u16>, Vec<u16>) = quanta.partition(|quanta| *quanta > 0);
        let class = &port.pfc[index];
        let whole = agree(xoff.len() as u64, class.xoff) && agree(xon.len() as u64, class.xon);
        ensure(whole, Rule::Control, at, || {
            format!(
                "of priority {priority} {} XOFF and {} XON are logged, {} and {} were counted",
                xoff.len(),
                xon.len(),
                class.xoff,
                class.xon
            )
        })?;
    }
    let xoff = of_pause
        .iter()
        .filter(|control| control.quanta[0] > 0)
        .count() as u64;
    let xon = of_pause.len() as u64 - xoff;
    let whole = agree(xoff, port.pause.xoff) && agree(xon, port.pause.xon);
    ensure(whole, Rule::Control, at, || {
        format!("{xoff} PAUSE frames with a time and {xon} without one are logged")
    })
}

/// As many offending frames were kept or lost as were counted.
fn offences(e: &PfcEvidence, at: &str) -> Checked {
    let at = &format!("{at}.offences");
    let total = |count: fn(&FlowReceived) -> u64| e.received.iter().map(count).sum::<u64>();
    let damaged = |port: &PortReceived| port.damaged.iter().map(|(_, count)| count).sum::<u64>();
    let of_tx = [
        (OffenceKind::OwnControl, e.tx_port.own_control),
        (OffenceKind::Malformed, damaged(&e.tx_port)),
    ];
    let of_rx = [
        (OffenceKind::Duplicate, total(|flow| flow.duplicate)),
        (OffenceKind::Reordered, total(|flow| flow.reordered)),
        (OffenceKind::BeyondWindow, total(|flow| flow.beyond_window)),
        (OffenceKind::Corrupt, total(|flow| flow.corrupt)),
        (OffenceKind::Altered, total(|flow| flow.altered)),
        (OffenceKind::Resized, total(|flow| flow.resized)),
        (OffenceKind::Remarked, total(|flow| flow.remarked)),
        (OffenceKind::OwnControl, e.rx_port.own_control),
        (OffenceKind::Malformed, damaged(&e.rx_port)),
    ];
    for (name, port, counts) in [
        ("tx", &e.tx_port, &of_tx[..]),
        ("rx", &e.rx_port, &of_rx[..]),
    ] {
        for (kind, counted) in counts {
            let alike = |offence: &&_| offence_is(offence, name, *kind);
            let kept = e.offences.iter().filter(alike).count() as u64;
            let fits = kept <= *counted && counted - kept <= port.offences_lost;
            ensure(fits, Rule::Offences, at, || {
                format!("{kept} of kind {kind:?} were kept at {name}, {counted} were counted")
            })?;
        }
    }
    Ok(())
}

fn offence_is(offence: &Offence, port: &str, kind: OffenceKind) -> bool {
    offence.port == port && offence.kind == kind
}

/// A MAC's counters rose as was noted at the last reading.
fn rises(mac: &MacReport, at: &str) -> Checked {
    let times = mac.readings.iter().map(|reading| reading.time);
    ensure(ascends(times), Rule::Macs, at, || {
        "readings are out of order".into()
    })?;
    for counter in &mac.counters {
        let whole = counter.values.len() == mac.readings.len() || mac.error.is_some();
        ensure(
            whole && counter.rise() == counter.rose,
            Rule::Macs,
            at,
            || {
                format!(
                    "{} has values that are not those that were read",
                    counter.name
                )
            },
        )?;
    }
    Ok(())
}
