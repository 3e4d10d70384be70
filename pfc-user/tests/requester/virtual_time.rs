//! A model with its virtual time and all of its output.

use std::collections::BTreeSet;
use std::net::IpAddr;

use pfc_ebpf::wire::roce::{self, Bth, Reth};
use validator::agent::protocol::{Channel, Completion, OpenChannel, QueuePair, Read, State};
use validator::dut::requester::frame::Path;
use validator::dut::requester::model::{Adapter, Model};
use validator_core::fault::requester::Fault;
use validator_core::plan::Nanos;
use validator_core::plan::rc::RcPlan;

pub const TESTER_QUEUE_PAIR: u32 = 0xabcdef;
pub const FIRST_PSN: u32 = 0xffffff;
pub const READ: Read = Read {
    work_request: 77,
    address: 0x99_9000,
    r_key: 0x12345,
    length: 1024,
};
/// Time at which the READ is posted.
pub const START: Nanos = 1_000_000;

pub fn adapter() -> Adapter {
    Adapter {
        name: "sim0".into(),
        mac: [2, 0, 0, 0, 0, 1],
        peer_mac: [2, 0, 0, 0, 0, 2],
        address: IpAddr::from([192, 0, 2, 1]),
        active_mtu: 4096,
    }
}

pub fn settings(retry_count: u8, timeout: u8) -> OpenChannel {
    OpenChannel {
        path_mtu: 1024,
        retry_count,
        timeout,
        remote: IpAddr::from([192, 0, 2, 2]),
        remote_queue_pair: TESTER_QUEUE_PAIR,
        psn: FIRST_PSN,
        remote_psn: 5,
    }
}

/// A correct READ response.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub opcode: u8,
    pub partition: u16,
    pub queue_pair: u32,
    pub psn: u32,
    pub syndrome: u8,
    pub length: usize,
}

impl Answer {
    pub fn frame(&self, to_dut: &Path) -> Vec<u8> {
        let pad = self.length.wrapping_neg() & 3;
        let mut transport = vec![self.opcode, (pad as u8) << 4];
        transport.extend(self.partition.to_be_bytes());
        transport.extend(self.queue_pair.to_be_bytes());
        transport.extend(self.psn.to_be_bytes());
        transport.extend([self.syndrome, 0, 0, 1]);
        transport.resize(transport.len() + self.length + pad, 0xa5);
        to_dut.frame(9, 0xc123, &transport)
    }
}

pub struct Lab {
    pub model: Model,
    pub channel: Channel,
    pub path: Path,
    pub now: Nanos,
    pub sent: Vec<(Nanos, Vec<u8>)>,
    pub completed: Vec<(Nanos, Completion)>,
    /// Retries left in the queue pair after each frame that it sends.
    pub left: Vec<Option<u8>>,
}

impl Lab {
    pub fn open(faults: &[Fault], settings: &OpenChannel) -> Self {
        Self::on(adapter(), faults, settings)
    }

    pub fn on(adapter: Adapter, faults: &[Fault], settings: &OpenChannel) -> Self {
        let Adapter {
            mac,
            peer_mac,
            address,
            ..
        } = adapter;
        let path = Path {
            mac,
            peer_mac,
            address,
            peer: settings.remote,
        };
        let mut model = Model::new(adapter, faults);
        let channel = model.open(START, settings).unwrap();
        Self {
            model,
            channel,
            path,
            now: START,
            sent: Vec::new(),
            completed: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Posts [`READ`] at [`START`], and runs until nothing more happens by itself.
    pub fn unanswered(faults: &[Fault], retry_count: u8, timeout: u8) -> Self {
        let mut lab = Self::open(faults, &settings(retry_count, timeout));
        lab.post(READ);
        lab.run();
        lab
    }

    pub fn post(&mut self, read: Read) {
        self.model.post_read(self.now, &read).unwrap();
        self.settle();
    }

    /// Processes all that happens at the current time.
    pub fn settle(&mut self) {
        while let Some(frame) = self.model.poll_transmit(self.now) {
            self.sent.push((self.now, frame));
            self.left.push(self.model.query().unwrap().retries_left);
        }
        let completions = self.model.completions(self.now);
        self.completed.extend(
            completions
                .into_iter()
                .map(|completion| (self.now, completion)),
        );
        assert_ne!(self.model.next_event(), Some(0), "everything has left");
    }

    /// Advances to the next event; false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(next) = self.model.next_event() else {
            return false;
        };
        assert!(next > self.now, "nothing is left undone");
        // Not a nanosecond earlier.
        self.now = next - 1;
        let before = (self.sent.len(), self.completed.len());
        self.settle();
        assert_eq!((self.sent.len(), self.completed.len()), before);
        self.now = next;
        self.settle();
        true
    }

