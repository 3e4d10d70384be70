//! Steps with a headline and their duration, and the commands in them.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use nix::sys::statvfs::statvfs;

/// Advice when cargo stops in a first build, which downloads.
const CARGO_ADVICE: &str = "cargo stopped, and says why above; a second call goes on from there. \
    If it could not reach the package registry, see to the network: CARGO_NET_OFFLINE must not be \
    set, HTTPS_PROXY names a proxy, and CARGO_HTTP_CAINFO a file with its certificates";

/// A disk with fewer octets left counts as full.
const FULL: u64 = 256 << 20;

/// Runs `work` under a headline, and prints how long it took.
pub fn step<T>(headline: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("==> {headline}");
    let start = Instant::now();
    let result = work();
    let word = if result.is_ok() { "done" } else { "failed" };
    println!("    {word} after {}", elapsed(start.elapsed()));
    result
}

/// Formats a duration in words.
pub fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        0..=59 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// The cargo that runs this program.
pub fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs `command` with its output shown. An error names it.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", show(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", show(command));
    }
    Ok(())
}

/// The same command, which gets SIGTERM when the thread that starts it ends, in whatever way.
pub fn ended_with_this(command: &Command) -> Command {
    let mut tied = Command::new("setpriv");
    tied.args(["--pdeathsig", "TERM", "--"])
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        tied.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => tied.env(name, value),
            None => tied.env_remove(name),
        };
    }
    tied
}

/// Returns the output of `command`; an error if it fails.
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

/// Formats the command as one would type it.
pub fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Adds to an error that the disk of one of `folders` is full, if it is.
pub fn blame_disk<T>(result: Result<T>, folders: &[&Path]) -> Result<T> {
    explain(result, folders, FULL, None)
}

/// Adds the likely cause to an error of a build in `folder`.
pub fn explain_cargo<T>(result: Result<T>, folder: &Path) -> Result<T> {
    explain(result, &[folder], FULL, Some(CARGO_ADVICE))
}

/// Adds `advice` if the disk is not full.
fn explain<T>(result: Result<T>, folders: &[&Path], full: u64, advice: Option<&str>) -> Result<T> {
    result.map_err(|error| {
        let shortage = folders.iter().find_map(|folder| shortage(folder, full));
        match shortage.or_else(|| advice.map(str::to_owned)) {
            Some(cause) => error.context(cause),
            None => error,
        }
    })
}

/// Describes what the disk of `folder` lacks. Some have no fixed number of inodes and report 0.
fn shortage(folder: &Path, full: u64) -> Option<String> {
    let disk = statvfs(folder).ok()?;
    let left = disk.blocks_available() * disk.fragment_size();
    let what = if left < full {
        format!("only {} MB are left", left / 1_000_000)
    } else if disk.files() > 0 && disk.files_available() == 0 {
        "no inode is left".to_owned()
    } else {
        return None;
    };
    Some(format!(
        "{what} on the disk of {}: make room, then call this again",
        folder.display()
    ))
}

/// The exit code that says whether all went well.
pub fn exit_code(well: bool) -> ExitCode {
    ExitCode::from(u8::from(!well))
}

/// True if this process is root's.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_command_ends_with_the_thread_that_started_it() {
        let thread = std::thread::spawn(|| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "echo; exec sleep 600"]);
            let mut child = ended_with_this(&shell)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            // The signal is asked for before the shell begins.
            let mut line = [0];
            child
                .stdout
                .as_mut()
                .unwrap()
                .read_exact(&mut line)
                .unwrap();
            child
        });
        let status = thread.join().unwrap().wait().unwrap();
        assert_eq!(status.signal(), Some(15));
    }

    #[test]
    fn a_full_disk_is_named_and_else_what_to_do() {
        let here = [Path::new("/nowhere"), Path::new(".")];
        let error = |full, advice| {
            let failed = Err::<(), _>(anyhow!("cannot write"));
            format!("{:#}", explain(failed, &here, full, advice).unwrap_err())
        };
        let full = error(u64::MAX, Some("see to the network"));
        assert!(full.starts_with("only ") && full.ends_with(": cannot write"));
        assert!(full.contains("on the disk of .") && !full.contains("network"));
        assert_eq!(error(0, Some("wait")), "wait: cannot write");
        assert_eq!(error(0, None), "cannot write");
        assert!(blame_disk(Ok(()), &here).is_ok());
    }
}
