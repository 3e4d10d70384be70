use pfc_ebpf::abi::flow::Pauses;
use pfc_ebpf::abi::watch::PauseClock;
use pfc_ebpf::units::{MILLISECOND, SECOND};

use super::*;
use crate::engine::plan::{End, Length, Obeys, Rate, Schedule, Span};

const MICROSECOND: Nanos = 1_000;
/// From one look to the next.
const TICK: Nanos = 150 * MICROSECOND;

fn gigabit() -> LineRate {
    LineRate::from_bits_per_second(1_000_000_000).unwrap()
}

fn queue(number: u8) -> Option<Priority> {
    Some(Priority::new(number).unwrap())
}

fn pace(rate: Rate, end: End) -> Pace {
    let schedule = Schedule {
        delay: Span::Time(0),
        end,
        gap: 12,
    };
    Pace::new(rate, Length::Fixed(1024), schedule, gigabit())
}

fn percent(percent: f64) -> Pace {
    pace(Rate::Percent(percent), End::Never)
}

/// A port on a virtual clock, with what left by flow.
struct Bench {
    port: PortSchedule,
    now: Nanos,
    pauses: Pauses,
    sent: Vec<u64>,
}

impl Bench {
    fn new(flows: Vec<(Pace, Option<Priority>)>) -> Self {
        let mut port = PortSchedule::new(gigabit());
        let sent = vec![0; flows.len()];
        for (pace, queue) in flows {
            port.add(pace, queue);
        }
        // No time begins at 0.
        Self {
            port,
            now: SECOND,
            pauses: Pauses::default(),
            sent,
        }
    }

    fn start(&mut self) {
        for flow in 0..self.sent.len() {
            let now = self.now;
            self.port.change(flow, |pace| pace.start(now));
        }
    }

    /// A pause frame comes in: the class is held for so long from now on.
    fn pause(&mut self, class: usize, time: Nanos) {
        let until = self.now + time;
        self.pauses.until[class] = until;
        // Each queue has the class of its number; the whole link has none.
        if let Some(clock) = self.pauses.queues.get_mut(class) {
            *clock = PauseClock {
                paused: clock.paused(self.now),
                at: self.now,
                until,
            };
        }
    }

    /// Sends what is due at each look until then; returns what left meanwhile.
    fn run(&mut self, until: Nanos) -> Vec<u64> {
        let before = self.sent.clone();
        let obeys = Obeys::Pfc(std::array::from_fn(|class| queue(class as u8)));
        while self.now <= until {
            let holds = obeys.holds(&self.pauses, self.now);
            self.port.look(self.now, &holds);
            while let Some(due) = self.port.take(self.now) {
                self.sent[due.flow] += 1;
            }
            self.now += TICK;
        }
        self.sent
            .iter()
            .zip(before)
            .map(|(after, before)| after - before)
            .collect()
    }

    fn run_for(&mut self, time: Nanos) -> Vec<u64> {
        self.run(self.now + time)
    }
}

/// Frames a second of 1024 octets at a share of 1 Gbit/s.
fn frames(percent: f64) -> f64 {
    percent / 100.0 * 1e9 / (1044.0 * 8.0)
}

fn close(found: u64, expected: f64) {
    let off = (found as f64 - expected).abs() / expected;
    assert!(off < 0.001, "expected {expected}, found {found}");
}

#[test]
fn eight_flows_that_fill_the_line_in_part_have_their_rates() {
    let mut flows = vec![(percent(45.0), queue(0))];
    flows.extend((1..8).map(|number| (percent(6.0), queue(number))));
    let mut bench = Bench::new(flows);
    bench.start();
    let sent = bench.run_for(10 * SECOND);
    close(sent[0], 10.0 * frames(45.0));
    for sent in &sent[1..] {
        close(*sent, 10.0 * frames(6.0));
    }
}

#[test]
fn flows_above_the_line_share_it_and_none_is_owed_the_rest() {
    let mut bench = Bench::new(vec![
        (percent(100.0), queue(0)),
        (percent(100.0), queue(1)),
        (percent(10.0), queue(2)),
    ]);
    bench.start();
    let sent = bench.run_for(10 * SECOND);
    close(sent.iter().sum(), 10.0 * frames(100.0));
    assert!(sent[0].abs_diff(sent[1]) * 100 < sent[0], "{sent:?}");
    // The flow that is left has its own rate, and the memory of what it lacked is short.
    bench.port.change(0, Pace::stop);
    bench.port.change(1, Pace::stop);
    bench.run_for(SECOND);
    close(bench.run_for(10 * SECOND)[2], 10.0 * frames(10.0));
}

