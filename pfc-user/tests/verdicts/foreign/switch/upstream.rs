//! PFC that the switch sends.

use super::{Bug, Departure, Foreign, Ns, TX};

impl Foreign {
    /// XOFF above 512 KiB, XON at 256 KiB.
    pub(super) fn upstream(&mut self, p: usize) {
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

    pub(super) fn ask_all(&mut self) {
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

    pub(super) fn wire_quanta(&self, quanta: u16) -> Ns {
        quanta as u64 * 512 * 1_000_000_000 / self.rate
    }

    pub(super) fn ask(&mut self, vector: u8, quanta: u16) {
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
}
