//! Man pages and completions, made of the program's own table of commands.

use anyhow::Result;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use validator::cli::Cli;

/// Where each shell looks for completions of `validator`.
const SHELLS: [(Shell, &str); 3] = [
    (
        Shell::Bash,
        "usr/share/bash-completion/completions/validator",
    ),
    (Shell::Zsh, "usr/share/zsh/vendor-completions/_validator"),
    (
        Shell::Fish,
        "usr/share/fish/vendor_completions.d/validator.fish",
    ),
];

/// Each file: its path below `/`, and its contents.
pub fn all() -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    pages(&program, &mut files)?;
    for (shell, path) in SHELLS {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "validator", &mut script);
        files.push((path.to_owned(), script));
    }
    Ok(files)
}

/// The page of a command, and those of the commands below it.
fn pages(command: &Command, files: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    // Every page belongs to the program's version, as only that has a number.
    let page = Man::new(command.clone())
        .source(concat!("validator ", env!("CARGO_PKG_VERSION")))
        .manual("validator");
    let mut text = Vec::new();
    page.render(&mut text)?;
    files.push((format!("usr/share/man/man1/{}", page.get_filename()), text));
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .try_for_each(|command| pages(command, files))
}
