//! Response of a sender to pause frames: frames of a queue that left after the pause frame that
//! began to hold it had arrived. No clock is asked.
//!
//! A sender looks at the holds, and sends until its next look. It sees a pause frame that arrives
//! in between only at that look; frames that left meanwhile may have left after it.

use pfc_ebpf::units::{Nanos, Priority};

use super::queue::Holds;
use super::snapshot::{Count, Response};

/// Responses of all queues of a sender.
#[derive(Clone, Debug, Default)]
pub struct Responses {
    queues: [Queue; Priority::COUNT],
    /// The last look.
    at: Nanos,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    response: Response,
    /// True if the queue was held at the last look.
    held: bool,
    /// True while another sender counts its holds.
    offloaded: bool,
    /// Time for which it had been held, at the last look.
    total: Nanos,
    /// Frames that left since the last look, and when the last of them had left.
    sent: Count,
    last: Nanos,
}

impl Responses {
    /// Makes the responses of a sender that begins at `now`, under `holds`; the port's responses so
    /// far go on.
    pub fn new(now: Nanos, holds: &Holds, so_far: [Response; Priority::COUNT]) -> Self {
        let queue = |queue: usize| Queue {
            response: so_far[queue],
            held: holds[queue].until > now,
            total: holds[queue].total,
            ..Queue::default()
        };
        Self {
            queues: std::array::from_fn(queue),
            at: now,
        }
    }

    /// Responses of a queue so far.
    pub fn of(&self, queue: Priority) -> Response {
        self.queues[queue.index()].response
    }

    /// Offloads a queue to another sender, which has flows of it as well. That one counts its holds
    /// from the last look on, until they are taken back.
    pub fn offload(&mut self, queue: Priority) {
        self.queues[queue.index()].offloaded = true;
    }

    /// Counts the holds of all queues here again, after a look at `now`.
    pub fn take_back(&mut self, now: Nanos, holds: &Holds) -> bool {
        let found = self.look(now, holds);
        self.queues
            .iter_mut()
            .for_each(|queue| queue.offloaded = false);
        found
    }

    /// Accounts a frame of `octets` that left a queue at `at` or before.
    pub fn left(&mut self, queue: Priority, octets: u64, at: Nanos) {
        let queue = &mut self.queues[queue.index()];
        queue.sent += Count { frames: 1, octets };
        queue.last = at;
    }

    /// Looks at the holds at `now`; returns true if a queue was found held that had been free.
    pub fn look(&mut self, now: Nanos, holds: &Holds) -> bool {
        let before = std::mem::replace(&mut self.at, now);
        let mut found = false;
        for (queue, hold) in self.queues.iter_mut().zip(holds) {
            let held = hold.until > now;
            let time = hold.total.saturating_sub(queue.total);
            if !queue.held && (held || time > 0) {
                // The begin of a hold that is over is unknown: at the look before, at the earliest.
                let since = if held { now - time } else { before };
                queue.found_held(since, time);
                found = true;
            }
            queue.held = held;
            // The program moves time from one word to another: a look in between misses it.
            queue.total = queue.total.max(hold.total);
            queue.sent = Count::default();
        }
        found
    }
}

