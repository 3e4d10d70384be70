//! The tester's node and the DUT, joined by one link: port 1 of the tester, port 1 of the DUT.

use super::node::{Outgoing, Sma};
use crate::mad::{Lid, Method};
use crate::smp::Smp;
use crate::transport::Time;

/// The port of either node that the link is at.
const LINKED: u8 = 1;
/// PortState of a port without a link.
const DOWN: u8 = 1;
/// PortState of a link that has just been trained.
const INITIALIZED: u8 = 2;

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

/// One of the two nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Tester,
    Dut,
}

impl Fabric {
    /// The tester sends `smp` at `now`, to `to` if it is LID-routed; everything that will come back to it because of that. A
    /// packet that finds no way is lost.
    pub fn send(&mut self, now: Time, smp: &Smp, to: Lid) -> Vec<Delivery> {
        let Some((end, smp, from)) = self.route(smp, to) else {
            return Vec::new();
        };
        let outgoing = match end {
            End::Tester => self.tester.receive(now, LINKED, from, &smp),
            End::Dut if self.link_is_up() => {
                let before = self.dut.port_state(LINKED);
                let outgoing = self.dut.receive(now, LINKED, from, &smp);
                if self.dut.port_state(LINKED) != before {
                    self.follow();
                }
                outgoing
            }
            End::Dut => Vec::new(),
        };
        // What the DUT says goes back by the link, if that is still up.
        if end == End::Dut && !self.link_is_up() {
            return Vec::new();
        }
        outgoing.into_iter().filter_map(|outgoing| self.deliver(now, &smp, outgoing)).collect()
    }

    fn link_is_up(&self) -> bool {
        [&self.tester, &self.dut].iter().all(|node| node.port_state(LINKED).is_some_and(|state| state != DOWN))
    }

    /// The tester's end of the link after the DUT's has changed.
    fn follow(&mut self) {
        if let Some(state @ (DOWN | INITIALIZED)) = self.dut.port_state(LINKED) {
            self.tester.set_port_state(LINKED, state);
        }
    }

    /// Whom `smp` reaches, what has become of it on the way, and the LID that it comes from.
    fn route(&self, smp: &Smp, to: Lid) -> Option<(End, Smp, Lid)> {
        let mut smp = smp.clone();
        if !smp.is_directed() {
            let end = match () {
                () if self.tester.has_lid(to) => End::Tester,
                () if self.dut.has_lid(to) => End::Dut,
                () => return None,
            };
            return Some((end, smp, self.tester.lid()));
        }
        // No part of the way is LID-routed.
        let permissive = smp.octets()[32..36].iter().all(|octet| *octet == 0xff);
        let end = match (smp.hops(), smp.initial_path()[1]) {
            _ if smp.is_returning() || !permissive => return None,
            ((0, 0), _) => End::Tester,
            ((0, 1), LINKED) => End::Dut,
            _ => return None,
        };
        let octets = smp.octets_mut();
        // The last node counts the pointer one beyond the count, and notes by which port the packet came (14.2.2).
        octets[6] = octets[7] + 1;
        if end == End::Dut {
            octets[193] = LINKED;
        }
        Some((end, smp, Lid::PERMISSIVE))
    }

    fn deliver(&self, now: Time, request: &Smp, outgoing: Outgoing) -> Option<Delivery> {
        let Outgoing { after, to, mut octets } = outgoing;
        let trap = octets.get(3) == Some(&Method::TRAP.0);
        if request.is_directed() && !trap {
            // The way back has counted it down.
            *octets.get_mut(6)? = 0;
        } else if !self.tester.has_lid(to) {
            return None;
        }
        Some(Delivery { at: now + after, octets })
    }
}
