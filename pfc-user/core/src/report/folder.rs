//! The folder of a run's results, and which files in it are this tool's own. Nothing else there is
//! ever removed or overwritten.

mod opened;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process;

use self::opened::Opened;
use super::{CAPTURES, EVIDENCE, JUNIT, PAGE, Problem, REPORT, ReportError, TRACE, pcapng};

/// The file that marks a folder, and lists the files that are the tool's.
pub const MARKER: &str = "validator.txt";

/// First line of that file.
const HEADING: &str = "Files of validator; another run with its results here replaces them.";

/// Octets of the longest such file that is read: of another user it may have any length.
const LONGEST: u64 = 1 << 20;

/// Files that results may have beside the captures.
const FILES: [&str; 5] = [EVIDENCE, REPORT, JUNIT, PAGE, TRACE];

/// A folder of results.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The folder itself, once it is there: whoever may rename it, or put a link in its place, does
    /// not lead the tool elsewhere.
    opened: Option<Opened>,
    /// Its folder of captures.
    captures: Option<Opened>,
    /// Names below it of the tool's files, such as `captures/NAME.pcapng`.
    own: BTreeSet<String>,
    /// The list of the tool's files was lost: what has the name of one of them is taken for it.
    list_is_lost: bool,
    /// A file of the run that may yet be refused.
    staged: Option<Staged>,
}

/// A file that is written beside its place until [`Folder::begin`].
#[derive(Clone, Copy, Debug)]
struct Staged {
    /// Its name.
    name: &'static str,
    /// The folder was made for it.
    in_new_folder: bool,
}

impl Drop for Folder {
    /// A run that was refused leaves nothing, and the results of an earlier one stay.
    fn drop(&mut self) {
        if let Some(Staged {
            name,
            in_new_folder,
        }) = self.staged.take()
        {
            let _ = fs::remove_file(beside(&self.at(name)));
            if in_new_folder {
                let _ = fs::remove_file(self.at(MARKER));
                // It stays if somebody has put something there.
                let _ = fs::remove_dir(&self.path);
            }
        }
    }
}

