//! Flows dealt to the CPUs that send them, by their frames a second.

use std::cmp::Reverse;

use crate::plan::FlowPlan;

/// Frames a second that one CPU makes and sends in the kernel. Measured were 7.7 million of 64
/// octets and 5.8 million of 1500 (BENCHMARKS.md, "Sending").
pub const CPU_CARRIES: u64 = 6_000_000;

/// Most frames a second of one flow: a quarter of what a CPU carries, so that little of a CPU is
/// left over. A priority that wants more has several flows, each with its own sequence and UDP
/// port.
pub const FLOW_CARRIES: u64 = CPU_CARRIES / 4;

/// The worker of each flow. The fastest flow is dealt first, each to the worker that has the
/// fewest frames a second so far, and of these to one with the fewest flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deal {
    /// Worker of each flow, in the order of the flows.
    pub workers: Vec<usize>,
    /// Frames a second of each worker.
    pub frames: Vec<u64>,
}

impl Deal {
    /// Deals flows of so many frames a second to `workers` workers, at least one.
    pub fn new(flows: &[u64], workers: usize) -> Self {
        let mut deal = Self {
            workers: vec![0; flows.len()],
            frames: vec![0; workers.max(1)],
        };
        let mut number = vec![0; deal.frames.len()];
        let mut order: Vec<usize> = (0..flows.len()).collect();
        order.sort_by_key(|flow| Reverse(flows[*flow]));
        for flow in order {
            let share = |worker: &usize| (deal.frames[*worker], number[*worker]);
            let worker = (0..number.len()).min_by_key(share).expect("a worker");
            deal.workers[flow] = worker;
            deal.frames[worker] += flows[flow];
            number[worker] += 1;
        }
        deal
    }

    /// Deals to the fewest workers that carry the flows; to `most` workers (at least one) where
    /// fewer do not carry them.
    pub fn fewest(flows: &[u64], most: usize) -> Self {
        let most = most.max(1);
        (1..most)
            .map(|workers| Self::new(flows, workers))
            .find(Self::is_carried)
            .unwrap_or_else(|| Self::new(flows, most))
    }

    /// No worker has more than a CPU carries.
    pub fn is_carried(&self) -> bool {
        self.frames.iter().all(|frames| *frames <= CPU_CARRIES)
    }
}

/// Frames a second of each flow.
pub fn rates(flows: &[FlowPlan]) -> Vec<u64> {
    flows.iter().map(FlowPlan::frames).collect()
}

/// CPUs that flows of so many frames a second want, each with a transmit queue of its own.
pub fn wanted(flows: &[u64]) -> usize {
    Deal::fewest(flows, flows.len()).frames.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_go_by_their_rate_to_the_worker_that_has_least() {
        let deal = Deal::new(&[1, 9, 1, 5, 3], 2);
        // 9 to the first; 5, 3 and 1 to the second; both have 9 then, the first has fewer flows.
        assert_eq!(deal.workers, [1, 0, 0, 1, 1]);
        assert_eq!(deal.frames, [10, 9]);
        // A worker without a flow would have nothing to send.
        assert_eq!(Deal::new(&[0, 0], 2).workers, [0, 1]);
    }

    #[test]
    fn as_few_workers_as_carry_the_flows_are_taken_and_no_more_than_there_are() {
        let fewest = |flows: &[u64], most| Deal::fewest(flows, most).frames.len();
        const HALF: u64 = CPU_CARRIES / 2;
        assert_eq!(fewest(&[HALF, HALF], 8), 1);
        assert_eq!(fewest(&[HALF + 1, HALF], 8), 2);
        // Two thirds each: none fit together.
        assert_eq!(fewest(&[4_000_000; 3], 8), 3);
        assert_eq!(fewest(&[4_000_000; 3], 2), 2);
        assert!(!Deal::fewest(&[4_000_000; 3], 2).is_carried());
        assert!(!Deal::fewest(&[CPU_CARRIES + 1], 8).is_carried());
        assert_eq!(fewest(&[], 0), 1);
    }
}
