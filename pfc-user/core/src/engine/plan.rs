//! Work of an engine: ports, flows, captures, interfaces.

use std::net::IpAddr;

use pfc_ebpf::flow_stamp::Form;
use pfc_ebpf::units::{LineRate, Nanos, Priority};

use super::filter::Filter;
use super::packet::Packet;

/// A port, by its place in [`Plan::ports`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortIndex(pub usize);

/// A flow, by its place in [`Plan::flows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowIndex(pub usize);

/// The whole work of an engine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Ports of the tester.
    pub ports: Vec<Port>,
    /// Flows; nothing is sent before it is started.
    pub flows: Vec<Flow>,
    /// Addresses that the ports answer for, with their next hops.
    pub interfaces: Vec<Interface>,
}

impl Plan {
    /// Names what depends on the speed of a port's link; `None` if nothing does.
    pub fn needs_line_rate(&self, port: PortIndex) -> Option<String> {
        if self.ports.get(port.0)?.obeys != Obeys::Nothing {
            return Some("the pause frames that it obeys count in bit times of its line".into());
        }
        let mut flows = self.flows.iter().filter(|flow| flow.from == port);
        flows.find_map(Flow::needs_line_rate)
    }
}

impl Flow {
    /// Names what in the flow depends on the speed of its port's link; `None` if nothing does.
    pub fn needs_line_rate(&self) -> Option<String> {
        let octets = |span: Span| matches!(span, Span::Octets(octets) if octets > 0);
        let gap = match self.schedule.end {
            End::Bursts { gap, .. } => octets(gap),
            _ => false,
        };
        let what = if matches!(self.rate, Rate::Percent(_)) {
            "has a rate in percent of the line"
        } else if octets(self.schedule.delay) || gap {
            "has times in octets of the line"
        } else if self.packet.is_pause() {
            "sends pauses, which count in bit times of the line"
        } else {
            return None;
        };
        Some(format!("flow \"{}\" {what}", self.name))
    }
}

/// A port that sends, receives and counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Name, for messages.
    pub name: String,
    /// Network interface.
    pub interface: String,
    /// Network namespace of the interface; `None` is the tester's own.
    pub namespace: Option<String>,
    /// Base of percentages and quanta. `None` is the link's own speed; where the link has none, an
    /// error if something needs it ([`Plan::needs_line_rate`]).
    pub line_rate: Option<LineRate>,
    /// Longest frame's IP packet, in octets; `None` leaves the interface's.
    pub mtu: Option<u16>,
    /// Pause frames that hold the port's queues.
    pub obeys: Obeys,
    /// Frames that a capture keeps.
    pub captures: Captures,
}

/// Frames that a capture keeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Captures {
    /// Filters, each of which a frame has to pass.
    pub filters: Vec<Filter>,
    /// Frames that stay once they outgrow the memory for them.
    pub keeps: Keeps,
}

/// Frames that stay in a capture once there are more than it has room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keeps {
    /// Frames that came first.
    First,
    /// Frames that came last.
    #[default]
    Newest,
}

/// Pause frames that a port obeys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Obeys {
    /// No pause frames.
    #[default]
    Nothing,
    /// PAUSE (802.3x): all queues.
    Pause,
    /// PFC (802.1Qbb): by class, the queue that is held.
    Pfc([Option<Priority>; Priority::COUNT]),
}

/// Frames of one kind from one port.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Name, for messages.
    pub name: String,
    /// Port that sends it.
    pub from: PortIndex,
    /// Ports at which it is counted; a frame at any other port is a leak.
    pub to: Vec<PortIndex>,
    /// The sending port's queue, which pause frames may hold. Nothing of it is on the wire.
    pub queue: Priority,
    /// Headers of its frames.
    pub packet: Packet,
    /// Lengths of its frames.
    pub length: Length,
    /// Rate.
    pub rate: Rate,
    /// Times at which it begins and ends, from its start.
    pub schedule: Schedule,
    /// Counts that are kept of it.
    pub metrics: Metrics,
    /// The interfaces from whose next hops the destination MAC addresses of its frames come, in
    /// turn, by their places in [`Plan::interfaces`]; empty: its headers have them.
    pub next_hops: Vec<usize>,
}

/// Lengths of a flow's frames in octets with FCS. Frame n has the n-th.
#[derive(Clone, Debug, PartialEq)]
pub enum Length {
    /// One length.
    Fixed(u32),
    /// `start`, `start + step`, ... up to `end`, and again.
    Increment {
        /// First length.
        start: u32,
        /// Longest length.
        end: u32,
        /// Difference, above 0.
        step: u32,
    },
    /// Any from `min` to `max`, by a generator with a fixed seed.
    Random {
        /// Shortest.
        min: u32,
        /// Longest.
        max: u32,
    },
    /// Lengths with their weights.
    Weighted(Vec<(u32, f32)>),
}

