//! Wire formats: one protocol a file, checked views that never panic.
