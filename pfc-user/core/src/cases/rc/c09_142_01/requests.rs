//! The checks of what the DUT sent in the test.

use std::net::IpAddr;

use pfc_ebpf::wire::roce::{Bth, ICRC, RC_READ_REQUEST, Reth};

use crate::cases::finding::{Finding, Judgement, Undecided};
use crate::cases::rc::judge::decoded::{Decoded, PhaseView, View};
use crate::cases::rc::stimulate::LONGEST;
use crate::cases::remedy;
use crate::cases::value::{Value, count, time};
use crate::evidence::rc::Shown;
use crate::plan::Nanos;
use crate::quantity::ms;
use crate::roce;
use crate::verdict::{Bound, Subject, Verdict};

/// Part of T_tr that a kernel's tick may cut off, in percent.
const SHORTEST: Nanos = 95;
/// A counter that is read so close before the next transmission, in percent of T_tr, may be that
/// one's already.
const CLOSE: Nanos = 5;

/// Reason why lateness is not the DUT's.
pub(super) const STOOD_STILL: &str = "while the simulated DUT stood still";

/// Earliest and latest time of something that the transport timer starts (9.7.6.1.3).
pub(super) fn bounds(t_tr: Nanos) -> (Nanos, Nanos) {
    (t_tr * SHORTEST / 100, t_tr * LONGEST)
}

/// A time between two others.
pub(super) fn between(shortest: Nanos, longest: Nanos) -> Value {
    (time(shortest) + " to " + time(longest)).is(Bound::Between)
}

/// Reason why nothing of the test can be judged.
pub(super) const NO_TEST: Undecided = Undecided::not_reached("the test was not reached");

/// The test, and its T_tr.
pub(super) fn test<'v>(view: &'v View<'_>) -> Result<(&'v PhaseView<'v>, Nanos), Undecided> {
    let test = view.test.as_ref().ok_or(NO_TEST)?;
    // Where the timer never ends the precondition `attributes` says so.
    Ok((test, test.t_tr().ok_or(NO_TEST)?))
}

pub(super) fn requests(view: &View<'_>) -> Judgement {
    let (test, t_tr) = test(view)?;
    let mut finding = Finding::new();
    let expected = view.e.plan.requests();
    let found = test.transmissions.len();
    let latest = test.last().unwrap_or(test.phase.posted);
    // The next one may still come, where the DUT stood still.
    if found < expected && view.stalls.excuse(latest, test.phase.until, LONGEST * t_tr) {
        let found = Value::from(found) + ", and then " + STOOD_STILL;
        finding.undecided_until(remedy::STALLED, "transmissions", expected, found);
        return Ok(finding);
    }
    let surplus = test.transmissions.iter().skip(expected).flatten();
    finding.about(surplus.map(Decoded::subject), |finding| {
        finding.equal("transmissions", expected, found)
    });
    let silence = test.phase.until.saturating_sub(latest);
    if found == expected {
        let what = "silence after the last transmission";
        let verdict = match silence < LONGEST * t_tr {
            true => Verdict::Inconclusive,
            false => Verdict::Pass,
        };
        let expected = ("at least " + time(LONGEST * t_tr)).is(Bound::AtLeast);
        finding.compare(what, expected, time(silence), verdict);
    }
    Ok(finding)
}

pub(super) fn single_packet(view: &View<'_>) -> Judgement {
    let (test, _) = test(view)?;
    let plan = &view.e.plan;
    let mut finding = Finding::new();
    let expected = form(
        RC_READ_REQUEST,
        &Reth {
            address: plan.address,
            r_key: plan.r_key,
            length: plan.path_mtu.into(),
        },
    );
    for (index, packets) in test.transmissions.iter().enumerate() {
        let what = format!("transmission {}", index + 1);
        let subjects = packets.iter().map(Decoded::subject);
        finding.about(subjects, |finding| match &packets[..] {
            [packet] => finding.equal(what, expected.clone(), form_of(packet)),
            several => {
                let forms = Value::joined(several.iter().map(form_of), "; ");
                let found = count(several.len() as u64, "packets") + ": " + forms;
                finding.expect(what, expected.clone(), found, false)
            }
        });
    }
    or_nothing(finding, "no request came")
}

