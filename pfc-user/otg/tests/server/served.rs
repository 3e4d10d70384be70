//! An engine that records what it is asked for, and a server before it.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, UNIX_EPOCH};

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use validator_core::engine::plan::{End, FlowIndex, Length, Plan, PortIndex};
use validator_core::engine::snapshot::{
    Count, FlowCounts, Latency, Neighbour, PortCounts, Rates, Snapshot, Transmit,
};
use validator_core::engine::{Captured, CapturedFrame, Change, Engine, Order, Problem, Warning};
use validator_otg::{Access, Certificates, Options, Server, Tls};

use crate::places::places;

/// Silence after which the server stops flows without an end.
const LEASE: Duration = Duration::from_secs(600);

/// Requests to a fake engine, and its answers.
#[derive(Debug, Default)]
pub struct Record {
    pub plan: Plan,
    pub orders: Vec<(Vec<usize>, Order)>,
    pub changes: Vec<(usize, Change)>,
    pub links: Vec<(usize, bool)>,
    pub captures: Vec<(Vec<usize>, bool)>,
    pub flows: Vec<FlowCounts>,
    pub ports: Vec<PortCounts>,
    captured: Vec<bool>,
    /// Frames of every capture.
    pub frames: Vec<CapturedFrame>,
    /// Frames that captures gave, for as long as a file is to be written of them.
    pub given: Vec<Weak<Vec<CapturedFrame>>>,
    /// Problems for which the next configuration, order or update is refused.
    pub problems: Vec<Problem>,
    /// Warnings that the engine tells when it is asked next.
    pub notices: Vec<Warning>,
    /// An order waits for this, if there is one, and says that it does.
    pub gate: Option<(Sender<()>, Receiver<()>)>,
    /// The engine is gone.
    pub dropped: bool,
}

impl Record {
    fn refuse(&mut self) -> Result<(), Vec<Problem>> {
        let problems = std::mem::take(&mut self.problems);
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}

/// The record, which outlives the engine.
#[derive(Clone, Default)]
pub struct Recorded(Arc<Mutex<Record>>);

impl Recorded {
    pub fn get(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap()
    }

    pub fn engine(&self) -> Box<dyn Engine> {
        Box::new(Fake(self.clone()))
    }
}

/// Sends nothing; flows with a number of frames are at their end at once.
struct Fake(Recorded);

impl Drop for Fake {
    fn drop(&mut self) {
        self.0.get().dropped = true;
    }
}

impl Engine for Fake {
    fn configure(&mut self, plan: Plan) -> Result<Vec<Warning>, Vec<Problem>> {
        let mut record = self.0.get();
        record.refuse()?;
        record.flows = vec![FlowCounts::default(); plan.flows.len()];
        record.ports = vec![
            PortCounts {
                link_up: true,
                ..PortCounts::default()
            };
            plan.ports.len()
        ];
        record.captured = vec![false; plan.ports.len()];
        record.plan = plan;
        Ok(vec![Warning("a fake engine sends nothing".into())])
    }

    fn transmit(&mut self, flows: &[FlowIndex], order: Order) -> Result<(), Vec<Problem>> {
        let gate = self.0.get().gate.take();
        if let Some((waits, opens)) = gate {
            waits.send(()).unwrap();
            opens.recv().unwrap();
        }
        let mut record = self.0.get();
        record.refuse()?;
        let places: Vec<usize> = flows.iter().map(|flow| flow.0).collect();
        for place in &places {
            let flow = record.plan.flows[*place].clone();
            let counts = &mut record.flows[*place];
            match order {
                Order::Start => *counts = started(&flow.schedule.end, &flow.length),
                Order::Stop => counts.transmit = Transmit::Stopped,
                Order::Pause => counts.transmit = Transmit::Paused,
                Order::Resume => counts.transmit = Transmit::Started,
            }
        }
        record.orders.push((places, order));
        Ok(())
    }

    fn update(&mut self, changes: &[(FlowIndex, Change)]) -> Result<Vec<Warning>, Vec<Problem>> {
        let mut record = self.0.get();
        record.refuse()?;
        let changes = changes
            .iter()
            .map(|(flow, change)| (flow.0, change.clone()));
        record.changes.extend(changes);
        Ok(vec![Warning("a fake engine sends no faster".into())])
    }

