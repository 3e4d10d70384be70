//! Writes the man pages and the completions of shells into a folder, below the paths of an
//! installation: `cargo run --example manual -- FOLDER`.

mod files;

use std::path::PathBuf;
use std::{env, fs};

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let folder: PathBuf = env::args_os()
        .nth(1)
        .context("expected the folder of the files as the only argument")?
        .into();
    for (path, contents) in files::all()? {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().expect("a file"))
            .and_then(|()| fs::write(&file, contents))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
