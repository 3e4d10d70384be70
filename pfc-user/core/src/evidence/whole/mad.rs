//! Wholeness of a repetition of a MAD case: each request that was sent is there once. Which steps
//! are missing at the end, its judge knows.

use super::{Checked, Rule};
use crate::evidence::mad::{Exchange, MadEvidence, Purpose};

/// The tester counts the low half of the TID up by one from request to request.
pub(super) fn check(e: &MadEvidence, at: &str) -> Checked {
    let last = e.exchanges.last().map(|last| last.attempt);
    for (index, pair) in (1..).zip(e.exchanges.windows(2)) {
        let (before, after) = (&pair[0], &pair[1]);
        // A packet that is no SMP is no consistent request either.
        let (Some(known), Some(found)) = (low_tid(before), low_tid(after)) else {
            continue;
        };
        let expected = known.wrapping_add(1);
        let is_later = found.wrapping_sub(expected) < 1 << 31;
        // The restoration goes on where a wish to stop or a packet that could not be sent, which
        // had a TID too, ended something else.
        let may_skip = last == Some(after.attempt) && restores(after.purpose) && is_later;
        let at = Rule::Requests.at(format!("{at}.exchanges[{index}]"));
        at.ensure(found == expected || may_skip, || {
            format!(
                "expected a request whose TID ends in {expected:08x}, found {found:08x}: requests \
                 before it are missing, or it is there twice"
            )
        })?;
    }
    Ok(())
}

fn low_tid(exchange: &Exchange) -> Option<u32> {
    let low = exchange.request.0.get(12..16)?;
    Some(u32::from_be_bytes(low.try_into().ok()?))
}

/// True for the purposes of requests that restore the DUT.
fn restores(purpose: Purpose) -> bool {
    use Purpose::{InForce, Reset, ResetShown, Restore, Restored};
    matches!(purpose, InForce | Reset | ResetShown | Restore | Restored)
}
