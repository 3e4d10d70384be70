//! A place for the program before there is tcx (Linux 6.6): a filter of `clsact`.
//!
//! No bpf_link holds such a filter, so that it stays where its process is killed. Its handle says
//! whose it is: number and start of the process. The next `watch` on the port takes away those of
//! processes that are gone. One in another PID namespace looks gone too: of two containers that
//! watch one port, the second takes the first's filter away.
//!
//! Filters have an order, and no one place is the first or the last for good: others may take the
//! same priority or one beyond it, and what they redirect or drop before is not seen.

use std::process;

use super::direction::Direction;
use crate::driver::kernel::link::{self, Filter, LinkError};
use crate::driver::kernel::netns::Namespace;
use crate::driver::kernel::process::start_time;

/// Bits of a handle: the number of a process (PID_MAX_LIMIT), the lowest of its start, and whether
/// the `clsact` is for a `watch` to remove.
const PROCESS: u32 = (1 << 22) - 1;
const START: u32 = 0xff << 22;
const OURS: u32 = 1 << 30;

/// Priority of the filter: before most, or behind most, and hardly anyone else's.
const fn priority(direction: Direction) -> u16 {
    match direction {
        Direction::Ingress => 13,
        Direction::Egress => 65_513,
    }
}

/// A filter's owner, as its handle says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    process: u32,
    start: u32,
    /// The `clsact` was made by a `watch`.
    made_clsact: bool,
}

impl Owner {
    fn of(handle: u32) -> Self {
        Self {
            process: handle & PROCESS,
            start: handle & START,
            made_clsact: handle & OURS != 0,
        }
    }

    /// This process.
    fn own(made_clsact: bool) -> Self {
        let process = process::id() & PROCESS;
        Self {
            process,
            start: start_bits(start_time(process).unwrap_or(0)),
            made_clsact,
        }
    }

    fn handle(self) -> u32 {
        self.process | self.start | if self.made_clsact { OURS } else { 0 }
    }

    fn is_alive(self) -> bool {
        start_time(self.process).is_some_and(|start| start_bits(start) == self.start)
    }
}

fn start_bits(start: u64) -> u32 {
    (start as u32) << 22 & START
}

fn is_watchs(filter: &Filter) -> bool {
    let direction = if filter.egress {
        Direction::Egress
    } else {
        Direction::Ingress
    };
    filter.priority == priority(direction)
}

/// A `clsact` that is ready for a filter of this process. Dropping it removes the `clsact` where it
/// was made for a `watch`, and nothing hangs there.
pub struct Clsact {
    namespace: Namespace,
    index: u32,
    made: bool,
}

impl Clsact {
    /// Makes or finds the `clsact` of an interface, and takes away what processes that are gone left
    /// there.
    pub fn ready(namespace: Namespace, interface: &str) -> Result<Self, LinkError> {
        let index = link::state(&namespace, interface)?.index;
        let made = link::add_clsact(&namespace, index)?;
        let mut clsact = Self {
            namespace,
            index,
            made,
        };
        for filter in link::filters(&clsact.namespace, index)? {
            let owner = Owner::of(filter.handle);
            if !is_watchs(&filter) {
                continue;
            }
            // The last to go removes what the first of them made.
            clsact.made |= owner.made_clsact;
            if !owner.is_alive() {
                link::remove_filter(&clsact.namespace, index, filter)?;
            }
        }
        Ok(clsact)
    }

    /// Priority and handle of the filter to be made.
    pub fn filter(&self, direction: Direction) -> (u16, u32) {
        (priority(direction), Owner::own(self.made).handle())
    }

    /// Takes this process's filter away.
    pub fn detach(&self, direction: Direction) -> Result<(), LinkError> {
        let (priority, handle) = self.filter(direction);
        let filter = Filter {
            egress: direction == Direction::Egress,
            priority,
            handle,
        };
        link::remove_filter(&self.namespace, self.index, filter)
    }
}

impl Drop for Clsact {
    fn drop(&mut self) {
        // Between look and removal another's filter may come and go with it: the kernel has no word
        // for "if it is empty". An interface that is gone needs nothing.
        if self.made
            && matches!(link::filters(&self.namespace, self.index), Ok(left) if left.is_empty())
        {
            let _ = link::remove_clsact(&self.namespace, self.index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_says_whose_filter_it_is() {
        for made_clsact in [false, true] {
            let own = Owner::own(made_clsact);
            assert_eq!(Owner::of(own.handle()), own);
            assert_eq!(own.process, process::id());
            assert!(own.is_alive() && own.handle() != 0);
            let reused = Owner {
                start: own.start ^ 1 << 22,
                ..own
            };
            assert!(!reused.is_alive(), "another process of the same number");
        }
        let largest = Owner {
            process: PROCESS,
            start: START,
            made_clsact: true,
        };
        assert_eq!(Owner::of(largest.handle()), largest);
        assert!(!largest.is_alive());
        assert!(largest.handle() <= i32::MAX as u32, "what idr takes");
    }

    #[test]
    fn filters_of_others_are_left_alone() {
        let filter = |egress, priority| Filter {
            egress,
            priority,
            handle: 1,
        };
        assert!(is_watchs(&filter(false, priority(Direction::Ingress))));
        assert!(is_watchs(&filter(true, priority(Direction::Egress))));
        assert!(!is_watchs(&filter(true, priority(Direction::Ingress))));
        assert!(!is_watchs(&filter(false, 1)));
    }
}
