//! Stalls of a simulated device. Its process reports each to the tester by a line of standard
//! output, so that no stall is taken for the device's fault.

use std::io::Write as _;

use validator_core::evidence::pfc::Stall;
use validator_core::plan::Nanos;

use crate::driver::kernel::clock;

/// First word of a line.
const WORD: &str = "stalled";
/// Most lines of a process, for a tester that reads none.
const MOST: usize = 1000;

/// Writes the lines of a process.
pub struct Reporter {
    /// Lateness from which something is a stall.
    above: Nanos,
    /// Time at which the process was last seen to run.
    last: Nanos,
    reported: usize,
}

impl Reporter {
    /// Reports what is later than `above`.
    pub fn new(above: Nanos) -> Self {
        Self {
            above,
            last: clock::now(),
            reported: 0,
        }
    }

    /// Has to be called at least every `every`. Reports a stall where it was not.
    pub fn beat(&mut self, every: Nanos) {
        let (last, now) = (self.last, clock::now());
        self.last = now;
        if now.saturating_sub(last) > every + self.above {
            self.report(Stall {
                from: last,
                to: now,
            });
        }
    }

    /// Reports a stall if what happens now was due too long ago.
    pub fn due(&mut self, due: Nanos) {
        let now = clock::now();
        if now.saturating_sub(due) > self.above {
            self.report(Stall { from: due, to: now });
        }
    }

    fn report(&mut self, stall: Stall) {
        if self.reported < MOST {
            self.reported += 1;
            // A tester that has gone needs no line.
            let _ = writeln!(std::io::stdout(), "{WORD} {} {}", stall.from, stall.to);
        }
    }
}

/// The stall that a line reports, by CLOCK_MONOTONIC; `None` for any other line.
pub fn read(line: &str) -> Option<Stall> {
    let mut numbers = line.strip_prefix(WORD)?.split_ascii_whitespace();
    let (from, to) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    (from <= to).then_some(Stall { from, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_is_written() {
        let stall = Stall { from: 5, to: 7 };
        assert_eq!(read(&format!("{WORD} 5 7")), Some(stall));
        for other in ["ready: 5 7", "stalled 7 5", "stalled 5", "stalled 5 x", ""] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
