//! Times at which the tester or its simulated DUT stood still: what is late by them is not the
//! DUT's fault.

use crate::evidence::pfc::Stall;
use crate::plan::Nanos;

/// Stalls in their order, none of which overlap.
pub(super) struct Stalls(Vec<Stall>);

impl Stalls {
    /// Sorts the recorded stalls, given in any order, and merges those that overlap.
    pub(super) fn new<'s>(recorded: impl IntoIterator<Item = &'s Stall>) -> Self {
        let mut sorted: Vec<Stall> = recorded.into_iter().copied().collect();
        sorted.sort_by_key(|stall| stall.from);
        let mut all: Vec<Stall> = Vec::new();
        for stall in sorted {
            match all.last_mut().filter(|last| stall.from <= last.to) {
                Some(last) => last.to = last.to.max(stall.to),
                None => all.push(stall),
            }
        }
        Self(all)
    }

    /// True if they explain that something came, or was awaited, from `from` to `to`: without them
    /// it took `latest` at most.
    pub(super) fn excuse(&self, from: Nanos, to: Nanos, latest: Nanos) -> bool {
        let overlap = |stall: &Stall| stall.to.min(to).saturating_sub(stall.from.max(from));
        let stood: Nanos = self.0.iter().map(overlap).sum();
        stood > 0 && to.saturating_sub(from).saturating_sub(stood) <= latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_excuses_what_overlaps_it_and_no_more_than_its_length() {
        // Two that overlap are one.
        let recorded = [(200, 300), (250, 400), (100, 120), (10, 5)];
        let recorded = recorded.map(|(from, to)| Stall { from, to });
        let stalls = Stalls::new(&recorded);
        assert!(stalls.excuse(0, 1000, 780));
        assert!(!stalls.excuse(0, 1000, 779));
        assert!(stalls.excuse(350, 450, 50));
        assert!(!stalls.excuse(350, 450, 49));
        assert!(!stalls.excuse(400, 450, 100), "it overlaps none");
    }
}
