//! A program on a terminal of a fixed size, and what stands on its screen.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::num::NonZeroU16;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};
use nix::pty::{OpenptyResult, Winsize, openpty};

use crate::lab::archive::cannot_write;
use crate::step;

/// Columns and rows.
#[derive(Clone, Copy)]
pub struct Size {
    columns: NonZeroU16,
    rows: NonZeroU16,
}

impl Size {
    /// A terminal has at least one of each.
    pub const fn new(columns: u16, rows: u16) -> Self {
        let (Some(columns), Some(rows)) = (NonZeroU16::new(columns), NonZeroU16::new(rows)) else {
            panic!("no columns or no rows")
        };
        Self { columns, rows }
    }
}

/// Between what was typed and what the screen shows, in a file.
const SHOWN: &str = "\n\n";

/// The lines of a screen, below what was typed.
pub struct Screen {
    typed: String,
    lines: Vec<String>,
}

impl Screen {
    fn of(parser: &vt100::Parser) -> Self {
        let contents = parser.screen().contents();
        let lines = contents.trim_end().lines().map(str::to_owned);
        Self {
            typed: String::new(),
            lines: lines.collect(),
        }
    }

    /// The same below a command.
    pub fn titled(mut self, typed: &str) -> Self {
        typed.clone_into(&mut self.typed);
        self
    }

    /// Keeps it in a file.
    pub fn write(&self, file: &Path) -> Result<()> {
        let text = format!("{}{SHOWN}{}", self.typed, self.text());
        fs::write(file, text).with_context(|| cannot_write(file))
    }

    /// Reads one that was kept.
    pub fn read(file: &Path) -> Result<Self> {
        let cannot = || format!("cannot read {}", file.display());
        let text = fs::read_to_string(file).with_context(cannot)?;
        let (typed, shown) = text.split_once(SHOWN).with_context(cannot)?;
        Ok(Self {
            typed: typed.to_owned(),
            lines: shown.lines().map(str::to_owned).collect(),
        })
    }

    /// What was typed.
    pub fn typed(&self) -> &str {
        &self.typed
    }

    /// The lines.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// Runs a program to its end, or until its screen is one that is wanted. The program is then ended.
pub fn run(
    command: &mut Command,
    size: Size,
    wanted: impl Fn(&str) -> bool,
) -> Result<(Screen, ExitStatus)> {
    let cannot = format!("cannot run {}", step::show(command));
    let window = Winsize {
        ws_row: size.rows.get(),
        ws_col: size.columns.get(),
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let OpenptyResult { master, slave } =
        openpty(&window, None).context("cannot make a terminal")?;
    let mut child = command
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(slave)
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| cannot.clone())?;
    // The command holds the program's end of the terminal. With it open, reading would never end.
    command.stdout(Stdio::null());
    let mut parser = vt100::Parser::new(size.rows, size.columns, 0);
    let (mut output, mut octets) = (File::from(master), [0; 4096]);
    loop {
        let count = match output.read(&mut octets) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // EIO: the last process on the terminal has ended.
            Err(error) if error.raw_os_error() == Some(nix::errno::Errno::EIO as i32) => break,
            Err(error) => return Err(error).context(cannot),
        };
        parser.process(&octets[..count]);
        if wanted(&parser.screen().contents()) {
            child.kill().with_context(|| cannot.clone())?;
            break;
        }
    }
    let status = child.wait().with_context(|| cannot)?;
    Ok((Screen::of(&parser), status))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size::new(20, 5);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_screen_is_what_is_left_of_what_was_drawn() {
        let script = r"test -t 1 && printf 'old\n\033[1A\033[2Knew\nsecond\n'; exit 3";
        let (screen, status) = run(&mut shell(script), SIZE, |_| false).unwrap();
        assert_eq!(screen.text(), "new\nsecond");
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn a_wanted_screen_ends_the_program() {
        let script = "echo one; echo two; exec sleep 1000";
        let wanted = |text: &str| text.contains("two");
        let (screen, status) = run(&mut shell(script), SIZE, wanted).unwrap();
        assert_eq!(screen.text(), "one\ntwo");
        let file = tempfile::NamedTempFile::new().unwrap();
        screen.titled("a \\\n b").write(file.path()).unwrap();
        let kept = Screen::read(file.path()).unwrap();
        assert_eq!((kept.typed(), &*kept.text()), ("a \\\n b", "one\ntwo"));
        assert_eq!(status.code(), None);
    }
}
