//! The verifier's log of a program that the kernel refuses: whole in a file, its end in the
//! message.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;

use aya::util::KernelVersion;
use aya::{EbpfLoader, VerifierLogLevel};

/// Lines of the log that the message shows.
const SHOWN: usize = 10;
/// `BPF_LOG_FIXED` of `kernel/bpf/verifier.h` (Linux 6.4): a log that does not fit the buffer ends
/// with ENOSPC, upon which aya gives it a larger one. Without it newer kernels keep the end alone.
const FIXED: u32 = 8;
const FIXED_SINCE: KernelVersion = KernelVersion::new(6, 4, 0);

/// Log of a refused program.
#[derive(Debug)]
pub struct VerifierLog {
    /// File with the whole log, or the reason why there is none.
    file: io::Result<PathBuf>,
    end: String,
}

/// Makes a loader that gets the whole log from the kernel.
pub fn loader<'a>() -> EbpfLoader<'a> {
    let mut loader = EbpfLoader::new();
    if KernelVersion::current().is_ok_and(|version| version >= FIXED_SINCE) {
        let level = VerifierLogLevel::default().bits() | FIXED;
        loader.verifier_log_level(VerifierLogLevel::from_bits_retain(level));
    }
    loader
}

impl VerifierLog {
    /// Writes the log to a new file in the folder for temporary files.
    pub(super) fn keep(log: &str) -> Self {
        let lines: Vec<&str> = log.trim_end().lines().collect();
        let end = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
        Self {
            file: write(log),
            end,
        }
    }
}

fn write(log: &str) -> io::Result<PathBuf> {
    let mut file = tempfile::Builder::new()
        .prefix("validator-verifier-")
        .suffix(".log")
        .tempfile()?;
    file.write_all(log.as_bytes())?;
    let (_, path) = file.keep().map_err(|error| error.error)?;
    Ok(path)
}

impl fmt::Display for VerifierLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Ok(path) => write!(f, "{}, which ends:\n{}", path.display(), self.end),
            Err(error) => write!(
                f,
                "which could not be written ({error}) and ends:\n{}",
                self.end
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::driver::bpf::XdpError;

    #[test]
    fn the_log_is_kept_whole_and_its_end_is_shown() {
        let log: String = (0..300).map(|line| format!("{line}: r0 = 0\n")).collect();
        let log = log + "invalid access\n";
        let kept = VerifierLog::keep(&log);
        let path = kept.file.as_ref().unwrap().clone();
        assert_eq!(fs::read_to_string(&path).unwrap(), log);
        fs::remove_file(&path).unwrap();
        let refused = io::Error::from_raw_os_error(libc::EACCES);
        let message = XdpError::Rejected {
            error: refused,
            log: kept,
        }
        .to_string();
        let lines: Vec<_> = message.lines().collect();
        assert!(lines[0].starts_with("the kernel refuses the XDP program (Permission denied"));
        assert!(lines[0].contains(path.to_str().unwrap()), "{}", lines[0]);
        assert_eq!(lines[1..].len(), SHOWN);
        assert_eq!((lines[1], lines[SHOWN]), ("291: r0 = 0", "invalid access"));
    }

    #[test]
    fn an_empty_log_is_no_panic() {
        let kept = VerifierLog::keep("");
        fs::remove_file(kept.file.as_ref().unwrap()).unwrap();
        assert_eq!(kept.end, "");
    }
}
