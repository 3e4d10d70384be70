//! Shared by the benchmarks: their extent, and the report of their figures.
//!
//! Each benchmark prints for people. Figures for `cargo xtask bench` go to the file named by
//! `VALIDATOR_BENCH_JSON`, one JSON object per line.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;

use serde_json::{Value, json};

/// Extent of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Few and short repeats.
    Quick,
    /// The basis of the figures in BENCHMARKS.md.
    Full,
    /// As `Full`, with the run of 10 minutes.
    Long,
}

impl Extent {
    /// Reads the extent from the environment.
    pub fn asked() -> Self {
        match (
            env::var_os("VALIDATOR_BENCH_QUICK"),
            env::var_os("VALIDATOR_BENCH_LONG"),
        ) {
            (Some(_), _) => Self::Quick,
            (None, Some(_)) => Self::Long,
            (None, None) => Self::Full,
        }
    }

    /// Returns `quick` for that extent, `full` for the others.
    pub fn pick<T>(self, quick: T, full: T) -> T {
        if self == Self::Quick { quick } else { full }
    }
}

/// Median, least and greatest value of repeats.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// # Panics
    /// Panics without values.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        };
        Self {
            median,
            min: sorted[0],
            max: sorted[sorted.len() - 1],
        }
    }

    /// Spread of the ratios between the two values of each round.
    pub fn of_ratios(values: &[f64], others: &[f64]) -> Self {
        Self::of(
            &values
                .iter()
                .zip(others)
                .map(|(value, other)| value / other)
                .collect::<Vec<_>>(),
        )
    }
}

/// Destination of a benchmark's figures.
#[derive(Clone, Copy)]
pub struct Report(pub &'static str);

impl Report {
    /// Reports a figure by its repeats.
    pub fn figure(self, name: &str, unit: &str, values: &[f64]) {
        self.line(figure(name, unit, values));
    }

    /// Reports a figure, and its ratio to `others`, measured in the same rounds.
    pub fn beside(self, name: &str, unit: &str, values: &[f64], beside: &str, others: &[f64]) {
        let ratio = Spread::of_ratios(values, others);
        let mut line = figure(name, unit, values);
        line["beside"] = beside.into();
        for (key, value) in [
            ("ratio", ratio.median),
            ("ratio_min", ratio.min),
            ("ratio_max", ratio.max),
        ] {
            // A ratio to 0 is not reported.
            if value.is_finite() {
                line[key] = value.into();
            }
        }
        self.line(line);
    }

    /// Reports something that cannot be measured here.
    pub fn skip(self, name: &str, reason: &str) {
        println!("  skipped: {name}: {reason}");
        self.line(json!({"name": name, "skipped": reason}));
    }

    fn line(self, mut line: Value) {
        line["bench"] = self.0.into();
        let Some(file) = env::var_os("VALIDATOR_BENCH_JSON") else {
            return;
        };
        let appended = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .and_then(|mut file| writeln!(file, "{line}"));
        appended.unwrap_or_else(|error| {
            panic!("VALIDATOR_BENCH_JSON names {}: {error}", file.display())
        });
    }
}

fn figure(name: &str, unit: &str, values: &[f64]) -> Value {
    let Spread { median, min, max } = Spread::of(values);
    json!({"name": name, "unit": unit, "median": median, "min": min, "max": max})
}

// Each benchmark compiles this module anew, and few use all of it.
const _: fn() -> Extent = Extent::asked;
const _: fn(Extent, u8, u8) -> u8 = Extent::pick;
const _: fn(Report, &str, &str, &[f64]) = Report::figure;
const _: fn(Report, &str, &str, &[f64], &str, &[f64]) = Report::beside;
const _: fn(Report, &str, &str) = Report::skip;
