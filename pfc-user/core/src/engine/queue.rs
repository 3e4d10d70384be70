//! Holds by received pause frames: classes of PFC, or the whole link, mapped to a port's queues.

use pfc_ebpf::abi::flow::{Holders, Pauses, WHOLE_LINK, latest};
use pfc_ebpf::units::{Nanos, Priority};

use super::plan::Obeys;

/// State of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// End of the hold, unless another pause frame comes; the queue is free at and after it.
    pub until: Nanos,
    /// Time for which the queue was held so far, by any of its classes.
    pub total: Nanos,
}

/// State of all queues.
pub type Holds = [Hold; Priority::COUNT];

impl Obeys {
    /// The classes that hold each queue.
    pub fn holders(&self) -> Holders {
        match self {
            Self::Nothing => Holders::default(),
            Self::Pause => [1 << WHOLE_LINK; Priority::COUNT],
            Self::Pfc(queues) => {
                let mut holders = Holders::default();
                for (class, queue) in queues.iter().enumerate() {
                    if let Some(queue) = queue {
                        holders[queue.index()] |= 1 << class;
                    }
                }
                holders
            }
        }
    }

    /// The queues at `now`, after the pause frames that came until then.
    pub fn holds(&self, pauses: &Pauses, now: Nanos) -> Holds {
        let holders = self.holders();
        std::array::from_fn(|queue| Hold {
            until: latest(holders[queue], &pauses.until),
            total: pauses.queues[queue].paused(now),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pfc_ebpf::abi::watch::PauseClock;

    fn priority(number: u8) -> Priority {
        Priority::new(number).unwrap()
    }

    /// Class n is paused until 200 + n.
    fn paused(classes: &[usize]) -> Pauses {
        let mut pauses = Pauses::default();
        for class in classes {
            pauses.until[*class] = 200 + *class as u64;
        }
        pauses
    }

    fn held(holds: &Holds) -> Vec<(usize, Nanos)> {
        let held = holds.iter().enumerate().filter(|(_, hold)| hold.until > 0);
        held.map(|(queue, hold)| (queue, hold.until)).collect()
    }

    #[test]
    fn a_class_holds_the_queue_that_it_is_mapped_to() {
        let mut map = Priority::all().map(Some).collect::<Vec<_>>();
        map.swap(3, 5);
        map[6] = None;
        let obeys = Obeys::Pfc(map.try_into().unwrap());
        assert_eq!(held(&obeys.holds(&paused(&[3, 6]), 150)), [(5, 203)]);
        assert_eq!(
            held(&obeys.holds(&paused(&[0, 5]), 150)),
            [(0, 200), (3, 205)]
        );
        assert!(held(&obeys.holds(&paused(&[WHOLE_LINK]), 150)).is_empty());
    }

    #[test]
    fn several_classes_hold_one_queue_until_the_last_lets_go() {
        let obeys = Obeys::Pfc([Some(priority(2)); 8]);
        let mut pauses = paused(&[1, 4]);
        pauses.queues[2] = PauseClock {
            paused: 7,
            at: 100,
            until: 204,
        };
        let holds = obeys.holds(&pauses, 150);
        assert_eq!(held(&holds), [(2, 204)]);
        assert_eq!(holds[2].total, 57);
        assert_eq!(obeys.holds(&pauses, 300)[2].total, 111);
    }

    #[test]
    fn pause_of_802_3x_holds_every_queue_where_it_is_obeyed_and_pfc_none_then() {
        let holds = Obeys::Pause.holds(&paused(&[WHOLE_LINK]), 150);
        assert!(holds.iter().all(|hold| hold.until == 208));
        assert!(held(&Obeys::Pause.holds(&paused(&[3]), 150)).is_empty());
    }

    #[test]
    fn nothing_is_held_at_a_port_that_obeys_nothing() {
        let all: Vec<_> = (0..=WHOLE_LINK).collect();
        assert!(held(&Obeys::Nothing.holds(&paused(&all), 150)).is_empty());
    }
}
