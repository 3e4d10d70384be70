//! Exercises the messages of the agent's protocol.

use serde::Serialize;
use serde::de::DeserializeOwned;
use validator_core::agent::protocol::{Request, Response};

/// Reads the octets as either end does, and asserts that what is read is written as it was read.
pub fn exercise(octets: &[u8]) {
    if let Some(Request::Open(settings)) = read::<Request>(octets) {
        let _ = settings.check();
    }
    read::<Response>(octets);
}

fn read<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(octets: &[u8]) -> Option<T> {
    let message: T = serde_json::from_slice(octets).ok()?;
    let written = serde_json::to_vec(&message).expect("a message is JSON");
    let again: T = serde_json::from_slice(&written).expect("what was written is read");
    assert_eq!(again, message);
    Some(message)
}
