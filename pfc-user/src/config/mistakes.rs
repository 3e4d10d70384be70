//! All mistakes of a file at once: each wrong value is taken out, or replaced where it is
//! mandatory, and the file is read again.

use super::ConfigError;
use super::document::Document;

/// Reads `document` by `read`.
///
/// # Errors
/// One error for each mistake, but for those that an earlier one may have caused.
pub(super) fn all<'a, T>(
    mut document: Document<'a>,
    read: impl Fn(&Document<'a>) -> Result<T, ConfigError>,
) -> Result<T, ConfigError> {
    let mut mistakes: Vec<ConfigError> = Vec::new();
    let mut changed: Vec<String> = Vec::new();
    loop {
        let error = match read(&document) {
            Ok(read) if mistakes.is_empty() => return Ok(read),
            Ok(_) => break,
            Err(error) => error,
        };
        let Some(key) = key(&error) else {
            mistakes.push(error);
            break;
        };
        if !changed.iter().any(|known| may_cause(known, &key, &error)) {
            mistakes.push(error);
        }
        // Each key is taken out once, and replaced once.
        let done = match document.has(&key) {
            true => document.replace(&key, None),
            false => substitute(&document, &key)
                .is_some_and(|substitute| document.replace(&key, Some(substitute))),
        };
        let is_new = changed.iter().filter(|known| **known == key).count() < 2;
        if !done || !is_new {
            break;
        }
        changed.push(key);
    }
    match mistakes.len() {
        1 => Err(mistakes.remove(0)),
        _ => Err(ConfigError::Several(mistakes)),
    }
}

/// The key that an error is about; `None` where it is about none.
fn key(error: &ConfigError) -> Option<String> {
    let ConfigError::At { key, problem, .. } = error else {
        return None;
    };
    let missing = problem.split_once("missing field `");
    let missing = missing.and_then(|(_, rest)| rest.split('`').next());
    match (key.as_str(), missing) {
        ("", None) => None,
        ("", Some(missing)) => Some(missing.to_owned()),
        (table, Some(missing)) => Some(format!("{table}.{missing}")),
        (key, None) => Some(key.to_owned()),
    }
}

/// True if the change of `known` may be what the error about `key` comes from.
fn may_cause(known: &str, key: &str, error: &ConfigError) -> bool {
    let parent = |key: &str| key.rsplit_once('.').map(|(table, _)| table.to_owned());
    let is_missing = error.to_string().contains("missing");
    // A misspelt key is another one that is missing; the kind of a device, which was guessed, asks
    // for keys of its own.
    let is_kind = match known {
        "dut.kind" => ["ports", "qos"].iter().any(|table| is_within(key, table)),
        "mad.transport" => is_within(key, "mad"),
        "rc.dut" => is_within(key, "rc"),
        _ => false,
    };
    let is_sibling = parent(known).is_some() && parent(known) == parent(key);
    // Addresses have to fit each other, and the defaults.
    let are_addresses = is_within(known, "addresses") && is_within(key, "addresses");
    is_within(known, key)
        || is_within(key, known)
        || is_missing && (is_kind || is_sibling && error.to_string().contains("missing field"))
        || are_addresses
}

/// True if `key` is `table`, or a key in it.
fn is_within(key: &str, table: &str) -> bool {
    let rest = key.strip_prefix(table);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// A value for a mandatory key, so that the rest can be read.
fn substitute(document: &Document<'_>, key: &str) -> Option<&'static str> {
    Some(match key {
        "name" => "'a'",
        "dut.kind" if document.has("ports.tx") || document.has("ports.rx") => "'external'",
        "dut.kind" => "'sim'",
        "ports.line_rate" => "'1G'",
        "ports.tx" => "{ interface = 'a' }",
        "ports.rx" => "{ interface = 'b' }",
        "qos.dscp_map" => "'dscp-mod-8'",
        "qos.lossless" => "[3]",
        "mad.transport" if document.has("mad.device") => "'umad'",
        "mad.transport" if document.has("mad.socket") => "'ibsim'",
        "mad.transport" => "'sim'",
        "mad.socket" | "mad.host" | "mad.device" => "'a'",
        "rc.dut" if document.has("rc.agent") => "'agent'",
        "rc.dut" => "'sim'",
        "rc.agent" => "'a:1'",
        "rc.port" => "{ interface = 'c' }",
        "rc.address" => "'198.18.16.1'",
        _ => return None,
    })
}
