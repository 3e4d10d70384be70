//! The folder of a run's results, and which files in it are this tool's own. Nothing else there is
//! ever removed or overwritten.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;

use super::{CAPTURES, EVIDENCE, JUNIT, PAGE, REPORT, ReportError, TRACE, pcapng};

/// The file that marks a folder, and lists the files that are the tool's.
pub const MARKER: &str = "validator.txt";

/// First line of that file.
const HEADING: &str = "Files of validator; another run with its results here replaces them.";

/// Files that results may have beside the captures.
const FILES: [&str; 5] = [EVIDENCE, REPORT, JUNIT, PAGE, TRACE];

/// A folder of results.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Names below it of the tool's files, such as `captures/NAME.pcapng`.
    own: BTreeSet<String>,
    /// Files of others that have the name of one of the tool's are replaced.
    force: bool,
}

impl Folder {
    /// Looks at the folder at `path`, and changes nothing.
    ///
    /// Without `force`, an error where it is neither empty nor of an earlier run, or where a file
    /// of somebody else has the name of one of the tool's.
    pub fn examine(path: &Path, force: bool) -> Result<Self, ReportError> {
        let unreadable = |error| ReportError::Unreadable {
            path: path.to_owned(),
            error,
        };
        let not_own = |found: String| ReportError::NotOwn {
            path: path.to_owned(),
            found,
        };
        let mut found = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::new(path, BTreeSet::new(), force));
            }
            Err(error) => return Err(unreadable(error)),
        };
        let marked = listed(path).map_err(unreadable)?;
        if !force && marked.is_none() {
            if let Some(entry) = found.next() {
                let name = entry.map_err(unreadable)?.file_name();
                return Err(not_own(name.to_string_lossy().into_owned()));
            }
        }
        let folder = Self::new(path, marked.unwrap_or_default(), force);
        match FILES.into_iter().find(|name| folder.is_taken(name)) {
            Some(name) => Err(not_own(name.to_owned())),
            None => Ok(folder),
        }
    }

    /// The folder at `path`, ready for results.
    pub fn make(path: &Path) -> Result<Self, ReportError> {
        let mut folder = Self::examine(path, false)?;
        folder.begin()?;
        Ok(folder)
    }

    /// The folder at `path`, from which evidence was read: the reports there are of a run, also
    /// where a copy has lost the list of its files.
    pub fn of_evidence(path: &Path) -> Result<Self, ReportError> {
        let own = listed(path).map_err(|error| ReportError::Unreadable {
            path: path.to_owned(),
            error,
        })?;
        let force = own.is_none();
        Ok(Self::new(path, own.unwrap_or_default(), force))
    }

    fn new(path: &Path, own: BTreeSet<String>, force: bool) -> Self {
        Self {
            path: path.to_owned(),
            own,
            force,
        }
    }

    /// Makes the folder if it is missing, marks it, and removes the files of an earlier run, so
    /// that none is mistaken for one of this run. Called before a run, so that its measurements are
    /// not lost for want of a folder.
    pub fn begin(&mut self) -> Result<(), ReportError> {
        fs::create_dir_all(&self.path).map_err(|error| self.unwritable("", error))?;
        self.mark()?;
        self.remove(&self.own.clone())
    }

    /// Path of the file `name`, which becomes the tool's.
    pub fn claim(&mut self, name: &str) -> Result<PathBuf, ReportError> {
        if self.is_taken(name) {
            return Err(ReportError::NotOwn {
                path: self.path.clone(),
                found: name.to_owned(),
            });
        }
        if self.own.insert(name.to_owned()) {
            self.mark()?;
        }
        Ok(self.path.join(name))
    }

    /// Writes the file `name`, completely or not at all.
    pub fn write(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), ReportError> {
        atomically(&self.claim(name)?, fill)
    }

    /// Makes the folder of the captures, and removes those of the tool's in it.
    pub fn renew_captures(&mut self) -> Result<(), ReportError> {
        let captures = self.path.join(CAPTURES);
        // One that came with somebody else's results would lead elsewhere.
        if captures.is_symlink() {
            let what = "expected a directory, found a symbolic link; remove it";
            let error = io::Error::new(io::ErrorKind::NotADirectory, what);
            return Err(self.unwritable(CAPTURES, error));
        }
        fs::create_dir_all(captures).map_err(|error| self.unwritable(CAPTURES, error))?;
        let old = self.own.iter().filter(|name| name.contains('/'));
        self.remove(&old.cloned().collect())
    }

    /// True if `name` is there and not the tool's.
    fn is_taken(&self, name: &str) -> bool {
        let is_other = !self.force && !self.own.contains(name);
        is_other && self.path.join(name).symlink_metadata().is_ok()
    }

    fn remove(&mut self, names: &BTreeSet<String>) -> Result<(), ReportError> {
        let through_link = self.path.join(CAPTURES).is_symlink();
        for name in names {
            let removed = match name.contains('/') && through_link {
                true => Ok(()),
                false => fs::remove_file(self.path.join(name)),
            };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.unwritable(name, error));
                }
                _ => self.own.remove(name),
            };
        }
        self.mark()
    }

    /// Writes the list of the tool's files.
    fn mark(&self) -> Result<(), ReportError> {
        atomically(&self.path.join(MARKER), |out| {
            writeln!(out, "{HEADING}")?;
            self.own.iter().try_for_each(|name| writeln!(out, "{name}"))
        })
    }

    fn unwritable(&self, name: &str, error: io::Error) -> ReportError {
        let path = match name {
            "" => self.path.clone(),
            name => self.path.join(name),
        };
        ReportError::Unwritable { path, error }
    }
}

/// The files that the marker of a folder lists; `None` without a marker. Names that the tool never
/// writes are left out, for the marker may come with somebody else's results.
fn listed(folder: &Path) -> io::Result<Option<BTreeSet<String>>> {
    let path = folder.join(MARKER);
    match path.symlink_metadata() {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let text = fs::read(path)?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines();
    if lines.next() != Some(HEADING) {
        return Ok(None);
    }
    let names = lines.filter(|name| FILES.contains(name) || is_capture(name));
    Ok(Some(names.map(str::to_owned).collect()))
}

/// True for `captures/NAME.pcapng`.
fn is_capture(name: &str) -> bool {
    let name = name
        .strip_prefix(CAPTURES)
        .and_then(|name| name.strip_prefix('/'));
    let stem = name.and_then(|name| name.strip_suffix(pcapng::EXTENSION)?.strip_suffix('.'));
    stem.is_some_and(|stem| !stem.is_empty() && !stem.contains('/'))
}

/// Writes a file beside `path` and renames it once it is complete.
pub(super) fn atomically(
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
