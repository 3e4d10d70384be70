//! What received pause frames hold: classes of PFC, or the whole link, mapped to a port's queues.

use pfc_ebpf::abi::flow::{Pauses, WHOLE_LINK};
use pfc_ebpf::abi::watch::PauseClock;
use pfc_ebpf::units::{Nanos, Priority};

use super::plan::Obeys;

/// State of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// It is held until then, unless another pause frame comes; not held at or after it.
    pub until: Nanos,
    /// Time for which it was held so far. Where several classes hold one queue, that of the class
    /// that held it longest.
    pub total: Nanos,
}

/// State of all queues.
pub type Holds = [Hold; Priority::COUNT];

impl Obeys {
    /// The queues at `now`, after the pause frames that came until then.
    pub fn holds(&self, pauses: &Pauses, now: Nanos) -> Holds {
        let hold = |clock: &PauseClock| Hold {
            until: clock.until,
            total: clock.paused(now),
        };
        match self {
            Self::Nothing => Holds::default(),
            Self::Pause => [hold(&pauses[WHOLE_LINK]); Priority::COUNT],
            Self::Pfc(queues) => {
                let mut holds = Holds::default();
                for (queue, clock) in queues.iter().zip(pauses) {
                    let Some(queue) = queue else { continue };
                    let (held, by) = (&mut holds[queue.index()], hold(clock));
                    held.until = held.until.max(by.until);
                    held.total = held.total.max(by.total);
                }
                holds
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priority(number: u8) -> Priority {
        Priority::new(number).unwrap()
    }

    /// Class n is paused from 100 to 200 + n.
    fn paused(classes: &[usize]) -> Pauses {
        let mut pauses = Pauses::default();
        for class in classes {
            pauses[*class] = PauseClock {
                paused: 7,
                at: 100,
                until: 200 + *class as u64,
            };
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
        let holds = obeys.holds(&paused(&[1, 4]), 150);
        assert_eq!(held(&holds), [(2, 204)]);
        assert_eq!(holds[2].total, 57);
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
