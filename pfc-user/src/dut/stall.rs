//! Stalls of a simulated device, reported to the tester by a line of standard output each, so that
//! they are not taken for the device's fault.

use std::io::Write as _;

use crate::driver::kernel::clock;
use crate::evidence::pfc::Stall;
use crate::plan::Nanos;

/// First word of a line.
const WORD: &str = "stalled";
/// Most stalls that are reported: the lines may have no reader.
const MOST: usize = 1000;

/// Tells of stalls.
pub struct Teller {
    /// Lateness from which something is a stall.
    above: Nanos,
    /// When the process was last seen to run.
    last: Nanos,
    told: usize,
}

impl Teller {
    /// Tells of what is later than `above`.
    pub fn new(above: Nanos) -> Self {
        Self {
            above,
            last: clock::now(),
            told: 0,
        }
    }

    /// To be called at least every `every`: tells of a stall where it was not.
    pub fn beat(&mut self, every: Nanos) {
        let (last, now) = (self.last, clock::now());
        self.last = now;
        if now.saturating_sub(last) > every + self.above {
            self.tell(Stall {
                from: last,
                to: now,
            });
        }
    }

    /// Notes that what was due at `due` happens now.
    pub fn due(&mut self, due: Nanos) {
        let now = clock::now();
        if now.saturating_sub(due) > self.above {
            self.tell(Stall { from: due, to: now });
        }
    }

    fn tell(&mut self, stall: Stall) {
        if self.told < MOST {
            self.told += 1;
            // Without a reader the report is lost.
            let _ = writeln!(std::io::stdout(), "{WORD} {} {}", stall.from, stall.to);
        }
    }
}

/// The stall that a line tells of, by CLOCK_MONOTONIC; `None` for any other line.
pub fn read(line: &str) -> Option<Stall> {
    let mut numbers = line.strip_prefix(WORD)?.split_ascii_whitespace();
    let (from, to) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    (from <= to).then_some(Stall { from, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_is_told() {
        let stall = Stall { from: 5, to: 7 };
        assert_eq!(read(&format!("{WORD} 5 7")), Some(stall));
        for other in ["ready: 5 7", "stalled 7 5", "stalled 5", "stalled 5 x", ""] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
