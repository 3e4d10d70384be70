//! Counts of a port: since its plan is in force, and anew with a start.

use std::sync::atomic::Ordering;

use pfc_ebpf::units::{LineRate, Nanos, Priority};
use validator_core::engine::plan::{Flow, Obeys, Rate};
use validator_core::engine::snapshot::{Count, PortCounts};
use validator_core::engine::{Problem, Warning};

use super::port::LivePort;
use super::rates::Held;
use super::snapshot::with_fcs;
use super::{LiveEngine, machine, presence};
use crate::driver::bpf::flow::Place;
use crate::driver::kernel::clock;

impl LivePort {
    /// Counts since the port is in use.
    pub(super) fn raw_counts(&self) -> Result<PortCounts, Problem> {
        let received = self.program.port().map_err(machine)?;
        // ARP and ND frames leave uncounted, too: those for the tester's own addresses, and those
        // of flows without a stamp.
        let neighbours = with_fcs(received.neighbours, received.neighbour_octets);
        let all = with_fcs(received.frames, received.octets);
        Ok(PortCounts {
            capture_missed: self.reader.missed() + received.missed - self.missed_before,
            sent: self.state.sent(),
            received: all.since(neighbours),
            pause_received: received.pause,
            own_pause_received: received.own_pause,
            undecided_pause_received: received.nobodys_pause,
            pause_sent: self.state.pause.read().frames,
            pfc_received: received.pfc_by_class,
            own_pfc_received: received.own_pfc_by_class,
            undecided_pfc_received: received.nobodys_pfc_by_class,
            pfc_sent: std::array::from_fn(|class| self.state.pfc[class].read().frames),
            ..PortCounts::default()
        })
    }

    /// Time for which what it obeys has held its queues.
    pub(super) fn held(&self, obeys: Obeys) -> Held {
        // The clock is read last: no pause begins after it.
        let pauses = self.program.pauses().read();
        let at = clock::now();
        Held {
            at,
            totals: obeys.holds(&pauses, at).map(|hold| hold.total),
        }
    }

    /// Counts since they began, of queues that were held for so long; `undecided`: a flow of the
    /// plan sends pause frames from an address of zeros.
    pub(super) fn counts(
        &self,
        raw: &PortCounts,
        held: [Nanos; Priority::COUNT],
        undecided: bool,
    ) -> Result<PortCounts, Problem> {
        let began = &self.began;
        let since = |now: [u64; 8], then: [u64; 8]| {
            std::array::from_fn(|class| now[class].saturating_sub(then[class]))
        };
        let mut counts = PortCounts {
            link_up: self.is_up()?,
            capturing: self.capturing,
            capture_missed: raw.capture_missed,
            sent: raw.sent.since(began.sent),
            received: raw.received.since(began.received),
            pause_received: raw.pause_received - began.pause_received,
            own_pause_received: raw.own_pause_received - began.own_pause_received,
            undecided_pause_received: raw.undecided_pause_received - began.undecided_pause_received,
            pause_sent: raw.pause_sent - began.pause_sent,
            pfc_received: since(raw.pfc_received, began.pfc_received),
            own_pfc_received: since(raw.own_pfc_received, began.own_pfc_received),
            undecided_pfc_received: since(raw.undecided_pfc_received, began.undecided_pfc_received),
            pfc_sent: since(raw.pfc_sent, began.pfc_sent),
            held,
            responses: self.state.all_responses(),
            ..PortCounts::default()
        };
        if !undecided {
            // No flow sends any: they are a device's.
            counts.pause_received += std::mem::take(&mut counts.undecided_pause_received);
            let nobodys = std::mem::take(&mut counts.undecided_pfc_received);
            for (count, nobodys) in counts.pfc_received.iter_mut().zip(nobodys) {
                *count += nobodys;
            }
        }
        Ok(counts)
    }

    /// Counts begin anew.
    pub(super) fn count_anew(&mut self) -> Result<(), Problem> {
        self.began = self.raw_counts()?;
        self.forgotten_before = self.state.all_forgotten();
        Ok(())
    }

    /// Takes off what a flow has sent from here, and what arrived here of its starts.
    pub(super) fn take_off(&mut self, sent: Count, places: &[Place]) {
        self.began.sent += sent;
        for place in places {
            let here = self.program.places().read(place.flow);
            self.began.received += with_fcs(here.frames, here.octets);
        }
    }