    pub fn run(&mut self) {
        while self.step() {}
    }

    pub fn receive(&mut self, frame: &[u8]) {
        self.model.receive(self.now, frame);
        self.settle();
    }

    /// The response to the last request.
    pub fn answer(&self) -> Answer {
        let (_, bth, reth) = *self.requests().last().unwrap();
        Answer {
            opcode: roce::RC_READ_RESPONSE_ONLY,
            partition: 0xffff,
            queue_pair: self.channel.queue_pair,
            psn: bth.psn,
            syndrome: 0,
            length: reth.length as usize,
        }
    }

    pub fn receive_answer(&mut self, answer: &Answer) {
        self.receive(&answer.frame(&self.path.reversed()));
    }

    /// The requests, parsed by the tester's codec.
    pub fn requests(&self) -> Vec<(Nanos, Bth, Reth)> {
        let read = |(time, frame): &(Nanos, Vec<u8>)| {
            let packet = roce::parse(&frame[..]).expect("a RoCEv2 packet");
            assert_eq!(packet.at + packet.length, frame.len());
            (
                *time,
                packet.bth,
                packet.reth(&frame[..]).expect("with an RETH"),
            )
        };
        self.sent.iter().map(read).collect()
    }

    pub fn query(&self) -> QueuePair {
        self.model.query().unwrap()
    }
}

/// The complete outcome of an unanswered READ and of another one posted afterwards, for comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Time in thousandths of T_tr after [`START`], PSN, RETH, opcode.
    pub requests: Vec<(Nanos, u32, Reth, u8)>,
    /// True where the ICRC is right.
    pub icrc: Vec<bool>,
    /// Versions and P_Keys of requests.
    pub headers: BTreeSet<(u8, u16)>,
    pub left: Vec<Option<u8>>,
    /// Time in thousandths of T_tr after [`START`], and status.
    pub completions: Vec<(Nanos, u32)>,
    pub state: State,
    /// Frames and completions of the second READ.
    pub flush: (usize, Vec<u32>),
    /// Completions if the second request is answered, or the first if there is no other.
    pub control: Vec<u32>,
    pub apm: Option<bool>,
}

impl Outcome {
    pub const RETRIES: u8 = 2;
    const TIMEOUT: u8 = 18;

    pub fn of(faults: &[Fault]) -> Self {
        let period = RcPlan::transport_timer(Self::TIMEOUT);
        let mut lab = Lab::unanswered(faults, Self::RETRIES, Self::TIMEOUT);
        let part = |time: Nanos| (time - START) * 1000 / period;
        let requests = lab
            .requests()
            .iter()
            .map(|(time, bth, reth)| (part(*time), bth.psn, *reth, bth.opcode))
            .collect();
        let icrc = lab
            .sent
            .iter()
            .map(|(_, frame)| icrc_is_right(&lab.path, frame))
            .collect();
        let header = |frame: &[u8]| (frame[43] & 15, u16::from_be_bytes([frame[44], frame[45]]));
        let headers = lab.sent.iter().map(|(_, frame)| header(frame)).collect();
        let completions = lab
            .completed
            .iter()
            .map(|(time, completion)| (part(*time), completion.status))
            .collect();
        let (sent, completed, left, state) = (
            lab.sent.len(),
            lab.completed.len(),
            lab.left.clone(),
            lab.query().state,
        );
        lab.post(Read {
            work_request: 78,
            ..READ
        });
        lab.run();
        let statuses = lab.completed[completed..]
            .iter()
            .map(|(_, completion)| completion.status)
            .collect();
        Self {
            requests,
            icrc,
            headers,
            left,
            completions,
            state,
            flush: (lab.sent.len() - sent, statuses),
            control: Self::control(faults),
            apm: lab.model.device().apm,
        }
    }

    fn control(faults: &[Fault]) -> Vec<u32> {
        let mut lab = Lab::open(faults, &settings(Self::RETRIES, Self::TIMEOUT));
        lab.post(READ);
        let first = lab.sent.len();
        lab.step();
        let requests = lab.requests();
        let answered = if requests.len() > first {
            &requests[first..]
        } else {
            &requests
        };
        for (_, bth, reth) in answered {
            let answer = Answer {
                psn: bth.psn,
                length: reth.length as usize,
                ..lab.answer()
            };
            lab.receive_answer(&answer);
        }
        lab.run();
        lab.completed
            .iter()
            .map(|(_, completion)| completion.status)
            .collect()
    }
}

/// True if the model's own builder makes the same frame of these transport headers.
fn icrc_is_right(path: &Path, frame: &[u8]) -> bool {
    let transport = &frame[42..frame.len() - 4];
    let [identification, port] = [18, 34].map(|at| u16::from_be_bytes([frame[at], frame[at + 1]]));
    path.frame(identification, port, transport) == frame
}
