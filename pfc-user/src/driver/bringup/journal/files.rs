//! The files of the journal: one an entry.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, io, process, thread};

use nix::fcntl::OFlag;
use nix::unistd::{Uid, User, geteuid};

use super::{Entry, JournalError, What};
use crate::driver::kernel::process::start_time;

/// Octets of the largest entry; most have some hundred.
const MAX_ENTRY: u64 = 1 << 20;
/// Most entries that are listed and read in another user's folder.
pub(super) const MAX_ENTRIES: usize = 1000;
/// Time that other users' folders have. Their file systems may never answer (FUSE, NFS).
const PATIENCE: Duration = Duration::from_secs(2);

/// A folder in which the runs of one user leave entries.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Owner of the entries; a file that others put there is no entry.
    pub(super) owner: Uid,
}

/// An entry of another user, as it was read.
pub(super) struct Seen {
    pub(super) path: PathBuf,
    pub(super) owner: Uid,
    pub(super) entry: io::Result<Entry>,
}

impl Folder {
    /// Returns the folder's entries, and words if it is closed to this user or cannot be read.
    fn look(&self) -> (Vec<Seen>, Vec<String>) {
        // A link may lead into another user's folder.
        if fs::metadata(&self.path).is_ok_and(|found| found.uid() != self.owner.as_raw()) {
            return (Vec::new(), Vec::new());
        }
        let (mut paths, mut notes) = match list([&self.path], MAX_ENTRIES + 1) {
            Ok(listed) => listed,
            // Entries of the other folders are reported all the same.
            Err(error) => return (Vec::new(), vec![error.to_string()]),
        };
        if paths.len() > MAX_ENTRIES {
            paths.truncate(MAX_ENTRIES);
            notes.push(format!(
                "journal {:?}: {} has more than {MAX_ENTRIES} entries there, and no others are \
                 looked at",
                self.path,
                user(self.owner)
            ));
        }
        let seen = paths.into_iter().map(|path| Seen {
            entry: read(&path, self.owner),
            owner: self.owner,
            path,
        });
        (seen.collect(), notes)
    }
}

/// Returns the entries of other users' folders, and in words the folders that say nothing.
pub(super) fn look(folders: &[Folder]) -> (Vec<Seen>, Vec<String>) {
    let deadline = Instant::now() + PATIENCE;
    let ask = |folder: &Folder| {
        let (answer, answered) = mpsc::channel();
        let asked = folder.clone();
        // The thread is never joined: one that a file system keeps ends with the process. A process
        // that may have no more threads learns nothing, as from a folder that does not answer.
        let _ = thread::Builder::new().spawn(move || answer.send(asked.look()));
        answered
    };
    let asked: Vec<_> = folders.iter().map(|folder| (folder, ask(folder))).collect();
    let (mut seen, mut notes) = (Vec::new(), Vec::new());
    for (folder, answered) in asked {
        match answered.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((found, words)) => {
                seen.extend(found);
                notes.extend(words);
            }
            Err(_) => notes.push(format!(
                "journal {}: no answer within {} s, so it is not known what {} has there",
                folder.path.display(),
                PATIENCE.as_secs(),
                user(folder.owner)
            )),
        }
    }
    (seen, notes)
}

/// That user, in words.
pub(super) fn user(id: Uid) -> String {
    match User::from_uid(id) {
        Ok(Some(user)) => format!("user {}", user.name),
        _ => format!("user {id}"),
    }
}

/// Folders in which the runs of all users leave entries: the machine's, and each user's own.
pub(super) fn others() -> Vec<Folder> {
    let of = |owner: u32, path: PathBuf| Folder {
        path,
        owner: Uid::from_raw(owner),
    };
    let mut folders: Vec<Folder> = ["/run/validator", "/var/lib/validator"]
        .map(|path| of(0, path.into()))
        .to_vec();
    if !geteuid().is_root() {
        return folders;
    }
    if let Ok(users) = fs::read_dir("/run/user") {
        folders.extend(users.flatten().filter_map(|user| {
            let owner = user.file_name().to_str()?.parse().ok()?;
            Some(of(owner, user.path().join("validator")))
        }));
    }
    // passwd(5): the third field is the number, the sixth the home directory.
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    folders.extend(users.lines().filter_map(|user| {
        let mut fields = user.split(':').skip(2);
        let owner = fields.next()?.parse().ok()?;
        Some(of(
            owner,
            Path::new(fields.nth(2)?).join(".local/state/validator"),
        ))
    }));
    folders
}

/// The entries in these folders, oldest name first, at most that many of each; and in words the
/// folders that are closed to this user.
pub(super) fn list<'p>(
    folders: impl IntoIterator<Item = &'p PathBuf>,
    most: usize,
) -> Result<(Vec<PathBuf>, Vec<String>), JournalError> {
    let (mut paths, mut closed) = (Vec::new(), Vec::new());
    for folder in folders {
        match fs::read_dir(folder) {
            Ok(files) => {
                let files = files.flatten().map(|file| file.path());
                paths.extend(files.filter(|path| is_entry(path)).take(most));
            }
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
    paths.sort();
    paths.dedup();
    Ok((paths, closed))
}

/// True for the name of an entry.
fn is_entry(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "json")
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
        What::Key(_) | What::Claim { .. } | What::Restore(_) => boot(),
        What::Setting(_) => String::new(),
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
        private_folder(folder)?;
        // One of a process that had this number before.
        unless_gone(fs::remove_file(&draft))?;
        if text.len() as u64 > MAX_ENTRY {
            return Err(io::ErrorKind::FileTooLarge.into());
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
    unless_gone(fs::remove_file(&path)).map_err(|source| JournalError::File { path, source })
}

/// Removing something that is gone already is no failure.
pub(super) fn unless_gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes a folder, and those above it, for this user alone.
pub(super) fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> String {
    format!(
        "journal {}: cannot be read, so what it says is NOT put back: {error}",
        path.display()
    )
}

/// Reads an entry that `owner` wrote. Whoever may write into its folder can neither have another
/// file read in its place nor hold up the reader.
pub(super) fn read(path: &Path, owner: Uid) -> io::Result<Entry> {
    let unfit = |found: &str| {
        let expected = format!(
            "a regular file of {}, at most {MAX_ENTRY} octets",
            user(owner)
        );
        io::Error::other(format!("expected {expected}, found {found}; remove it"))
    };
    // A FIFO without a writer is opened at once.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = match OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)
    {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            return Err(unfit("a symbolic link"));
        }
        file => file?,
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(unfit("something else"));
    }
    if found.uid() != owner.as_raw() {
        return Err(unfit(&format!("one of {}", user(found.uid().into()))));
    }
    let mut text = Vec::new();
    file.take(MAX_ENTRY + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_ENTRY {
        return Err(unfit("more"));
    }
    Ok(serde_json::from_slice(&text)?)
}

/// Identifier of the present boot; empty where the kernel does not say.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or(String::new(), |id| id.trim().to_owned())
}
