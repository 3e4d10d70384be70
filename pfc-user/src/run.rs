//! The only loop: for each case preflight, run, judge, emit events.
