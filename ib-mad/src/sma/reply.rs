//! What a node makes of a request: the reply, or that a Set is invalid.

use crate::attr::FieldError;
use crate::mad::Status;
use crate::smp::DATA;

/// Status and data of a response.
pub(super) struct Reply {
    pub(super) status: Status,
    pub(super) data: [u8; DATA],
}

/// A Set with an invalid value; no part of it takes effect.
#[derive(Debug)]
pub(super) struct Invalid;

impl From<FieldError> for Invalid {
    fn from(_: FieldError) -> Self {
        Self
    }
}
