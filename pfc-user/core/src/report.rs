//! Reports of events and results, one format per file.

pub mod compare;
pub mod fixed_set;
pub mod hooks;
pub mod html;
pub mod json;
pub mod junit;
pub mod layout;
pub mod list;
pub mod pcapng;
pub mod plain;
pub mod preflight;
pub mod series;
pub mod storm;
pub mod text;

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process;

use serde::Deserialize;

pub use layout::colour;

use crate::case::{CaseResult, Exit};
use crate::cases;
use crate::evidence::whole::{self, Defect};
use crate::evidence::{Evidence, SCHEMA};
use crate::evidence::{digest, numbers};

/// The evidence that a run recorded.
pub const EVIDENCE: &str = "evidence.json";
/// The result for programs.
pub const REPORT: &str = "report.json";
/// The result for CI systems.
pub const JUNIT: &str = "junit.xml";
/// The result to look at.
pub const PAGE: &str = "report.html";
/// Directory of the offending frames.
pub const CAPTURES: &str = "captures";

/// Error of writing a report or reading evidence.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file or directory that cannot be written.
    #[error("{}: cannot be written: {error}", path.display())]
    Unwritable {
        /// Path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A directory without evidence.
    #[error(
        "{}: no {EVIDENCE} here; expected a directory that `validator run --out` wrote",
        .0.display()
    )]
    NoEvidence(PathBuf),
    /// A file that cannot be read.
    #[error("{}: cannot be read: {error}", path.display())]
    Unreadable {
        /// Path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A truncated file.
    #[error("{}: cut short ({error}); copy it again from where it was written", path.display())]
    Truncated {
        /// Path.
        path: PathBuf,
        /// Where the file ends.
        error: serde_json::Error,
    },
    /// A file of another schema version.
    #[error(
        "{}: layout {found} of validator {version}; expected layout {SCHEMA}: judge it with that \
        version, or measure again",
        path.display()
    )]
    Schema {
        /// Path.
        path: PathBuf,
        /// Its schema version.
        found: u32,
        /// Version of the tool that wrote it.
        version: String,
    },
    /// A file that is not evidence.
    #[error("{}: is no evidence of a run: {error}", path.display())]
    Malformed {
        /// Path.
        path: PathBuf,
        /// Position, and what was expected there.
        error: serde_json::Error,
    },
    /// Evidence in which something is missing, doubled or contradicts something else.
    #[error(
        "{}: the evidence is not whole, so that there is no verdict: {defect}; copy it again from \
        where it was written",
        path.display()
    )]
    NotWhole {
        /// Path.
        path: PathBuf,
        /// The part, and what was found there.
        defect: Defect,
    },
}

/// Makes `dir` if it is missing, and checks that files can be created in it. Called before a run,
/// so that its measurements are not lost for want of a directory.
pub fn make_directory(dir: &Path) -> Result<(), ReportError> {
    let attempt = dir.join(format!(".attempt.{}", process::id()));
    let made = fs::create_dir_all(dir)
        .and_then(|()| File::create(&attempt))
        .and_then(|_| fs::remove_file(&attempt));
    made.map_err(|error| ReportError::Unwritable {
        path: dir.to_owned(),
        error,
    })
}

/// Writes the evidence and all reports into `dir`, which is made if missing. Each file appears
/// completely or not at all.
pub fn write(
    dir: &Path,
    evidence: &Evidence,
    results: &[CaseResult],
    exit: Exit,
) -> Result<(), ReportError> {
    write_evidence(dir, evidence)?;
    render(dir, evidence, results, exit)
}

/// Writes the evidence into `dir`, which is made if missing, with the digests of its parts.
pub fn write_evidence(dir: &Path, evidence: &Evidence) -> Result<(), ReportError> {
    fs::create_dir_all(dir).map_err(|error| ReportError::Unwritable {
        path: dir.to_owned(),
        error,
    })?;
    atomically(&dir.join(EVIDENCE), |out| {
        let mut stored = serde_json::to_value(evidence)?;
        numbers::to_portable(&mut stored);
        stored[digest::KEY] = serde_json::to_value(digest::of(&stored))?;
        Ok(serde_json::to_writer(out, &stored)?)
    })
}

