//! Writes the generated pages of the book into a folder: `cargo run --example docs -- FOLDER`.

use std::path::PathBuf;
use std::{env, fs};

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let folder: PathBuf = env::args_os()
        .nth(1)
        .context("expected the folder of the pages as the only argument")?
        .into();
    for (name, text) in validator::docs::pages()? {
        let file = folder.join(name);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
