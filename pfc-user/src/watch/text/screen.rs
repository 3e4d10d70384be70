//! Screen of a terminal while counts go on: a row for each priority of a port. Two ports fit 80
//! columns and 24 rows; what else was met has the rows that are left.

use pfc_ebpf::abi::watch::{ClassCounters, Volume};
use pfc_ebpf::units::Nanos;

use super::{Change, by_tags, clock, met, operations, remarks, scaled, title};
use crate::driver::bpf::watch::Reading;
use crate::watch::session::Shown;

/// The last events, a heading, and the ports, in at most `rows` lines.
pub fn screen(elapsed: Nanos, ports: &[Shown<'_>], events: &[String], rows: usize) -> Vec<String> {
    let tables: Vec<Table> = ports.iter().map(Table::new).collect();
    let needed = 1 + tables.iter().map(|table| table.rows.len()).sum::<usize>();
    let free = rows.saturating_sub(needed);
    let shown_events = events.len().min(free);
    let mut free = free - shown_events;
    let mut lines = events[events.len() - shown_events..].to_vec();
    let [frames, bits, total] = ["frame/s", "bit/s", "frames"];
    let [xoff, xon, paused] = ["XOFF/s", "XON/s", "paused"];
    lines.push(format!(
        "{:<19} {frames:>9} {bits:>9} {total:>17} {xoff:>6} {xon:>6} {paused:>8}",
        clock(elapsed)
    ));
    for (number, table) in tables.iter().enumerate() {
        // An equal part for each port that is left.
        let part = (free / (tables.len() - number)).min(table.details.len());
        free -= part;
        lines.extend_from_slice(&table.rows);
        lines.extend_from_slice(&table.details[..part]);
    }
    if lines.len() > rows && rows > 0 {
        let hidden = lines.len() - (rows - 1);
        lines.truncate(rows - 1);
        lines.push(format!("{hidden} more lines do not fit; --json has all"));
    }
    lines
}

/// A port: its title and priorities, and what else was met.
struct Table {
    rows: Vec<String>,
    details: Vec<String>,
}

impl Table {
    fn new(shown: &Shown<'_>) -> Self {
        let Shown { port, before, now } = *shown;
        let change = Change::new(before, now);
        let mut rows = vec![title(port)];
        rows.push(row(
            "all",
            &change,
            Some(&|reading| reading.counters.total),
            None,
        ));
        for priority in 0..8 {
            let volume = |reading: &Reading| reading.counters.by_priority[priority];
            let class = |reading: &Reading| reading.counters.pfc[priority];
            if volume(now).frames > 0 || met(&class(now)) {
                rows.push(row(
                    &format!("priority {priority}"),
                    &change,
                    Some(&volume),
                    Some((&class, priority)),
                ));
            }
        }
        if met(&now.counters.pause) {
            let pause = |reading: &Reading| reading.counters.pause;
            rows.push(row("PAUSE (802.3x)", &change, None, Some((&pause, 8))));
        }
        Self {
            rows,
            details: details(&change),
        }
    }
}

/// Lines of counts that no row of a priority has.
fn details(change: &Change<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut counted = |name: &str, volume: &dyn Fn(&Reading) -> Volume| {
        if volume(change.now).frames > 0 {
            lines.push(row(name, change, Some(volume), None));
        }
    };
    counted("no priority", &|reading| reading.counters.no_priority);
    counted("RoCEv2", &|reading| reading.counters.roce);
    by_tags(&mut counted);
    lines.extend(remarks(&change.now.counters));
    lines.extend(operations(change));
    lines
}

/// Value of a reading that a row shows.
type Of<'a, T> = &'a dyn Fn(&Reading) -> T;

/// A row: frames, and pauses of a class, where there are such.
fn row(
    name: &str,
    change: &Change<'_>,
    volume: Option<Of<Volume>>,
    class: Option<(Of<ClassCounters>, usize)>,
) -> String {
    let trimmed = |value: f64| scaled(value).trim_end().to_owned();
    let [frames, bits, total] = volume.map_or_else(Default::default, |volume| {
        [
            trimmed(change.rate(|reading| volume(reading).frames)),
            trimmed(change.rate(|reading| 8 * volume(reading).octets)),
            volume(change.now).frames.to_string(),
        ]
    });
    let class = class.filter(|(counts, _)| met(&counts(change.now)));
    let [xoff, xon, paused] = class.map_or_else(Default::default, |(counts, class)| {
        [
            trimmed(change.rate(|reading| counts(reading).xoff)),
            trimmed(change.rate(|reading| counts(reading).xon)),
            change.paused(class),
        ]
    });
    let line =
        format!("  {name:<17} {frames:>9} {bits:>9} {total:>17} {xoff:>6} {xon:>6} {paused:>8}");
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{busy, everything, fits, longest, reading};
    use super::*;
    use crate::watch::session::PortName;

    #[test]
    fn two_ports_on_which_all_happens_fit_80_columns_and_24_rows() {
        let (before, now) = everything();
        let ports = longest();
        let shown = |port| Shown {
            port,
            before: &before,
            now: &now,
        };
        let events = vec!["eth0: carrier lost".to_owned()];
        let two = || [shown(&ports[0]), shown(&ports[2])];
        let lines = screen(now.time, &two(), &events, 23);
        assert_eq!(lines.len(), 23);
        for priority in 0..8 {
            let name = format!("  priority {priority} ");
            assert_eq!(
                lines.iter().filter(|line| line.starts_with(&name)).count(),
                2
            );
        }
        assert!(fits(&lines), "{lines:#?}");
        for port in &ports {
            let lines = screen(now.time, &[shown(port)], &events, 100);
            assert!(fits(&lines), "{lines:#?}");
        }
        let [first, second] = two();
        let three = screen(0, &[first, second, shown(&ports[1])], &events, 23);
        assert_eq!(three.len(), 23);
        assert!(
            three[22].starts_with("12 more lines do not fit"),
            "{}",
            three[22]
        );
    }

    #[test]
    fn a_row_has_rate_xoff_and_share_and_what_is_left_shows_events_and_the_rest() {
        let (before, now) = busy();
        let port = PortName::example();
        let shown = Shown {
            port: &port,
            before: &before,
            now: &now,
        };
        let events = vec!["watching".to_owned(), "eth0: carrier lost".to_owned()];
        let words = |rows| -> Vec<String> {
            let lines = screen(500_000_000, &[Shown { ..shown }], &events, rows);
            let words = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.iter().map(words).collect()
        };
        let essential = [
            "0.5 s frame/s bit/s frames XOFF/s XON/s paused",
            "eth0 (xdp driver), DSCP sonic, no line rate (--line-rate)",
            "all 2.00 k 1.02 M 1000",
            "priority 3 2.00 k 1.02 M 1000 10.0 2.00 50.0 %",
        ];
        assert_eq!(words(4), essential);
        assert_eq!(words(5)[0], "eth0: carrier lost");
        let all = words(100);
        assert_eq!(all[..2], ["watching", "eth0: carrier lost"]);
        assert_eq!(all[2..6], essential);
        assert_eq!(
            all[6..],
            [
                "RoCEv2 40.0 32.0 k 20",
                "DSCP 26 2.00 k 1.02 M 1000",
                "ECN not-ect 990, ce 10",
                "malformed ipv4-checksum 3",
                "transport hidden by extension-header 4, tunnel 5",
                "merged, unknown are headers 6, number 7",
                "RC READ request 18 36.0 frame/s",
                "CNP 2 4.00 frame/s",
            ]
        );
        let idle = reading(0);
        let idle = Shown {
            port: &port,
            before: &idle,
            now: &idle,
        };
        assert_eq!(screen(0, &[idle], &[], 100).len(), 3);
    }
}
