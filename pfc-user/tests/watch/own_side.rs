//! Frames that are missing at the receiving port but were not lost between the two ports: the
//! tester's own drops, hidden tags, stamps of too many flows.

use std::os::fd::AsRawFd;

use nix::sys::socket::{MsgFlags, send};
use pfc_ebpf::stamp::{LEN, Phase, Stamp, UDP_PORT};
use serde_json::{Value, json};
use validator::driver::kernel::link::{self, Feature};

use crate::common::{need_root, need_tool};
use crate::frames::TestFrame;
use crate::watch::lab::{BEYOND, Lab, MACS};
use crate::watch::loss::{assert_verdict, capture, judged, of_priority, row, with_middle};

/// Runs `test` with a device that loses every `one_in`th frame and has an MTU of 500, so that the
/// sending veth drops longer frames.
fn with_short_device(
    one_in: usize,
    test: impl FnOnce(&Lab) -> (Vec<Value>, Option<i32>),
) -> (Value, Option<i32>) {
    let lab = Lab::new();
    lab.ip(&lab.device, "link set dev d0 mtu 500");
    with_middle(
        &lab,
        |number, _| number % one_in == one_in - 1,
        |_| {
            let (objects, code) = test(&lab);
            (judged(&objects).clone(), code)
        },
    )
}

/// Sends 100 datagrams that pass and 10 that are too long for the other end.
fn mixed(lab: &Lab) {
    let sender = lab.sender(26);
    for number in 0..110 {
        sender
            .send_to(
                &vec![0; if number % 11 == 0 { 900 } else { 100 }],
                (BEYOND, 9),
            )
            .unwrap();
    }
}

