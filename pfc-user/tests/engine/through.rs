//! Effects of a device between the ports on frames, as the engine tells them.

use std::thread;
use std::time::{Duration, Instant};

use pfc_ebpf::flow_stamp;
use pfc_ebpf::units::Nanos;
use validator::driver::kernel::packet::PacketSocket;
use validator_core::engine::plan::{End, FlowIndex, Obeys, PortIndex, Rate};
use validator_core::engine::snapshot::{FlowCounts, Latency, Transmit};
use validator_core::engine::{Engine as _, Order};

use crate::common;
use crate::engine::bench::{Bench, PATIENCE, flow, plan};
use crate::engine::device::{Device, Fate, Passed};
use crate::engine::witness::Witness;

const MILLI: Nanos = 1_000_000;
/// Frames of a flow: at a thousand a second, 200 ms.
const FRAMES: usize = 200;
/// Delay that threads, sockets and veths add to that of a device, on a machine that does not stand
/// still.
const PATH: Nanos = 10 * MILLI;

/// Sends a flow through a device, and waits until all that left it has arrived.
fn sent_through(fate: fn(usize) -> Fate) -> (FlowCounts, Passed) {
    let mut bench = Bench::through();
    let device = Device::plug(&bench.namespace, fate);
    let end = End::Frames(FRAMES as u64);
    let thousand = flow("thousand", 128, Rate::FramesPerSecond(1000), end);
    bench.start(plan(Obeys::Nothing, vec![thousand]));
    bench.until("its end", |now| now.flows[0].transmit == Transmit::Stopped);
    bench.until("all its frames in the device", |_| {
        device.seen() == FRAMES as u64
    });
    let passed = device.unplug();
    let all = passed.held.len() as u64;
    let now = bench.until("what left the device", |now| {
        now.flows[0].received.frames == all
    });
    (now.flows[0].clone(), passed)
}

/// 20 ms, and 60 ms for the second half.
fn late(number: usize) -> Fate {
    Fate::Held(if number < FRAMES / 2 { 20 } else { 60 } * MILLI)
}

#[test]
fn root_latency_is_that_of_the_device_and_little_more() {
    if !common::need_root("root_latency_is_that_of_the_device_and_little_more") {
        return;
    }
    let witness = Witness::start();
    let (flow, passed) = sent_through(late);
    let still = witness.longest().as_nanos() as Nanos;
    assert_eq!((flow.sent.frames, flow.received.frames), (200, 200));
    let held = &passed.held;
    let device = Latency {
        min: *held.iter().min().unwrap(),
        mean: held.iter().sum::<Nanos>() / held.len() as Nanos,
        max: *held.iter().max().unwrap(),
    };
    assert!(device.min >= 20 * MILLI && device.max >= 60 * MILLI);
    let found = flow.latency.unwrap();
    for (name, of) in [
        ("least", (|latency| latency.min) as fn(Latency) -> Nanos),
        ("mean", |latency| latency.mean),
        ("greatest", |latency| latency.max),
    ] {
        let (found, device) = (of(found), of(device));
        assert!(
            (device..device + PATH + still).contains(&found),
            "{name}: the device held for {device} ns, the flow says {found} ns; this machine stood \
             still for {still} ns"
        );
    }
}

/// Every seventh, and ten in a row.
fn lossy(number: usize) -> Fate {
    if number.is_multiple_of(7) || (100..110).contains(&number) {
        Fate::Lost
    } else {
        Fate::Held(0)
    }
}

#[test]
fn root_what_a_device_loses_is_lost_and_nothing_else() {
    if !common::need_root("root_what_a_device_loses_is_lost_and_nothing_else") {
        return;
    }
    let (flow, passed) = sent_through(lossy);
    let lost = (0..FRAMES).filter(|number| matches!(lossy(*number), Fate::Lost));
    let lost = lost.count() as u64;
    assert_eq!(passed.lost, lost);
    assert_eq!((flow.sent.frames, flow.received.frames), (200, 200 - lost));
    assert_eq!(flow.received.octets, 128 * flow.received.frames);
    assert_eq!(
        (flow.duplicates, flow.beyond_window, flow.reordered),
        (0, 0, 0)
    );
    assert_eq!((flow.corrupt, flow.leaked), (0, 0));
}

