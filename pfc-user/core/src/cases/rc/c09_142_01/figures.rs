//! Figures that are reported and not judged.

use crate::agent::protocol::Device;
use crate::cases::judge::NamedFigure;
use crate::cases::rc::judge::Rc;
use crate::cases::rc::judge::decoded::{Decoded, PhaseView};
use crate::cases::rc::stimulate::FLUSHED;
use crate::cases::value::{Value, count, number, time};
use crate::plan::Nanos;
use crate::roce;

/// All of them, in the order of reports.
pub(super) const FIGURES: [NamedFigure<Rc>; 12] = [
    ("DUT", |view| Some(dut(&view.e.device).into())),
    ("tester's port", |view| Some(view.e.port.clone().into())),
    ("queue pairs of the control", |view| {
        Some(ends(view.control.as_ref()?).into())
    }),
    ("packets for another queue pair in the control", |view| {
        foreign(&view.control)
    }),
    ("queue pairs of the test", |view| {
        Some(ends(view.test.as_ref()?).into())
    }),
    ("packets for another queue pair in the test", |view| {
        foreign(&view.test)
    }),
    ("T_tr", |view| Some(time(view.test.as_ref()?.t_tr()?))),
    ("intervals", |view| {
        let test = view.test.as_ref()?;
        let in_t_tr = |interval| in_t_tr(test, interval);
        let all: Option<Vec<_>> = test.intervals().into_iter().map(in_t_tr).collect();
        all.filter(|all| !all.is_empty())
            .map(|all| Value::joined(all, ", "))
    }),
    ("completion", |view| {
        let test = view.test.as_ref()?;
        let (first, last) = (*view.completions().first()?, test.last()?);
        let after = in_t_tr(test, first.time.saturating_sub(last))?;
        Some(after + " after the last packet")
    }),
    ("ICRCs", |view| {
        let icrcs: Vec<_> = view.test.as_ref()?.packets().map(icrc).collect();
        (!icrcs.is_empty()).then(|| icrcs.join(", ").into())
    }),
    ("flush", |view| {
        let flush = view.e.flush.as_ref().filter(|_| view.test.is_some())?;
        let mut completions = flush.completions.iter();
        let flushed = completions.find(|completion| completion.work_request == FLUSHED)?;
        let after = time(flushed.time.saturating_sub(flush.posted));
        Some(after + " after the READ was posted")
    }),
    ("packets of the queue pair in error", |view| {
        let flush = view.e.flush.as_ref().filter(|_| view.test.is_some())?;
        let packets = flush.packets.len() as u64;
        (packets > 0).then(|| count(packets, ""))
    }),
];

fn dut(device: &Device) -> String {
    let apm = match device.apm {
        Some(true) => "supports",
        Some(false) => "does not support",
        None => "does not say whether it supports",
    };
    format!(
        "{} ({}), active MTU {}; {apm} Automatic Path Migration",
        device.name, device.backend, device.active_mtu
    )
}

fn foreign(phase: &Option<PhaseView<'_>>) -> Option<Value> {
    let foreign = phase.as_ref()?.phase.foreign;
    (foreign > 0).then(|| count(foreign, ""))
}

/// A time, and its share of T_tr; `None` where the timer never ends.
fn in_t_tr(test: &PhaseView<'_>, nanos: Nanos) -> Option<Value> {
    let share = number(nanos as f64 / test.t_tr()? as f64, 3, "T_tr");
    Some(time(nanos) + " (" + share + ")")
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
