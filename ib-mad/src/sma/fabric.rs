//! The tester's node and the DUT, joined by one link: port 1 of the tester, port 1 of the DUT.

use super::agent::Outgoing;
use super::config::NodeKind;
use super::node::Sma;
use crate::attr::PortState;
use crate::mad::{Lid, Method, Time};
use crate::smp::Smp;
use crate::transport::Received;

/// Number of the linked port on both nodes.
const LINKED: u8 = 1;

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
    /// Sends `smp` from the tester at `now`, to `to` if it is LID-routed. Returns every packet that
    /// comes back because of it. A packet without a route is lost.
    pub fn send(&mut self, now: Time, smp: &Smp, to: Lid) -> Vec<Received> {
        let Some((end, smp, from)) = self.route(smp, to) else {
            return Vec::new();
        };
        // The packet and what it causes cross the link, unless it stays at the tester.
        let crosses = end == End::Dut || smp.is_directed() && smp.hops().1 > 0;
        if crosses && !self.link_is_up() {
            return Vec::new();
        }
        let (node, other) = match end {
            End::Tester => (&mut self.tester, &mut self.dut),
            End::Dut => (&mut self.dut, &mut self.tester),
        };
        let before = node.port_state(LINKED);
        let outgoing = node.receive(now, LINKED, from, &smp);
        let after = node.port_state(LINKED);
        // A link goes down, and is trained again, at both ends.
        if after != before
            && let Some(state @ (PortState::Down | PortState::Initialized)) = after
        {
            other.set_port_state(LINKED, state);
        }
        if crosses && !self.link_is_up() {
            return Vec::new();
        }
        outgoing
            .into_iter()
            .filter_map(|outgoing| self.deliver(now, &smp, outgoing))
            .collect()
    }

    fn link_is_up(&self) -> bool {
        [&self.tester, &self.dut].iter().all(|node| {
            node.port_state(LINKED)
                .is_some_and(|state| state != PortState::Down)
        })
    }

    /// Finds the node that `smp` reaches. Returns it with the packet as it arrives and the LID it
    /// comes from.
    fn route(&self, smp: &Smp, to: Lid) -> Option<(End, Smp, Lid)> {
        let mut smp = smp.clone();
        if !smp.is_directed() {
            let ends = [(End::Tester, &self.tester), (End::Dut, &self.dut)];
            let (end, _) = ends.into_iter().find(|(_, node)| node.has_lid(to))?;
            return Some((end, smp, self.tester.lid()));
        }
        // Routes with a LID-routed part are not supported.
        let permissive = smp.dr_slid() == Lid::PERMISSIVE && smp.dr_dlid() == Lid::PERMISSIVE;
        let (pointer, hops) = smp.hops();
        if smp.is_returning() || !permissive || pointer != 0 {
            return None;
        }
        let ports = smp.initial_path().get(1..=usize::from(hops))?;
        // A switch sends a packet out of the port that the path names, be it the one at which it
        // came; an adapter sends none on (14.2.2.2). No port but the linked one has a link.
        let forwards = matches!(self.dut.config().kind, NodeKind::Switch(_));
        let end = match ports {
            [] => End::Tester,
            [LINKED] => End::Dut,
            [LINKED, LINKED] if forwards => End::Tester,
            _ => return None,
        };
        // Each node notes the port at which the packet arrived. The hop pointer counts up on the
        // way there and down to 0 on the way back (14.2.2); no agent looks at it.
        smp.return_path_mut()[1..=usize::from(hops)].fill(LINKED);
        Some((end, smp, Lid::PERMISSIVE))
    }

    fn deliver(&self, now: Time, request: &Smp, outgoing: Outgoing) -> Option<Received> {
        let Outgoing { after, to, octets } = outgoing;
        let trap = octets.get(3) == Some(&Method::TRAP.0);
        let way_back = request.is_directed() && !trap;
        (way_back || self.tester.has_lid(to)).then(|| Received {
            at: now + after,
            octets,
        })
    }
}
