//! Figures that are reported and not judged.

use crate::cases::rc::judge::decoded::{Decoded, PhaseView, View};
use crate::cases::rc::stimulate::FLUSHED;
use crate::cases::value::{Value, count, number, time};
use crate::plan::Nanos;
use crate::roce;
use crate::verdict::Figure;

/// Name and value of a figure.
type Named = (String, Value);

pub(super) fn of(view: &View<'_>) -> Vec<Figure> {
    let mut named = surroundings(view);
    if let Some(test) = &view.test {
        named.extend(times(view, test));
        if test.packets().next().is_some() {
            let icrcs: Vec<_> = test.packets().map(icrc).collect();
            named.push(("ICRCs".into(), icrcs.join(", ").into()));
        }
        named.extend(flush(view));
    }
    let figure = |(name, value): Named| value.figure(&view.e.plan.name, name);
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
        ("DUT".into(), dut.into()),
        ("tester's port".into(), view.e.port.clone().into()),
    ];
    for (name, phase) in [("control", &view.control), ("test", &view.test)] {
        let Some(phase) = phase else { continue };
        named.push((format!("queue pairs of the {name}"), ends(phase).into()));
        if phase.phase.foreign > 0 {
            let name = format!("packets for another queue pair in the {name}");
            named.push((name, count(phase.phase.foreign, "")));
        }
    }
    named
}

/// T_tr, and the times of the test beside it.
fn times(view: &View<'_>, test: &PhaseView<'_>) -> Vec<Named> {
    let Some(t_tr) = test.t_tr() else {
        return Vec::new();
    };
    let in_t_tr =
        |nanos: Nanos| time(nanos) + " (" + number(nanos as f64 / t_tr as f64, 3, "T_tr") + ")";
    let mut named = vec![("T_tr".into(), time(t_tr))];
    let intervals = test.intervals();
    if !intervals.is_empty() {
        let all = Value::joined(intervals.into_iter().map(in_t_tr));
        named.push(("intervals".into(), all));
    }
    if let (Some(first), Some(last)) = (view.completions().first(), test.last()) {
        let after = in_t_tr(first.time.saturating_sub(last)) + " after the last packet";
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
        let after = time(flushed.time.saturating_sub(flush.posted));
        named.push(("flush".into(), after + " after the READ was posted"));
    }
    if !flush.packets.is_empty() {
        let packets = count(flush.packets.len() as u64, "");
        named.push(("packets of the queue pair in error".into(), packets));
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
