//! Messages between tester and verbs agent.

pub mod protocol;
