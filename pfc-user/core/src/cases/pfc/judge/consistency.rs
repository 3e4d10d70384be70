//! Consistency of evidence, without which no check is judged. Evidence is input from a file. Values
//! that the tester cannot have measured, such as a phase that ends before it begins, would make
//! nonsense of every figure.

use pfc_ebpf::units::LineRate;

use super::stalls::stalls;
use crate::evidence::pfc::{Departure, GapHistogram, LeftOut, PfcEvidence};
use crate::plan::{FlowPlan, Nanos};

/// No clock or span of a run comes near it: 36 years of nanoseconds. Sums of a few of them fit.
const MAX_TIME: Nanos = 1 << 60;
/// No count comes near it: 89 years of the smallest frames at 100 Gbit/s. Sums of all of them fit.
const MAX_COUNT: u64 = 1 << 38;
/// Octets, bits a second.
const MAX_QUANTITY: u64 = 1 << 48;
/// The longest frame that IP can ask for, and its headers.
const MAX_LENGTH: usize = 1 << 17;

/// Fails with the first contradiction.
pub(in crate::cases) fn check(e: &PfcEvidence) -> Result<(), String> {
    plan(e)?;
    sender(e)?;
    receiver(e)?;
    pauses(e)?;
    macs(e)
}

fn ensure(holds: bool, contradiction: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(contradiction()) }
}

fn time(what: &str, time: Nanos) -> Result<(), String> {
    ensure(time <= MAX_TIME, || format!("{what} is {time} ns"))
}

fn count(what: &str, count: u64) -> Result<(), String> {
    ensure(count <= MAX_COUNT, || format!("{what}: {count}"))
}

fn span(what: &str, from: Nanos, to: Nanos) -> Result<(), String> {
    time(what, to)?;
    ensure(from <= to, || {
        format!("{what} begins at {from} ns and ends at {to} ns")
    })
}

fn left_out(what: &str, spans: &LeftOut) -> Result<(), String> {
    let what = format!("{what} that were not listed");
    span(&what, spans.from, spans.to)?;
    time(&what, spans.total)?;
    count(&what, spans.count)
}

fn departure(what: &str, departure: Departure) -> Result<(), String> {
    span(what, departure.before, departure.after)
}

fn plan(e: &PfcEvidence) -> Result<(), String> {
    let limits = &e.limits;
    LineRate::from_bits_per_second(limits.line_rate.bits_per_second())
        .map_err(|error| error.to_string())?;
    for (what, limit) in [
        ("max_response", limits.max_response),
        ("max_residence", limits.max_residence),
        ("max_burst", limits.max_burst),
    ] {
        time(what, limit)?;
    }
    for (what, octets) in [
        ("headroom", limits.headroom),
        ("xoff", limits.xoff.unwrap_or(0)),
    ] {
        ensure(octets <= MAX_QUANTITY, || {
            format!("{what} is {octets} octets")
        })?;
    }
    let interval = e.plan.storm.as_ref().map_or(0, |storm| storm.interval);
    time("the storm's interval", interval)?;
    for flow in &e.plan.flows {
        let FlowPlan {
            id,
            from,
            to,
            length,
            rate,
            ..
        } = flow;
        ensure(e.ports.senders().any(|(name, _)| name == from), || {
            format!("flow {id} is sent by a port {from}, which is not there")
        })?;
        ensure(e.ports.receivers().any(|(name, _)| name == to), || {
            format!("flow {id} goes to a port {to}, which is not there")
        })?;
        ensure(*length <= MAX_LENGTH && *rate <= MAX_QUANTITY, || {
            format!("flow {id} has frames of {length} octets at {rate} bit/s")
        })?;
    }
    for phase in &e.phases {
        let what = format!("phase {:?}", phase.phase);
        span(&what, phase.from, phase.to)?;
        let until = format!("the time from window 0 to {what}");
        span(&until, e.windows.epoch, phase.from)?;
    }
    for wait in &e.waits {
        let what = format!("the wait for phase {:?}", wait.phase);
        span(&what, wait.from, wait.to)?;
        time(&what, wait.deadline)?;
    }
    time("the width of a window", e.windows.width)
}

