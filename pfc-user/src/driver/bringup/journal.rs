//! Settings of NICs and keys of DUTs that are changed for a run and put back after it. What is to
//! be put back is written down before anything is changed, so that a later run can do it when this
//! one is killed.

mod claim;
mod files;
mod restore;
mod setting;

use std::path::{Path, PathBuf};
use std::{env, fmt, fs, io};

use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

pub use self::claim::Claim;
use self::files::{Folder, Seen, boot, list, look, others, read, remove, unreadable, user, write};
use self::restore::RestoreEntry;
pub use self::restore::{RestoreNote, STATE_VARIABLE};
use self::setting::{Reach, Setting, Value};
use super::mad::{Claimed, KeyEntry};
use crate::driver::kernel::link::{self, Feature, LinkError, Property};
use crate::driver::kernel::netns::{Namespace, NamespaceError};
use crate::driver::kernel::process::start_time;

/// Errors of changing or restoring a setting.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The entry could not be written, read or removed; the setting has not been touched.
    #[error("journal {}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The setting itself.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Two testers would change each other's M_Key.
    #[error(
        "{who} tests {claimed} now, and one tester at a time can: wait until it has ended \
         ({by})"
    )]
    Claimed {
        /// The process.
        who: String,
        /// The DUT.
        claimed: Box<Claimed>,
        /// Evidence by which this is known.
        by: String,
    },
}

/// Something as it was before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    /// The process that changed it.
    pid: u32,
    /// Its start time in clock ticks since boot: numbers of processes come again.
    started: u64,
    /// Identifier of that boot; empty in entries that do not outlive it.
    #[serde(default)]
    boot: String,
    /// The entry stays until [`Journal::undo_kept`], whatever becomes of that process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    kept: bool,
    #[serde(flatten)]
    what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum What {
    Setting(Setting),
    Key(KeyEntry),
    Claim { claimed: Claimed },
    Restore(RestoreEntry),
}

impl Entry {
    /// True if the process that wrote it goes on, in the present `boot`.
    fn is_alive(&self, boot: &str) -> bool {
        start_time(self.pid) == Some(self.started) && (self.boot.is_empty() || self.boot == boot)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(setting) => match setting.value {
                Value::Feature { feature, .. } => {
                    write!(f, "{}: {} was changed", setting.interface, feature.name())
                }
                Value::Link { .. } => write!(f, "a changed link: {setting}"),
            },
            Self::Key(key) => write!(f, "a changed {key}"),
            Self::Claim { claimed } => write!(f, "a test of {claimed}"),
            Self::Restore(restore) => write!(f, "a changed {restore}"),
        }
    }
}

/// Environment variable that names a folder for both kinds of entries.
pub const FOLDER_VARIABLE: &str = "VALIDATOR_JOURNAL";

/// Two folders of entries, one file each. No other user reads them: a fabric's keys are in there.
#[derive(Clone, Debug)]
pub struct Journal {
    /// Settings of NICs, which a reboot puts back.
    settings: PathBuf,
    /// Keys of DUTs, which it does not.
    keys: PathBuf,
    /// Folders of other users' runs. They are looked at and nothing in them is acted on: what a
    /// user wrote must not make root change a setting.
    others: Vec<Folder>,
}

/// A changed setting; put back when dropped.
#[derive(Debug)]
pub struct Change {
    namespace: Namespace,
    setting: Setting,
    path: PathBuf,
    is_back: bool,
}

/// The note of a DUT's key. It stays until it is said that the key is as it was.
#[derive(Debug)]
pub struct KeyNote {
    path: PathBuf,
}

impl KeyNote {
    /// The key is as it was; takes the note away.
    pub fn restored(self) -> Result<(), JournalError> {
        remove(self.path)
    }
}

