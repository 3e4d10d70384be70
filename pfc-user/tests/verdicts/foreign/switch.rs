//! A switch written apart from the simulated one, from the standards alone, with mistakes as a
//! device's author makes them.

use std::collections::{BTreeMap, VecDeque};

use validator::dut::switch::model::Departure;

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

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bug {
    None,
    // Good variants.
    NoXon,
    AnswersLate(Ns),
    SmallXoffQuanta,
    // Times.
    TimeSwapped,
    TimeOfClass0,
    TimeOfNext,
    TimeReversed,
    TimeCap(u16),
    TimeSigned,
    TimeScale(u64, u64),
    FixedTime(Ns),
    Maximum,
    Minimum,
    Adds,
    Granularity(Ns, bool),
    SameTimeIgnored,
    OneTimer,
    TimeFromLastEnabled,
    // Vector.
    NoVector,
    VectorHigh,
    VectorReversed,
    LowestOnly,
    HighestOnly,
    IgnoredIfLossyNamed,
    LossyToo,
    AllIfSeveral,
    LossyTooIfSeveral,
    // XON.
    XonIgnored,
    XonLets(u32),
    XonEndsAll,
    XonLate(Ns),
    XonOnlyIfAll,
    XonSlow,
    ZeroIsLongest,
    // Expiry.
    NeverEnds,
    EndsThenOne,
    EndOfOneEndsAll,
    SlowAfter,
    DeadAfterLong(Ns),
    EndsOnlyOnQuietLink,
    // Load.
    LateAtFullLink(Ns),
    LateIfQueued(Ns),
    FirstIgnored,
    FirstAfterQuietIgnored,
    EveryNthIgnored(u32),
    SecondOfBurstIgnored,
    LeakAtStart(u32),
    LeakEvery(Ns),
    // Lossy traffic.
    LossyStopsFirst(Ns),
    LossyThrottled,
    LossyDelayed(Ns),
    LossyDropsInStorm(u32),
    LossyDropsOneAtXoff,
    HighestLossyStops(Ns),
    LowestLossyStarves,
    IsolationSlow,
    IsolationLate(Ns),
    // Classification.
    OnlyDscpEqual,
    HighDscpTo0,
    DscpShifted,
    // Frames.
    SwapsWords,
    Grows,
    Shrinks,
    ZeroTail,
    CopyAfter(Ns),
    FlipsWithChecksum,
    ReordersFar,
    SwapsNeighboursAfterPause,
    LosesFirstAfterPause,
    LosesLastOfQueue,
    DropsOld(Ns),
    // Upstream.
    XoffForLossy,
    PauseUpstream,
    XoffWrongClass,
    XoffAllLossless,
    XoffNever,
    Forwards,
    XoffOnceOnly,
    ObeysPause,
    ObeysPauseAtStart,
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

    fn data(&mut self, mut frame: Vec<u8>) {
        self.frames_in += 1;
        let n = self.frames_in;
        let (ip, tagged) = if frame[12] == 0x81 {
            (18, true)
        } else {
            (14, false)
        };
        let dscp = frame[ip + 1] >> 2;
        let _ = tagged;
        let mut p = (dscp & 7) as usize;
        match self.bug {
            Bug::HighDscpTo0 if dscp > 31 => p = 0,
            Bug::DscpShifted if dscp > 7 => p = (dscp >> 3) as usize,
            _ => {}
        }
        let storm = self.storm_until > self.now;
        let lossy = !self.lossless[p];
        match self.bug {
            Bug::LossyDropsInStorm(one_in) if storm && lossy && n % one_in as u64 == 0 => {
                return self.drop_one();
            }
            Bug::SwapsWords if n % 50 == 0 => {
                let at = ip + 20 + 8 + 100;
                frame.swap(at, at + 2);
                frame.swap(at + 1, at + 3);
            }
            Bug::Grows if n % 50 == 0 => frame.extend([0; 4]),
            Bug::Shrinks if n % 50 == 0 => frame.truncate(frame.len() - 4),
            Bug::ZeroTail if n % 50 == 0 => {
                let len = frame.len();
                frame[len - 64..].fill(0);
            }
            Bug::FlipsWithChecksum if n % 50 == 0 => {
                // Flips the same bit of two words, once up and once down, if that is possible.
                let at = ip + 28 + 60;
                for other in (at + 2..frame.len() - 1).step_by(2) {
                    if (frame[at] ^ frame[other]) & 1 != 0 {
                        frame[at] ^= 1;
                        frame[other] ^= 1;
                        break;
                    }
                }
            }
            Bug::CopyAfter(late) if n % 500 == 0 => {
                self.copies.push_back((self.now + late, frame.clone()));
            }
            _ => {}
        }
        let limit = if lossy {
            4 << 20
        } else {
            (512 << 10) + (1 << 20)
        };
        if self.octets[p] + frame.len() as u64 > limit {
            return self.drop_one();
        }
        if self.drop_next[p] && self.until[p] <= self.now {
            self.drop_next[p] = false;
            return self.drop_one();
        }
        let queued = Queued {
            at: self.now,
            own_dscp: dscp as usize == p,
            frame,
        };
        if self.bug == Bug::ReordersFar && n % 3000 == 0 && self.kept[p].is_none() {
            self.kept[p] = Some(queued);
            return;
        }
        self.octets[p] += queued.frame.len() as u64;
        self.queues[p].push_back(queued);
        if self.bug == Bug::ReordersFar && n % 3000 == 900 {
            for p in 0..8 {
                if let Some(kept) = self.kept[p].take() {
                    self.octets[p] += kept.frame.len() as u64;
                    self.queues[p].push_back(kept);
                }
            }
        }
        self.upstream(p);
        if lossy && self.bug == Bug::XoffForLossy && n % 1000 == 0 {
            self.ask(1 << p, 16);
        }
    }

    fn drop_one(&mut self) {
        *self.drops.entry("dropped").or_default() += 1;
    }

    /// XOFF above 512 KiB, XON at 256 KiB.
    fn upstream(&mut self, p: usize) {
        if !self.lossless[p] || self.bug == Bug::XoffNever {
            return;
        }
        if self.octets[p] > 512 << 10 && !self.asking[p] {
            self.asking[p] = true;
            self.xoffs += 1;
            if self.bug == Bug::XoffOnceOnly && self.xoffs > 1 {
                return;
            }
            self.ask_all();
        } else if self.octets[p] <= 256 << 10 && self.asking[p] {
            self.asking[p] = false;
            if self.bug != Bug::NoXon {
                if self.bug == Bug::PauseUpstream {
                    self.ask(0, 0);
                } else {
                    self.ask(1 << p, 0);
                }
            }
            if !self.asking.contains(&true) {
                self.ask_again = Ns::MAX;
            }
        }
    }

    fn ask_all(&mut self) {
        let mut vector = (0..8)
            .filter(|p| self.asking[*p])
            .fold(0, |v, p| v | 1u8 << p);
        let mut quanta = 0xffff;
        match self.bug {
            Bug::XoffWrongClass => vector = vector.rotate_left(1),
            Bug::XoffAllLossless => {
                vector = (0..8)
                    .filter(|p| self.lossless[*p])
                    .fold(0, |v, p| v | 1u8 << p);
            }
            Bug::SmallXoffQuanta => quanta = 0x0800,
            _ => {}
        }
        self.ask(vector, quanta);
        self.ask_again = self.now + self.wire_quanta(quanta) / 2;
    }

    fn wire_quanta(&self, quanta: u16) -> Ns {
        quanta as u64 * 512 * 1_000_000_000 / self.rate
    }

    fn ask(&mut self, vector: u8, quanta: u16) {
        let mut frame = vec![0u8; 60];
        frame[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 1]);
        frame[6..12].copy_from_slice(&[6, 0, 0, 0, 0, 9]);
        frame[12] = 0x88;
        frame[13] = 0x08;
        if self.bug == Bug::PauseUpstream {
            frame[15] = 1;
            frame[16..18].copy_from_slice(&quanta.to_be_bytes());
        } else {
            frame[14] = 1;
            frame[15] = 1;
            frame[17] = vector;
            for p in 0..8 {
                if vector >> p & 1 == 1 {
                    frame[18 + 2 * p..20 + 2 * p].copy_from_slice(&quanta.to_be_bytes());
                }
            }
        }
        let at = self.now;
        self.out.push_back(Departure {
            port: TX,
            at,
            frame,
        });
    }

    fn control(&mut self, frame: &[u8]) {
        let opcode = u16::from_be_bytes([frame[14], frame[15]]);
        if opcode == 1 {
            let quanta = u16::from_be_bytes([frame[16], frame[17]]);
            let time = self.quanta(quanta);
            match self.bug {
                Bug::ObeysPause => self.blocked = self.now + time,
                Bug::ObeysPauseAtStart if self.pfc_seen == 0 => {
                    self.pfc_seen = 1;
                    self.blocked = self.now + 40_000_000;
                }
                _ => {}
            }
            return;
        }
        if opcode != 0x0101 {
            return;
        }
        let quiet = self.now - self.last_pfc > 200_000_000;
        self.last_pfc = self.now;
        self.pfc_seen += 1;
        match self.bug {
            Bug::FirstIgnored if self.pfc_seen == 1 => return,
            Bug::FirstAfterQuietIgnored if quiet => return,
            Bug::EveryNthIgnored(n) if self.pfc_seen % n == 0 => return,
            _ => {}
        }
        let mut vector = frame[17];
        match self.bug {
            Bug::VectorHigh => vector = frame[16],
            Bug::VectorReversed => vector = vector.reverse_bits(),
            Bug::LowestOnly => vector &= vector.wrapping_neg(),
            Bug::HighestOnly if vector != 0 => vector = 1 << (7 - vector.leading_zeros()),
            Bug::NoVector => {
                vector |= (0..8)
                    .filter(|p| frame[18 + 2 * p] != 0 || frame[19 + 2 * p] != 0)
                    .fold(0, |v, p| v | 1u8 << p);
            }
            _ => {}
        }
        let names_lossy = (0..8).any(|p| vector >> p & 1 == 1 && !self.lossless[p]);
        let names_lossless = (0..8).any(|p| vector >> p & 1 == 1 && self.lossless[p]);
        let several = vector.count_ones() > 1;
        if self.bug == Bug::IgnoredIfLossyNamed && names_lossy && names_lossless {
            return;
        }
        if self.bug == Bug::AllIfSeveral && several {
            (0..8)
                .filter(|p| self.lossless[*p])
                .for_each(|p| vector |= 1 << p);
        }
        let all_zero = frame[18..34].iter().all(|octet| *octet == 0);
        let last = (0..8).rev().find(|p| vector >> p & 1 == 1).unwrap_or(0);
        let given = vector;
        for p in 0..8usize {
            if given >> p & 1 == 0 {
                continue;
            }
            let at = match self.bug {
                Bug::TimeOfClass0 => 0,
                Bug::TimeOfNext => (p + 1) % 8,
                Bug::TimeReversed => 7 - p,
                Bug::TimeFromLastEnabled => last,
                _ => p,
            };
            let mut quanta = u16::from_be_bytes([frame[18 + 2 * at], frame[19 + 2 * at]]);
            match self.bug {
                Bug::TimeSwapped => quanta = quanta.swap_bytes(),
                Bug::TimeCap(cap) => quanta = quanta.min(cap),
                Bug::TimeSigned if quanta >= 0x8000 => quanta = 0,
                Bug::ZeroIsLongest if quanta == 0 => quanta = 0xffff,
                _ => {}
            }
            let time = self.quanta(quanta);
            if time > 0 {
                self.storm_until = self.storm_until.max(self.now + time);
                if self.bug == Bug::LossyDropsOneAtXoff && self.until[p] <= self.now {
                    (0..8)
                        .filter(|q| !self.lossless[*q])
                        .for_each(|q| self.drop_next[q] = true);
                }
                match self.bug {
                    Bug::LossyStopsFirst(time) if quiet => self.stop_lossy = self.now + time,
                    Bug::HighestLossyStops(time) if quiet => self.stop_lossy = self.now + time,
                    _ => {}
                }
            }
            let obeys = self.lossless[p]
                || match self.bug {
                    Bug::LossyToo => names_lossless,
                    Bug::LossyTooIfSeveral => vector.count_ones() > 2,
                    _ => false,
                };
            if !obeys {
                continue;
            }
            let paused = self.until[p] > self.now;
            if quanta == 0 {
                self.xon(p, paused, all_zero);
                continue;
            }
            self.lets[p] = 0;
            if !paused {
                self.since[p] = self.now;
                if let Bug::LeakAtStart(n) = self.bug {
                    self.lets[p] = n;
                }
            }
            if self.bug == Bug::SameTimeIgnored && paused && quanta == self.asked[p] {
                continue;
            }
            if self.bug == Bug::SecondOfBurstIgnored && paused {
                continue;
            }
            self.asked[p] = quanta;
            let until = self.now + time;
            self.until[p] = match self.bug {
                Bug::Maximum => self.until[p].max(until),
                Bug::Minimum if paused => self.until[p]
                    .min(until)
                    .max(self.until[p].min(self.storm_until)),
                Bug::Adds => self.until[p].max(self.now) + time,
                Bug::NeverEnds => Ns::MAX,
                _ => until,
            };
            if self.bug == Bug::OneTimer {
                let until = self.until[p];
                for q in 0..8 {
                    if self.until[q] > self.now {
                        self.until[q] = until;
                    }
                }
            }
        }
    }

    fn xon(&mut self, p: usize, paused: bool, all_zero: bool) {
        if !paused {
            return;
        }
        match self.bug {
            Bug::XonIgnored => {}
            Bug::XonLets(n) => self.lets[p] = n,
            Bug::XonEndsAll => self.until = [self.now; 8],
            Bug::XonOnlyIfAll if !all_zero => {}
            Bug::XonSlow => {
                self.until[p] = self.now;
                self.slow_until[p] = self.now + 20_000_000;
            }
            _ => self.until[p] = self.now,
        }
    }

    fn ended(&mut self) {
        for p in 0..8 {
            if self.until[p] > self.now || self.since[p] == 0 {
                continue;
            }
            // The pause of p is over.
            let lasted = self.now - self.since[p];
            self.since[p] = 0;
            match self.bug {
                Bug::EndsThenOne => {
                    self.lets[p] = 1;
                    self.until[p] = self.now + 5_000_000;
                    self.since[p] = 0;
                }
                Bug::EndOfOneEndsAll => {
                    for q in 0..8 {
                        self.until[q] = self.until[q].min(self.now);
                    }
                }
                Bug::SlowAfter => self.slow_until[p] = self.now + 50_000_000,
                Bug::DeadAfterLong(time) if lasted > 100_000_000 => self.until[p] = self.now + time,
                Bug::LosesFirstAfterPause if !self.queues[p].is_empty() => {
                    let one = self.queues[p].pop_front().unwrap();
                    self.octets[p] -= one.frame.len() as u64;
                    self.drop_one();
                }
                Bug::LosesLastOfQueue if !self.queues[p].is_empty() => {
                    let one = self.queues[p].pop_back().unwrap();
                    self.octets[p] -= one.frame.len() as u64;
                    self.drop_one();
                }
                Bug::SwapsNeighboursAfterPause if self.queues[p].len() > 1 => {
                    self.queues[p].swap(0, 1);
                }
                _ => {}
            }
        }
    }

    fn may_send(&self, p: usize) -> Result<(), Ns> {
        let Some(head) = self.queues[p].front() else {
            return Err(Ns::MAX);
        };
        if let Bug::LossyDelayed(late) = self.bug
            && !self.lossless[p]
            && self.storm_until > self.now
            && self.now < head.at + late
        {
            return Err(head.at + late);
        }
        if let Bug::IsolationLate(late) = self.bug
            && self.lossless[p]
            && self.storm_until > self.now
            && self.until[p] <= self.now
            && self.now < head.at + late
        {
            return Err(head.at + late);
        }
        if self.stop_lossy > self.now && !self.lossless[p] {
            let highest = (0..8).rev().find(|q| !self.lossless[*q]);
            if !matches!(self.bug, Bug::HighestLossyStops(_)) || highest == Some(p) {
                return Err(self.stop_lossy);
            }
        }
        let slows = match self.bug {
            Bug::LossyThrottled => !self.lossless[p] && self.storm_until > self.now,
            Bug::IsolationSlow => {
                self.lossless[p] && self.storm_until > self.now && self.until[p] <= self.now
            }
            Bug::LowestLossyStarves => {
                (0..8).find(|q| !self.lossless[*q]) == Some(p) && self.storm_until > self.now
            }
            _ => self.slow_until[p] > self.now,
        };
        if slows && self.next_of[p] > self.now {
            return Err(self.next_of[p]);
        }
        if self.until[p] > self.now {
            if self.lets[p] > 0 {
                return Ok(());
            }
            if self.bug == Bug::OnlyDscpEqual && !head.own_dscp {
                return Ok(());
            }
            if let Bug::LeakEvery(_) = self.bug {
                return if self.leak_at <= self.now {
                    Ok(())
                } else {
                    Err(self.leak_at.min(self.until[p]))
                };
            }
            return Err(self.until[p]);
        }
        if self.bug == Bug::EndsOnlyOnQuietLink
            && self.lossless[p]
            && self.until[p] > 0
            && (0..8).any(|q| q != p && !self.queues[q].is_empty())
        {
            return Err(self.now + 100_000);
        }
        Ok(())
    }

    fn choose(&mut self) -> Option<usize> {
        let ready: Vec<usize> = (0..8).filter(|p| self.may_send(*p).is_ok()).collect();
        match self.order {
            Order::Strict => ready.last().copied(),
            Order::InTurn => {
                let turn = self.turn;
                ready.iter().copied().min_by_key(|p| (p + 7 - turn) % 8)
            }
            Order::Fifo => ready.iter().copied().min_by_key(|p| self.queues[*p][0].at),
        }
    }

    fn next(&self) -> Option<Ns> {
        let mut next = Ns::MAX;
        if let Some((at, _)) = &self.sending {
            next = next.min(*at);
        } else {
            for p in 0..8 {
                match self.may_send(p) {
                    Ok(()) => next = next.min(self.now.max(self.blocked)),
                    Err(at) => next = next.min(at.max(self.now)),
                }
            }
            if next != Ns::MAX {
                next = next.max(self.blocked);
            }
        }
        for until in self.until {
            if until > self.now {
                next = next.min(until);
            }
        }
        if let Some((at, _)) = self.deferred.front() {
            next = next.min((*at).max(self.now));
        }
        if let Some((at, _)) = self.copies.front() {
            next = next.min((*at).max(self.now));
        }
        if self.asking.contains(&true) {
            next = next.min(self.ask_again);
        }
        (next != Ns::MAX).then_some(next)
    }

    fn run_before(&mut self, end: Ns) {
        while let Some(next) = self.next().filter(|next| *next < end) {
            let before = (self.now, self.sending.is_some());
            self.now = self.now.max(next);
            self.step();
            if before == (self.now, self.sending.is_some()) && self.next() == Some(self.now) {
                // Something waits for itself.
                self.now += 1000;
            }
        }
    }

    fn step(&mut self) {
        while self.deferred.front().is_some_and(|(at, _)| *at <= self.now) {
            let (_, frame) = self.deferred.pop_front().unwrap();
            self.control(&frame);
        }
        self.ended();
        if self.copies.front().is_some_and(|(at, _)| *at <= self.now) {
            let (_, frame) = self.copies.pop_front().unwrap();
            let p = (frame[15] >> 2 & 7) as usize;
            self.octets[p] += frame.len() as u64;
            self.queues[p].push_back(Queued {
                at: self.now,
                own_dscp: true,
                frame,
            });
        }
        if self.asking.contains(&true) && self.ask_again <= self.now {
            if self.bug == Bug::XoffOnceOnly {
                self.ask_again = Ns::MAX;
            } else {
                self.ask_all();
            }
        }
        if let Some((at, _)) = &self.sending
            && *at <= self.now
        {
            let (at, frame) = self.sending.take().unwrap();
            self.out.push_back(Departure {
                port: RX,
                at,
                frame,
            });
        }
        if self.sending.is_some() || self.blocked > self.now {
            return;
        }
        let Some(p) = self.choose() else {
            return;
        };
        self.turn = p;
        if self.until[p] > self.now {
            if self.lets[p] > 0 {
                self.lets[p] -= 1;
            } else if let Bug::LeakEvery(every) = self.bug {
                self.leak_at = self.now + every;
            }
        }
        let one = self.queues[p].pop_front().unwrap();
        self.octets[p] -= one.frame.len() as u64;
        if let Bug::DropsOld(age) = self.bug
            && self.now - one.at > age
        {
            self.drop_one();
            self.upstream(p);
            return self.step();
        }
        let wire = self.wire(one.frame.len());
        let slowed = match self.bug {
            Bug::LossyThrottled => {
                let lossy = (0..8).filter(|p| !self.lossless[*p]).count() as u64;
                // 40 % of the line for all lossy priorities.
                wire * lossy * 10 / 4
            }
            Bug::LowestLossyStarves => wire * 100,
            _ => wire * 8,
        };
        self.next_of[p] = self.now.max(self.next_of[p]) + slowed;
        if self.next_of[p] < self.now {
            self.next_of[p] = self.now + slowed;
        }
        self.upstream(p);
        // A gap shorter than the shortest frame is the sender's rounding.
        if self.now > self.sent_until + self.wire(60) {
            self.busy_since = self.now;
        }
        self.sent_until = self.now + wire;
        self.sending = Some((self.sent_until, one.frame));
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
