//! More than two ports: addresses, and buffers by the port where a frame came in.

use super::lab::*;
use crate::dut::switch::config::{ConfigError, SwitchConfig};
use crate::dut::switch::model::Switch;
use crate::plan::Nanos;

/// The ports by which a frame leaves that comes in at `port`.
fn leaves_by(switch: &mut Switch, port: usize, frame: Vec<u8>) -> Vec<usize> {
    let now = switch.now() + 1;
    switch.ingress(port, now, frame);
    let left = departures(switch, now + MS).into_iter();
    left.map(|left| left.port).collect()
}

#[test]
fn a_switch_has_two_to_eight_ports() {
    for (ports, expected) in [
        (1, Err(ConfigError::Ports(1))),
        (2, Ok(())),
        (8, Ok(())),
        (9, Err(ConfigError::Ports(9))),
    ] {
        let config = SwitchConfig {
            macs: vec![[2; 6]; ports],
            ..config()
        };
        assert_eq!(config.check(), expected);
    }
}

#[test]
fn a_frame_leaves_by_the_port_of_its_destination_and_by_all_others_where_that_is_not_known() {
    let macs = (0..4).map(station).collect();
    let mut switch = with(SwitchConfig { macs, ..config() }, &[]);
    let mut leaves =
        |from: usize, to: usize, port| leaves_by(&mut switch, port, between(from, to, frame(0, 0)));
    assert_eq!(leaves(0, 3, 0), [1, 2, 3], "not known yet");
    assert_eq!(leaves(3, 0, 3), [0]);
    assert_eq!(leaves(0, 3, 0), [3]);
    let none: [usize; 0] = [];
    assert_eq!(leaves(9, 0, 0), none, "a neighbour behind the same port");
    assert_eq!(leaves(3, 0, 1), [0], "a station has moved to port 1");
    assert_eq!(leaves(0, 3, 0), [1]);
    let mut group = between(1, 0, frame(0, 0));
    group[..6].copy_from_slice(&[1, 0, 0x5e, 0, 0, 1]);
    assert_eq!(leaves_by(&mut switch, 2, group.clone()), [0, 1, 3]);
    group[6] |= 1;
    assert_eq!(
        leaves_by(&mut switch, 2, group),
        [0, 1, 3],
        "no source is a group"
    );
}

#[test]
fn a_full_table_learns_no_more_and_keeps_what_it_knows() {
    let mut switch = introduced(3, config());
    for number in 0..20_000_u16 {
        let mut frame = between(1, 0, frame_of(0, 0, 64));
        frame[8..10].copy_from_slice(&number.to_be_bytes());
        leaves_by(&mut switch, 1, frame);
    }
    let mut to_the_last = between(0, 1, frame(0, 0));
    to_the_last[2..4].copy_from_slice(&19_999_u16.to_be_bytes());
    assert_eq!(leaves_by(&mut switch, 0, to_the_last.clone()), [1, 2]);
    to_the_last[2..4].copy_from_slice(&7_u16.to_be_bytes());
    assert_eq!(leaves_by(&mut switch, 0, to_the_last), [1]);
}

/// A flow at line rate that obeys PFC.
struct Sender {
    port: usize,
    to: usize,
    flow: u8,
    sent: u64,
    paused_until: Nanos,
}

/// The frames that left a switch.
#[derive(Default)]
struct Left {
    /// The port where each test frame came in, and that where it left.
    carried: Vec<(usize, usize)>,
    /// Port and priority of each pause that was asked for.
    asked: Vec<(usize, u8)>,
}

/// Has the senders send until `end`.
fn drive(switch: &mut Switch, senders: &mut [Sender], end: Nanos) -> Left {
    let mut found = Left::default();
    let mut now = switch.now();
    while now < end {
        now += FRAME;
        for left in departures(switch, now) {
            if stamp(&left.frame).is_some() {
                found.carried.push((usize::from(left.frame[11]), left.port));
                continue;
            }
            for (class, quanta) in asked(&left.frame) {
                if quanta > 0 {
                    found.asked.push((left.port, class));
                }
                let told = senders.iter_mut();
                let told = told.filter(|sender| (sender.port, sender.flow) == (left.port, class));
                told.for_each(|sender| sender.paused_until = now + Nanos::from(quanta) * 512);
            }
        }
        for sender in senders
            .iter_mut()
            .filter(|sender| sender.paused_until <= now)
        {
            let frame = between(sender.port, sender.to, frame(sender.flow, sender.sent));
            switch.ingress(sender.port, now, frame);
            sender.sent += 1;
        }
    }
    let rest = departures(switch, now + 1000 * MS).into_iter();
    let rest = rest.filter(|left| stamp(&left.frame).is_some());
    found
        .carried
        .extend(rest.map(|left| (usize::from(left.frame[11]), left.port)));
    found
}

