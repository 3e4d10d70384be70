//! Outcome of a request: the reply, or that a Set is invalid.

use crate::attr::FieldError;
use crate::mad::Status;
use crate::smp::{DATA, Smp};

/// Status and data of a response.
pub(super) struct Reply(pub(super) Status, pub(super) [u8; DATA]);

impl Reply {
    /// A reply without data to an invalid modifier or value.
    pub(super) const INVALID: Self = Self(Status::INVALID_FIELD, [0; DATA]);
}

/// A Set with an invalid value; no part of it takes effect.
#[derive(Debug)]
pub(super) struct Invalid;

impl From<FieldError> for Invalid {
    fn from(_: FieldError) -> Self {
        Self
    }
}

/// Status of the response to a request for an attribute that has no modifier.
pub(super) fn without_modifier(smp: &Smp) -> Status {
    if smp.modifier() == 0 {
        Status::OK
    } else {
        Status::INVALID_FIELD
    }
}
