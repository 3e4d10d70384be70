//! Linux umad.
