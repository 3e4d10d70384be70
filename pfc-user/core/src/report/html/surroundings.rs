//! Where the run took place: testbed, host and versions, and the facts found on the ports.

use super::markup::{Element, el};
use super::words;
use crate::evidence::Evidence;
use crate::evidence::preflight::Preflight;
use crate::preflight::{self, State};

/// Testbed, host and versions.
pub fn of_run(evidence: &Evidence) -> Vec<Element> {
    let Evidence { host, testbed, .. } = evidence;
    let facts = words::pairs([
        ("testbed", testbed.name.clone()),
        ("device under test", testbed.dut.clone()),
        ("validator", evidence.version.clone()),
        ("kernel", format!("Linux {}", host.kernel)),
        (
            "machine",
            format!("{} with {} CPUs", host.machine, host.cpus),
        ),
        ("started", utc(evidence.started)),
        ("duration", format!("{:.1} s", evidence.seconds)),
        ("layout of evidence", evidence.schema.to_string()),
    ]);
    let file =
        words::scroller("scroll", "File of the testbed").child(el("pre").text(&testbed.toml));
    let file = words::fold(el("summary").text("file of the testbed"), false).child(file);
    let ports = evidence.preflight.as_ref().map(ports);
    [facts, file].into_iter().chain(ports).collect()
}

/// The facts that were found on the ports before the run.
fn ports(found: &Preflight) -> Element {
    let columns = [
        "port and subject",
        "state",
        "found",
        "expected",
        "to mend it",
    ];
    let mut body = el("tbody");
    let judged = found.ports.iter().zip(preflight::judge(found));
    for (port, items) in judged {
        for item in items {
            let state = match item.state {
                State::Ok => "ok",
                State::Problem => "problem",
                State::Unknown => "unknown",
            };
            let subject = format!(
                "{} {}: {}",
                port.role.word(),
                port.facts.interface,
                item.what
            );
            let cells = [state.to_owned(), item.found, item.expected, item.mend];
            body = body.child(words::row(&subject, cells));
        }
    }
    let caption = "Ports before the run";
    words::scroller("scroll", caption).child(words::table(caption, &columns).child(body))
}

/// Date and time of so many seconds since 1970, such as `2026-11-23 02:08:47 UTC`.
pub fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have the leap day at their end; an era has 400 of them.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!(
        "{:04}-{month:02}-{of_month:02} {:02}:{:02}:{:02} UTC",
        year + era * 400 + later,
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_800_000_000, "2027-01-15 08:00:00 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(seconds), expected);
        }
        assert!(utc(u64::MAX).ends_with(" UTC"));
    }
}
