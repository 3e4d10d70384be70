//! Which packets belong to one transmission of a request.

use crate::plan::Nanos;

/// Packets that follow each other within this part of T_tr were sent at once; a retry comes T_tr
/// after the last at the soonest.
const AT_ONCE: Nanos = 16;

/// True if a packet at `time` begins a transmission; the one before came at `previous`.
pub(super) fn begins(previous: Option<Nanos>, time: Nanos, t_tr: Nanos) -> bool {
    previous.is_none_or(|previous| time.saturating_sub(previous) > t_tr / AT_ONCE)
}
