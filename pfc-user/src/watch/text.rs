//! For people: a line for each interval, a table of what was counted, and the judgement of loss.

mod screen;

use pfc_ebpf::abi::watch::{ClassCounters, Counters, Hidden, Untold, Volume};
use pfc_ebpf::units::Nanos;
use pfc_ebpf::wire::Malformed;

use super::loss::{Report, Row, Subject};
use super::metrics::{CNP, ECN, hidden, operation, reason, untold};
use super::session::PortName;
use crate::driver::bpf::watch::Reading;
use crate::output::wrapped;

pub use self::screen::screen;

const SECOND: f64 = 1e9;
/// Columns that tables and their titles fit.
const COLUMNS: usize = 80;
/// Column at which a long row of a table goes on, behind the names of rows.
const BEHIND_NAMES: usize = 27;

/// The increase from one reading to the next.
struct Change<'a> {
    before: &'a Reading,
    now: &'a Reading,
    seconds: f64,
}

impl<'a> Change<'a> {
    fn new(before: &'a Reading, now: &'a Reading) -> Self {
        Self {
            before,
            now,
            seconds: now.time.saturating_sub(before.time) as f64 / SECOND,
        }
    }

    /// Increase per second.
    fn rate(&self, number: impl Fn(&Reading) -> u64) -> f64 {
        let rise = number(self.now).saturating_sub(number(self.before)) as f64;
        if self.seconds > 0.0 {
            rise / self.seconds
        } else {
            0.0
        }
    }

    fn frames(&self, volume: impl Fn(&Reading) -> Volume) -> String {
        format!(
            "{}frame/s",
            scaled(self.rate(|reading| volume(reading).frames))
        )
    }

    fn bits(&self, volume: impl Fn(&Reading) -> Volume) -> String {
        format!(
            "{}bit/s",
            scaled(self.rate(|reading| 8 * volume(reading).octets))
        )
    }

    /// Share of the time in which a class was paused.
    fn paused(&self, class: usize) -> String {
        format!(
            "{:.1} %",
            (self.rate(|reading| reading.paused[class]) / SECOND * 100.0).min(100.0)
        )
    }
}

/// Formats a value with three significant digits and the prefix of its unit.
fn scaled(value: f64) -> String {
    let (value, prefix) = match value {
        value if value >= 1e9 => (value / 1e9, "G"),
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e3 => (value / 1e3, "k"),
        value => (value, ""),
    };
    let decimals = if value >= 100.0 || value == 0.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {prefix}")
}

fn clock(elapsed: Nanos) -> String {
    format!("{:.1} s", elapsed as f64 / SECOND)
}

fn met(class: &ClassCounters) -> bool {
    class.xoff + class.xon > 0
}

fn malformed(reading: &Reading) -> u64 {
    reading.counters.malformed.iter().sum()
}

/// Title of a port's table, in one line of 80 columns. A map that is a list has the rest of them.
fn title(port: &PortName) -> String {
    let rate = port.rate();
    let rate = rate.unwrap_or_else(|| "no line rate (--line-rate)".to_owned());
    let Some(map) = &port.map else {
        return format!("{port}, PCP, {rate}");
    };
    let begin = format!("{port}, DSCP ");
    let end = format!("{}, {rate}", port.by_default());
    let room = COLUMNS.saturating_sub(begin.chars().count() + end.chars().count());
    if map.name.chars().count() <= room {
        return format!("{begin}{}{end}", map.name);
    }
    let kept: String = map.name.chars().take(room.saturating_sub(3)).collect();
    format!("{begin}{kept}...{end}")
}

