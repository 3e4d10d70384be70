use pfc_ebpf::abi::watch::Counters;

use super::*;

/// 100 frames of priority 3 sent in the window, and so many received.
fn window(received: u64) -> Window {
    let of = |frames| {
        let mut counts = [0; 9];
        counts[3] = frames;
        counts
    };
    Window {
        sent: of(100),
        received: of(received),
        compared: Some(Compared::Same),
        ..Window::default()
    }
}

fn with_flight(received: u64, before: u64, after: u64) -> Window {
    let mut window = window(received);
    (window.before[3], window.after[3]) = (before, after);
    window
}

fn verdict(window: &Window) -> Verdict {
    judge("a", "b", window).verdict
}

fn flow(lowest: u64, next: u64, distinct: u64) -> Flow {
    Flow {
        run: 1,
        flow: 2,
        priority: Some(3),
        lowest,
        next,
        distinct,
        duplicate: 0,
        beyond_window: 0,
    }
}

#[test]
fn an_idle_edge_makes_the_count_exact() {
    let report = judge("a", "b", &window(100));
    assert_eq!((report.verdict, report.rows.len()), (Verdict::NoLoss, 1));
    assert_eq!(
        (
            report.rows[0].allowance,
            report.rows[0].lost,
            &report.rows[0].reason
        ),
        (0, 0, &None)
    );
    let report = judge("a", "b", &window(99));
    assert_eq!((report.verdict, report.rows[0].lost), (Verdict::Loss, 1));
}

#[test]
fn counts_that_agree_prove_no_loss_by_themselves() {
    let report = |compared, stamped| {
        let window = Window {
            compared,
            stamped,
            ..window(100)
        };
        judge("a", "b", &window)
    };
    let unknown = report(Some(Compared::Unknown("the frames are alike")), 0);
    assert_eq!(
        (unknown.verdict, unknown.rows[0].verdict),
        (Verdict::Balanced, Verdict::Balanced)
    );
    let reason = unknown.reason.unwrap();
    assert!(
        reason.contains("the frames are alike") && reason.contains("duplicates may make up"),
        "{reason}"
    );
    assert_eq!(report(None, 0).verdict, Verdict::Balanced);
    let others = Compared::Different {
        least: 38,
        distinct: true,
    };
    let different = report(Some(others.clone()), 0);
    assert_eq!(different.verdict, Verdict::Inconclusive);
    assert!(
        different
            .reason
            .as_deref()
            .unwrap()
            .contains("at least 38 of them are others"),
        "{different:?}"
    );
    assert_eq!(report(Some(Compared::Same), 0).verdict, Verdict::NoLoss);

    // All missing frames are of another priority.
    let mut beside = Window {
        compared: Some(others),
        ..window(100)
    };
    (beside.sent[5], beside.received[5]) = (100, 62);
    assert_eq!(judge("a", "b", &beside).rows[0].verdict, Verdict::NoLoss);
    beside.received[5] = 63;
    assert_eq!(judge("a", "b", &beside).rows[0].verdict, Verdict::Balanced);
}

#[test]
fn stamps_of_all_frames_prove_that_each_came() {
    let stamped = |stamped, duplicate| {
        let flow = Flow {
            duplicate,
            ..flow(0, 100, 100)
        };
        let window = Window {
            compared: None,
            stamped,
            flows_received: vec![flow],
            ..window(100)
        };
        verdict(&window)
    };
    assert_eq!(stamped(100, 0), Verdict::NoLoss);
    assert_eq!(stamped(99, 0), Verdict::Balanced, "one of another sender");
    assert_eq!(stamped(100, 1), Verdict::Balanced, "the last may be lost");
}

#[test]
fn frames_in_flight_are_allowed_for_and_stated() {
    let report = judge("a", "b", &with_flight(103, 2, 3));
    assert_eq!(
        (report.verdict, report.rows[0].allowance),
        (Verdict::NoLoss, 5)
    );
    assert_eq!(
        report.rows[0].reason.as_deref(),
        Some("beyond the allowance of 5 frames in flight")
    );
    assert_eq!(verdict(&with_flight(105, 2, 3)), Verdict::NoLoss);
    assert_eq!(
        verdict(&with_flight(106, 2, 3)),
        Verdict::Inconclusive,
        "frames of others"
    );
    assert_eq!(
        verdict(&with_flight(99, 2, 3)),
        Verdict::Loss,
        "frames in flight make more received, never fewer"
    );
    assert_eq!(
        verdict(&with_flight(100, 50, 50)),
        Verdict::Inconclusive,
        "as many in flight as were sent"
    );
}

fn sender_side(drops: u64) -> OwnSide {
    OwnSide {
        sender: vec![("a: tx_dropped".to_owned(), drops)],
        ..OwnSide::default()
    }
}

fn receiver_side(drops: u64) -> OwnSide {
    OwnSide {
        receiver: vec![("b: rx_missed_errors".to_owned(), drops)],
        ..OwnSide::default()
    }
}