    fn link(&mut self, port: PortIndex, up: bool) -> Result<(), Problem> {
        let mut record = self.0.get();
        record.links.push((port.0, up));
        record.ports[port.0].link_up = up;
        Ok(())
    }

    fn capture(&mut self, ports: &[PortIndex], on: bool) -> Result<(), Problem> {
        let mut record = self.0.get();
        let places: Vec<usize> = ports.iter().map(|port| port.0).collect();
        for place in &places {
            record.ports[*place].capturing = on;
            record.captured[*place] |= on;
        }
        record.captures.push((places, on));
        Ok(())
    }

    fn captured(&mut self, port: PortIndex) -> Result<Option<Captured>, Problem> {
        let mut record = self.0.get();
        if !record.captured[port.0] {
            return Ok(None);
        }
        let frames = Arc::new(record.frames.clone());
        record.given.push(Arc::downgrade(&frames));
        Ok(Some(Captured { frames, missed: 0 }))
    }

    fn neighbours(&mut self) -> Vec<Neighbour> {
        let record = self.0.get();
        let interfaces = record.plan.interfaces.iter().enumerate();
        interfaces
            .map(|(interface, plan)| Neighbour {
                interface,
                address: plan.gateway,
                mac: Some([2, 0, 0, 0, 1, interface as u8]),
            })
            .collect()
    }

    fn notices(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.0.get().notices)
    }

    fn snapshot(&mut self) -> Result<Snapshot, Problem> {
        let record = self.0.get();
        Ok(Snapshot {
            at: 1,
            ports: record.ports.clone(),
            flows: record.flows.clone(),
        })
    }
}

fn started(end: &End, length: &Length) -> FlowCounts {
    let octets = match length {
        Length::Fixed(octets) => u64::from(*octets),
        _ => 64,
    };
    let (frames, transmit) = match end {
        End::Frames(frames) => (*frames, Transmit::Stopped),
        _ => (1000, Transmit::Started),
    };
    let count = Count {
        frames,
        octets: frames * octets,
    };
    let rate = Rates {
        frames: 0.00001,
        octets: 0.00064,
    };
    FlowCounts {
        transmit,
        sent: count,
        received: Count {
            frames: frames - 1,
            octets: (frames - 1) * octets,
        },
        sent_rate: rate,
        received_rate: rate,
        duplicates: 1,
        latency: Some(Latency {
            min: 1000,
            mean: 1500,
            max: 2500,
        }),
        first_frame: Some(2_000_000),
        ..FlowCounts::default()
    }
}

/// Two captured frames: one of 60 octets, and a PFC frame.
pub fn frames() -> Vec<CapturedFrame> {
    let mut pfc = vec![
        0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08, 1, 1, 0, 8,
    ];
    pfc.resize(60, 0xff);
    let at = |millis| UNIX_EPOCH + Duration::from_millis(millis);
    vec![
        CapturedFrame {
            at: at(1_700_000_000_001),
            octets: vec![0x5a; 60],
        },
        CapturedFrame {
            at: at(1_700_000_000_002),
            octets: pfc,
        },
    ]
}

/// A server before a fake engine.
pub struct Served {
    pub grpc: SocketAddr,
    pub http: SocketAddr,
    pub record: Recorded,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Served {
    pub async fn start() -> Self {
        Self::with(Access::open(), &Certificates::default()).await
    }

    pub async fn with(access: Access, certificates: &Certificates) -> Self {
        Self::on([127, 0, 0, 1], access, certificates, |text| {
            println!("{text}")
        })
        .await
    }

    /// At that address.
    pub async fn on(
        address: [u8; 4],
        access: Access,
        certificates: &Certificates,
        warn: fn(&str),
    ) -> Self {
        let address = SocketAddr::from((address, 0));
        let server = Server::bind(Options {
            grpc: address,
            http: address,
            access,
            tls: Tls::new(certificates).unwrap(),
            lease: LEASE,
            warn,
        });
        let server = server.await.unwrap();
        let (grpc, http) = server.addresses().unwrap();
        let record = Recorded::default();
        record.get().frames = frames();
        let (stop, stopped) = oneshot::channel();
        let engine = record.engine();
        let task = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            server.run(engine, places(), stopped).await;
        });
        Self {
            grpc,
            http,
            record,
            stop: Some(stop),
            task,
        }
    }

    /// Stops the server, and waits for its end.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
        assert!(self.record.get().dropped, "the engine is dropped");
    }
}
