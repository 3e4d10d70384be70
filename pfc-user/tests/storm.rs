//! Storms at the intervals of fast links. The account of a storm is compared with every single
//! departure and every arrival, so that no result depends on the speed of the machine.
//!
//! lane: frames

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::{Config, FlowConfig};
use pfc_ebpf::units::{LineRate, Priority, Quanta};
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::bpf::{AccountProgram, Sizes, XdpMode};
use validator::driver::kernel::link::{End, create_veth, drop_rises, statistics};
use validator::driver::kernel::netns::Namespace;
use validator::driver::kernel::packet::PacketError;
use validator::driver::kernel::{clock, realtime};
use validator::driver::storm::{ControlSender, Storm, Transmit};
use validator_core::evidence::pfc::{Departure, StormReport};
use validator_core::pacing::storm::placement::Placement;
use validator_core::plan::{Nanos, StormKind, StormPlan};

/// Frames of each storm, at least: an eighth of the receiver's records.
const FRAMES: u64 = 5000;
/// Gaps above the pause that a sender lists. A slow machine exceeds it at 800 Gbit/s.
const LISTED: usize = 4096;
const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 9];
/// The priority that is paused; the times of the others are ignored.
const PAUSED: usize = 7;

fn line_rate(gbits: u64) -> LineRate {
    LineRate::from_bits_per_second(gbits * 1_000_000_000).unwrap()
}

fn plan(rate: LineRate) -> StormPlan {
    let kind = StormKind::Pfc(vec![Priority::new(PAUSED as u8).unwrap()]);
    StormPlan {
        kind,
        quanta: Quanta::MAX,
        interval: Quanta::MAX.nanos(rate) / 3,
    }
}

fn placements(rate: LineRate) -> Vec<Placement> {
    let mut placements = vec![
        Placement::Single,
        Placement::choose(Quanta::MAX.nanos(rate), &realtime::allowed_cpus()),
    ];
    placements.dedup();
    placements
}

/// Waits for what another thread does; fails after a minute.
fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = clock::now() + 60_000_000_000;
    while !is_so() {
        assert!(clock::now() < end, "not within a minute: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Records each departure. Writes the number of a frame into the pause times of priorities that the
/// frame does not address.
struct Recorder<T> {
    inner: T,
    next: AtomicU64,
    refused: AtomicU64,
    departures: Mutex<Vec<(u64, Departure)>>,
}

impl<T> Recorder<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            next: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            departures: Mutex::default(),
        }
    }

    fn departures(&self) -> Vec<(u64, Departure)> {
        self.departures.lock().unwrap().clone()
    }
}

fn number(quanta: &[u16; 8]) -> u64 {
    u64::from(quanta[0]) << 16 | u64::from(quanta[1])
}

impl<T: Transmit> Transmit for Recorder<T> {
    fn send(&self, frame: &MacControl) -> Result<Departure, PacketError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let MacControl::Pfc { vector, mut quanta } = *frame else {
            panic!("{frame:?}")
        };
        (quanta[0], quanta[1]) = ((number >> 16) as u16, number as u16);
        let sent = self.inner.send(&MacControl::Pfc { vector, quanta });
        match &sent {
            Ok(departure) => self.departures.lock().unwrap().push((number, *departure)),
            Err(_) => _ = self.refused.fetch_add(1, Ordering::Relaxed),
        }
        sent
    }
}

/// The times in which certainly nothing left: outside of every departure.
fn silences(departures: &[(u64, Departure)]) -> Vec<(Nanos, Nanos)> {
    let mut spans: Vec<_> = departures
        .iter()
        .map(|(_, departure)| (departure.before, departure.after))
        .collect();
    spans.sort_unstable();
    let mut silences = Vec::new();
    let mut end = spans.first().map_or(0, |first| first.1);
    for (before, after) in spans {
        if before > end {
            silences.push((end, before));
        }
        end = end.max(after);
    }
    silences
}