    /// A warning, once, where flows were left behind their rates.
    pub(super) fn falls_behind(&mut self, name: &str) -> Option<Warning> {
        let forgotten = self.state.all_forgotten();
        let time = forgotten.saturating_sub(self.forgotten_before);
        if time == 0 || std::mem::replace(&mut self.forgotten_warned, true) {
            return None;
        }
        Some(Warning(format!(
            "port \"{name}\": its flows want more than it sends: what was due in {} ms never left; \
             lower their rates",
            time.div_ceil(1_000_000)
        )))
    }

    /// A warning where the interface refused every frame for a while, but by no order of a client.
    pub(super) fn stalled(&mut self, name: &str) -> Option<Warning> {
        let stalls = self.state.stalls.load(Ordering::Relaxed);
        if std::mem::replace(&mut self.stalls_warned, stalls) == stalls || self.down.is_some() {
            return None;
        }
        let interface = &self.interface;
        let now = match self.present(name) {
            Err(Problem::Order(gone) | Problem::Machine(gone)) => {
                return Some(Warning(format!(
                    "{gone}; what was due meanwhile never left"
                )));
            }
            Ok(state) if state.up => "it is up again".into(),
            Ok(_) => presence::down(interface, &self.namespace),
        };
        Some(Warning(format!(
            "port \"{name}\": {interface} took no frames for a time while flows were sent, and \
             what was due then never left; {now}"
        )))
    }
}

impl LiveEngine {
    /// Flows whose pause frames look like a device's.
    pub(super) fn undecided_pauses(&self) -> Option<Warning> {
        self.nobodys_pauses.then(|| {
            Warning(
                "a flow sends pause frames from the address 00:00:00:00:00:00, which a device may \
                 have as well: whose they are that arrive is undecided (pfc_undecided_rx of \
                 /counters); give the flow an address of its own to tell them apart"
                    .into(),
            )
        })
    }

    /// Flows whose rate their line does not carry.
    pub(super) fn beyond_line<'a>(
        &self,
        flows: impl IntoIterator<Item = &'a Flow>,
    ) -> Vec<Warning> {
        let warnings = flows.into_iter().filter_map(|flow| {
            let line_rate = self.ports[flow.from.0].line_rate;
            flow.pace(line_rate).is_beyond_line().then(|| {
                Warning(format!(
                    "flow \"{}\": port \"{}\" carries {line_rate}, less than its rate asks for: \
                     it leaves as fast as the line allows; lower its rate",
                    flow.name, self.plan.ports[flow.from.0].name
                ))
            })
        });
        warnings.collect()
    }

    /// Ports whose speed is another than that of their NIC.
    pub(super) fn other_speeds(&self) -> Vec<Warning> {
        let ports = self.ports.iter().zip(&self.plan.ports);
        let other = ports.filter_map(|(live, planned)| {
            other_speed(
                &planned.name,
                &live.interface,
                live.own_rate?,
                planned.line_rate?,
            )
        });
        other.collect()
    }
}

impl LivePort {
    /// The defect of a rate that needs a speed where there is none.
    pub(super) fn lacks_speed(&self, rate: &Rate, flow: &str) -> Option<String> {
        (self.has_no_speed && matches!(rate, Rate::Percent(_))).then(|| {
            format!(
                "flow \"{flow}\": {} has no speed that means something, and a rate in percent needs \
                 one: set `layer1.speed`, or `line_rate` in the testbed file",
                self.interface
            )
        })
    }
}

/// A warning where a port's speed is to be another than its link's own.
fn other_speed(port: &str, interface: &str, own: LineRate, planned: LineRate) -> Option<Warning> {
    (own != planned).then(|| {
        Warning(format!(
            "port \"{port}\": its speed is to be {planned}, and the link of {interface} has {own}: \
             percentages and pauses are those of {planned}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_told_where_it_is_not_the_links_own() {
        let [one, ten] = [1, 10].map(|gbits| {
            LineRate::from_bits_per_second(gbits * 1_000_000_000).expect("a rate of a line")
        });
        assert_eq!(other_speed("p1", "eth0", ten, ten), None);
        let warning = other_speed("p1", "eth0", one, ten).expect("a warning");
        let text = format!(
            "port \"p1\": its speed is to be {ten}, and the link of eth0 has {one}: percentages and \
             pauses are those of {ten}"
        );
        assert_eq!(warning.0, text);
    }
}
