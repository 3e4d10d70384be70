//! Counts that two parts of the tester made of the same frames: what a program, the reader of its
//! maps or a sender loses or counts twice shows here, on the machine where it happens.

use std::collections::HashMap;

use pfc_ebpf::abi::account::Clock;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Priority;

use super::{Checked, Place, Rule};
use crate::evidence::pfc::{FlowReceived, PfcEvidence};

/// Windows by which a batch's reading of the clock may be early.
const EARLY: usize = 1;

pub(super) fn check(e: &PfcEvidence, at: &str) -> Checked {
    let sent = e.sender.flows.iter().map(|sent| (sent.flow, sent.phase));
    once(e, sent, &format!("{at}.sender.flows"))?;
    let received = e.received.iter().map(|flow| (flow.flow, flow.phase));
    let at_received = format!("{at}.received");
    once(e, received, &at_received)?;
    flows(e, &at_received)?;
    arrivals(e, &Rule::Arrivals.at(format!("{at}.arrivals")))?;
    let at = Rule::Windows.at(format!("{at}.windows"));
    let (offered, received) = (e.windows.offered.len(), e.windows.received.len());
    at.ensure(offered == received, || {
        format!("{offered} windows were offered and {received} received")
    })?;
    Priority::all().try_for_each(|priority| windows(e, priority, &at))
}

/// Each flow of the plan has one count a phase.
fn once(e: &PfcEvidence, counts: impl Iterator<Item = (u16, Phase)>, at: &str) -> Checked {
    let mut all: Vec<_> = counts.map(|(flow, phase)| (flow, phase as u8)).collect();
    all.sort_unstable();
    let twice = all.windows(2).any(|pair| pair[0] == pair[1]);
    let planned = |flow| e.plan.flows.iter().any(|planned| planned.id == flow);
    let whole = !twice && all.iter().all(|(flow, _)| planned(*flow));
    Rule::Flows.at(at).ensure(whole, || {
        "a flow is there twice in a phase, or not in the plan".into()
    })
}

/// The program counts a frame for its port, for its flow, and by its latency.
fn flows(e: &PfcEvidence, at: &str) -> Checked {
    let latencies_at = Rule::Latencies.at(at);
    for FlowReceived {
        flow,
        phase,
        frames,
        latency,
        ..
    } in &e.received
    {
        let latencies: u64 = latency.iter().map(|frames| u64::from(*frames)).sum();
        latencies_at.ensure(latencies == *frames, || {
            format!("flow {flow} in phase {phase:?} has {frames} frames and {latencies} latencies")
        })?;
    }
    let at = Rule::Flows.at(at);
    for (name, port) in e.ports.receivers() {
        let goes = |flow: &&FlowReceived| {
            let mut planned = e.plan.flows.iter();
            planned.any(|planned| planned.id == flow.flow && planned.to == *name)
        };
        let sum: u64 = e.received.iter().filter(goes).map(FlowReceived::all).sum();
        let sum = sum.saturating_add(port.counts.misdelivered);
        let counted = port.counts.test_frames;
        at.ensure(sum == counted, || {
            format!("the flows have {sum} frames, the {name} port counted {counted}")
        })?;
    }
    Ok(())
}

/// The log has each frame of the flows and phases that are logged.
fn arrivals(e: &PfcEvidence, at: &Place) -> Checked {
    let mut listed: HashMap<(u16, u8), u64> = HashMap::new();
    for arrival in &e.arrivals.records {
        let key = (arrival.flow, arrival.phase as u8);
        *listed.entry(key).or_default() += 1;
    }
    let mut missing = 0;
    // Loads of the plan: a burst that was broken off left arrivals, but has no report.
    let loads = e.plan.bursts().map(|burst| burst.load);
    let (least, most) = (loads.clone().min().unwrap_or(0), loads.max().unwrap_or(0));
    for flow in &e.plan.flows {
        // The lower the load of a burst, the more flows it logs.
        let [in_all, in_some] = [most, least].map(|load| e.plan.logged(flow, load));
        for phase in Phase::ALL {
            let listed = listed.get(&(flow.id, phase as u8)).copied().unwrap_or(0);
            if listed == 0 && !in_all.contains(&phase) {
                continue;
            }
            let counted = e.received(flow.id, phase).map_or(0, FlowReceived::all);
            at.ensure(listed <= counted, || {
                let flow = flow.id;
                format!("flow {flow} in phase {phase:?} has {listed}, {counted} were counted")
            })?;
            // Where only some bursts log the flow, nothing tells how many frames they had.
            let only_in_some = in_some.contains(&phase) && !in_all.contains(&phase);
            if !only_in_some {
                missing += counted - listed;
            }
        }
    }
    let lost = e.arrivals.lost;
    at.ensure(missing <= lost, || {
        format!("{missing} are missing, and {lost} were lost")
    })
}

/// Frames of a priority by window are as many as by flow, and none arrives before it was offered:
/// sender and program agree on where the windows are.
fn windows(e: &PfcEvidence, priority: Priority, at: &Place) -> Checked {
    let is_of = |id: u16| {
        let mut flows = e.plan.flows.iter();
        flows.any(|flow| flow.id == id && flow.priority == priority)
    };
    let column = |windows: &[[u32; 8]]| -> Vec<u64> {
        let frames = windows.iter().map(|window| window[priority.index()]);
        frames.map(u64::from).collect()
    };
    let (offered, arrived) = (column(&e.windows.offered), column(&e.windows.received));
    let sent = e.sender.flows.iter().filter(|sent| is_of(sent.flow));
    let sent: u64 = sent.map(|sent| sent.frames).sum();
    let received = e.received.iter().filter(|flow| is_of(flow.flow));
    let received: u64 = received.map(|flow| flow.frames).sum();
    // Frames that left in a way that the sender could not follow.
    let of_sender = e.accounting.iter();
    let of_sender = of_sender.filter(|read| read.place.starts_with("sender"));
    let unknown: u64 = of_sender.map(|counter| counter.rise).sum();
    // The program of another port counted these in its windows too.
    let receivers = e.ports.receivers();
    let elsewhere = receivers.map(|(_, port)| port.counts.misdelivered);
    let elsewhere = elsewhere.fold(0, u64::saturating_add);
    for (name, windows, by_flow, unknown) in [
        ("offered", &offered, sent, unknown),
        ("received", &arrived, received, elsewhere),
    ] {
        let by_window: u64 = windows.iter().sum();
        at.ensure(by_window.abs_diff(by_flow) <= unknown, || {
            format!(
                "{name}: priority {priority} has {by_window} frames by window, {by_flow} by flow"
            )
        })?;
    }
    let batched = e.counting.clock == Clock::Batched;
    let early = if batched { 1 + EARLY } else { EARLY };
    let begun = offered.iter().take(early).sum::<u64>();
    let mut offers = unknown.saturating_add(elsewhere).saturating_add(begun);
    let mut arrivals = 0;
    for (index, frames) in arrived.iter().enumerate() {
        offers = offers.saturating_add(*offered.get(index + early).unwrap_or(&0));
        arrivals += frames;
        at.ensure(arrivals <= offers, || {
            format!(
                "until window {index} {arrivals} frames of priority {priority} arrived, and only \
                 {offers} were offered"
            )
        })?;
    }
    Ok(())
}