#[test]
fn what_the_interfaces_themselves_dropped_is_no_loss_between_them() {
    for side in [sender_side, receiver_side] {
        let drops = |received, drops| Window {
            own: side(drops),
            ..window(received)
        };
        assert_eq!(verdict(&drops(98, 2)), Verdict::Inconclusive);
        assert_eq!(
            verdict(&drops(98, 1)),
            Verdict::Loss,
            "more than they explain"
        );
        assert_eq!(verdict(&drops(100, 2)), Verdict::NoLoss);
        let report = judge("a", "b", &drops(98, 1));
        assert_eq!((report.rows[0].lost, report.rows[0].own_side), (2, 1));
        assert_eq!(
            report.rows[0].reason.as_deref(),
            Some("at most 1 of them by the tester's own side")
        );
    }
}

#[test]
fn what_never_left_the_tester_is_no_loss_and_is_named() {
    let own = OwnSide {
        unsent: 3,
        sender: vec![("qdisc tbf 8001: drops".to_owned(), 2)],
        receiver: Vec::new(),
    };
    assert_eq!(
        own.bound(),
        3,
        "dropped by the queue, and not sent by the driver: of the same frames"
    );
    let report = judge(
        "a",
        "b",
        &Window {
            own: own.clone(),
            ..window(97)
        },
    );
    assert_eq!(report.verdict, Verdict::Inconclusive);
    assert!(
        report.notes[0].starts_with("3 frames passed tc egress of a and were not counted as sent"),
        "{:?}",
        report.notes
    );
    assert!(
        report.notes[0].contains("ethtool -K a gso off tso off"),
        "{:?}",
        report.notes
    );
    assert_eq!(
        report.notes[1],
        "the tester's own side: qdisc tbf 8001: drops 2"
    );
    assert_eq!(verdict(&Window { own, ..window(96) }), Verdict::Loss);
}

#[test]
fn drops_on_the_own_side_explain_a_loss_but_once() {
    let two = |lost: u64| {
        let mut window = Window {
            own: receiver_side(5),
            ..window(100 - lost)
        };
        (window.sent[5], window.received[5]) = (100, 100 - lost);
        window
    };
    let report = judge("a", "b", &two(3));
    assert_eq!(
        (
            report.verdict,
            report.rows[0].verdict,
            report.rows[1].verdict
        ),
        (Verdict::Loss, Verdict::Inconclusive, Verdict::Inconclusive)
    );
    assert_eq!(
        report.reason.as_deref(),
        Some("6 frames are missing in all, at most 5 of them by the tester's own side")
    );
    assert_eq!(verdict(&two(2)), Verdict::Inconclusive);
}

#[test]
fn stamps_tell_no_loss_that_the_own_side_explains() {
    let flows = |received: u64, own: OwnSide| Window {
        flows_sent: vec![flow(0, 100, 100)],
        flows_received: vec![flow(0, 100, received)],
        own_of_flows: own,
        ..window(100)
    };
    assert_eq!(verdict(&flows(98, OwnSide::default())), Verdict::Loss);
    for own in [
        sender_side(2),
        receiver_side(2),
        OwnSide {
            unsent: 2,
            ..OwnSide::default()
        },
    ] {
        let report = judge("a", "b", &flows(98, own.clone()));
        assert_eq!(
            (report.verdict, report.rows[1].own_side, report.notes.len()),
            (Verdict::Inconclusive, 2, 1),
            "{report:?}"
        );
        assert_eq!(
            verdict(&flows(97, own.clone())),
            Verdict::Loss,
            "more than they explain"
        );
        assert_eq!(verdict(&flows(100, own)), Verdict::NoLoss);
    }
}

#[test]
fn flows_that_cannot_be_told_apart_are_judged_by_their_priority() {
    let unknown = |received| Window {
        flows_sent: vec![flow(0, 100, 100)],
        flows_lost: 7,
        ..window(received)
    };
    let report = judge("a", "b", &unknown(100));
    assert_eq!(
        (report.verdict, report.rows.len()),
        (Verdict::NoLoss, 1),
        "the flow that has no place at b"
    );
    assert!(
        report.notes[0].starts_with("7 test frames were of more flows than can be told apart"),
        "{:?}",
        report.notes
    );
    assert_eq!(verdict(&unknown(99)), Verdict::Loss);
}

#[test]
fn tags_that_the_nic_takes_out_make_no_loss() {
    let hidden = |received: u64| {
        let mut window = Window {
            tags_hidden: true,
            ..window(received)
        };
        window.received[WITHOUT_PRIORITY] = 100 - received;
        window
    };
    let report = judge("a", "b", &hidden(0));
    assert_eq!(report.verdict, Verdict::Inconclusive);
    let reason = report.rows[0].reason.as_deref().unwrap();
    assert!(
        reason.contains("rx-vlan-offload is on at b") && reason.contains("ethtool -K b rxvlan off"),
        "{reason}"
    );
    assert_eq!(verdict(&hidden(100)), Verdict::NoLoss, "it has taken none");
}

