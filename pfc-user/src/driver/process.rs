//! Child processes that end with the tester.
