//! Output: the frames that leave, and when.

use super::{Bug, Departure, Foreign, Ns, Order, Queued, RX};

impl Foreign {
    pub(super) fn may_send(&self, p: usize) -> Result<(), Ns> {
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

    pub(super) fn choose(&mut self) -> Option<usize> {
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

    pub(super) fn next(&self) -> Option<Ns> {
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

    pub(super) fn run_before(&mut self, end: Ns) {
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

    pub(super) fn step(&mut self) {
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
            Bug::SlowAfterLong(percent) => wire * 100 / percent,
            _ => wire * 8,
        };
        self.next_of[p] = self.now + slowed;
        // Only what was held is slow.
        if self.queues[p].is_empty() && matches!(self.bug, Bug::SlowAfterLong(_)) {
            self.slow_until[p] = 0;
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