/// Asserts what holds of an account of these departures on any machine.
fn assert_covers(report: &StormReport, departures: &[(u64, Departure)], rate: LineRate) {
    assert_eq!(report.frames, departures.len() as u64);
    assert_eq!(report.histogram.count(), report.frames - 1);
    let times = departures.iter().map(|(_, departure)| *departure);
    assert_eq!(
        Some(report.first.before),
        times.clone().map(|departure| departure.before).min()
    );
    assert_eq!(
        Some(report.last.before),
        times.map(|departure| departure.before).max()
    );
    let pause = Quanta::MAX.nanos(rate);
    for (from, to) in silences(departures) {
        assert!(
            to - from <= report.max_gap,
            "silent for {}, largest gap {}",
            to - from,
            report.max_gap
        );
        if to - from > pause {
            let left_out = report.gaps_left_out;
            assert!(
                report
                    .gaps
                    .iter()
                    .any(|gap| gap.from <= from && to <= gap.to)
                    || !left_out.is_none() && left_out.from <= from && to <= left_out.to,
                "{from} to {to}: {:?}, {left_out:?}",
                report.gaps
            );
        }
    }
    // None is left out before a sender's list is full.
    assert!(report.gaps_left_out.is_none() || report.gaps.len() >= LISTED);
    assert!(report.gaps.iter().all(|gap| gap.length() <= report.max_gap));
    assert_eq!(
        report.gaps.iter().any(|gap| gap.length() > pause),
        report.max_gap > pause
    );
    let [p50, p99, all] = [0.5, 0.99, 1.0].map(|q| report.histogram.quantile(q).unwrap());
    assert!(p50 <= p99 && p99 <= all, "{p50} {p99} {all}");
}

/// A port, its other end, and the program that counts there.
struct Wire {
    near: Namespace,
    far: Namespace,
    account: AccountProgram,
}

impl Wire {
    fn new() -> Self {
        let (near, far) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        let end = |namespace, name, last| End {
            namespace,
            name,
            mac: [2, 0, 0, 0, 1, last],
        };
        create_veth(end(&near, "near", 1), end(&far, "far", 2), 1500).unwrap();
        let account = far
            .run(|| {
                AccountProgram::attach(
                    "far",
                    XdpMode::Driver,
                    Sizes {
                        flows: 1,
                        windows: 1,
                    },
                )
            })
            .unwrap()
            .unwrap();
        Self { near, far, account }
    }

    fn reset(&mut self) {
        let config = Config {
            epoch: clock::now(),
            window: 1_000_000_000,
            windows: 1,
            run: 1,
            trust: Trust::Dscp as u8,
            line_rate: 1_000_000_000,
            verify_every: 1,
            ..Config::default()
        };
        self.account
            .configure(&config, &[FlowConfig::default()])
            .unwrap();
    }

    fn sender(&self) -> ControlSender {
        self.near
            .run(|| ControlSender::open("near", SOURCE))
            .unwrap()
            .unwrap()
    }

    fn set(&self, state: &'static str) {
        let status = self
            .near
            .run(|| {
                Command::new("ip")
                    .args(["link", "set", "near", state])
                    .status()
            })
            .unwrap()
            .unwrap();
        assert!(status.success(), "ip link set near {state}");
    }
}

#[test]
fn root_what_left_arrives_and_no_silence_is_longer_than_the_account_says() {
    let mut wire = Wire::new();
    for rate in [100, 400, 800].map(line_rate) {
        for placement in placements(rate) {
            wire.reset();
            let before = statistics(&wire.far, "far").unwrap();
            let recorder = Arc::new(Recorder::new(wire.sender()));
            let storm = Storm::start_on(recorder.clone(), &plan(rate), rate, placement).unwrap();
            await_that("frames leave", || {
                recorder.next.load(Ordering::Relaxed) >= FRAMES
            });
            let report = storm.stop();
            let departures: BTreeMap<u64, Departure> = recorder.departures().into_iter().collect();
            println!(
                "{rate}, {}: largest gap {} ns, {} above the pause",
                report.method,
                report.max_gap,
                report.gaps.len()
            );
            assert_covers(&report, &recorder.departures(), rate);
            assert_eq!(report.errors, recorder.refused.load(Ordering::Relaxed));
            // Nothing leaves once it is stopped.
            assert_eq!(
                recorder.next.load(Ordering::Relaxed),
                report.frames + report.errors
            );

            // Frames that softirqs left to ksoftirqd arrive when that has run.
            let rises = || drop_rises("far", &before, &statistics(&wire.far, "far").unwrap());
            let dropped = || rises().iter().map(|counter| counter.rise).sum::<u64>();
            await_that("all frames arrive or are dropped", || {
                wire.account.port().unwrap().pfc_frames + dropped() >= report.frames
            });
            let port = wire.account.port().unwrap();
            assert_eq!(port.pfc_frames + dropped(), report.frames, "{:?}", rises());
            assert_eq!(port.pfc[PAUSED].xoff, port.pfc_frames);

            let arrivals = wire.account.take_rings().unwrap().controls;
            assert_eq!(arrivals.len() as u64 + port.controls_lost, port.pfc_frames);
            let mut late = 0;
            for arrival in &arrivals {
                let departure = departures[&number(&arrival.quanta)];
                assert!(
                    arrival.time >= departure.before,
                    "{arrival:?} left {departure:?}"
                );
                late = late.max(arrival.time.saturating_sub(departure.after));
            }
            // A frame counts as sent when it arrives or when its call returns, whichever is
            // earlier, and arrives at most `late` afterwards. If neither a frame nor a record was
            // lost, the receiver's longest silence exceeds the account's longest gap by at most
            // `late`.
            if dropped() + port.controls_lost == 0 {
                let silence = arrivals
                    .windows(2)
                    .map(|pair| pair[1].time - pair[0].time)
                    .max()
                    .unwrap();
                assert!(
                    silence <= report.max_gap + late,
                    "{silence} at the receiver, {} left, {late} late",
                    report.max_gap
                );
            }
        }
    }
}

