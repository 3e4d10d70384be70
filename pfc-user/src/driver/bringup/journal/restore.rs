//! The hook that puts a DUT back, noted before another hook changes anything.

use std::env;
use std::fmt;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use validator_core::evidence::hooks::HookOutput;
use validator_core::plan::Nanos;

use super::files::{private_folder, unless_gone};
use super::{Journal, JournalError, What, remove, write};
use crate::driver::kernel::process::{ProcessError, run_hook};

/// Variable that names the folder in which hooks note how the DUT was.
pub const STATE_VARIABLE: &str = "VALIDATOR_STATE";

/// The hook, and all that it is run with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RestoreEntry {
    /// Command of the hook `restore`.
    restore: String,
    /// Its variables.
    variables: Vec<(String, String)>,
    /// Folder in which the run was started: its path may be relative.
    folder: PathBuf,
    /// Folder of what the other hooks have noted.
    state: PathBuf,
    timeout: Nanos,
}

/// The note of a DUT that hooks may have changed. It stays until the DUT is put back.
#[derive(Debug)]
pub struct RestoreNote {
    entry: RestoreEntry,
    path: PathBuf,
}

impl RestoreEntry {
    /// Runs the hook, by this command. Its status tells if the DUT is as it was.
    fn run(&self, command: &str) -> Result<HookOutput, ProcessError> {
        let variables: Vec<(&str, &str)> = self
            .variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let timeout = Duration::from_nanos(self.timeout);
        run_hook("restore", "restore", command, &variables, timeout)
    }

    /// Puts the DUT back for a process that is gone; an error says why it is not.
    pub(super) fn undo(&self) -> Result<(), String> {
        let folder = self.folder.to_string_lossy().replace('\'', r"'\''");
        let command = format!("cd '{folder}' || exit\n{}", self.restore);
        let output = self.run(&command).map_err(|error| error.to_string())?;
        match output.failure() {
            Some(failure) => Err(failure),
            None => {
                self.forget();
                Ok(())
            }
        }
    }

    /// Removes the folder: the DUT is as it was.
    fn forget(&self) {
        // A folder that cannot be removed does no harm.
        let _ = fs::remove_dir_all(&self.state);
    }
}

impl fmt::Display for RestoreEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DUT, by the hook `restore` ({})", self.restore)
    }
}

impl Journal {
    /// Makes a folder for what hooks note, and notes the hook `restore` with the variables that
    /// `variables` gives for that folder.
    pub fn note_restore(
        &self,
        restore: &str,
        timeout: Nanos,
        variables: impl FnOnce(&str) -> Vec<(String, String)>,
    ) -> Result<RestoreNote, JournalError> {
        let state = self.keys.join(format!("{}-hooks", process::id()));
        let made = || -> io::Result<()> {
            private_folder(&self.keys)?;
            // One of a process that had this number before, whose entry is gone.
            unless_gone(fs::remove_dir_all(&state))?;
            DirBuilder::new().mode(0o700).create(&state)
        };
        made().map_err(|source| JournalError::File {
            path: state.clone(),
            source,
        })?;
        let entry = RestoreEntry {
            restore: restore.to_owned(),
            variables: variables(&state.to_string_lossy()),
            folder: env::current_dir().unwrap_or_default(),
            state,
            timeout,
        };
        let path = write(&self.keys, "restore", What::Restore(entry.clone()), false)?;
        Ok(RestoreNote { entry, path })
    }
}

impl RestoreNote {
    /// Folder of what the hooks note.
    pub fn state(&self) -> String {
        self.entry.state.to_string_lossy().into_owned()
    }

    /// Runs the hook. The note stays where it fails, for the next run.
    pub fn restore(self) -> Result<HookOutput, ProcessError> {
        let output = self.entry.run(&self.entry.restore)?;
        if output.status == 0 {
            self.entry.forget();
            // Putting the DUT back once more would change nothing.
            let _ = remove(self.path);
        }
        Ok(output)
    }
}
