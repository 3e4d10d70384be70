//! The tester's own side, and the sender's counts at both ends of a window.

use super::*;

fn drops(sender: u64, queue: u64, receiver: u64, softnet: u64) -> Drops {
    let named = |name: &str, value| vec![(name.to_owned(), value)];
    Drops {
        sender: named("sender", sender),
        queues: named("queue", queue),
        receiver: named("receiver", receiver),
        softnet,
    }
}

#[test]
fn each_place_is_set_off_where_the_frames_passed_it() {
    let (before, now) = (drops(1, 10, 100, 1000), drops(3, 15, 107, 1011));
    let own = |bypassed, before_the_stack| before.until(&now, 9, bypassed, before_the_stack);
    let named = |all: &[(&str, u64)]| {
        all.iter()
            .map(|(name, rise)| ((*name).to_owned(), *rise))
            .collect::<Vec<_>>()
    };
    let (with_queue, without) = (
        named(&[("sender", 2), ("queue", 5)]),
        named(&[("sender", 2)]),
    );
    let (nic, with_stack) = (
        named(&[("receiver", 7)]),
        named(&[("receiver", 7), (SOFTNET, 11)]),
    );
    assert_eq!(
        own(false, true),
        OwnSide {
            sender: with_queue.clone(),
            unsent: 9,
            receiver: nic.clone()
        }
    );
    assert_eq!(
        own(false, false),
        OwnSide {
            sender: with_queue,
            unsent: 9,
            receiver: with_stack
        }
    );
    assert_eq!(
        own(true, true),
        OwnSide {
            sender: without,
            unsent: 9,
            receiver: nic
        }
    );
    assert_eq!(
        before.until(&before, 0, false, false),
        OwnSide::default(),
        "what did not rise is not named"
    );
}

#[test]
fn what_did_not_leave_is_told_from_what_did_not_pass_egress() {
    let mark = |egress, frames| Mark {
        egress: [egress, 0, 0, 0, 0, 0, 0, 0, 0],
        driver: Driver {
            frames,
            by_priority: None,
        },
    };
    let (earlier, begin) = (mark(0, 0), mark(10, 4));
    assert_eq!(
        (
            unsent(&begin, &mark(110, 104)),
            bypassed(&earlier, &begin, &mark(110, 104))
        ),
        (0, false)
    );
    assert_eq!(
        (
            unsent(&begin, &mark(110, 94)),
            bypassed(&earlier, &begin, &mark(110, 94))
        ),
        (10, false)
    );
    // Six of before the window were waiting when it began, or left by another way: not more than
    // passed egress before it.
    assert_eq!(
        (
            unsent(&begin, &mark(110, 110)),
            bypassed(&earlier, &begin, &mark(110, 110))
        ),
        (0, false)
    );
    assert!(bypassed(&earlier, &begin, &mark(110, 115)));
}