#[test]
fn what_is_for_the_device_is_no_loss_where_all_is_counted_as_one() {
    let arp = |received, for_the_device| Window {
        sender: Sender::Driver,
        for_the_device,
        ..window(received)
    };
    assert_eq!(verdict(&arp(99, 0)), Verdict::Loss);
    let report = judge("a", "b", &arp(99, 1));
    assert_eq!(report.verdict, Verdict::Inconclusive);
    assert!(
        report.notes[0].starts_with("1 frames without a priority passed tc egress"),
        "{:?}",
        report.notes
    );
    assert_eq!(verdict(&arp(98, 1)), Verdict::Loss);
}

#[test]
fn nothing_sent_or_a_disturbed_port_allows_no_verdict() {
    assert_eq!(
        verdict(&Window {
            sent: [0; 9],
            received: [0; 9],
            ..window(0)
        }),
        Verdict::Inconclusive
    );
    let report = judge(
        "a",
        "b",
        &Window {
            disturbed: Some("b was removed".to_owned()),
            ..window(0)
        },
    );
    assert_eq!(
        (report.verdict, report.reason.as_deref()),
        (Verdict::Inconclusive, Some("b was removed"))
    );
    // A priority that others alone use says nothing of those that were sent.
    let mut others = window(100);
    others.received[5] = 7;
    assert_eq!(verdict(&others), Verdict::NoLoss);
}

#[test]
fn a_count_without_priorities_is_judged_as_a_whole() {
    let mut window = Window {
        sender: Sender::Driver,
        ..window(60)
    };
    window.received[0] = 39;
    let report = judge("a", "b", &window);
    assert_eq!(report.rows.len(), 1);
    assert_eq!(
        (report.rows[0].subject, report.rows[0].lost, report.verdict),
        (Subject::All, 1, Verdict::Loss)
    );
    assert!(
        report.sender.contains("tx_packets") && report.sender.contains("without priorities"),
        "{}",
        report.sender
    );
}

#[test]
fn sequence_numbers_tell_a_loss_wherever_it_is() {
    let row = |received: Option<Flow>, sent: Option<Flow>| {
        let (received, sent): (Vec<_>, Vec<_>) =
            (received.into_iter().collect(), sent.into_iter().collect());
        let row = flow_rows(&received, &sent, 0).remove(0);
        (row.sent, row.lost, row.verdict)
    };
    let sent = Some(flow(10, 110, 100));
    assert_eq!(
        row(Some(flow(10, 110, 100)), sent),
        (100, 0, Verdict::NoLoss)
    );
    assert_eq!(
        row(Some(flow(10, 110, 99)), sent),
        (100, 1, Verdict::Loss),
        "in the middle"
    );
    assert_eq!(
        row(Some(flow(12, 110, 98)), sent),
        (100, 2, Verdict::Loss),
        "at the beginning"
    );
    assert_eq!(
        row(Some(flow(10, 109, 99)), sent),
        (100, 1, Verdict::Loss),
        "at the end"
    );
    assert_eq!(
        row(Some(flow(7, 115, 108)), sent),
        (108, 0, Verdict::NoLoss),
        "sent before and after the window"
    );
    assert_eq!(row(None, sent), (100, 100, Verdict::Loss), "all");
    assert_eq!(
        row(Some(flow(5, 105, 100)), None),
        (100, 0, Verdict::NoLoss),
        "between the first and the last that came"
    );
    assert_eq!(
        row(
            Some(Flow {
                beyond_window: 1,
                ..flow(10, 110, 98)
            }),
            sent
        )
        .2,
        Verdict::Inconclusive
    );
}

#[test]
fn a_loss_that_the_counts_allow_for_is_told_by_the_stamps() {
    let mut window = with_flight(102, 2, 3);
    window.flows_sent = vec![flow(0, 100, 100)];
    window.flows_received = vec![flow(0, 100, 99)];
    assert_eq!(verdict(&window), Verdict::Loss);
}

#[test]
fn frames_without_a_priority_count_only_where_there_are_no_others() {
    let mut window = window(100);
    (window.sent[8], window.received[8]) = (3, 0);
    let report = judge("a", "b", &window);
    assert_eq!(
        (report.verdict, report.rows[1].lost),
        (Verdict::NoLoss, 3),
        "shown all the same"
    );
    (window.sent[3], window.received[3]) = (0, 0);
    assert_eq!(verdict(&window), Verdict::Loss);
}

#[test]
fn pause_frames_are_for_the_port_alone() {
    let mut counters = Counters::ZERO;
    counters.by_priority[3].frames = 5;
    counters.no_priority.frames = 9;
    (counters.pfc_frames, counters.pause.xoff, counters.pause.xon) = (3, 1, 1);
    counters.malformed[Malformed::ControlOpcode as usize] = 1;
    let reading = Reading {
        time: 0,
        counters,
        paused: [0; 9],
    };
    assert_eq!(counts(&reading), [0, 0, 0, 5, 0, 0, 0, 0, 3]);
}
