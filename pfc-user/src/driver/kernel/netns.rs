//! Network namespaces that live no longer than the process.
//!
//! A namespace of [`Namespace::new`] has no name anywhere: file descriptors hold it, so the kernel
//! takes it and all interfaces in it down when the process ends, in whatever way.

use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};
use rtnetlink::LinkUnspec;

use super::rtnl::on_runtime;

/// Folder in which `ip netns` keeps named namespaces.
const NAMED: &str = "/run/netns";
const THREAD: &str = "/proc/thread-self/ns/net";

/// Errors of a namespace.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// No namespace of that name.
    #[error("there is no network namespace \"{name}\"; there {}", existing(.known))]
    Unknown {
        /// The name.
        name: String,
        /// The namespaces that exist.
        known: Vec<String>,
    },
    /// Something that only root may do.
    #[error("{what}: this needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN); run with sudo")]
    NotPermitted {
        /// The attempted action.
        what: String,
    },
    /// Another failure in the kernel.
    #[error("{what}: {source}")]
    System {
        /// The attempted action.
        what: String,
        /// The kernel's error.
        source: std::io::Error,
    },
}

fn existing(known: &[String]) -> String {
    if known.is_empty() {
        "are none".to_owned()
    } else {
        format!("are: {}", known.join(", "))
    }
}

fn failed(what: impl Into<String>, error: impl Into<std::io::Error>) -> NamespaceError {
    let (what, source) = (what.into(), error.into());
    match source.kind() {
        std::io::ErrorKind::PermissionDenied => NamespaceError::NotPermitted { what },
        _ => NamespaceError::System { what, source },
    }
}

/// A network namespace, held open.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    label: Label,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Label {
    Current,
    Named(String),
    Unnamed,
}

impl Namespace {
    /// A new one with nothing in it but the loopback interface, which is up. Needs root.
    pub fn new() -> Result<Self, NamespaceError> {
        // A thread of its own, so that the caller stays where it is.
        let file = on_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|error| failed("cannot make a network namespace", error))?;
            loopback_up().map_err(|error| failed("cannot set the loopback interface up", error))?;
            open_own()
        })?;
        Ok(Self {
            file,
            label: Label::Unnamed,
        })
    }

    /// The one that `ip netns add NAME` made. Using it needs root.
    pub fn named(name: &str) -> Result<Self, NamespaceError> {
        // A slash would lead out of the folder, and an empty name to the folder itself.
        let path = Path::new(NAMED).join(name);
        if name.is_empty() || name.contains('/') || !path.exists() {
            let entries = std::fs::read_dir(NAMED).into_iter().flatten().flatten();
            let mut known: Vec<String> = entries
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect();
            known.sort();
            return Err(NamespaceError::Unknown {
                name: name.to_owned(),
                known,
            });
        }
        let file = File::open(&path)
            .map_err(|error| failed(format!("cannot open {}", path.display()), error))?;
        Ok(Self {
            file,
            label: Label::Named(name.to_owned()),
        })
    }

    /// The one of that name, or the one that the calling thread is in.
    pub fn open(name: Option<&str>) -> Result<Self, NamespaceError> {
        name.map_or_else(Self::current, Self::named)
    }

    /// The one that the calling thread is in.
    pub fn current() -> Result<Self, NamespaceError> {
        Ok(Self {
            file: open_own()?,
            label: Label::Current,
        })
    }

    /// Runs `work` inside, on a thread of its own. Sockets and BPF links that it makes stay valid
    /// outside. An error when the namespace cannot be entered, for which any but the caller's
    /// own needs root.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        on_thread(|| {
            self.enter()?;
            Ok(work())
        })
    }

    /// Moves the calling thread inside, for good.
    pub(super) fn enter(&self) -> Result<(), NamespaceError> {
        // setns asks for privilege even where it changes nothing.
        let own = open_own()?;
        if inode(&own)? == self.inode()? {
            return Ok(());
        }
        setns(&self.file, CloneFlags::CLONE_NEWNET)
            .map_err(|error| failed(format!("cannot enter {self}"), error))
    }

    /// The number that tells it from all other namespaces of this moment.
    pub(crate) fn inode(&self) -> Result<u64, NamespaceError> {
        inode(&self.file)
    }

    /// Its name, where it has one that another process could find it by.
    pub fn name(&self) -> Option<&str> {
        match &self.label {
            Label::Named(name) => Some(name),
            Label::Current | Label::Unnamed => None,
        }
    }

    /// Another handle to the same namespace.
    pub fn try_clone(&self) -> Result<Self, NamespaceError> {
        let file = self
            .file
            .try_clone()
            .map_err(|error| failed("cannot duplicate a file descriptor", error))?;
        Ok(Self {
            file,
            label: self.label.clone(),
        })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.label {
            Label::Current => f.write_str("the current network namespace"),
            Label::Named(name) => write!(f, "network namespace \"{name}\""),
            Label::Unnamed => f.write_str("a network namespace of the tester"),
        }
    }
}

/// Sets the loopback interface of the calling thread's namespace up.
fn loopback_up() -> std::io::Result<()> {
    on_runtime(async |handle, _| {
        handle
            .link()
            .change(LinkUnspec::new_with_name("lo").up().build())
            .execute()
            .await
    })
}

fn open_own() -> Result<File, NamespaceError> {
    File::open(THREAD).map_err(|error| failed(format!("cannot open {THREAD}"), error))
}

fn inode(file: &File) -> Result<u64, NamespaceError> {
    Ok(file
        .metadata()
        .map_err(|error| failed("cannot tell network namespaces apart", error))?
        .ino())
}

fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_named_in_the_error() {
        for name in ["no-such-namespace", "", "../net"] {
            let message = Namespace::named(name).unwrap_err().to_string();
            assert!(
                message.contains(&format!("no network namespace \"{name}\"; there are")),
                "{message}"
            );
        }
    }

    #[test]
    fn the_current_one_can_be_used_by_anybody() {
        let current = Namespace::current().unwrap();
        let inside = current
            .run(|| open_own().and_then(|file| inode(&file)))
            .unwrap()
            .unwrap();
        assert_eq!(inside, current.inode().unwrap());
    }
}