#[test]
fn flows_get_what_another_sender_leaves_of_the_line() {
    let mut bench = Bench::new(vec![(percent(100.0), queue(0)), (percent(20.0), queue(1))]);
    bench.start();
    // Frames of 64 octets, which are 84 on the wire, for about half of the time.
    let others = Count {
        frames: 2500,
        octets: 2500 * 64,
    };
    let taken = 2500 * 84 * 8;
    let mut sent: u64 = bench.run_for(2 * taken).iter().sum();
    for _ in 0..1000 {
        bench.port.share(others, bench.now);
        sent += bench.run_for(2 * taken).iter().sum::<u64>();
    }
    let left = bench.now - SECOND - 1000 * taken;
    close(sent, left as f64 / 1e9 * frames(100.0));
}

#[test]
fn flows_above_the_line_end_in_their_time_with_what_the_line_carries_in_it() {
    let flows = (0..8).map(|number| {
        let pace = pace(Rate::Percent(20.0), End::Time(SECOND));
        (pace, queue(number))
    });
    let mut bench = Bench::new(flows.collect());
    bench.start();
    close(bench.run_for(2 * SECOND).iter().sum(), frames(100.0));
}

#[test]
fn a_sender_that_was_held_up_makes_good_for_it_within_the_line() {
    let mut bench = Bench::new(vec![(percent(50.0), queue(0))]);
    bench.start();
    bench.run_for(SECOND);
    bench.now += 50 * MILLISECOND;
    bench.run_for(2 * SECOND - 50 * MILLISECOND);
    close(bench.sent[0], 3.0 * frames(50.0));
    // Never more than the line carries, but for what a late look lets out at once.
    bench.now += 50 * MILLISECOND;
    let most = frames(100.0) * 0.011 + 1.0;
    assert!((bench.run_for(10 * MILLISECOND)[0] as f64) < most);
}

#[test]
fn a_held_queue_sends_nothing_owes_nothing_and_holds_no_other() {
    let mut bench = Bench::new(vec![(percent(10.0), queue(3)), (percent(10.0), queue(4))]);
    bench.start();
    bench.run_for(SECOND);
    // 100 refreshes of 10 ms, the longest without an end.
    for _ in 0..100 {
        bench.pause(3, 33 * MILLISECOND);
        let sent = bench.run_for(10 * MILLISECOND - TICK);
        assert_eq!(sent[0], 0);
        assert!(sent[1] > 0);
    }
    let other = bench.sent[1];
    let passed = (bench.now - SECOND) as f64 / 1e9;
    close(other, passed * frames(10.0));
    bench.pause(3, 0);
    let sent = bench.run_for(100 * MILLISECOND);
    let most = frames(10.0) * 0.1 + 2.0;
    assert!(
        sent[0] > 0 && (sent[0] as f64) <= most,
        "{sent:?}, at most {most}"
    );
}

#[test]
fn a_pause_ends_by_itself_after_its_time() {
    let mut bench = Bench::new(vec![(percent(10.0), queue(3))]);
    bench.start();
    bench.run_for(100 * MILLISECOND);
    bench.pause(3, 33 * MILLISECOND);
    let end = bench.now + 33 * MILLISECOND;
    assert_eq!(bench.run(end - 1), [0]);
    assert!(bench.run(end + MILLISECOND)[0] > 0);
}

#[test]
fn pause_frames_are_held_by_nothing() {
    let mut bench = Bench::new(vec![(percent(1.0), None)]);
    bench.start();
    for class in 0..9 {
        bench.pause(class, SECOND);
    }
    close(bench.run_for(SECOND)[0], frames(1.0));
}

#[test]
fn a_flow_of_so_much_time_ends_then_also_while_it_is_held() {
    let time = End::Time(100 * MILLISECOND);
    let rate = Rate::FramesPerSecond(1000);
    let mut bench = Bench::new(vec![
        (pace(rate, time.clone()), queue(3)),
        (pace(rate, time), queue(4)),
    ]);
    bench.start();
    bench.run_for(50 * MILLISECOND);
    bench.pause(3, SECOND);
    bench.run_for(40 * MILLISECOND);
    assert_eq!(bench.port.progress(0).state, Transmit::Started);
    bench.run_for(15 * MILLISECOND);
    assert_eq!(bench.port.progress(0).state, Transmit::Stopped);
    bench.run_for(30 * MILLISECOND);
    assert_eq!(bench.port.progress(1).state, Transmit::Stopped);
    assert!((49..=52).contains(&bench.sent[0]), "{:?}", bench.sent);
    assert_eq!(bench.sent[1], 100, "what was due in its time has left");
    let ended = bench.port.ended();
    assert!(ended.contains(&0) && ended.contains(&1), "{ended:?}");
    // Nothing is left to do.
    assert_eq!(bench.port.next(bench.now), None);
}

