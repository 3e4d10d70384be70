//! The XDP program: load, attach, configure, read.