fn form(opcode: u8, reth: &Reth) -> Value {
    let Reth {
        address,
        r_key,
        length,
    } = reth;
    let packet = format!("one packet, opcode {opcode:#04x}, R_Key {r_key:#x}, VA {address:#x}");
    Value::from(packet) + ", length " + *length
}

fn form_of(packet: &Decoded) -> Value {
    let Some(found) = packet.packet else {
        let length = "one packet of " + count(packet.length as u64, "octets");
        return length + ", not whole in the " + packet.frame.len() + " that were kept";
    };
    let opcode = found.bth.opcode;
    let Some(reth) = packet.reth() else {
        return format!("one packet, opcode {opcode:#04x}, no RETH").into();
    };
    let form = form(opcode, &reth);
    match found.length.saturating_sub(Bth::LEN + Reth::LEN + ICRC) {
        0 => form,
        surplus => form + ", and " + count(surplus as u64, "octets") + " more",
    }
}

pub(super) fn same_request(view: &View<'_>) -> Judgement {
    let (test, _) = test(view)?;
    let mut finding = Finding::new();
    let same = |packet: &Decoded| {
        let reth = packet.reth().map_or("none".into(), |reth| {
            Value::from(format!("{:#x}, {:#x}, ", reth.address, reth.r_key)) + reth.length
        });
        let psn = packet.packet?.bth.psn;
        Some(Value::from(format!("PSN {psn:#08x}, RETH ")) + reth)
    };
    let first = test.packets().next().and_then(same);
    for (index, packets) in test.transmissions.iter().enumerate() {
        for (number, packet) in packets.iter().enumerate() {
            let which = format!("transmission {}", index + 1);
            let first = first.as_ref().filter(|_| index > 0 && number == 0);
            finding.about([packet.subject()], |finding| {
                icrc(&which, packet, finding);
                sender(test, &which, packet, finding);
                let Some(first) = first else { return };
                let what = format!("{which}, as the first");
                match same(packet) {
                    Some(found) => finding.equal(what, first.clone(), found),
                    None => finding.undecided(what, first.clone(), NOT_WHOLE),
                }
            });
        }
    }
    or_nothing(finding, "no request came")
}

const NOT_WHOLE: &str = "the packet is not whole in what was kept";

/// Records if the ICRC of a packet is valid.
fn icrc(which: &str, packet: &Decoded, finding: &mut Finding) {
    let what = format!("ICRC of {which}");
    match roce::is_intact(&packet.frame) {
        Some(intact) => {
            let found = if intact { "valid" } else { "wrong" };
            finding.expect(what, "valid", found, intact)
        }
        None => finding.undecided(what, "valid", NOT_WHOLE),
    }
}

/// Records if a packet comes from the DUT's address, in the partition of the first one, and has
/// the only version of the transport header (9.2).
fn sender(test: &PhaseView<'_>, which: &str, packet: &Decoded, finding: &mut Finding) {
    let form = |partition: u16, source: IpAddr, version: u8| {
        format!("P_Key {partition:#06x}, from {source}, transport version {version}")
    };
    let of = |packet: &Decoded| Some((packet.packet?.bth, packet.source()?));
    let (Some(first), Some((found, source))) = (test.packets().find_map(of), of(packet)) else {
        return;
    };
    let address = test.phase.channel.address.to_canonical();
    finding.equal(
        format!("sender of {which}"),
        form(first.0.partition, address, 0),
        form(found.partition, source.to_canonical(), found.version),
    );
}

pub(super) fn interval(view: &View<'_>) -> Judgement {
    let (test, t_tr) = test(view)?;
    let (shortest, longest) = bounds(t_tr);
    let mut finding = Finding::new();
    let times = test.times();
    for (index, interval) in test.intervals().into_iter().enumerate() {
        let what = format!("from transmission {} to {}", index + 1, index + 2);
        let (expected, found) = (between(shortest, longest), time(interval));
        if may_be_late(view, index, interval, shortest) {
            let found = found + ", after " + time(gap_before(test, index));
            let found = found + ": the former may have come in late";
            finding.undecided_until(remedy::LATE, what, expected, found);
        } else if interval > longest && view.stalls.excuse(times[index], times[index + 1], longest)
        {
            let found = found + ", " + STOOD_STILL;
            finding.undecided_until(remedy::STALLED, what, expected, found);
        } else {
            let holds = (shortest..=longest).contains(&interval);
            let subject = Subject::Packet(times[index + 1]);
            finding.expect_about([subject], what, expected, found, holds);
        }
    }
    let why = match view.e.plan.retry_count {
        0 => "the retry count is 0",
        _ => "there was no retry: `requests` says so",
    };
    or_nothing(finding, why)
}