fn notes(report: &Value) -> String {
    report["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| format!("{note}\n"))
        .collect()
}

#[test]
fn root_what_the_senders_driver_drops_is_no_loss_between_the_ports() {
    if !need_root("root_what_the_senders_driver_drops_is_no_loss_between_the_ports") {
        return;
    }
    let through = |one_in| {
        with_short_device(one_in, |lab| {
            let running = lab.watch("--loss t0:t1 --duration 3s");
            mixed(lab);
            running.end()
        })
    };
    let (report, code) = through(1_000_000);
    assert_verdict(&report, code, (3, "inconclusive"));
    assert_eq!(
        of_priority(&report, 3),
        json!([110, 100, 10, 0, "inconclusive"])
    );
    assert!(
        notes(&report).contains(
            "10 frames passed tc egress of t0 and were not counted as sent by its driver"
        ),
        "{report:#}"
    );
    assert!(notes(&report).contains("t0: tx_dropped 10"), "{report:#}");

    let (report, code) = through(5);
    assert_verdict(&report, code, (1, "loss"));
    assert_eq!(of_priority(&report, 3), json!([110, 80, 30, 0, "loss"]));
    assert_eq!(report["rows"][0]["own_side"], 10, "{report:#}");
}

#[test]
fn root_what_the_senders_queue_drops_is_no_loss_between_the_ports() {
    const NAME: &str = "root_what_the_senders_queue_drops_is_no_loss_between_the_ports";
    if !need_root(NAME) || !need_tool(NAME, "tc") {
        return;
    }
    let lab = Lab::new();
    lab.tool(
        &lab.tester,
        "tc",
        "qdisc add dev t0 root tbf rate 8mbit burst 2kb limit 3000",
    );
    let (objects, code) = with_middle(
        &lab,
        |_, _| false,
        |_| {
            let running = lab.watch("--loss t0:t1 --duration 3s");
            let sender = lab.sender(26);
            for _ in 0..1000 {
                sender.send_to(&[0; 500], (BEYOND, 9)).unwrap();
            }
            running.end()
        },
    );
    let report = judged(&objects);
    assert_verdict(report, code, (3, "inconclusive"));
    let of_row = &report["rows"][0];
    let lost = of_row["lost"].as_u64().unwrap();
    assert!(lost > 0, "{report:#}");
    assert_eq!(
        (&of_row["sent"], of_row["received"].as_u64()),
        (&json!(1000), Some(1000 - lost))
    );
    assert!(
        notes(report).contains(&format!(
            "{lost} frames passed tc egress of t0 and were not counted as sent"
        )),
        "{report:#}"
    );
    let queue = lab.tool(&lab.tester, "tc", "-s qdisc show dev t0");
    assert!(queue.contains(&format!("dropped {lost},")), "{queue}");
    let handle = queue
        .split_whitespace()
        .nth(2)
        .unwrap()
        .trim_end_matches(':');
    assert!(
        notes(report).contains(&format!("qdisc tbf {handle}: drops {lost}")),
        "{report:#}{queue}"
    );
}

/// A stamped datagram's payload, of that many octets.
fn stamped(flow: u16, sequence: u64, length: usize) -> Vec<u8> {
    let mut octets = Stamp {
        run: 77,
        flow,
        phase: Phase::Baseline,
        sequence,
        time: 0,
    }
    .emit()
    .to_vec();
    octets.resize(length.max(LEN), 0);
    octets
}

#[test]
fn root_frames_and_own_drops_from_before_the_window_count_nowhere() {
    if !need_root("root_frames_and_own_drops_from_before_the_window_count_nowhere") {
        return;
    }
    let (report, code) = with_short_device(1_000_000, |lab| {
        let sender = lab.sender(26);
        let send = |sequence, length| {
            assert!(
                sender
                    .send_to(&stamped(5, sequence, length), (BEYOND, UDP_PORT))
                    .is_ok()
            )
        };
        (0..100).for_each(|sequence| send(sequence, if sequence % 10 == 5 { 900 } else { 100 }));
        let mut running = lab.start("--loss t0:t1 --max-latency 3s --duration 3s");
        running.event("watching");
        (100..200).for_each(|sequence| send(sequence, 100));
        running.end()
    });
    assert_verdict(&report, code, (0, "no-loss"));
    for subject in [json!({ "flow": [77, 5] }), json!({ "priority": 3 })] {
        assert_eq!(
            row(&report, &subject),
            json!([100, 100, 0, 0, "no-loss"]),
            "{report:#}"
        );
    }
    assert!(!notes(&report).contains("tx_dropped"), "{report:#}");
}

#[test]
fn root_more_flows_than_there_are_places_for_are_judged_by_priority() {
    if !need_root("root_more_flows_than_there_are_places_for_are_judged_by_priority") {
        return;
    }
    let lab = Lab::new();
    let (objects, code) = with_middle(
        &lab,
        |_, _| false,
        |_| {
            let mut running =
                lab.start("--loss t0:t1 --max-latency 3s --duration 3s --interval 50ms");
            running.event("watching");
            let sender = lab.sender(26);
            for flow in 0..1025 {
                sender
                    .send_to(&stamped(flow, 0, 100), (BEYOND, UDP_PORT))
                    .unwrap();
            }
            let live = |object: &Value| {
                object["interface"] == "t1" && object["total"]["untold_stamped_frames"] == 1
            };
            running.wait_for("the frame without a place", live);
            running.end()
        },
    );
    let report = judged(&objects);
    assert_verdict(report, code, (0, "no-loss"));
    assert_eq!(of_priority(report, 3), json!([1025, 1025, 0, 0, "no-loss"]));
    assert!(
        // One at each port.
        notes(report).contains("2 test frames were of more flows than can be told apart"),
        "{report:#}"
    );
    let rows = report["rows"].as_array().unwrap();
    assert!(
        rows.iter().all(|row| row["subject"]["flow"].is_null()),
        "{report:#}"
    );
}

#[test]
fn root_tags_that_xdp_does_not_see_make_no_loss() {
    if !need_root("root_tags_that_xdp_does_not_see_make_no_loss") {
        return;
    }
    let lab = Lab::new();
    // A bridge hands the tag on beside the frame, where the port lets it.
    lab.ip(&lab.device, "link add name bridge type bridge");
    lab.ip(&lab.device, "link set dev bridge up");
    for port in ["d0", "d1"] {
        lab.ip(&lab.device, &format!("link set dev {port} master bridge"));
    }
    let watch = || {
        let running = lab.watch("--loss t0:t1 --trust pcp --duration 3s");
        let stamp = Stamp {
            run: 1,
            flow: 0,
            phase: Phase::Baseline,
            sequence: 0,
            time: 0,
        };
        let mut frame = TestFrame {
            tags: vec![(0x8100, 5 << 13 | 7)],
            ..TestFrame::new(stamp)
        }
        .octets();
        frame[..6].copy_from_slice(&MACS[1]);
        frame[6..12].copy_from_slice(&MACS[0]);
        // To no port of a test frame: told by its priority alone.
        frame[18 + 22..18 + 24].copy_from_slice(&9u16.to_be_bytes());
        let port = lab.tester.run(|| capture("t0")).unwrap();
        for number in 0..100 {
            // Each unlike the others.
            frame[18 + 28] = number;
            send(port.as_raw_fd(), &frame, MsgFlags::empty()).unwrap();
        }
        let (objects, code) = running.end();
        (judged(&objects).clone(), code)
    };
    let offload = |on| {
        link::set_feature(&lab.tester, "t1", Feature::RxVlan, on).unwrap();
        // Where a NIC takes the tag out, a veth's other end has to leave it out.
        link::set_feature(&lab.device, "d1", Feature::TxVlan, on).unwrap();
    };
    offload(true);
    let (report, code) = watch();
    assert_verdict(&report, code, (3, "inconclusive"));
    assert_eq!(
        of_priority(&report, 5),
        json!([100, 0, 100, 0, "inconclusive"])
    );
    let reason = report["rows"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("rx-vlan-offload is on at t1")
            && reason.contains("`ethtool -K t1 rxvlan off`"),
        "{reason}"
    );

    offload(false);
    let (report, code) = watch();
    assert_eq!(
        (code, of_priority(&report, 5)),
        (Some(0), json!([100, 100, 0, 0, "no-loss"])),
        "{report:#}"
    );
}
