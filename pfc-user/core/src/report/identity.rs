//! Identity of a run: the DUT, the tester, the place and the time, the same in all reports.

use chrono::{DateTime, SecondsFormat, Utc};

use crate::evidence::Evidence;
use crate::evidence::preflight::Port;

/// Names and values, without those that are not known.
pub(super) fn of(evidence: &Evidence) -> Vec<(String, String)> {
    let Evidence {
        host,
        testbed,
        invocation,
        ..
    } = evidence;
    let mut pairs = vec![
        ("testbed".to_owned(), testbed.name.clone()),
        ("device under test".to_owned(), testbed.dut.clone()),
    ];
    for (name, value) in testbed.identity.known() {
        pairs.push((format!("its {name}"), value.to_owned()));
    }
    let others = [
        ("plan", invocation.plan.clone()),
        ("command", command(&invocation.command)),
        ("validator", evidence.version.clone()),
        ("host", host.name.clone()),
        ("kernel", format!("Linux {}", host.kernel)),
        (
            "machine",
            format!("{} with {} CPUs", host.machine, host.cpus),
        ),
        ("started", rfc3339(evidence.started)),
        ("duration", format!("{:.1} s", evidence.seconds)),
        ("layout of evidence", evidence.schema.to_string()),
    ];
    pairs.extend(others.map(|(name, value)| (name.to_owned(), value)));
    let ports = evidence.preflight.iter().flat_map(|found| &found.ports);
    pairs.extend(ports.map(|port| (format!("port {}", port.role.word()), self::port(port))));
    pairs.retain(|(_, value)| !value.is_empty());
    pairs
}

/// Interface, driver and firmware of a port.
fn port(port: &Port) -> String {
    let driver = &port.facts.driver;
    let parts = [
        ("driver ", &driver.name),
        ("version ", &driver.version),
        ("firmware ", &driver.firmware),
        ("at ", &driver.bus),
    ];
    let mut text = port.facts.interface.clone();
    for (name, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
        text += &format!(", {name}{value}");
    }
    text
}

/// A command line as a shell takes it.
fn command(arguments: &[String]) -> String {
    let quoted = arguments.iter().map(|argument| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            argument.clone()
        } else {
            format!("'{}'", argument.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// Writes `seconds` since 1970 as a date and time, such as `2026-11-23T02:08:47Z`.
pub(super) fn rfc3339(seconds: u64) -> String {
    match time(seconds) {
        Some(time) => time.to_rfc3339_opts(SecondsFormat::Secs, true),
        None => format!("{seconds} s after 1970"),
    }
}

/// Returns `seconds` since 1970 as a date and time to be formatted; `None` beyond the calendar.
pub(super) fn time(seconds: u64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_800_000_000, "2027-01-15T08:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds), expected);
        }
        assert_eq!(rfc3339(u64::MAX), format!("{} s after 1970", u64::MAX));
    }

    #[test]
    fn a_command_line_can_be_typed_again() {
        let line = ["validator", "--set", "a=[\"b\"]", "", "it's"].map(str::to_owned);
        assert_eq!(command(&line), r#"validator --set 'a=["b"]' '' 'it'\''s'"#);
    }
}
