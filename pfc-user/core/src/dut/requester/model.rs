//! The requester as a state machine: commands, frames and times in, frames and completions out, no
//! clock and no socket of its own.

use std::collections::VecDeque;
use std::mem;
use std::net::IpAddr;

use super::frame::{MASK, Path, RDMA_READ_REQUEST, RDMA_WRITE_ONLY, Request};
use crate::agent::protocol::{
    Channel, Completion, Device, Failure, FailureKind, OpenChannel, QueuePair, Read, State,
};
use crate::fault::requester::Fault;
use crate::plan::Nanos;
use crate::plan::rc::RcPlan;

/// `ibv_wc_status`.
const SUCCESS: u32 = 0;
const WR_FLUSH_ERR: u32 = 5;
const RETRY_EXC_ERR: u32 = 12;

/// Larger than any queue that a tester needs.
const MAX_POSTED: usize = 1024;
/// Numbers below are for the special queue pairs and those that an operating system uses itself.
const FIRST_QUEUE_PAIR: u32 = 0x11;
/// T_tr from the last request to the completion under [`Fault::LateCompletion`].
const LATE: Nanos = 6;

/// An adapter's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// Name.
    pub name: String,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Destination MAC address of its frames: the tester's, or a router's.
    pub peer_mac: [u8; 6],
    /// Its IP address.
    pub address: IpAddr,
    /// Largest path MTU in octets.
    pub active_mtu: u16,
}

/// An adapter's port with at most one RC queue pair, which has one READ under way at a time.
#[derive(Clone, Debug)]
pub struct Model {
    adapter: Adapter,
    faults: Vec<Fault>,
    queue_pair: Option<Requester>,
    next_number: u32,
    /// Identification of the next IPv4 packet.
    identification: u16,
    outbox: VecDeque<Vec<u8>>,
    completions: Vec<Completion>,
}

/// A queue pair's requester.
#[derive(Clone, Debug)]
struct Requester {
    number: u32,
    settings: OpenChannel,
    path: Path,
    state: State,
    /// Next PSN to send.
    psn: u32,
    /// Reads that were not sent yet.
    posted: VecDeque<Read>,
    current: Option<Current>,
    /// Retries used since the last answer.
    retries: u8,
}

/// A READ under way.
#[derive(Clone, Debug)]
struct Current {
    read: Read,
    /// Requests without an answer.
    requests: Vec<Request>,
    timer: Timer,
}

/// The transport timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// Starts when the requests have left.
    Waiting,
    Until(Nanos),
    /// Local ACK time-out 0 (9.7.6.1.3).
    Never,
}

impl Model {
    /// A port with these faults.
    pub fn new(adapter: Adapter, faults: &[Fault]) -> Self {
        Self {
            adapter,
            faults: faults.to_vec(),
            queue_pair: None,
            next_number: FIRST_QUEUE_PAIR,
            identification: 0,
            outbox: VecDeque::new(),
            completions: Vec::new(),
        }
    }

    /// The device as it describes itself.
    pub fn device(&self) -> Device {
        Device {
            name: self.adapter.name.clone(),
            backend: "simulated".into(),
            apm: Some(self.has(Fault::Apm)),
            active_mtu: self.adapter.active_mtu,
        }
    }

    /// Makes a queue pair and brings it to RTS.
    ///
    /// # Errors
    /// If there is one already, or if no queue pair of this port can have an attribute.
    pub fn open(&mut self, _now: Nanos, settings: &OpenChannel) -> Result<Channel, Failure> {
        if self.queue_pair.is_some() {
            return Err(refused("there is a queue pair already: close it first"));
        }
        self.check(settings)?;
        let number = self.next_number;
        // Never the number of the last one, so that an answer to that finds no queue pair.
        self.next_number = if number == MASK - 1 {
            FIRST_QUEUE_PAIR
        } else {
            number + 1
        };
        self.queue_pair = Some(Requester {
            number,
            settings: settings.clone(),
            path: Path {
                mac: self.adapter.mac,
                peer_mac: self.adapter.peer_mac,
                address: self.adapter.address,
                peer: settings.remote,
            },
            state: State::Rts,
            psn: settings.psn,
            posted: VecDeque::new(),
            current: None,
            retries: 0,
        });
        Ok(Channel {
            queue_pair: number,
            address: self.adapter.address,
            attributes: self.query()?,
        })
    }

