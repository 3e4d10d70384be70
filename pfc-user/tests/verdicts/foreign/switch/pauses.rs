//! Pauses that it is asked for: how they begin and end.

use super::{Bug, Foreign, Ns};

impl Foreign {
    pub(super) fn control(&mut self, frame: &[u8]) {
        let compared = match self.bug {
            Bug::AnyDestination => 0,
            Bug::FiveOctetsOfDestination => 5,
            _ => 6,
        };
        if frame[..compared] != [0x01, 0x80, 0xc2, 0, 0, 1][..compared] {
            return;
        }
        let mut opcode = u16::from_be_bytes([frame[14], frame[15]]);
        match self.bug {
            Bug::HighOctetOfOpcode if frame[14] == 1 => opcode = 0x0101,
            Bug::ObeysFirstOdd if opcode > 0x0101 && !self.odd_seen => opcode = 0x0101,
            Bug::OddStopsAll(time) if opcode > 0x0101 => self.blocked = self.now + time,
            Bug::OddDropsNext if opcode > 0x0101 => self.drop_next = [true; 8],
            Bug::RefusesTail if frame[34..].iter().any(|octet| *octet != 0) => return,
            Bug::RefusesVector if frame[16] != 0 => return,
            Bug::DeafAfterOdd(_) if self.now < self.deaf_until => return,
            Bug::DeafAfterOdd(time) if opcode > 0x0101 => self.deaf_until = self.now + time,
            _ => {}
        }
        self.odd_seen |= frame[14..16] > [1, 1][..];
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
        let quiet = self.pfc_seen == 0 || self.now - self.last_pfc > 200_000_000;
        self.last_pfc = self.now;
        self.pfc_seen += 1;
        match self.bug {
            Bug::FirstIgnored if self.pfc_seen == 1 => return,
            Bug::FirstAfterQuietIgnored if quiet => return,
            Bug::EveryNthIgnored(n) if self.pfc_seen.is_multiple_of(n) => return,
            _ => {}
        }
        let mut vector = frame[17];
        match self.bug {
            Bug::VectorHigh => vector = frame[16],
            Bug::VectorZeroIsAll if vector == 0 => vector = 0xff,
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
                Bug::LossyNamedForLossless if !self.lossless[p] && names_lossless => {
                    let time =
                        |q: usize| u16::from_be_bytes([frame[18 + 2 * q], frame[19 + 2 * q]]);
                    let named = (0..8).filter(|q| given >> q & 1 == 1 && self.lossless[*q]);
                    quanta = named.map(time).max().unwrap_or(quanta);
                }
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
                    Bug::LossyToo | Bug::LossyNamedForLossless => names_lossless,
                    Bug::LossyClassToo(class) => names_lossless && p == class,
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

    pub(super) fn xon(&mut self, p: usize, paused: bool, all_zero: bool) {
        if !paused {
            // The timer runs from 0 down, and round.
            if self.bug == Bug::XonPausesIdle {
                self.since[p] = self.now;
                self.until[p] = self.now + self.quanta(0xffff);
            }
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

    pub(super) fn ended(&mut self) {
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
                Bug::LossyStopsAtEnd(time) => self.stop_lossy = self.now + time,
                Bug::IsolationStopsAtEnd(time) => {
                    for q in (0..8).filter(|q| self.lossless[*q]) {
                        if self.until[q] <= self.now && q != p {
                            self.until[q] = self.now + time;
                        }
                    }
                }
                Bug::SlowAfterLong(_) if lasted > 100_000_000 => self.slow_until[p] = Ns::MAX,
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
}
