//! Steps with a headline and the time that they took, and the commands in them.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, Result, bail};

/// Does `work` under a headline, and says how long it took.
pub fn step<T>(headline: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("==> {headline}");
    let start = Instant::now();
    let result = work();
    let word = if result.is_ok() { "done" } else { "failed" };
    println!("    {word} after {}", elapsed(start.elapsed()));
    result
}

/// A time in words.
pub fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        0..=59 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs `command` with its output shown; an error names it.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", show(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", show(command));
    }
    Ok(())
}

/// What `command` prints; an error if it fails.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", show(command)))?;
    if !output.status.success() {
        bail!(
            "{} ended with {}: {}",
            show(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The command as one would type it.
pub fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Whether we may do what root may.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}
