//! Wholeness of a repetition of a PFC case. That its plan is the planned one is known already.

use pfc_ebpf::stamp::Phase;

use super::{Checked, Rule, frames};
use crate::evidence::mac::MacReport;
use crate::evidence::pfc::{PfcEvidence, PortReceived};

pub(super) fn check(e: &PfcEvidence, at: &str) -> Checked {
    phases(e, at)?;
    if e.interrupted {
        // No check is judged. What was under way was counted here and not yet there.
        return Ok(());
    }
    instruments(e, at)?;
    waits(e, at)?;
    storm(e, at)?;
    probes(e, at)?;
    for (name, port) in e.ports.iter() {
        counts(&port.counts, &format!("{at}.ports.{name}.counts"))?;
    }
    frames::check(e, at)
}

/// The phases are those of the plan, in order, and none is too short.
fn phases(e: &PfcEvidence, at: &str) -> Checked {
    let at = Rule::Phases.at(format!("{at}.phases"));
    let begun = e.phases.iter().map(|span| span.phase);
    let named: Vec<Phase> = begun.chain(e.not_begun.iter().copied()).collect();
    at.ensure(named == e.plan.phases(), || {
        format!("planned were {:?}; found {named:?}", e.plan.phases())
    })?;
    at.ensure(e.not_begun.is_empty() || e.interrupted, || {
        format!("{:?} did not begin, though nobody interrupted", e.not_begun)
    })?;
    for span in &e.phases {
        let least = match span.phase {
            Phase::Baseline => e.plan.durations.baseline,
            Phase::Storm => e.plan.durations.traffic,
            Phase::Resume => e.plan.durations.resume,
            Phase::Drain | Phase::Probe => 0,
        };
        let length = span.to.checked_sub(span.from);
        at.ensure(length.is_some_and(|length| length >= least), || {
            format!("{:?} is shorter than its {least} ns", span.phase)
        })?;
    }
    Ok(())
}

/// Each counter was read that was to be read, and the simulated DUT reported.
fn instruments(e: &PfcEvidence, at: &str) -> Checked {
    let place = |part: &str| Rule::Instruments.at(format!("{at}.{part}"));
    let planned = &e.instruments;
    let read = e.accounting.iter();
    let read: Vec<_> = read
        .map(|read| (read.place.clone(), read.counter.clone()))
        .collect();
    place("accounting").ensure(read == planned.counters, || {
        let mut counters = planned.counters.iter();
        match counters.find(|counter| !read.contains(counter)) {
            Some((place, name)) => format!("the reading of {name} of {place} is missing"),
            None => "a reading is there twice, out of order, or was not planned".into(),
        }
    })?;
    let macs = e.mac.iter().map(|mac| (mac.port.clone(), names(mac)));
    let macs: Vec<_> = macs.collect();
    place("mac").ensure(macs == planned.macs, || {
        format!("planned were {:?}; found {macs:?}", planned.macs)
    })?;
    let is_read = |mac: &MacReport| {
        let mut counters = mac.counters.iter();
        mac.error.is_some() || counters.all(|read| read.values.len() == mac.readings.len())
    };
    place("mac").ensure(e.mac.iter().all(is_read), || {
        "a counter has more or fewer values than were read".into()
    })?;
    place("dut").ensure(e.dut.is_some() == planned.device, || {
        "the report of the simulated DUT is missing, or there is none".into()
    })
}

fn names(mac: &MacReport) -> Vec<String> {
    let counters = mac.counters.iter();
    counters.map(|counter| counter.name.clone()).collect()
}

/// Each burst of traffic was followed by a wait for its last frames, and the probe by one more.
fn waits(e: &PfcEvidence, at: &str) -> Checked {
    let at = Rule::Waits.at(format!("{at}.waits"));
    let bursts = |phase| match phase {
        Phase::Drain => 0,
        Phase::Probe => e.probes.len() + 1,
        Phase::Baseline | Phase::Storm | Phase::Resume => 1,
    };
    for span in &e.phases {
        let phase = span.phase;
        let expected = bursts(phase);
        let found = e.waits.iter().filter(|wait| wait.phase == phase).count();
        at.ensure(found == expected, || {
            format!("{expected} were made in phase {phase:?}; found {found}")
        })?;
    }
    Ok(())
}

/// The planned storm was sent, and the ledgers of its senders saw a gap between any two frames.
fn storm(e: &PfcEvidence, at: &str) -> Checked {
    let at = Rule::Storm.at(format!("{at}.storm"));
    let storm = match (&e.plan.storm, &e.storm) {
        (Some(_), Some(storm)) => storm,
        (None, None) => return Ok(()),
        (Some(_), None) => return at.fail("is missing".into()),
        (None, Some(_)) => return at.fail("was not planned".into()),
    };
    let (frames, gaps) = (storm.frames, storm.histogram.count());
    at.ensure(gaps == frames.saturating_sub(1), || {
        format!("{frames} frames left, with {gaps} gaps between them")
    })
}

/// The probes are those of the plan, and each has all its pause frames.
fn probes(e: &PfcEvidence, at: &str) -> Checked {
    let at = Rule::Probes.at(format!("{at}.probes"));
    let planned = e.plan.probe.as_ref().map_or(&[][..], |plan| &plan.bursts);
    for probe in &e.probes {
        let whole = planned.contains(&probe.burst) && probe.left.len() == probe.burst.frames.len();
        at.ensure(whole, || "one was not made as planned".into())?;
    }
    // One that another try could not improve ends them.
    let made = e.probes.iter().map(|probe| &probe.burst);
    let in_turn = made.zip(planned).all(|(made, planned)| made == planned);
    let some = e.probes.is_empty() == planned.is_empty();
    at.ensure(in_turn && some, || {
        "the first of them are not those of the plan".into()
    })
}

/// The program counts a frame for the port and by its kind, and logs each PAUSE and PFC frame.
fn counts(port: &PortReceived, at: &str) -> Checked {
    let malformed: u64 = port.malformed.iter().map(|(_, count)| count).sum();
    let control = port.pfc_frames + port.pause.xoff + port.pause.xon;
    let sum =
        port.test_frames + port.foreign_run + port.other + control + port.own_control + malformed;
    let frames = port.frames;
    Rule::Ports.at(at).ensure(sum == frames, || {
        format!("{frames} frames came in, but those of each kind are {sum}")
    })?;
    let logged = port.controls.len() as u64 + port.controls_lost;
    Rule::Control.at(at).ensure(logged == control, || {
        format!("{logged} PAUSE and PFC frames were logged or lost, {control} were counted")
    })
}