/// One line about a port: rates since `before`.
pub fn line(port: &PortName, elapsed: Nanos, before: &Reading, now: &Reading) -> String {
    let change = Change::new(before, now);
    let total = |reading: &Reading| reading.counters.total;
    let mut parts = vec![
        format!("{:>8}  {port}", clock(elapsed)),
        change.frames(total),
        change.bits(total),
    ];
    for priority in 0..8 {
        let volume = |reading: &Reading| reading.counters.by_priority[priority];
        if volume(now).frames > 0 {
            parts.push(format!("prio {priority} {}", change.frames(volume)));
        }
    }
    let class = |name: String, index: usize, counts: &dyn Fn(&Reading) -> ClassCounters| {
        met(&counts(now)).then(|| {
            let rate = |number: fn(ClassCounters) -> u64| {
                scaled(change.rate(|reading| number(counts(reading))))
            };
            format!(
                "{name} {}XOFF/s {}XON/s paused {}",
                rate(|class| class.xoff),
                rate(|class| class.xon),
                change.paused(index)
            )
        })
    };
    parts.extend((0..8).filter_map(|priority| {
        class(format!("PFC {priority}"), priority, &|reading| {
            reading.counters.pfc[priority]
        })
    }));
    parts.extend(class("PAUSE".to_owned(), 8, &|reading| {
        reading.counters.pause
    }));
    if now.counters.roce.frames > 0 {
        parts.push(format!(
            "RoCEv2 {}",
            change.frames(|reading| reading.counters.roce)
        ));
        parts.push(format!(
            "CNP {}/s",
            scaled(change.rate(|reading| reading.counters.by_opcode[usize::from(CNP)]))
        ));
    }
    if now.counters.by_ecn[3] > 0 {
        parts.push(format!(
            "CE {}/s",
            scaled(change.rate(|reading| reading.counters.by_ecn[3]))
        ));
    }
    if malformed(now) > 0 {
        parts.push(format!("malformed {}/s", scaled(change.rate(malformed))));
    }
    parts.join(" | ")
}

fn counted(
    name: &str,
    now: Volume,
    change: &Change,
    volume: impl Fn(&Reading) -> Volume,
) -> String {
    let (frames, bits) = (change.frames(&volume), change.bits(&volume));
    let counts = format!("{:>12} {:>14}", now.frames, now.octets);
    // Counts that are longer than their columns take room that the name leaves.
    let width = 51 - counts.len();
    format!("  {name:<width$} {counts} {frames:>13} {bits:>11}")
}

fn paused(name: &str, class: usize, counts: ClassCounters, change: &Change) -> String {
    let total = change.now.paused[class] as f64 / SECOND;
    format!(
        "  {name:<24} {} XOFF, {} XON, paused {total:.6} s ({})",
        counts.xoff,
        counts.xon,
        change.paused(class)
    )
}

/// All that a port has counted, with rates since `before`, in 80 columns. A heading, then rows of
/// what was met.
pub fn table(port: &PortName, elapsed: Nanos, before: &Reading, now: &Reading) -> Vec<String> {
    let change = Change::new(before, now);
    let (time, frames, octets) = (clock(elapsed), "frames", "octets");
    let mut lines = vec![
        title(port),
        format!("  {time:<24} {frames:>12} {octets:>14}"),
    ];
    lines.extend(volumes(now, &change));
    lines.extend(operations(now, &change));
    lines.extend(pauses(&now.counters, &change));
    lines.extend(remarks(&now.counters));
    lines
}

/// Frames and octets: of all, by priority, by DSCP, by PCP, of RoCEv2.
fn volumes(now: &Reading, change: &Change<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut row = |name: &str, volume: &dyn Fn(&Reading) -> Volume| {
        if volume(now).frames > 0 || name == "all" {
            lines.push(counted(name, volume(now), change, volume));
        }
    };
    row("all", &|reading| reading.counters.total);
    for priority in 0..8 {
        row(&format!("priority {priority}"), &|reading| {
            reading.counters.by_priority[priority]
        });
    }
    row("no priority", &|reading| reading.counters.no_priority);
    for dscp in 0..64 {
        row(&format!("DSCP {dscp}"), &|reading| {
            reading.counters.by_dscp[dscp]
        });
    }
    for pcp in 0..8 {
        row(&format!("VLAN, PCP {pcp}"), &|reading| {
            reading.counters.by_pcp[pcp]
        });
    }
    row("RoCEv2", &|reading| reading.counters.roce);
    lines
}

/// Packets by operation of the BTH.
fn operations(now: &Reading, change: &Change<'_>) -> impl Iterator<Item = String> {
    (0..=255u8).filter_map(move |opcode| {
        let frames = |reading: &Reading| reading.counters.by_opcode[usize::from(opcode)];
        let name = format!("  {}", operation(opcode));
        let rate = format!("{}frame/s", scaled(change.rate(frames)));
        let count = frames(now);
        (count > 0).then(|| format!("  {name:<24} {count:>12} {:>14} {rate:>13}", ""))
    })
}