impl Queue {
    /// Accounts a hold that began at `since` and lasted `time` at least.
    fn found_held(&mut self, since: Nanos, time: Nanos) {
        let response = &mut self.response;
        response.holds += u64::from(!self.offloaded);
        if self.sent.frames == 0 || self.last <= since {
            return;
        }
        response.after += self.sent;
        // After the hold's end, frames are free to leave.
        response.longest = response.longest.max((self.last - since).min(time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue, and a sender of it that looks each 100 ns, whose frames have 64 octets.
    struct Sender {
        responses: Responses,
        now: Nanos,
    }

    const TICK: Nanos = 100;

    fn three() -> Priority {
        Priority::new(3).unwrap()
    }

    /// Queue 3 held by pauses at these times, as it is at `now`.
    fn holds(pauses: &[(Nanos, Nanos)], now: Nanos) -> Holds {
        let mut holds = Holds::default();
        let come = pauses.iter().filter(|(from, _)| *from <= now);
        for (from, until) in come {
            holds[3].until = *until;
            holds[3].total += now.min(*until) - from;
        }
        holds
    }

    impl Sender {
        fn new() -> Self {
            Self {
                responses: Responses::default(),
                now: 0,
            }
        }

        /// Looks, and sends these frames, which have left `took` later.
        fn round(&mut self, pauses: &[(Nanos, Nanos)], frames: u64, took: Nanos) {
            self.now += TICK;
            let holds = holds(pauses, self.now);
            self.responses.look(self.now, &holds);
            if holds[3].until <= self.now {
                for _ in 0..frames {
                    self.responses.left(three(), 64, self.now + took);
                }
            }
        }
    }

    /// The responses to these pauses of a sender of 5 frames each round, which leave within 30 ns.
    fn responses(pauses: &[(Nanos, Nanos)]) -> Response {
        let mut sender = Sender::new();
        for _ in 0..10 {
            sender.round(pauses, 5, 30);
        }
        for queue in Priority::all().filter(|queue| *queue != three()) {
            assert_eq!(sender.responses.of(queue), Response::default());
        }
        sender.responses.of(three())
    }

    fn response(holds: u64, frames: u64, longest: Nanos) -> Response {
        Response {
            holds,
            after: Count {
                frames,
                octets: 64 * frames,
            },
            longest,
        }
    }

    #[test]
    fn what_left_after_the_pause_had_arrived_is_counted_until_the_last_of_it() {
        // The frames of 300 have left at 330, and no more leave at 400.
        assert_eq!(responses(&[(310, 700)]), response(1, 5, 20));
        assert_eq!(responses(&[(329, 700)]), response(1, 5, 1));
    }

    #[test]
    fn a_pause_after_which_nothing_left_is_a_response_in_no_time() {
        assert_eq!(responses(&[(330, 700)]), response(1, 0, 0));
        assert_eq!(responses(&[(400, 700)]), response(1, 0, 0));
        assert_eq!(responses(&[]), response(0, 0, 0));
    }

    #[test]
    fn each_hold_counts_and_the_longest_time_stays() {
        let pauses = [(325, 450), (605, 790)];
        assert_eq!(responses(&pauses), response(2, 10, 25));
    }

    #[test]
    fn a_pause_that_goes_on_by_another_frame_is_one() {
        assert_eq!(responses(&[(310, 500), (500, 800)]), response(1, 5, 20));
    }

    #[test]
    fn a_pause_that_began_and_ended_between_two_looks_is_one_with_its_length_at_most() {
        assert_eq!(responses(&[(310, 322)]), response(1, 5, 12));
        assert_eq!(responses(&[(310, 390)]), response(1, 5, 30));
    }

    #[test]
    fn a_total_that_is_less_for_one_look_is_no_hold() {
        let pauses = [(150, 190)];
        let mut responses = Responses::new(100, &holds(&pauses, 100), [Response::default(); 8]);
        assert!(responses.look(200, &holds(&pauses, 200)));
        assert!(!responses.look(300, &holds(&[], 300)));
        assert!(!responses.look(400, &holds(&pauses, 400)));
        assert_eq!(responses.of(three()).holds, 1);
    }

    #[test]
    fn what_was_held_before_a_sender_began_is_none_of_its_responses() {
        let pauses = [(50, 190), (210, 290)];
        let so_far = [response(7, 30, 900); Priority::COUNT];
        let mut responses = Responses::new(100, &holds(&pauses, 100), so_far);
        assert!(!responses.look(150, &holds(&pauses, 150)));
        assert_eq!(responses.of(three()), so_far[3]);
        assert!(!responses.look(200, &holds(&pauses, 200)));
        assert!(responses.look(220, &holds(&pauses, 220)));
        assert_eq!(responses.of(three()), response(8, 30, 900));
    }

    #[test]
    fn holds_while_another_sender_counts_them_are_not_counted_twice() {
        let pauses = [(150, 190), (250, 290), (350, 450), (510, 530)];
        let mut responses = Responses::new(100, &holds(&[], 100), [Response::default(); 8]);
        responses.look(200, &holds(&pauses, 200));
        responses.offload(three());
        responses.left(three(), 64, 260);
        responses.look(300, &holds(&pauses, 300));
        // Frames that this sender sent meanwhile count.
        assert_eq!(responses.of(three()), response(1, 1, 40));
        assert!(responses.take_back(400, &holds(&pauses, 400)));
        // The hold that goes on is the other's.
        assert!(!responses.look(420, &holds(&pauses, 420)));
        assert_eq!(responses.of(three()), response(1, 1, 40));
        responses.look(500, &holds(&pauses, 500));
        responses.look(600, &holds(&pauses, 600));
        assert_eq!(responses.of(three()), response(2, 1, 40));
        let sum = responses.of(three()) + response(3, 2, 70);
        assert_eq!(sum, response(5, 3, 70));
    }
}
