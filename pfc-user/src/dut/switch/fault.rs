//! What a switch can be made to do wrong, by name.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use pfc_ebpf::units::Priority;

use crate::dut::catalogue::{self, Entry, FaultError, entry};

/// One event in so many.
pub type OneIn = NonZeroU64;

/// Whose frames a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every frame.
    All,
    /// Frames of lossless priorities.
    Lossless,
    /// Frames of lossy priorities.
    Lossy,
    /// Frames of one priority.
    Priority(Priority),
}

/// A way in which the simulated switch departs from the standard. [`Fault::CATALOGUE`] describes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the catalogue below says what each does")]
pub enum Fault {
    IgnoresPfc,
    IgnoresRefresh,
    OffByOneClass,
    Leaks(OneIn),
    PfcPausesAll,
    PausesOtherLossless,
    LossyObeysPfc,
    ObeysPause,
    NeverResumes,
    ResumesEarly,
    IgnoresXon,
    SlowResponse(Duration),
    LosesHeld(OneIn),
    DiesAfterPause,
    NoUpstreamPfc,
    XoffForLossy,
    Drops(Scope, OneIn),
    DropsLossyInStorm(OneIn),
    Throttles(Percent),
    Dips,
    Duplicates(OneIn),
    Reorders(OneIn),
    Corrupts(OneIn),
    Remarks(OneIn),
    ForwardsControl,
}

/// A share of the line rate, 1 to 99.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(u8);

impl Percent {
    /// 1 to 99.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Fault {
    /// Every fault, in the order of the enum.
    pub const CATALOGUE: [Entry; 25] = [
        entry("ignores-pfc", "", "sends on whatever PFC says", "paused"),
        entry(
            "ignores-refresh",
            "",
            "takes no XOFF for a priority that is paused already",
            "paused",
        ),
        entry(
            "off-by-one-class",
            "",
            "pauses priority n + 1 when PFC names n",
            "paused",
        ),
        entry(
            "leaks",
            "N",
            "sends one frame for every N (100) that arrive for a paused priority",
            "paused",
        ),
        entry(
            "pfc-pauses-all",
            "",
            "pauses all priorities when PFC names any",
            "background",
        ),
        entry(
            "pauses-other-lossless",
            "",
            "pauses all lossless priorities when PFC names one",
            "isolation",
        ),
        entry(
            "lossy-obeys-pfc",
            "",
            "obeys PFC for lossy priorities",
            "test-traffic",
        ),
        entry("obeys-pause", "", "obeys 802.3x PAUSE", "no-loss"),
        entry(
            "never-resumes",
            "",
            "lets no pause run out; only XON ends it",
            "delivered",
        ),
        entry("resumes-early", "", "pauses for half the time", "response"),
        entry("ignores-xon", "", "goes on pausing after XON", "xon"),
        entry(
            "slow-response",
            "MILLISECONDS",
            "acts on PFC so much (5) later",
            "response",
        ),
        entry(
            "loses-held",
            "N",
            "loses one in N (10) of the frames that a pause holds back",
            "delivered",
        ),
        entry(
            "dies-after-pause",
            "",
            "forwards nothing more of a priority after a pause of 100 ms or more",
            "resume",
        ),
        entry(
            "no-upstream-pfc",
            "",
            "sends no XOFF and overflows",
            "delivered",
        ),
        entry(
            "xoff-for-lossy",
            "",
            "sends an XOFF for one in 1000 frames of lossy priorities",
            "no-pfc-on-lossy",
        ),
        entry(
            "drops",
            "WHICH[:N]",
            "drops one in N (100) frames; WHICH: all, lossless, lossy or a priority",
            "delivered",
        ),
        entry(
            "drops-lossy-in-storm",
            "N",
            "drops one in N (100) lossy frames while PFC pauses anything",
            "background",
        ),
        entry(
            "throttles",
            "PERCENT",
            "sends at so much (90) of the line rate",
            "throughput",
        ),
        entry(
            "dips",
            "",
            "sends no data for 20 ms in every 250 ms",
            "no-dip",
        ),
        entry(
            "duplicates",
            "N",
            "sends one frame in N (1000) twice",
            "no-duplicate",
        ),
        entry(
            "reorders",
            "N",
            "swaps one frame in N (1000) with the next of its flow",
            "no-reorder",
        ),
        entry(
            "corrupts",
            "N",
            "flips a bit in the payload of one frame in N (1000)",
            "no-corruption",
        ),
        entry(
            "remarks",
            "N",
            "changes the DSCP (or PCP) of one frame in N (1000)",
            "no-remark",
        ),
        entry(
            "forwards-control",
            "",
            "forwards PAUSE and PFC frames",
            "no-mac-control-forwarded",
        ),
    ];

