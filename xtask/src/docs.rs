//! `cargo xtask docs`: the generated pages, the links, and the book.

#[cfg(test)]
mod ci;
mod links;
mod messages;

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::setup::built::MDBOOK;
use crate::setup::{self, Group};
use crate::step::{self, step};

#[derive(clap::Args)]
pub struct Docs {
    /// Leave the generated pages as they are
    #[arg(long)]
    no_pages: bool,
    /// Leave the book unbuilt, which takes mdBook
    #[arg(long)]
    no_book: bool,
    #[command(flatten)]
    setup: setup::Install,
}

/// Writes the pages, checks their links and the messages that they quote, and builds the book into
/// `target/book`.
pub fn run(root: &Path, options: &Docs) -> Result<()> {
    if !options.no_pages {
        step("generated pages, into docs/reference", || pages(root))?;
    }
    step(
        "links of the documentation, and messages that it quotes",
        || {
            let wrong = [links::broken(root)?, messages::unknown(root)?].concat();
            if !wrong.is_empty() {
                bail!("{}", wrong.join("\n"));
            }
            Ok(())
        },
    )?;
    if options.no_book {
        return Ok(());
    }
    setup::run(&[Group::Docs], &options.setup)?;
    step("the book, into target/book", || {
        let mut mdbook = Command::new(MDBOOK.program());
        step::run(mdbook.arg("build").arg(root.join("docs")))
    })
}

fn pages(root: &Path) -> Result<()> {
    let mut cargo = step::cargo();
    cargo
        .args([
            "run",
            "--quiet",
            "--package",
            "pfc-user",
            "--example",
            "docs",
            "--",
        ])
        .arg(root.join("docs/reference"))
        .current_dir(root);
    step::run(&mut cargo)
}