#[test]
fn frames_that_found_no_room_are_due_as_before() {
    let mut bench = Bench::new(vec![
        (
            pace(Rate::FramesPerSecond(10_000), End::Frames(20)),
            queue(0),
        ),
        (percent(1.0), queue(1)),
    ]);
    bench.start();
    bench.now += MILLISECOND;
    let now = bench.now;
    bench.port.look(now, &Holds::default());
    let first: Vec<_> = std::iter::from_fn(|| bench.port.take(now)).collect();
    assert!(first.len() > 10);
    for due in first[3..].iter().rev() {
        bench.port.give_back(due);
    }
    let again: Vec<_> = std::iter::from_fn(|| bench.port.take(now)).collect();
    let frame = |due: &Due| (due.flow, due.frame);
    assert_eq!(
        first[3..].iter().map(frame).collect::<Vec<_>>(),
        again.iter().map(frame).collect::<Vec<_>>()
    );
    for due in again.iter().rev() {
        bench.port.give_back(due);
    }
    bench.sent[0] = first[..3].iter().filter(|due| due.flow == 0).count() as u64;
    bench.run_for(100 * MILLISECOND);
    assert_eq!(bench.sent[0], 20);
    assert_eq!(bench.port.progress(0).state, Transmit::Stopped);
}

#[test]
fn a_flow_that_was_stopped_or_paused_sends_nothing() {
    let mut bench = Bench::new(vec![(percent(10.0), queue(0)), (percent(10.0), queue(1))]);
    bench.start();
    bench.run_for(10 * MILLISECOND);
    bench.port.change(0, Pace::stop);
    let now = bench.now;
    bench.port.change(1, |pace| pace.pause(now));
    assert_eq!(bench.run_for(SECOND), [0, 0]);
    let now = bench.now;
    bench.port.change(1, |pace| pace.resume(now));
    let sent = bench.run_for(SECOND);
    assert_eq!(sent[0], 0);
    close(sent[1], frames(10.0));
}

#[test]
fn nothing_is_owed_for_the_time_in_which_the_link_was_down() {
    let mut bench = Bench::new(vec![(percent(10.0), queue(0))]);
    bench.start();
    bench.run_for(100 * MILLISECOND);
    bench.now += 80 * MILLISECOND;
    let now = bench.now;
    bench.port.stalled(80 * MILLISECOND, now);
    let sent = bench.run_for(100 * MILLISECOND);
    assert!((sent[0] as f64) <= frames(10.0) * 0.1 + 2.0, "{sent:?}");
}

#[test]
fn flows_that_start_together_have_their_first_frames_due_one_after_the_other() {
    for (rate, apart) in [(1000, 250 * MICROSECOND), (1, 25 * MILLISECOND)] {
        let flow = || (pace(Rate::FramesPerSecond(rate), End::Never), queue(0));
        let mut bench = Bench::new((0..4).map(|_| flow()).collect());
        bench.start();
        bench.port.spread(&[0, 1, 2, 3]);
        for place in 0..4 {
            let due = bench.port.progress(place as usize).due;
            assert_eq!(due, fine(SECOND + place * apart), "{rate}/s, flow {place}");
        }
    }
}

#[test]
fn what_the_line_has_no_room_for_is_forgotten_and_said() {
    let rate = |percent| {
        let mut bench = Bench::new(vec![
            (self::percent(percent), queue(1)),
            (self::percent(50.0), queue(2)),
        ]);
        bench.start();
        bench.run(2 * SECOND);
        bench.port.forgotten()
    };
    assert_eq!(rate(50.0), 0);
    // A second of which 2/7 is no room, but for what is still owed.
    let forgotten = rate(90.0);
    let never_left = SECOND * 2 / 7;
    assert!(forgotten <= never_left, "{forgotten} ns");
    assert!(forgotten + 2 * MEMORY >= never_left, "{forgotten} ns");
}