    fn check(&self, settings: &OpenChannel) -> Result<(), Failure> {
        settings.check()?;
        let (path_mtu, remote) = (settings.path_mtu, settings.remote);
        let (active_mtu, address) = (self.adapter.active_mtu, self.adapter.address);
        let rtr = |why: String| {
            let message = format!("cannot bring the queue pair to RTR: {why}");
            Err(Failure::new(FailureKind::State, message))
        };
        if self.has(Fault::NoNeighbour) {
            let message = format!("no MAC address for {remote} (fault {})", Fault::NoNeighbour);
            return Err(Failure::new(FailureKind::Neighbour, message));
        }
        if self.has(Fault::RefusesState) {
            return rtr(format!("fault {}", Fault::RefusesState));
        }
        if path_mtu > active_mtu {
            return rtr(format!(
                "expected a path MTU of at most {active_mtu}, the port's, found {path_mtu}"
            ));
        }
        if remote.is_ipv4() != address.is_ipv4() {
            return rtr(format!(
                "expected a remote address of the same IP version as {address}, found {remote}"
            ));
        }
        Ok(())
    }

    /// Posts a READ. A queue pair in error flushes it at once (10.3.1).
    ///
    /// # Errors
    /// If there is no queue pair, the READ is longer than one packet can answer, or too many READs
    /// wait.
    pub fn post_read(&mut self, _now: Nanos, read: &Read) -> Result<(), Failure> {
        let no_flush = self.has(Fault::NoFlush);
        let queue_pair = self.queue_pair.as_mut().ok_or_else(no_queue_pair)?;
        let path_mtu = queue_pair.settings.path_mtu;
        if read.length > path_mtu.into() {
            return Err(refused(format!(
                "only READs of one packet are simulated: expected at most {path_mtu} octets, found \
                 {}",
                read.length
            )));
        }
        if queue_pair.posted.len() == MAX_POSTED {
            let message = format!("the send queue is full: {MAX_POSTED} READs wait");
            return Err(refused(message));
        }
        queue_pair.posted.push_back(*read);
        match queue_pair.state {
            State::Error => self.completions.extend(queue_pair.flush(no_flush)),
            _ => self.begin(),
        }
        Ok(())
    }

    /// A frame has come in.
    pub fn receive(&mut self, now: Nanos, frame: &[u8]) {
        if self.has(Fault::IgnoresAnswer) {
            return;
        }
        let period = self.period();
        let Some(queue_pair) = &mut self.queue_pair else {
            return;
        };
        let (Some(current), Some(response)) = (
            &mut queue_pair.current,
            queue_pair.path.read_response(frame),
        ) else {
            return;
        };
        let answers = |request: &Request| {
            let expected = (queue_pair.number, request.psn, request.length as usize);
            (response.destination, response.psn, response.length) == expected
        };
        let Some(at) = current.requests.iter().position(answers) else {
            return;
        };
        current.requests.remove(at);
        // A request that was answered makes the retries count anew (9.7.6.1.3).
        queue_pair.retries = 0;
        if !current.requests.is_empty() {
            if let Timer::Until(_) = current.timer {
                current.timer = started(now, period);
            }
            return;
        }
        self.completions
            .push(completion(current.read.work_request, SUCCESS));
        queue_pair.current = None;
        // Retries that wait are for what has been answered.
        self.outbox.clear();
        self.begin();
    }

    /// The next frame to send at `now`. To be called until there is none: then those before have
    /// left, and the transport timer starts.
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Vec<u8>> {
        self.advance(now);
        if let Some(frame) = self.outbox.pop_front() {
            return Some(frame);
        }
        let period = self.period();
        let current = self.queue_pair.as_mut()?.current.as_mut()?;
        if let Timer::Waiting = current.timer {
            current.timer = started(now, period);
        }
        None
    }

    /// Time of the next call of [`Self::poll_transmit`]; 0 is at once. `None` if nothing happens by
    /// itself.
    pub fn next_event(&self) -> Option<Nanos> {
        match self.queue_pair.as_ref()?.current.as_ref()?.timer {
            Timer::Waiting => Some(0),
            Timer::Until(end) => Some(end),
            Timer::Never => None,
        }
    }

