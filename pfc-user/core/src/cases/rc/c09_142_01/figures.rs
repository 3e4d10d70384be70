//! Figures that are reported and not judged.

use crate::cases::rc::judge::decoded::{Decoded, PhaseView, View};
use crate::cases::rc::stimulate::FLUSHED;
use crate::plan::Nanos;
use crate::quantity::ms;
use crate::roce;
use crate::verdict::Figure;

/// Name and value of a figure.
type Named = (String, String);

pub(super) fn of(view: &View<'_>) -> Vec<Figure> {
    let mut named = surroundings(view);
    if let Some(test) = &view.test {
        named.extend(times(view, test));
        if test.packets().next().is_some() {
            let icrcs: Vec<_> = test.packets().map(icrc).collect();
            named.push(("ICRCs".into(), icrcs.join(", ")));
        }
        named.extend(flush(view));
    }
    let figure = |(name, value)| Figure {
        repetition: view.e.plan.name.clone(),
        name,
        value,
    };
    named.into_iter().map(figure).collect()
}

/// The DUT, the tester's port and the queue pairs.
fn surroundings(view: &View<'_>) -> Vec<Named> {
    let device = &view.e.device;
    let apm = match device.apm {
        Some(true) => "supports",
        Some(false) => "does not support",
        None => "does not say whether it supports",
    };
    let dut = format!(
        "{} ({}), active MTU {}; {apm} Automatic Path Migration",
        device.name, device.backend, device.active_mtu
    );
    let mut named = vec![
        ("DUT".into(), dut),
        ("tester's port".into(), view.e.port.clone()),
    ];
    for (name, phase) in [("control", &view.control), ("test", &view.test)] {
        let Some(phase) = phase else { continue };
        named.push((format!("queue pairs of the {name}"), ends(phase)));
        if phase.phase.foreign > 0 {
            let name = format!("packets for another queue pair in the {name}");
            named.push((name, phase.phase.foreign.to_string()));
        }
    }
    named
}

/// T_tr, and the times of the test beside it.
fn times(view: &View<'_>, test: &PhaseView<'_>) -> Vec<Named> {
    let Some(t_tr) = test.t_tr() else {
        return Vec::new();
    };
    let in_t_tr = |time: Nanos| format!("{} ({:.3} T_tr)", ms(time), time as f64 / t_tr as f64);
    let mut named = vec![("T_tr".into(), ms(t_tr))];
    let intervals = test.intervals();
    if !intervals.is_empty() {
        let all: Vec<_> = intervals
            .iter()
            .map(|interval| in_t_tr(*interval))
            .collect();
        named.push(("intervals".into(), all.join(", ")));
    }
    if let (Some(first), Some(last)) = (view.completions().first(), test.last()) {
        let after = in_t_tr(first.time.saturating_sub(last));
        let after = format!("{after} after the last packet");
        named.push(("completion".into(), after));
    }
    named
}

/// The READ that the queue pair in error has to flush.
fn flush(view: &View<'_>) -> Vec<Named> {
    let Some(flush) = &view.e.flush else {
        return Vec::new();
    };
    let mut named = Vec::new();
    let mut completions = flush.completions.iter();
    if let Some(flushed) = completions.find(|completion| completion.work_request == FLUSHED) {
        let after = ms(flushed.time.saturating_sub(flush.posted));
        named.push(("flush".into(), format!("{after} after the READ was posted")));
    }
    if !flush.packets.is_empty() {
        let count = flush.packets.len().to_string();
        named.push(("packets of the queue pair in error".into(), count));
    }
    named
}

fn ends(phase: &PhaseView<'_>) -> String {
    let channel = &phase.phase.channel;
    let (dut, tester) = (channel.queue_pair, phase.phase.queue_pair);
    format!(
        "{dut:#08x} at {} (DUT), {tester:#08x} (tester); first PSN {:#08x}",
        channel.address, phase.phase.psn
    )
}

fn icrc(packet: &Decoded) -> String {
    roce::icrc_of(&packet.frame).map_or("none".into(), |icrc| format!("{icrc:#010x}"))
}
