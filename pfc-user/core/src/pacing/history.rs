//! Spans in which a sender was held back or did not run, listed in bounded room. No I/O;
//! time is an argument.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Nanos, Priority};

use crate::evidence::pfc::{LeftOut, Stall, Withheld, WithheldLeftOut};
use crate::plan::PortName;

/// Spans of each kind that are listed; they fit without growing, which would cost time while frames
/// are due.
const ROOM: usize = 4096;

/// Stalls and spans withheld at the tx port, or at another ([`super::Sent::at`]): the first of each
/// one by one, the others summed up.
#[derive(Clone, Debug)]
pub struct History {
    /// Spans in which a priority was held back.
    pub withheld: Vec<Withheld>,
    /// Spans for which there was no room.
    pub withheld_left_out: Vec<WithheldLeftOut>,
    /// Spans in which the sender should have sent and did not run.
    pub stalls: Vec<Stall>,
    /// Spans for which there was no room.
    pub stalls_left_out: LeftOut,
    last: [Option<Last>; Priority::COUNT],
}

/// The last span of a priority.
#[derive(Clone, Copy, Debug)]
struct Last {
    phase: Phase,
    to: Nanos,
    /// Its place in the list, where it is there.
    listed: Option<usize>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            withheld: Vec::with_capacity(ROOM),
            withheld_left_out: Vec::new(),
            stalls: Vec::with_capacity(ROOM),
            stalls_left_out: LeftOut::default(),
            last: [None; Priority::COUNT],
        }
    }
}

impl History {
    /// A priority was held back; one span with the last before it where they touch.
    pub fn withheld(&mut self, span: Withheld) {
        let Withheld {
            priority,
            phase,
            from,
            to,
            ..
        } = span;
        let last = &mut self.last[priority.index()];
        let goes_on = last.filter(|last| last.phase == phase && last.to == from);
        let listed = match goes_on {
            Some(last) => last.listed,
            None if self.withheld.len() < ROOM => {
                self.withheld.push(span);
                Some(self.withheld.len() - 1)
            }
            None => None,
        };
        *last = Some(Last { phase, to, listed });
        match listed {
            Some(index) => self.withheld[index].to = to,
            None if goes_on.is_some() => self.left_out(priority, phase).prolong(from, to),
            None => self.left_out(priority, phase).add(from, to),
        }
    }

    fn left_out(&mut self, priority: Priority, phase: Phase) -> &mut LeftOut {
        let all = &mut self.withheld_left_out;
        let index = all
            .iter()
            .position(|of| (of.priority, of.phase) == (priority, phase))
            .unwrap_or_else(|| {
                all.push(WithheldLeftOut {
                    port: PortName::TX,
                    priority,
                    phase,
                    spans: LeftOut::default(),
                });
                all.len() - 1
            });
        &mut all[index].spans
    }

    /// The sender did not run; one stall with the last before it where they touch.
    pub fn stall(&mut self, from: Nanos, to: Nanos) {
        let full = self.stalls.len() >= ROOM;
        if let Some(last) = self.stalls.last_mut()
            && last.from <= from
            && from <= last.to
        {
            last.to = last.to.max(to);
            return;
        }
        if full {
            self.stalls_left_out.add(from, to);
        } else {
            self.stalls.push(Stall { from, to });
        }
    }
}

#[cfg(test)]
mod tests {
    use pfc_ebpf::units::MILLISECOND as MS;

    use super::*;

    fn span(priority: u8, phase: Phase, from: Nanos, to: Nanos) -> Withheld {
        Withheld {
            port: PortName::TX,
            priority: Priority::from_low_bits(priority),
            phase,
            from: from * MS,
            to: to * MS,
        }
    }

    #[test]
    fn spans_of_a_priority_join_where_they_touch() {
        let mut history = History::default();
        for (priority, phase, from, to) in [
            (3, Phase::Baseline, 1, 2),
            (3, Phase::Baseline, 2, 3),
            (4, Phase::Baseline, 2, 3),
            (4, Phase::Baseline, 3, 4),
            (3, Phase::Baseline, 5, 6),
            (3, Phase::Storm, 6, 7),
        ] {
            history.withheld(span(priority, phase, from, to));
        }
        let of = |priority, phase, from, to| span(priority, phase, from, to);
        assert_eq!(
            history.withheld,
            [
                of(3, Phase::Baseline, 1, 3),
                of(4, Phase::Baseline, 2, 4),
                of(3, Phase::Baseline, 5, 6),
                of(3, Phase::Storm, 6, 7)
            ]
        );
    }

    #[test]
    fn stalls_join_where_they_touch() {
        let mut history = History::default();
        for (from, to) in [(1, 3), (3, 4), (2, 3), (6, 8), (5, 7)] {
            history.stall(from, to);
        }
        assert_eq!(
            history.stalls,
            [(1, 4), (6, 8), (5, 7)].map(|(from, to)| Stall { from, to })
        );
    }

    #[test]
    fn what_there_is_no_room_for_is_summed_up_exactly() {
        let mut history = History::default();
        let listed = ROOM as Nanos;
        for n in 0..listed + 10 {
            history.stall(3 * n * MS, (3 * n + 1) * MS);
            let priority = 3 + (n % 2) as u8;
            history.withheld(span(priority, Phase::Storm, 3 * n, 3 * n + 1));
            // The span goes on: still the same one.
            history.withheld(span(priority, Phase::Storm, 3 * n + 1, 3 * n + 2));
        }
        assert_eq!((history.stalls.len(), history.withheld.len()), (ROOM, ROOM));
        assert!(
            history
                .withheld
                .iter()
                .all(|span| span.to - span.from == 2 * MS)
        );
        let (first, last) = (3 * listed * MS, 3 * (listed + 9) * MS);
        assert_eq!(
            history.stalls_left_out,
            LeftOut {
                count: 10,
                total: 10 * MS,
                from: first,
                to: last + MS
            }
        );
        let left_out = |priority, from: Nanos, to: Nanos| WithheldLeftOut {
            port: PortName::TX,
            priority: Priority::from_low_bits(priority),
            phase: Phase::Storm,
            spans: LeftOut {
                count: 5,
                total: 10 * MS,
                from,
                to: to + 2 * MS,
            },
        };
        assert_eq!(
            history.withheld_left_out,
            [
                left_out(3, first, last - 3 * MS),
                left_out(4, first + 3 * MS, last)
            ]
        );
    }
}