    /// The catalogue as text, a line each.
    pub fn help() -> String {
        catalogue::help(&Self::CATALOGUE)
    }
}

impl FromStr for Scope {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "all" => Ok(Self::All),
            "lossless" => Ok(Self::Lossless),
            "lossy" => Ok(Self::Lossy),
            priority => {
                let priority = priority.parse().map_err(drop)?;
                Priority::new(priority).map(Self::Priority).map_err(drop)
            }
        }
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (name, value) = catalogue::find(&Self::CATALOGUE, "switch", text)?;
        let wrong = |expected| {
            move || FaultError::Value {
                name,
                expected,
                found: value.unwrap_or_default().into(),
            }
        };
        let one_in = |default: u64| {
            let n = value.map_or(Some(default), |value| value.parse().ok());
            n.and_then(OneIn::new)
                .ok_or_else(wrong("a number of frames above 0"))
        };
        Ok(match name {
            "ignores-pfc" => Self::IgnoresPfc,
            "ignores-refresh" => Self::IgnoresRefresh,
            "off-by-one-class" => Self::OffByOneClass,
            "leaks" => Self::Leaks(one_in(100)?),
            "pfc-pauses-all" => Self::PfcPausesAll,
            "pauses-other-lossless" => Self::PausesOtherLossless,
            "lossy-obeys-pfc" => Self::LossyObeysPfc,
            "obeys-pause" => Self::ObeysPause,
            "never-resumes" => Self::NeverResumes,
            "resumes-early" => Self::ResumesEarly,
            "ignores-xon" => Self::IgnoresXon,
            "slow-response" => {
                let milliseconds = value
                    .unwrap_or("5")
                    .parse()
                    .map_err(|_| wrong("a number of milliseconds")())?;
                Self::SlowResponse(Duration::from_millis(milliseconds))
            }
            "loses-held" => Self::LosesHeld(one_in(10)?),
            "dies-after-pause" => Self::DiesAfterPause,
            "no-upstream-pfc" => Self::NoUpstreamPfc,
            "xoff-for-lossy" => Self::XoffForLossy,
            "drops" => {
                let (which, n) = value
                    .unwrap_or("all")
                    .split_once(':')
                    .unwrap_or((value.unwrap_or("all"), "100"));
                let read = which.parse().ok().zip(n.parse().ok().and_then(OneIn::new));
                let (scope, n) = read.ok_or_else(wrong(
                    "all, lossless, lossy or a priority, and :N for one in N frames",
                ))?;
                Self::Drops(scope, n)
            }
            "drops-lossy-in-storm" => Self::DropsLossyInStorm(one_in(100)?),
            "throttles" => {
                let percent = value
                    .unwrap_or("90")
                    .parse()
                    .ok()
                    .filter(|percent| (1..100).contains(percent));
                Self::Throttles(Percent(
                    percent.ok_or_else(wrong("a share of 1 to 99 percent"))?,
                ))
            }
            "dips" => Self::Dips,
            "duplicates" => Self::Duplicates(one_in(1000)?),
            "reorders" => Self::Reorders(one_in(1000)?),
            "corrupts" => Self::Corrupts(one_in(1000)?),
            "remarks" => Self::Remarks(one_in(1000)?),
            "forwards-control" => Self::ForwardsControl,
            _ => unreachable!("{name} is in the catalogue"),
        })
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Lossless => f.write_str("lossless"),
            Self::Lossy => f.write_str("lossy"),
            Self::Priority(priority) => priority.fmt(f),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IgnoresPfc => f.write_str("ignores-pfc"),
            Self::IgnoresRefresh => f.write_str("ignores-refresh"),
            Self::OffByOneClass => f.write_str("off-by-one-class"),
            Self::Leaks(n) => write!(f, "leaks={n}"),
            Self::PfcPausesAll => f.write_str("pfc-pauses-all"),
            Self::PausesOtherLossless => f.write_str("pauses-other-lossless"),
            Self::LossyObeysPfc => f.write_str("lossy-obeys-pfc"),
            Self::ObeysPause => f.write_str("obeys-pause"),
            Self::NeverResumes => f.write_str("never-resumes"),
            Self::ResumesEarly => f.write_str("resumes-early"),
            Self::IgnoresXon => f.write_str("ignores-xon"),
            Self::SlowResponse(delay) => write!(f, "slow-response={}", delay.as_millis()),
            Self::LosesHeld(n) => write!(f, "loses-held={n}"),
            Self::DiesAfterPause => f.write_str("dies-after-pause"),
            Self::NoUpstreamPfc => f.write_str("no-upstream-pfc"),
            Self::XoffForLossy => f.write_str("xoff-for-lossy"),
            Self::Drops(scope, n) => write!(f, "drops={scope}:{n}"),
            Self::DropsLossyInStorm(n) => write!(f, "drops-lossy-in-storm={n}"),
            Self::Throttles(percent) => write!(f, "throttles={}", percent.0),
            Self::Dips => f.write_str("dips"),
            Self::Duplicates(n) => write!(f, "duplicates={n}"),
            Self::Reorders(n) => write!(f, "reorders={n}"),
            Self::Corrupts(n) => write!(f, "corrupts={n}"),
            Self::Remarks(n) => write!(f, "remarks={n}"),
            Self::ForwardsControl => f.write_str("forwards-control"),
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
    fn values_are_read() {
        let one_in = |n| OneIn::new(n).unwrap();
        assert_eq!("leaks=7".parse(), Ok(Fault::Leaks(one_in(7))));
        assert_eq!(
            "slow-response=20".parse(),
            Ok(Fault::SlowResponse(Duration::from_millis(20)))
        );
        assert_eq!(
            "drops=lossless:50".parse(),
            Ok(Fault::Drops(Scope::Lossless, one_in(50)))
        );
        assert_eq!(
            "drops=3".parse(),
            Ok(Fault::Drops(
                Scope::Priority(Priority::new(3).unwrap()),
                one_in(100)
            ))
        );
        assert_eq!("throttles=50".parse(), Ok(Fault::Throttles(Percent(50))));
    }

    #[test]
    fn wrong_values_are_refused_with_what_was_expected() {
        for (text, message) in [
            (
                "dropz",
                "no fault is called \"dropz\": see `validator dut switch --help` for all of them",
            ),
            (
                "leaks=0",
                "leaks takes a number of frames above 0, found \"0\"",
            ),
            ("ignores-pfc=1", "ignores-pfc takes no value, found \"1\""),
            (
                "drops=8",
                "drops takes all, lossless, lossy or a priority, and :N for one in N frames, found \"8\"",
            ),
            (
                "throttles=100",
                "throttles takes a share of 1 to 99 percent, found \"100\"",
            ),
            (
                "slow-response=5ms",
                "slow-response takes a number of milliseconds, found \"5ms\"",
            ),
        ] {
            assert_eq!(text.parse::<Fault>().unwrap_err().to_string(), message);
        }
    }
}
