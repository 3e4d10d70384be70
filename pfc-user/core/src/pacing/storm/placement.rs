//! Number of a storm's senders, and their CPUs.

use pfc_ebpf::units::Nanos;

/// Stalls of a single sender come near this on a busy machine: other threads in the kernel,
/// interrupts, a hypervisor. Pauses that may run out in one need a second sender.
const LONGEST_STALL: Nanos = 10_000_000;

/// The senders of a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// One sender, on any CPU.
    Single,
    /// Two senders, on a CPU each; each keeps the interval, half of it apart, so that the storm
    /// goes on where one stalls.
    Redundant([usize; 2]),
}

impl Placement {
    /// The placement for pauses of that time on these CPUs, in ascending order. It leaves the first
    /// to the traffic and the last to a simulated DUT where there are enough.
    pub fn choose(pause: Nanos, cpus: &[usize]) -> Self {
        match *cpus {
            _ if pause >= LONGEST_STALL => Self::Single,
            [] | [_] => Self::Single,
            [one, other] | [_, one, other] | [_, .., one, other, _] => {
                Self::Redundant([one, other])
            }
        }
    }

    /// The CPU of each sender, where it has one.
    pub fn cpus(self) -> Vec<Option<usize>> {
        match self {
            Self::Single => vec![None],
            Self::Redundant(cpus) => cpus.map(Some).to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_pauses_have_two_senders_where_there_are_two_cpus() {
        for (pause, cpus, expected) in [
            (41_942, &[][..], Placement::Single),
            (41_942, &[3], Placement::Single),
            (41_942, &[0, 1], Placement::Redundant([0, 1])),
            (41_942, &[0, 2, 5], Placement::Redundant([2, 5])),
            (41_942, &[0, 1, 2, 3], Placement::Redundant([1, 2])),
            (41_942, &[0, 1, 2, 3, 4, 9], Placement::Redundant([3, 4])),
            (9_999_999, &[0, 1], Placement::Redundant([0, 1])),
            (10_000_000, &[0, 1, 2, 3], Placement::Single),
        ] {
            assert_eq!(Placement::choose(pause, cpus), expected, "{pause} {cpus:?}");
        }
    }
}
