//! Testbed and plan files -> typed and checked; the only reader of files.
