//! A switch written apart from the simulated one, from the standards alone, with mistakes as a
//! device's author makes them.

mod bug;
mod input;
mod output;
mod pauses;
mod upstream;

use std::collections::{BTreeMap, VecDeque};

use validator::dut::switch::model::Departure;

pub use self::bug::Bug;
use crate::bench::Device;

type Ns = u64;

const TX: usize = 0;
const RX: usize = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Strict,
    InTurn,
    Fifo,
}

struct Queued {
    at: Ns,
    frame: Vec<u8>,
    own_dscp: bool,
}

pub struct Foreign {
    rate: u64,
    lossless: [bool; 8],
    order: Order,
    bug: Bug,
    now: Ns,
    queues: [VecDeque<Queued>; 8],
    octets: [u64; 8],
    turn: usize,
    sending: Option<(Ns, Vec<u8>)>,
    /// Nothing starts before.
    blocked: Ns,
    until: [Ns; 8],
    since: [Ns; 8],
    asked: [u16; 8],
    lets: [u32; 8],
    slow_until: [Ns; 8],
    next_of: [Ns; 8],
    storm_until: Ns,
    last_pfc: Ns,
    pfc_seen: u32,
    deferred: VecDeque<(Ns, Vec<u8>)>,
    busy_since: Ns,
    sent_until: Ns,
    frames_in: u64,
    drop_next: [bool; 8],
    /// It has met an unknown opcode.
    odd_seen: bool,
    deaf_until: Ns,
    kept: [Option<Queued>; 8],
    copies: VecDeque<(Ns, Vec<u8>)>,
    stop_lossy: Ns,
    asking: [bool; 8],
    ask_again: Ns,
    out: VecDeque<Departure>,
    drops: BTreeMap<&'static str, u64>,
    leak_at: Ns,
    xoffs: u32,
}

impl Foreign {
    pub fn new(rate: u64, lossless: &[u8], order: Order, bug: Bug) -> Self {
        let mut set = [false; 8];
        lossless.iter().for_each(|one| set[*one as usize] = true);
        Self {
            rate,
            lossless: set,
            order,
            bug,
            now: 0,
            queues: Default::default(),
            octets: [0; 8],
            turn: 0,
            sending: None,
            blocked: 0,
            until: [0; 8],
            since: [0; 8],
            asked: [0; 8],
            lets: [0; 8],
            slow_until: [0; 8],
            next_of: [0; 8],
            storm_until: 0,
            last_pfc: 0,
            pfc_seen: 0,
            deferred: VecDeque::new(),
            busy_since: 0,
            sent_until: 0,
            frames_in: 0,
            drop_next: [false; 8],
            odd_seen: false,
            deaf_until: 0,
            kept: Default::default(),
            copies: VecDeque::new(),
            stop_lossy: 0,
            asking: [false; 8],
            ask_again: Ns::MAX,
            out: VecDeque::new(),
            drops: BTreeMap::new(),
            leak_at: 0,
            xoffs: 0,
        }
    }

    fn wire(&self, octets: usize) -> Ns {
        (octets.max(60) as u64 + 24) * 8 * 1_000_000_000 / self.rate
    }

    fn quanta(&self, quanta: u16) -> Ns {
        let time = quanta as u64 * 512 * 1_000_000_000 / self.rate;
        match self.bug {
            Bug::TimeScale(a, b) => time * a / b,
            Bug::FixedTime(fixed) if quanta > 0 => fixed,
            Bug::Granularity(step, false) => time / step * step,
            Bug::Granularity(step, true) => time.div_ceil(step) * step,
            _ => time,
        }
    }

    fn take(&mut self, port: usize, at: Ns, frame: Vec<u8>) {
        self.run_before(at);
        self.now = self.now.max(at);
        if frame.len() < 18 {
            return;
        }
        if frame[12] == 0x88 && frame[13] == 0x08 {
            if port == RX {
                let mut delay = match self.bug {
                    Bug::AnswersLate(delay) => delay,
                    Bug::LateIfQueued(delay) if self.octets.iter().any(|held| *held > 4096) => {
                        delay
                    }
                    Bug::LateAtFullLink(delay)
                        if self.sending.is_some() && self.now - self.busy_since > 3_000_000 =>
                    {
                        delay
                    }
                    _ => 0,
                };
                // The fields of classes that are not named say nothing.
                let mut named = (0..8).filter(|p| frame[17] >> p & 1 == 1);
                let zero = named.all(|p| frame[18 + 2 * p..20 + 2 * p] == [0, 0]);
                if let (Bug::XonLate(late), true) = (self.bug, zero) {
                    delay = late;
                }
                if self.bug == Bug::Forwards {
                    self.out.push_back(Departure {
                        port: TX,
                        at: self.now,
                        frame: frame.clone(),
                    });
                }
                let place = self
                    .deferred
                    .partition_point(|(at, _)| *at <= self.now + delay);
                self.deferred.insert(place, (self.now + delay, frame));
                self.step();
            }
            return;
        }
        if port == TX {
            self.data(frame);
            self.step();
        }
    }
}

impl Device for Foreign {
    fn ingress(&mut self, port: usize, at: Ns, frame: Vec<u8>) {
        self.take(port, at, frame);
    }

    fn next_event(&self) -> Option<Ns> {
        self.next()
    }

    fn advance(&mut self, now: Ns) {
        self.run_before(now + 1);
        self.now = self.now.max(now);
    }

    fn pop_departure(&mut self) -> Option<Departure> {
        self.out.pop_front()
    }

    fn drops(&self) -> &BTreeMap<&'static str, u64> {
        &self.drops
    }

    fn xoff_sent(&self) -> [u64; 8] {
        [0; 8]
    }
}
