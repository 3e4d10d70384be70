//! Direction in which frames pass the program for tc.

use aya::programs::TcAttachType;

/// Direction of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Behind XDP, before any other program at tcx.
    Ingress,
    /// Frames on their way out that the other programs at tcx let pass, before the queueing
    /// discipline.
    Egress,
}

impl From<Direction> for TcAttachType {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Ingress => Self::Ingress,
            Direction::Egress => Self::Egress,
        }
    }
}