#[test]
fn root_frames_that_an_interface_which_is_down_refuses_are_counted_and_the_storm_goes_on() {
    let mut wire = Wire::new();
    wire.reset();
    let rate = line_rate(100);
    for placement in placements(rate) {
        let recorder = Arc::new(Recorder::new(wire.sender()));
        let left = || recorder.departures.lock().unwrap().len();
        let storm = Storm::start_on(recorder.clone(), &plan(rate), rate, placement).unwrap();
        await_that("frames leave", || left() > 10);
        wire.set("down");
        let down = clock::now();
        await_that("frames are refused", || {
            recorder.refused.load(Ordering::Relaxed) >= 10
        });
        let up = clock::now();
        wire.set("up");
        let again = left() + 10;
        await_that("frames leave again", || left() > again);
        let report = storm.stop();
        assert_covers(&report, &recorder.departures(), rate);
        assert_eq!(report.errors, recorder.refused.load(Ordering::Relaxed));
        assert!(
            report
                .gaps
                .iter()
                .any(|gap| gap.from <= down && up <= gap.to),
            "{down} to {up}: {:?}",
            report.gaps
        );
    }
}

/// Frames that go nowhere; the one of that number does not return before it is let go.
#[derive(Default)]
struct Stalling {
    sent: AtomicU64,
    stalls_at: u64,
    go_on: Arc<AtomicBool>,
}

impl Transmit for Stalling {
    fn send(&self, _: &MacControl) -> Result<Departure, PacketError> {
        let before = clock::now();
        if self.sent.fetch_add(1, Ordering::Relaxed) == self.stalls_at {
            while !self.go_on.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(Departure {
            before,
            after: clock::now(),
        })
    }
}

fn stalling(placement: Placement, rate: LineRate) -> (Storm, Arc<Recorder<Stalling>>) {
    let recorder = Arc::new(Recorder::new(Stalling {
        stalls_at: 20,
        ..Stalling::default()
    }));
    let storm = Storm::start_on(recorder.clone(), &plan(rate), rate, placement).unwrap();
    await_that("a sender stalls", || {
        recorder.next.load(Ordering::Relaxed) > 20
    });
    (storm, recorder)
}

#[test]
fn a_stalled_sender_leaves_a_gap_for_as_long() {
    let rate = line_rate(100);
    let (storm, recorder) = stalling(Placement::Single, rate);
    let (from, to) = (clock::now(), clock::now() + 2 * Quanta::MAX.nanos(rate));
    clock::sleep_until(to);
    recorder.inner.go_on.store(true, Ordering::Relaxed);
    await_that("it goes on", || recorder.next.load(Ordering::Relaxed) > 25);
    let report = storm.stop();
    assert_covers(&report, &recorder.departures(), rate);
    assert!(
        report
            .gaps
            .iter()
            .any(|gap| gap.from <= from && to <= gap.to),
        "{from} to {to}: {:?}",
        report.gaps
    );
}

#[test]
fn where_one_sender_stalls_the_other_goes_on() {
    let cpus = realtime::allowed_cpus();
    // A lone CPU will do, as two threads take turns on it: the test shows that neither waits for
    // the other.
    let (Some(first), Some(last)) = (cpus.first(), cpus.last()) else {
        panic!("a thread may use some CPU")
    };
    let rate = line_rate(400);
    let (storm, recorder) = stalling(Placement::Redundant([*first, *last]), rate);
    await_that("the other sender's frames leave", || {
        recorder.next.load(Ordering::Relaxed) > 1000
    });
    recorder.inner.go_on.store(true, Ordering::Relaxed);
    let report = storm.stop();
    assert_covers(&report, &recorder.departures(), rate);
    assert!(
        report.method.starts_with("2 senders, redundant"),
        "{}",
        report.method
    );
}