fn sender(port: usize, to: usize, flow: u8) -> Sender {
    Sender {
        port,
        to,
        flow,
        sent: 0,
        paused_until: 0,
    }
}

#[test]
fn two_ports_into_one_are_both_paused_and_nothing_is_lost() {
    let mut switch = introduced(4, config());
    let mut senders = [sender(0, 2, 3), sender(1, 2, 3)];
    let Left { carried, mut asked } = drive(&mut switch, &mut senders, 200 * MS);
    let of = |port| carried.iter().filter(|way| **way == (port, 2)).count() as u64;
    assert_eq!([of(0), of(1)], [senders[0].sent, senders[1].sent]);
    assert_eq!(carried.len() as u64, of(0) + of(1));
    // One line out for two lines in.
    let line = 200 * MS / FRAME;
    assert!(
        (line..line + line / 4).contains(&(of(0) + of(1))),
        "{}",
        of(0) + of(1)
    );
    assert!(of(0).abs_diff(of(1)) < line / 10, "{} {}", of(0), of(1));
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(
        asked,
        [(0, 3), (1, 3)],
        "whoever fills the buffer, and the priority that does"
    );
    assert!(switch.drops().is_empty());
}

#[test]
fn a_paused_port_holds_up_its_own_traffic_alone() {
    let mut switch = introduced(4, config());
    // For 33.6 ms.
    switch.ingress(2, MS, pfc(3, 0xffff));
    let mut senders = [sender(0, 2, 3), sender(1, 3, 3), sender(0, 3, 4)];
    let Left { mut asked, .. } = drive(&mut switch, &mut senders, 30 * MS);
    asked.sort_unstable();
    asked.dedup();
    // The other two share the line of port 3, so that each fills its own buffer in the end.
    assert_eq!(asked, [(0, 3), (0, 4), (1, 3)]);
    let line = 29 * MS / FRAME;
    assert!(
        senders[1].sent + senders[2].sent >= line,
        "{}",
        senders[1].sent
    );
    assert!(senders[0].sent < 600, "{}", senders[0].sent);
    assert!(switch.drops().is_empty());
}

#[test]
fn faults_of_more_than_two_ports_do_what_they_say() {
    let mut pauses = faulty(4, config(), &["pauses-all-ports"]);
    let now = pauses.now() + 1;
    pauses.ingress(2, now, pfc(3, 0xffff));
    let none: [usize; 0] = [];
    assert_eq!(leaves_by(&mut pauses, 1, between(1, 3, frame(3, 0))), none);
    assert_eq!(leaves_by(&mut pauses, 1, between(1, 3, frame(4, 0))), [3]);
    let mut floods = faulty(4, config(), &["floods"]);
    let flooded = leaves_by(&mut floods, 1, between(1, 3, frame(3, 0)));
    assert_eq!(flooded, [0, 2, 3]);
}

#[test]
fn what_does_not_fit_is_dropped_where_it_would_wait() {
    let lossy_queue = 10 * LENGTH as u64;
    let mut switch = introduced(
        3,
        SwitchConfig {
            lossy_queue,
            ..config()
        },
    );
    let mut senders = [sender(0, 2, 5), sender(1, 2, 5), sender(2, 0, 5)];
    let Left { carried, asked } = drive(&mut switch, &mut senders, 10 * MS);
    assert_eq!(asked, []);
    let dropped: Vec<u64> = switch.counts().iter().map(|port| port.dropped[5]).collect();
    assert_eq!((dropped[0], dropped[1]), (0, 0));
    let sent: u64 = senders.iter().map(|sender| sender.sent).sum();
    assert_eq!(sent, carried.len() as u64 + dropped[2]);
    assert!(dropped[2] > senders[0].sent / 2, "{dropped:?}");
}

#[test]
fn all_share_the_buffer() {
    let buffer = 5 * LENGTH as u64;
    let mut switch = introduced(3, SwitchConfig { buffer, ..config() });
    let now = switch.now() + 1;
    switch.ingress(2, now, pfc(3, 0xffff));
    for n in 0..4 {
        switch.ingress(0, now, between(0, 2, frame(3, n)));
        switch.ingress(1, now, between(1, 2, frame(3, n)));
    }
    assert_eq!(switch.drops()["buffer-full"], 3);
    assert_eq!(switch.counts()[2].dropped[3], 3);
    // What leaves makes room.
    switch.ingress(2, now + MS, pfc(3, 0));
    departures(&mut switch, now + 2 * MS);
    switch.ingress(0, now + 2 * MS, between(0, 2, frame(3, 9)));
    assert_eq!(left(&mut switch, now + 3 * MS).len(), 1);
}