    /// Takes the completions that there are at `now`.
    pub fn completions(&mut self, now: Nanos) -> Vec<Completion> {
        self.advance(now);
        mem::take(&mut self.completions)
    }

    /// The queue pair's attributes.
    ///
    /// # Errors
    /// If there is no queue pair.
    pub fn query(&self) -> Result<QueuePair, Failure> {
        let queue_pair = self.queue_pair.as_ref().ok_or_else(no_queue_pair)?;
        let settings = &queue_pair.settings;
        let used = match self.has(Fault::KeepsCount) {
            true => 0,
            false => queue_pair.retries,
        };
        Ok(QueuePair {
            state: queue_pair.state,
            path_mtu: settings.path_mtu,
            retry_count: settings.retry_count,
            timeout: settings.timeout,
            psn: queue_pair.psn,
            retries_left: Some(settings.retry_count.saturating_sub(used)),
        })
    }

    /// Gives the queue pair back, with all that is under way and all completions.
    pub fn close(&mut self) {
        self.queue_pair = None;
        self.outbox.clear();
        self.completions.clear();
    }

    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// Retries before it gives up.
    fn retry_limit(&self, retry_count: u8) -> u8 {
        let next = |limit: u8, fault: &Fault| match fault {
            Fault::OneRetryLess => limit.saturating_sub(1),
            Fault::OneRetryMore => limit + 1,
            Fault::NoRetry => 0,
            _ => limit,
        };
        self.faults.iter().fold(retry_count, next)
    }

    /// Time to wait for an answer to the last requests; `None`: for ever.
    fn period(&self) -> Option<Nanos> {
        let queue_pair = self.queue_pair.as_ref()?;
        let settings = &queue_pair.settings;
        if settings.timeout == 0 {
            return None;
        }
        let period = RcPlan::transport_timer(settings.timeout);
        let last = queue_pair.retries >= self.retry_limit(settings.retry_count);
        Some(if last && self.has(Fault::LateCompletion) {
            LATE * period
        } else if self.has(Fault::ShortTimeout) {
            period / 2
        } else if self.has(Fault::LongTimeout) {
            5 * period
        } else if self.has(Fault::Adaptive) {
            ((period / 20) << queue_pair.retries).min(period / 4)
        } else {
            period
        })
    }

    /// Sends the next READ if none is under way.
    fn begin(&mut self) {
        let idle = |pair: &&mut Requester| pair.current.is_none();
        let Some(queue_pair) = self.queue_pair.as_mut().filter(idle) else {
            return;
        };
        let Some(read) = queue_pair.posted.pop_front() else {
            return;
        };
        let has = |fault| self.faults.contains(&fault);
        let fewer = if has(Fault::WrongLength) { 4 } else { 0 };
        let length = read.length.saturating_sub(fewer);
        let lengths = if has(Fault::TwoPackets) {
            vec![length / 2, length - length / 2]
        } else {
            vec![length]
        };
        let opcode = if has(Fault::WrongOpcode) {
            RDMA_WRITE_ONLY
        } else {
            RDMA_READ_REQUEST
        };
        let r_key = if has(Fault::WrongRKey) {
            !read.r_key
        } else {
            read.r_key
        };
        let mut address = read.address;
        let mut requests = Vec::new();
        for length in lengths {
            requests.push(Request {
                opcode,
                destination: queue_pair.settings.remote_queue_pair,
                psn: queue_pair.take_psn(),
                address,
                r_key,
                length,
            });
            address = address.wrapping_add(length.into());
        }
        queue_pair.retries = 0;
        queue_pair.current = Some(Current {
            read,
            requests,
            timer: Timer::Waiting,
        });
        self.send();
    }

