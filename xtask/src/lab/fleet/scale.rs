//! The configuration of a fleet in which everything takes a fifteenth of the time: scraped and
//! evaluated each second, and every duration of the rules divided alike.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::lab::archive::cannot_write;

/// The divisor: 15 s become 1 s.
pub const FACTOR: u64 = 15;
/// Keys whose values are durations.
const KEYS: [&str; 3] = ["for:", "scrape_interval:", "evaluation_interval:"];
/// The files that Prometheus reads.
const FILES: [&str; 3] = ["prometheus.yml", "rules.yml", "alerts.yml"];

/// Copies the configuration with its durations divided by `factor`.
pub fn copy(from: &Path, to: &Path, factor: u64) -> Result<()> {
    fs::create_dir_all(to.join("targets")).with_context(|| cannot_write(to))?;
    for name in FILES {
        let path = from.join(name);
        let cannot = || format!("cannot read {}", path.display());
        let text = fs::read_to_string(&path).with_context(cannot)?;
        let text = divided(&text, factor).with_context(|| path.display().to_string())?;
        let path = to.join(name);
        fs::write(&path, text).with_context(|| cannot_write(&path))?;
    }
    Ok(())
}

/// `text` with its durations divided. Those in comments and in texts for people stay.
fn divided(text: &str, factor: u64) -> Result<String> {
    let mut out = String::new();
    for line in text.lines() {
        out.push_str(&divided_line(line, factor).with_context(|| format!("in the line {line}"))?);
        out.push('\n');
    }
    Ok(out)
}

fn divided_line(line: &str, factor: u64) -> Result<String> {
    let words = line.trim_start();
    if words.starts_with('#') {
        return Ok(line.to_owned());
    }
    if let Some(key) = KEYS.iter().find(|key| words.starts_with(**key)) {
        let indent = &line[..line.len() - words.len()];
        let value = words[key.len()..].trim();
        return Ok(format!("{indent}{key} {}", quotient(value, factor)?));
    }
    let mut parts = line.split('[');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (range, rest) = part.split_once(']').context("expected [DURATION]")?;
        out.push_str(&format!("[{}]{rest}", quotient(range, factor)?));
    }
    Ok(out)
}

/// A duration in whole seconds, divided.
fn quotient(duration: &str, factor: u64) -> Result<String> {
    let units = [('s', 1), ('m', 60), ('h', 3600)];
    let seconds = units.iter().find_map(|(unit, seconds)| {
        let number: u64 = duration.strip_suffix(*unit)?.parse().ok()?;
        Some(number * seconds)
    });
    match seconds {
        Some(seconds) if seconds % factor == 0 => Ok(format!("{}s", seconds / factor)),
        Some(_) => bail!("expected a multiple of {factor} s, found {duration}"),
        None => bail!("expected a duration such as 15s, 1m or 1h, found {duration}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_divided_and_words_stay() {
        let text = "# of [1m]\n  scrape_interval: 15s\n    for: 5m\n  expr: rate(a:b:ratio1m[1m]) \
                    > rate(c[5m])\n  summary: count 10s\n";
        let expected = "# of [1m]\n  scrape_interval: 1s\n    for: 20s\n  expr: \
                        rate(a:b:ratio1m[4s]) > rate(c[20s])\n  summary: count 10s\n";
        assert_eq!(divided(text, FACTOR).unwrap(), expected);
        assert_eq!(divided("for: 1h", 1).unwrap(), "for: 3600s\n");
    }

    #[test]
    fn what_cannot_be_divided_is_refused() {
        for (line, part) in [
            ("for: 10s", "expected a multiple of 15 s, found 10s"),
            ("rate(a[x])", "found x"),
            ("rate(a[1m)", "expected [DURATION]"),
        ] {
            let error = format!("{:#}", divided(line, FACTOR).unwrap_err());
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn the_published_configuration_can_be_divided() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let folder = tempfile::tempdir().unwrap();
        copy(&root.join("configs/prometheus"), folder.path(), FACTOR).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(read("prometheus.yml").contains("  scrape_interval: 1s\n"));
        let rules = read("rules.yml") + &read("alerts.yml");
        assert!(rules.contains("[4s]") && rules.contains("for: 20s"));
        assert!(!rules.contains("[1m]") && !rules.contains("for: 1m"));
    }
}