fn sender(e: &PfcEvidence) -> Result<(), String> {
    let sender = &e.sender;
    for sent in &sender.flows {
        count("frames sent", sent.frames)?;
        span("sending", sent.first, sent.last)?;
    }
    for octets in sender.after_xoff {
        count("octets after an XOFF", octets)?;
    }
    for held in &sender.withheld {
        span("a span withheld", held.from, held.to)?;
    }
    for stall in stalls(e) {
        span("a stall", stall.from, stall.to)?;
    }
    left_out("stalls", &sender.stalls_left_out)?;
    for spans in &sender.withheld_left_out {
        left_out("spans withheld", &spans.spans)?;
    }
    for counter in &e.accounting {
        count(&counter.counter, counter.rise)?;
    }
    if let Some(dut) = &e.dut {
        count("overruns", dut.overruns)?;
        count("refused sends", dut.send_errors)?;
        time("the simulated DUT's lateness", dut.max_lateness)?;
    }
    count("waits for room", sender.waits)?;
    time("the largest burst", sender.max_burst)
}

fn receiver(e: &PfcEvidence) -> Result<(), String> {
    for received in &e.received {
        for (what, found) in [
            ("frames received", received.frames),
            ("duplicates", received.duplicate),
            ("frames out of order", received.reordered),
            ("frames beyond the window", received.beyond_window),
            ("frames verified", received.verified.unwrap_or(0)),
            ("corrupt frames", received.corrupt),
            ("frames re-marked", received.remarked),
        ] {
            count(what, found)?;
        }
        let (frames, duplicates, corrupt) = (received.frames, received.duplicate, received.corrupt);
        if let Some(verified) = received.verified
            && (corrupt > verified || verified > frames + duplicates)
        {
            return Err(format!(
                "of {frames} frames and {duplicates} duplicates {verified} were verified, and \
                 {corrupt} of these were corrupt"
            ));
        }
        let (untagged, remarked) = (received.untagged, received.remarked);
        ensure(untagged <= remarked, || {
            format!("{untagged} frames came without a tag, but only {remarked} without theirs")
        })?;
        span("receiving", received.first, received.last)?;
        time("a latency", received.latency_max)?;
        time("a latency", received.latency_mean)?;
    }
    for arrival in &e.arrivals.records {
        time("an arrival", arrival.time)?;
    }
    for (_, port) in e.ports.iter() {
        let port = &port.counts;
        count("PFC frames", port.pfc_frames)?;
        count("test frames of another port", port.misdelivered)?;
        count("frames of the own storm", port.own_control)?;
        for class in port.pfc.iter().chain([&port.pause]) {
            count("XOFF frames", class.xoff)?;
            count("XON frames", class.xon)?;
        }
        for (_, found) in port.malformed.iter().chain(&port.damaged) {
            count("malformed frames", *found)?;
        }
        for (_, found) in &port.deviations {
            count("PAUSE/PFC frames of another form", *found)?;
        }
        count("PAUSE/PFC frames that are not logged", port.controls_lost)?;
    }
    Ok(())
}

fn histogram(histogram: &GapHistogram) -> Result<(), String> {
    let mut least = 0;
    for (below, gaps) in &histogram.0 {
        time("a length of the storm's histogram", *below)?;
        count("gaps of the storm", *gaps)?;
        ensure(*below > least, || {
            format!("the storm's histogram goes from {least} ns to {below} ns")
        })?;
        least = *below;
    }
    Ok(())
}

fn macs(e: &PfcEvidence) -> Result<(), String> {
    for mac in &e.mac {
        time("the age of a MAC's counters", mac.lag)?;
        for reading in &mac.readings {
            time("a reading of a MAC's counters", reading.time)?;
        }
        for counter in &mac.counters {
            let (name, values) = (&counter.name, counter.values.len());
            let readings = mac.readings.len();
            let fits = values == readings || (values < readings && mac.error.is_some());
            ensure(fits, || {
                format!("{name} has {values} values for {readings} readings")
            })?;
        }
    }
    Ok(())
}

fn pauses(e: &PfcEvidence) -> Result<(), String> {
    if let Some(storm) = &e.storm {
        departure("the storm's first frame", storm.first)?;
        departure("the storm's last frame", storm.last)?;
        span("the storm", storm.first.before, storm.last.before)?;
        time("the storm's largest gap", storm.max_gap)?;
        count("frames of the storm", storm.frames)?;
        count("frames of the storm that were refused", storm.errors)?;
        for gap in &storm.gaps {
            span("a gap", gap.from, gap.to)?;
        }
        left_out("gaps", &storm.gaps_left_out)?;
        left_out("stalls of the storm", &storm.stalls_left_out)?;
        histogram(&storm.histogram)?;
    }
    for probe in &e.probes {
        for left in &probe.left {
            departure("a pause frame of a probe", *left)?;
        }
        for pair in probe.left.windows(2) {
            span("a probe", pair[0].before, pair[1].before)?;
        }
    }
    Ok(())
}
