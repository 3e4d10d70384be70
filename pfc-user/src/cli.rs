//! Arguments; no I/O.
