//! The files of the journal: one an entry.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io, process};

use nix::unistd::geteuid;

use super::{Entry, JournalError, What};
use crate::driver::kernel::process::start_time;

/// Folders in which the runs of all users leave entries: the machine's, and each user's own.
pub(super) fn others() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = ["/run/validator", "/var/lib/validator"]
        .map(PathBuf::from)
        .to_vec();
    if !geteuid().is_root() {
        return folders;
    }
    if let Ok(users) = fs::read_dir("/run/user") {
        folders.extend(users.flatten().map(|user| user.path().join("validator")));
    }
    // passwd(5): the sixth field is the home directory.
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let homes = users.lines().filter_map(|user| user.split(':').nth(5));
    folders.extend(homes.map(|home| Path::new(home).join(".local/state/validator")));
    folders
}

/// The entries in these folders, oldest name first; and in words the folders that are closed to
/// this user.
pub(super) fn list<'p>(
    folders: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<(Vec<PathBuf>, Vec<String>), JournalError> {
    let (mut paths, mut closed) = (Vec::new(), Vec::new());
    for folder in folders {
        match fs::read_dir(folder) {
            Ok(files) => paths.extend(files.flatten().map(|file| file.path())),
            // A user may have no home: passwd(5) has a file in its place for some.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                closed.push(format!(
                    "journal {}: another user's, which cannot be read here: `validator check \
                         --undo` as that user, or as root, puts back what is in there",
                    folder.display()
                ));
            }
            Err(source) => {
                return Err(JournalError::File {
                    path: folder.clone(),
                    source,
                });
            }
        }
    }
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    paths.sort();
    paths.dedup();
    Ok((paths, closed))
}

/// Writes an entry into `folder`, on the disk when this returns; an entry that is there is whole.
pub(super) fn write(
    folder: &Path,
    name: &str,
    what: What,
    kept: bool,
) -> Result<PathBuf, JournalError> {
    let pid = process::id();
    let boot = match what {
        What::Key(_) | What::Claim(_) | What::Restore(_) => boot(),
        What::Setting(_) | What::Link(_) => String::new(),
    };
    let entry = Entry {
        pid,
        started: start_time(pid).unwrap_or_default(),
        boot,
        kept,
        what,
    };
    let path = folder.join(format!("{pid}-{name}.json"));
    let text = serde_json::to_vec(&entry).expect("plain data");
    let draft = path.with_extension("draft");
    let written = || -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        // One of a process that had this number before.
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&draft, &path)?;
        File::open(folder)?.sync_all()
    };
    written().map_err(|source| JournalError::File {
        path: path.clone(),
        source,
    })?;
    Ok(path)
}

/// Takes an entry away that another process may be taking away as well: both have put back what it
/// says.
pub(super) fn remove(path: PathBuf) -> Result<(), JournalError> {
    match fs::remove_file(&path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(JournalError::File { path, source })
        }
        _ => Ok(()),
    }
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> String {
    format!(
        "journal {}: cannot be read, so what it says is NOT put back: {error}",
        path.display()
    )
}

pub(super) fn read(path: &Path) -> io::Result<Entry> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// Identifier of the present boot; empty where the kernel does not say.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or(String::new(), |id| id.trim().to_owned())
}
