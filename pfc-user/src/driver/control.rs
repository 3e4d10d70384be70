//! PAUSE and PFC frames: single frames and storms.