impl Journal {
    /// Opens the journal in the folder that [`FOLDER_VARIABLE`] names. Without it, root uses the
    /// machine's folders /run/validator and /var/lib/validator, and others use their own.
    pub fn open() -> Self {
        if let Some(folder) = env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty()) {
            return Self::at(folder);
        }
        let own = |variable: &str, fallback: Option<&str>| {
            let home = || Some(Path::new(&env::var_os("HOME")?).join(fallback?));
            if geteuid().is_root() {
                None
            } else {
                env::var_os(variable).map(PathBuf::from).or_else(home)
            }
        };
        let runtime = own("XDG_RUNTIME_DIR", None).unwrap_or_else(|| "/run".into());
        let state =
            own("XDG_STATE_HOME", Some(".local/state")).unwrap_or_else(|| "/var/lib".into());
        let (settings, keys) = (runtime.join("validator"), state.join("validator"));
        let mut others = others();
        others.retain(|folder| folder.path != settings && folder.path != keys);
        Self {
            settings,
            keys,
            others,
        }
    }

    /// A journal in `folder`, which is made when needed.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self {
            settings: folder.clone(),
            keys: folder,
            others: Vec::new(),
        }
    }

    /// Notes how it was before `wanted` is set; `None` if it is so already. The entry outlives this
    /// process if it is `kept`.
    fn note(
        &self,
        namespace: &Namespace,
        interface: &str,
        wanted: Value,
        kept: bool,
    ) -> Result<Option<(Setting, PathBuf)>, JournalError> {
        let was = wanted.at(namespace, interface)?;
        if was == wanted {
            return Ok(None);
        }
        let setting = Setting::new(namespace, interface, was)?;
        let path = write(
            &self.settings,
            &setting.file_name(),
            What::Setting(setting.clone()),
            kept,
        )?;
        Ok(Some((setting, path)))
    }

    /// Sets `feature` until [`Journal::undo_kept`], even after this process has ended. Returns the
    /// change in words, or `None` if the feature was set already. The former state is noted first,
    /// so that nothing is lost if the process is killed in between.
    pub fn keep(
        &self,
        namespace: &Namespace,
        interface: &str,
        feature: Feature,
        on: bool,
    ) -> Result<Option<String>, JournalError> {
        let wanted = Value::Feature { feature, was: on };
        let Some((setting, path)) = self.note(namespace, interface, wanted, true)? else {
            return Ok(None);
        };
        if let Err(error) = wanted.set(namespace, interface) {
            // How far the driver went is unknown.
            setting.undo(namespace)?;
            remove(path)?;
            return Err(error.into());
        }
        let word = if on { "on" } else { "off" };
        Ok(Some(format!(
            "{interface}: {} is {word} until `validator check --undo`",
            feature.name()
        )))
    }

    /// Changes by [`Journal::keep`] that are still in force, in words.
    pub fn kept(&self) -> Vec<String> {
        let words = |(_, entry): (_, io::Result<Entry>)| {
            let entry = entry.ok().filter(|entry| entry.kept)?;
            let What::Setting(setting) = entry.what else {
                return None;
            };
            let (Value::Feature { feature, was }, Ok(Reach::Here(_))) =
                (setting.value, setting.reach())
            else {
                return None;
            };
            let word = if was { "off" } else { "on" };
            Some(format!(
                "{}: {} is {word} by `validator check --fix`, until `--undo`",
                setting.interface,
                feature.name()
            ))
        };
        let (paths, _) = self.entries().unwrap_or_default();
        present(paths).filter_map(words).collect()
    }

    /// Entries of processes that are gone, and folders that cannot be read, in words. Changes
    /// nothing.
    pub fn left(&self) -> Vec<String> {
        let (paths, mut left) = self.entries().unwrap_or_default();
        let boot = boot();
        let (others, notes) = look(&self.others);
        left.extend(notes);
        for Seen { path, entry, owner } in others {
            match entry {
                Ok(entry) if !entry.kept && entry.is_alive(&boot) => {}
                // Taken away since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                _ => left.push(format!(
                    "journal {path:?}: left by a run of {}; `validator check --undo` as that user \
                     puts it back",
                    user(owner)
                )),
            }
        }
        for (path, entry) in present(paths) {
            match entry {
                Ok(entry) if entry.kept || entry.is_alive(&boot) => {}
                Ok(entry) => left.push(format!(
                    "left by process {}, which was killed: {}; `validator check --undo` puts it \
                     back",
                    entry.pid, entry.what
                )),
                Err(error) => left.push(unreadable(&path, &error)),
            }
        }
        left
    }

    /// Puts back what killed runs left, and the changes of [`Journal::keep`]. Returns what was done
    /// in words, and true if nothing is left.
    pub fn undo(&self) -> Result<(Vec<String>, bool), JournalError> {
        let mut done = self.recover()?;
        let (kept, all) = self.undo_kept()?;
        let left = self.left();
        let all = all && left.is_empty();
        for line in kept.into_iter().chain(left) {
            if !done.contains(&line) {
                done.push(line);
            }
        }
        Ok((done, all))
    }

    /// Puts back the changes of [`Journal::keep`]; returns them in words, and true if that was all.
    /// Changes in a namespace without a name that is not this one stay noted.
    pub fn undo_kept(&self) -> Result<(Vec<String>, bool), JournalError> {
        let (paths, mut done) = self.entries()?;
        let mut all = done.is_empty();
        for (path, entry) in present(paths) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    all = false;
                    done.push(unreadable(&path, &error));
                    continue;
                }
            };
            let What::Setting(setting) = entry.what else {
                continue;
            };
            if !entry.kept {
                continue;
            }
            let (interface, name) = (&setting.interface, setting.value.name());
            let failed = match setting.reach()? {
                Reach::Here(namespace) => match setting.undo(&namespace) {
                    Ok(()) => {
                        done.push(setting.to_string());
                        None
                    }
                    Err(LinkError::Unknown { .. }) => None,
                    Err(error) => Some(error.to_string()),
                },
                Reach::Gone => None,
                Reach::Elsewhere => Some("it was changed in another network namespace".to_owned()),
            };
            match failed {
                None => remove(path)?,
                Some(why) => {
                    all = false;
                    done.push(format!("{interface}: {name} is NOT put back: {why}"));
                }
            }
        }
        Ok((done, all))
    }

    /// The files of this journal, as of [`list`].
    fn entries(&self) -> Result<(Vec<PathBuf>, Vec<String>), JournalError> {
        list([&self.settings, &self.keys], usize::MAX)
    }

    /// Sets `feature`; `None` when it was so already.
    pub fn change(
        &self,
        namespace: &Namespace,
        interface: &str,
        feature: Feature,
        on: bool,
    ) -> Result<Option<Change>, JournalError> {
        self.change_to(namespace, interface, Value::Feature { feature, was: on })
    }

    /// Sets a property of a link; `None` when it was so already.
    pub fn change_link(
        &self,
        namespace: &Namespace,
        interface: &str,
        property: Property,
    ) -> Result<Option<Change>, JournalError> {
        self.change_to(namespace, interface, Value::Link { link: property })
    }

    fn change_to(
        &self,
        namespace: &Namespace,
        interface: &str,
        wanted: Value,
    ) -> Result<Option<Change>, JournalError> {
        let Some((setting, path)) = self.note(namespace, interface, wanted, false)? else {
            return Ok(None);
        };
        let change = Change {
            namespace: namespace.try_clone()?,
            setting,
            path,
            is_back: false,
        };
        // Dropping `change` on an error takes the entry away.
        wanted.set(namespace, interface)?;
        Ok(Some(change))
    }

    /// Has VLAN tags stay in received frames, where the driver lets go of them.
    pub fn with_tags(
        &self,
        namespace: &Namespace,
        interface: &str,
    ) -> Result<Option<Change>, JournalError> {
        match self.change(namespace, interface, Feature::RxVlan, false) {
            Err(JournalError::Link(LinkError::Fixed { .. })) => Ok(None),
            change => change,
        }
    }

    /// Turns off the features that merge frames in the device, as far as the driver allows. Call it
    /// before a program is attached, as attaching turns them off as well, and restore them after
    /// the program is detached.
    pub fn without_merging(
        &self,
        namespace: &Namespace,
        interface: &str,
    ) -> Result<Vec<Change>, JournalError> {
        let mut changes = Vec::new();
        for feature in Feature::MERGING {
            match self.change(namespace, interface, feature, false) {
                // A feature that is still on with the program attached is reported as such.
                Err(JournalError::Link(LinkError::Fixed { .. } | LinkError::System { .. })) => {}
                change => changes.extend(change?),
            }
        }
        Ok(changes)
    }

    /// Notes a DUT's key, before it is changed.
    pub fn note_key(&self, entry: KeyEntry) -> Result<KeyNote, JournalError> {
        Ok(KeyNote {
            path: write(&self.keys, &entry.file_name(), What::Key(entry), false)?,
        })
    }

    /// Puts back what processes that are gone left changed; says what, in words. To be called at
    /// the start of a run. Entries of other namespaces without a name stay: they are out of
    /// reach, and mostly gone. So do those of DUTs that cannot be reached.
    pub fn recover(&self) -> Result<Vec<String>, JournalError> {
        let boot = boot();
        let (paths, _) = self.entries()?;
        let mut done = Vec::new();
        for (path, entry) in present(paths) {
            let entry = match entry {
                Ok(entry) => entry,
                // Perhaps an entry of another version; the other entries are restored all the same.
                Err(error) => {
                    done.push(unreadable(&path, &error));
                    continue;
                }
            };
            // A kept setting stays; only what it was in may be gone.
            if entry.kept
                && !matches!(
                    &entry.what,
                    What::Setting(setting) if matches!(setting.reach(), Ok(Reach::Gone))
                )
            {
                continue;
            }
            if entry.is_alive(&boot) {
                continue;
            }
            match self.put_back(&entry) {
                Outcome::Nothing => {}
                Outcome::PutBack(what) => done.push(format!(
                    "{what}, as it was before process {} was killed",
                    entry.pid
                )),
                Outcome::NotNow => continue,
                // The other entries are put back all the same.
                Outcome::Failed(what) => {
                    done.push(format!(
                        "{what}; tried again by the next run, until {} is removed",
                        path.display()
                    ));
                    continue;
                }
            }
            remove(path)?;
        }
        Ok(done)
    }

    /// Puts back what an entry of a process that is gone says.
    fn put_back(&self, entry: &Entry) -> Outcome {
        match &entry.what {
            What::Setting(setting) => {
                Outcome::of(setting, setting.reach(), |place| setting.undo(place))
            }
            What::Restore(restore) => match restore.undo() {
                Ok(()) => Outcome::PutBack(format!("put back the {restore}")),
                Err(error) => Outcome::Failed(format!("NOT put back: the {restore}: {error}")),
            },
            // The claim of a process that is gone stops no tester.
            What::Claim { .. } => Outcome::Nothing,
            // Putting the key back now would disturb whoever tests the DUT.
            What::Key(key) if self.unclaimed(&Claimed::Way(key.target())).is_err() => {
                Outcome::NotNow
            }
            What::Key(key) => match key.undo() {
                Ok(()) => Outcome::PutBack(format!("put back on {key}")),
                Err(error) => Outcome::Failed(format!("NOT put back on {key}: {error:#}")),
            },
        }
    }
}

