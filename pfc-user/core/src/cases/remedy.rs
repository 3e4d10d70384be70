//! Remedies: what would change a verdict that is inconclusive or an error. A finding carries one
//! from where it is made.

/// Remedy where nothing more is known of the cause.
pub(crate) const OTHER: &str = "Mend what is found, and run the case again.";

/// Remedy for a repetition that its user ended.
pub(super) const INTERRUPTED: &str = "Run the case again, to its end.";

/// Remedy for a repetition that was not done.
pub(super) const NOT_DONE: &str =
    "Make the repetition possible, as it says, and run the case again.";

/// Remedy where what is judged was not reached.
pub(super) const NOT_REACHED: &str = "Mend what ended the case before: it stands in another row.";

/// Remedy where the machine of the simulated DUT may be why something came late.
pub(super) const STALLED: &str =
    "Take load off the machine of the simulated DUT, or give it a CPU of its own.";

/// Remedy for a link with an end that is down.
pub(super) const LINK: &str = "Bring both ends of the link up: a subnet manager sets their state \
                               to Active; end it before the run.";

/// Remedy for an answer that comes after the testbed's time-out.
pub(super) const TIMEOUT: &str =
    "Set mad.timeout of the testbed to longer than the DUT takes to answer.";

/// Remedy for a DUT that answers BUSY.
pub(super) const BUSY: &str =
    "Let the DUT's agent come to rest: end what else asks it, such as a subnet manager.";

/// Remedy where other requests were lost too.
pub(super) const LOSS: &str =
    "See that nothing else sends on VL15 of this link, and run the case again.";

/// Remedy for a DUT that answers nothing.
pub(super) const UNREACHABLE: &str = "See that the DUT can be reached by mad.path of the testbed, \
                                      as with `smpquery nodeinfo`, and that mad.m_key_current is \
                                      the DUT's M_Key.";

/// Remedy where nothing says whether the document applies.
pub(super) const APM: &str =
    "Say by rc.apm of the testbed whether the DUT supports Automatic Path Migration.";

/// Remedy for a transmission that may have come in late.
pub(super) const LATE: &str =
    "Take load off the tester, or use a longer transport timer (queue_pairs of the plan).";
