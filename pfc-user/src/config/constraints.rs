//! Checks that testbed and plan have in common.

use std::fmt::Display;
use std::str::FromStr;

use validator_core::plan::Nanos;
use validator_core::quantity::Span;

use super::ConfigError;
use super::document::Document;

/// The value of a key that has to be there.
pub(super) fn required<T>(
    document: &Document,
    key: &str,
    given: Option<T>,
    what: &str,
) -> Result<T, ConfigError> {
    given.ok_or_else(|| document.error(key, format!("missing: {what}")))
}

/// Optional keys of a table, each with its prefix, and true for those that are given.
macro_rules! given {
    ($table:ident at $prefix:literal: $($key:ident)+) => {
        [$((concat!($prefix, stringify!($key)), $table.$key.is_some())),+]
    };
}
pub(super) use given;

/// Refuses the first key that is given, of those that have no use here.
pub(super) fn refuse(
    document: &Document,
    keys: &[(&str, bool)],
    problem: &str,
) -> Result<(), ConfigError> {
    match keys.iter().find(|(_, given)| *given) {
        Some((key, _)) => Err(document.error(key, problem)),
        None => Ok(()),
    }
}

/// Faults of a simulated device by their names at `key`.
pub(super) fn faults<F: FromStr<Err: Display>>(
    document: &Document,
    key: &str,
    names: &[String],
) -> Result<Vec<F>, ConfigError> {
    let read = |(index, name): (usize, &String)| {
        name.parse()
            .map_err(|error: F::Err| document.error(&format!("{key}[{index}]"), error.to_string()))
    };
    names.iter().enumerate().map(read).collect()
}

/// `given` or `default`; an error when that is no time at all, or one above `most`.
pub(super) fn positive(
    document: &Document,
    key: &str,
    given: Option<Span>,
    default: Nanos,
    most: Nanos,
) -> Result<Nanos, ConfigError> {
    match given {
        Some(Span(0)) => Err(document.error(key, "expected a time above 0")),
        Some(found) if found.0 > most => {
            let problem = format!("expected at most {}, found {found}", Span(most));
            Err(document.error(key, problem))
        }
        Some(Span(nanos)) => Ok(nanos),
        None => Ok(default),
    }
}
