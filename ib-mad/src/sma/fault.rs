//! What a simulated agent can do wrong, by name.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::mad::AttributeId;

/// A way in which a simulated agent departs from the specification. [`Fault::CATALOGUE`] describes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the catalogue below says what each does")]
pub enum Fault {
    AnswersWrongKey,
    ShowsKey,
    HidesKey,
    NoViolations,
    CountsTwice,
    CountsGoodKey,
    IgnoresKeySet,
    IgnoresProtectBits,
    RefusesItsKey,
    RefusesOtherKey,
    ForgetsKey,
    LocksOut,
    KeepsKey,
    KeepsViolations,
    OneKey,
    RefusesLid0,
    LftStatus(u8),
    LftGetStatus(u8),
    LftSetStatus(u8),
    LftOneBlock(u16),
    LftAttribute,
    LftModifier,
    LftData,
    NoRandomFdb,
    Late(Duration),
    Twice,
    OtherTid,
    Truncated,
    Silent(Option<AttributeId>),
    Busy(u64),
    Drops(NonZeroU64),
}

/// A fault as the user finds it in the help.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name.
    pub name: &'static str,
    /// The shape of its value; empty when it takes none. Every value may be left out.
    pub value: &'static str,
    /// What the agent then does.
    pub does: &'static str,
    /// The step of a case that it is there to fail.
    pub fails: &'static str,
}

const fn entry(
    name: &'static str,
    value: &'static str,
    does: &'static str,
    fails: &'static str,
) -> Entry {
    Entry {
        name,
        value,
        does,
        fails,
    }
}

/// Why a fault could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FaultError {
    /// No such fault.
    #[error("no fault is called {0:?}: see `validator dut sma --help` for all of them")]
    Unknown(String),
    /// The value does not fit.
    #[error("{name} takes {expected}, found {found:?}")]
    Value {
        /// Fault.
        name: &'static str,
        /// What it takes.
        expected: &'static str,
        /// What was given.
        found: String,
    },
}

/// Attributes that an agent can be silent about, by name.
const ATTRIBUTES: [(&str, AttributeId); 4] = [
    ("node-info", AttributeId::NODE_INFO),
    ("switch-info", AttributeId::SWITCH_INFO),
    ("port-info", AttributeId::PORT_INFO),
    (
        "linear-forwarding-table",
        AttributeId::LINEAR_FORWARDING_TABLE,
    ),
];
/// What `silent` takes for every attribute.
const EVERYTHING: &str = "everything";

impl Fault {
    /// Every fault, in the order of the enum.
    pub const CATALOGUE: [Entry; 31] = [
        entry(
            "answers-wrong-key",
            "",
            "answers a Get with a wrong M_Key at protect bits 2 and 3, and counts it",
            "silence",
        ),
        entry(
            "shows-key",
            "",
            "returns the M_Key to a Get with another at protect bits 1",
            "returned M_Key",
        ),
        entry(
            "hides-key",
            "",
            "returns M_Key 0 to a Get with another at protect bits 0",
            "returned M_Key",
        ),
        entry(
            "no-violations",
            "",
            "counts no M_Key violation",
            "violations",
        ),
        entry(
            "counts-twice",
            "",
            "counts every M_Key violation twice",
            "violations",
        ),
        entry(
            "counts-good-key",
            "",
            "counts a violation for every Get(PortInfo) with the right M_Key",
            "violations",
        ),
        entry(
            "ignores-key-set",
            "",
            "answers a Set of the M_Key with status 0 and does not apply it",
            "initialisation",
        ),
        entry(
            "ignores-protect-bits",
            "",
            "answers a Set of the protect bits with status 0 and does not apply them",
            "initialisation",
        ),
        entry(
            "refuses-its-key",
            "",
            "answers no Get(PortInfo) with the right M_Key at protect bits 2 and 3",
            "right M_Key",
        ),
        entry(
            "refuses-other-key",
            "",
            "answers no Get(PortInfo) with a wrong M_Key at protect bits 0 and 1",
            "wrong M_Key",
        ),
        entry(
            "forgets-key",
            "",
            "has no M_Key any more once a Get(PortInfo) has shown it",
            "returned M_Key",
        ),
        entry(
            "locks-out",
            "",
            "answers no Get(PortInfo) with the right M_Key at protect bits 2 and 3 after a violation",
            "right M_Key",
        ),
        entry(
            "keeps-key",
            "",
            "answers a Set of M_Key 0 with status 0 and keeps the M_Key",
            "reset",
        ),
        entry(
            "keeps-violations",
            "",
            "clears no violations when they are set to 0",
            "violations",
        ),
        entry(
            "one-key",
            "",
            "takes the first M_Key that is set, and acknowledges others without applying them",
            "initialisation",
        ),
        entry(
            "refuses-lid-0",
            "",
            "does a Set(PortInfo) with LID or MasterSMLID 0, and answers it with status code 7",
            "initialisation",
        ),
        entry(
            "lft-status",
            "N",
            "answers LinearForwardingTable with status code N (0)",
            "status code 7",
        ),
        entry(
            "lft-get-status",
            "N",
            "answers Get(LinearForwardingTable) with status code N (0)",
            "status code 7",
        ),
        entry(
            "lft-set-status",
            "N",
            "answers Set(LinearForwardingTable) with status code N (0)",
            "status code 7",
        ),
        entry(
            "lft-one-block",
            "N",
            "answers block N (500) of LinearForwardingTable with status 0",
            "status code 7",
        ),
        entry(
            "lft-attribute",
            "",
            "answers LinearForwardingTable as RandomForwardingTable",
            "attribute id",
        ),
        entry(
            "lft-modifier",
            "",
            "answers LinearForwardingTable with the next modifier",
            "attribute modifier",
        ),
        entry(
            "lft-data",
            "",
            "answers Get(LinearForwardingTable) with data that is not 0",
            "data",
        ),
        entry("no-random-fdb", "", "has RandomFDBCap 0", "RandomFDBCap"),
        entry(
            "late",
            "MILLISECONDS",
            "answers so much (1000) too late",
            "answers in time",
        ),
        entry("twice", "", "answers twice", "one answer"),
        entry("other-tid", "", "answers with another TID", "answers"),
        entry("truncated", "", "answers with 200 octets", "answers"),
        entry("silent", "ATTRIBUTE", SILENT_DOES, "answers"),
        entry(
            "busy",
            "N",
            "answers the first N (1) requests with status BUSY",
            "answers",
        ),
        entry("drops", "N", "loses every Nth (10th) request", "answers"),
    ];

