//! Reports of events and results, one format per file.

pub mod compare;
mod findings;
pub mod fixed_set;
pub mod flows;
pub mod folder;
mod hooks;
pub mod html;
mod identity;
pub mod json;
pub mod junit;
pub mod layout;
pub mod list;
pub mod pcapng;
pub mod plain;
pub mod preflight;
mod series;
mod storm;
pub mod text;

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use serde_json::error::Category;

pub use folder::Folder;
pub use layout::colour;

use crate::cases;
use crate::evidence::pfc::PfcEvidence;
use crate::evidence::whole::{Defect, Stored};
use crate::evidence::{CaseEvidence, Evidence, Repetition, SCHEMA, digest, numbers};
use crate::verdict::{CaseResult, Exit};

/// The evidence that a run recorded.
pub const EVIDENCE: &str = "evidence.json";
/// The result for programs.
pub const REPORT: &str = "report.json";
/// The result for CI systems.
pub const JUNIT: &str = "junit.xml";
/// The result to look at.
pub const PAGE: &str = "report.html";
/// Messages of the programs about frames, where the user asked for them.
pub const TRACE: &str = "trace.log";
/// Directory of the offending frames.
pub const CAPTURES: &str = "captures";

/// Octets of evidence that are read at once.
const BUFFER: usize = 256 << 10;

/// Error of writing a report or reading evidence.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ReportError {
    /// The file or directory.
    path: PathBuf,
    problem: Problem,
}

/// Problem with a file or directory.
#[derive(Debug, thiserror::Error)]
enum Problem {
    /// A file or directory that cannot be written.
    #[error("cannot be written: {0}")]
    Unwritable(io::Error),
    /// A directory that has a file of somebody else.
    #[error(
        "`{found}` there is not of an earlier run, and is neither removed nor overwritten; name \
         another folder with --out{}",
        or_beside(.found)
    )]
    NotOwn {
        /// Its name.
        found: String,
    },
    /// A directory without evidence.
    #[error("no {EVIDENCE} here; expected a directory that `validator run --out` wrote")]
    NoEvidence,
    /// A file that cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    /// A truncated file.
    #[error("cut short ({0}); copy it again from where it was written")]
    Truncated(serde_json::Error),
    /// A file of another schema version, by the tool of that version.
    #[error(
        "layout {0} of validator {1}; expected layout {SCHEMA}: judge it with that version, or \
         measure again"
    )]
    Schema(u64, String),
    /// A file that is not evidence: the position, and what was expected there.
    #[error("is no evidence of a run: {0}")]
    Malformed(serde_json::Error),
    /// Evidence in which something is missing, doubled or contradicts something else.
    #[error(
        "the evidence is not whole, so that there is no verdict: {0}; copy it again from where it \
         was written"
    )]
    NotWhole(Defect),
}

/// Further remedy for a file of somebody else: results cannot go beside one that has the name of
/// one of them.
fn or_beside(found: &str) -> &'static str {
    match folder::is_of_results(found) {
        true => "",
        false => ", or write beside it with --force",
    }
}

impl Problem {
    fn with(self, path: &Path) -> ReportError {
        ReportError {
            path: path.to_owned(),
            problem: self,
        }
    }
}

/// Writes the evidence and all reports into the folder `dir`, which is made if missing, in the
/// place of those of an earlier run. Each file appears completely or not at all.
pub fn write(
    dir: &Path,
    evidence: &Evidence,
    results: &[CaseResult],
    exit: Exit,
) -> Result<(), ReportError> {
    let mut folder = Folder::make(dir)?;
    write_evidence(&mut folder, evidence)?;
    render(&mut folder, evidence, results, exit)
}

/// Writes the evidence, with the digests of its parts.
pub fn write_evidence(folder: &mut Folder, evidence: &Evidence) -> Result<(), ReportError> {
    folder.write(EVIDENCE, |out| {
        let mut stored = serde_json::to_value(evidence)?;
        numbers::to_portable(&mut stored);
        stored[digest::KEY] = serde_json::to_value(digest::of(&stored))?;
        Ok(serde_json::to_writer(out, &stored)?)
    })
}

/// Writes all reports beside the evidence.
pub fn render(
    folder: &mut Folder,
    evidence: &Evidence,
    results: &[CaseResult],
    exit: Exit,
) -> Result<(), ReportError> {
    folder.write(REPORT, |out| json::write(out, evidence, results, exit))?;
    folder.write(JUNIT, |out| junit::write(out, evidence, results))?;
    let page = html::page(evidence, results, exit);
    folder.write(PAGE, |out| out.write_all(page.as_bytes()))?;
    folder.renew_captures()?;
    for (name, offences) in pcapng::captures(evidence) {
        folder.write(&format!("{CAPTURES}/{name}"), |out| {
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
    folder::write_alone(path, |out| out.write_all(page.as_bytes()))
}

/// The measurements of a PFC case, each attempt.
fn pfc(case: &CaseEvidence) -> impl Iterator<Item = &PfcEvidence> {
    case.repetitions.iter().filter_map(Repetition::pfc)
}

/// Reads the evidence in `dir`, and checks that it is whole and makes sense to its cases.
pub fn read_evidence(dir: &Path) -> Result<Evidence, ReportError> {
    let path = dir.join(EVIDENCE);
    // A FIFO or a device may come with somebody else's results.
    let opened = fs::metadata(&path).and_then(|found| match found.is_file() {
        true => File::open(&path),
        false => Err(io::Error::other("expected a regular file")),
    });
    let file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Problem::NoEvidence.with(dir),
        _ => Problem::Unreadable(error).with(&path),
    })?;
    let mut source = serde_json::Deserializer::from_reader(BufReader::with_capacity(BUFFER, file));
    let stored = Stored::read(&mut source).and_then(|stored| source.end().map(|()| stored));
    let stored = stored.map_err(|error| {
        let problem = match error.classify() {
            Category::Eof => Problem::Truncated(error),
            Category::Io => Problem::Unreadable(error.into()),
            Category::Syntax | Category::Data => Problem::Malformed(error),
        };
        problem.with(&path)
    })?;
    if stored.schema != u64::from(SCHEMA) {
        let version = plain::text(&stored.version);
        return Err(Problem::Schema(stored.schema, version).with(&path));
    }
    let read = stored.whole().and_then(|evidence| {
        cases::consistent(&evidence)?;
        Ok(evidence)
    });
    read.map_err(|defect| {
        let plain = Defect {
            part: plain::text(&defect.part),
            found: plain::text(&defect.found),
            ..defect
        };
        Problem::NotWhole(plain).with(&path)
    })
}
