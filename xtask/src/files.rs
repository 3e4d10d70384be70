//! Files and folders, with errors that name them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Text of a file.
pub fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Paths of all that is in a folder, in order.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read {}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(cannot)? {
        paths.push(entry.with_context(cannot)?.path());
    }
    paths.sort();
    Ok(paths)
}
