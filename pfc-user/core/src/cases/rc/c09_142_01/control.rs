//! The positive control.

use pfc_ebpf::wire::roce::RC_READ_RESPONSE_ONLY;

use super::requests::STOOD_STILL;
use crate::cases::finding::{Finding, Judgement, Undecided};
use crate::cases::rc::judge::decoded::{Decoded, PhaseView, View};
use crate::cases::rc::stimulate::LONGEST;
use crate::cases::remedy;
use crate::cases::value::{self, Value, time};
use crate::plan::Nanos;
use crate::roce;
use crate::verdict::Subject;

/// A DUT that is reached and answered completes with success. It is to blame if it does not, once
/// its requests were seen and the answer was right.
pub(super) fn path_alive(view: &View<'_>) -> Judgement {
    let control = view.control.as_ref();
    let control = control.ok_or(Undecided::not_reached(
        "the positive control was not reached",
    ))?;
    let mut finding = Finding::new();
    let first = control.phase.completions.first();
    let completed = match first {
        Some(first) => {
            let after = time(first.time.saturating_sub(control.phase.posted));
            Value::from(format!("status {} after ", first.status)) + after
        }
        None => "none within " + time(control.waited()),
    };
    let what = "completion of the positive control";
    let t_tr = control.t_tr().unwrap_or_default();
    let latest = control.last().unwrap_or(control.phase.posted);
    let is_excused = view
        .stalls
        .excuse(latest, control.phase.until, LONGEST * t_tr);
    let Some(answer) = control.answers.first() else {
        let (drops, seen) = (view.e.plan.control_drops, control.transmissions.len());
        let drops = Value::from(drops) + " that are dropped";
        let expected = "a READ request to answer, after " + drops;
        let form = match control.packets().any(Decoded::is_read_request) {
            true => "",
            false => ", none of which is a READ request",
        };
        let what = "transmissions in the positive control";
        let found = Value::from(seen) + form + "; completion: " + completed;
        match is_excused {
            true => {
                let found = found + ", " + STOOD_STILL;
                finding.undecided_until(remedy::STALLED, what, expected, found)
            }
            false => {
                let others = control.packets().filter(|packet| !packet.is_read_request());
                let others = others.map(Decoded::subject);
                finding.expect_about(others, what, expected, found, false);
            }
        }
        return Ok(finding);
    };
    if let Err(wrong) = is_right(view, control, answer) {
        finding.undecided("the tester's answer", "a correct READ response", wrong);
        return Ok(finding);
    }
    let succeeded = first.is_some_and(|first| first.status == 0);
    let (lateness, longest) = (lateness(control), t_tr / 2);
    if !succeeded && lateness > longest {
        // The DUT may have given up by then.
        let expected = value::within(longest) + " of a request";
        let found = "after " + time(lateness);
        finding.undecided("the tester's answer", expected, found);
        return Ok(finding);
    }
    let in_time = first.is_some_and(|first| first.status == 0 && first.time >= answer.time);
    let left = time(answer.time.saturating_sub(control.phase.posted));
    let expected = "status 0 after the answer, which left after " + left;
    match first {
        None if is_excused => {
            let found = completed + ", " + STOOD_STILL;
            finding.undecided_until(remedy::STALLED, what, expected, found);
        }
        _ => {
            let subject = first.map(|first| Subject::Completion(first.time));
            finding.expect_about(subject, what, expected, completed, in_time);
        }
    }
    Ok(finding)
}

/// Shortest time from a request to the answer that follows it.
fn lateness(control: &PhaseView<'_>) -> Nanos {
    let after = |answer: &Decoded| {
        let requests = control.packets().map(|request| request.time);
        let before = requests.filter(|time| *time <= answer.time).last();
        answer.time - before.unwrap_or_default()
    };
    control.answers.iter().map(after).min().unwrap_or_default()
}

/// The tester's answer is one to a request that was seen.
fn is_right(view: &View<'_>, control: &PhaseView<'_>, answer: &Decoded) -> Result<(), String> {
    let packet = answer.packet.ok_or("no whole RoCEv2 packet")?;
    let form = (packet.bth.opcode, packet.bth.destination);
    if form != (RC_READ_RESPONSE_ONLY, control.phase.channel.queue_pair) {
        return Err(format!(
            "opcode {:#04x} for queue pair {:#08x}",
            form.0, form.1
        ));
    }
    if roce::is_intact(&answer.frame) != Some(true) {
        return Err("the ICRC is wrong".into());
    }
    let dropped = usize::from(view.e.plan.control_drops);
    let answered = control.transmissions.iter().skip(dropped).flatten();
    let psn = packet.bth.psn;
    let mut psns = answered.filter_map(|request| Some(request.packet?.bth.psn));
    if psns.all(|other| other != psn) {
        return Err(format!(
            "no request that was to be answered has its PSN {psn:#08x}"
        ));
    }
    Ok(())
}