    /// The catalogue as text, a line each.
    pub fn help() -> String {
        let mut text = String::from("Faults, each with what it makes fail:\n");
        for Entry {
            name,
            value,
            does,
            fails,
        } in Self::CATALOGUE
        {
            let value = if value.is_empty() {
                String::new()
            } else {
                format!("[={value}]")
            };
            text += &format!("  {:<32}{does} ({fails})\n", format!("{name}{value}"));
        }
        text
    }
}

const SILENT_DOES: &str = "never answers; ATTRIBUTE: everything, node-info, switch-info, port-info or linear-forwarding-table";

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(name, value)| (name, Some(value)));
        let Entry {
            name, value: shape, ..
        } = *Self::CATALOGUE
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| FaultError::Unknown(name.into()))?;
        let wrong = |expected| {
            move || FaultError::Value {
                name,
                expected,
                found: value.unwrap_or_default().into(),
            }
        };
        if shape.is_empty() && value.is_some() {
            return Err(wrong("no value")());
        }
        let code = || {
            let code = value.unwrap_or("0").parse().ok().filter(|code| *code < 8);
            code.ok_or_else(wrong("a status code of 0 to 7"))
        };
        Ok(match name {
            "answers-wrong-key" => Self::AnswersWrongKey,
            "shows-key" => Self::ShowsKey,
            "hides-key" => Self::HidesKey,
            "no-violations" => Self::NoViolations,
            "counts-twice" => Self::CountsTwice,
            "counts-good-key" => Self::CountsGoodKey,
            "ignores-key-set" => Self::IgnoresKeySet,
            "ignores-protect-bits" => Self::IgnoresProtectBits,
            "refuses-its-key" => Self::RefusesItsKey,
            "refuses-other-key" => Self::RefusesOtherKey,
            "forgets-key" => Self::ForgetsKey,
            "locks-out" => Self::LocksOut,
            "keeps-key" => Self::KeepsKey,
            "keeps-violations" => Self::KeepsViolations,
            "one-key" => Self::OneKey,
            "refuses-lid-0" => Self::RefusesLid0,
            "lft-status" => Self::LftStatus(code()?),
            "lft-get-status" => Self::LftGetStatus(code()?),
            "lft-set-status" => Self::LftSetStatus(code()?),
            "lft-one-block" => {
                let block = value
                    .unwrap_or("500")
                    .parse()
                    .ok()
                    .filter(|block| *block < 768);
                Self::LftOneBlock(block.ok_or_else(wrong("a block of 0 to 767"))?)
            }
            "lft-attribute" => Self::LftAttribute,
            "lft-modifier" => Self::LftModifier,
            "lft-data" => Self::LftData,
            "no-random-fdb" => Self::NoRandomFdb,
            "late" => {
                let milliseconds = value
                    .unwrap_or("1000")
                    .parse()
                    .map_err(|_| wrong("a number of milliseconds")())?;
                Self::Late(Duration::from_millis(milliseconds))
            }
            "twice" => Self::Twice,
            "other-tid" => Self::OtherTid,
            "truncated" => Self::Truncated,
            "silent" => Self::Silent(match value.unwrap_or(EVERYTHING) {
                EVERYTHING => None,
                value => {
                    let known = ATTRIBUTES.iter().find(|(name, _)| *name == value);
                    let expected =
                        "everything, node-info, switch-info, port-info or linear-forwarding-table";
                    Some(known.ok_or_else(wrong(expected))?.1)
                }
            }),
            "busy" => Self::Busy(
                value
                    .unwrap_or("1")
                    .parse()
                    .map_err(|_| wrong("a number of requests")())?,
            ),
            "drops" => Self::Drops(
                value
                    .unwrap_or("10")
                    .parse()
                    .map_err(|_| wrong("a number of requests above 0")())?,
            ),
            _ => unreachable!("{name} is in the catalogue"),
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnswersWrongKey => f.write_str("answers-wrong-key"),
            Self::ShowsKey => f.write_str("shows-key"),
            Self::HidesKey => f.write_str("hides-key"),
            Self::NoViolations => f.write_str("no-violations"),
            Self::CountsTwice => f.write_str("counts-twice"),
            Self::CountsGoodKey => f.write_str("counts-good-key"),
            Self::IgnoresKeySet => f.write_str("ignores-key-set"),
            Self::IgnoresProtectBits => f.write_str("ignores-protect-bits"),
            Self::RefusesItsKey => f.write_str("refuses-its-key"),
            Self::RefusesOtherKey => f.write_str("refuses-other-key"),
            Self::ForgetsKey => f.write_str("forgets-key"),
            Self::LocksOut => f.write_str("locks-out"),
            Self::KeepsKey => f.write_str("keeps-key"),
            Self::KeepsViolations => f.write_str("keeps-violations"),
            Self::OneKey => f.write_str("one-key"),
            Self::RefusesLid0 => f.write_str("refuses-lid-0"),
            Self::LftStatus(code) => write!(f, "lft-status={code}"),
            Self::LftGetStatus(code) => write!(f, "lft-get-status={code}"),
            Self::LftSetStatus(code) => write!(f, "lft-set-status={code}"),
            Self::LftOneBlock(block) => write!(f, "lft-one-block={block}"),
            Self::LftAttribute => f.write_str("lft-attribute"),
            Self::LftModifier => f.write_str("lft-modifier"),
            Self::LftData => f.write_str("lft-data"),
            Self::NoRandomFdb => f.write_str("no-random-fdb"),
            Self::Late(by) => write!(f, "late={}", by.as_millis()),
            Self::Twice => f.write_str("twice"),
            Self::OtherTid => f.write_str("other-tid"),
            Self::Truncated => f.write_str("truncated"),
            Self::Silent(attribute) => {
                let name = ATTRIBUTES
                    .iter()
                    .find(|(_, id)| Some(*id) == *attribute)
                    .map_or(EVERYTHING, |(name, _)| name);
                write!(f, "silent={name}")
            }
            Self::Busy(first) => write!(f, "busy={first}"),
            Self::Drops(nth) => write!(f, "drops={nth}"),
        }
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
    fn the_catalogue_is_in_the_order_of_the_enum() {
        let names = Fault::help();
        let lines: Vec<_> = names
            .lines()
            .skip(1)
            .map(|line| line.split([' ', '[']).nth(2).unwrap())
            .collect();
        assert_eq!(lines, Fault::CATALOGUE.map(|entry| entry.name));
    }

    #[test]
    fn values_are_read() {
        assert_eq!("lft-status=3".parse(), Ok(Fault::LftStatus(3)));
        assert_eq!("lft-one-block=767".parse(), Ok(Fault::LftOneBlock(767)));
        assert_eq!(
            "late=20".parse(),
            Ok(Fault::Late(Duration::from_millis(20)))
        );
        assert_eq!("busy=4".parse(), Ok(Fault::Busy(4)));
        assert_eq!(
            "drops=7".parse(),
            Ok(Fault::Drops(NonZeroU64::new(7).unwrap()))
        );
        for (name, attribute) in ATTRIBUTES {
            let fault = Fault::Silent(Some(attribute));
            assert_eq!(format!("silent={name}").parse(), Ok(fault));
            assert_eq!(fault.to_string(), format!("silent={name}"));
        }
    }

    #[test]
    fn wrong_values_are_refused_with_what_was_expected() {
        for (text, message) in [
            (
                "silend",
                "no fault is called \"silend\": see `validator dut sma --help` for all of them",
            ),
            ("twice=2", "twice takes no value, found \"2\""),
            (
                "lft-status=8",
                "lft-status takes a status code of 0 to 7, found \"8\"",
            ),
            (
                "lft-one-block=768",
                "lft-one-block takes a block of 0 to 767, found \"768\"",
            ),
            (
                "late=1s",
                "late takes a number of milliseconds, found \"1s\"",
            ),
            ("busy=-1", "busy takes a number of requests, found \"-1\""),
            (
                "drops=0",
                "drops takes a number of requests above 0, found \"0\"",
            ),
            (
                "silent=notice",
                "silent takes everything, node-info, switch-info, port-info or linear-forwarding-table, found \"notice\"",
            ),
        ] {
            assert_eq!(text.parse::<Fault>().unwrap_err().to_string(), message);
        }
    }
}
