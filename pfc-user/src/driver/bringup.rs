//! Brings up the testbed of a run: ports, devices under test, the self-test. What it changes is
//! journalled first, so that a later run can undo it.

pub mod journal;
pub mod mad;
pub mod rc;
pub mod testbed;