impl Folder {
    /// Looks at the folder at `path`, and changes nothing.
    ///
    /// An error where something there can be no file of results, or where a file of somebody else
    /// has the name of one of the tool's. Without `force`, also where the folder is neither empty
    /// nor of an earlier run.
    pub fn examine(path: &Path, force: bool) -> Result<Self, ReportError> {
        let unreadable = |error| Problem::Unreadable(error).with(path);
        let opened = match Opened::folder(path) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::new(path, None, BTreeSet::new(), false));
            }
            Err(error) => return Err(unreadable(error)),
        };
        let mut found = fs::read_dir(opened.at()).map_err(unreadable)?;
        let marked = listed(opened.at()).map_err(unreadable)?;
        let is_marked = marked.is_some();
        let folder = Self::new(path, Some(opened), marked.unwrap_or_default(), false);
        folder.refuse_what_stands_in_the_way()?;
        // First what is refused in any case, so that nobody is told of --force in vain.
        let marker = (!is_marked).then_some(MARKER);
        let mut names = FILES.into_iter().chain(marker);
        if let Some(name) = names.find(|name| folder.is_taken(name)) {
            return Err(not_own(name).with(path));
        }
        let theirs = found.next().filter(|_| !force && !is_marked);
        if let Some(entry) = theirs {
            let name = entry.map_err(unreadable)?.file_name();
            return Err(not_own(&name.to_string_lossy()).with(path));
        }
        Ok(folder)
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
        let read = || {
            let opened = Opened::folder(path)?;
            let own = listed(opened.at())?;
            let list_is_lost = own.is_none();
            let own = own.unwrap_or_default();
            Ok(Self::new(path, Some(opened), own, list_is_lost))
        };
        read().map_err(|error| Problem::Unreadable(error).with(path))
    }

    fn new(path: &Path, opened: Option<Opened>, own: BTreeSet<String>, list_is_lost: bool) -> Self {
        Self {
            path: path.to_owned(),
            opened,
            captures: None,
            own,
            list_is_lost,
            staged: None,
        }
    }

    /// Fails where a run could not put its results though it replaced all files.
    fn refuse_what_stands_in_the_way(&self) -> Result<(), ReportError> {
        for name in FILES.into_iter().chain([MARKER, CAPTURES]) {
            let is_folder = self.at(name).symlink_metadata().map(|found| found.is_dir());
            let problem = match (name, is_folder) {
                (CAPTURES, Ok(false)) => "expected a directory, found a file or a link",
                (CAPTURES, _) => continue,
                (_, Ok(true)) => "expected a file, found a directory",
                _ => continue,
            };
            let remedy = "remove it, or name another folder with --out";
            let error = io::Error::other(format!("{problem}; {remedy}"));
            return Err(self.unwritable(name, error));
        }
        Ok(())
    }

    /// Makes the folder if it is missing, marks it, and removes the files of an earlier run, so
    /// that none is mistaken for one of this run. Called before a run, so that its measurements are
    /// not lost for want of a folder.
    pub fn begin(&mut self) -> Result<(), ReportError> {
        self.open()?;
        self.mark()?;
        self.remove(&self.own.clone())?;
        if let Some(Staged { name, .. }) = self.staged {
            let at = self.claim(name)?;
            let renamed = unless_missing(fs::rename(beside(&at), &at));
            renamed.map_err(|error| self.unwritable(name, error))?;
            self.staged = None;
        }
        Ok(())
    }

    /// Path at which the file `name` can be made before [`Folder::begin`], which puts it in its
    /// place. If the folder is dropped before that, the file is removed.
    pub fn stage(&mut self, name: &'static str) -> Result<PathBuf, ReportError> {
        let in_new_folder = self.opened.is_none();
        self.open()?;
        self.staged = Some(Staged {
            name,
            in_new_folder,
        });
        if in_new_folder {
            // After a run that is killed now, the next one knows the folder.
            self.mark()?;
        }
        let at = beside(&self.at(name));
        match unless_missing(fs::remove_file(&at)) {
            Ok(()) => Ok(at),
            Err(error) => Err(self.unwritable(name, error)),
        }
    }

    /// Opens the folder, which is made if it is missing.
    fn open(&mut self) -> Result<(), ReportError> {
        if self.opened.is_none() {
            let made = fs::create_dir_all(&self.path).and_then(|()| Opened::folder(&self.path));
            self.opened = Some(made.map_err(|error| self.unwritable("", error))?);
        }
        Ok(())
    }

    /// Path of the file `name`, which becomes the tool's.
    fn claim(&mut self, name: &str) -> Result<PathBuf, ReportError> {
        if self.is_taken(name) {
            return Err(not_own(name).with(&self.path));
        }
        if self.own.insert(name.to_owned()) {
            self.mark()?;
        }
        Ok(self.at(name))
    }

    /// Path by which the file `name` is reached, in the folders that were opened.
    fn at(&self, name: &str) -> PathBuf {
        match (name.split_once('/'), &self.captures, &self.opened) {
            (Some((CAPTURES, name)), Some(captures), _) => captures.at().join(name),
            (_, _, Some(opened)) => opened.at().join(name),
            (_, _, None) => self.path.join(name),
        }
    }

    /// Writes the file `name`, completely or not at all.
    pub fn write(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), ReportError> {
        let at = self.claim(name)?;
        atomically(&at, fill).map_err(|error| self.unwritable(name, error))
    }

    /// Makes the folder of the captures, and removes those of the tool's in it.
    pub fn renew_captures(&mut self) -> Result<(), ReportError> {
        let captures = Opened::below(&self.at(CAPTURES));
        self.captures = Some(captures.map_err(|error| self.unwritable(CAPTURES, error))?);
        let old = self.own.iter().filter(|name| name.contains('/'));
        self.remove(&old.cloned().collect())
    }

    /// True if `name` is there and not the tool's.
    fn is_taken(&self, name: &str) -> bool {
        let is_other = !self.list_is_lost && !self.own.contains(name);
        is_other && self.at(name).symlink_metadata().is_ok()
    }

    fn remove(&mut self, names: &BTreeSet<String>) -> Result<(), ReportError> {
        // A link in the place of the captures leads to those of somebody else.
        if self.captures.is_none() {
            self.captures = Opened::existing(&self.at(CAPTURES)).ok();
        }
        for name in names {
            if !name.contains('/') || self.captures.is_some() {
                let removed = unless_missing(fs::remove_file(self.at(name)));
                removed.map_err(|error| self.unwritable(name, error))?;
            }
            self.own.remove(name);
        }
        self.mark()
    }

    /// Writes the list of the tool's files.
    fn mark(&self) -> Result<(), ReportError> {
        let written = atomically(&self.at(MARKER), |out| {
            writeln!(out, "{HEADING}")?;
            self.own.iter().try_for_each(|name| writeln!(out, "{name}"))
        });
        written.map_err(|error| self.unwritable(MARKER, error))
    }

    fn unwritable(&self, name: &str, error: io::Error) -> ReportError {
        let problem = Problem::Unwritable(error);
        match name {
            "" => problem.with(&self.path),
            name => problem.with(&self.path.join(name)),
        }
    }
}

