//! A journal for the tests of one lane.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use nix::sched::{CloneFlags, unshare};

use crate::step;

/// Where the validator notes what it changes, when root runs it.
const FOLDERS: [&str; 2] = ["/run/validator", "/var/lib/validator"];

/// Gives the calling thread, and what it starts, a journal of its own: every run puts back what it finds in the machine's, also what a
/// test of another lane has just left there on purpose. Others than root have one for each user, and one lane that uses it.
pub fn own() -> Result<()> {
    if !step::is_root() {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWNS).context("cannot make a mount namespace")?;
    step::run(Command::new("mount").args(["--make-rprivate", "/"]))?;
    for folder in FOLDERS {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {folder}"))?;
        step::run(Command::new("mount").args(["-t", "tmpfs", "-o", "mode=0755", "tmpfs", folder]))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::thread;

    use super::*;

    #[test]
    fn what_is_noted_in_one_lane_is_not_seen_in_another() {
        if !step::is_root() {
            return println!("skipped: needs root");
        }
        let note = Path::new(FOLDERS[0]).join(format!("test-{}", std::process::id()));
        thread::scope(|scope| {
            let lane = scope.spawn(|| {
                own().unwrap();
                fs::write(&note, "").unwrap();
                assert!(note.exists());
            });
            lane.join().unwrap();
        });
        assert!(!note.exists());
    }
}
