//! Lines, tables and judgements, and that they fit a terminal.

use pfc_ebpf::units::LineRate;

use super::*;
use crate::config::arguments::dscp_map;
use crate::watch::loss::Verdict;

fn port() -> PortName {
    PortName {
        map: None,
        ..PortName::example()
    }
}

pub fn reading(time: Nanos) -> Reading {
    Reading {
        time,
        counters: Counters::ZERO,
        paused: [0; 9],
    }
}

/// Ports whose names and places are as long as they can be, with short and long maps and rates.
pub fn longest() -> Vec<PortName> {
    let list = ["7"; 64].join(",");
    let port = |map: Option<&str>, gigabits: Option<u64>, is_reported| PortName {
        interface: "enp129s0f0np0v1".to_owned(),
        place: "tcx ingress",
        map: map.map(|map| dscp_map(map).unwrap()),
        is_default: map == Some("sonic"),
        line_rate: gigabits
            .and_then(|rate| LineRate::from_bits_per_second(rate * 1_000_000_000).ok()),
        is_reported,
    };
    vec![
        port(Some("sonic"), None, true),
        port(Some("dscp-high-bits"), Some(100), true),
        port(Some(list.as_str()), Some(400), true),
        port(None, Some(400), false),
    ]
}

/// 115 days of 400 Gbit/s, in which all happens.
pub fn everything() -> (Reading, Reading) {
    const FRAMES: u64 = 5_952_380_952_380_952;
    let (_, mut now) = busy();
    now.time = 10_000_000_000_000_000;
    let volume = Volume {
        frames: FRAMES,
        octets: 500_000_000_000_000_000,
    };
    let class = ClassCounters {
        xoff: 4_990_000_000_000,
        xon: 4_990_000_000_000,
    };
    now.counters.total = volume;
    now.counters.by_priority = [volume; 8];
    (now.counters.no_priority, now.counters.roce) = (volume, volume);
    (now.counters.by_dscp[63], now.counters.by_pcp[7]) = (volume, volume);
    (now.counters.pfc, now.counters.pause) = ([class; 8], class);
    now.paused = [now.time; 9];
    // The longest name of an operation.
    now.counters.by_opcode[0xa5] = FRAMES;
    now.counters.by_ecn = [FRAMES; 4];
    now.counters.malformed = [FRAMES; Malformed::COUNT];
    (now.counters.hidden, now.counters.untold) = ([FRAMES; 3], [FRAMES; 2]);
    now.counters.flows_lost = FRAMES;
    (reading(0), now)
}

pub fn fits(lines: &[String]) -> bool {
    lines.iter().all(|line| line.chars().count() <= 80)
}

/// Half a second in which much happens.
pub fn busy() -> (Reading, Reading) {
    let (before, mut now) = (reading(0), reading(500_000_000));
    let volume = Volume {
        frames: 1000,
        octets: 64_000,
    };
    now.counters.total = volume;
    now.counters.by_priority[3] = volume;
    now.counters.by_dscp[26] = volume;
    now.counters.by_ecn = [990, 0, 0, 10];
    now.counters.pfc[3] = ClassCounters { xoff: 5, xon: 1 };
    now.paused[3] = 250_000_000;
    now.counters.roce = Volume {
        frames: 20,
        octets: 2000,
    };
    (
        now.counters.by_opcode[usize::from(CNP)],
        now.counters.by_opcode[0x0c],
    ) = (2, 18);
    now.counters.malformed[Malformed::Ipv4Checksum as usize] = 3;
    (now.counters.hidden, now.counters.untold) = ([4, 0, 5], [6, 7]);
    (before, now)
}

#[test]
fn a_line_has_the_rates_of_what_was_met() {
    let (before, now) = busy();
    assert_eq!(
        line(&port(), 1_500_000_000, &before, &now),
        "   1.5 s  eth0 (xdp driver) | 2.00 kframe/s | 1.02 Mbit/s | prio 3 2.00 kframe/s | \
         PFC 3 10.0 XOFF/s 2.00 XON/s paused 50.0 % | RoCEv2 40.0 frame/s | CNP 4.00 /s | \
         CE 20.0 /s | malformed 6.00 /s"
    );
    assert_eq!(
        line(&port(), 0, &reading(0), &reading(0)),
        "   0.0 s  eth0 (xdp driver) | 0 frame/s | 0 bit/s"
    );
}

#[test]
fn a_table_has_a_row_for_all_that_was_met_and_none_else() {
    let (before, now) = busy();
    let lines = table(&port(), 500_000_000, &before, &now);
    let words: Vec<_> = lines
        .iter()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let expected = [
        "eth0 (xdp driver), PCP, no line rate (--line-rate)",
        "0.5 s frames octets",
        "all 1000 64000 2.00 kframe/s 1.02 Mbit/s",
        "priority 3 1000 64000 2.00 kframe/s 1.02 Mbit/s",
        "DSCP 26 1000 64000 2.00 kframe/s 1.02 Mbit/s",
        "RoCEv2 20 2000 40.0 frame/s 32.0 kbit/s",
        "RC READ request 18 36.0 frame/s",
        "CNP 2 4.00 frame/s",
        "PFC priority 3 5 XOFF, 1 XON, paused 0.250000 s (50.0 %)",
        "ECN not-ect 990, ce 10",
        "malformed ipv4-checksum 3",
        "transport hidden by extension-header 4, tunnel 5",
        "merged, unknown are headers 6, number 7",
    ];
    assert_eq!(words, expected);
}

