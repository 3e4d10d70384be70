//! Input: frames of data, and their queues.

use super::{Bug, Foreign, Queued};

impl Foreign {
    pub(super) fn data(&mut self, mut frame: Vec<u8>) {
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
            Bug::LossyDropsInStorm(one_in) if storm && lossy && n.is_multiple_of(one_in as u64) => {
                return self.drop_one();
            }
            Bug::SwapsWords if n.is_multiple_of(50) => {
                let at = ip + 20 + 8 + 100;
                frame.swap(at, at + 2);
                frame.swap(at + 1, at + 3);
            }
            Bug::Grows if n.is_multiple_of(50) => frame.extend([0; 4]),
            Bug::Shrinks if n.is_multiple_of(50) => frame.truncate(frame.len() - 4),
            Bug::ZeroTail if n.is_multiple_of(50) => {
                let len = frame.len();
                frame[len - 64..].fill(0);
            }
            Bug::FlipsWithChecksum if n.is_multiple_of(50) => {
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
            Bug::CopyAfter(late) if n.is_multiple_of(500) => {
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
        if self.bug == Bug::ReordersFar && n.is_multiple_of(3000) && self.kept[p].is_none() {
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
        if lossy && self.bug == Bug::XoffForLossy && n.is_multiple_of(1000) {
            self.ask(1 << p, 16);
        }
    }

    pub(super) fn drop_one(&mut self) {
        *self.drops.entry("dropped").or_default() += 1;
    }
}
