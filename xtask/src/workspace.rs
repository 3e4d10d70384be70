//! The working tree: its files, and copies of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::step;

/// The version of every crate and package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Makes a git command in the working tree, whoever owns it.
pub fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-c")
        .arg(format!("safe.directory={}", root.display()))
        .current_dir(root);
    git
}

/// Copies the working tree without build results. Links to files become files.
pub fn copy(root: &Path, to: &Path) -> Result<()> {
    let mut list = git(root);
    list.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let files = step::output(&mut list)?;
    for file in files.split('\0').filter(|file| root.join(file).is_file()) {
        let to = to.join(file);
        fs::create_dir_all(to.parent().expect("a file"))
            .and_then(|()| fs::copy(root.join(file), &to))
            .with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}
