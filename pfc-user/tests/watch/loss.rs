//! Loss between two ports: through a device in the middle that loses what the test tells it to.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::socket::{MsgFlags, recv};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Dscp, LineRate, Priority};
use serde_json::{Value, json};
use validator::driver::kernel::clock;
use validator::driver::kernel::packet::PacketSocket;
use validator::driver::traffic::sendmmsg::Sendmmsg;
use validator::driver::traffic::{Addresses, Burst, FlowControl, Source, TrafficPlan};
use validator_core::plan::{FlowPlan, PortName, Role};

use crate::common::need_root;
use crate::packet_socket::packet_socket;
use crate::watch::lab::{BEYOND, Lab, MACS, with_room};
use crate::watch::lifetime::wait_until_detached;

/// All that arrives on an interface of the calling thread's namespace.
pub fn capture(interface: &str) -> OwnedFd {
    let fd = packet_socket(interface, Duration::from_millis(20));
    with_room(&fd);
    fd
}

/// Runs `test` while frames are forwarded from d0 to d1. A frame is lost if `loses` returns true
/// for its number and octets.
pub fn with_middle<T>(
    lab: &Lab,
    loses: impl Fn(usize, &[u8]) -> bool + Sync,
    test: impl FnOnce(&AtomicUsize) -> T,
) -> T {
    let copies = |number, frame: &[u8]| usize::from(!loses(number, frame));
    with_copies(lab, copies, test)
}