/// Counts of a flow, but for its octets and times.
#[derive(Debug, Default, PartialEq)]
struct Frames {
    sent: u64,
    received: u64,
    duplicates: u64,
    beyond_window: u64,
    reordered: u64,
    corrupt: u64,
    leaked: u64,
}

impl From<&FlowCounts> for Frames {
    fn from(flow: &FlowCounts) -> Self {
        Self {
            sent: flow.sent.frames,
            received: flow.received.frames,
            duplicates: flow.duplicates,
            beyond_window: flow.beyond_window,
            reordered: flow.reordered,
            corrupt: flow.corrupt,
            leaked: flow.leaked,
        }
    }
}

/// Counts of a flow that a device has, and of one that it has afterwards.
fn one_after_the_other(fate: fn(usize) -> Fate) -> [Frames; 2] {
    let mut bench = Bench::through();
    let device = Device::plug(&bench.namespace, fate);
    let end = End::Frames(FRAMES as u64);
    let flows =
        ["first", "second"].map(|name| flow(name, 128, Rate::FramesPerSecond(5000), end.clone()));
    bench
        .engine
        .configure(plan(Obeys::Nothing, flows.into()))
        .unwrap();
    for place in 0..2 {
        let flow = [FlowIndex(place)];
        bench.engine.transmit(&flow, Order::Start).unwrap();
        let all = (1 + place) * FRAMES;
        bench.until("all its frames in the device", |now| {
            now.flows[place].transmit == Transmit::Stopped && device.seen() == all as u64
        });
    }
    let left = device.unplug().held.len() as u64;
    let now = bench.until("what left the device", |now| {
        now.ports[1].received.frames == left
    });
    [0, 1].map(|flow| Frames::from(&now.flows[flow]))
}

/// Returns `fate` for each tenth frame of the first flow; the others are passed on.
fn hit(number: usize, fate: Fate) -> Fate {
    if number < FRAMES && number % 10 == 5 {
        fate
    } else {
        Fate::Held(0)
    }
}

#[test]
fn root_what_a_device_does_to_frames_of_a_flow_shows_in_that_count_of_it_alone() {
    let test = "root_what_a_device_does_to_frames_of_a_flow_shows_in_that_count_of_it_alone";
    if !common::need_root(test) {
        return;
    }
    const HIT: u64 = FRAMES as u64 / 10;
    /// An octet before the stamp, and one of its time.
    const DATA: usize = flow_stamp::LEN + 4;
    const STAMP: usize = 5;
    let whole = || Frames {
        sent: FRAMES as u64,
        received: FRAMES as u64,
        ..Frames::default()
    };
    let twice = Frames {
        duplicates: HIT,
        ..whole()
    };
    let late = Frames {
        reordered: HIT,
        ..whole()
    };
    let changed = Frames {
        corrupt: HIT,
        ..whole()
    };
    // A stamp that is damaged does not tell which frame it was.
    let damaged = Frames {
        received: whole().received - HIT,
        corrupt: HIT,
        ..whole()
    };
    type Fates = fn(usize) -> Fate;
    let cases: [(Fates, Frames); 4] = [
        (|number| hit(number, Fate::Twice), twice),
        (|number| hit(number, Fate::Late), late),
        (|number| hit(number, Fate::Changed(DATA)), changed),
        (|number| hit(number, Fate::Changed(STAMP)), damaged),
    ];
    for (fate, expected) in cases {
        assert_eq!(one_after_the_other(fate), [expected, whole()]);
    }
}

