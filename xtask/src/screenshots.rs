//! `cargo xtask screenshots`: the pictures of the documentation, from real runs, by
//! `labs/screenshots.py`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::{demo, lab, setup};

#[derive(clap::Args)]
pub struct Screenshots {
    #[command(flatten)]
    setup: setup::Install,
    /// Draw the pictures of the runs of the last call, without new runs
    #[arg(long)]
    again: bool,
}

/// Builds, runs and writes the pictures.
pub fn run(root: &Path, options: &Screenshots) -> Result<ExitCode> {
    if !options.again {
        demo::prepare(root, &options.setup)?;
    }
    let python = lab::python(root, "screenshots")?;
    let again = options.again.then_some("--again");
    lab::start(root, &python, "screenshots", again)
}
