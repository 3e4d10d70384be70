//! One tester at a time: the claim of a run on its DUT.

use std::path::PathBuf;
use std::{fs, process};

use super::{Journal, JournalError, What, boot, read, write};
use crate::driver::bringup::mad::{ClaimEntry, Target};

/// The claim on a DUT; given up when dropped.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // One that stays is of a process that is gone, and stops nobody.
        let _ = fs::remove_file(&self.path);
    }
}

impl Journal {
    /// Claims a DUT for this process.
    ///
    /// # Errors
    /// If another process that still runs has claimed it, or has noted its key.
    pub fn claim(&self, target: Target) -> Result<Claim, JournalError> {
        self.unclaimed(&target)?;
        let name = format!("claim-{}", target.file_name());
        let entry = ClaimEntry {
            claimed: target.clone(),
        };
        let path = write(&self.keys, &name, What::Claim(entry), false)?;
        let claim = Claim { path };
        // Another may have looked at the same time: then both see each other now.
        self.unclaimed(&target)?;
        Ok(claim)
    }

    /// An error if another process that still runs has to do with that DUT.
    pub(super) fn unclaimed(&self, target: &Target) -> Result<(), JournalError> {
        let boot = boot();
        let (paths, _) = self.entries()?;
        for path in paths {
            let Ok(entry) = read(&path) else {
                continue;
            };
            let is_its = match &entry.what {
                What::Claim(claim) => claim.claimed == *target,
                What::Key(key) => key.target() == *target,
                What::Setting(_) | What::Link(_) => false,
            };
            if is_its && entry.pid != process::id() && entry.is_alive(&boot) {
                return Err(JournalError::Claimed {
                    pid: entry.pid,
                    target: Box::new(target.clone()),
                    path,
                });
            }
        }
        Ok(())
    }
}
