//! The program that a hook's command begins with: what can be seen of it without running it.

use std::fs;
use std::time::Duration;

use nix::unistd::{AccessFlags, access};

use crate::driver::kernel::process;

/// Characters that end a word of the shell.
const ENDS: [char; 5] = [';', '|', '&', '<', '>'];
/// Characters whose meaning only a shell knows.
const SHELL: &str = "'\"`$(){}[]*?~#!\\";
/// The same within a value that is assigned, which may name variables.
const QUOTES: &str = "'\"`()\\";

/// Words for a program that is there.
const FOUND: &str = "can be run";
/// Words for a command whose beginning only a shell can read.
const UNREAD: &str = "left to the shell";

/// Looks for the program that `command` begins with. An error says what to do.
pub(super) fn look(key: &str, command: &str, timeout: Duration) -> Result<&'static str, String> {
    let Some(word) = first_word(command) else {
        return Ok(UNREAD);
    };
    if !word.contains('/') {
        return if sets_path(command) {
            Ok(UNREAD)
        } else if shell_knows(word, timeout) {
            Ok(FOUND)
        } else {
            Err(format!(
                "expected a program {word} in PATH, found none: install it, or give its path in \
                 {key}"
            ))
        };
    }
    let (found, remedy) = match fs::metadata(word) {
        Err(error) => (
            format!("none ({error})"),
            format!("put it there, or correct {key}"),
        ),
        Ok(other) if !other.is_file() => {
            ("something that is no file".into(), format!("correct {key}"))
        }
        Ok(_) if access(word, AccessFlags::X_OK).is_err() => (
            "a file that cannot be executed".into(),
            format!("chmod +x {word}"),
        ),
        Ok(_) => return Ok(FOUND),
    };
    Err(format!(
        "expected a program at {word}, found {found}: {remedy}"
    ))
}

/// The first word after assignments to variables, where it is a plain one.
fn first_word(command: &str) -> Option<&str> {
    let word = command
        .split_whitespace()
        .find(|word| !is_plain_assignment(word))?;
    let word = word.split(ENDS).next().unwrap_or_default();
    // A number is that of a descriptor, as in `2>log`.
    let is_number = word.bytes().all(|octet| octet.is_ascii_digit());
    (!is_number && !word.contains('=') && !word.contains(|c: char| SHELL.contains(c)))
        .then_some(word)
}

fn is_plain_assignment(word: &str) -> bool {
    let Some((name, value)) = word.split_once('=') else {
        return false;
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_open = |c: char| ENDS.contains(&c) || QUOTES.contains(c);
    !name.is_empty()
        && name.chars().all(is_name)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !value.contains(is_open)
}

/// The command's program is looked for elsewhere than that of others.
fn sets_path(command: &str) -> bool {
    command
        .split_whitespace()
        .any(|word| word.starts_with("PATH="))
}

/// The shell has `word` as a command of its own, or finds it in PATH.
fn shell_knows(word: &str, timeout: Duration) -> bool {
    let asked = process::run_hook(
        "check",
        "check",
        "command -v \"$WORD\"",
        &[("WORD", word)],
        timeout,
    );
    asked.is_ok_and(|output| output.status == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_read_where_it_is_plain() {
        for (command, word) in [
            (
                "hooks/sonic/prepare admin@switch",
                Some("hooks/sonic/prepare"),
            ),
            ("  ./a;./b", Some("./a")),
            ("a>log 2>&1", Some("a")),
            ("PATH=/opt:$PATH A=${B} ./a --to=b", Some("./a")),
            ("sh a prepare", Some("sh")),
            ("A=1;./a", None),
            ("A='x y' ./a", None),
            ("$HOME/a", None),
            ("[ -e a ] || ./b", None),
            ("\"./a b\"", None),
            ("(./a)", None),
            ("2>log ./a", None),
            ("A=1", None),
            ("", None),
        ] {
            assert_eq!(first_word(command), word, "{command}");
        }
    }

    #[test]
    fn what_cannot_be_run_is_told_with_what_to_do() {
        let look = |command| look("hooks.prepare", command, Duration::from_secs(20));
        for (command, expected) in [
            (
                "/dev/null/a prepare",
                "expected a program at /dev/null/a, found none (Not a directory (os error 20)): \
                 put it there, or correct hooks.prepare",
            ),
            (
                "/dev prepare",
                "expected a program at /dev, found something that is no file: correct \
                 hooks.prepare",
            ),
            (
                "/proc/self/status prepare",
                "expected a program at /proc/self/status, found a file that cannot be executed: \
                 chmod +x /proc/self/status",
            ),
            (
                "validator-no-such-hook prepare",
                "expected a program validator-no-such-hook in PATH, found none: install it, or \
                 give its path in hooks.prepare",
            ),
        ] {
            assert_eq!(look(command), Err(expected.to_owned()));
        }
        for (command, expected) in [
            ("/proc/self/exe prepare", "can be run"),
            ("sh hook", "can be run"),
            ("exec hook", "can be run"),
            (
                "PATH=/opt:$PATH validator-no-such-hook",
                "left to the shell",
            ),
            ("[ -e a ] || ./b", "left to the shell"),
        ] {
            assert_eq!(look(command), Ok(expected), "{command}");
        }
    }
}
