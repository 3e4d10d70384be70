//! Limits that PFC verdicts are judged by.

use std::ops::RangeInclusive;

use pfc_ebpf::units::{LineRate, SECOND};
use serde::Deserialize;
use validator_core::keys;
use validator_core::plan::{self, Nanos};
use validator_core::quantity::{Octets, Span};

use crate::config::ConfigError;
use crate::config::constraints::positive;
use crate::config::document::Document;

/// The testbed's part of [`plan::Limits`], before the line rate is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerances {
    /// Longest time from a pause frame to the last frame.
    pub max_response: Nanos,
    /// Octets per lossless priority that the DUT can take after its own XOFF.
    pub headroom: u64,
    /// Octets of one lossless priority up to which the DUT asks for no pause.
    pub xoff: Option<u64>,
    /// Longest wait in the DUT without a drop.
    pub max_residence: Nanos,
    /// Share of the offered rate that has to arrive in the case on 802.3x.
    pub min_throughput: f64,
    /// Share of the line rate that counts as 100 %.
    pub load: f64,
    /// The sender's largest burst.
    pub max_burst: Nanos,
    /// Times that a repetition is measured at most, where the tester was disturbed; at least 1.
    pub attempts: u32,
}

impl Tolerances {
    /// The limits for ports of that speed.
    pub fn at(&self, line_rate: LineRate) -> plan::Limits {
        plan::Limits {
            line_rate,
            max_response: self.max_response,
            headroom: self.headroom,
            xoff: self.xoff,
            max_residence: self.max_residence,
            min_throughput: self.min_throughput,
            max_burst: self.max_burst,
        }
    }
}

keys::table! {
    /// Limits that PFC verdicts are judged by.
    #[derive(Default, Deserialize)]
    pub(super) struct Table: "limits", "limits." {
        /// Longest time from a pause frame to the last data frame, and from an XON to the first. At
        /// most 1s.
        max_response: Option<Span> = "time", "\"1ms\"";
        /// Octets of one lossless priority that the DUT can take after its own XOFF. At most 1GiB.
        headroom: Option<Octets> = "octets", "\"1MiB\"";
        /// Octets of one lossless priority up to which the DUT asks for no pause: the XOFF
        /// threshold of its buffer, less what a frame takes more in its cells. At most 1GiB.
        /// `pfc.no-congestion` judges by it whether the DUT is silent.
        xoff: Option<Octets> = "octets", "not known";
        /// Longest time that a frame may wait in the DUT without being dropped for it. At most
        /// 1min.
        max_residence: Option<Span> = "time", "\"1s\"";
        /// Share of the offered rate that has to arrive during the 802.3x storm.
        min_throughput: Option<f64> = "share", "0.99";
        /// Share of the line rate that counts as 100 %, at least 0.01. 0.9998 leaves room for two
        /// clocks 100 ppm apart.
        load: Option<f64> = "share", "1.0";
        /// The sender's largest burst, at most 4 ms; less where the DUT's lossy queues are short.
        /// Two frames, where those take longer at the line rate.
        max_burst: Option<Span> = "time", "\"4ms\"";
        /// Times that a repetition is measured at most, as long as a check is inconclusive because
        /// the tester itself was disturbed.
        attempts: Option<u32> = "1 to 10", "3";
    }
}

/// The limits in `table`, checked.
pub(super) fn read(document: &Document, table: &Table) -> Result<Tolerances, ConfigError> {
    const MAX_BURST: Nanos = 4_000_000;
    const ATTEMPTS: RangeInclusive<u32> = 1..=10;
    const LEAST_LOAD: f64 = 0.01;
    let time = |key: &str, given, default, most| {
        positive(document, &format!("limits.{key}"), given, default, most)
    };
    let limits = Tolerances {
        max_response: time("max_response", table.max_response, 1_000_000, SECOND)?,
        headroom: octets(document, "headroom", table.headroom)?.unwrap_or(1 << 20),
        xoff: octets(document, "xoff", table.xoff)?,
        max_residence: time("max_residence", table.max_residence, SECOND, 60 * SECOND)?,
        min_throughput: share(document, "min_throughput", table.min_throughput, 0.99)?,
        load: share(document, "load", table.load, 1.0)?,
        max_burst: time("max_burst", table.max_burst, MAX_BURST, MAX_BURST)?,
        attempts: table.attempts.unwrap_or(3),
    };
    if !ATTEMPTS.contains(&limits.attempts) {
        let (least, most, found) = (ATTEMPTS.start(), ATTEMPTS.end(), limits.attempts);
        let problem = format!("expected {least} to {most}, found {found}");
        return Err(document.error("limits.attempts", problem));
    }
    if limits.load < LEAST_LOAD {
        let problem = format!(
            "expected at least {LEAST_LOAD}, found {}: with less, nothing is there to be paused",
            limits.load
        );
        return Err(document.error("limits.load", problem));
    }
    Ok(limits)
}

/// Octets of a buffer.
fn octets(
    document: &Document,
    key: &str,
    given: Option<Octets>,
) -> Result<Option<u64>, ConfigError> {
    // More than any switch has in all.
    const MOST: Octets = Octets(1 << 30);
    if let Some(given) = given.filter(|given| *given > MOST) {
        let problem = format!("expected at most {MOST}, found {given}");
        return Err(document.error(&format!("limits.{key}"), problem));
    }
    Ok(given.map(|octets| octets.0))
}

fn share(
    document: &Document,
    key: &str,
    given: Option<f64>,
    default: f64,
) -> Result<f64, ConfigError> {
    match given.unwrap_or(default) {
        share if share > 0.0 && share <= 1.0 => Ok(share),
        found => {
            let problem = format!("expected a share above 0 and at most 1, found {found}");
            Err(document.error(&format!("limits.{key}"), problem))
        }
    }
}
