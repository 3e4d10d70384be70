use super::lab::*;
use crate::dut::switch::counts::PortCounts;
use crate::dut::switch::model::Switch;

/// Counts by priority, of those that are not 0.
fn by<const N: usize>(counts: [(usize, u64); N]) -> [u64; 8] {
    let mut all = [0; 8];
    for (priority, count) in counts {
        all[priority] = count;
    }
    all
}

/// The counts of a switch with two ports.
fn of_both(switch: &Switch) -> [PortCounts; 2] {
    switch.counts().try_into().unwrap()
}

#[test]
fn data_counts_where_it_comes_in_and_where_it_leaves() {
    let mut switch = switch(&[]);
    for sequence in 0..3 {
        switch.ingress(0, 0, frame(3, sequence));
    }
    switch.ingress(0, 0, frame(5, 0));
    switch.ingress(1, 0, frame(0, 0));
    assert_eq!(left(&mut switch, 10 * MS).len(), 5);
    let first = PortCounts {
        received: by([(3, 3), (5, 1)]),
        sent: by([(0, 1)]),
        ..PortCounts::default()
    };
    let second = PortCounts {
        received: by([(0, 1)]),
        sent: by([(3, 3), (5, 1)]),
        ..PortCounts::default()
    };
    assert_eq!(switch.counts(), [first, second]);
}

#[test]
fn what_is_held_has_not_been_sent() {
    let mut switch = switch(&[]);
    switch.ingress(1, 0, pfc(3, 0xffff));
    switch.ingress(0, 1, frame(3, 0));
    switch.ingress(0, 1, frame(4, 0));
    assert_eq!(left(&mut switch, MS).len(), 1);
    let [first, second] = of_both(&switch);
    assert_eq!(first.received, by([(3, 1), (4, 1)]));
    assert_eq!(second.sent, by([(4, 1)]));
    assert_eq!(second.pfc_received, by([(3, 1)]));
    assert_eq!(
        first.held,
        by([(3, LENGTH as u64)]),
        "by the port that could be paused"
    );
    assert_eq!(second.held, by([]));
}

#[test]
fn control_frames_count_by_each_class_and_as_no_data() {
    let mut switch = switch(&[]);
    switch.ingress(0, 0, pfc(3, 1));
    switch.ingress(0, 0, pfc(3, 0));
    switch.ingress(0, 0, pfc(6, 1));
    switch.ingress(0, 0, pause(0));
    let expected = PortCounts {
        pfc_received: by([(3, 2), (6, 1)]),
        pause_received: 1,
        ..PortCounts::default()
    };
    assert_eq!(switch.counts(), [expected, PortCounts::default()]);
}

#[test]
fn a_full_queue_counts_its_drops() {
    let mut config = config();
    config.lossy_queue = 2 * LENGTH as u64;
    let mut switch = with(config, &[]);
    switch.ingress(1, 0, pfc(5, 0xffff));
    for sequence in 0..5 {
        switch.ingress(0, 1, frame(5, sequence));
    }
    let [first, second] = of_both(&switch);
    assert_eq!(first.received, by([(5, 5)]));
    assert_eq!((second.sent, second.dropped), (by([]), by([(5, 3)])));
}

#[test]
fn pauses_asked_for_count_as_sent() {
    let mut config = config();
    (config.xoff, config.xon) = (1000, 500);
    let mut switch = with(config, &[]);
    switch.ingress(1, 0, pfc(3, 100));
    for sequence in 0..3 {
        switch.ingress(0, 1, frame(3, sequence));
    }
    assert_eq!(left(&mut switch, 10 * MS).len(), 3);
    let [first, second] = of_both(&switch);
    assert_eq!(first.pfc_sent, by([(3, 2)]), "XOFF and XON");
    assert_eq!(second.pfc_sent, by([]));
}

#[test]
fn a_fault_loses_frames_without_a_count() {
    let mut switch = switch(&["drops=5:2"]);
    for sequence in 0..4 {
        switch.ingress(0, 0, frame(5, sequence));
    }
    assert_eq!(left(&mut switch, 10 * MS).len(), 2);
    let [first, second] = of_both(&switch);
    assert_eq!(first.received, by([(5, 4)]));
    assert_eq!((second.sent, second.dropped), (by([(5, 2)]), by([])));
}