/// Writes all reports into `dir`, beside the evidence there.
pub fn render(
    dir: &Path,
    evidence: &Evidence,
    results: &[CaseResult],
    exit: Exit,
) -> Result<(), ReportError> {
    atomically(&dir.join(REPORT), |out| {
        json::write(out, evidence, results, exit)
    })?;
    atomically(&dir.join(JUNIT), |out| junit::write(out, evidence, results))?;
    write_page(&dir.join(PAGE), evidence, results, exit)?;
    let captures = dir.join(CAPTURES);
    remove_captures(&captures).map_err(|error| ReportError::Unwritable {
        path: captures.clone(),
        error,
    })?;
    for (name, offences) in pcapng::captures(evidence) {
        atomically(&captures.join(name), |out| {
            pcapng::write(out, offences, evidence.host.clock)
        })?;
    }
    Ok(())
}

/// Writes the result to look at into the file `path`.
pub fn write_page(
    path: &Path,
    evidence: &Evidence,
    results: &[CaseResult],
    exit: Exit,
) -> Result<(), ReportError> {
    let page = html::page(evidence, results, exit);
    atomically(path, |out| out.write_all(page.as_bytes()))
}

/// Reads the evidence in `dir`, and checks that it is whole and makes sense to its cases.
pub fn read_evidence(dir: &Path) -> Result<Evidence, ReportError> {
    /// The fields that every schema version has.
    #[derive(Deserialize)]
    struct Head {
        schema: u32,
        #[serde(default)]
        version: String,
    }

    let path = dir.join(EVIDENCE);
    let mut text = String::new();
    match File::open(&path).and_then(|mut file| file.read_to_string(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ReportError::NoEvidence(dir.to_owned()));
        }
        Err(error) => return Err(ReportError::Unreadable { path, error }),
    }
    let wrong = |error: serde_json::Error| {
        if error.is_eof() {
            ReportError::Truncated {
                path: path.clone(),
                error,
            }
        } else {
            ReportError::Malformed {
                path: path.clone(),
                error,
            }
        }
    };
    let head: Head = serde_json::from_str(&text).map_err(wrong)?;
    if head.schema != SCHEMA {
        return Err(ReportError::Schema {
            path,
            found: head.schema,
            version: plain::text(&head.version),
        });
    }
    let stored = serde_json::from_str(&text).map_err(wrong)?;
    // The values take several times its room.
    drop(text);
    let read = whole::read(stored).and_then(|evidence| {
        cases::consistent(&evidence)?;
        Ok(evidence)
    });
    read.map_err(|defect| ReportError::NotWhole {
        path: path.clone(),
        defect: Defect {
            part: plain::text(&defect.part),
            found: plain::text(&defect.found),
            ..defect
        },
    })
}

/// Writes a file beside `path` and renames it once it is complete.
fn atomically(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ReportError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}", process::id()));
    // What has its name is of a process that was killed, or a link that leads elsewhere.
    let _ = fs::remove_file(&temporary);
    let written = File::create_new(&temporary).and_then(|file| {
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        out.into_inner()?.sync_all()?;
        fs::rename(&temporary, path)
    });
    written.map_err(|error| {
        // An incomplete file is useless; the first error is the one to report.
        let _ = fs::remove_file(&temporary);
        ReportError::Unwritable {
            path: path.to_owned(),
            error,
        }
    })
}

/// Removes the captures of an earlier run, so that none is mistaken for one of this run. A link in
/// the place of `dir`, which may come with somebody else's results, would lead elsewhere.
fn remove_captures(dir: &Path) -> io::Result<()> {
    if dir.is_symlink() {
        let what = "expected a directory, found a symbolic link; remove it";
        return Err(io::Error::new(io::ErrorKind::NotADirectory, what));
    }
    fs::create_dir_all(dir)?;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == pcapng::EXTENSION)
        {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
