//! Wholeness of a repetition of a MAD case.

use std::collections::HashSet;

use super::{Checked, Rule, ascends, ensure, stalls};
use crate::evidence::mad::{Exchange, MadEvidence};
use crate::evidence::pfc::LeftOut;

pub(super) fn check(e: &MadEvidence, at: &str) -> Checked {
    let answers = e
        .exchanges
        .iter()
        .filter(|exchange| exchange.answer.is_some())
        .count();
    for (what, listed, counted) in [
        ("requests", e.exchanges.len(), e.traffic.sent),
        (
            "packets received",
            answers + e.strays.len() + (e.strays_left_out + e.traps_left_out) as usize,
            e.traffic.received,
        ),
    ] {
        ensure(listed as u64 == counted, Rule::Packets, at, || {
            format!("{listed} {what} are there, {counted} were counted")
        })?;
    }
    let sent = e.exchanges.iter().map(|exchange| exchange.sent);
    ensure(ascends(sent), Rule::Packets, at, || {
        "requests are out of order".into()
    })?;
    let attempts = e.exchanges.iter().map(|exchange| exchange.attempt);
    ensure(ascends(attempts), Rule::Packets, at, || {
        "attempts are out of order".into()
    })?;
    let came = e.strays.iter().map(|stray| stray.packet.at);
    ensure(ascends(came), Rule::Packets, at, || {
        "strays are out of order".into()
    })?;
    stalls(
        &e.stalls,
        LeftOut::default(),
        e.stalls_noted,
        &format!("{at}.stalls"),
    )?;
    let mut tids = HashSet::new();
    for (index, exchange) in e.exchanges.iter().enumerate() {
        let at = format!("{at}.exchanges[{index}]");
        let tid = tid(&exchange.request.0);
        ensure(tid.is_some(), Rule::Packets, &at, || {
            "the request is no whole MAD".into()
        })?;
        ensure(tids.insert(tid), Rule::Packets, &at, || {
            "the request is there twice".into()
        })?;
        answered(exchange, &at)?;
    }
    Ok(())
}

/// The answer has the request's TID, and came after it.
fn answered(exchange: &Exchange, at: &str) -> Checked {
    ensure(
        exchange.sent <= exchange.deadline,
        Rule::Packets,
        at,
        || "its answer was awaited until before it was sent".into(),
    )?;
    let Some(answer) = &exchange.answer else {
        return Ok(());
    };
    // Some transports write the upper half of a TID, and a check judges it where they do not.
    let low = |octets| tid(octets).map(|tid| tid as u32);
    let same = low(&answer.octets.0) == low(&exchange.request.0);
    ensure(
        same && answer.at >= exchange.sent,
        Rule::Packets,
        at,
        || "the answer is to another request".into(),
    )
}

/// The TID of a MAD.
fn tid(octets: &[u8]) -> Option<u64> {
    let octets: &[u8; 8] = octets.get(8..16)?.try_into().ok()?;
    Some(u64::from_be_bytes(*octets))
}
