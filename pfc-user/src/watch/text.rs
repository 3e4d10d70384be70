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

/// Title of a port's table, in one line of 80 columns. The name of a long map is cut to fit.
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

fn counted(name: &str, change: &Change, volume: impl Fn(&Reading) -> Volume) -> String {
    let (frames, bits) = (change.frames(&volume), change.bits(&volume));
    let now = volume(change.now);
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
    lines.extend(volumes(&change));
    lines.extend(operations(&change));
    lines.extend(pauses(&change));
    lines.extend(remarks(&now.counters));
    lines
}

/// Frames and octets: of all, by priority, by DSCP, by PCP, of RoCEv2.
fn volumes(change: &Change<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut row = |name: &str, volume: &dyn Fn(&Reading) -> Volume| {
        if volume(change.now).frames > 0 || name == "all" {
            lines.push(counted(name, change, volume));
        }
    };
    row("all", &|reading| reading.counters.total);
    for priority in 0..8 {
        row(&format!("priority {priority}"), &|reading| {
            reading.counters.by_priority[priority]
        });
    }
    row("no priority", &|reading| reading.counters.no_priority);
    by_tags(&mut row);
    row("RoCEv2", &|reading| reading.counters.roce);
    lines
}

/// Volumes by DSCP and by PCP, with their names.
fn by_tags(row: &mut impl FnMut(&str, &dyn Fn(&Reading) -> Volume)) {
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
}

/// Packets by operation of the BTH.
fn operations(change: &Change<'_>) -> impl Iterator<Item = String> {
    (0..=255u8).filter_map(move |opcode| {
        let frames = |reading: &Reading| reading.counters.by_opcode[usize::from(opcode)];
        let name = format!("  {}", operation(opcode));
        let rate = format!("{}frame/s", scaled(change.rate(frames)));
        let count = frames(change.now);
        (count > 0).then(|| format!("  {name:<24} {count:>12} {:>14} {rate:>13}", ""))
    })
}

/// PFC by priority, and PAUSE.
fn pauses(change: &Change<'_>) -> impl Iterator<Item = String> {
    let pfc = (0..8).map(|priority| {
        let name = format!("PFC priority {priority}");
        (name, priority, change.now.counters.pfc[priority])
    });
    pfc.chain([("PAUSE (802.3x)".to_owned(), 8, change.now.counters.pause)])
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
mod tests;
