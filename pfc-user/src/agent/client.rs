//! The tester's side of the protocol.
