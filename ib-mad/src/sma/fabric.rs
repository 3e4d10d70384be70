//! The tester's node and the DUT, joined by one link: port 1 of the tester, port 1 of the DUT.

use super::node::Sma;
use crate::mad::Lid;
use crate::smp::Smp;
use crate::transport::Time;

/// A packet that reaches the tester.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When.
    pub at: Time,
    /// Octets.
    pub octets: Vec<u8>,
}

/// Two nodes and the link between them.
#[derive(Clone, Debug)]
pub struct Fabric {
    /// The tester's own node.
    pub tester: Sma,
    /// The device under test.
    pub dut: Sma,
}

impl Fabric {
    /// The tester sends `smp` at `now`, to `to` if it is LID-routed; everything that will come back to it because of that. A
    /// packet that finds no way is lost.
    pub fn send(&mut self, now: Time, smp: &Smp, to: Lid) -> Vec<Delivery> {
        let _ = (now, smp, to);
        Vec::new()
    }
}