/// PFC by priority, and PAUSE.
fn pauses(counters: &Counters, change: &Change<'_>) -> impl Iterator<Item = String> {
    let pfc = (0..8).map(|priority| {
        let name = format!("PFC priority {priority}");
        (name, priority, counters.pfc[priority])
    });
    pfc.chain([("PAUSE (802.3x)".to_owned(), 8, counters.pause)])
        .filter(|(_, _, counts)| met(counts))
        .flat_map(|(name, class, counts)| {
            wrapped(&paused(&name, class, counts, change), COLUMNS, BEHIND_NAMES)
        })
}

/// Each other count that is not zero.
fn remarks(counters: &Counters) -> impl Iterator<Item = String> {
    let met = |counts: &mut dyn Iterator<Item = (&'static str, u64)>| -> Vec<String> {
        counts
            .filter(|(_, frames)| *frames > 0)
            .map(|(name, frames)| format!("{name} {frames}"))
            .collect()
    };
    let mut ecn = ECN.into_iter().zip(counters.by_ecn);
    let malformed = Malformed::ALL.map(reason).into_iter();
    let hidden = Hidden::ALL.map(hidden).into_iter();
    let untold = Untold::ALL.map(untold).into_iter();
    let mut remarks = vec![
        ("ECN", met(&mut ecn)),
        ("malformed", met(&mut malformed.zip(counters.malformed))),
        ("transport hidden by", met(&mut hidden.zip(counters.hidden))),
        ("merged, unknown are", met(&mut untold.zip(counters.untold))),
    ];
    let single = [
        ("two VLAN tags", counters.double_tagged),
        ("PFC without a priority", counters.pfc_empty),
        ("test frames", counters.stamped),
        ("test frames beyond 1024 flows", counters.flows_lost),
        ("missing in the capture", counters.controls_lost),
    ];
    remarks.extend(
        single
            .into_iter()
            .filter(|(_, frames)| *frames > 0)
            .map(|(name, frames)| (name, vec![format!("frames {frames}")])),
    );
    remarks
        .into_iter()
        .filter(|(_, values)| !values.is_empty())
        .flat_map(|(name, values)| {
            let line = format!("  {name:<24} {}", values.join(", "));
            wrapped(&line, COLUMNS, BEHIND_NAMES)
        })
}

/// The judgement of loss, in 80 columns.
pub fn loss(report: &Report) -> Vec<String> {
    let mut lines = vec![format!(
        "loss from {} to {}: {}",
        report.tx,
        report.rx,
        report.verdict.word()
    )];
    let remarks = report.reason.iter().chain([&report.sender]);
    lines.extend(remarks.chain(&report.notes).map(|text| format!("  {text}")));
    if !report.rows.is_empty() {
        let [sent, received, lost, own, flight] =
            ["sent", "received", "lost", "own side", "in flight"];
        lines.push(format!(
            "  {:<12} {sent:>11} {received:>11} {lost:>9} {own:>8} {flight:>9} verdict",
            ""
        ));
    }
    for row in &report.rows {
        lines.push(loss_row(row));
        lines.extend(row.reason.iter().map(|reason| format!("    {reason}")));
    }
    let wrapped = lines.iter().flat_map(|line| wrapped(line, COLUMNS, 4));
    wrapped.collect()
}

fn loss_row(row: &Row) -> String {
    let subject = match row.subject {
        Subject::Priority(priority) => format!("priority {priority}"),
        Subject::NoPriority => "no priority".to_owned(),
        Subject::All => "all frames".to_owned(),
        Subject::Flow(run, flow) => format!("run {run} flow {flow}"),
    };
    let exact = if row.allowance == 0 {
        "exact".to_owned()
    } else {
        format!("<= {}", row.allowance)
    };
    let lost = if row.allowance > 0 && row.lost > 0 {
        format!(">= {}", row.lost)
    } else {
        row.lost.to_string()
    };
    let own = if row.own_side > 0 {
        format!("<= {}", row.own_side)
    } else {
        "0".to_owned()
    };
    format!(
        "  {subject:<12} {:>11} {:>11} {lost:>9} {own:>8} {exact:>9} {}",
        row.sent,
        row.received,
        row.verdict.word()
    )
}

#[cfg(test)]
mod tests {
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
}
