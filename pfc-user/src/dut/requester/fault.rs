//! What a requester can be made to do wrong, by name.

use std::fmt;
use std::str::FromStr;

use crate::dut::catalogue::{self, Entry, FaultError, entry};

/// A way in which the simulated requester departs from the specification. [`Fault::CATALOGUE`] describes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the catalogue below says what each does")]
pub enum Fault {
    OneRetryLess,
    OneRetryMore,
    NoRetry,
    ChangesPsn,
    ChangesReth,
    ShortTimeout,
    LongTimeout,
    BadIcrc,
    WrongOpcode,
    TwoPackets,
    WrongRKey,
    WrongLength,
    KeepsCount,
    TwoCompletions,
    WrongStatus(u32),
    ReportsSuccess,
    NeverCompletes,
    LateCompletion,
    StaysInRts,
    NoFlush,
    IgnoresAnswer,
    NoNeighbour,
    RefusesState,
    Apm,
}

impl Fault {
    /// Every fault, in the order of the enum.
    pub const CATALOGUE: [Entry; 24] = [
        entry("one-retry-less", "", "gives up one retry early", "requests"),
        entry("one-retry-more", "", "gives up one retry late", "requests"),
        entry("no-retry", "", "gives up at the first time-out", "requests"),
        entry(
            "changes-psn",
            "",
            "takes a new PSN for each retry",
            "same-request",
        ),
        entry(
            "changes-reth",
            "",
            "asks for the octets at another address in each retry",
            "same-request",
        ),
        entry("short-timeout", "", "waits for half of T_tr", "interval"),
        entry("long-timeout", "", "waits for five times T_tr", "interval"),
        entry(
            "bad-icrc",
            "",
            "sends requests with a wrong ICRC",
            "same-request",
        ),
        entry(
            "wrong-opcode",
            "",
            "sends requests with the opcode of RDMA WRITE Only",
            "single-packet",
        ),
        entry(
            "two-packets",
            "",
            "sends a READ as two, each of half the length",
            "single-packet",
        ),
        entry("wrong-r-key", "", "sends another R_Key", "single-packet"),
        entry(
            "wrong-length",
            "",
            "asks for four octets fewer",
            "single-packet",
        ),
        entry(
            "keeps-count",
            "",
            "shows the full retry count whatever it has used",
            "retry-count",
        ),
        entry(
            "two-completions",
            "",
            "completes a READ without an answer twice",
            "one-completion",
        ),
        entry(
            "wrong-status",
            "N",
            "completes a READ without an answer with status N (10)",
            "status",
        ),
        entry(
            "reports-success",
            "",
            "completes a READ without an answer with status 0",
            "status",
        ),
        entry(
            "never-completes",
            "",
            "does not complete a READ without an answer",
            "one-completion",
        ),
        entry(
            "late-completion",
            "",
            "completes a READ without an answer 6 T_tr after the last request",
            "one-completion",
        ),
        entry(
            "stays-in-rts",
            "",
            "leaves the queue pair in RTS after a READ without an answer",
            "qp-error",
        ),
        entry(
            "no-flush",
            "",
            "does not flush what is posted to a queue pair in error",
            "flush",
        ),
        entry("ignores-answer", "", "takes no READ response", "path-alive"),
        entry(
            "no-neighbour",
            "",
            "cannot resolve the tester's address",
            "",
        ),
        entry("refuses-state", "", "cannot bring a queue pair to RTR", ""),
        entry(
            "apm",
            "",
            "says that it supports Automatic Path Migration",
            "",
        ),
    ];

    /// The catalogue as text, a line each.
    pub fn help() -> String {
        catalogue::help(&Self::CATALOGUE)
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (name, value) = catalogue::find(&Self::CATALOGUE, "requester", text)?;
        let wrong = |expected| FaultError::Value {
            name,
            expected,
            found: value.unwrap_or_default().into(),
        };
        Ok(match name {
            "one-retry-less" => Self::OneRetryLess,
            "one-retry-more" => Self::OneRetryMore,
            "no-retry" => Self::NoRetry,
            "changes-psn" => Self::ChangesPsn,
            "changes-reth" => Self::ChangesReth,
            "short-timeout" => Self::ShortTimeout,
            "long-timeout" => Self::LongTimeout,
            "bad-icrc" => Self::BadIcrc,
            "wrong-opcode" => Self::WrongOpcode,
            "two-packets" => Self::TwoPackets,
            "wrong-r-key" => Self::WrongRKey,
            "wrong-length" => Self::WrongLength,
            "keeps-count" => Self::KeepsCount,
            "two-completions" => Self::TwoCompletions,
            "wrong-status" => Self::WrongStatus(
                value
                    .unwrap_or("10")
                    .parse()
                    .map_err(|_| wrong("a number of ibv_wc_status"))?,
            ),
            "reports-success" => Self::ReportsSuccess,
            "never-completes" => Self::NeverCompletes,
            "late-completion" => Self::LateCompletion,
            "stays-in-rts" => Self::StaysInRts,
            "no-flush" => Self::NoFlush,
            "ignores-answer" => Self::IgnoresAnswer,
            "no-neighbour" => Self::NoNeighbour,
            "refuses-state" => Self::RefusesState,
            "apm" => Self::Apm,
            _ => unreachable!("{name} is in the catalogue"),
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneRetryLess => "one-retry-less",
            Self::OneRetryMore => "one-retry-more",
            Self::NoRetry => "no-retry",
            Self::ChangesPsn => "changes-psn",
            Self::ChangesReth => "changes-reth",
            Self::ShortTimeout => "short-timeout",
            Self::LongTimeout => "long-timeout",
            Self::BadIcrc => "bad-icrc",
            Self::WrongOpcode => "wrong-opcode",
            Self::TwoPackets => "two-packets",
            Self::WrongRKey => "wrong-r-key",
            Self::WrongLength => "wrong-length",
            Self::KeepsCount => "keeps-count",
            Self::TwoCompletions => "two-completions",
            Self::WrongStatus(status) => return write!(f, "wrong-status={status}"),
            Self::ReportsSuccess => "reports-success",
            Self::NeverCompletes => "never-completes",
            Self::LateCompletion => "late-completion",
            Self::StaysInRts => "stays-in-rts",
            Self::NoFlush => "no-flush",
            Self::IgnoresAnswer => "ignores-answer",
            Self::NoNeighbour => "no-neighbour",
            Self::RefusesState => "refuses-state",
            Self::Apm => "apm",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_the_catalogue_is_read_by_its_name_and_written_as_it_is_read() {
        for entry in Fault::CATALOGUE {
            let fault: Fault = entry.name.parse().unwrap();
            let written = fault.to_string();
            assert_eq!(written.split('=').next(), Some(entry.name));
            assert_eq!(written.contains('='), !entry.value.is_empty(), "{written}");
            assert_eq!(written.parse(), Ok(fault));
        }
    }

    #[test]
    fn a_status_is_read() {
        assert_eq!("wrong-status".parse(), Ok(Fault::WrongStatus(10)));
        assert_eq!("wrong-status=22".parse(), Ok(Fault::WrongStatus(22)));
    }

    #[test]
    fn wrong_values_are_refused_with_what_was_expected() {
        for (text, message) in [
            (
                "no-retries",
                "no fault is called \"no-retries\": see `validator dut requester --help` for all of them",
            ),
            ("no-retry=1", "no-retry takes no value, found \"1\""),
            (
                "wrong-status=-1",
                "wrong-status takes a number of ibv_wc_status, found \"-1\"",
            ),
        ] {
            assert_eq!(text.parse::<Fault>().unwrap_err().to_string(), message);
        }
    }
}
