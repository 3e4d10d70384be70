//! Two ports of an engine, cabled together.

use std::time::{Duration, Instant};

use pfc_ebpf::flow_stamp::Form;
use pfc_ebpf::units::{LineRate, Priority};
use validator::driver::kernel::link::{End, create_veth};
use validator::driver::kernel::netns::Namespace;
use validator::engine::{LiveEngine, Options};
use validator_core::engine::packet::{Header, Packet, Protocol, Value};
use validator_core::engine::plan::{
    self, Captures, Flow, FlowIndex, Length, Metrics, Obeys, Plan, Port, PortIndex, Rate, Schedule,
    Span,
};
use validator_core::engine::snapshot::{Snapshot, Transmit};
use validator_core::engine::{Engine, Order};

/// Nothing here takes as long, not even in a guest that gets a tenth of a CPU.
pub const PATIENCE: Duration = Duration::from_secs(600);
/// Room for the longest frames.
const MTU: u32 = 9200;

/// An engine in a namespace of its own with the ports `a` and `b`.
pub struct Bench {
    // Dropped before the namespace.
    pub engine: LiveEngine,
    pub namespace: Namespace,
}

pub fn gigabit() -> LineRate {
    LineRate::from_bits_per_second(1_000_000_000).unwrap()
}

pub fn header(protocol: Protocol, fields: &[(&'static str, Value)]) -> Header {
    Header {
        fields: fields.to_vec(),
        ..Header::new(protocol)
    }
}

pub fn packet(protocols: &[Protocol]) -> Packet {
    let headers = protocols.iter().map(|protocol| header(*protocol, &[]));
    Packet {
        headers: headers.collect(),
        ..Packet::default()
    }
}

pub fn udp() -> Packet {
    packet(&[Protocol::Ethernet, Protocol::Ipv4, Protocol::Udp])
}

/// From port 0 to port 1.
pub fn flow(name: &str, length: u32, rate: Rate, end: plan::End) -> Flow {
    Flow {
        name: name.into(),
        from: PortIndex(0),
        to: vec![PortIndex(1)],
        queue: Priority::new(0).unwrap(),
        packet: udp(),
        length: Length::Fixed(length),
        rate,
        schedule: Schedule {
            delay: Span::Time(0),
            end,
            gap: 12,
        },
        metrics: Metrics {
            stamp: Some(Form::Whole),
            latency: true,
        },
        next_hops: Vec::new(),
    }
}

/// Pause frames of 64 octets from port 1, by an address of their own where none is given.
pub fn pauses(fields: &[(&'static str, Value)], rate: u64, end: plan::End) -> Flow {
    let mut fields = fields.to_vec();
    if fields.iter().all(|(name, _)| *name != "src") {
        fields.push(("src", Value::Fixed(0x0200_0000_00fb)));
    }
    Flow {
        from: PortIndex(1),
        to: vec![PortIndex(0)],
        packet: Packet {
            headers: vec![header(Protocol::PfcPause, &fields)],
            ..Packet::default()
        },
        ..flow("pauses", 64, Rate::FramesPerSecond(rate), end)
    }
}

/// Both ports, port 0 obeying what is given.
pub fn plan(obeys: Obeys, flows: Vec<Flow>) -> Plan {
    let port = |name: &str, obeys| Port {
        name: name.into(),
        interface: name.into(),
        namespace: None,
        line_rate: Some(gigabit()),
        mtu: None,
        obeys,
        captures: Captures::default(),
    };
    Plan {
        ports: vec![port("a", obeys), port("b", Obeys::Nothing)],
        flows,
        interfaces: Vec::new(),
    }
}

pub fn all(engine: &Plan) -> Vec<FlowIndex> {
    (0..engine.flows.len()).map(FlowIndex).collect()
}

/// Tries what a machine that stands still may spoil until it was not spoilt: then `attempt` is
/// true. What is wrong each time is not the machine's fault.
pub fn until_not_spoilt(what: &str, attempt: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !attempt() {
        assert!(Instant::now() < end, "{what}, however often it was tried");
    }
}

/// A cable between two interfaces that it makes.
pub fn cable(namespace: &Namespace, one: &str, other: &str) {
    let end = |name| End {
        namespace,
        name,
        mac: [2, 0, 0, 0, 0, name.as_bytes()[0] - b'a' + 1],
    };
    create_veth(end(one), end(other), MTU).unwrap();
}

impl Bench {
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    pub fn with(options: Options) -> Self {
        Self::cabled(&[("a", "b")], options)
    }

    /// With a device between the ports, whose own are `c`, beside `a`, and `d`, beside `b`.
    pub fn through() -> Self {
        Self::cabled(&[("a", "c"), ("d", "b")], Options::default())
    }

    fn cabled(cables: &[(&'static str, &'static str)], options: Options) -> Self {
        let namespace = Namespace::new().unwrap();
        for (one, other) in cables {
            cable(&namespace, one, other);
        }
        let engine = namespace.run(|| LiveEngine::new(options)).unwrap().unwrap();
        Self { engine, namespace }
    }

    /// Takes the plan and starts all its flows.
    pub fn start(&mut self, plan: Plan) {
        let flows = all(&plan);
        self.engine.configure(plan).unwrap();
        self.engine.transmit(&flows, Order::Start).unwrap();
    }

    pub fn snapshot(&mut self) -> Snapshot {
        self.engine.snapshot().unwrap()
    }

    /// Waits for a snapshot of which `is` is true, and returns it.
    pub fn until(&mut self, what: &str, is: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let end = Instant::now() + PATIENCE;
        loop {
            let snapshot = self.snapshot();
            if is(&snapshot) {
                return snapshot;
            }
            assert!(Instant::now() < end, "never saw {what}: {snapshot:#?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until every flow has ended and what left has arrived.
    pub fn until_done(&mut self) -> Snapshot {
        self.until("the end of all flows", |snapshot| {
            snapshot
                .flows
                .iter()
                .all(|flow| flow.transmit == Transmit::Stopped)
        });
        // The kernel receives on a CPU of its choice: what left may not have been counted yet.
        self.until("that what left arrived", |snapshot| {
            let [a, b] = &snapshot.ports[..] else {
                unreachable!("a plan of this bench has two ports");
            };
            a.sent.frames == b.received.frames && b.sent.frames == a.received.frames
        })
    }
}
