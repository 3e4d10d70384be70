//! What is reported and not judged.

use crate::case::Figure;
use crate::cases::finding::ms;
use crate::cases::rc::judge::decoded::{Decoded, PhaseView, View};
use crate::cases::rc::stimulate::FLUSHED;
use crate::roce;

pub(super) fn of(view: &View<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut tell = |name: &str, value: String| {
        figures.push(Figure {
            repetition: view.e.plan.name.clone(),
            name: name.into(),
            value,
        });
    };
    let device = &view.e.device;
    let apm = match device.apm {
        Some(true) => "supports",
        Some(false) => "does not support",
        None => "does not say whether it supports",
    };
    tell(
        "DUT",
        format!(
            "{} ({}), active MTU {}; {apm} Automatic Path Migration",
            device.name, device.backend, device.active_mtu
        ),
    );
    tell("tester's port", view.e.port.clone());
    for (name, phase) in [("control", &view.control), ("test", &view.test)] {
        let Some(phase) = phase else { continue };
        tell(&format!("queue pairs of the {name}"), ends(phase));
        if phase.phase.foreign > 0 {
            tell(
                &format!("packets for another queue pair in the {name}"),
                phase.phase.foreign.to_string(),
            );
        }
    }
    let Some(test) = &view.test else {
        return figures;
    };
    if let Some(t_tr) = test.t_tr() {
        tell("T_tr", ms(t_tr));
        let intervals = test.intervals();
        let shares = intervals.iter().map(|interval| {
            format!(
                "{} ({:.3} T_tr)",
                ms(*interval),
                *interval as f64 / t_tr as f64
            )
        });
        if !intervals.is_empty() {
            tell("intervals", shares.collect::<Vec<_>>().join(", "));
        }
        if let (Some(first), Some(last)) = (view.completions().first(), test.packets().last()) {
            let after = first.time.saturating_sub(last.time);
            tell(
                "completion",
                format!(
                    "{} ({:.3} T_tr) after the last packet",
                    ms(after),
                    after as f64 / t_tr as f64
                ),
            );
        }
    }
    if test.packets().next().is_some() {
        tell(
            "ICRCs",
            test.packets().map(icrc).collect::<Vec<_>>().join(", "),
        );
    }
    if let Some(flush) = &view.e.flush {
        let flushed = flush
            .completions
            .iter()
            .find(|completion| completion.work_request == FLUSHED);
        if let Some(flushed) = flushed {
            tell(
                "flush",
                format!(
                    "{} after the READ was posted",
                    ms(flushed.time.saturating_sub(flush.posted))
                ),
            );
        }
        if !flush.packets.is_empty() {
            tell(
                "packets of the queue pair in error",
                flush.packets.len().to_string(),
            );
        }
    }
    figures
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
