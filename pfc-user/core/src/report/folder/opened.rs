//! Folders that were opened: whatever becomes of the path afterwards, names lead into them. Files
//! of somebody else in them hold up nobody.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// An opened folder.
#[derive(Debug)]
pub(super) struct Opened {
    at: PathBuf,
    _held: Option<File>,
}

impl Opened {
    /// The folder at `path`.
    pub(super) fn folder(path: &Path) -> io::Result<Self> {
        // Elsewhere a folder may be no file that can be opened.
        if cfg!(target_os = "linux") {
            // By this name nothing but a folder is ever opened: a FIFO would wait for its writer.
            return File::open(path.join(".")).map(|held| Self::held(path, held));
        }
        if !fs::metadata(path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            at: path.to_owned(),
            _held: None,
        })
    }

    /// By proc(5), a path below that of a descriptor begins at what is open there.
    fn held(path: &Path, held: File) -> Self {
        #[cfg(target_os = "linux")]
        let at = {
            use std::os::fd::AsRawFd as _;
            PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()))
        };
        #[cfg(not(target_os = "linux"))]
        let at = PathBuf::new();
        Self {
            // A container may have no /proc.
            at: if at.is_dir() { at } else { path.to_owned() },
            _held: Some(held),
        }
    }

    /// The folder at `path`, which is made if it is missing. Its parent is one that was opened; a
    /// link in its place is an error.
    pub(super) fn below(path: &Path) -> io::Result<Self> {
        match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        Self::existing(path)
    }

    /// Opens the folder at `path`, which must exist. Its parent is one that was opened; a link in
    /// its place is an error.
    pub(super) fn existing(path: &Path) -> io::Result<Self> {
        let refuse = |what| Err(io::Error::new(io::ErrorKind::NotADirectory, what));
        if path.symlink_metadata()?.is_symlink() {
            return refuse("expected a directory, found a symbolic link; remove it");
        }
        let opened = Self::folder(path)?;
        if opened.is_still(path)? {
            Ok(opened)
        } else {
            refuse("expected a directory, found one that changes meanwhile")
        }
    }

    /// True if what stands at `path` itself, and not behind a link there, is what was opened.
    #[cfg(target_os = "linux")]
    fn is_still(&self, path: &Path) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt as _;
        let of = |found: fs::Metadata| (found.dev(), found.ino());
        let held = self._held.as_ref().map(File::metadata).transpose()?;
        Ok(held.map(of) == Some(of(path.symlink_metadata()?)))
    }

    #[cfg(not(target_os = "linux"))]
    fn is_still(&self, path: &Path) -> io::Result<bool> {
        Ok(!path.symlink_metadata()?.is_symlink())
    }

    /// Path by which it is reached, as long as it is kept open.
    pub(super) fn at(&self) -> &Path {
        &self.at
    }
}

/// Opens the file at `path`; `None` if a link or something else than a file is there. Whatever
/// somebody puts there meanwhile, no link is followed, and no FIFO is waited for.
#[cfg(target_os = "linux")]
pub(super) fn regular(path: &Path) -> io::Result<Option<File>> {
    use std::os::unix::fs::OpenOptionsExt as _;
    // The numbers of open(2), but for Alpha, MIPS, PA-RISC and SPARC.
    const O_NONBLOCK: i32 = 0o4000;
    const O_NOFOLLOW: i32 = if cfg!(any(
        target_arch = "aarch64",
        target_arch = "arm",
        target_arch = "powerpc",
        target_arch = "powerpc64"
    )) {
        0o100_000
    } else {
        0o400_000
    };
    let opened = File::options()
        .read(true)
        .custom_flags(O_NONBLOCK | O_NOFOLLOW)
        .open(path);
    match opened {
        Ok(file) => Ok(file.metadata()?.is_file().then_some(file)),
        Err(_) if path.is_symlink() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn regular(path: &Path) -> io::Result<Option<File>> {
    match path.symlink_metadata()?.is_file() {
        true => File::open(path).map(Some),
        false => Ok(None),
    }
}