    /// Puts the requests without an answer into frames.
    fn send(&mut self) {
        let bad_icrc = self.has(Fault::BadIcrc);
        let copies = 1 + usize::from(self.has(Fault::SendsTwice));
        let version = u8::from(self.has(Fault::WrongVersion));
        let Some(queue_pair) = &mut self.queue_pair else {
            return;
        };
        let Some(current) = &mut queue_pair.current else {
            return;
        };
        current.timer = Timer::Waiting;
        let source_port = source_port(queue_pair.number);
        let mut path = queue_pair.path;
        let is_retry = queue_pair.retries > 0;
        if is_retry && self.faults.contains(&Fault::ChangesSource) {
            path.address = another_address(path.address);
        }
        let all = current.requests.iter();
        for request in all.flat_map(|request| std::iter::repeat_n(request, copies)) {
            let mut transport = request.transport();
            transport[1] |= version;
            if is_retry && self.faults.contains(&Fault::ChangesPKey) {
                // A limited member (10.9).
                transport[2] &= 0x7f;
            }
            let mut frame = path.frame(self.identification, source_port, &transport);
            self.identification = self.identification.wrapping_add(1);
            if let Some(last) = frame.last_mut().filter(|_| bad_icrc) {
                *last ^= 1;
            }
            self.outbox.push_back(frame);
        }
    }

    /// Lets a time-out take place whose time has come (9.7.6.1.3, 9.9.2.4).
    fn advance(&mut self, now: Nanos) {
        let has = |fault| self.faults.contains(&fault);
        let limit = self
            .queue_pair
            .as_ref()
            .map_or(0, |pair| self.retry_limit(pair.settings.retry_count));
        let Some(queue_pair) = &mut self.queue_pair else {
            return;
        };
        let over =
            |current: &&mut Current| matches!(current.timer, Timer::Until(end) if end <= now);
        let Some(current) = queue_pair.current.as_mut().filter(over) else {
            return;
        };
        if queue_pair.retries < limit {
            queue_pair.retries += 1;
            for request in &mut current.requests {
                if has(Fault::ChangesPsn) {
                    request.psn = queue_pair.psn;
                    queue_pair.psn = queue_pair.psn.wrapping_add(1) & MASK;
                }
                if has(Fault::ChangesReth) {
                    request.address = request.address.wrapping_add(request.length.into());
                }
            }
            self.send();
            return;
        }
        let work_request = current.read.work_request;
        queue_pair.current = None;
        let wrong = |fault: &Fault| match fault {
            Fault::WrongStatus(wrong) => Some(*wrong),
            Fault::ReportsSuccess => Some(SUCCESS),
            _ => None,
        };
        let status = self.faults.iter().rev().find_map(wrong);
        let status = status.unwrap_or(RETRY_EXC_ERR);
        let count =
            usize::from(!has(Fault::NeverCompletes)) << usize::from(has(Fault::TwoCompletions));
        self.completions
            .extend(std::iter::repeat_n(completion(work_request, status), count));
        if has(Fault::StaysInRts) {
            self.begin();
        } else {
            queue_pair.state = State::Error;
            self.completions
                .extend(queue_pair.flush(has(Fault::NoFlush)));
        }
    }
}

impl Requester {
    /// The completions of what is flushed.
    fn flush(&mut self, without_a_word: bool) -> impl Iterator<Item = Completion> {
        self.posted
            .drain(..)
            .filter(move |_| !without_a_word)
            .map(|read| completion(read.work_request, WR_FLUSH_ERR))
    }

    /// The next PSN. A READ takes one for each packet of its response, and here that is one packet.
    fn take_psn(&mut self) -> u32 {
        let psn = self.psn;
        self.psn = (psn + 1) & MASK;
        psn
    }
}

fn started(now: Nanos, period: Option<Nanos>) -> Timer {
    period.map_or(Timer::Never, |period| {
        Timer::Until(now.saturating_add(period))
    })
}

/// Another address in the same subnet.
fn another_address(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4((address.to_bits() ^ 1 << 4).into()),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() ^ 1 << 4).into()),
    }
}

const fn completion(work_request: u64, status: u32) -> Completion {
    Completion {
        work_request,
        status,
        vendor_error: 0,
    }
}

fn no_queue_pair() -> Failure {
    refused("there is no queue pair: open one first")
}

fn refused(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Request, message)
}

/// A dynamic port that stays the same for a queue pair, so that its packets take one way through
/// the network.
const fn source_port(queue_pair: u32) -> u16 {
    0xc000 | (queue_pair ^ queue_pair >> 14) as u16 & 0x3fff
}