/// Reads an entry of this journal, which this user alone may write.
fn own(path: &Path) -> io::Result<Entry> {
    read(path, geteuid())
}

/// Reads the entries that are still there: one may be removed since it was listed, by its process
/// or by another recovery.
fn present(paths: Vec<PathBuf>) -> impl Iterator<Item = (PathBuf, io::Result<Entry>)> {
    paths.into_iter().filter_map(|path| match own(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        entry => Some((path, entry)),
    })
}

/// Outcome for an entry of a process that is gone.
enum Outcome {
    /// There is nothing to put back any more.
    Nothing,
    /// The entry was put back; the text says what.
    PutBack(String),
    /// The entry can be put back, though not by this process, or not yet.
    NotNow,
    /// The entry could not be put back; the text says why.
    Failed(String),
}

impl Outcome {
    /// Puts back a setting of an interface, in whose namespace it is where that can be reached.
    fn of(
        setting: &impl fmt::Display,
        reach: Result<Reach, impl fmt::Display>,
        undo: impl FnOnce(&Namespace) -> Result<(), LinkError>,
    ) -> Self {
        let failed =
            |error: &dyn fmt::Display| Self::Failed(format!("NOT put back: {setting}: {error}"));
        match reach {
            Ok(Reach::Here(namespace)) => match undo(&namespace) {
                Ok(()) => Self::PutBack(setting.to_string()),
                // Taken out; there is nothing to put back.
                Err(LinkError::Unknown { .. }) => Self::Nothing,
                Err(error) => failed(&error),
            },
            Ok(Reach::Gone) => Self::Nothing,
            Ok(Reach::Elsewhere) => Self::NotNow,
            Err(error) => failed(&error),
        }
    }
}

impl Change {
    /// Returns the property of the link as it was; `None` of an offload.
    pub const fn was(&self) -> Option<Property> {
        match self.setting.value {
            Value::Link { link } => Some(link),
            Value::Feature { .. } => None,
        }
    }

    /// Changes a property of the link once more; what it was at first is still put back.
    pub fn set(&self, property: Property) -> Result<(), LinkError> {
        link::set(&self.namespace, &self.setting.interface, property)
    }

    /// Puts it back now. On an error the entry stays, for another try or for the next run.
    pub fn undo(&mut self) -> Result<(), LinkError> {
        match self.setting.undo(&self.namespace) {
            // An interface that is gone needs nothing.
            Ok(()) | Err(LinkError::Unknown { .. }) => {}
            error => return error,
        }
        self.is_back = true;
        // Putting it back once more would change nothing.
        let _ = fs::remove_file(&self.path);
        Ok(())
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        if !self.is_back {
            // No caller is left to get the error.
            let _ = self.undo();
        }
    }
}

#[cfg(test)]
mod tests;