#[test]
fn a_title_lacks_nothing_but_the_rest_of_a_list() {
    let titles: Vec<_> = longest().iter().map(title).collect();
    let expected = [
        "DSCP sonic by default, no line rate (--line-rate)",
        "DSCP dscp-high-bits, 100 Gbit/s by the driver",
        "DSCP 7,7,7,7,7,7,7,7..., 400 Gbit/s by the driver",
        "PCP, 400 Gbit/s",
    ]
    .map(|end| format!("enp129s0f0np0v1 (tcx ingress), {end}"));
    assert_eq!(titles, expected);
    assert!(fits(&titles), "{titles:#?}");
}

#[test]
fn tables_fit_80_columns_with_every_count_in_full() {
    let (before, now) = everything();
    for port in longest() {
        let lines = table(&port, now.time, &before, &now);
        assert!(fits(&lines), "{lines:#?}");
        let words = lines.join(" ");
        let words: Vec<_> = words.split_whitespace().collect();
        let count = |count: &u64| {
            let count = count.to_string();
            words
                .iter()
                .filter(|word| word.trim_end_matches(',') == count)
                .count()
        };
        // All, eight priorities, none, a DSCP, a PCP and RoCEv2.
        assert_eq!(count(&now.counters.total.octets), 13, "{lines:#?}");
        assert_eq!(count(&now.counters.pfc[0].xoff), 2 * 9, "{lines:#?}");
    }
}

#[test]
fn a_judgement_fits_80_columns() {
    let own = "the tester's own side may have lost 99999999 frames, which may explain it";
    let row = Row {
        subject: Subject::Flow(65535, 65535),
        sent: 99_999_999_999,
        received: 99_999_999_999,
        allowance: 999_999,
        lost: 999_999,
        own_side: 99_999,
        verdict: Verdict::Inconclusive,
        reason: Some(own.to_owned()),
    };
    let of_priority = Row {
        subject: Subject::NoPriority,
        ..row.clone()
    };
    let report = Report {
        tx: "enp129s0f0np0v1".to_owned(),
        rx: "enp129s0f1np1v1".to_owned(),
        sender: "what enp129s0f0np0v1 sent was counted by its driver (tx_packets), without \
                 priorities: frames left that did not pass tc egress"
            .to_owned(),
        notes: vec![own.repeat(3)],
        rows: vec![row, of_priority],
        verdict: Verdict::Inconclusive,
        reason: Some(own.repeat(2)),
    };
    let lines = loss(&report);
    assert!(fits(&lines), "{lines:#?}");
    let of_priority = lines.iter().find(|line| line.contains("no priority"));
    assert!(
        of_priority.is_some_and(|line| line.ends_with(" inconclusive")),
        "a row in one line: {lines:#?}"
    );
}

#[test]
fn a_judgement_says_what_was_set_off_and_what_is_left() {
    let row = |subject, lost, own_side, allowance, verdict| Row {
        subject,
        sent: 100,
        received: 100 - lost,
        allowance,
        lost,
        own_side,
        verdict,
        reason: (verdict == Verdict::Inconclusive).then(|| "it may be ours".to_owned()),
    };
    let report = Report {
        tx: "a".to_owned(),
        rx: "b".to_owned(),
        sender: "counted at tc egress".to_owned(),
        notes: vec!["b: rx_missed_errors 3".to_owned()],
        rows: vec![
            row(Subject::Priority(3), 2, 2, 7, Verdict::Inconclusive),
            row(Subject::NoPriority, 0, 0, 0, Verdict::NoLoss),
            row(Subject::Priority(4), 0, 0, 0, Verdict::Balanced),
            row(Subject::Flow(77, 5), 5, 3, 0, Verdict::Loss),
        ],
        verdict: Verdict::Loss,
        reason: Some("in all".to_owned()),
    };
    let words: Vec<_> = loss(&report)
        .iter()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let expected = [
        "loss from a to b: loss",
        "in all",
        "counted at tc egress",
        "b: rx_missed_errors 3",
        "sent received lost own side in flight verdict",
        "priority 3 100 98 >= 2 <= 2 <= 7 inconclusive",
        "it may be ours",
        "no priority 100 100 0 0 exact no loss",
        "priority 4 100 100 0 0 exact balanced",
        "run 77 flow 5 100 95 5 <= 3 exact loss",
    ];
    assert_eq!(words, expected);
}

#[test]
fn numbers_have_three_digits_and_a_prefix() {
    let shown = [
        0.0,
        0.5,
        9.994,
        12.34,
        999.4,
        1234.0,
        56_789_000.0,
        98_765_432_100.0,
    ]
    .map(scaled);
    assert_eq!(
        shown,
        [
            "0 ", "0.50 ", "9.99 ", "12.3 ", "999 ", "1.23 k", "56.8 M", "98.8 G"
        ]
    );
}