/// A router's "time exceeded" (RFC 792), which quotes the packet of a frame.
fn error_about(frame: &[u8]) -> Vec<u8> {
    let quoted = &frame[14..];
    let mut error = [&frame[6..12], &frame[..6], &[8, 0, 0x45, 0]].concat();
    error.extend((28 + quoted.len() as u16).to_be_bytes());
    error.extend([0, 0, 0, 0, 64, 1, 0, 0, 192, 0, 2, 9, 192, 0, 2, 1]);
    error.extend([11, 0, 0, 0, 0, 0, 0, 0]);
    error.extend(quoted);
    error
}

#[test]
fn root_frames_that_an_error_of_icmp_quotes_are_neither_received_nor_leaked() {
    let test = "root_frames_that_an_error_of_icmp_quotes_are_neither_received_nor_leaked";
    if !common::need_root(test) {
        return;
    }
    const EACH: u64 = 20;
    let mut bench = Bench::through();
    let device = bench.namespace.run(|| PacketSocket::open_for("c", 0x0800));
    let device = device.unwrap().unwrap();
    // Errors come to the port of the one, and to one that is not the other's.
    let end = End::Frames(EACH);
    let mut flows =
        ["back", "there"].map(|name| flow(name, 128, Rate::FramesPerSecond(1000), end.clone()));
    flows[0].to = vec![PortIndex(0)];
    bench.start(plan(Obeys::Nothing, flows.into()));
    let (mut frame, mut quoted) = ([0; 1024], 0);
    let until = Instant::now() + PATIENCE;
    while quoted < 2 * EACH {
        let Ok(length) = device.receive(&mut frame) else {
            assert!(Instant::now() < until, "{quoted} frames came");
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        device.send(&error_about(&frame[..length])).unwrap();
        quoted += 1;
    }
    let now = bench.until("all errors", |now| {
        let all = now.flows.iter().map(|flow| {
            let received = flow.received.frames + flow.duplicates + flow.corrupt;
            received + flow.leaked + flow.wrapped
        });
        all.sum::<u64>() >= 2 * EACH
    });
    for flow in &now.flows {
        assert_eq!((flow.sent.frames, flow.wrapped), (EACH, EACH));
        assert_eq!((flow.received.frames, flow.leaked), (0, 0));
    }
}

#[test]
fn root_what_comes_while_the_far_link_is_down_is_lost() {
    if !common::need_root("root_what_comes_while_the_far_link_is_down_is_lost") {
        return;
    }
    let mut bench = Bench::through();
    let device = Device::plug(&bench.namespace, |_| Fate::Held(0));
    let endless = flow("endless", 128, Rate::FramesPerSecond(1000), End::Never);
    bench.start(plan(Obeys::Nothing, vec![endless]));
    bench.until("frames", |now| now.flows[0].received.frames > 50);
    bench.engine.link(PortIndex(1), false).unwrap();
    let down = bench.until("the link down", |now| !now.ports[1].link_up);
    assert!(down.ports[0].link_up);
    bench.until("frames that leave", |now| {
        now.flows[0].sent.frames > down.flows[0].sent.frames + 100
    });
    bench.engine.link(PortIndex(1), true).unwrap();
    bench.until("frames again", |now| {
        now.flows[0].received.frames > down.flows[0].received.frames + 100
    });
    bench.engine.transmit(&[FlowIndex(0)], Order::Stop).unwrap();
    let end = bench.until("all frames in the device", |now| {
        now.flows[0].transmit == Transmit::Stopped && now.flows[0].sent.frames == device.seen()
    });
    let passed = device.unplug();
    let sent = end.flows[0].sent.frames;
    // A frame that the device could send may have been on the link as it went down.
    let left = passed.held.len() as u64;
    let now = bench.until("the last frames", |now| {
        now.flows[0].received.frames + 10 >= left
    });
    let flow = &now.flows[0];
    assert!(passed.lost > 100, "{}", passed.lost);
    assert_eq!(sent, left + passed.lost);
    assert!((left.saturating_sub(10)..=left).contains(&flow.received.frames));
    assert_eq!((flow.duplicates, flow.reordered, flow.corrupt), (0, 0, 0));
}
