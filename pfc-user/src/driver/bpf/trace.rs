//! The lines that traced programs write about single frames, taken out of the kernel while they
//! come.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use aya::Ebpf;
use aya_log::EbpfLogger;
use log::{Log, Metadata, Record};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::wire::Malformed;

use super::XdpError;
use crate::output::Stderr;

/// Interval at which lines are taken out of the kernel's buffer, which has room for some hundred.
const FLUSH: Duration = Duration::from_millis(20);

/// Destination of the trace lines of all programs of a run.
#[derive(Clone)]
pub struct TraceOutput(Arc<Mutex<dyn Write + Send>>);

impl TraceOutput {
    /// Writes to `writer`, a line at a time.
    pub fn new(writer: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(writer)))
    }

    /// Writes to standard error.
    pub fn terminal() -> Self {
        Self::new(Stderr)
    }

    /// Writes to a new file. A link in its place, which may be another user's, is an error.
    pub fn file(path: &Path) -> io::Result<Self> {
        Ok(Self::new(File::create_new(path)?))
    }
}

impl fmt::Debug for TraceOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TraceOutput")
    }
}

/// Moves the lines of one program to its output. Dropping it moves the last ones.
#[derive(Debug)]
pub struct Trace {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Trace {
    /// Begins with the lines of a traced object; each gets the name of its `port`.
    pub fn begin(object: &mut Ebpf, port: &str, output: &TraceOutput) -> Result<Self, XdpError> {
        let lines = Lines {
            port: port.to_owned(),
            output: output.clone(),
        };
        let mut logger = EbpfLogger::init_with_logger(object, lines)
            .map_err(|_| XdpError::Missing("AYA_LOGS"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let run = move || {
            loop {
                // Looked at before the last lines are taken.
                let last = stopped.load(Ordering::Acquire);
                logger.flush();
                if last {
                    break;
                }
                thread::park_timeout(FLUSH);
            }
        };
        let thread = thread::Builder::new()
            .name(format!("trace {port}"))
            .spawn(run)
            .map_err(XdpError::Wait)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic was printed where it happened.
            let _ = thread.join();
        }
    }
}

/// Writes the lines of a program.
struct Lines {
    port: String,
    output: TraceOutput,
}

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let line = spelled_out(&record.args().to_string());
        let mut output = self.output.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Write errors are ignored: a closed stderr must not abort the run.
        let _ = writeln!(output, "{}: {line}", self.port);
    }

    fn flush(&self) {}
}

/// A program's line with names for the numbers of phases, reasons and verdicts.
fn spelled_out(line: &str) -> String {
    let words = line.split(' ').map(|word| {
        let (bare, colon) = match word.strip_suffix(':') {
            Some(bare) => (bare, ":"),
            None => (word, ""),
        };
        let Some((key, number)) = bare.split_once('=') else {
            return word.to_owned();
        };
        let index = number.parse::<usize>().ok();
        let name = match key {
            "phase" => index
                .and_then(|index| Phase::ALL.get(index).copied())
                .map(|phase| format!("phase {phase:?}").to_lowercase()),
            "reason" => index
                .and_then(|index| Malformed::ALL.get(index).copied())
                .map(|reason| format!("{reason:?}")),
            "verdict" => Some(if number == "0" { "pass" } else { "drop" }.to_owned()),
            _ if number == "-1" => Some(format!("no {key}")),
            _ => Some(format!("{key} {number}")),
        };
        name.map_or_else(|| word.to_owned(), |name| name + colon)
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_the_place_of_the_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (link, precious) = (folder.path().join("trace.log"), folder.path().join("kept"));
        std::fs::write(&precious, "kept").unwrap();
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        let error = TraceOutput::file(&link).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
    }

    #[test]
    fn numbers_get_their_names() {
        assert_eq!(
            spelled_out("test frame: run 7 flow 3 phase=0 sequence 12: drop"),
            "test frame: run 7 flow 3 phase baseline sequence 12: drop"
        );
        assert_eq!(
            spelled_out("malformed frame: reason=5: verdict=0"),
            "malformed frame: UdpTruncated: pass"
        );
        assert_eq!(
            spelled_out("other frame: DSCP=-1 PCP=3: pass"),
            "other frame: no DSCP PCP 3: pass"
        );
        // A newer program may have such a phase.
        assert_eq!(spelled_out("phase=99"), "phase=99");
    }
}