fn not_own(name: &str) -> Problem {
    let found = name.to_owned();
    Problem::NotOwn { found }
}

/// Success also where the file was not there.
fn unless_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// The files that the marker of a folder lists; `None` without a marker. Names that the tool never
/// writes are left out, for the marker may come with somebody else's results.
fn listed(folder: &Path) -> io::Result<Option<BTreeSet<String>>> {
    let file = match opened::regular(&folder.join(MARKER)) {
        Ok(None) => return Ok(None),
        Ok(Some(file)) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut text)?;
    let is_cut = text.len() as u64 > LONGEST;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines();
    if lines.next() != Some(HEADING) {
        return Ok(None);
    }
    if is_cut {
        return Err(io::Error::other(format!(
            "expected at most {LONGEST} octets in its {MARKER}, found more; remove that file"
        )));
    }
    let names = lines.filter(|name| FILES.contains(name) || is_capture(name));
    Ok(Some(names.map(str::to_owned).collect()))
}

/// True if a file of that name in the folder is one of results, or their list.
pub(super) fn is_of_results(name: &str) -> bool {
    name == MARKER || FILES.contains(&name) || is_capture(name)
}

/// True for `captures/NAME.pcapng`.
fn is_capture(name: &str) -> bool {
    let name = name
        .strip_prefix(CAPTURES)
        .and_then(|name| name.strip_prefix('/'));
    let stem = name.and_then(|name| name.strip_suffix(pcapng::EXTENSION)?.strip_suffix('.'));
    stem.is_some_and(|stem| !stem.is_empty() && !stem.contains('/'))
}

/// Writes the file at `path`, whose folder is opened first, completely or not at all.
pub(super) fn write_alone(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ReportError> {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().unwrap_or_default();
    let written =
        Opened::folder(folder).and_then(|folder| atomically(&folder.at().join(name), fill));
    written.map_err(|error| Problem::Unwritable(error).with(path))
}

/// Writes a file beside `path` and renames it once it is complete.
fn atomically(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let temporary = beside(path);
    // A file of that name is left from a process that was killed, or is a link that leads
    // elsewhere.
    let _ = fs::remove_file(&temporary);
    let written = File::create_new(&temporary).and_then(|file| {
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        out.into_inner()?.sync_all()?;
        fs::rename(&temporary, path)
    });
    written.inspect_err(|_| {
        // An incomplete file is useless; the first error is the one to report.
        let _ = fs::remove_file(&temporary);
    })
}

/// Path beside `path` for a file that is not complete yet.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", process::id()))
}

#[cfg(all(test, unix))]
mod tests;