/// Rate of a flow while nothing holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Frames a second.
    FramesPerSecond(u64),
    /// Bits a second of frames with FCS: layer 2.
    BitsPerSecond(u64),
    /// Percent of the line rate, preamble and gap included: layer 1.
    Percent(f64),
}

/// Times at which a flow begins and ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Time from the start to the first frame.
    pub delay: Span,
    /// The end.
    pub end: End,
    /// Least octets from one frame to the next (as long as they take at line rate).
    pub gap: u32,
}

/// A time, or as many octets at line rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Span {
    /// Nanoseconds.
    Time(Nanos),
    /// Octets at line rate.
    Octets(u64),
}

/// Condition that ends a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// A stop order alone.
    Never,
    /// Number of frames that have left.
    Frames(u64),
    /// Wall time since its first frame was due, also while pause frames hold it.
    Time(Nanos),
    /// Bursts: frames at the flow's rate, then silence.
    Bursts {
        /// Number of bursts; `None` is without end.
        bursts: Option<u64>,
        /// Frames of each burst.
        frames: u64,
        /// Silence between two.
        gap: Span,
    },
}

/// Counts that are kept of a flow, beside its frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Stamp of the frames, by which the receiver tells them apart; pause frames have no room for
    /// one.
    pub stamp: Option<Form>,
    /// True if latency is measured, too: a whole stamp has the time for it.
    pub latency: bool,
}

/// An address that a port answers for.
#[derive(Clone, Debug, PartialEq)]
pub struct Interface {
    /// Name, for messages.
    pub name: String,
    /// Port of the interface.
    pub port: PortIndex,
    /// MAC address.
    pub mac: [u8; 6],
    /// VLAN identifiers of its frames, outermost first.
    pub vlans: Vec<u16>,
    /// IP address.
    pub address: IpAddr,
    /// Bits of its network.
    pub prefix: u8,
    /// The next hop, whose MAC address is asked for.
    pub gateway: IpAddr,
}

#[cfg(test)]
mod tests {
    use super::super::packet::{Header, Protocol};
    use super::*;

    /// A flow that needs no speed.
    fn flow() -> Flow {
        Flow {
            name: "f".into(),
            from: PortIndex(0),
            to: vec![PortIndex(1)],
            queue: Priority::from_low_bits(0),
            packet: Packet::default(),
            length: Length::Fixed(64),
            rate: Rate::FramesPerSecond(1),
            schedule: Schedule {
                delay: Span::Time(1),
                end: End::Never,
                gap: 12,
            },
            metrics: Metrics::default(),
            next_hops: Vec::new(),
        }
    }

    fn bursts(gap: Span) -> End {
        End::Bursts {
            bursts: None,
            frames: 1,
            gap,
        }
    }

    #[test]
    fn what_counts_in_time_on_the_line_needs_its_speed() {
        let octets = "has times in octets of the line";
        let pauses = "sends pauses, which count in bit times of the line";
        let at = |rate| Flow { rate, ..flow() };
        let scheduled = |delay, end| {
            let gap = 12;
            Flow {
                schedule: Schedule { delay, end, gap },
                ..flow()
            }
        };
        let sends = |protocol| {
            let mut flow = flow();
            flow.packet.headers = vec![Header::new(protocol)];
            flow
        };
        let (time, span) = (Span::Time(1), Span::Octets(1));
        for (flow, needs) in [
            (flow(), None),
            (at(Rate::BitsPerSecond(1)), None),
            (
                at(Rate::Percent(1.0)),
                Some("has a rate in percent of the line"),
            ),
            (scheduled(span, End::Never), Some(octets)),
            (scheduled(Span::Octets(0), End::Never), None),
            (scheduled(time, bursts(span)), Some(octets)),
            (scheduled(time, bursts(time)), None),
            (scheduled(time, End::Frames(1)), None),
            (sends(Protocol::Ethernet), None),
            (sends(Protocol::PfcPause), Some(pauses)),
            (sends(Protocol::EthernetPause), Some(pauses)),
        ] {
            let needs = needs.map(|what| format!("flow \"f\" {what}"));
            assert_eq!(flow.needs_line_rate(), needs, "{flow:?}");
        }
    }

    #[test]
    fn a_port_needs_the_speed_of_what_it_obeys_and_of_its_own_flows() {
        let port = |obeys| Port {
            name: "p".into(),
            interface: "i".into(),
            namespace: None,
            line_rate: None,
            mtu: None,
            obeys,
            captures: Captures::default(),
        };
        let percent = Flow {
            rate: Rate::Percent(1.0),
            ..flow()
        };
        let plan = Plan {
            ports: [Obeys::Nothing, Obeys::Nothing, Obeys::Pause]
                .map(port)
                .to_vec(),
            flows: vec![flow(), percent],
            interfaces: Vec::new(),
        };
        let needs = |place| plan.needs_line_rate(PortIndex(place));
        assert!(needs(0).is_some_and(|need| need.contains("in percent")));
        assert_eq!(needs(1), None);
        assert!(needs(2).is_some_and(|need| need.contains("that it obeys")));
    }
}