/// The same, where each frame leaves so often as `copies` returns.
fn with_copies<T>(
    lab: &Lab,
    copies: impl Fn(usize, &[u8]) -> usize + Sync,
    test: impl FnOnce(&AtomicUsize) -> T,
) -> T {
    let (stop, passed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (from, to) = lab
        .device
        .run(|| (capture("d0"), PacketSocket::open("d1").unwrap()))
        .unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut frame = [0; 2048];
            let mut number = 0;
            while !stop.load(Ordering::Acquire) {
                match recv(from.as_raw_fd(), &mut frame, MsgFlags::empty()) {
                    Ok(length) => {
                        for _ in 0..copies(number, &frame[..length]) {
                            to.send(&frame[..length]).unwrap();
                        }
                        number += 1;
                        passed.store(number, Ordering::Release);
                    }
                    Err(Errno::EAGAIN | Errno::EINTR) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        // Also where the test fails, so that the scope ends.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&passed)));
        stop.store(true, Ordering::Release);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The judgement at the end.
pub fn judged(objects: &[Value]) -> &Value {
    objects
        .iter()
        .find(|object| object["type"] == "loss")
        .unwrap_or_else(|| panic!("no judgement: {objects:?}"))
}

/// Asserts the exit code and the verdict.
#[track_caller]
pub fn assert_verdict(report: &Value, code: Option<i32>, expected: (i32, &str)) {
    let (expected_code, verdict) = expected;
    assert_eq!(
        (code, report["verdict"].as_str()),
        (Some(expected_code), Some(verdict)),
        "{report:#}"
    );
}

/// The [`row`] of a priority.
pub fn of_priority(report: &Value, priority: u8) -> Value {
    row(report, &json!({ "priority": priority }))
}

/// Sent, received, lost, allowance and verdict of a subject.
pub fn row(report: &Value, subject: &Value) -> Value {
    let rows = report["rows"].as_array().unwrap();
    let row = rows
        .iter()
        .find(|row| row["subject"] == *subject)
        .unwrap_or_else(|| panic!("no {subject}: {report}"));
    json!([
        row["sent"],
        row["received"],
        row["lost"],
        row["allowance"],
        row["verdict"]
    ])
}

fn dscp_of(frame: &[u8]) -> Option<u8> {
    (frame.get(12..14)? == [8, 0]).then(|| frame[15] >> 2)
}

/// A payload unlike others.
fn numbered(number: u32) -> [u8; 100] {
    let mut payload = [0; 100];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    payload
}

/// Judges 1000 datagrams with these payloads of which a device loses 40 and sends 40 twice.
fn balanced(payload: impl Fn(u32) -> [u8; 100]) -> (Value, Option<i32>) {
    let lab = Lab::new();
    let copies = |number, _: &[u8]| match number % 25 {
        3 => 0,
        7 => 2,
        _ => 1,
    };
    let (objects, code) = with_copies(&lab, copies, |_| {
        let running = lab.watch("--loss t0:t1 --duration 2s");
        let sender = lab.sender(26);
        // Else the kernel numbers packets in the IP header.
        let never_fragment = libc::IP_PMTUDISC_DO;
        // SAFETY: a number, and its length.
        let set = unsafe {
            libc::setsockopt(
                sender.as_raw_fd(),
                libc::IPPROTO_IP,
                libc::IP_MTU_DISCOVER,
                (&raw const never_fragment).cast(),
                size_of_val(&never_fragment) as u32,
            )
        };
        Errno::result(set).unwrap();
        for number in 0..1000 {
            sender.send_to(&payload(number), (BEYOND, 9)).unwrap();
        }
        running.end()
    });
    (judged(&objects).clone(), code)
}

#[test]
fn root_a_loss_for_which_duplicates_make_up_is_not_called_none() {
    if !need_root("root_a_loss_for_which_duplicates_make_up_is_not_called_none") {
        return;
    }
    let (report, code) = balanced(numbered);
    assert_verdict(&report, code, (3, "inconclusive"));
    assert_eq!(
        of_priority(&report, 3),
        json!([1000, 1000, 0, 0, "balanced"])
    );
    let reason = report["reason"].as_str().unwrap();
    let words: Vec<_> = reason.split(' ').collect();
    let least = words.iter().position(|word| *word == "least").unwrap();
    let others: u64 = words[least + 1].parse().unwrap();
    // Two of them may be of one class.
    assert!((36..=40).contains(&others), "{reason}");

    let (report, code) = balanced(|_| [0; 100]);
    assert_verdict(&report, code, (3, "balanced"));
    let reason = report["reason"].as_str().unwrap();
    assert!(reason.contains("the frames are alike"), "{reason}");
}

/// Sends 1000 datagrams of DSCP 26 and 500 of DSCP 0 through the stack. Every `one_in`th of DSCP 26
/// is lost.
fn through_the_stack(one_in: Option<usize>) -> (Vec<Value>, Option<i32>) {
    let lab = Lab::new();
    let lost = AtomicUsize::new(0);
    let loses = |_, frame: &[u8]| {
        let number = if dscp_of(frame) == Some(26) {
            lost.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            return false;
        };
        one_in.is_some_and(|one_in| number.is_multiple_of(one_in))
    };
    with_middle(&lab, loses, |passed| {
        let running = lab.watch("--loss t0:t1 --duration 3s");
        for (dscp, count) in [(26, 1000), (0, 500)] {
            let sender: UdpSocket = lab.sender(dscp);
            for number in 0..count {
                sender.send_to(&numbered(number), (BEYOND, 9)).unwrap();
            }
        }
        let ended = running.end();
        assert_eq!(passed.load(Ordering::Acquire), 1500);
        ended
    })
}

#[test]
fn root_without_loss_there_is_none() {
    if !need_root("root_without_loss_there_is_none") {
        return;
    }
    let (objects, code) = through_the_stack(None);
    let report = judged(&objects);
    assert_verdict(report, code, (0, "no-loss"));
    assert_eq!(of_priority(report, 3), json!([1000, 1000, 0, 0, "no-loss"]));
    assert_eq!(of_priority(report, 0), json!([500, 500, 0, 0, "no-loss"]));
    assert_eq!(report["rows"].as_array().unwrap().len(), 2);
    assert_eq!(report["sender"], "what t0 sent was counted at tc egress");
}

#[test]
fn root_loss_is_counted_by_priority_and_exactly() {
    if !need_root("root_loss_is_counted_by_priority_and_exactly") {
        return;
    }
    let (objects, code) = through_the_stack(Some(100));
    let report = judged(&objects);
    assert_verdict(report, code, (1, "loss"));
    assert_eq!(of_priority(report, 3), json!([1000, 990, 10, 0, "loss"]));
    assert_eq!(of_priority(report, 0), json!([500, 500, 0, 0, "no-loss"]));
}

/// Sends stamped frames by the validator's own sender, which bypasses tcx. A frame is lost if
/// `loses` returns true for its number.
fn past_the_stack(loses: impl Fn(usize) -> bool + Sync) -> (Vec<Value>, Option<i32>, u64) {
    let lab = Lab::new();
    with_middle(
        &lab,
        |number, _| loses(number),
        |_| {
            let running = lab.watch("--loss t0:t1 --duration 3s");
            let priority = Priority::new(3).unwrap();
            let flow = FlowPlan {
                from: PortName::TX,
                to: PortName::RX,
                id: 5,
                role: Role::Test,
                priority,
                dscp: Dscp::new(26).unwrap(),
                pcp: None,
                rate: 10_000_000,
                length: 200,
            };
            let addresses = Addresses {
                source_mac: MACS[0],
                destination_mac: MACS[1],
                source_ip: Ipv4Addr::new(198, 18, 0, 1).into(),
                destination_ip: Ipv4Addr::new(198, 18, 0, 2).into(),
            };
            let epoch = clock::now();
            let plan = TrafficPlan {
                interface: "t0",
                run: 77,
                flows: &[flow],
                addresses,
                receivers: &[],
                line_rate: LineRate::from_bits_per_second(1_000_000_000).unwrap(),
                max_burst: 4_000_000,
                epoch,
                width: 1_000_000_000,
                windows: 1,
                cpus: &[],
            };
            let open = || Sendmmsg::open(&plan, FlowControl::Unaware("no DUT".into()));
            let mut sender = lab.tester.run(open).unwrap().unwrap();
            let from = clock::now() + 1_000_000;
            sender
                .start(Burst {
                    phase: Phase::Baseline,
                    from,
                    to: from + 200_000_000,
                    load: 100,
                })
                .unwrap();
            while !sender.wait(clock::now() + 1_000_000_000).unwrap() {}
            let sent = sender
                .report()
                .unwrap()
                .report
                .flows
                .iter()
                .map(|flow| flow.frames)
                .sum();
            let (objects, code) = running.end();
            (objects, code, sent)
        },
    )
}

#[test]
fn root_stamps_tell_exactly_what_was_lost_of_frames_that_pass_tcx_by() {
    if !need_root("root_stamps_tell_exactly_what_was_lost_of_frames_that_pass_tcx_by") {
        return;
    }
    // 10 Mbit/s of frames of 200 octets for 0.2 s: above a thousand.
    let (objects, code, sent) = past_the_stack(|number| number % 300 == 299);
    let report = judged(&objects);
    let lost = sent / 300;
    assert!(lost > 0, "{sent}");
    assert_verdict(report, code, (1, "loss"));
    assert_eq!(
        row(report, &json!("all")),
        json!([sent, sent - lost, lost, 0, "loss"])
    );
    let flow = row(report, &json!({ "flow": [77, 5] }));
    // The last may be among the lost: then the flow's own numbers end before it.
    let tail = u64::from(sent.is_multiple_of(300));
    assert_eq!(
        flow,
        json!([sent - tail, sent - lost, lost - tail, 0, "loss"])
    );
    let sender = report["sender"].as_str().unwrap();
    assert!(
        sender.contains("by its driver (tx_packets)") && sender.contains("did not pass tc egress"),
        "{sender}"
    );

    let (objects, code, sent) = past_the_stack(|_| false);
    let report = judged(&objects);
    assert_verdict(report, code, (0, "no-loss"));
    assert_eq!(
        row(report, &json!({ "flow": [77, 5] })),
        json!([sent, sent, 0, 0, "no-loss"])
    );
}

#[test]
fn root_a_driver_whose_counts_may_be_old_is_waited_for() {
    if !need_root("root_a_driver_whose_counts_may_be_old_is_waited_for") {
        return;
    }
    let lab = Lab::new();
    // Nothing is known of how soon a bridge counts.
    for arguments in [
        "link add name tx type bridge",
        "link set dev t0 master tx",
        "link set dev tx up",
        "address flush dev t0",
        "address add 192.0.2.1/24 dev tx",
        "neighbour add 192.0.2.2 lladdr 02:00:00:00:00:02 dev tx",
    ] {
        lab.ip(&lab.tester, arguments);
    }
    let (objects, code) = with_middle(
        &lab,
        |_, _| false,
        |_| {
            let mut running = lab.start("--loss tx:t1 --duration 3s");
            let sender = lab.sender(26);
            let send =
                || (0..100).for_each(|_| assert!(sender.send_to(&[0; 100], (BEYOND, 9)).is_ok()));
            running.event("before-window");
            send();
            running.event("watching");
            send();
            running.end()
        },
    );
    let report = judged(&objects);
    let row = of_priority(report, 3);
    // Frames of before it are in the window, or in its allowance, whichever it opened after.
    assert!(row[0].as_u64().unwrap() >= 100 && row[2] == 0, "{report:#}");
    assert_ne!(
        (code, &report["verdict"]),
        (Some(1), &json!("loss")),
        "{report:#}"
    );
    assert_eq!(report["sender"], "what tx sent was counted at tc egress");
}

#[test]
fn root_nothing_sent_proves_nothing() {
    if !need_root("root_nothing_sent_proves_nothing") {
        return;
    }
    let (objects, code) = Lab::new().watch("--loss t0:t1 --duration 100ms").end();
    let report = judged(&objects);
    assert_verdict(report, code, (3, "inconclusive"));
    assert_eq!(report["reason"], "nothing was sent in the window");
}

/// Judges a window in which `disturb` happens, and waits for its `event` if there is one. Returns
/// the reason of the inconclusive verdict.
pub fn disturbed(event: Option<&str>, disturb: impl FnOnce(&Lab)) -> Value {
    let lab = Lab::new();
    let mut running = lab.watch("--loss t0:t1 --duration 3s");
    disturb(&lab);
    if let Some(event) = event {
        running.event(event);
    }
    let (objects, code) = running.end();
    wait_until_detached(&lab);
    let report = judged(&objects);
    assert_verdict(report, code, (3, "inconclusive"));
    report["reason"].clone()
}

#[test]
fn root_a_port_without_carrier_meanwhile_allows_no_verdict() {
    if !need_root("root_a_port_without_carrier_meanwhile_allows_no_verdict") {
        return;
    }
    let down = |lab: &Lab| drop(lab.ip(&lab.device, "link set dev d1 down"));
    assert_eq!(
        disturbed(Some("carrier-lost"), down),
        "t1 had no carrier for a time"
    );
    let flap = |lab: &Lab| {
        down(lab);
        lab.ip(&lab.device, "link set dev d1 up");
    };
    // The kernel waits a while before it tells of a change, and this one is undone by then.
    assert_eq!(disturbed(None, flap), "t1 had no carrier for a time");
}

#[test]
fn root_a_port_that_is_removed_meanwhile_allows_no_verdict() {
    if !need_root("root_a_port_that_is_removed_meanwhile_allows_no_verdict") {
        return;
    }
    for port in ["t0", "t1"] {
        let reason = disturbed(Some("removed"), |lab| {
            drop(lab.ip(&lab.tester, &format!("link delete {port}")))
        });
        assert_eq!(reason, format!("{port} was removed"));
    }
}

#[test]
fn root_a_port_that_is_removed_while_frames_are_awaited_allows_no_verdict() {
    if !need_root("root_a_port_that_is_removed_while_frames_are_awaited_allows_no_verdict") {
        return;
    }
    for port in ["t0", "t1"] {
        let lab = Lab::new();
        let mut running = lab.watch("--loss t0:t1 --duration 3s");
        // Nobody forwards them.
        lab.sender(26).send_to(&[0; 100], (BEYOND, 9)).unwrap();
        running.event("window-closed");
        lab.ip(&lab.tester, &format!("link delete {port}"));
        let (objects, code) = running.end();
        let report = judged(&objects);
        assert_verdict(report, code, (3, "inconclusive"));
        assert_eq!(report["reason"], format!("{port} was removed"));
    }
}

#[test]
fn root_a_port_that_is_removed_before_the_window_opens_ends_the_command() {
    if !need_root("root_a_port_that_is_removed_before_the_window_opens_ends_the_command") {
        return;
    }
    let lab = Lab::new();
    let mut running = lab.start("--loss t0:t1 --max-latency 60min");
    running.event("before-window");
    lab.ip(&lab.tester, "link delete t1");
    wait_until_detached(&lab);
    assert_eq!(running.event("removed")["interface"], "t1");
    let (objects, code) = running.end();
    assert_eq!(code, Some(3));
    assert!(
        objects
            .iter()
            .any(|object| object["type"] == "summary" && object["interface"] == "t0"),
        "{objects:?}"
    );
}

#[test]
fn root_a_second_signal_ends_the_wait_for_frames_at_once() {
    if !need_root("root_a_second_signal_ends_the_wait_for_frames_at_once") {
        return;
    }
    let lab = Lab::new();
    let mut running = lab.watch("--loss t0:t1");
    lab.sender(26).send_to(&[0; 100], (BEYOND, 9)).unwrap();
    running.signal(Signal::SIGINT);
    running.event("window-closed");
    running.signal(Signal::SIGINT);
    let (objects, code) = running.end();
    let report = judged(&objects);
    assert_verdict(report, code, (130, "inconclusive"));
    assert_eq!(
        report["reason"],
        "interrupted while frames may have been on their way"
    );
}

#[test]
fn root_a_port_with_another_mtu_meanwhile_allows_no_verdict() {
    if !need_root("root_a_port_with_another_mtu_meanwhile_allows_no_verdict") {
        return;
    }
    let smaller = |lab: &Lab| drop(lab.ip(&lab.tester, "link set dev t1 mtu 500"));
    assert_eq!(
        disturbed(Some("mtu"), smaller),
        "t1 got an MTU of 500 in place of 1500"
    );
}