/// Time before the transmission of that index: since the one before it, or for the first since the
/// READ was posted.
fn gap_before(test: &PhaseView<'_>, index: usize) -> Nanos {
    let times = test.times();
    let before = match index {
        0 => test.phase.posted,
        _ => times[index - 1],
    };
    times[index].saturating_sub(before)
}

/// True if lateness of the transmission of that index explains why `span`, the time from it to what
/// follows, is shorter than `shortest`. The tester knows when a packet reached its XDP program, not
/// when it left the DUT. A late packet lengthens the gap before it by the time that it takes from
/// `span`. The gap before it is therefore compared with the shortest one that this DUT may have
/// made: where all its gaps are alike, that is one of them.
pub(super) fn may_be_late(view: &View<'_>, index: usize, span: Nanos, shortest: Nanos) -> bool {
    let Some(test) = &view.test else {
        return false;
    };
    let soonest = match index {
        0 => 0,
        _ => shortest.max(usual_gap(view, test, index)),
    };
    span < shortest && gap_before(test, index) >= soonest + (shortest - span)
}

/// The shortest gap between two transmissions of this DUT, less as much as they differ. The gap
/// after the transmission of that index, which is judged by it, is left out.
fn usual_gap(view: &View<'_>, test: &PhaseView<'_>, index: usize) -> Nanos {
    let of_test = test.intervals().into_iter().enumerate();
    let of_test = of_test.filter(|(before, _)| *before != index);
    let of_control = view.control.iter().flat_map(PhaseView::intervals);
    let gaps = of_test.map(|(_, gap)| gap).chain(of_control);
    let (least, most) = gaps.fold((Nanos::MAX, 0), |(least, most), gap| {
        (gap.min(least), gap.max(most))
    });
    least.saturating_sub(most.saturating_sub(least))
}

/// A check without a subject: another says why there is none.
pub(super) fn or_nothing(finding: Finding, why: &str) -> Judgement {
    Ok(match finding.assertions.is_empty() {
        true => Finding::not_applicable(why),
        false => finding,
    })
}

pub(super) fn retry_count(view: &View<'_>) -> Judgement {
    let (test, t_tr) = test(view)?;
    let retries = view.e.plan.retry_count;
    let mut finding = Finding::new();
    let times = test.times();
    for retry in 1..=retries {
        let left = |retries: u8| Value::from(retries) + " left";
        let expected = left(retries - retry).is(Bound::Exactly);
        let Some(sent) = times.get(usize::from(retry)) else {
            finding.undecided(format!("retry {retry}"), expected, "it did not come");
            continue;
        };
        let what = format!(
            "retry {retry}, {} after the first request",
            ms(sent - times[0])
        );
        let in_time = |shown: &&Shown| during(shown, &times, usize::from(retry), t_tr);
        match test.phase.shown.iter().find(in_time) {
            Some(shown) => finding.about([Subject::Packet(*sent)], |finding| {
                let holds = shown.retries_left == retries - retry;
                finding.expect(what, expected, left(shown.retries_left), holds)
            }),
            None if test.phase.shown.is_empty() => {
                let found = expected.clone() + ", derived: the DUT does not show its counter";
                finding.expect(what, expected, found, true);
            }
            None => {
                finding.undecided_until(remedy::NOT_REACHED, what, expected, "not read in time")
            }
        }
    }
    or_nothing(finding, "the retry count is 0")
}

/// True if the counter was read after that retry and before a later one.
fn during(shown: &Shown, times: &[Nanos], retry: usize, t_tr: Nanos) -> bool {
    let next = times.get(retry + 1).copied().unwrap_or(Nanos::MAX);
    shown.asked >= times[retry] && shown.answered + t_tr * CLOSE / 100 < next
}

/// The verdict on a time between two others: inconclusive where only one of them is in bounds.
pub(super) fn within(
    earliest: Nanos,
    latest: Nanos,
    (shortest, longest): (Nanos, Nanos),
) -> Verdict {
    if latest < shortest || earliest > longest {
        Verdict::Fail
    } else if earliest >= shortest && latest <= longest {
        Verdict::Pass
    } else {
        Verdict::Inconclusive
    }
}
